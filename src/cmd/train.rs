//! `poolcast train`: tensor shards → a trained model.

use anyhow::Result;

use super::{flag, flags};
use crate::cli::TrainArgs;
use crate::config::Config;
use crate::error::EXIT_DONE;
use crate::output;
use crate::tensors::Dataset;
use crate::training::{Epoch, Mode, RunSummary, train};

/// Trains, and prints how it ended.
pub fn run(args: &TrainArgs) -> Result<u8> {
    let config = Config::load(
        args.config.as_deref(),
        &flags([
            ("training.parameters.model", flag(&args.model)),
            ("training.parameters.lstm_layers", flag(&args.lstm_layers)),
            ("training.parameters.hidden_size", flag(&args.hidden_size)),
            ("training.parameters.learning_rate", flag(&args.learning_rate)),
            ("training.parameters.weight_decay", flag(&args.weight_decay)),
            ("training.parameters.clip_grad_norm", flag(&args.clip_grad_norm)),
            ("training.parameters.batch_size", flag(&args.batch_size)),
            ("epochs", flag(&args.epochs)),
            ("earlystop_threshold", flag(&args.earlystop_threshold)),
            ("seed", flag(&args.seed)),
        ]),
    )?;
    let device = args.device.open()?;
    let dataset = Dataset::open(&args.tensors)?;
    let mode = match (args.resume, args.overwrite) {
        (true, _) => Mode::Resume,
        (_, true) => Mode::Overwrite,
        _ => Mode::New,
    };
    let run = train(&dataset, &config, &args.out, mode, &device, |epoch| output::note(&line(epoch)))?;
    if args.json {
        output::json(&run.summary)?
    } else {
        output::data(&text(&run.summary))?
    }
    Ok(EXIT_DONE)
}

/// One epoch on one line.
pub(super) fn line(epoch: &Epoch) -> String {
    let auc = epoch.validation.roc_auc.map_or("-".to_owned(), |auc| format!("{auc:.3}"));
    format!(
        "epoch {:3}  train loss {:.4}  validation loss {:.4}  ROC-AUC {auc}{}",
        epoch.epoch,
        epoch.train_loss,
        epoch.validation_loss,
        if epoch.is_best { "  best" } else { "" }
    )
}

fn text(summary: &RunSummary) -> String {
    let best = &summary.best;
    format!(
        "{} epochs; the weights of epoch {} remain: validation loss {:.4}\n",
        summary.epochs, best.epoch, best.validation_loss
    )
}
