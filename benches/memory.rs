//! What a machine gives to a plain loop over memory, on as many threads as RAYON_NUM_THREADS says, in
//! GB a second of wall time.
//!
//! `cargo bench --bench memory` prints one line: each thread copies 64 MB of its own again and again.
//! How many times one thread's rate two have is the most that two threads of anything that is bound by
//! memory can have.

use std::time::{Duration, Instant};

use anyhow::Result;
use poolcast_base::output;

/// More than the near caches of a core hold.
const BYTES: usize = 64 << 20;

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
    // Memory is touched for the first time before the clock runs.
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
