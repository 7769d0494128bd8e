//! Builds a directory of tensors from an event store: finds, labels and splits the hold cycles, and
//! writes their samples.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};

use super::build_progress::BuildProgress;
use super::format::TENSORS_FORMAT;
use super::sample_shard::{HEADER_BYTES, ROW_BYTES, SampleShape};
use super::settings::TensorSettings;
use super::shard_writer::{SampleSources, ShardWriter};
use super::tensor_summary::{ListedTensorShard, SplitSummary, TensorSummary};
use crate::codes::SampleEncoder;
use crate::cycles::Split;
use crate::cycles::share_error;
use crate::cycles::{FoundHolds, LabelledHold, find_labelled_holds};
use crate::cycles::{SplitMember, assign_splits};
use crate::history::PoolHistory;
use crate::tokens::{QUESTION_BYTES, TokenHistory};
use poolcast_base::error::hinted;
use poolcast_base::files::{self, StagedDirectory};
use poolcast_base::manifest;
use poolcast_config::ResolvedConfig;
use poolcast_events::EventStore;

/// Maximum size of the codes in one shard, in bytes.
const SHARD_BYTES: usize = 4 << 20;
/// Samples per chapter, rounded up to whole shards. The samples of a chapter share one lookup of
/// the recent activity of jobs.
const SAMPLES_PER_CHAPTER: usize = 1 << 13;

/// Builds the tensors of `store` in `dir`, with the `config` beside them if there is one, and writes the
/// manifest last. If `replace` is set, an earlier directory of tensors is replaced.
///
/// The output depends only on the store and the settings, not on the number of threads. Memory
/// holds one shard, the labelled cycles, and the life spans of the jobs.
///
/// # Errors
/// Fails if the store holds no labelled hold cycle. Fails before anything is written if the tensors
/// do not fit on the disk.
pub fn build(
    store: &EventStore,
    settings: &TensorSettings,
    key: &str,
    dir: &Path,
    replace: bool,
    config: Option<&ResolvedConfig>,
    progress: impl Fn(BuildProgress) + Sync,
) -> Result<TensorSummary> {
    let (mut found, sources) = rayon::join(
        || find_labelled_holds(store, settings),
        || sample_sources(store, settings),
    );
    ensure!(
        !found.labelled.is_empty(),
        hinted(
            format!(
                "the events have {}, none with a known outcome",
                poolcast_base::output::counted(found.cycles, "hold cycle")
            ),
            "parse a longer log: held jobs must be released and end, or be held again, within it"
        )
    );

    let splits = divide(&mut found, settings);
    let staging = StagedDirectory::new(dir, replace)?;
    let bytes = splits
        .values()
        .map(|holds| shard_bytes(holds.len(), settings))
        .sum();
    files::check_space(dir, bytes)?;
    progress(BuildProgress::Planned { bytes });

    let mut shards = write_splits(&sources, settings, &splits, staging.path(), &progress)?;

    let mut summaries = BTreeMap::new();
    for (split, holds) in &splits {
        let listed = shards.remove(split).unwrap_or_default();
        summaries.insert(*split, summarize_split(holds, listed));
    }
    let summary = TensorSummary {
        settings: settings.clone(),
        e: settings.e(),
        source: store.summary.source(),
        cycles_total: found.cycles,
        left_out: found.left_out,
        splits: summaries,
    };
    if let Some(config) = config {
        config.write(staging.path())?;
    }
    manifest::write(staging.path(), TENSORS_FORMAT, key, &summary)?;
    staging.commit()?;
    Ok(summary)
}

fn sample_sources<'a>(store: &'a EventStore, settings: &TensorSettings) -> SampleSources<'a> {
    let ((history, encoder), tokens) = rayon::join(
        || {
            rayon::join(
                || PoolHistory::new(store, settings.timeframe_len_s),
                || SampleEncoder::new(store, settings.clone()),
            )
        },
        || settings.outcomes.then(|| TokenHistory::new(store)),
    );
    SampleSources {
        jobs: store.jobs(),
        history,
        features: settings.features.clone(),
        encoder,
        tokens,
    }
}

/// Returns the holds of each split, and counts the holds that belong to none as left out.
fn divide(found: &mut FoundHolds, settings: &TensorSettings) -> BTreeMap<Split, Vec<LabelledHold>> {
    let members: Vec<SplitMember> = found
        .labelled
        .iter()
        .map(|hold| SplitMember {
            asked_ms: hold.asked.asked_ms,
            decided_ms: hold.decided_ms,
            group: hold.group,
        })
        .collect();
    let assigned = assign_splits(&members, settings);

    let mut splits = BTreeMap::from(Split::ALL.map(|split| (split, Vec::new())));
    for (hold, split) in found.labelled.iter().zip(assigned) {
        match split {
            Ok(split) => splits.entry(split).or_default().push(*hold),
            Err(reason) => {
                let left_out = found.left_out.entry(reason).or_default();
                left_out.add(hold.asked.cycle.outcome);
            }
        }
    }
    splits
}

