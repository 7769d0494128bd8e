//! Reads any bytes as accounting: the output of `sacct`, in text and in JSON, or a workload log. The
//! result must be a trace or an error, but never a panic.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use poolcast_base::salt::OwnerSalt;
use poolcast_provision::trace::read_accounting;

/// Salt of the user names.
static SALT: LazyLock<OwnerSalt> = LazyLock::new(|| OwnerSalt::random().expect("a salt"));

fuzz_target!(|text: &[u8]| {
    let Ok(trace) = read_accounting(text.to_vec(), &SALT) else {
        return;
    };
    for job in &trace.jobs {
        assert!(job.eligible_s >= job.submit_s, "{job:?}");
        assert!(job.wait_s().is_none_or(|wait_s| wait_s >= 0), "{job:?}");
    }
});
