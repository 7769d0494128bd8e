//! Event store → a directory of tensors: find the cycles, label them, split them, write their windows.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::context::{self, Spans};
use super::cycles::{Cycle, LeftOut, Outcome, cycles};
use super::dataset::{Row, Side, SideSummary, Summary, TENSORS, write_shard};
use super::split::{Member, sides};
use super::window::{EMPTY, VOCABULARY, fill, frames};
use crate::config::{Config, Cycles, Label, Split, Window};
use crate::error::hinted;
use crate::events::Store;
use crate::files::Staging;
use crate::manifest;

/// The codes in one shard are at most so many bytes.
const SHARD_BYTES: usize = 64 << 20;

/// Everything that decides what the samples of a log are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Jobs in a sample, the primary one included.
    pub j: usize,
    /// Frames in a sample.
    pub m: usize,
    /// Seconds per frame.
    #[serde(rename = "timeframe_len")]
    pub timeframe_len_s: u32,
    /// Where the frames stand.
    pub window: Window,
    /// What a sample is labelled with.
    pub label: Label,
    /// Which holds become samples.
    pub cycles: Cycles,
    /// How samples are divided.
    pub split: Split,
    /// The shares of train, validate and test.
    pub fractions: [f64; 3],
    /// Event numbers that are no state.
    pub ignore_events: Vec<u16>,
    /// Hold codes that nobody asks a model about.
    pub exclude_hold_codes: Vec<i32>,
    /// The root seed.
    pub seed: u64,
}

impl Settings {
    /// The settings in `config`, whose tensor parameters must be numbers and not distributions.
    pub fn of(config: &Config) -> Result<Settings> {
        let preprocessing = &config.preprocessing;
        let parameters = &preprocessing.parameters;
        Ok(Settings {
            j: parameters.j.whole("j", 1..=10_000)?,
            m: parameters.m.whole("m", 1..=10_000)?,
            timeframe_len_s: parameters.timeframe_len.whole("timeframe_len", 1..=31_536_000)? as u32,
            window: preprocessing.window,
            label: preprocessing.label,
            cycles: preprocessing.cycles,
            split: preprocessing.split,
            fractions: preprocessing.fractions,
            ignore_events: preprocessing.ignore_events.clone(),
            exclude_hold_codes: preprocessing.exclude_hold_codes.clone(),
            seed: config.seed,
        })
    }

    /// The digest of everything that tensors made from the events `events_key` depend on.
    pub fn key(&self, events_key: &str) -> Result<String> {
        manifest::key(&(TENSORS.version, self, events_key))
    }
}

/// Makes the codes of single samples.
#[derive(Debug)]
pub struct Sampler<'a> {
    store: &'a Store,
    settings: Settings,
    spans: Spans,
}

