//! The sender of runs to one tracker, W&B or MLflow.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use crate::mlflow::MlflowSender;
use crate::runs::{BestFiles, TrackedSource};
use crate::server::{HttpSender, SendError, SendLimits, SenderClock, SentSummary};
use crate::wandb::WandbSender;
use poolcast_base::error::{hinted, too_early};
use poolcast_sweep::config::Tracker;

/// Sends the runs of a directory to one tracker.
pub(super) enum RunSender {
    Wandb(Box<WandbSender>),
    Mlflow(Box<MlflowSender>),
}

impl RunSender {
    /// Returns a sender for the runs of `source`. `server` is the URL of the command line, which
    /// takes precedence over the environment and the configuration.
    ///
    /// # Errors
    /// Fails if the tracker's server or key is not known.
    pub(super) fn new(
        tracker: Tracker,
        source: &TrackedSource,
        server: Option<&str>,
        clock: SenderClock,
        limits: SendLimits,
        stop: Arc<AtomicBool>,
    ) -> Result<RunSender> {
        Ok(match tracker {
            Tracker::Wandb => RunSender::Wandb(Box::new(WandbSender::new(
                source, server, clock, limits, stop,
            )?)),
            Tracker::Mlflow => RunSender::Mlflow(Box::new(MlflowSender::new(
                source, server, clock, limits, stop,
            )?)),
        })
    }

    /// Sends what the server lacks of the current runs of `source`. Returns true if all runs have
    /// ended and were sent completely.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain if the server rejects a request or does not answer.
    pub(super) fn send_all(&mut self, source: &TrackedSource) -> Result<bool> {
        match self {
            RunSender::Wandb(sender) => sender.send_all(source),
            RunSender::Mlflow(sender) => sender.send_all(source),
        }
    }

    /// Sends the best run's files, unless they were sent before.
    ///
    /// # Errors
    /// Like [`RunSender::send_all`].
    pub(super) fn send_files(&mut self, best: &BestFiles) -> Result<()> {
        match self {
            RunSender::Wandb(sender) => sender.send_files(best),
            RunSender::Mlflow(sender) => sender.send_files(best),
        }
    }

    /// The HTTP sender behind all requests.
    pub(super) fn http(&mut self) -> &mut HttpSender {
        match self {
            RunSender::Wandb(sender) => sender.http(),
            RunSender::Mlflow(sender) => sender.http(),
        }
    }

    /// Adds a note for the user.
    pub(super) fn add_note(&mut self, note: String) {
        match self {
            RunSender::Wandb(sender) => sender.summary.add_note(note),
            RunSender::Mlflow(sender) => sender.summary.add_note(note),
        }
    }

    /// The summary of all that was sent.
    pub(super) fn into_summary(self) -> SentSummary {
        match self {
            RunSender::Wandb(sender) => sender.summary,
            RunSender::Mlflow(sender) => sender.summary,
        }
    }

    /// Adds a hint on what to do to an error of this sender. `server` is the URL of the command
    /// line.
    pub(super) fn with_hint(
        &self,
        error: anyhow::Error,
        dir: &Path,
        server: Option<&str>,
    ) -> anyhow::Error {
        let (tracker, key_hint, place_hint) = match self {
            RunSender::Wandb(_) => (
                Tracker::Wandb,
                "check WANDB_API_KEY or netrc, WANDB_BASE_URL and WANDB_ENTITY",
                "check WANDB_BASE_URL, and `wandb.entity` and `wandb.project` of the configuration",
            ),
            RunSender::Mlflow(_) => (
                Tracker::Mlflow,
                "check MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, MLFLOW_TRACKING_TOKEN, or netrc",
                "check MLFLOW_TRACKING_URI, or `mlflow.tracking_uri` of the configuration",
            ),
        };
        match error.downcast_ref::<SendError>() {
            Some(
                SendError::OutOfTime { .. }
                | SendError::TimeOver { .. }
                | SendError::InDoubt
                | SendError::Stopped,
            ) => {
                let shown = poolcast_base::escape::path(dir);
                let word = tracker.word();
                let server = server.map_or(String::new(), |url| {
                    format!(" --server {}", poolcast_base::escape::value(url))
                });
                let again =
                    format!("send the rest later: poolcast track {shown} --to {word}{server}");
                too_early(error.to_string(), again).into()
            }
            Some(SendError::Refused {
                status: 401 | 403, ..
            }) => hinted(error.to_string(), key_hint).into(),
            Some(SendError::Refused { status: 404, .. }) => {
                hinted(error.to_string(), place_hint).into()
            }
            Some(SendError::Refused { .. } | SendError::Unusable { .. }) | None => error,
        }
    }
}
