//! Tests of pipelines that predict numbers, against scikit-learn's and xgboost's on the same rows.

use std::path::Path;

use poolcast_pipelines::{
    FittedPipeline, HyperParameters, LearnedRows, PIPELINE_FILE, fit_pipeline,
};
use poolcast_tables::{FeatureTable, NumberLoss, RowNumbers, RowTargets};
use rand::Rng as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{assert_close, quick_parameters, written_document};

/// Pipelines that can predict the mean and quantiles of numbers.
const NAMES: [&str; 4] = ["xgb", "rf", "et", "nn"];
/// Pipelines that can predict the mean alone.
const LINEAR: [&str; 3] = ["lasso", "ridge", "enet"];
const MEDIAN: NumberLoss = NumberLoss::Pinball { quantile: 0.5 };

#[derive(Deserialize)]
struct PeerNumbers {
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
    train: usize,
    weights: Vec<f64>,
    cases: Vec<PeerCase>,
}

#[derive(Deserialize)]
struct PeerCase {
    pipeline: String,
    parameters: HyperParameters,
    quantile: Option<f64>,
    is_weighted: bool,
    /// Mean squared error or pinball loss on the test rows.
    loss: f64,
    /// Number of seeds over which `loss` is the mean.
    seeds: u64,
    /// Standard error of the mean `loss`.
    loss_error: f64,
    /// Predictions for the training rows.
    predictions: Option<Vec<f64>>,
}

impl PeerCase {
    fn loss(&self) -> NumberLoss {
        match self.quantile {
            Some(quantile) => NumberLoss::Pinball { quantile },
            None => NumberLoss::Squared,
        }
    }
}

fn peer_numbers() -> PeerNumbers {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pipelines/numbers.json");
    serde_json::from_str(&fs_err::read_to_string(path).expect("read"))
        .expect("as make_numbers.py writes it")
}

/// Returns the training rows and the test rows.
fn train_and_test(peer: &PeerNumbers, loss: NumberLoss) -> [FeatureTable; 2] {
    let table = FeatureTable {
        features: (0..peer.x.len()).map(|at| at.to_string()).collect(),
        x: peer.x.concat(),
        targets: RowTargets::Numbers(RowNumbers {
            y: peer.y.clone(),
            loss,
        }),
        groups: vec![0; peer.y.len()],
    };
    let places: Vec<usize> = (0..peer.y.len()).collect();
    let (train, test) = places.split_at(peer.train);
    [table.select_rows(train), table.select_rows(test)]
}

fn numbers_of(table: &FeatureTable) -> &[f64] {
    match &table.targets {
        RowTargets::Numbers(numbers) => &numbers.y,
        RowTargets::Classes(_) => unreachable!("the rows have numbers"),
    }
}

fn mean_loss(loss: NumberLoss, truth: &[f64], predicted: &[f64]) -> f64 {
    let pairs = truth.iter().zip(predicted);
    let losses = pairs.map(|(truth, predicted)| {
        let error = truth - predicted;
        match loss {
            NumberLoss::Squared => error * error,
            NumberLoss::Pinball { quantile } => (quantile * error).max((quantile - 1.0) * error),
        }
    });
    losses.sum::<f64>() / truth.len() as f64
}

/// Returns each pipeline with each loss that it can minimise.
fn pipelines_and_losses() -> impl Iterator<Item = (&'static str, NumberLoss)> {
    let linear = LINEAR.map(|pipeline| (pipeline, NumberLoss::Squared));
    let others = NAMES.map(|pipeline| [(pipeline, NumberLoss::Squared), (pipeline, MEDIAN)]);
    linear.into_iter().chain(others.into_iter().flatten())
}

fn fit(pipeline: &str, parameters: &Value, table: &FeatureTable) -> FittedPipeline {
    let parameters: HyperParameters =
        serde_json::from_value(parameters.clone()).expect("an object");
    let rows = LearnedRows::from_table(table);
    fit_pipeline(pipeline, &parameters, rows, 1, &|| false).expect("fitted")
}

#[test]
fn every_pipeline_reaches_the_loss_of_its_peer() {
    let peer = peer_numbers();
    for case in &peer.cases {
        let [train, test] = train_and_test(&peer, case.loss());
        let rows = LearnedRows {
            weights: case.is_weighted.then_some(&peer.weights[..]),
            ..LearnedRows::from_table(&train)
        };
        let what = format!(
            "{} {:?} {:?}",
            case.pipeline, case.parameters, case.quantile
        );
        let mut ours = 0.0;
        for seed in 1..=case.seeds {
            let fitted = fit_pipeline(&case.pipeline, &case.parameters, rows, seed, &|| false);
            let fitted = fitted.expect("fitted");
            let predicted = fitted.predict(&test).expect("predicted");
            ours += mean_loss(case.loss(), numbers_of(&test), &predicted) / case.seeds as f64;

            // Without random draws the trees are equal, except for the single precision of xgboost.
            if let Some(theirs) = &case.predictions {
                assert_close(
                    &what,
                    &fitted.predict(&train).expect("predicted"),
                    theirs,
                    1e-3,
                );
            }
        }
        let bound = 0.03 * case.loss + 2.0 * case.loss_error;
        assert!(
            (ours - case.loss).abs() < bound,
            "{what}: {ours}, and theirs is {}",
            case.loss
        );
    }
}

