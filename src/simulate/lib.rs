//! Simulates a pool, and writes its global event log and the truth about its holds. The same seed
//! and settings give the same log.
//!
//! Users with habits submit clusters. Data origins fail for all of their users at once. A job's
//! whole life is drawn when its cluster is submitted. After each release, the hidden condition of
//! the job determines the probability of success. The outcome is drawn with this probability, and
//! then the events that lead to the outcome are written. The recorded probabilities are therefore
//! exact.
//!
//! Time is divided into slices. The clusters submitted in one slice are simulated in parallel, each
//! with its own random generator. Their later events are kept until the slices of these events. The
//! events of each slice are sorted, formatted in parallel, and appended to the log.

mod bad_hosts;
mod batch_names;
mod file_supply;
mod hold_cause;
mod hold_reason;
mod hold_truth;
mod job;
mod job_inputs;
mod outages;
mod pool;
mod pool_user;
mod release_habit;
mod repair_habit;
mod run;
mod run_chances;
mod settings;
mod submissions;
mod summary;
mod traces;
mod truth_file;
mod unmended;
mod writer;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use rayon::prelude::*;

use hold_truth::SimulatedHold;
use job::SimulatedJob;
use pool::SimulatedPool;
use poolcast_base::error::hinted;
use poolcast_base::files::AtomicFile;
use poolcast_base::moment::DAY_MS;
use submissions::{ClusterSubmission, JobCluster, SubmissionSchedule};
use traces::{JobTraces, TextPiece, TimeSlices, TimedEvent};
use truth_file::SimulationOrigin;
use writer::LogWriter;

pub use hold_cause::HoldCause;
pub use hold_truth::{HoldTruth, UnmendedChange};
pub use settings::SimulationSettings;
pub use summary::{CodeCount, SimulationSummary};
pub use truth_file::{TRUTH, find_hold, p_hold, p_release, read_truth};

/// Approximate number of submissions per slice.
const JOBS_PER_SLICE: i64 = 2000;
/// Maximum duration of a slice, in ms.
const MAX_SLICE_MS: i64 = DAY_MS / 4;
/// Minimum duration of a slice, in ms.
const MIN_SLICE_MS: i64 = 10_000;
/// Clusters per parallel simulation task.
const CLUSTERS_PER_TASK: usize = 16;
/// Events per parallel formatting task.
const EVENTS_PER_TASK: usize = 512;

/// Returns the summary of the simulation in `log` and `truth`. Returns `None` unless `settings`
/// made these files and the events are unchanged.
pub fn finished_summary(
    settings: &SimulationSettings,
    log: &Path,
    truth: &Path,
) -> Option<SimulationSummary> {
    let origin = truth_file::read_origin(truth)?;
    let is_same = origin.key == settings.key().ok()?
        && writer::events_xxh3(log, origin.summary.rotated).ok()? == origin.events_xxh3;
    is_same.then_some(origin.summary)
}

/// Writes the log and its truth. Calls `progress` with the number of jobs submitted since the
/// previous call.
///
/// # Errors
/// Fails if a file cannot be written. Also fails if a file of that name exists, unless `overwrite`
/// is true and it is from a simulation.
pub fn simulate(
    settings: &SimulationSettings,
    log: &Path,
    truth: &Path,
    overwrite: bool,
    progress: impl Fn(u64),
) -> Result<SimulationSummary> {
    remove_earlier(log, truth, overwrite)?;
    let mut writer = LogWriter::new(log, settings.rotate_bytes)?;
    let mut truth_file = AtomicFile::new(truth)?;
    let (counted, cycles) = simulate_pool(settings, |pieces| writer.write(pieces), progress)?;

    let summary = SimulationSummary {
        bytes: writer.bytes(),
        rotated: writer.rotated(),
        ..counted.count(&cycles)
    };
    let origin = SimulationOrigin {
        key: settings.key()?,
        events_xxh3: writer.xxh3(),
        summary,
    };

    // Commit the truth first. A log without a truth counts as a user's own log, and is never
    // replaced.
    truth_file
        .file()
        .write_all(&truth_file::encode(&cycles, &origin)?)?;
    truth_file.commit(truth)?;
    writer.finish()?;
    Ok(origin.summary)
}

