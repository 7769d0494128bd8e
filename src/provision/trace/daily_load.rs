//! Number of busy nodes per day of local time.

use std::collections::BTreeMap;

use super::local_time::TraceZone;
use super::trace_job::TraceJob;

const DAY_S: i64 = 86_400;

/// Minimum time that a load must last within a day, in seconds and added up over the day, to count
/// as the peak. Shorter peaks are artefacts: jobs overlap briefly while a node changes jobs.
const PEAK_S: i64 = 3600;

/// The load of one day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DailyLoad {
    /// The day of local time, in days since 1970-01-01.
    pub(crate) day: i64,
    /// The largest number of nodes that was reached or exceeded for an hour of the day in total.
    pub(crate) peak_nodes: u32,
    /// The average number of busy nodes over the whole day.
    pub(crate) mean_nodes: f64,
}

/// Computes the load of each day from the first start to the last end. Jobs that still run are
/// taken to end at `trace_end_s`.
pub(crate) fn daily_loads(jobs: &[TraceJob], zone: &TraceZone, trace_end_s: i64) -> Vec<DailyLoad> {
    let mut changes: Vec<(i64, i64)> = Vec::with_capacity(2 * jobs.len());
    for job in jobs {
        let Some(start_s) = job.start_s.get() else {
            continue;
        };
        let end_s = job.end_s.get().unwrap_or(trace_end_s);
        if end_s > start_s {
            changes.push((zone.wall_s(start_s), i64::from(job.nodes)));
            changes.push((zone.wall_s(end_s), -i64::from(job.nodes)));
        }
    }
    changes.sort_unstable();

    let mut seconds_by_day: BTreeMap<i64, BTreeMap<i64, i64>> = BTreeMap::new();
    let mut busy = 0;
    for pair in changes.windows(2) {
        busy += pair[0].1;
        let (mut from_s, to_s) = (pair[0].0, pair[1].0);
        // The load is constant between two changes. Split this segment at each midnight.
        while from_s < to_s {
            let day = from_s.div_euclid(DAY_S);
            let until_s = to_s.min((day + 1) * DAY_S);
            *seconds_by_day
                .entry(day)
                .or_default()
                .entry(busy)
                .or_insert(0) += until_s - from_s;
            from_s = until_s;
        }
    }
    seconds_by_day
        .iter()
        .map(|(day, seconds)| daily_load(*day, seconds))
        .collect()
}

fn daily_load(day: i64, seconds_by_load: &BTreeMap<i64, i64>) -> DailyLoad {
    let mut load = DailyLoad {
        day,
        peak_nodes: 0,
        mean_nodes: 0.0,
    };
    // From the largest load down: `longer_s` is the time with at least `busy` nodes.
    let mut longer_s = 0;
    for (busy, seconds) in seconds_by_load.iter().rev() {
        load.mean_nodes += *busy as f64 * *seconds as f64 / DAY_S as f64;
        longer_s += seconds;
        if longer_s >= PEAK_S && load.peak_nodes == 0 {
            load.peak_nodes = u32::try_from(*busy).unwrap_or(0);
        }
    }
    load
}