impl<'a> Sampler<'a> {
    /// A sampler over all jobs of `store`.
    pub fn new(store: &'a Store, settings: Settings) -> Sampler<'a> {
        Sampler { store, spans: Spans::new(store), settings }
    }

    /// Writes the codes `[m, j]` of one hold of job `job`: column 0 is that job, the others are drawn from the jobs that
    /// exist in its window, and are empty where there are too few. With `window = hold` nothing after the hold has any
    /// influence.
    pub fn codes(&self, job: usize, cycle: &Cycle, codes: &mut [u8]) {
        let Settings { j, m, window, timeframe_len_s, ref ignore_events, seed, .. } = self.settings;
        let primary = self.store.job(job);
        let hold_ms = primary.history.time_ms[cycle.hold];
        let frames = frames(window, hold_ms, primary.submit_ms, m, timeframe_len_s);
        codes.fill(EMPTY);
        let visible = match window {
            Window::Hold => cycle.hold + 1,
            Window::Life => primary.history.number.len(),
        };
        fill(codes, (0, j), primary.history, visible, &frames, ignore_events);
        let mut generator = context::generator(seed, &primary, cycle.earlier_holds);
        let drawn = self.spans.draw(self.store, job, (frames[0], frames[m - 1]), j - 1, &mut generator);
        for (column, other) in (1..).zip(drawn) {
            let history = self.store.job(other).history;
            fill(codes, (column, j), history, history.number.len(), &frames, ignore_events);
        }
    }
}

/// A labelled cycle on its way to a shard.
struct Sample {
    job: usize,
    cycle: Cycle,
    row: Row,
}

/// Builds the tensors of `store` in `dir`, its manifest last; an earlier directory of tensors is replaced if `replace`
/// is set. `progress` hears of samples written.
///
/// The bytes depend on the store and the settings alone, not on the number of threads.
///
/// # Errors
/// Fails when the store holds no labelled hold cycle.
pub fn build(
    store: &Store,
    settings: &Settings,
    key: &str,
    dir: &Path,
    replace: bool,
    progress: impl Fn(u64),
) -> Result<Summary> {
    let mut left_out = BTreeMap::new();
    let mut cycles_total = 0;
    let samples = labelled(store, settings, &mut left_out, &mut cycles_total);
    ensure!(
        !samples.is_empty(),
        hinted(
            format!("none of the {cycles_total} hold cycles in these events has a known outcome"),
            "parse a longer log: held jobs must be released and end, or be held again, within it"
        )
    );
    let members: Vec<Member> =
        samples.iter().map(|sample| Member { hold_ms: sample.row.hold_ms, group: sample.row.group }).collect();
    let placed = sides(&members, settings.split, settings.fractions, settings.seed);
    let outside = placed.iter().filter(|side| side.is_none()).count();
    left_out.extend((outside > 0).then_some((LeftOut::ClusterOnTwoSides, outside)));
    let staging = Staging::new(dir, replace)?;
    let sampler = Sampler::new(store, settings.clone());
    let mut splits = BTreeMap::new();
    for side in Side::ALL {
        let own: Vec<&Sample> =
            samples.iter().zip(&placed).filter(|(_, at)| **at == Some(side)).map(|(sample, _)| sample).collect();
        splits.insert(side, write_side(&sampler, side, &own, staging.path(), &progress)?);
    }
    let summary = Summary { settings: settings.clone(), e: VOCABULARY, cycles_total, left_out, splits };
    manifest::write(staging.path(), TENSORS, key, &summary)?;
    staging.commit()?;
    Ok(summary)
}

/// The labelled cycles of all jobs, in order of hold time.
fn labelled(
    store: &Store,
    settings: &Settings,
    left_out: &mut BTreeMap<LeftOut, usize>,
    cycles_total: &mut usize,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut groups: BTreeMap<(u32, i32), u32> = BTreeMap::new();
    for (index, job) in store.iter().enumerate() {
        for cycle in cycles(job.history, settings.label, store.gaps(job.ap)) {
            *cycles_total += 1;
            let hold_code = job.history.hold_code[cycle.hold];
            let outcome = match cycle.outcome {
                _ if settings.exclude_hold_codes.contains(&hold_code) => Err(LeftOut::HoldCodeExcluded),
                _ if settings.cycles == Cycles::First && cycle.earlier_holds > 0 => Err(LeftOut::NotTheFirst),
                Outcome::LeftOut(reason) => Err(reason),
                Outcome::Label(label) => Ok(label),
            };
            match outcome {
                Err(reason) => *left_out.entry(reason).or_default() += 1,
                Ok(label) => {
                    let next_group = groups.len() as u32;
                    let row = Row {
                        label,
                        hold_ms: job.history.time_ms[cycle.hold],
                        cluster: job.cluster,
                        proc: job.proc,
                        hold_code,
                        hold_subcode: job.history.hold_subcode[cycle.hold],
                        earlier_holds: cycle.earlier_holds,
                        group: *groups.entry((job.ap, job.cluster)).or_insert(next_group),
                    };
                    samples.push(Sample { job: index, cycle, row });
                }
            }
        }
    }
    samples.sort_by_key(|sample| (sample.row.hold_ms, sample.job, sample.row.earlier_holds));
    samples
}

fn write_side(
    sampler: &Sampler<'_>,
    side: Side,
    samples: &[&Sample],
    dir: &Path,
    progress: impl Fn(u64),
) -> Result<SideSummary> {
    let Settings { m, j, .. } = sampler.settings;
    let per_shard = (SHARD_BYTES / (m * j)).max(1);
    let mut summary = SideSummary {
        samples: samples.len(),
        successes: samples.iter().filter(|sample| sample.row.label).count(),
        from_ms: samples.iter().map(|sample| sample.row.hold_ms).min().unwrap_or(0),
        to_ms: samples.iter().map(|sample| sample.row.hold_ms).max().unwrap_or(0),
        shards: Vec::new(),
    };
    for (index, part) in samples.chunks(per_shard).enumerate() {
        let file = format!("{}-{index:05}.safetensors", side.name());
        let mut codes = vec![EMPTY; part.len() * m * j];
        codes
            .par_chunks_exact_mut(m * j)
            .zip(part)
            .for_each(|(cells, sample)| sampler.codes(sample.job, &sample.cycle, cells));
        let rows: Vec<Row> = part.iter().map(|sample| sample.row).collect();
        write_shard(&dir.join(&file), &codes, &rows, m, j)?;
        summary.shards.push(file);
        progress(part.len() as u64);
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventlog::Event;
    use proptest::prelude::*;

    fn settings() -> Settings {
        let mut settings = Settings::of(&Config::load(None, &BTreeMap::new()).expect("defaults")).expect("settings");
        (settings.j, settings.m, settings.timeframe_len_s) = (4, 5, 10);
        settings
    }

    fn store(events: &[(i32, i64, u16)]) -> Store {
        let event = |&(cluster, s, number): &(i32, i64, u16)| Event {
            cluster,
            time_ms: s * 1000,
            number,
            normal: u8::from(number == 5),
            hold_code: if number == 12 { 13 } else { 0 },
            ..Event::default()
        };
        crate::events::store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    fn codes(store: &Store, job: usize, settings: &Settings) -> Vec<u8> {
        let cycle = cycles(store.job(job).history, Label::Next, &[])[0];
        let mut codes = vec![0; settings.m * settings.j];
        Sampler::new(store, settings.clone()).codes(job, &cycle, &mut codes);
        codes
    }

    #[test]
    fn too_few_jobs_leave_the_row_empty() {
        let store = store(&[(1, 0, 0), (1, 20, 1), (1, 40, 12), (2, 35, 0), (3, 41, 0), (4, -50, 0), (4, -1, 5)]);
        let codes = codes(&store, 0, &settings());
        let column = |k: usize| codes.iter().skip(k).step_by(4).copied().collect::<Vec<u8>>();
        assert_eq!(column(0), [0, 0, 1, 1, 12]);
        assert_eq!(column(1), [EMPTY, EMPTY, EMPTY, EMPTY, 0], "job 2 alone: 3 comes later, 4 ended before the window");
        assert!(column(2).iter().chain(&column(3)).all(|&cell| cell == EMPTY));
    }

    proptest! {
        /// Whatever happens after the hold second, the sample's bytes stay the same.
        #[test]
        fn nothing_after_the_hold_enters(
            past in proptest::collection::vec((2..12i32, 0..=40i64, 0..14u16), 0..60),
            future in proptest::collection::vec((2..20i32, 41..200i64, 0..14u16), 0..60),
        ) {
            let base = [(1, 0, 0), (1, 20, 1), (1, 40, 12)];
            let known = [&base[..], &past].concat();
            let later = [&known[..], &future, &[(1, 45, 13), (1, 60, 5)]].concat();
            // Jobs seen first in the future come after those of the past in the store, as their numbers may not.
            prop_assert_eq!(codes(&store(&known), 0, &settings()), codes(&store(&later), 0, &settings()));
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
