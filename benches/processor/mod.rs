//! The processor time that benchmarks measure by.

use rustix::time::{ClockId, clock_gettime};

/// User and system time of this process so far, seconds.
pub(crate) fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