/// Ensures that only an earlier simulation is replaced, and removes its rotated generations.
fn remove_earlier(log: &Path, truth: &Path, overwrite: bool) -> Result<()> {
    ensure!(
        log != truth,
        hinted(
            "the log and the truth file are the same file",
            "name another file with `--truth`"
        )
    );
    let oldest = writer::generation(log, 1);
    for path in [log, truth, &oldest] {
        let place = path.display();
        ensure!(
            !path.is_dir(),
            hinted(
                format!("`{place}` is a directory, not a file"),
                "name a file in it"
            )
        );
        ensure!(
            overwrite || !path.exists(),
            hinted(
                format!("`{place}` already exists"),
                "name another file; `--help` says how one is replaced"
            )
        );
    }

    if log.exists() || oldest.exists() {
        read_truth(truth).map_err(|cause| {
            let message = format!("cannot replace `{}` without its truth file", log.display());
            cause.context(hinted(message, "name another file"))
        })?;
    }

    for number in 1.. {
        let path = writer::generation(log, number);
        if !path.exists() {
            break;
        }
        fs_err::remove_file(path)?;
    }
    Ok(())
}

/// Simulates the pool, and passes the log to `write` in ordered pieces. Returns the counts and the
/// holds.
fn simulate_pool(
    settings: &SimulationSettings,
    mut write: impl FnMut(&[TextPiece]) -> Result<()> + Send,
    progress: impl Fn(u64),
) -> Result<(SimulationSummary, Vec<SimulatedHold>)> {
    let pool = SimulatedPool::new(settings);
    let mut submissions = SubmissionSchedule::new(settings);
    let slices = time_slices(settings);
    let mut later: BTreeMap<i64, Vec<Vec<TimedEvent>>> = BTreeMap::new();
    let mut summary = SimulationSummary::default();
    let mut cycles = Vec::new();
    let mut ready: Vec<TextPiece> = Vec::new();

    for number in 0..slices.count() {
        let submitted = submissions.submitted_until(slices.end_of(number), &pool);
        let jobs_before = summary.jobs;

        // Write the previous slice while the next one is simulated.
        let (written, next) = rayon::join(
            || write(&ready),
            || {
                let traces = submitted
                    .par_chunks(CLUSTERS_PER_TASK)
                    .map(|some| live(some, settings.seed, &pool, slices));
                for traces in traces.collect::<Vec<JobTraces>>() {
                    summary.jobs += traces.jobs;
                    summary.held_jobs += traces.held_jobs;
                    summary.removed_jobs += traces.removed_jobs;
                    cycles.extend(traces.cycles);
                    for (slice, events) in traces.events {
                        later.entry(slice).or_default().push(events);
                    }
                }
                text(later.remove(&number).unwrap_or_default(), &pool)
            },
        );

        written?;
        summary.records += next
            .iter()
            .map(|piece| 2 * piece.ends.len() as u64)
            .sum::<u64>();
        progress(summary.jobs - jobs_before);
        ready = next;
    }
    write(&ready)?;
    Ok((summary, cycles))
}

/// Simulates the jobs of some clusters.
fn live(
    submitted: &[ClusterSubmission],
    seed: u64,
    pool: &SimulatedPool,
    slices: TimeSlices,
) -> JobTraces {
    let mut traces = JobTraces::new(slices);
    for submission in submitted {
        let (cluster, mut rng) = JobCluster::new(submission, seed, pool);
        (0..cluster.size)
            .for_each(|proc| SimulatedJob::simulate(pool, &cluster, proc, &mut rng, &mut traces));
    }
    traces
}

/// Formats the events of one slice.
fn text(events: Vec<Vec<TimedEvent>>, pool: &SimulatedPool) -> Vec<TextPiece> {
    let mut events: Vec<TimedEvent> = events.into_iter().flatten().collect();
    events.par_sort_unstable_by_key(TimedEvent::key);
    events
        .par_chunks(EVENTS_PER_TASK)
        .map(|events| traces::format_events(events, pool))
        .collect()
}

