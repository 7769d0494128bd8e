//! Event store → a directory of tensors: find the cycles, label them, split them, write their windows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use rayon::prelude::*;

use super::context::Activity;
use super::cycles::{HoldCycle, HoldOutcome, LeftOutReason, hold_cycles};
use super::dataset::{
    HEADER_BYTES, ListedTensorShard, ROW_BYTES, Row, SideSummary, SplitSide, TENSORS_FORMAT,
    TensorSummary, write_shard,
};
use super::facts::HoldFacts;
use super::record::HoldHistories;
use super::sampler::SampleEncoder;
use super::settings::TensorSettings;
use super::split::{Member, sides};
use super::window::EMPTY_CELL;
use crate::config::HoldCycles;
use crate::error::hinted;
use crate::events::{EventStore, StoredJob, StoredJobs};
use crate::files::{self, StagedDirectory};
use crate::manifest;

/// The codes in one shard are at most so many bytes.
const SHARD_BYTES: usize = 4 << 20;
/// So many samples, or the least number of shards that holds them, share what is known of the activity of jobs.
const CHAPTER: usize = 1 << 13;
/// So many samples are made by one thread at a time.
const AT_ONCE: usize = 1 << 8;

/// How far tensors are.
#[derive(Debug, Clone, Copy)]
pub enum BuildProgress {
    /// So many bytes are going to be written, about, and they fit.
    Planned {
        /// Bytes of all files.
        bytes: u64,
    },
    /// So many more samples are made.
    Made {
        /// Samples since the last time.
        samples: u64,
    },
}

/// A labelled cycle on its way to a shard; all of them are held in memory.
#[derive(Debug, Clone, Copy)]
struct Sample {
    hold_ms: i64,
    job: u32,
    group: u32,
    cycle: HoldCycle,
}

/// What samples are made from.
struct Source<'a> {
    jobs: StoredJobs<'a>,
    records: HoldHistories,
    sampler: SampleEncoder<'a>,
}

/// What came of the cycles of some jobs.
#[derive(Debug, Default)]
struct Found {
    cycles: usize,
    samples: Vec<Sample>,
    left_out: BTreeMap<LeftOutReason, usize>,
}

/// Builds the tensors of `store` in `dir`, its manifest last; an earlier directory of tensors is replaced if `replace`
/// is set.
///
/// The bytes depend on the store and the settings alone, not on the number of threads. Memory holds one shard, the labelled
/// cycles, and the life spans of the jobs.
///
/// # Errors
/// Fails when the store holds no labelled hold cycle, and, before anything is written, where the tensors do not fit on the disk.
pub fn build(
    store: &EventStore,
    settings: &TensorSettings,
    key: &str,
    dir: &Path,
    replace: bool,
    progress: impl Fn(BuildProgress) + Sync,
) -> Result<TensorSummary> {
    let (
        Found {
            cycles,
            samples,
            mut left_out,
        },
        (records, sampler),
    ) = rayon::join(
        || labelled(store, settings),
        || {
            rayon::join(
                || HoldHistories::new(store),
                || SampleEncoder::new(store, settings.clone()),
            )
        },
    );
    let source = Source {
        jobs: store.jobs(),
        records,
        sampler,
    };
    ensure!(
        !samples.is_empty(),
        hinted(
            format!(
                "the events have {}, and none with a known outcome",
                crate::output::counted(cycles, "hold cycle")
            ),
            "parse a longer log: held jobs must be released and end, or be held again, within it"
        )
    );
    let members: Vec<Member> = samples
        .iter()
        .map(|sample| Member {
            hold_ms: sample.hold_ms,
            group: sample.group,
        })
        .collect();
    let placed = sides(&members, settings.split, settings.fractions, settings.seed);
    let outside = placed.iter().filter(|side| side.is_none()).count();
    left_out.extend((outside > 0).then_some((LeftOutReason::ClusterOnTwoSides, outside)));
    let staging = StagedDirectory::new(dir, replace)?;
    let of_side = |side| {
        samples
            .iter()
            .zip(&placed)
            .filter(move |(_, at)| **at == Some(side))
            .map(|(sample, _)| *sample)
    };
    let sides = SplitSide::ALL.map(|side| (side, of_side(side).collect::<Vec<Sample>>()));
    let bytes = sides
        .iter()
        .map(|(_, samples)| bytes_of(samples.len(), settings))
        .sum();
    files::check_space(dir, bytes)?;
    progress(BuildProgress::Planned { bytes });
    let mut shards = write_sides(&source, settings, &sides, staging.path(), &progress)?;
    let summary = |(side, samples): &(SplitSide, Vec<Sample>)| {
        (*side, summary_of(samples, shards.remove(side)))
    };
    let splits = sides.iter().map(summary).collect();
    let summary = TensorSummary {
        settings: settings.clone(),
        e: settings.e(),
        cycles_total: cycles,
        left_out,
        splits,
    };
    manifest::write(staging.path(), TENSORS_FORMAT, key, &summary)?;
    staging.commit()?;
    Ok(summary)
}

