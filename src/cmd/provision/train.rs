//! `poolcast provision train`: turns samples into a model of waits or of submit decisions.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Error, Result};
use indicatif::ProgressBar;

use crate::cmd::best_wait_model::open_wait_model;
use crate::cmd::flags::{flag, flags};
use crate::cmd::signals::stop_signal;
use crate::cmd::text;
use poolcast_base::error::{EXIT_CHECKPOINTED, EXIT_DONE};
use poolcast_base::output;
use poolcast_cli::ProvisionTrainArgs;
use poolcast_models::optim::TrainingStopped;
use poolcast_pipelines::FitStopped;
use poolcast_provision::samples::WaitSamples;
use poolcast_provision::wait_model::{LearningUpdate, WaitTrainingTask, train_wait_model};
use poolcast_sweep::config::Config;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Trains the model, and prints the results.
pub(super) fn run(args: &ProvisionTrainArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let config = training_config(args)?;
    let device = args.device.open()?;
    let samples = WaitSamples::open(&args.samples)?;
    let base = args.base.as_deref().map(open_wait_model).transpose()?;
    let settings = config.wait_model_settings()?;

    let bar = output::fraction_bar();
    let far = Mutex::new(String::from("reading the samples"));
    let listener = |update: LearningUpdate<'_>| {
        show(&update, &bar, &far);
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let task = WaitTrainingTask {
        samples: &samples,
        base: base.as_ref(),
        settings: &settings,
        device: &device,
        out: &args.out,
        overwrite: args.overwrite,
        checkpoint_interval: Duration::from_secs_f64(60.0 * config.training.checkpoint_minutes),
        listener: &listener,
    };
    let far = || far.lock().map(|far| far.clone()).unwrap_or_default();
    let trained = output::with_progress_notes(far, || train_wait_model(&task));
    bar.finish_and_clear();

    let trained = match trained {
        Err(error) if is_stopped(&error) => {
            output::note(&format!("{error}; run the same command again to continue"));
            return Ok(EXIT_CHECKPOINTED);
        }
        trained => trained?,
    };
    if trained.is_old {
        output::note_nothing_new(&args.out, "this model");
    }
    if args.output.json {
        output::print_json(SCHEMA_VERSION, &trained.summary)?;
    } else {
        output::print(&text::wait_model::summary(&trained.summary))?;
    }
    Ok(EXIT_DONE)
}

/// Returns true if the training ended because the user stopped it.
fn is_stopped(error: &Error) -> bool {
    error.is::<TrainingStopped>() || error.is::<FitStopped>()
}

/// Loads the configuration, with the overrides of the flags.
fn training_config(args: &ProvisionTrainArgs) -> Result<Config> {
    let mut given = flags([
        ("provision.cost_ratio", flag(&args.cost_ratio)),
        ("epochs", flag(&args.epochs)),
        ("seed", flag(&args.seed)),
    ]);
    let model = args.model.keys("provision.model");
    for (key, value) in &model {
        given.insert(key, value.clone());
    }
    Config::load(args.config.as_deref(), &given)
}

/// Shows the progress of the training: a bar on a terminal, otherwise one line per epoch.
fn show(update: &LearningUpdate<'_>, bar: &ProgressBar, far: &Mutex<String>) {
    match update {
        LearningUpdate::Batch {
            epoch,
            epochs,
            batch,
            batches,
        } => {
            bar.set_length((batches * epochs) as u64);
            bar.set_position((batches * (epoch - 1) + batch) as u64);
            bar.set_message(format!("epoch {epoch}/{epochs}"));
            if let Ok(mut far) = far.lock() {
                *far = format!("epoch {epoch} of {epochs}, batch {batch} of {batches}");
            }
        }
        LearningUpdate::Epoch(epoch) if bar.is_hidden() => {
            output::note(&text::wait_model::epoch_line(epoch));
        }
        LearningUpdate::Expert { expert, experts } => {
            show_stage(&format!("expert {expert} of {experts}"), bar);
        }
        LearningUpdate::Together => show_stage("all experts and the gate", bar),
        LearningUpdate::Epoch(_) | LearningUpdate::Fit => {}
    }
}

/// Shows which part of a mixture is being trained.
fn show_stage(stage: &str, bar: &ProgressBar) {
    bar.set_prefix(stage.to_owned());
    if bar.is_hidden() {
        output::note(stage);
    }
}
