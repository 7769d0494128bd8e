//! `poolcast train`: tensor shards → a trained model.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use indicatif::ProgressBar;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default};

use super::{flag, flags};
use crate::cli::TrainArgs;
use crate::config::Config;
use crate::error::{EXIT_CHECKPOINTED, EXIT_DONE, EXIT_RETRY, hinted, render};
use crate::manifest;
use crate::output;
use crate::tensors::Dataset;
use crate::training::{
    Epoch, Metrics, Mode, Progress, RUN, Settings, Status, Stopped, train_until,
};

/// Trains, and prints how it ended.
pub fn run(args: &TrainArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let config = Config::load(
        args.config.as_deref(),
        &flags([
            ("training.parameters.model", flag(&args.model)),
            ("training.parameters.lstm_layers", flag(&args.lstm_layers)),
            ("training.parameters.hidden_size", flag(&args.hidden_size)),
            (
                "training.parameters.learning_rate",
                flag(&args.learning_rate),
            ),
            ("training.parameters.weight_decay", flag(&args.weight_decay)),
            (
                "training.parameters.clip_grad_norm",
                flag(&args.clip_grad_norm),
            ),
            ("training.parameters.batch_size", flag(&args.batch_size)),
            ("training.parameters.pos_weight", flag(&args.pos_weight)),
            (
                "training.checkpoint_minutes",
                flag(&args.checkpoint_minutes),
            ),
            ("epochs", flag(&args.epochs)),
            ("earlystop_threshold", flag(&args.earlystop_threshold)),
            ("earlystop_min_delta", flag(&args.earlystop_min_delta)),
            ("seed", flag(&args.seed)),
        ]),
    )?;
    let device = args.device.open()?;
    let dataset = Dataset::open(&args.tensors)?;
    let leave = args.self_checkpoint.map(leave_at).transpose()?;
    let mode = match (
        args.resume || leave.is_some() || args.until_epoch.is_some(),
        args.overwrite,
    ) {
        (true, _) => Mode::Resume,
        (_, true) => Mode::Overwrite,
        _ => Mode::New,
    };
    let key = Settings::of(&config)?.key(&dataset.key)?;
    if mode != Mode::Overwrite && manifest::finished_key(&args.out, RUN) == Some(key) {
        output::note(&format!(
            "nothing new: `{}` holds this training already",
            args.out.display()
        ));
    }
    let bar = output::fraction_bar();
    let until = args
        .until_epoch
        .map_or(usize::MAX, |epochs| epochs as usize);
    let ends = |epochs: &[Epoch]| epochs.len() >= until;
    // The epoch, the batch, how many batches an epoch has, the loss so far.
    let last = Mutex::new((0, 0, 0, 0.0));
    let far = || {
        let (epoch, batch, batches, loss) = last.lock().map(|last| *last).unwrap_or_default();
        format!(
            "epoch {epoch} of {}, batch {batch} of {batches}, loss {loss:.4}",
            config.epochs
        )
    };
    let hear = |progress: Progress<'_>| {
        if let (
            Progress::Batch {
                epoch,
                batch,
                batches,
                loss,
            },
            Ok(mut last),
        ) = (&progress, last.lock())
        {
            *last = (*epoch, *batch, *batches, *loss);
        }
        if bar.is_hidden() {
            note(&progress)
        } else {
            draw(&bar, &progress, &config)
        }
        let is_time = leave.is_some_and(|leave| Instant::now() >= leave);
        if is_time || stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let train = || train_until(&dataset, &config, &args.out, mode, &device, ends, hear);
    let trained = output::with_progress_notes(far, train);
    bar.finish_and_clear();
    let run = match trained {
        Err(error) if error.is::<Stopped>() => return Ok(stopped(&error.to_string(), args)),
        trained => trained?,
    };
    if args.json {
        output::print_json(&run.metrics)?
    } else {
        output::print(&text(&run.metrics))?
    }
    Ok(EXIT_DONE)
}

/// What SIGTERM and SIGINT set. A second SIGINT ends the program at once.
pub(super) fn stop_signal() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    register_conditional_default(SIGINT, Arc::clone(&stop))?;
    for signal in [SIGINT, SIGTERM] {
        register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// When to leave with a checkpoint: HTCondor only takes one away from a job that exits, and a machine may be lost before it
/// tells the job to stop.
pub(super) fn leave_at(minutes: f64) -> Result<Instant> {
    let after = Duration::try_from_secs_f64(minutes * 60.0).ok();
    let leave = after.and_then(|after| Instant::now().checked_add(after));
    leave.with_context(|| {
        hinted(
            format!("no job runs for {minutes} minutes"),
            "try `--self-checkpoint=60`",
        )
    })
}

/// Says how to go on after a stop; returns the exit code.
fn stopped(how: &str, args: &TrainArgs) -> u8 {
    if args.self_checkpoint.is_some() {
        output::note(&format!(
            "{how}; `{}` holds its checkpoint",
            args.out.display()
        ));
        return EXIT_CHECKPOINTED;
    }
    let error = hinted(how, "the same command goes on from there with `--resume`");
    output::error(render(&error.into()).trim_end());
    EXIT_RETRY
}

/// Off a terminal: one line an epoch.
fn note(progress: &Progress<'_>) {
    if let Progress::Epoch(epoch) = progress {
        output::note(&line(epoch));
    }
}

/// On a terminal: how far the training is, if it does not stop early, and how well it does.
fn draw(bar: &ProgressBar, progress: &Progress<'_>, config: &Config) {
    match *progress {
        Progress::Batch {
            epoch,
            batch,
            batches,
            loss,
        } => {
            if bar.position() == 0 {
                bar.set_length((batches * config.epochs) as u64);
                bar.set_position((batches * (epoch - 1) + batch - 1) as u64);
                bar.reset_eta();
            }
            bar.set_message(format!("epoch {epoch}/{}  loss {loss:.4}", config.epochs));
            bar.inc(1);
        }
        Progress::Epoch(epoch) => {
            let name = config.earlystop_metric.name;
            let value = epoch.watched(name);
            bar.set_prefix(format!(
                "{name} {}",
                value.map_or("-".to_owned(), |value| format!("{value:.4}"))
            ));
        }
    }
}

/// One epoch on one line.
pub(super) fn line(epoch: &Epoch) -> String {
    let auc = epoch
        .validation
        .roc_auc
        .map_or("-".to_owned(), |auc| format!("{auc:.3}"));
    format!(
        "epoch {:3}  train loss {:.4}  validation loss {:.4}  ROC-AUC {auc}{}",
        epoch.epoch,
        epoch.train_loss,
        epoch.validation_loss,
        if epoch.is_best { "  best" } else { "" }
    )
}

fn text(metrics: &Metrics) -> String {
    let early = match metrics.status {
        Status::StoppedEarly => ", stopped early",
        Status::TerminatedEarly => ", more may follow",
        Status::Finished | Status::NonFinite => "",
    };
    let best = metrics.best.as_ref().map_or(String::new(), |best| {
        format!(
            "; the weights of epoch {} remain: validation loss {:.4}",
            best.epoch, best.validation_loss
        )
    });
    format!(
        "{}{early}{best}\n",
        output::counted(metrics.epochs, "epoch")
    )
}