/// The labelled cycles of all jobs, in order of hold time.
fn labelled(store: &EventStore, settings: &TensorSettings) -> Found {
    let jobs = store.jobs();
    let found = (0..jobs.len())
        .into_par_iter()
        .fold(Found::default, |mut found, index| {
            cycles_of(store, settings, index as u32, &jobs.get(index), &mut found);
            found
        });
    let mut found = found.reduce(Found::default, Found::join);
    // Jobs are in order of access point and cluster, so those of a cluster follow each other.
    let (mut group, mut last) = (0, None);
    for sample in &mut found.samples {
        let job = jobs.get(sample.job as usize);
        let cluster = Some((job.ap, job.cluster));
        group += u32::from(last.is_some() && last != cluster);
        (last, sample.group) = (cluster, group);
    }
    found
        .samples
        .par_sort_by_key(|sample| (sample.hold_ms, sample.job, sample.cycle.earlier_holds));
    found
}

impl Found {
    fn join(mut self, mut other: Found) -> Found {
        self.cycles += other.cycles;
        self.samples.append(&mut other.samples);
        other
            .left_out
            .into_iter()
            .for_each(|(reason, n)| *self.left_out.entry(reason).or_default() += n);
        self
    }
}

fn cycles_of(
    store: &EventStore,
    settings: &TensorSettings,
    index: u32,
    job: &StoredJob<'_>,
    found: &mut Found,
) {
    for cycle in hold_cycles(job.history, settings.label, store.gaps(job.ap)) {
        found.cycles += 1;
        let left_out = match cycle.outcome {
            _ if settings
                .exclude_hold_codes
                .contains(&job.history.hold_code[cycle.hold]) =>
            {
                LeftOutReason::HoldCodeExcluded
            }
            _ if settings.cycles == HoldCycles::First && cycle.earlier_holds > 0 => {
                LeftOutReason::NotTheFirst
            }
            HoldOutcome::LeftOut(reason) => reason,
            HoldOutcome::Label(_) => {
                let hold_ms = job.history.time_ms[cycle.hold];
                found.samples.push(Sample {
                    hold_ms,
                    job: index,
                    group: 0,
                    cycle,
                });
                continue;
            }
        };
        *found.left_out.entry(left_out).or_default() += 1;
    }
}

impl Sample {
    fn is_success(&self) -> bool {
        self.cycle.outcome == HoldOutcome::Label(true)
    }

    fn hold(&self) -> (usize, HoldCycle) {
        (self.job as usize, self.cycle)
    }

    fn row(&self, source: &Source<'_>) -> Row {
        let job = source.jobs.get(self.job as usize);
        Row {
            label: self.is_success(),
            hold_ms: self.hold_ms,
            outcome_ms: job.history.time_ms[self.cycle.decided],
            cluster: job.cluster,
            proc: job.proc,
            group: self.group,
            facts: HoldFacts::at_hold(&job, &self.cycle, &source.records),
        }
    }
}

fn per_shard(&TensorSettings { m, j, .. }: &TensorSettings) -> usize {
    (SHARD_BYTES / (m * j)).max(1)
}

fn file_name(side: SplitSide, index: usize) -> String {
    format!("{}-{index:05}.safetensors", side.name())
}

/// What the shards of so many samples take.
fn bytes_of(samples: usize, settings: &TensorSettings) -> u64 {
    let shards = samples.div_ceil(per_shard(settings));
    (samples * (settings.m * settings.j + ROW_BYTES) + shards * HEADER_BYTES) as u64
}

