//! Encodes and decodes truth files, which have the true cause and probabilities of each hold.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::hold_cause::HoldCause;
use super::hold_truth::{HoldTruth, SimulatedHold};
use super::summary::SimulationSummary;
use poolcast_base::shard::{self, ArtefactFormat, Shard, ShardColumn, ShardElement};

/// Format of truth files.
pub const TRUTH: ArtefactFormat = ArtefactFormat {
    name: "truth",
    version: 1,
    rebuild: "poolcast simulate",
};

/// The inputs and the results of a simulation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SimulationOrigin {
    /// Digest of all inputs of the simulation.
    pub(super) key: String,
    /// Checksum of all events in the log, without the file headers.
    pub(super) events_xxh3: String,
    pub(super) summary: SimulationSummary,
}

/// Metadata of a truth file.
#[derive(Serialize, Deserialize)]
struct TruthNotes {
    causes: Vec<String>,
    /// Absent in files of earlier builds.
    #[serde(default)]
    origin: Option<SimulationOrigin>,
}

/// Encodes `cycles`, which must be sorted, as the bytes of a truth file.
pub(super) fn encode(cycles: &[SimulatedHold], origin: &SimulationOrigin) -> Result<Vec<u8>> {
    fn column<T>(cycles: &[SimulatedHold], value: impl Fn(&HoldTruth) -> T) -> Vec<T> {
        cycles.iter().map(|cycle| value(&cycle.truth)).collect()
    }
    let cluster = column(cycles, |truth| truth.cluster);
    let proc = column(cycles, |truth| truth.proc);
    let earlier_holds = column(cycles, |truth| truth.earlier_holds);
    let hold_time_ms = column(cycles, |truth| truth.hold_time_ms);
    let release_time_ms = column(cycles, |truth| truth.release_time_ms);
    let released = column(cycles, |truth| u8::from(truth.is_released));
    let p_release = column(cycles, |truth| truth.p_release.unwrap_or(f64::NAN));
    let p_unseen = column(cycles, |truth| {
        truth.p_release_unseen_repair.unwrap_or(f64::NAN)
    });
    let p_hold = column(cycles, |truth| truth.p_hold);
    let cause = column(cycles, |truth| place_of(truth.cause));
    let columns = [
        ("cluster", ShardColumn::vector(&cluster)),
        ("proc", ShardColumn::vector(&proc)),
        ("earlier_holds", ShardColumn::vector(&earlier_holds)),
        ("hold_time_ms", ShardColumn::vector(&hold_time_ms)),
        ("release_time_ms", ShardColumn::vector(&release_time_ms)),
        ("released", ShardColumn::vector(&released)),
        ("p_release", ShardColumn::vector(&p_release)),
        ("p_release_unseen_repair", ShardColumn::vector(&p_unseen)),
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

/// Returns the index of `cause` in [`HoldCause::ALL`], or an index outside of the list if the cause
/// is unknown.
fn place_of(cause: Option<HoldCause>) -> u8 {
    let place = HoldCause::ALL
        .iter()
        .position(|known| Some(*known) == cause);
    place.map_or(u8::MAX, |place| place as u8)
}

/// Reads the origin of the simulation from the truth file at `path`; `None` if the file is missing,
/// is not a truth file or lacks the origin.
pub(super) fn read_origin(path: &Path) -> Option<SimulationOrigin> {
    let shard = Shard::open(path, TRUTH).ok()?;
    shard.notes::<TruthNotes>().ok()?.origin
}

/// Reads the truth file at `path`. The result is sorted by cluster, proc and number of earlier
/// holds.
///
/// The columns `released`, `p_release`, `p_release_unseen_repair` and `cause` may be missing, and
/// unknown columns are ignored. A truth computed for a real log may have fewer or more columns.
///
/// # Errors
/// Fails if the file is not a truth file, if it lacks another column, or if columns differ in
/// length.
pub fn read_truth(path: &Path) -> Result<Vec<HoldTruth>> {
    let shard = Shard::open(path, TRUTH)?;
    let cluster = shard.column::<i32>("cluster")?;
    let proc = whole_column::<i32>(&shard, "proc", cluster.len())?;
    let earlier_holds = whole_column::<u32>(&shard, "earlier_holds", cluster.len())?;
    let hold_time_ms = whole_column::<i64>(&shard, "hold_time_ms", cluster.len())?;
    let release_time_ms = whole_column::<i64>(&shard, "release_time_ms", cluster.len())?;
    let p_hold = whole_column::<f64>(&shard, "p_hold", cluster.len())?;
    let released = optional_column::<u8>(&shard, "released", cluster.len())?;
    let p_release = optional_column::<f64>(&shard, "p_release", cluster.len())?;
    let p_unseen = optional_column::<f64>(&shard, "p_release_unseen_repair", cluster.len())?;
    let cause = optional_column::<u8>(&shard, "cause", cluster.len())?;
    let known_causes = known_causes(&shard.notes::<TruthNotes>()?.causes);

    let mut truth = Vec::with_capacity(cluster.len());
    for at in 0..cluster.len() {
        // Without the column, the release time shows if there was a release.
        let is_released = released.map_or(release_time_ms[at] >= 0, |released| released[at] != 0);
        let at_release = |column: Option<&[f64]>| {
            let p = column.map(|column| column[at]);
            p.filter(|p| is_released && p.is_finite())
        };
        let place = cause.map(|cause| usize::from(cause[at]));
        truth.push(HoldTruth {
            cluster: cluster[at],
            proc: proc[at],
            earlier_holds: earlier_holds[at],
            hold_time_ms: hold_time_ms[at],
            release_time_ms: release_time_ms[at],
            is_released,
            p_release: at_release(p_release),
            p_release_unseen_repair: at_release(p_unseen),
            p_hold: p_hold[at],
            cause: place.and_then(|place| known_causes.get(place).copied().flatten()),
        });
    }

    truth.sort_by_key(hold_key);
    Ok(truth)
}

/// Returns the column `name`, which must have `rows` elements.
fn whole_column<'a, T: ShardElement>(shard: &'a Shard, name: &str, rows: usize) -> Result<&'a [T]> {
    let column = shard.column::<T>(name)?;
    ensure!(
        column.len() == rows,
        "the columns of `{}` differ in length",
        shard.path().display()
    );
    Ok(column)
}

