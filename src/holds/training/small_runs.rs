//! Trainings that take less than a second, for tests.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::json;

use super::progress::TrainingUpdate;
use super::settings::TrainingSettings;
use super::train::{RunPlace, StartMode, train};
use crate::events;
use crate::tensors;
use crate::tensors::{Dataset, TensorSettings};
use poolcast_config::Config;
use poolcast_models::Device;

fn config(model: &str) -> Config {
    let keys = BTreeMap::from([
        ("preprocessing.parameters.j", json!(2)),
        ("preprocessing.parameters.m", json!(3)),
        ("preprocessing.parameters.timeframe_len", json!(5)),
        ("training.parameters.model", json!(model)),
        ("training.parameters.hidden_size", json!(3)),
        ("training.parameters.batch_size", json!(8)),
        ("training.checkpoint_minutes", json!(0)),
        ("epochs", json!(3)),
    ]);
    Config::load(None, &keys).expect("a configuration")
}

/// Builds tensors of a few held jobs in `dir`.
pub(super) fn small_dataset(dir: &Path) -> Dataset {
    let store = events::store_of_held_jobs(|job| i64::from(job % 7));
    let settings = TensorSettings::from_config(&config("lstm")).expect("settings");
    let place = dir.join("tensors");
    tensors::build(&store, &settings, "events", &place, false, |_| {}).expect("built");
    Dataset::open(&place).expect("opened")
}

/// Trains a run of `model` on `dataset` in `dir`.
pub(super) fn train_small(dataset: &Dataset, dir: &Path, model: &str) {
    let config = config(model);
    let settings = TrainingSettings::from_config(&config).expect("settings");
    let place = RunPlace {
        dir,
        config: &config,
    };
    let listen = |_: TrainingUpdate<'_>| ControlFlow::Continue(());
    train(
        dataset,
        &settings,
        place,
        StartMode::New,
        &Device::Cpu,
        listen,
    )
    .expect("trained");
}
