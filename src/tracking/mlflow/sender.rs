//! Sends what MLflow lacks of the runs of a directory, and nothing twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};

use super::runs::{MlflowRuns, PostRequest, Repetition, SendOutcome};
use super::settings::MlflowSettings;
use crate::runs::{BestFiles, TrackedOutcome, TrackedRun, TrackedSource};
use crate::server::{
    FileUpload, HttpSender, JsonRequest, SendError, SendLimits, SenderClock, SentNote, SentSummary,
    variable,
};
use poolcast_base::escape;
use poolcast_sweep::config::Tracker;

/// Placeholder for ids that only the server knows.
const SERVER_ID_PLACEHOLDER: &str = "-";

/// Sends runs to one experiment of an MLflow server.
pub(crate) struct MlflowSender {
    http: HttpSender,
    settings: MlflowSettings,
    /// Runs on the server; `None` before its first answer.
    runs: Option<MlflowRuns>,
    note: SentNote,
    /// Summary of all that was sent so far.
    pub(crate) summary: SentSummary,
}

impl MlflowSender {
    /// Makes a sender for the runs of `source` to the server and experiment of the environment and
    /// the configuration. `server` is the URL of the command line, which takes precedence.
    ///
    /// # Errors
    /// Fails if no server is named, or for a key that no header can hold.
    pub(crate) fn new(
        source: &TrackedSource,
        server: Option<&str>,
        clock: SenderClock,
        limits: SendLimits,
        stop: Arc<AtomicBool>,
    ) -> Result<MlflowSender> {
        let mut settings = MlflowSettings::new(source.config(), server, variable)?;
        let key = settings.key(variable)?;
        let mut http = HttpSender::new(&settings.host, key, clock, limits, stop)?;
        http.enable_state_file(source.dir(), Tracker::Mlflow);
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

    /// The HTTP sender behind all requests.
    pub(crate) fn http(&mut self) -> &mut HttpSender {
        &mut self.http
    }

    /// Sends what the server lacks of the current runs of `source`. Returns true if all runs have
    /// ended and were sent completely.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain if the server rejects a request or does not answer.
    pub(crate) fn send_all(&mut self, source: &TrackedSource) -> Result<bool> {
        self.summary.running = 0;
        let sent = self.send_runs(source);
        self.summary.requests = self.http.requests();
        self.summary.ended = self.note.ended_trials().count();
        self.note.write(&mut self.summary);
        self.http
            .count_runs(self.summary.ended, self.summary.running);
        sent
    }

    /// Sends the best run's files if the server accepts files, unless they were sent before.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain if the server does not answer. A rejection becomes a
    /// note.
    pub(crate) fn send_files(&mut self, best: &BestFiles) -> Result<()> {
        let digest = best.digest();
        if self.note.has_files(&best.run.run_id, &digest) {
            return Ok(());
        }
        match self.upload(best) {
            Ok(true) => {
                self.summary.files += best.files.len();
                self.note.set_files(&best.run.run_id, digest);
                self.note.write(&mut self.summary);
            }
            Ok(false) => self.summary.add_note(
                "the report and the best model were not sent: this MLflow server does not accept files of runs".to_owned(),
            ),
            Err(error) => match error.downcast_ref::<SendError>() {
                Some(SendError::Refused { .. }) => self.summary.add_note(
                    format!("the report and the best model were not sent: {error:#}"),
                ),
                _ => return Err(error),
            },
        }
        self.summary.requests = self.http.requests();
        Ok(())
    }

    /// Uploads the files of `best`. Returns false if the server does not accept files.
    fn upload(&mut self, best: &BestFiles) -> Result<bool> {
        let MlflowSender {
            http,
            settings,
            runs,
            ..
        } = self;
        let Some(known) = runs else {
            return Ok(false);
        };
        let mut post = |path: &str, body: &Value, repetition| {
            send_post(http, settings, path, body, repetition)
        };
        let Some(path) = known.artifact_path(&mut post, &best.run.run_id)? else {
            return Ok(false);
        };
        for file in &best.files {
            http.put_file(&FileUpload {
                url: &settings.file_address(&path, file.name),
                headers: &[],
                bytes: &file.bytes,
                has_key: true,
            })?;
        }
        Ok(true)
    }

    fn send_runs(&mut self, source: &TrackedSource) -> Result<bool> {
        let MlflowSender {
            http,
            settings,
            runs,
            note,
            summary,
        } = self;
        let mut post = |path: &str, body: &Value, repetition| {
            send_post(http, settings, path, body, repetition)
        };

        let known = match runs {
            Some(known) => known,
            None => runs.insert(MlflowRuns::open(&mut post, &settings.experiment)?),
        };
        let ended: BTreeSet<usize> = note.ended_trials().collect();
        let is_over = source.visit_runs_except(&ended, |run| {
            if note.has_ended(&run.run_id) {
                return Ok(());
            }
            if known.is_without_sweep() {
                known.send_sweep(&mut post, source.sweep_run(run.began_s).as_ref())?;
            }
            send_run(known, &mut post, &run, note, summary)
        })?;
        if is_over {
            send_ended_sweep(source, known, &mut post, note)?;
        }
        Ok(is_over)
    }
}

/// Sends the end of the sweep of `source`, unless it was sent before.
fn send_ended_sweep(
    source: &TrackedSource,
    known: &mut MlflowRuns,
    post: &mut PostRequest<'_>,
    note: &mut SentNote,
) -> Result<()> {
    let Some(mark) = source.sweep_mark() else {
        return Ok(());
    };
    if note.sweep(&mark).is_some() {
        return Ok(());
    }
    known.send_sweep(post, source.ended_sweep_run()?.as_ref())?;
    note.set_sweep(&mark, known.sweep_server_id().unwrap_or_default());
    Ok(())
}

fn send_post(
    http: &mut HttpSender,
    settings: &MlflowSettings,
    path: &str,
    body: &Value,
    repetition: Repetition,
) -> Result<Value, SendError> {
    http.send(&JsonRequest {
        method: Method::POST,
        url: &settings.address(path),
        body: Some(body.to_string().as_bytes()),
        is_repeatable: repetition == Repetition::Harmless,
        is_final: |_| false,
    })
}

/// Sends what the server lacks of `run`. If the server rejects this run, a note is added and the
/// other runs are sent.
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
                note.write(summary);
            }
        }
        Ok(SendOutcome::Deleted) => summary.add_note(format!(
            "{name} was deleted on MLflow, and was not sent: restore it there"
        )),
        Err(error) => match error.downcast_ref::<SendError>() {
            // Status 400 concerns this run only. Other errors would affect the next runs, too.
            Some(SendError::Refused { status: 400, .. }) => {
                summary.add_note(format!("{name} was not sent: {error:#}"));
            }
            _ => return Err(error),
        },
    }
    Ok(())
}

