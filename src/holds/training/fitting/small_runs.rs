//! Trainings that take less than a second, for tests.

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::json;

use super::progress::TrainingUpdate;
use super::train::{RunLocation, StartMode, train};
use crate::test_config::TestConfig;
use poolcast_models::Device;
use poolcast_tensors as tensors;
use poolcast_tensors::Dataset;
use test_stores::store_of_held_jobs;

fn config(model: &str) -> TestConfig {
    TestConfig::load(&[
        ("preprocessing.parameters.j", json!(2)),
        ("preprocessing.parameters.m", json!(3)),
        ("preprocessing.parameters.timeframe_len", json!(5)),
        ("preprocessing.outcomes", json!(true)),
        ("training.parameters.model", json!(model)),
        ("training.parameters.hidden_size", json!(3)),
        ("training.parameters.batch_size", json!(8)),
        ("training.checkpoint_minutes", json!(0)),
        ("epochs", json!(3)),
    ])
}

/// Builds tensors of a few held jobs in `dir`.
pub(crate) fn small_dataset(dir: &Path) -> Dataset {
    let store = store_of_held_jobs(|job| i64::from(job % 7));
    let settings = config("lstm").tensor_settings();
    let place = dir.join("tensors");
    tensors::build(&store, &settings, "events", &place, false, None, |_| {}).expect("built");
    Dataset::open(&place).expect("opened")
}

/// Trains a run of `model` on `dataset` in `dir`.
pub(crate) fn train_small(dataset: &Dataset, dir: &Path, model: &str) {
    let config = config(model);
    let settings = config.training_settings();
    let place = RunLocation {
        dir,
        config: &config.resolved(),
        checkpoint_minutes: config.training.checkpoint_minutes,
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