/// Returns a table whose number is a wave of the first feature, with noise that grows with the
/// second.
fn wavy_table(n: usize, loss: NumberLoss) -> FeatureTable {
    let mut generator = poolcast_base::seed::generator(3, "wavy table", &[]);
    let mut column = || {
        (0..n)
            .map(|_| generator.random::<f64>())
            .collect::<Vec<f64>>()
    };
    let (first, second, noise) = (column(), column(), column());
    let number = |row: usize| {
        let wave = (6.0 * first[row]).sin();
        1000.0 + 50.0 * (wave + 4.0 * second[row] * (noise[row] - 0.5))
    };
    FeatureTable {
        features: ["wave", "noise"].map(str::to_owned).to_vec(),
        targets: RowTargets::Numbers(RowNumbers {
            y: (0..n).map(number).collect(),
            loss,
        }),
        x: [first, second].concat(),
        groups: vec![0; n],
    }
}

#[test]
fn quantiles_have_their_share_of_rows_below() {
    for quantile in [0.25, 0.9] {
        let table = wavy_table(2000, NumberLoss::Pinball { quantile });
        let (odd, even): (Vec<usize>, Vec<usize>) = (0..2000).partition(|row| row % 2 == 1);
        let (learned, other) = (table.select_rows(&odd), table.select_rows(&even));
        for (pipeline, parameters) in [
            (
                "xgb",
                json!({"n_estimators": 30, "max_depth": 3, "min_child_weight": 30}),
            ),
            ("rf", json!({"n_estimators": 30, "min_samples_leaf": 30})),
            (
                "et",
                json!({"n_estimators": 30, "min_samples_leaf": 30, "max_features": 1.0}),
            ),
            (
                "nn",
                json!({"hidden_layer_sizes": [16], "max_iter": 60, "learning_rate_init": 0.02, "batch_size": 32}),
            ),
        ] {
            let predicted = fit(pipeline, &parameters, &learned).predict(&other);
            let predicted = predicted.expect("predicted");
            let rows = numbers_of(&other).iter().zip(&predicted);
            let below = rows.filter(|(truth, predicted)| truth < predicted).count();
            let share = below as f64 / predicted.len() as f64;
            assert!(
                (share - quantile).abs() < 0.06,
                "{pipeline}: {share} of {quantile}"
            );
        }
    }
}

#[test]
fn predictions_scale_with_the_numbers() {
    let of = |factor: f64, pipeline: &str, loss: NumberLoss| {
        let mut table = wavy_table(211, loss);
        table.targets = RowTargets::Numbers(RowNumbers {
            y: numbers_of(&table)
                .iter()
                .map(|y| (y - 1000.0) * factor)
                .collect(),
            loss,
        });
        let predicted = fit(pipeline, &quick_parameters(pipeline), &table).predict(&table);
        let predicted = predicted.expect("predicted").into_iter();
        predicted
            .map(|number| number / factor)
            .collect::<Vec<f64>>()
    };
    for pipeline in NAMES {
        for loss in [NumberLoss::Squared, MEDIAN] {
            // A power of two causes no rounding. The factor is above 1, because xgboost takes no
            // gain below 1e-6, so small squares would end its trees earlier.
            let what = format!("{pipeline} {loss:?}");
            let plain = of(1.0, pipeline, loss);
            assert_close(&what, &of(1_048_576.0, pipeline, loss), &plain, 1e-6);
        }
    }
}

#[test]
fn number_pipelines_are_deterministic_and_restored_from_files() {
    for (pipeline, loss) in pipelines_and_losses() {
        let mut parameters = quick_parameters(pipeline);
        parameters["selection"] = json!("forest");
        parameters["selection_n_estimators"] = json!(9);
        let table = wavy_table(211, loss);
        let written = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let dir = tempfile::tempdir().expect("a directory");
            let fitted = pool
                .expect("a pool")
                .install(|| fit(pipeline, &parameters, &table));
            fitted.write(dir.path()).expect("written");
            let read = FittedPipeline::open(dir.path()).expect("sound");
            assert!(read == fitted, "{pipeline}");
            assert_eq!(
                read.predict(&table).expect("predicted"),
                fitted.predict(&table).expect("predicted")
            );
            fs_err::read(dir.path().join(PIPELINE_FILE)).expect("read")
        };
        assert!(written(1) == written(4), "{pipeline}");
    }
}

#[test]
fn number_pipelines_accept_missing_values() {
    for (pipeline, loss) in pipelines_and_losses() {
        let mut table = wavy_table(211, loss);
        table.x.iter_mut().step_by(5).for_each(|x| *x = f64::NAN);
        let fitted = fit(pipeline, &quick_parameters(pipeline), &table);
        let predicted = fitted.predict(&table).expect("predicted");
        assert!(
            predicted.iter().all(|number| number.is_finite()),
            "{pipeline}"
        );
    }
}

