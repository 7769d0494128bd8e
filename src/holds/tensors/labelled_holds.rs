//! Hold cycles of a store → those that become samples, and why the others do not.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::asked_hold::AskedHold;
use super::hold_cycles::{HoldCycle, HoldOutcome, LeftOutReason, hold_cycles};
use super::settings::TensorSettings;
use super::tensor_summary::LeftOutCycles;
use poolcast_config::{HoldCycles, WindowPlace};
use crate::events::{EventStore, StoredJob};

/// A labelled cycle on its way to a shard; all of them are held in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelledHold {
    pub(super) asked: AskedHold,
    pub(super) hold_ms: i64,
    /// When its outcome was decided.
    pub(super) decided_ms: i64,
    /// The number of its cluster, counted from 0.
    pub(super) group: u32,
}

impl LabelledHold {
    pub(super) fn is_success(&self) -> bool {
        self.asked.cycle.outcome == HoldOutcome::Label(true)
    }
}

/// What came of the cycles of some jobs.
#[derive(Debug, Default)]
pub(super) struct FoundHolds {
    /// How many cycles there are.
    pub(super) cycles: usize,
    pub(super) labelled: Vec<LabelledHold>,
    pub(super) left_out: BTreeMap<LeftOutReason, LeftOutCycles>,
}

/// The labelled cycles of all jobs, in order of the moment of asking.
pub(super) fn find_labelled_holds(store: &EventStore, settings: &TensorSettings) -> FoundHolds {
    let jobs = store.jobs();
    let parts: Vec<FoundHolds> = (0..jobs.len())
        .into_par_iter()
        .fold(FoundHolds::default, |mut found, index| {
            if jobs.was_held(index) {
                found.add_job(store, settings, index as u32, &jobs.get(index));
            }
            found
        })
        .collect();
    let mut found = FoundHolds::joined(parts);

    // Jobs are in order of access point and cluster, so those of a cluster follow each other.
    let mut group = 0;
    let mut last_cluster = None;
    for hold in &mut found.labelled {
        let cluster = Some(jobs.cluster(hold.asked.job as usize));
        group += u32::from(last_cluster.is_some() && last_cluster != cluster);
        last_cluster = cluster;
        hold.group = group;
    }

    found.labelled.par_sort_by_key(|hold| {
        let AskedHold {
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
            if let Some(reason) = reason_to_leave_out(settings, job, &cycle) {
                let left_out = self.left_out.entry(reason).or_default();
                left_out.add(cycle.outcome);
                continue;
            }
            let decided_ms = job.history.time_ms[cycle.decided];
            self.labelled.push(LabelledHold {
                asked: AskedHold::new(index, &job.history, cycle, settings.window, decided_ms),
                hold_ms: job.history.time_ms[cycle.hold],
                decided_ms,
                group: 0,
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
    if let HoldOutcome::LeftOut(reason) = cycle.outcome {
        return Some(reason);
    }
    // Who is removed without a release has an end by the published rule, and no moment of asking.
    let is_never_asked =
        settings.window == WindowPlace::Release && !cycle.is_released(&job.history);
    is_never_asked.then_some(LeftOutReason::NoReleaseSeen)
}