fn summary_of(samples: &[Sample], shards: Option<Vec<ListedTensorShard>>) -> SideSummary {
    SideSummary {
        samples: samples.len(),
        successes: samples.iter().filter(|sample| sample.is_success()).count(),
        from_ms: samples
            .iter()
            .map(|sample| sample.hold_ms)
            .min()
            .unwrap_or(0),
        to_ms: samples
            .iter()
            .map(|sample| sample.hold_ms)
            .max()
            .unwrap_or(0),
        shards: shards.unwrap_or_default(),
    }
}

fn write_sides(
    source: &Source<'_>,
    settings: &TensorSettings,
    sides: &[(SplitSide, Vec<Sample>)],
    dir: &Path,
    progress: &(impl Fn(BuildProgress) + Sync),
) -> Result<BTreeMap<SplitSide, Vec<ListedTensorShard>>> {
    let &TensorSettings { m, j, .. } = settings;
    let (per_shard, mut writer) = (per_shard(settings), Writer::new(settings, dir));
    for (side, samples) in sides {
        let mut index = 0;
        for chapter in samples.chunks(CHAPTER.next_multiple_of(per_shard)) {
            let activity = source.sampler.activity(chapter.iter().map(Sample::hold));
            for samples in chapter.chunks(per_shard) {
                let place = (*side, file_name(*side, index));
                writer.add(place, |made| {
                    made.make(source, samples, &activity, m * j, progress)
                })?;
                index += 1;
            }
        }
    }
    writer.finish()
}

/// Writes one shard, which is mostly waiting for the disk, while the next is made.
struct Writer {
    m: usize,
    j: usize,
    dir: PathBuf,
    /// What was written of each side.
    written: BTreeMap<SplitSide, Vec<ListedTensorShard>>,
    /// The side and the file of `made`, once there is one.
    place: Option<(SplitSide, String)>,
    made: Made,
    spare: Made,
}

impl Writer {
    fn new(&TensorSettings { m, j, .. }: &TensorSettings, dir: &Path) -> Writer {
        let (made, spare) = (Made::default(), Made::default());
        Writer {
            m,
            j,
            dir: dir.to_owned(),
            written: BTreeMap::new(),
            place: None,
            made,
            spare,
        }
    }

