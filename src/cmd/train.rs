//! `poolcast train`: turns tensor shards into a trained model.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use indicatif::ProgressBar;

use super::flags::{flag, flags};
use super::signals::{exit_time, stop_signal};
use super::text::trials::epoch_line;
use super::tracking::{begin_tracking, end_tracking};
use poolcast_base::error::{EXIT_CHECKPOINTED, EXIT_DONE, EXIT_RETRY, hinted, render};
use poolcast_base::manifest;
use poolcast_base::output;
use poolcast_cli::TrainArgs;
use poolcast_holds::config::TrainingSettings;
use poolcast_holds::training::{
    Epoch, RUN_FORMAT, RunLocation, StartMode, TrainError, TrainingMetrics, TrainingStatus,
    TrainingUpdate, train_until, training_key,
};
use poolcast_sweep::config::Config;
use poolcast_tensors::Dataset;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Trains the model, and prints how the training ended.
pub fn run(args: &TrainArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let config = training_config(args)?;
    let device = args.device.open()?;
    let dataset = Dataset::open(&args.tensors)?;
    let exit_time = args.self_checkpoint.map(exit_time).transpose()?;
    let mode = start_mode(args);
    let settings = config.training_settings()?;
    let key = training_key(&settings, &dataset.key)?;
    if mode != StartMode::Overwrite && manifest::finished_key(&args.out, RUN_FORMAT) == Some(key) {
        output::note_nothing_new(&args.out, "this training");
    }

    let until = args
        .until_epoch
        .map_or(usize::MAX, |epochs| epochs as usize);
    let ends = |epochs: &[Epoch]| epochs.len() >= until;
    let progress = TrainingProgress::new(&settings);
    let hear = |step: TrainingUpdate<'_>| {
        progress.show_progress(&step);
        let is_time = exit_time.is_some_and(|exit_time| Instant::now() >= exit_time);
        if is_time || stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let resolved = config.resolved()?;
    let place = RunLocation {
        dir: &args.out,
        config: &resolved,
        checkpoint_minutes: config.training.checkpoint_minutes,
    };
    let tracking = begin_tracking(&config, &args.out, &stop);
    let train = || train_until(&dataset, &settings, place, mode, &device, ends, hear);
    let trained = output::with_progress_notes(|| progress.text(), train);
    progress.bar.finish_and_clear();
    end_tracking(tracking);

    let run = match trained {
        Err(TrainError::Stopped(how)) => return Ok(stopped_message(&how.to_string(), args)),
        trained => trained?,
    };
    if args.output.json {
        output::print_json(SCHEMA_VERSION, &run.metrics)?
    } else {
        output::print(&text(&run.metrics))?
    }
    Ok(EXIT_DONE)
}

/// Loads the configuration file, with the overrides of the flags.
fn training_config(args: &TrainArgs) -> Result<Config> {
    let mut given = flags([
        ("training.parameters.model", flag(&args.model)),
        (
            "training.checkpoint_minutes",
            flag(&args.checkpoint_minutes),
        ),
        ("training.engine", flag(&args.engine)),
        ("epochs", flag(&args.epochs)),
        ("earlystop_threshold", flag(&args.earlystop_threshold)),
        ("earlystop_min_delta", flag(&args.earlystop_min_delta)),
        ("seed", flag(&args.seed)),
    ]);

    let network = args.network.keys("training.parameters");
    for (key, value) in &network {
        given.insert(key, value.clone());
    }
    Config::load(args.config.as_deref(), &given)
}

/// Chooses the treatment of an earlier training in the directory.
fn start_mode(args: &TrainArgs) -> StartMode {
    let is_step = args.self_checkpoint.is_some() || args.until_epoch.is_some();
    if args.resume || is_step {
        StartMode::Resume
    } else if args.overwrite {
        StartMode::Overwrite
    } else {
        StartMode::New
    }
}

/// Prints how to continue after a stop; returns the exit code.
fn stopped_message(how: &str, args: &TrainArgs) -> u8 {
    if args.self_checkpoint.is_some() {
        output::note(&format!(
            "{how}; `{}` has its checkpoint",
            args.out.display()
        ));
        return EXIT_CHECKPOINTED;
    }
    let error = hinted(how, "run the same command with `--resume` to continue");
    output::error(render(&error.into()).trim_end());
    EXIT_RETRY
}

/// Progress of a training, for people.
struct TrainingProgress<'a> {
    settings: &'a TrainingSettings,
    bar: ProgressBar,
    last: Mutex<LastBatch>,
}

/// The most recent batch.
#[derive(Debug, Clone, Copy, Default)]
struct LastBatch {
    /// Number of the epoch, from 1.
    epoch: usize,
    /// Number of the batch, from 1.
    batch: usize,
    /// Batches per epoch.
    batches: usize,
    /// Mean loss of the epoch so far.
    loss: f64,
}

impl TrainingProgress<'_> {
    fn new(settings: &TrainingSettings) -> TrainingProgress<'_> {
        TrainingProgress {
            settings,
            bar: output::fraction_bar(),
            last: Mutex::default(),
        }
    }

    /// The progress on one line, for output without a bar.
    fn text(&self) -> String {
        let LastBatch {
            epoch,
            batch,
            batches,
            loss,
        } = self.last.lock().map(|last| *last).unwrap_or_default();
        format!(
            "epoch {epoch} of {}, batch {batch} of {batches}, loss {loss:.4}",
            self.settings.epochs
        )
    }

    fn show_progress(&self, step: &TrainingUpdate<'_>) {
        match *step {
            TrainingUpdate::Batch {
                epoch,
                batch,
                batches,
                loss,
            } => self.show_batch(LastBatch {
                epoch,
                batch,
                batches,
                loss,
            }),
            TrainingUpdate::Epoch(epoch) => self.show_epoch(epoch),
        }
    }

    /// Advances the bar on a terminal. Its length assumes that the training does not stop early.
    fn show_batch(&self, batch: LastBatch) {
        if let Ok(mut last) = self.last.lock() {
            *last = batch;
        }
        if self.bar.is_hidden() {
            return;
        }

        let epochs = self.settings.epochs;
        if self.bar.position() == 0 {
            let before = batch.batches * (batch.epoch - 1) + batch.batch - 1;
            self.bar.set_length((batch.batches * epochs) as u64);
            self.bar.set_position(before as u64);
            self.bar.reset_eta();
        }
        self.bar.set_message(format!(
            "epoch {}/{epochs}  loss {:.4}",
            batch.epoch, batch.loss
        ));
        self.bar.inc(1);
    }

    /// Shows the score of an epoch: in the bar on a terminal, otherwise on a line of its own.
    fn show_epoch(&self, epoch: &Epoch) {
        if self.bar.is_hidden() {
            output::note(&epoch_line(epoch));
            return;
        }
        let name = self.settings.metric.name;
        let value = epoch
            .watched(name)
            .map_or("-".to_owned(), |value| format!("{value:.4}"));
        self.bar.set_prefix(format!("{name} {value}"));
    }
}

fn text(metrics: &TrainingMetrics) -> String {
    let early = match metrics.status {
        TrainingStatus::StoppedEarly => ", stopped early",
        TrainingStatus::TerminatedEarly => ", can be continued",
        TrainingStatus::Finished | TrainingStatus::NonFinite => "",
    };
    let best = metrics.best.as_ref().map_or(String::new(), |best| {
        format!(
            "; the best epoch is {}: validation loss {:.4}",
            best.epoch, best.validation_loss
        )
    });
    format!(
        "{}{early}{best}\n",
        output::counted(metrics.epochs, "epoch")
    )
}
