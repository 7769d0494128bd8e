//! Processor time, which the benchmarks measure.

use rustix::time::{ClockId, clock_gettime};

/// Returns the user and system time of this process so far, in s.
pub(crate) fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