/// Calls `show` with each request that sends the runs of `source` to an empty server: method, URL
/// and whole document. Keys are sent in a header and are not shown. `server` is the URL of the
/// command line.
///
/// # Errors
/// Fails if no server is named, if a file cannot be read, or if `show` fails.
pub fn preview_to_mlflow(
    source: &TrackedSource,
    server: Option<&str>,
    mut show: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let settings = MlflowSettings::new(source.config(), server, variable)?;
    let mut shown = Ok(());
    let mut post = |path: &str, body: &Value, _| {
        let request = json!({"method": "POST", "url": settings.address(path), "body": body});
        if shown.is_ok() {
            shown = show(&request);
        }
        Ok(new_server_answer(path))
    };
    let mut runs = MlflowRuns::open(&mut post, &settings.experiment)?;
    let is_over = source.visit_runs(|run| {
        if runs.is_without_sweep() {
            runs.send_sweep(&mut post, source.sweep_run(run.began_s).as_ref())?;
        }
        runs.send(&mut post, &run).map(drop)
    })?;
    if is_over {
        runs.send_sweep(&mut post, source.ended_sweep_run()?.as_ref())?;
    }
    shown?;

    for file in source.best_files()?.map_or(Vec::new(), |best| best.files) {
        let url = settings.file_address(SERVER_ID_PLACEHOLDER, file.name);
        show(&json!({"method": "PUT", "url": url, "file": file.shown()}))?;
    }
    Ok(())
}

/// Returns the answer of an empty server.
fn new_server_answer(path: &str) -> Value {
    match path {
        "experiments/create" => json!({ "experiment_id": SERVER_ID_PLACEHOLDER }),
        "runs/create" => {
            json!({ "run": {"info": {"run_id": SERVER_ID_PLACEHOLDER, "status": "RUNNING"}} })
        }
        _ => json!({}),
    }
}
