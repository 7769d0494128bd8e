//! Computes the features of a queue at a decision time.

use std::collections::BTreeSet;
use std::f64::consts::TAU;

use crate::forecast::{QueueTime, SeenRun, SeenWait};
use crate::submission::{StartedWait, WaitRecord};
use poolcast_base::stats::{interpolated_quantile, mean};

/// Maximum wait by time limits, in seconds. Longer waits are cut to this.
pub const MAX_WAIT_BY_LIMITS_S: i64 = 14 * 86_400;

/// Features that count the nodes freed within a horizon: name and horizon in hours.
const FREED_H: [(&str, f64); 6] = [
    ("nodes_freed_in_1_h", 1.0),
    ("nodes_freed_in_2_h", 2.0),
    ("nodes_freed_in_4_h", 4.0),
    ("nodes_freed_in_8_h", 8.0),
    ("nodes_freed_in_16_h", 16.0),
    ("nodes_freed_in_32_h", 32.0),
];

const HOUR_S: f64 = 3600.0;
const DAY_S: i64 = 86_400;

/// Known facts when a successor may be submitted.
pub struct KnownTime<'a> {
    /// The queue.
    pub queue: &'a QueueTime,
    /// Waits of jobs that have started.
    pub record: &'a WaitRecord,
    /// The successor.
    pub successor: &'a SeenWait,
    /// Local wall-clock time of the cluster, in seconds, counted as if it were UTC.
    pub wall_s: i64,
    /// Wait of the successor if all jobs ran to their time limits, in seconds; at most
    /// [`MAX_WAIT_BY_LIMITS_S`].
    pub wait_by_limits_s: i64,
}

