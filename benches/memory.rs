//! Measures the memory throughput of a plain copy loop, on as many threads as RAYON_NUM_THREADS
//! says, in GB per second of wall time.
//!
//! `cargo bench --bench memory` prints one line. Each thread copies within 64 MB of its own again
//! and again. The rate of two threads, divided by the rate of one, is the largest speed-up that a
//! second thread can give to any code that is bound by memory.

use std::time::{Duration, Instant};

use anyhow::Result;
use poolcast_base::output;

/// Memory per thread, in bytes: more than the near caches of a core hold.
const BYTES: usize = 64 << 20;

/// Duration of the measurement.
const LENGTH: Duration = Duration::from_secs(3);

/// Copies from one half of `memory` to the other until the time is over. Returns the bytes copied.
fn copy_until(memory: &mut [u8], end: Instant) -> u64 {
    let mut copied = 0;
    while Instant::now() < end {
        let (from, to) = memory.split_at_mut(BYTES / 2);
        to.copy_from_slice(from);
        std::hint::black_box(&to);
        copied += from.len() as u64;
    }
    copied
}

fn main() -> Result<()> {
    let threads = rayon::current_num_threads();
    // The program touches its memory for the first time before the clock runs.
    let mut memory: Vec<Vec<u8>> = (0..threads).map(|_| vec![1; BYTES]).collect();
    let start = Instant::now();
    let end = start + LENGTH;
    let copied: u64 = std::thread::scope(|scope| {
        let each = memory.iter_mut();
        let running: Vec<_> = each
            .map(|memory| scope.spawn(move || copy_until(memory, end)))
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or(0))
            .sum()
    });
    let rate = copied as f64 / 1e9 / start.elapsed().as_secs_f64();
    output::print(&format!("{threads} threads: {rate:.2} GB/s of wall time\n"))
}
