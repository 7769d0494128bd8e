//! Test data: the run that W&B's SDK recorded in `tests/data/wandb/offline_records.jsonl`.

use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::tracked_run::{TrackedEpoch, TrackedOutcome, TrackedRun};

/// Returns that run. It has three epochs, and one of its values is NaN.
pub(crate) fn recorded_run() -> TrackedRun {
    let config = json!({
        "lr": 0.01,
        "layers": 3,
        "opt": {"name": "adam", "betas": [0.9, 0.99]},
        "flag": true,
        "none": null,
    });
    let epochs = [
        (0, 1_795_226_144.330_078_1, 1.0, 0.0, 1.0),
        (1, 1_795_226_144.335_607_8, 0.5, 0.1, f64::NAN),
        (2, 1_795_226_144.335_955_9, 1.0 / 3.0, 0.2, 1.0),
    ];
    let mut run = TrackedRun {
        run_id: "run0001".to_owned(),
        name: "demo".to_owned(),
        group: Some("g1".to_owned()),
        tags: vec!["a".to_owned(), "b".to_owned()],
        config: config.as_object().expect("an object").clone(),
        began_s: 1_795_226_143.369_176,
        epochs: Vec::new(),
        summary: Map::new(),
        outcome: TrackedOutcome::Finished,
    };
    for (step, ended_s, loss, acc, nanv) in epochs {
        let values = [
            ("loss", loss),
            ("acc", acc),
            ("nested.x", step as f64),
            ("nanv", nanv),
        ];
        let values: BTreeMap<String, f64> = values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        for (name, value) in &values {
            run.summary.insert(name.clone(), json!(value));
        }
        run.epochs.push(TrackedEpoch {
            step,
            ended_s,
            values,
            system: BTreeMap::new(),
        });
    }
    run.summary.insert("best_loss".to_owned(), json!(0.3333));
    run
}