/// Returns the number of samples per shard.
fn samples_per_shard(&TensorSettings { m, j, .. }: &TensorSettings) -> usize {
    (SHARD_BYTES / (m * j)).max(1)
}

/// Returns the size on disk, in bytes, of the shards of `samples` samples.
fn shard_bytes(samples: usize, settings: &TensorSettings) -> u64 {
    let shards = samples.div_ceil(samples_per_shard(settings));
    let tokens = if settings.outcomes { QUESTION_BYTES } else { 0 };
    let sample = settings.m * settings.j
        + settings.shared_bytes()
        + settings.s() * size_of::<f32>()
        + ROW_BYTES
        + tokens;
    (samples * sample + shards * HEADER_BYTES) as u64
}

fn write_splits(
    sources: &SampleSources<'_>,
    settings: &TensorSettings,
    splits: &BTreeMap<Split, Vec<LabelledHold>>,
    dir: &Path,
    progress: &(impl Fn(BuildProgress) + Sync),
) -> Result<BTreeMap<Split, Vec<ListedTensorShard>>> {
    let shape = SampleShape {
        e: settings.e(),
        m: settings.m,
        j: settings.j,
        s: settings.s(),
        shared_bits: settings.shared_bits(),
        has_tokens: settings.outcomes,
    };
    let per_shard = samples_per_shard(settings);
    let mut writer = ShardWriter::new(shape, dir);

    for (split, holds) in splits {
        let mut index = 0;
        for chapter in holds.chunks(SAMPLES_PER_CHAPTER.next_multiple_of(per_shard)) {
            let asked = chapter.iter().map(|hold| hold.asked);
            let activity = sources.encoder.activity(asked);
            for holds in chapter.chunks(per_shard) {
                writer.add_shard(*split, index, |made| {
                    sources.make_samples(holds, &activity, shape, made, progress);
                })?;
                index += 1;
            }
        }
    }
    writer.finish()
}

