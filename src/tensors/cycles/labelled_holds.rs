//! Selects the hold cycles of a store that become samples, and counts why the others do not.

use std::collections::BTreeMap;

use super::asked_hold::QueriedHold;
use super::hold_cycles::{ExclusionReason, HoldCycle, HoldOutcome, hold_cycles};
use crate::shards::ExcludedCycles;
use crate::shards::TensorSettings;
use poolcast_config::{HoldCycles, WindowPosition};
use poolcast_events::{EventStore, StoredJob};

/// A labelled cycle that becomes a sample. All of them are in memory at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LabelledHold {
    pub(crate) asked: QueriedHold,
    pub(crate) hold_ms: i64,
    /// Time at which the outcome was decided, in epoch ms.
    pub(crate) decided_ms: i64,
    /// Number of the cluster, from 0.
    pub(crate) group: u32,
}

impl LabelledHold {
    pub(crate) fn is_success(&self) -> bool {
        self.asked.cycle.outcome == HoldOutcome::Label(true)
    }
}

/// The cycles of some jobs: labelled or left out.
#[derive(Debug, Default)]
pub(crate) struct FoundHolds {
    /// Number of cycles.
    pub(crate) cycles: usize,
    pub(crate) labelled: Vec<LabelledHold>,
    pub(crate) left_out: BTreeMap<ExclusionReason, ExcludedCycles>,
}

/// Finds the labelled cycles of all jobs, sorted by prediction time.
pub(crate) fn find_labelled_holds(store: &EventStore, settings: &TensorSettings) -> FoundHolds {
    let jobs = store.jobs();
    let parts = jobs.map_ranges(|range| {
        let mut found = FoundHolds::default();
        for index in range.filter(|&index| jobs.was_held(index)) {
            found.add_job(store, settings, index as u32, &jobs.get(index));
        }
        found
    });
    let mut found = FoundHolds::joined(parts);

    // Jobs are sorted by access point and cluster, so the jobs of a cluster are neighbors.
    let mut group = 0;
    let mut last_cluster = None;
    for hold in &mut found.labelled {
        let cluster = Some(jobs.cluster(hold.asked.job as usize));
        group += u32::from(last_cluster.is_some() && last_cluster != cluster);
        last_cluster = cluster;
        hold.group = group;
    }

    found.labelled.sort_unstable_by_key(|hold| {
        let QueriedHold {
            asked_ms,
            job,
            cycle,
        } = hold.asked;
        (asked_ms, job, cycle.earlier_holds)
    });
    found
}

impl FoundHolds {
    fn joined(parts: Vec<FoundHolds>) -> FoundHolds {
        let labelled = parts.iter().map(|part| part.labelled.len()).sum();
        let mut all = FoundHolds {
            labelled: Vec::with_capacity(labelled),
            ..FoundHolds::default()
        };
        for mut part in parts {
            all.cycles += part.cycles;
            all.labelled.append(&mut part.labelled);
            for (reason, cycles) in part.left_out {
                all.left_out.entry(reason).or_default().add_all(cycles);
            }
        }
        all
    }

    fn add_job(
        &mut self,
        store: &EventStore,
        settings: &TensorSettings,
        index: u32,
        job: &StoredJob<'_>,
    ) {
        for cycle in hold_cycles(job.history, settings.label, store.gaps(job.ap)) {
            self.cycles += 1;
            if let Some(reason) = exclusion_reason(settings, job, &cycle) {
                let left_out = self.left_out.entry(reason).or_default();
                left_out.add(cycle.outcome);
                continue;
            }
            let decided_ms = job.history.time_ms[cycle.decided];
            self.labelled.push(LabelledHold {
                asked: QueriedHold::new(index, &job.history, cycle, settings.window, decided_ms),
                hold_ms: job.history.time_ms[cycle.hold],
                decided_ms,
                group: 0,
            });
        }
    }
}

fn exclusion_reason(
    settings: &TensorSettings,
    job: &StoredJob<'_>,
    cycle: &HoldCycle,
) -> Option<ExclusionReason> {
    let hold_code = job.history.hold_code[cycle.hold];
    if settings.exclude_hold_codes.contains(&hold_code) {
        return Some(ExclusionReason::HoldCodeExcluded);
    }
    if settings.cycles == HoldCycles::First && cycle.earlier_holds > 0 {
        return Some(ExclusionReason::NotTheFirst);
    }
    if let HoldOutcome::LeftOut(reason) = cycle.outcome {
        return Some(reason);
    }
    // By the published rule, a job removed without a release has an outcome. But it has no
    // prediction time before a release.
    let is_never_asked =
        settings.window == WindowPosition::Release && !cycle.is_released(&job.history);
    is_never_asked.then_some(ExclusionReason::NoReleaseSeen)
}