#[test]
fn selections_keep_the_feature_that_decides() {
    for selection in [
        json!({"selection": "lasso", "selection_C": 0.02}),
        json!({"selection": "forest", "selection_min_importance": 0.4}),
    ] {
        let mut table = wavy_table(400, NumberLoss::Squared);
        let y: Vec<f64> = table.column(0).iter().map(|x| 1e6 * x).collect();
        table.targets = RowTargets::Numbers(RowNumbers {
            y,
            loss: NumberLoss::Squared,
        });
        let mut parameters = quick_parameters("xgb");
        let chosen = selection.as_object().expect("an object").clone();
        parameters
            .as_object_mut()
            .expect("an object")
            .extend(chosen);
        assert_eq!(
            fit("xgb", &parameters, &table).used_features(),
            [0],
            "{selection}"
        );
    }
}

#[test]
fn constant_number_is_predicted_exactly() {
    // A network needs more epochs than these to forget its initial weights.
    for pipeline in ["xgb", "rf", "et"] {
        for loss in [NumberLoss::Squared, MEDIAN] {
            let mut table = wavy_table(50, loss);
            table.targets = RowTargets::Numbers(RowNumbers {
                y: vec![7.0; 50],
                loss,
            });
            let fitted = fit(pipeline, &quick_parameters(pipeline), &table);
            let predicted = fitted.predict(&table).expect("predicted");
            assert_close(pipeline, &predicted, &[7.0; 50], 1e-9);
        }
    }
    for pipeline in LINEAR {
        let mut table = wavy_table(50, NumberLoss::Squared);
        table.targets = RowTargets::Numbers(RowNumbers {
            y: vec![7.0; 50],
            loss: NumberLoss::Squared,
        });
        let predicted = fit(pipeline, &json!({}), &table).predict(&table);
        assert_close(pipeline, &predicted.expect("predicted"), &[7.0; 50], 1e-9);
    }
}

#[test]
fn untrainable_number_tables_are_rejected() {
    let refusal = |pipeline: &str, parameters: Value, change: &dyn Fn(&mut FeatureTable)| {
        let mut table = wavy_table(50, NumberLoss::Squared);
        change(&mut table);
        let parameters: HyperParameters = serde_json::from_value(parameters).expect("an object");
        let rows = LearnedRows::from_table(&table);
        let error = fit_pipeline(pipeline, &parameters, rows, 1, &|| false);
        poolcast_base::error::render(&error.expect_err("is refused"))
    };
    let nothing = |_: &mut FeatureTable| ();
    let text = refusal("svc", json!({}), &nothing);
    assert!(
        text.contains("the pipeline `svc` cannot predict numbers"),
        "{text}"
    );
    assert!(
        text.contains("pipelines that predict numbers: `lasso`, `ridge`, `enet`, `xgb`"),
        "{text}"
    );
    let text = refusal("lasso", json!({}), &|table| *table = wavy_table(50, MEDIAN));
    assert!(
        text.contains("pipelines that predict quantiles: `xgb`, `rf`"),
        "{text}"
    );
    let text = refusal("rf", json!({"class_weight": "balanced"}), &nothing);
    assert!(text.contains("is for classes, not for numbers"), "{text}");
    let text = refusal("rf", json!({}), &|table| *table = table.select_rows(&[]));
    assert!(text.contains("the table has no rows"), "{text}");
    let text = refusal("rf", json!({}), &|table| {
        table.targets = RowTargets::Numbers(RowNumbers {
            y: vec![f64::INFINITY; 50],
            loss: NumberLoss::Squared,
        });
    });
    assert!(text.contains("not finite"), "{text}");
}

#[test]
fn invalid_forest_files_are_rejected() {
    let table = wavy_table(50, MEDIAN);
    let fitted = fit("rf", &quick_parameters("rf"), &table);
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut document = written_document(&fitted);
        let model = &mut document["body"]["target"]["numbers"]["model"]["forest"];
        change(&mut model["quantile_leaves"]);
        let dir = tempfile::tempdir().expect("a directory");
        let bytes = serde_json::to_vec(&document).expect("JSON");
        fs_err::write(dir.path().join(PIPELINE_FILE), bytes).expect("written");
        let opened = FittedPipeline::open(dir.path());
        format!("{:#}", opened.expect_err("is refused"))
    };
    let text = refusal(&|leaves| leaves["trees"][0]["rows"][0] = json!(50));
    assert!(text.contains("do not match its nodes"), "{text}");
    let text = refusal(&|leaves| leaves["trees"][0]["bounds"][1] = json!(51));
    assert!(text.contains("do not match its nodes"), "{text}");
    let text = refusal(&|leaves| leaves["quantile"] = json!(1.5));
    assert!(text.contains("the quantile is 1.5"), "{text}");
    let text = refusal(&|leaves| leaves["weights"] = json!([1.0]));
    assert!(text.contains("1 weight"), "{text}");
}
