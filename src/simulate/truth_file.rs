//! Encodes and decodes truth files, which have the true cause and probabilities of each hold.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::hold_cause::HoldCause;
use super::hold_truth::{HoldTruth, SimulatedHold, UnmendedChange};
use super::summary::SimulationSummary;
use poolcast_base::shard::{self, ArtefactFormat, Shard, ShardColumn, ShardElement};

/// Format of truth files.
pub const TRUTH: ArtefactFormat = ArtefactFormat {
    name: "truth",
    version: 2,
    rebuild: "poolcast simulate",
};

/// First version of the format. It has neither `permanent` nor the changes of `p_unmended`.
const TRUTH_1: ArtefactFormat = ArtefactFormat {
    version: 1,
    ..TRUTH
};
/// Value of `permanent` for a hold where this is not known.
const UNKNOWN_PERMANENCE: u8 = u8::MAX;

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
    let permanent = column(cycles, |truth| {
        truth.permanent.map_or(UNKNOWN_PERMANENCE, u8::from)
    });
    let changes = ChangeColumns::new(cycles)?;
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
        ("permanent", ShardColumn::vector(&permanent)),
        ("change_start", ShardColumn::vector(&changes.start)),
        ("change_time_ms", ShardColumn::vector(&changes.time_ms)),
        ("p_unmended", ShardColumn::vector(&changes.p)),
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

/// The changes of all holds, in the order of the holds.
struct ChangeColumns {
    /// Index of the first change of each hold, and the number of all changes.
    start: Vec<u32>,
    time_ms: Vec<i64>,
    p: Vec<f64>,
}

impl ChangeColumns {
    fn new(cycles: &[SimulatedHold]) -> Result<ChangeColumns> {
        let mut columns = ChangeColumns {
            start: vec![0],
            time_ms: Vec::new(),
            p: Vec::new(),
        };
        for cycle in cycles {
            for change in &cycle.truth.unmended {
                columns.time_ms.push(change.time_ms);
                columns.p.push(change.p);
            }
            let end = u32::try_from(columns.p.len());
            columns
                .start
                .push(end.context("the holds have too many changes for one truth file")?);
        }
        Ok(columns)
    }
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
/// The columns `released`, `p_release`, `p_release_unseen_repair`, `cause` and `permanent` may be
/// missing, and so may all columns of changes. Unknown columns are ignored. A truth computed for a
/// real log may have fewer or more columns.
///
/// # Errors
/// Fails if the file is not a truth file, if it lacks another column, if columns differ in length,
/// or if the changes are not as described in `docs/simulation.md`.
pub fn read_truth(path: &Path) -> Result<Vec<HoldTruth>> {
    let (shard, version) = open_any_version(path)?;
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
    // In version 1, these names do not mean anything.
    let (permanent, mut unmended) = if version == TRUTH_1.version {
        (None, Vec::new())
    } else {
        let permanent = optional_column::<u8>(&shard, "permanent", cluster.len())?;
        (permanent, unmended_by_hold(&shard, hold_time_ms)?)
    };
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
            permanent: permanent.and_then(|column| match column[at] {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            }),
            unmended: unmended.get_mut(at).map(std::mem::take).unwrap_or_default(),
        });
    }

    truth.sort_by_key(hold_key);
    Ok(truth)
}

/// Opens a truth file of any version. Returns it with its version.
fn open_any_version(path: &Path) -> Result<(Shard, u32)> {
    let newest = Shard::open(path, TRUTH);
    match newest {
        Ok(shard) => Ok((shard, TRUTH.version)),
        // Neither version can be read, so report the error of the newest.
        Err(error) => Shard::open(path, TRUTH_1)
            .map(|shard| (shard, TRUTH_1.version))
            .map_err(|_| error),
    }
}

