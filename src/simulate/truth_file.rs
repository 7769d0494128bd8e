//! Hold cycles with what is known of them only here ↔ a truth file.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::hold_cause::HoldCause;
use super::hold_truth::{HoldTruth, SimulatedHold};
use super::summary::SimulationSummary;
use crate::shard::{self, ArtefactFormat, Shard, ShardColumn};

/// Truth files.
pub const TRUTH: ArtefactFormat = ArtefactFormat {
    name: "truth",
    version: 1,
    rebuild: "poolcast simulate",
};

/// What a simulation was made from, and what it came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SimulationOrigin {
    /// The digest of everything that it was made from.
    pub(super) key: String,
    /// The checksum of all events of the log, without the headers of its files.
    pub(super) events_xxh3: String,
    pub(super) summary: SimulationSummary,
}

#[derive(Serialize, Deserialize)]
struct TruthNotes {
    causes: Vec<String>,
    /// Files of earlier builds do not tell.
    #[serde(default)]
    origin: Option<SimulationOrigin>,
}

/// The bytes of a truth file over `cycles`, which are sorted.
pub(super) fn encode(cycles: &[SimulatedHold], origin: &SimulationOrigin) -> Result<Vec<u8>> {
    fn column<T>(cycles: &[SimulatedHold], value: impl Fn(&HoldTruth) -> T) -> Vec<T> {
        cycles.iter().map(|cycle| value(&cycle.truth)).collect()
    }
    let place = |cause| {
        HoldCause::ALL
            .iter()
            .position(|known| *known == cause)
            .unwrap_or(0) as u8
    };
    let cluster = column(cycles, |truth| truth.cluster);
    let proc = column(cycles, |truth| truth.proc);
    let earlier_holds = column(cycles, |truth| truth.earlier_holds);
    let hold_time_ms = column(cycles, |truth| truth.hold_time_ms);
    let release_time_ms = column(cycles, |truth| truth.release_time_ms);
    let p_release = column(cycles, |truth| truth.p_release);
    let p_hold = column(cycles, |truth| truth.p_hold);
    let cause = column(cycles, |truth| place(truth.cause));
    let columns = [
        ("cluster", ShardColumn::vector(&cluster)),
        ("proc", ShardColumn::vector(&proc)),
        ("earlier_holds", ShardColumn::vector(&earlier_holds)),
        ("hold_time_ms", ShardColumn::vector(&hold_time_ms)),
        ("release_time_ms", ShardColumn::vector(&release_time_ms)),
        ("p_release", ShardColumn::vector(&p_release)),
        ("p_hold", ShardColumn::vector(&p_hold)),
        ("cause", ShardColumn::vector(&cause)),
    ];
    let notes = TruthNotes {
        causes: HoldCause::ALL.iter().map(|cause| cause.name()).collect(),
        origin: Some(origin.clone()),
    };
    shard::encode(
        TRUTH,
        &notes,
        columns
            .map(|(name, column)| (name.to_owned(), column))
            .into(),
    )
}

/// What the truth file at `path` says of its simulation; `None` where there is no such file, or it
/// does not tell.
pub(super) fn read_origin(path: &Path) -> Option<SimulationOrigin> {
    let shard = Shard::open(path, TRUTH).ok()?;
    shard.notes::<TruthNotes>().ok()?.origin
}

/// Reads the truth file at `path`; its rows are sorted by cluster, proc and earlier holds.
pub fn read_truth(path: &Path) -> Result<Vec<HoldTruth>> {
    let shard = Shard::open(path, TRUTH)?;
    let cause_names = shard.notes::<TruthNotes>()?.causes;
    let named: Vec<Option<HoldCause>> = cause_names
        .iter()
        .map(|name| {
            HoldCause::ALL
                .into_iter()
                .find(|cause| cause.name() == *name)
        })
        .collect();
    let cluster = shard.column::<i32>("cluster")?;
    let proc = shard.column::<i32>("proc")?;
    let earlier_holds = shard.column::<u32>("earlier_holds")?;
    let cause = shard.column::<u8>("cause")?;
    let hold = shard.column::<i64>("hold_time_ms")?;
    let release = shard.column::<i64>("release_time_ms")?;
    let p_release = shard.column::<f64>("p_release")?;
    let p_hold = shard.column::<f64>("p_hold")?;

    let lengths = [
        proc.len(),
        earlier_holds.len(),
        cause.len(),
        hold.len(),
        release.len(),
        p_release.len(),
        p_hold.len(),
    ];
    ensure!(
        lengths.iter().all(|len| *len == cluster.len()),
        "the columns of `{}` differ in length",
        path.display()
    );

    let mut truth = Vec::with_capacity(cluster.len());
    for at in 0..cluster.len() {
        let cause = named.get(usize::from(cause[at])).copied().flatten();
        let cause = cause.with_context(|| {
            format!(
                "`{}` has a cause that this program does not know",
                path.display()
            )
        })?;
        truth.push(HoldTruth {
            cluster: cluster[at],
            proc: proc[at],
            earlier_holds: earlier_holds[at],
            hold_time_ms: hold[at],
            release_time_ms: release[at],
            p_release: p_release[at],
            p_hold: p_hold[at],
            cause,
        });
    }
    Ok(truth)
}

/// The planted probability of one hold; `truth` is sorted as [`read_truth`] gives it.
pub fn p_hold(truth: &[HoldTruth], job: (i32, i32), earlier_holds: u32) -> Option<f64> {
    let key = |truth: &HoldTruth| ((truth.cluster, truth.proc), truth.earlier_holds);
    let at = truth
        .binary_search_by_key(&(job, earlier_holds), key)
        .ok()?;
    Some(truth[at].p_hold)
}