/// Name and value of a feature.
type NamedFeature = (&'static str, f64);

impl KnownTime<'_> {
    /// Returns the features, `[f]`, in the order of [`feature_names`]. Durations are in hours.
    pub fn features(&self) -> Vec<f32> {
        let named = self.named();
        // An empty sum is -0: adding 0 makes it 0.
        let values = named.iter().map(|(_, value)| *value as f32 + 0.0);
        values.collect()
    }

    fn named(&self) -> Vec<NamedFeature> {
        let mut named = Vec::with_capacity(48);
        self.add_running(&mut named);
        self.add_waiting(&mut named);
        self.add_arrivals(&mut named);
        self.add_past_waits(&mut named);
        self.add_clock(&mut named);
        named.push(("wait_by_limits_h", self.wait_by_limits_s as f64 / HOUR_S));
        named
    }

    /// Adds features of the nodes and of the running jobs.
    fn add_running(&self, named: &mut Vec<NamedFeature>) {
        let queue = self.queue;
        let (mut elapsed_h, mut used, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for run in &queue.running {
            let run_h = (queue.now_s - run.start_s) as f64 / HOUR_S;
            let limit_h = (run.limit_s.max(1) as f64) / HOUR_S;
            elapsed_h.push(run_h);
            used.push(run_h / limit_h);
            left.push(((limit_h - run_h).max(0.0), f64::from(run.nodes)));
        }
        elapsed_h.sort_unstable_by(f64::total_cmp);
        used.sort_unstable_by(f64::total_cmp);
        left.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

        let node_h: f64 = left.iter().map(|(left_h, nodes)| left_h * nodes).sum();
        named.push(("nodes", f64::from(queue.nodes)));
        named.push(("free_nodes", self.free_nodes()));
        named.push(("running_jobs", queue.running.len() as f64));
        named.push((
            "running_users",
            users(queue.running.iter().map(|run| run.user)),
        ));
        named.push(("running_left_node_h", node_h));
        for (name, within_h) in FREED_H {
            let freed = left.iter().take_while(|(left_h, _)| *left_h <= within_h);
            named.push((name, freed.map(|(_, nodes)| nodes).sum()));
        }
        named.push(("nodes_free_for_it_in_h", self.hours_until_free(&left)));
        named.push((
            "running_elapsed_p25_h",
            interpolated_quantile(&elapsed_h, 0.25),
        ));
        named.push((
            "running_elapsed_p50_h",
            interpolated_quantile(&elapsed_h, 0.5),
        ));
        named.push((
            "running_elapsed_p75_h",
            interpolated_quantile(&elapsed_h, 0.75),
        ));
        named.push((
            "running_share_of_limit_p50",
            interpolated_quantile(&used, 0.5),
        ));
    }

    /// Returns the free nodes; negative if more nodes are in use than the cluster has now.
    fn free_nodes(&self) -> f64 {
        let held: u64 = self
            .queue
            .running
            .iter()
            .map(|run| u64::from(run.nodes))
            .sum();
        f64::from(self.queue.nodes) - held as f64
    }

    /// Returns the hours until the successor's nodes are free if no other job waited. `left` lists,
    /// in order, the hours until nodes become free and their number. If there are never enough
    /// nodes, returns the last of these times.
    fn hours_until_free(&self, left: &[(f64, f64)]) -> f64 {
        let mut free = self.free_nodes();
        let mut hours = 0.0;
        for (left_h, nodes) in left {
            if free >= f64::from(self.successor.nodes) {
                break;
            }
            free += nodes;
            hours = *left_h;
        }
        hours
    }

    /// Adds features of the waiting jobs.
    fn add_waiting(&self, named: &mut Vec<NamedFeature>) {
        let waiting = &self.queue.waiting;
        let (mut limits_h, mut ages_h) = (Vec::new(), Vec::new());
        let (mut nodes, mut node_h, mut most_nodes) = (0.0, 0.0, 0);
        let (mut as_large, mut alike) = (0.0, 0.0);
        for wait in waiting {
            let limit_h = wait.limit_s as f64 / HOUR_S;
            limits_h.push(limit_h);
            ages_h.push((self.queue.now_s - wait.since_s) as f64 / HOUR_S);
            nodes += f64::from(wait.nodes);
            node_h += f64::from(wait.nodes) * limit_h;
            most_nodes = wait.nodes.max(most_nodes);
            as_large += f64::from(u8::from(wait.nodes >= self.successor.nodes));
            alike += f64::from(u8::from(self.is_similar(wait)));
        }
        limits_h.sort_unstable_by(f64::total_cmp);
        ages_h.sort_unstable_by(f64::total_cmp);

        let wanted = nodes + f64::from(self.successor.nodes);
        named.push(("waiting_jobs", waiting.len() as f64));
        named.push(("waiting_users", users(waiting.iter().map(|wait| wait.user))));
        named.push(("waiting_nodes", nodes));
        named.push(("waiting_node_h", node_h));
        named.push(("waiting_most_nodes", f64::from(most_nodes)));
        named.push(("waiting_as_large_jobs", as_large));
        named.push(("waiting_like_jobs", alike));
        named.push(("waiting_limit_p50_h", interpolated_quantile(&limits_h, 0.5)));
        named.push(("waiting_age_p50_h", interpolated_quantile(&ages_h, 0.5)));
        named.push(("waiting_age_most_h", interpolated_quantile(&ages_h, 1.0)));
        named.push(("missing_nodes", (wanted - self.free_nodes()).max(0.0)));
    }

    fn is_similar(&self, wait: &SeenWait) -> bool {
        let started = StartedWait {
            nodes: wait.nodes,
            limit_s: wait.limit_s,
            wait_s: 0,
        };
        started.is_similar(self.successor.nodes, self.successor.limit_s)
    }

    /// Adds the nodes of jobs that were queued or started recently.
    fn add_arrivals(&self, named: &mut Vec<NamedFeature>) {
        let now_s = self.queue.now_s;
        let came = |since_s: i64, within_h: f64| (now_s - since_s) as f64 <= within_h * HOUR_S;
        let started = |within_h: f64| -> f64 {
            let runs = self.queue.running.iter();
            let lately = runs.filter(|run| came(run.start_s, within_h));
            lately.map(|run: &SeenRun| f64::from(run.nodes)).sum()
        };
        let queued = |within_h: f64| -> f64 {
            let waits = self.queue.waiting.iter();
            let lately = waits.filter(|wait| came(wait.since_s, within_h));
            lately.map(|wait| f64::from(wait.nodes)).sum()
        };
        named.push(("started_nodes_1_h", started(1.0)));
        named.push(("started_nodes_6_h", started(6.0)));
        named.push(("queued_nodes_1_h", queued(1.0)));
        named.push(("queued_nodes_6_h", queued(6.0)));
    }

    /// Adds features of the waits of jobs that started last.
    fn add_past_waits(&self, named: &mut Vec<NamedFeature>) {
        let hours = |wait_s: i64| wait_s as f64 / HOUR_S;
        let last: Vec<f64> = self.record.last_s().map(hours).collect();
        let like: Vec<f64> = self.record.last_similar_s().map(hours).collect();
        let latest = |waits: &[f64], most: usize| mean(&waits[waits.len().saturating_sub(most)..]);
        named.push(("last_100_waits_mean_h", latest(&last, 100)));
        named.push(("last_10_waits_mean_h", latest(&last, 10)));
        named.push(("last_20_like_waits_mean_h", latest(&like, 20)));
        named.push(("last_like_wait_h", latest(&like, 1)));

        let sorted = |mut waits: Vec<f64>| {
            waits.sort_unstable_by(f64::total_cmp);
            waits
        };
        let (last, like) = (sorted(last), sorted(like));
        named.push(("last_100_waits_p50_h", interpolated_quantile(&last, 0.5)));
        named.push(("last_100_waits_p90_h", interpolated_quantile(&last, 0.9)));
        named.push((
            "last_100_like_waits_p50_h",
            interpolated_quantile(&like, 0.5),
        ));
        named.push((
            "last_100_like_waits_p90_h",
            interpolated_quantile(&like, 0.9),
        ));
    }

    /// Adds the time of day and of the week.
    fn add_clock(&self, named: &mut Vec<NamedFeature>) {
        let day = self.wall_s.rem_euclid(DAY_S) as f64 / DAY_S as f64;
        let week = self.wall_s.rem_euclid(7 * DAY_S) as f64 / (7 * DAY_S) as f64;
        named.push(("day_sine", (TAU * day).sin()));
        named.push(("day_cosine", (TAU * day).cos()));
        named.push(("week_sine", (TAU * week).sin()));
        named.push(("week_cosine", (TAU * week).cos()));
    }
}

/// Counts the distinct users.
fn users(all: impl Iterator<Item = u32>) -> f64 {
    let counted: BTreeSet<u32> = all.collect();
    counted.len() as f64
}

/// Returns the names of the features, in order.
pub fn feature_names() -> Vec<String> {
    let successor = SeenWait {
        since_s: 0,
        limit_s: 1,
        nodes: 1,
        user: 0,
    };
    // The names do not depend on the queue.
    let empty = KnownTime {
        queue: &QueueTime {
            now_s: 0,
            nodes: 0,
            running: Vec::new(),
            waiting: Vec::new(),
            shared: None,
        },
        record: &WaitRecord::new(1, 1, &[]),
        successor: &successor,
        wall_s: 0,
        wait_by_limits_s: 0,
    };
    let named = empty.named();
    named.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const HOUR: i64 = 3600;

    #[test]
    fn features_describe_the_queue() {
        let run = |start_h: i64, limit_h: i64, nodes: u32, user: u32| SeenRun {
            start_s: start_h * HOUR,
            limit_s: limit_h * HOUR,
            nodes,
            user,
            end_s: None,
        };
        let wait = |since_h: i64, limit_h: i64, nodes: u32, user: u32| SeenWait {
            since_s: since_h * HOUR,
            limit_s: limit_h * HOUR,
            nodes,
            user,
        };
        let queue = QueueTime {
            now_s: 100 * HOUR,
            nodes: 10,
            running: vec![run(99, 2, 4, 1), run(90, 20, 5, 1), run(96, 3, 2, 2)],
            waiting: vec![wait(99, 48, 1, 3), wait(80, 10, 8, 1), wait(97, 30, 2, 3)],
            shared: None,
        };
        let mut record = WaitRecord::new(2, 24 * HOUR, &[]);
        for (wait_h, nodes) in [(1, 2), (2, 9), (6, 1)] {
            record.observe(StartedWait {
                nodes,
                limit_s: 24 * HOUR,
                wait_s: wait_h * HOUR,
            });
        }
        let known = KnownTime {
            queue: &queue,
            record: &record,
            successor: &wait(100, 24, 2, 9),
            wall_s: 6 * HOUR,
            wait_by_limits_s: 5 * HOUR,
        };
        let found: BTreeMap<&str, f64> = known.named().into_iter().collect();
        for (name, expected) in [
            ("nodes", 10.0),
            ("free_nodes", -1.0),
            ("running_jobs", 3.0),
            ("running_users", 2.0),
            ("running_left_node_h", 4.0 + 50.0),
            ("nodes_freed_in_1_h", 6.0),
            ("nodes_freed_in_16_h", 11.0),
            ("nodes_free_for_it_in_h", 1.0),
            ("running_elapsed_p50_h", 4.0),
            ("running_share_of_limit_p50", 0.5),
            ("waiting_jobs", 3.0),
            ("waiting_users", 2.0),
            ("waiting_nodes", 11.0),
            ("waiting_node_h", 48.0 + 80.0 + 60.0),
            ("waiting_most_nodes", 8.0),
            ("waiting_as_large_jobs", 2.0),
            ("waiting_like_jobs", 2.0),
            ("waiting_age_most_h", 20.0),
            ("missing_nodes", 14.0),
            ("started_nodes_1_h", 4.0),
            ("started_nodes_6_h", 6.0),
            ("queued_nodes_1_h", 1.0),
            ("queued_nodes_6_h", 3.0),
            ("last_100_waits_mean_h", 3.0),
            ("last_20_like_waits_mean_h", 3.5),
            ("last_like_wait_h", 6.0),
            ("last_100_waits_p50_h", 2.0),
            ("day_sine", 1.0),
            ("wait_by_limits_h", 5.0),
        ] {
            let value = found[name];
            assert!((value - expected).abs() < 1e-9, "{name}: {value}");
        }
    }

    #[test]
    fn feature_names_are_unique() {
        let mut names = feature_names();
        assert_eq!(names.len(), 44);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 44);
    }
}