fn summarize_split(holds: &[LabelledHold], shards: Vec<ListedTensorShard>) -> SplitSummary {
    let times_ms = || holds.iter().map(|hold| hold.asked.asked_ms);
    SplitSummary {
        samples: holds.len(),
        successes: holds.iter().filter(|hold| hold.is_success()).count(),
        share_error: share_error(holds.iter().map(|hold| (hold.group, hold.is_success()))),
        from_ms: times_ms().min().unwrap_or(0),
        to_ms: times_ms().max().unwrap_or(0),
        shards,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::QueriedHold;
    use crate::cycles::hold_cycles;
    use crate::history::KnownFacts;
    use crate::history::tests::facts_of;
    use crate::tokens::TokenRows;
    use htcondor_eventlog::JobEvent;
    use poolcast_config::{ContextChoice, LabelKind, Vocabulary, WindowPosition};
    use poolcast_models::EMPTY_CELL;
    use proptest::prelude::*;

    fn settings() -> TensorSettings {
        let mut settings = TensorSettings::of_defaults();
        (settings.j, settings.m, settings.timeframe_len_s) = (4, 5, 10);
        settings
    }

    /// Builds a store from events with times in seconds. Jobs 1 to 5 are procs of one cluster.
    fn store(events: &[(i32, i64, u16)]) -> EventStore {
        let events = events
            .iter()
            .map(|&(job, s, number)| (job, s * 1000, number));
        store_ms(&events.collect::<Vec<_>>())
    }

    fn store_ms(events: &[(i32, i64, u16)]) -> EventStore {
        let event = |&(job, time_ms, number): &(i32, i64, u16)| JobEvent {
            cluster: job.max(5),
            proc: job,
            time_ms,
            number,
            normal: u8::from(number == 5),
            hold_code: if number == 12 { 13 } else { 0 },
            facts: facts_of(number, 1 + job.cast_unsigned() % 2),
            ..JobEvent::default()
        };
        test_stores::store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    /// The codes, facts and tokens of a sample.
    type MadeSample = (Vec<u8>, KnownFacts, TokenRows);

    fn sample(store: &EventStore, job: usize, settings: &TensorSettings) -> MadeSample {
        let jobs = store.jobs();
        let history = jobs.history(job);
        let cycle = hold_cycles(history, LabelKind::Next, &[])[0];
        let asked = QueriedHold::new(job as u32, &history, cycle, settings.window, 0);
        let mut codes = vec![0; settings.m * settings.j];
        let mut shared = vec![0; settings.shared_bytes()];
        SampleEncoder::new(store, settings.clone()).encode_hold(asked, &mut codes, &mut shared);
        let history = PoolHistory::new(store, settings.timeframe_len_s);
        codes.extend(shared);
        let facts = history.facts(&jobs.get(job), &asked);
        (codes, facts, TokenHistory::new(store).rows(&[asked]))
    }

    #[test]
    fn columns_without_jobs_are_empty() {
        let store = store(&[
            (1, 0, 0),
            (1, 20, 1),
            (1, 40, 12),
            (2, 35, 0),
            (3, 41, 0),
            (4, -50, 0),
            (4, -1, 5),
        ]);
        let settings = TensorSettings {
            window: WindowPosition::Hold,
            ..settings()
        };
        let (codes, ..) = sample(&store, 0, &settings);
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
        /// Events after the second of the hold do not change the sample.
        #[test]
        fn samples_ignore_events_after_the_hold(
            past in proptest::collection::vec((2..12i32, 0..=40i64, 0..14u16), 0..60),
            future in proptest::collection::vec((2..20i32, 41..200i64, 0..14u16), 0..60),
        ) {
            let base = [(1, 0, 0), (1, 20, 1), (1, 40, 12), (2, 1, 0), (2, 39, 12), (2, 40, 13)];
            let known = [&base[..], &past].concat();
            let later = [&known[..], &future, &[(1, 45, 13), (1, 60, 5), (2, 41, 12)]].concat();
            // Jobs with their first event in the future must follow the past jobs in the store, so
            // their numbers are higher.
            for context in [ContextChoice::Uniform, ContextChoice::Recent, ContextChoice::SameOwnerFirst, ContextChoice::Related] {
                let settings = TensorSettings { window: WindowPosition::Hold, context, vocabulary: Vocabulary::HoldCodes, ..settings() };
                prop_assert_eq!(sample(&store(&known), 0, &settings), sample(&store(&later), 0, &settings));
            }
        }

        /// Events from the second of the release on do not change the codes and facts of the
        /// sample, whether they belong to the held job, to other jobs of its cluster or to the
        /// pool.
        #[test]
        fn samples_ignore_events_from_the_release_second_on(
            past in proptest::collection::vec((2..12i32, 0..54_999i64, 0..14u16), 0..60),
            own in proptest::collection::vec((40_000..54_999i64, 3..9u16), 0..4),
            future in proptest::collection::vec((2..20i32, 55_000..200_000i64, 0..14u16), 0..60),
            own_future in proptest::collection::vec((55_000..200_000i64, 0..14u16), 0..9),
            release_ms in 55_000..55_999i64,
        ) {
            let base = [(1, 0, 0), (1, 20_000, 1), (1, 39_000, 12), (2, 1_000, 0), (2, 39_000, 12), (2, 40_000, 13), (2, 54_000, 5)];
            // Events of the job itself while it is held. Event 5 would end the hold.
            let own = own.iter().filter(|event| event.1 != 5).map(|&(ms, number)| (1, ms, number));
            let known: Vec<(i32, i64, u16)> = base.into_iter().chain(past).chain(own).collect();
            let plain = [&known[..], &[(1, 55_000, 13)]].concat();
            let own_future = own_future.iter().map(|&(ms, number)| (1, ms, number));
            let later: Vec<(i32, i64, u16)> = known.iter().copied().chain(future).chain(own_future)
                .chain([(1, release_ms, 13), (1, 60_000, 5), (2, 55_000, 12), (2, 55_001, 9)]).collect();
            for context in [ContextChoice::Uniform, ContextChoice::Recent, ContextChoice::SameOwnerFirst, ContextChoice::Related] {
                let settings = TensorSettings { window: WindowPosition::Release, context, vocabulary: Vocabulary::HoldCodes, ..settings() };
                let found = sample(&store_ms(&plain), 0, &settings);
                prop_assert_eq!(found.1.held_for_s, 15);
                prop_assert_eq!(found, sample(&store_ms(&later), 0, &settings));
            }
        }

        #[test]
        fn output_does_not_depend_on_thread_count(
            events in proptest::collection::vec((1..9i32, 0..300i64, 0..14u16), 50..200),
            context in prop_oneof![Just(ContextChoice::Uniform), Just(ContextChoice::Related)],
        ) {
            let mut events = events;
            events.extend([(50, 0, 0), (50, 9, 12), (50, 10, 13), (50, 20, 5)]);
            let store = store(&events);
            let settings = TensorSettings { context, outcomes: true, ..settings() };
            let build_with = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
                let dir = tempfile::tempdir().expect("a directory");
                let out = dir.path().join("t");
                pool.install(|| build(&store, &settings, "k", &out, false, None, |_| {})).expect("built");
                let mut files: Vec<_> = fs_err::read_dir(&out).expect("listed").map(|f| f.expect("file").path()).collect();
                files.sort();
                files.iter().map(|f| fs_err::read(f).expect("read")).collect::<Vec<_>>()
            };
            prop_assert_eq!(build_with(1), build_with(3));
        }
    }
}