    /// Makes the shard of one side that is to stand in the file at `place`.
    fn add(&mut self, place: (SplitSide, String), make: impl FnOnce(&mut Made)) -> Result<()> {
        let mut spare = std::mem::take(&mut self.spare);
        std::thread::scope(|scope| {
            let written = scope.spawn(|| self.write());
            make(&mut spare);
            written
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        self.spare = std::mem::replace(&mut self.made, spare);
        self.place = Some(place);
        Ok(())
    }

    /// Writes what was made last.
    fn write(&mut self) -> Result<()> {
        let Some((side, file)) = self.place.take() else {
            return Ok(());
        };
        let xxh3 = write_shard(
            &self.dir.join(&file),
            &self.made.codes,
            &self.made.rows,
            self.m,
            self.j,
        )?;
        self.written
            .entry(side)
            .or_default()
            .push(ListedTensorShard { file, xxh3 });
        Ok(())
    }

    /// Writes what is left; returns the shards of each side.
    fn finish(mut self) -> Result<BTreeMap<SplitSide, Vec<ListedTensorShard>>> {
        self.write()?;
        Ok(self.written)
    }
}

/// What goes into a shard.
#[derive(Debug, Default)]
struct Made {
    /// `[n, m, j]`; its memory serves one shard after another.
    codes: Vec<u8>,
    rows: Vec<Row>,
}

impl Made {
    /// Makes `samples` of so many `cells` each.
    fn make(
        &mut self,
        source: &Source<'_>,
        samples: &[Sample],
        activity: &Activity,
        cells: usize,
        progress: &(impl Fn(BuildProgress) + Sync),
    ) {
        self.codes.resize(samples.len() * cells, EMPTY_CELL);
        let at_once = samples
            .len()
            .div_ceil(rayon::current_num_threads())
            .clamp(1, AT_ONCE);
        let batches = self
            .codes
            .par_chunks_mut(at_once * cells)
            .zip(samples.par_chunks(at_once));
        batches.for_each(|(codes, batch)| {
            let holds: Vec<(usize, HoldCycle)> = batch.iter().map(Sample::hold).collect();
            source.sampler.batch(&holds, activity, codes);
            progress(BuildProgress::Made {
                samples: batch.len() as u64,
            });
        });
        samples
            .par_iter()
            .map(|sample| sample.row(source))
            .collect_into_vec(&mut self.rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, ContextChoice, LabelKind, Vocabulary};
    use crate::eventlog::JobEvent;
    use proptest::prelude::*;

    fn settings() -> TensorSettings {
        let mut settings =
            TensorSettings::from_config(&Config::load(None, &BTreeMap::new()).expect("defaults"))
                .expect("settings");
        (settings.j, settings.m, settings.timeframe_len_s) = (4, 5, 10);
        settings
    }

    /// Jobs 1 to 5 are procs of one cluster.
    fn store(events: &[(i32, i64, u16)]) -> EventStore {
        let event = |&(job, s, number): &(i32, i64, u16)| JobEvent {
            cluster: job.max(5),
            proc: job,
            time_ms: s * 1000,
            number,
            normal: u8::from(number == 5),
            hold_code: if number == 12 { 13 } else { 0 },
            ..JobEvent::default()
        };
        crate::events::store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    fn sample(store: &EventStore, job: usize, settings: &TensorSettings) -> (Vec<u8>, HoldFacts) {
        let cycle = hold_cycles(store.jobs().get(job).history, LabelKind::Next, &[])[0];
        let mut codes = vec![0; settings.m * settings.j];
        SampleEncoder::new(store, settings.clone()).encode_hold(job, &cycle, &mut codes);
        (
            codes,
            HoldFacts::at_hold(&store.jobs().get(job), &cycle, &HoldHistories::new(store)),
        )
    }

    #[test]
    fn too_few_jobs_leave_the_row_empty() {
        let store = store(&[
            (1, 0, 0),
            (1, 20, 1),
            (1, 40, 12),
            (2, 35, 0),
            (3, 41, 0),
            (4, -50, 0),
            (4, -1, 5),
        ]);
        let (codes, _) = sample(&store, 0, &settings());
        let column = |k: usize| {
            codes
                .iter()
                .skip(k)
                .step_by(4)
                .copied()
                .collect::<Vec<u8>>()
        };
        assert_eq!(column(0), [0, 0, 1, 1, 12]);
        assert_eq!(
            column(1),
            [EMPTY_CELL, EMPTY_CELL, EMPTY_CELL, EMPTY_CELL, 0],
            "job 2 alone: 3 comes later, 4 ended before the window"
        );
        assert!(
            column(2)
                .iter()
                .chain(&column(3))
                .all(|&cell| cell == EMPTY_CELL)
        );
    }

    proptest! {
        /// Whatever happens after the hold second, the sample's bytes stay the same.
        #[test]
        fn nothing_after_the_hold_enters(
            past in proptest::collection::vec((2..12i32, 0..=40i64, 0..14u16), 0..60),
            future in proptest::collection::vec((2..20i32, 41..200i64, 0..14u16), 0..60),
        ) {
            let base = [(1, 0, 0), (1, 20, 1), (1, 40, 12), (2, 1, 0), (2, 39, 12), (2, 40, 13)];
            let known = [&base[..], &past].concat();
            let later = [&known[..], &future, &[(1, 45, 13), (1, 60, 5), (2, 41, 12)]].concat();
            // Jobs seen first in the future come after those of the past in the store, as their numbers may not.
            for context in [ContextChoice::Uniform, ContextChoice::Recent, ContextChoice::SameOwnerFirst] {
                let settings = TensorSettings { context, vocabulary: Vocabulary::HoldCodes, ..settings() };
                prop_assert_eq!(sample(&store(&known), 0, &settings), sample(&store(&later), 0, &settings));
            }
        }

        #[test]
        fn bytes_do_not_depend_on_threads(events in proptest::collection::vec((1..9i32, 0..300i64, 0..14u16), 50..200)) {
            let mut events = events;
            events.extend([(50, 0, 0), (50, 9, 12), (50, 10, 13), (50, 20, 5)]);
            let store = store(&events);
            let build_with = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
                let dir = tempfile::tempdir().expect("a directory");
                let out = dir.path().join("t");
                pool.install(|| build(&store, &settings(), "k", &out, false, |_| {})).expect("built");
                let mut files: Vec<_> = fs_err::read_dir(&out).expect("listed").map(|f| f.expect("file").path()).collect();
                files.sort();
                files.iter().map(|f| fs_err::read(f).expect("read")).collect::<Vec<_>>()
            };
            prop_assert_eq!(build_with(1), build_with(3));
        }
    }
}
