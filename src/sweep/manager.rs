//! A sweep's queue → its end: fills the queue, tells and logs what happens, and leaves the results.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::fill_queue::fill_queue;
use super::folder::SweepFolder;
use super::outcome::TrialOutcomes;
use super::paths::LOG_FILE;
use super::results::write_results;
use super::trial_row::TrialEnd;
use poolcast_base::files;
use poolcast_base::output::counted;
use poolcast_queue::{ItemStateCounts, ManagerEvent, ManagerOutcome, Queue, run_manager};
use poolcast_holds::tensors::TensorSettings;

/// How often it is said how many trials have ended.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Manages `sweep` until all its trials have ended or `stop` is set; then leaves the results, and
/// removes the queue. Of models those of the `keep` best trials stay. `prepare` is given the
/// samples of trials before anybody takes them, and has to make their tensors; `say` hears of what
/// happens, which [`LOG_FILE`] keeps.
///
/// # Errors
/// Fails on what does not pass, such as a disk that stays full; the same call goes on from there.
pub fn manage_trials(
    sweep: &SweepFolder,
    queue: &Queue,
    keep: usize,
    stop: &AtomicBool,
    prepare: impl Fn(&[TensorSettings]) -> Result<()>,
    say: impl Fn(&str),
) -> Result<ManagerOutcome> {
    let mut reported_at: Option<Instant> = None;
    let hear = |event: ManagerEvent<'_>| {
        if matches!(event, ManagerEvent::ItemsEnded(_)) {
            // Trials may end by the thousand a second.
            if reported_at.is_some_and(|reported| reported.elapsed() < REPORT_EVERY) {
                return;
            }
            reported_at = Some(Instant::now());
        }
        let text = event_text(&event, sweep.plan.trials);
        append_to_log(&sweep.dir, &text);
        say(&text);
    };

    let fill = |queue: &Queue| {
        // Workers have to know which files they keep before anybody takes a trial.
        if queue.kept_trials() != Some(keep) {
            queue.set_kept_trials(keep)?;
        }
        fill_queue(sweep, queue, &prepare)
    };

    let finish = |counts: &ItemStateCounts| {
        let outcomes = write_results(sweep, queue, counts, keep)?;
        let is_given = sweep.config.wandb.sweep.id.is_some();
        append_to_log(
            &sweep.dir,
            &summary_text(&outcomes, sweep.plan.trials, is_given),
        );
        queue.remove();
        Ok(())
    };

    match run_manager(queue, stop, fill, hear, finish) {
        // Another manager was faster, and has removed the queue.
        Err(_) if sweep.is_finished() => Ok(ManagerOutcome::AllEnded(ItemStateCounts::default())),
        managed => managed,
    }
}

/// What is said of `event` in a sweep of so many trials.
fn event_text(event: &ManagerEvent<'_>, trials: usize) -> String {
    match event {
        ManagerEvent::BecameLeader(None) => format!("managing {}", counted(trials, "trial")),
        ManagerEvent::BecameLeader(Some(dead)) => format!(
            "managing {} in place of {dead}, which is dead",
            counted(trials, "trial")
        ),
        ManagerEvent::ItemsEnded(counts) => format!(
            "{} of {} have ended, {} run",
            counts.ended(),
            counts.total(),
            counts.leased
        ),
        ManagerEvent::LeaseLost(lost) => {
            let what = if lost.quarantined {
                "it is quarantined"
            } else {
                "it is ready again"
            };
            format!(
                "trial {}: attempt {} was lost with {}; {what}",
                lost.item.trial, lost.attempt, lost.worker
            )
        }
    }
}

/// How many of `trials` ended in which way; of points that are given there may be fewer.
fn summary_text(outcomes: &TrialOutcomes, trials: usize, is_given: bool) -> String {
    let mut done = 0;
    let mut failed = 0;
    let mut quarantined = 0;
    for outcome in outcomes.all() {
        match outcome.ended {
            TrialEnd::Done => done += 1,
            TrialEnd::Quarantined => quarantined += 1,
            _ => failed += 1,
        }
    }
    let mut text = format!("over: {done} done, {failed} failed, {quarantined} quarantined");
    let unmade = trials.saturating_sub(outcomes.all().len());
    if unmade > 0 && !is_given {
        text += &format!("; {unmade} not made, as the sweep was stopped on its page");
    }
    text
}

/// Adds a line to the log. The log is for people alone, so that a full disk is no error here.
fn append_to_log(dir: &Path, text: &str) {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    // Neither through a link, nor into a pipe that nobody reads.
    let file = files::open_to_append(&dir.join(LOG_FILE));
    let _ = file.map(|mut file| writeln!(file, "{now} {}", poolcast_base::escape::value(text)));
}
