//! Reads any bytes as the output of `squeue` and of `sinfo`, in JSON and in text. Each result must be
//! a listing or an error, but never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use poolcast_slurm::live::{NodeListing, QueueListing};

fuzz_target!(|text: &[u8]| {
    if let Ok(jobs) = QueueListing::parse(text) {
        for job in &jobs.jobs {
            let is_found = jobs.find(&job.name()).is_some();
            assert!(is_found, "{job:?}");
        }
        jobs.last_event_s();
    }
    if let Ok(nodes) = NodeListing::parse(text) {
        for partition in nodes.partitions() {
            let hosts = nodes.hosts_in_partition(partition).expect("listed");
            let mixed = nodes.mixed_host(partition);
            assert!(mixed.is_none_or(|host| hosts.contains(host)), "{partition}");
        }
    }
});
