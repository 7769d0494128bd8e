//! The manager of a sweep: fills its queue, reports and logs events, and writes the results at the
//! end.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::fill_queue::QueueFiller;
use crate::outcomes::TrialOutcomes;
use crate::outcomes::write_results;
use crate::plan::LOG_FILE;
use crate::plan::SweepFolder;
use crate::plan::TrialEnd;
use poolcast_base::files;
use poolcast_base::output::counted;
use poolcast_queue::{ItemStateCounts, ManagerEvent, ManagerOutcome, Queue, run_manager};
use poolcast_tensors::TensorSettings;

/// Interval between reports of the number of ended trials.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Manages `sweep` until all its trials have ended or `stop` is set. `look_again` ends a wait, as in
/// [`run_manager`]. Once they have ended, writes
/// the results and removes the queue. The models of the `keep` best trials are kept. `prepare`
/// receives the sample settings of trials before any worker claims them, and must make their
/// tensors. `note` receives the text of each event, which is also written to [`LOG_FILE`].
///
/// # Errors
/// Fails on lasting errors, such as a disk that stays full. The same call continues from there.
pub fn manage_trials(
    sweep: &SweepFolder,
    queue: &Queue,
    keep: usize,
    stop: &AtomicBool,
    look_again: &AtomicBool,
    prepare: impl Fn(&[TensorSettings]) -> Result<()>,
    note: impl Fn(&str),
) -> Result<ManagerOutcome> {
    let mut reported_at: Option<Instant> = None;
    let on_event = |event: ManagerEvent<'_>| {
        if matches!(event, ManagerEvent::ItemsEnded(_)) {
            // Thousands of trials may end per second.
            if reported_at.is_some_and(|reported| reported.elapsed() < REPORT_INTERVAL) {
                return;
            }
            reported_at = Some(Instant::now());
        }
        let text = event_text(&event, sweep.plan.trials);
        append_to_log(&sweep.dir, &text);
        note(&text);
    };

    let mut filler = QueueFiller::new(sweep, prepare);
    let fill = |queue: &Queue| {
        // Workers must know which files to keep before any of them claims a trial.
        if queue.kept_trials() != Some(keep) {
            queue.set_kept_trials(keep)?;
        }
        filler.fill(queue)
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

    match run_manager(queue, stop, look_again, fill, on_event, finish) {
        // Another manager was faster, and has removed the queue.
        Err(_) if sweep.is_finished() => Ok(ManagerOutcome::AllEnded(ItemStateCounts::default())),
        managed => managed,
    }
}

/// The text of `event` in a sweep of `trials` trials.
fn event_text(event: &ManagerEvent<'_>, trials: usize) -> String {
    match event {
        ManagerEvent::BecameLeader(None) => format!("managing {}", counted(trials, "trial")),
        ManagerEvent::BecameLeader(Some(dead)) => format!(
            "managing {} in place of {dead}, which is dead",
            counted(trials, "trial")
        ),
        ManagerEvent::ItemsEnded(counts) => format!(
            "{} of {} have ended, {} running",
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

/// Counts the ended trials by outcome. If a tracker gives the points, there may be fewer than
/// `trials`.
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
    let mut text = format!("ended: {done} done, {failed} failed, {quarantined} quarantined");
    let unmade = trials.saturating_sub(outcomes.all().len());
    if unmade > 0 && !is_given {
        text += &format!(
            "; {unmade} not started, because the sweep was stopped at the target of its metric or on its W&B page"
        );
    }
    text
}

/// Appends a line to the log. Only people read the log, so a full disk is not an error here.
fn append_to_log(dir: &Path, text: &str) {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    // Does not follow a symbolic link, and does not block on a pipe without a reader.
    let file = files::open_to_append(&dir.join(LOG_FILE));
    let _ = file.map(|mut file| writeln!(file, "{now} {}", poolcast_base::escape::value(text)));
}