fn time_slices(settings: &SimulationSettings) -> TimeSlices {
    let span_ms = i64::from(settings.days) * DAY_MS;
    let slice_ms = span_ms / (settings.jobs.cast_signed() / JOBS_PER_SLICE).max(1);
    let slice_ms = slice_ms.clamp(MIN_SLICE_MS, MAX_SLICE_MS);
    TimeSlices {
        start_ms: settings.start_ms,
        end_ms: settings.start_ms + span_ms,
        slice_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: i64 = 1_767_571_200_000;

    fn settings(seed: u64, jobs: u64, days: u32) -> SimulationSettings {
        SimulationSettings {
            seed,
            jobs,
            days,
            start_ms: START_MS,
            rotate_bytes: None,
        }
    }

    fn cycles(seed: u64, jobs: u64, days: u32) -> (SimulationSummary, Vec<SimulatedHold>) {
        let settings = settings(seed, jobs, days);
        let (summary, cycles) =
            simulate_pool(&settings, |_| Ok(()), |_| ()).expect("nothing is written");
        (summary.count(&cycles), cycles)
    }

    /// Returns the text of a simulated log.
    fn log_text(seed: u64, jobs: u64) -> String {
        let mut text = Vec::new();
        let append = |pieces: &[TextPiece]| {
            text.extend(pieces.iter().flat_map(|piece| piece.bytes.iter().copied()));
            Ok(())
        };
        simulate_pool(&settings(seed, jobs, 7), append, |_| ()).expect("written to memory");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn inputs_that_did_not_arrive_are_among_those_that_the_ad_lists() {
        // The log of seed 31 lists inputs, and the log of seed 69 does not.
        let text = log_text(31, 10_000);
        let (mut files, mut urls) = (0, 0);
        for record in text.split("\n...\n") {
            let value = |name: &str| {
                let lines = record.lines();
                let mut found =
                    lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
                found.next().map(|value| value.trim_matches('"').to_owned())
            };
            let Some(reason) = value("HoldReason").filter(|_| value("Owner").is_some()) else {
                continue;
            };
            let listed = value("TransferInput").expect("listed");
            let iwd = value("Iwd").expect("listed");
            let has = |name: &str| {
                let mut inputs = listed.split(", ");
                inputs.any(|input| input == name || format!("{iwd}/{input}") == name)
            };
            let is_input = reason.starts_with("Transfer input files failure");
            if let Some((_, rest)) = reason.split_once("reading from file ").filter(|_| is_input) {
                assert!(has(rest.split(": ").next().unwrap_or("")), "{record}");
                files += 1;
            } else if let Some((_, rest)) = reason.split_once("URL file = ").filter(|_| is_input) {
                assert!(has(rest.split(' ').next().unwrap_or("")), "{record}");
                urls += 1;
            }
        }
        assert!(files > 50 && urls > 50, "{files} files, {urls} URLs");
        assert!(!log_text(69, 100).contains("TransferInput"));
    }

    /// Selects the holds with a known outcome, each with its probability by `p` and with its
    /// outcome. Drops the last five days, because only quick outcomes are known there.
    fn known(
        cycles: &[SimulatedHold],
        days: u32,
        p: impl Fn(&HoldTruth) -> f64,
    ) -> Vec<(HoldTruth, f64, f64)> {
        let until_ms = START_MS + i64::from(days - 5) * DAY_MS;
        let early = cycles
            .iter()
            .filter(|cycle| cycle.truth.hold_time_ms < until_ms);
        early
            .filter_map(|cycle| {
                Some((
                    cycle.truth.clone(),
                    p(&cycle.truth),
                    f64::from(u8::from(cycle.label?)),
                ))
            })
            .collect()
    }

    /// Computes the deviation of the outcomes from the probabilities, in standard errors, for each
    /// tenth of probability. Holds with one cause on one day count as one, because they may share
    /// their fate, such as the end of an outage.
    fn z_scores(known: &[(HoldTruth, f64, f64)]) -> Vec<f64> {
        let tenth = |low: usize| {
            let within = known
                .iter()
                .filter(|(_, p, _)| ((p * 10.0) as usize).min(9) == low);
            let mut sums: BTreeMap<(i64, Option<String>), (f64, f64)> = BTreeMap::new();
            for (truth, p, came) in within {
                let sum = sums
                    .entry((
                        truth.hold_time_ms / DAY_MS,
                        truth.cause.map(HoldCause::name),
                    ))
                    .or_default();
                *sum = (sum.0 + came - p, sum.1 + p * (1.0 - p));
            }
            let deviation: f64 = sums.values().map(|sum| sum.0).sum();
            let variance: f64 = sums.values().map(|sum| sum.1.max(sum.0 * sum.0)).sum();
            if variance > 0.0 {
                deviation / variance.sqrt()
            } else {
                0.0
            }
        };
        (0..10).map(tenth).collect()
    }

    #[test]
    fn outcome_rates_match_the_recorded_probabilities() {
        // Over more than a year there are many outages, so few holds share the end of the same one.
        let days = 400;
        let (_, cycles) = cycles(1, 20_000, days);
        for (name, p, tolerance) in [
            (
                "release",
                (|truth| truth.p_release.unwrap_or(f64::NAN)) as fn(&HoldTruth) -> f64,
                0.03,
            ),
            (
                "release_unseen_repair",
                |truth| truth.p_release_unseen_repair.unwrap_or(f64::NAN),
                0.03,
            ),
            ("hold", |truth| truth.p_hold, 0.05),
        ] {
            let known = known(&cycles, days, p);
            let count = |low, high| {
                known
                    .iter()
                    .filter(|(_, p, _)| (low..high).contains(p))
                    .count()
            };
            let spread = [count(0.0, 0.3), count(0.3, 0.7), count(0.7, 1.1)];
            assert!(
                spread.iter().all(|count| *count > 20) && known.len() > 800,
                "p_{name}: {spread:?}"
            );
            let z_scores = z_scores(&known);
            assert!(
                z_scores.iter().all(|z| z.abs() < 4.0),
                "p_{name}: {z_scores:?}"
            );
            let mean = |value: fn(&(HoldTruth, f64, f64)) -> f64| {
                known.iter().map(value).sum::<f64>() / known.len() as f64
            };
            let (predicted, came) = (mean(|row| row.1), mean(|row| row.2));
            assert!(
                (predicted - came).abs() < tolerance,
                "p_{name}: {predicted} predicted, {came} came"
            );
        }
    }

    #[test]
    fn every_hold_has_a_probability_even_without_a_release() {
        let (_, cycles) = cycles(3, 20_000, 14);
        let mut never_released = 0;
        for cycle in &cycles {
            assert!((0.0..=1.0).contains(&cycle.truth.p_hold));
            assert_eq!(cycle.truth.is_released, cycle.truth.p_release.is_some());
            never_released += usize::from(!cycle.truth.is_released);
        }
        let share = never_released as f64 / cycles.len() as f64;
        assert!(
            (0.1..0.6).contains(&share),
            "{share} of the holds are never released"
        );
    }

    #[test]
    fn true_probabilities_beat_rates_by_code() {
        let (summary, cycles) = cycles(1, 20_000, 14);
        let (best, by_code) = (
            summary.best_roc_auc.expect("both labels"),
            summary.by_code_roc_auc.expect("both labels"),
        );
        assert!(
            (0.83..0.97).contains(&best) && (0.55..0.77).contains(&by_code),
            "{best} at best, {by_code} by code"
        );
        let of = |cause| {
            cycles
                .iter()
                .filter(|cycle| cycle.truth.cause == Some(cause))
                .count()
        };
        let (outages, wrong_urls) = (of(HoldCause::InputOutage), of(HoldCause::WrongUrl));
        let (unmounted, bad_hosts) = (of(HoldCause::MountOutage), of(HoldCause::BadHost));
        assert!(
            [outages, wrong_urls, unmounted, bad_hosts]
                .iter()
                .all(|holds| *holds > 30),
            "{outages} holds by outages, {wrong_urls} by wrong addresses, {unmounted} by file \
             systems, {bad_hosts} by bad hosts"
        );
        let share = summary.held_jobs as f64 / summary.jobs as f64;
        assert!((0.02..0.1).contains(&share), "{share} of the jobs are held");
    }

    /// Returns true if the truth shows no repair before the release.
    fn is_surely_unmended(truth: &HoldTruth) -> bool {
        truth.is_released && truth.p_release == truth.p_release_unseen_repair
    }

    #[test]
    fn p_unmended_at_an_unmended_release_is_p_release() {
        let (_, cycles) = cycles(1, 20_000, 14);
        let (mut unmended, mut mended) = (0, 0);
        for cycle in &cycles {
            let truth = &cycle.truth;
            assert!(truth.p_unmended(truth.hold_time_ms).is_some());
            assert_eq!(truth.p_unmended(truth.hold_time_ms - 1), None);
            let Some(p_release) = truth.p_release else {
                continue;
            };
            let p = truth.p_unmended(truth.release_time_ms).expect("recorded");
            assert_eq!(truth.p_unmended(truth.release_time_ms + 1000), None);
            assert!(p_release > p - 0.01, "a repair does no harm: {truth:?}");
            if is_surely_unmended(truth) {
                assert!((p - p_release).abs() < 0.01, "{truth:?}");
                unmended += 1;
            }
            mended += usize::from(p_release > p + 0.01);
        }
        assert!(unmended > 200 && mended > 20, "{unmended}, {mended}");
    }

    #[test]
    fn unmended_releases_succeed_as_often_as_p_unmended_says() {
        let days = 400;
        let (_, cycles) = cycles(1, 20_000, days);
        let known = known(&cycles, days, |truth| {
            truth.p_unmended(truth.release_time_ms).unwrap_or(f64::NAN)
        });
        let unmended: Vec<_> = known
            .into_iter()
            .filter(|(truth, ..)| is_surely_unmended(truth))
            .collect();
        assert!(unmended.len() > 400, "{} holds", unmended.len());
        let z_scores = z_scores(&unmended);
        assert!(z_scores.iter().all(|z| z.abs() < 4.0), "{z_scores:?}");
        let mean = |value: fn(&(HoldTruth, f64, f64)) -> f64| {
            unmended.iter().map(value).sum::<f64>() / unmended.len() as f64
        };
        let (predicted, came) = (mean(|row| row.1), mean(|row| row.2));
        assert!(
            (predicted - came).abs() < 0.03,
            "{predicted} predicted, {came} came"
        );
    }

    #[test]
    fn permanent_faults_fail_at_any_time_without_a_repair() {
        let (_, cycles) = cycles(1, 20_000, 14);
        let (mut count, mut supplied) = (0, 0);
        for cycle in &cycles {
            let truth = &cycle.truth;
            let is_permanent = truth.permanent.expect("recorded");
            match truth.cause {
                Some(HoldCause::Person) => assert!(!is_permanent),
                Some(
                    HoldCause::MissingInput
                    | HoldCause::WrongUrl
                    | HoldCause::MissingExecutable
                    | HoldCause::MissingOutput,
                ) => assert!(is_permanent),
                _ => {}
            }
            if is_permanent {
                let is_missing = truth.cause.is_some_and(HoldCause::is_missing_file);
                let succeeds = |change: &UnmendedChange| change.p >= 0.5;
                let repaired = truth.unmended.iter().position(succeeds);
                // Only a file can come without a repair of this one job.
                assert!(repaired.is_none_or(|at| is_missing && at > 0), "{truth:?}");
                supplied += u32::from(repaired.is_some());
                count += 1;
            }
        }
        let share = f64::from(count) / cycles.len() as f64;
        assert!((0.1..0.8).contains(&share), "{share} of the holds");
        assert!(supplied > 0, "{supplied} files were supplied");
    }

    #[test]
    fn file_that_a_cluster_misses_is_supplied_for_all_its_jobs_at_once() {
        let (_, cycles) = cycles(1, 20_000, 14);
        let mut supplied_ms: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
        for cycle in &cycles {
            let truth = &cycle.truth;
            let is_missing = truth.cause.is_some_and(HoldCause::is_missing_file);
            let rises = truth.unmended.windows(2).find(|two| two[0].p == 0.0);
            if let Some(rise) = rises.filter(|_| is_missing) {
                let times_ms = supplied_ms.entry(truth.cluster).or_default();
                times_ms.push(rise[1].time_ms);
            }
        }
        let shared: Vec<_> = supplied_ms
            .values()
            .filter(|times| times.len() > 1)
            .collect();
        assert!(!shared.is_empty());
        for times_ms in shared {
            let (first, last) = (times_ms.iter().min(), times_ms.iter().max());
            assert_eq!(first, last, "of one cluster");
        }
    }

    #[test]
    fn truth_files_round_trip() {
        let (_, cycles) = cycles(2, 2000, 7);
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("truth");
        let origin = SimulationOrigin {
            key: String::new(),
            events_xxh3: String::new(),
            summary: SimulationSummary::default(),
        };
        let bytes = truth_file::encode(&cycles, &origin).expect("encoded");
        poolcast_base::files::write_atomic(&path, &bytes).expect("written");
        let read = read_truth(&path).expect("read");
        let key = |truth: &HoldTruth| (truth.cluster, truth.proc, truth.earlier_holds);
        assert!(read.is_sorted_by_key(key) && read.len() == cycles.len());
        let bits = |truth: &HoldTruth| {
            (
                key(truth),
                truth.p_hold.to_bits(),
                truth.p_release.map(f64::to_bits),
                truth.p_release_unseen_repair.map(f64::to_bits),
                truth.is_released,
                truth.cause,
                truth.permanent,
                truth.unmended.clone(),
            )
        };
        assert!(
            read.iter()
                .zip(&cycles)
                .all(|(read, cycle)| bits(read) == bits(&cycle.truth))
        );
    }
}
