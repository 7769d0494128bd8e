//! Reads any bytes as the output of `condor_q -json`. The result must be advice on the held jobs, or
//! an error, but never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use poolcast_advice::JobQueue;

/// Prediction time, in epoch milliseconds.
const ASKED_MS: i64 = 1_700_000_000_000;

fuzz_target!(|text: &[u8]| {
    let Ok(queue) = JobQueue::read(text) else {
        return;
    };
    let held = queue.held_count();
    let (advice, agreement) = queue.correct(Vec::new(), "ap", ASKED_MS);
    assert_eq!((advice.len(), agreement.not_in_log), (held, held));
});