/// Like [`whole_column`], but returns `None` if the column is missing.
fn optional_column<'a, T: ShardElement>(
    shard: &'a Shard,
    name: &str,
    rows: usize,
) -> Result<Option<&'a [T]>> {
    if shard.names().any(|known| known == name) {
        whole_column(shard, name, rows).map(Some)
    } else {
        Ok(None)
    }
}

/// Looks up the causes by name; `None` for names that this program does not know.
fn known_causes(names: &[String]) -> Vec<Option<HoldCause>> {
    let mut causes = Vec::new();
    for name in names {
        let mut all = HoldCause::ALL.into_iter();
        causes.push(all.find(|cause| cause.name() == *name));
    }
    causes
}

fn hold_key(truth: &HoldTruth) -> ((i32, i32), u32) {
    ((truth.cluster, truth.proc), truth.earlier_holds)
}

/// Finds the truth about one hold. `truth` must be sorted, as [`read_truth`] returns it.
pub fn find_hold(truth: &[HoldTruth], job: (i32, i32), earlier_holds: u32) -> Option<&HoldTruth> {
    let place = truth.binary_search_by_key(&(job, earlier_holds), hold_key);
    Some(&truth[place.ok()?])
}

/// Returns the probability of success given everything at the time of the hold.
pub fn p_hold(truth: &[HoldTruth], job: (i32, i32), earlier_holds: u32) -> Option<f64> {
    Some(find_hold(truth, job, earlier_holds)?.p_hold)
}

/// Returns the probability of success just before the release. Returns `None` also if the log has
/// no release, or if the truth file lacks the value.
pub fn p_release(truth: &[HoldTruth], job: (i32, i32), earlier_holds: u32) -> Option<f64> {
    find_hold(truth, job, earlier_holds)?.p_release
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::files::write_atomic;

    /// Reads back a truth file with two holds. It has the required columns and those in `more`.
    fn truth_with(more: &[(&str, ShardColumn<'_>)]) -> Vec<HoldTruth> {
        let mut columns = vec![
            ("cluster".to_owned(), ShardColumn::vector(&[7i32, 6])),
            ("proc".to_owned(), ShardColumn::vector(&[0i32, 1])),
            ("earlier_holds".to_owned(), ShardColumn::vector(&[0u32, 2])),
            (
                "hold_time_ms".to_owned(),
                ShardColumn::vector(&[1000i64, 2000]),
            ),
            (
                "release_time_ms".to_owned(),
                ShardColumn::vector(&[-1i64, 3000]),
            ),
            ("p_hold".to_owned(), ShardColumn::vector(&[0.25f64, 0.75])),
        ];
        for (name, column) in more {
            columns.push(((*name).to_owned(), column.clone()));
        }
        let notes = TruthNotes {
            causes: vec!["licence".to_owned(), "memory".to_owned()],
            origin: None,
        };
        let bytes = shard::encode(TRUTH, &notes, columns).expect("encoded");
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("truth");
        write_atomic(&path, &bytes).expect("written");
        read_truth(&path).expect("read")
    }

    #[test]
    fn truth_files_without_optional_columns_are_read() {
        let truth = truth_with(&[]);
        assert_eq!(p_hold(&truth, (7, 0), 0), Some(0.25));
        assert_eq!(p_hold(&truth, (6, 1), 2), Some(0.75));
        assert_eq!(p_hold(&truth, (6, 1), 0), None);
        assert_eq!(p_release(&truth, (6, 1), 2), None);
        assert_eq!(
            truth
                .iter()
                .map(|hold| hold.is_released)
                .collect::<Vec<_>>(),
            [true, false],
            "the times of release tell, in the order of the jobs"
        );
    }

    #[test]
    fn unknown_columns_and_causes_are_ignored() {
        let truth = truth_with(&[
            ("p_release", ShardColumn::vector(&[f64::NAN, 0.5])),
            ("released", ShardColumn::vector(&[0u8, 1])),
            ("cause", ShardColumn::vector(&[1u8, 0])),
            ("node", ShardColumn::vector(&[1u8, 2])),
        ]);
        assert_eq!(p_release(&truth, (7, 0), 0), None);
        assert_eq!(p_release(&truth, (6, 1), 2), Some(0.5));
        let causes: Vec<_> = truth.iter().map(|hold| hold.cause).collect();
        assert_eq!(causes, [None, Some(HoldCause::Memory)]);
    }
}
