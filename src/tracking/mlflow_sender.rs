//! The runs of a directory → MLflow: what the server lacks of them, and nothing twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

use super::http_sender::{HttpSender, JsonRequest, SendError, SendLimits};
use super::mlflow_runs::{MlflowRuns, PostRequest, Repetition, SendOutcome};
use super::mlflow_settings::MlflowSettings;
use super::sender_clock::SenderClock;
use super::sent_note::SentNote;
use super::source::TrackedSource;
use super::tracked_run::{TrackedOutcome, TrackedRun};
use super::wandb_sender::SentSummary;
use super::wandb_settings::variable;
use crate::config::Tracker;
use crate::escape;

/// What stands for the ids that only the server gives.
const ID_OF_SERVER: &str = "-";

/// Sends runs to one experiment of an MLflow server.
pub(super) struct MlflowSender {
    http: HttpSender,
    settings: MlflowSettings,
    /// `None` before the server has answered.
    runs: Option<MlflowRuns>,
    note: SentNote,
    /// What it has done so far.
    pub(super) summary: SentSummary,
}

impl MlflowSender {
    /// For the runs of `source`, to where the environment and the configuration say.
    ///
    /// # Errors
    /// Fails where no server is named, and for a key that cannot be sent.
    pub(super) fn new(
        source: &TrackedSource,
        clock: SenderClock,
        limits: SendLimits,
        stop: Arc<AtomicBool>,
    ) -> Result<MlflowSender> {
        let mut settings = MlflowSettings::new(source.config(), variable)?;
        let key = settings.key(variable)?;
        let http = HttpSender::new(&settings.host, key, clock, limits, stop)?;
        let to = format!("{}, {}", settings.base_url, settings.experiment);
        Ok(MlflowSender {
            http,
            note: SentNote::read(source.dir(), Tracker::Mlflow, &to),
            summary: SentSummary {
                to,
                notes: std::mem::take(&mut settings.warnings),
                ..SentSummary::default()
            },
            settings,
            runs: None,
        })
    }

    /// What requests go by.
    pub(super) fn http(&mut self) -> &mut HttpSender {
        &mut self.http
    }

    /// Sends what the server lacks of the runs of `source` as they are now. Returns whether all have
    /// ended and were sent to their end.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain where the server does not take it.
    pub(super) fn send_all(&mut self, source: &TrackedSource) -> Result<bool> {
        self.summary.running = 0;
        let sent = self.send_runs(source);
        self.summary.requests = self.http.requests();
        self.summary.ended = self.note.ended_trials().count();
        write_note(&mut self.note, &mut self.summary);
        sent
    }

    fn send_runs(&mut self, source: &TrackedSource) -> Result<bool> {
        let MlflowSender {
            http,
            settings,
            runs,
            note,
            summary,
        } = self;
        let mut post = |path: &str, body: &Value, repetition: Repetition| {
            http.send(&JsonRequest {
                method: Method::POST,
                url: &settings.address(path),
                body: Some(body.to_string().as_bytes()),
                is_repeatable: repetition == Repetition::Harmless,
                is_final: |_| false,
            })
        };

        let known = match runs {
            Some(known) => known,
            None => runs.insert(MlflowRuns::open(&mut post, &settings.experiment)?),
        };
        let ended: BTreeSet<usize> = note.ended_trials().collect();
        source.visit_runs_beside(&ended, |run| {
            if note.has_ended(&run.run_id) {
                return Ok(());
            }
            send_run(known, &mut post, &run, note, summary)
        })
    }
}

/// Sends what the server lacks of `run`. What it refuses of one run is a note, and the others are
/// sent.
fn send_run(
    known: &mut MlflowRuns,
    post: &mut PostRequest<'_>,
    run: &TrackedRun,
    note: &mut SentNote,
    summary: &mut SentSummary,
) -> Result<()> {
    let name = escape::value(&run.name);
    match known.send(post, run) {
        Ok(SendOutcome::Whole { new_epochs, is_new }) => {
            summary.epochs += new_epochs;
            summary.runs += usize::from(is_new);
            match run.outcome {
                TrackedOutcome::Running => summary.running += 1,
                _ => note.add_ended(&run.run_id, run.trial().unwrap_or(0)),
            }
            if note.is_due() {
                write_note(note, summary);
            }
        }
        Ok(SendOutcome::Deleted) => add_note(
            summary,
            format!("{name} was deleted on MLflow, and is not sent: restore it there"),
        ),
        Err(error) => match error.downcast_ref::<SendError>() {
            Some(SendError::Refused { status: 400, .. }) => {
                add_note(summary, format!("{name} was not sent: {error:#}"));
            }
            _ => return Err(error),
        },
    }
    Ok(())
}

fn write_note(note: &mut SentNote, summary: &mut SentSummary) {
    if let Err(error) = note.write() {
        add_note(
            summary,
            format!("what was sent could not be noted: {error:#}"),
        );
    }
}

fn add_note(summary: &mut SentSummary, note: String) {
    if !summary.notes.contains(&note) {
        summary.notes.push(note);
    }
}

/// Calls `show` with each request that sends the runs of `source` to a server that knows none of
/// them: where it goes and its whole document. Keys are sent in a header, and are not shown.
///
/// # Errors
/// Fails where no server is named, for files that cannot be read, and where `show` does.
pub fn preview_to_mlflow(
    source: &TrackedSource,
    mut show: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let settings = MlflowSettings::new(source.config(), variable)?;
    let mut shown = Ok(());
    let mut post = |path: &str, body: &Value, _| {
        let request = json!({"method": "POST", "url": settings.address(path), "body": body});
        if shown.is_ok() {
            shown = show(&request);
        }
        Ok(new_server_answer(path))
    };
    let mut runs = MlflowRuns::open(&mut post, &settings.experiment)?;
    source.visit_runs(|run| runs.send(&mut post, &run).map(drop))?;
    shown
}

/// What a server answers that knows nothing yet.
fn new_server_answer(path: &str) -> Value {
    match path {
        "experiments/create" => json!({ "experiment_id": ID_OF_SERVER }),
        "runs/create" => json!({ "run": {"info": {"run_id": ID_OF_SERVER, "status": "RUNNING"}} }),
        _ => json!({}),
    }
}