/// Reads the changes of each hold, and checks them. Returns an empty list if the file has none.
fn unmended_by_hold(shard: &Shard, hold_time_ms: &[i64]) -> Result<Vec<Vec<UnmendedChange>>> {
    const NAMES: [&str; 3] = ["change_start", "change_time_ms", "p_unmended"];
    if !shard.names().any(|name| NAMES.contains(&name)) {
        return Ok(Vec::new());
    }

    let start = shard.column::<u32>("change_start")?;
    let time_ms = shard.column::<i64>("change_time_ms")?;
    let p = whole_column::<f64>(shard, "p_unmended", time_ms.len())?;
    let place = shard.path().display();
    ensure!(
        start.len() == hold_time_ms.len() + 1,
        "`change_start` of `{place}` has {} elements, expected {}",
        start.len(),
        hold_time_ms.len() + 1
    );
    let covers_all = start.first() == Some(&0)
        && start.is_sorted()
        && start.last().map(|end| *end as usize) == Some(time_ms.len());
    ensure!(
        covers_all,
        "`change_start` of `{place}` does not ascend from 0 to the number of changes"
    );

    let mut by_hold = Vec::with_capacity(hold_time_ms.len());
    for (row, bounds) in start.windows(2).enumerate() {
        let range = bounds[0] as usize..bounds[1] as usize;
        let (times_ms, p) = (&time_ms[range.clone()], &p[range]);
        ensure!(
            times_ms.is_sorted_by(|earlier, later| earlier < later)
                && times_ms
                    .first()
                    .is_none_or(|first_ms| *first_ms == hold_time_ms[row]),
            "`change_time_ms` of row {row} of `{place}` does not ascend from the time of the hold"
        );
        ensure!(
            p.iter().all(|p| (0.0..=1.0).contains(p)),
            "`p_unmended` of row {row} of `{place}` is not a probability"
        );
        let changes = times_ms.iter().zip(p).map(|(time_ms, p)| UnmendedChange {
            time_ms: *time_ms,
            p: *p,
        });
        by_hold.push(changes.collect());
    }
    Ok(by_hold)
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
        read_version(TRUTH, more).expect("read")
    }

    /// Like [`truth_with`], but for a file of the version of `format`. Returns the error of the
    /// reader.
    fn read_version(
        format: ArtefactFormat,
        more: &[(&str, ShardColumn<'_>)],
    ) -> Result<Vec<HoldTruth>> {
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
        let bytes = shard::encode(format, &notes, columns).expect("encoded");
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("truth");
        write_atomic(&path, &bytes).expect("written");
        read_truth(&path)
    }

    /// Returns the reader's error for a file with these changes.
    fn changes_error(start: &[u32], time_ms: &[i64], p: &[f64]) -> String {
        let columns = [
            ("change_start", ShardColumn::vector(start)),
            ("change_time_ms", ShardColumn::vector(time_ms)),
            ("p_unmended", ShardColumn::vector(p)),
        ];
        let refused = read_version(TRUTH, &columns).expect_err("must be refused");
        format!("{refused:#}")
    }

    #[test]
    fn changes_are_read_and_searched_by_time() {
        let truth = truth_with(&[
            ("permanent", ShardColumn::vector(&[1u8, 255])),
            ("change_start", ShardColumn::vector(&[0u32, 0, 2])),
            ("change_time_ms", ShardColumn::vector(&[2000i64, 2500])),
            ("p_unmended", ShardColumn::vector(&[0.125f64, 0.875])),
        ]);
        let changed = find_hold(&truth, (6, 1), 2).expect("found");
        let times_ms = [1999, 2000, 2499, 2500, 3000, 3001];
        assert_eq!(
            times_ms.map(|time_ms| changed.p_unmended(time_ms)),
            [
                None,
                Some(0.125),
                Some(0.125),
                Some(0.875),
                Some(0.875),
                None
            ]
        );
        assert_eq!(changed.permanent, None);

        let unchanged = find_hold(&truth, (7, 0), 0).expect("found");
        assert_eq!(unchanged.p_unmended(1000), None);
        assert_eq!(unchanged.permanent, Some(true));
    }

    #[test]
    fn columns_of_version_2_are_ignored_in_version_1() {
        let columns = [
            ("permanent", ShardColumn::vector(&[0i64, 1])),
            ("p_unmended", ShardColumn::vector(&[0.5f64])),
        ];
        let truth = read_version(TRUTH_1, &columns).expect("read");
        assert_eq!(truth.len(), 2);
        assert!(
            truth
                .iter()
                .all(|hold| hold.permanent.is_none() && hold.unmended.is_empty())
        );
        let version_3 = ArtefactFormat {
            version: 3,
            ..TRUTH
        };
        let refused = read_version(version_3, &[]).expect_err("must be refused");
        assert!(format!("{refused:#}").contains("version 3, and this program reads version 2"));
    }

    #[test]
    fn invalid_changes_are_rejected() {
        let (times_ms, p) = ([1000i64, 1500, 2000], [0.1, 0.2, 0.3]);
        for start in [vec![], vec![0], vec![0, 3], vec![0, 2, 3, 3]] {
            let error = changes_error(&start, &times_ms, &p);
            assert!(error.contains("expected 3"), "{error}");
        }
        for start in [
            [1, 2, 3],
            [0, 2, 2],
            [0, 2, 4],
            [0, 4, 3],
            [0, u32::MAX, 3],
            [0, 2, u32::MAX],
        ] {
            let error = changes_error(&start, &times_ms, &p);
            assert!(error.contains("does not ascend from 0"), "{error}");
        }
        for times_ms in [
            [1000, 1000, 2000],
            [1000, 999, 2000],
            [1000, 1500, 2001],
            [999, 1500, 2000],
            [i64::MIN, i64::MAX, 2000],
        ] {
            let error = changes_error(&[0, 2, 3], &times_ms, &p);
            assert!(error.contains("from the time of the hold"), "{error}");
        }
        for wrong in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let error = changes_error(&[0, 2, 3], &times_ms, &[0.1, wrong, 0.3]);
            assert!(error.contains("is not a probability"), "{error}");
        }
        let error = changes_error(&[0, 2, 3], &times_ms, &p[..2]);
        assert!(error.contains("differ in length"), "{error}");

        let lone = [("p_unmended", ShardColumn::vector(&p))];
        let refused = read_version(TRUTH, &lone).expect_err("must be refused");
        assert!(format!("{refused:#}").contains("no tensor `change_start`"));
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
