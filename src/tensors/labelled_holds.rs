//! Hold cycles of a store → those that become samples, and why the others do not.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::hold_cycles::{HoldCycle, HoldOutcome, LeftOutReason, hold_cycles};
use super::settings::TensorSettings;
use crate::config::HoldCycles;
use crate::events::{EventStore, StoredJob};

/// A labelled cycle on its way to a shard; all of them are held in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelledHold {
    pub(super) hold_ms: i64,
    /// The index of the job in the store.
    pub(super) job: u32,
    /// The number of its cluster, counted from 0.
    pub(super) group: u32,
    pub(super) cycle: HoldCycle,
}

impl LabelledHold {
    pub(super) fn is_success(&self) -> bool {
        self.cycle.outcome == HoldOutcome::Label(true)
    }

    /// The index of the job, and which of its holds it is.
    pub(super) fn job_and_cycle(&self) -> (usize, HoldCycle) {
        (self.job as usize, self.cycle)
    }
}

/// What came of the cycles of some jobs.
#[derive(Debug, Default)]
pub(super) struct FoundHolds {
    /// How many cycles there are.
    pub(super) cycles: usize,
    pub(super) labelled: Vec<LabelledHold>,
    pub(super) left_out: BTreeMap<LeftOutReason, usize>,
}

/// The labelled cycles of all jobs, in order of hold time.
pub(super) fn find_labelled_holds(store: &EventStore, settings: &TensorSettings) -> FoundHolds {
    let jobs = store.jobs();
    let parts = (0..jobs.len())
        .into_par_iter()
        .fold(FoundHolds::default, |mut found, index| {
            found.add_job(store, settings, index as u32, &jobs.get(index));
            found
        });
    let mut found = parts.reduce(FoundHolds::default, FoundHolds::join);

    // Jobs are in order of access point and cluster, so those of a cluster follow each other.
    let mut group = 0;
    let mut last_cluster = None;
    for hold in &mut found.labelled {
        let job = jobs.get(hold.job as usize);
        let cluster = Some((job.ap, job.cluster));
        group += u32::from(last_cluster.is_some() && last_cluster != cluster);
        last_cluster = cluster;
        hold.group = group;
    }

    found
        .labelled
        .par_sort_by_key(|hold| (hold.hold_ms, hold.job, hold.cycle.earlier_holds));
    found
}

impl FoundHolds {
    fn join(mut self, mut other: FoundHolds) -> FoundHolds {
        self.cycles += other.cycles;
        self.labelled.append(&mut other.labelled);
        for (reason, n) in other.left_out {
            *self.left_out.entry(reason).or_default() += n;
        }
        self
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
            if let Some(reason) = reason_to_leave_out(settings, job, &cycle) {
                *self.left_out.entry(reason).or_default() += 1;
                continue;
            }
            self.labelled.push(LabelledHold {
                hold_ms: job.history.time_ms[cycle.hold],
                job: index,
                group: 0,
                cycle,
            });
        }
    }
}

fn reason_to_leave_out(
    settings: &TensorSettings,
    job: &StoredJob<'_>,
    cycle: &HoldCycle,
) -> Option<LeftOutReason> {
    let hold_code = job.history.hold_code[cycle.hold];
    if settings.exclude_hold_codes.contains(&hold_code) {
        return Some(LeftOutReason::HoldCodeExcluded);
    }
    if settings.cycles == HoldCycles::First && cycle.earlier_holds > 0 {
        return Some(LeftOutReason::NotTheFirst);
    }
    match cycle.outcome {
        HoldOutcome::LeftOut(reason) => Some(reason),
        HoldOutcome::Label(_) => None,
    }
}
