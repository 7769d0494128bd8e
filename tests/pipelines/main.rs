//! Tests of the classical pipelines. Their results are compared with scikit-learn's and xgboost's
//! on the same rows (`tests/data/pipelines`). For each pipeline, the same seed gives byte-identical
//! files, and a written file restores the pipeline.

mod numbers;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use poolcast_config::Parameter;
use poolcast_pipelines::{
    FitStopped, FittedPipeline, HyperParameters, ImportanceMeasure, LearnedRows, PIPELINE_FILE,
    PIPELINE_NAMES, ValuesBeyond, check_hyper_parameters, fit_pipeline, hyper_parameter_names,
};
use poolcast_tables::{FeatureTable, RowClasses, RowTargets};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct PeerResults {
    tables: std::collections::BTreeMap<String, PeerRows>,
    cases: Vec<PeerCase>,
}

#[derive(Deserialize)]
struct PeerRows {
    x: Vec<Vec<f64>>,
    y: Vec<u32>,
    train: usize,
}

#[derive(Deserialize)]
struct PeerCase {
    table: String,
    pipeline: String,
    parameters: HyperParameters,
    auc: f64,
    /// Number of seeds over which `auc` is the mean.
    seeds: u64,
    /// Standard error of the mean `auc`.
    auc_error: f64,
    coefficients: Option<Vec<Vec<f64>>>,
    intercepts: Option<Vec<f64>>,
    probabilities: Option<Vec<Vec<f64>>>,
    importances: Option<Vec<f64>>,
}

fn peer_results() -> PeerResults {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pipelines/expected.json");
    serde_json::from_str(&fs_err::read_to_string(path).expect("read"))
        .expect("as make.py writes it")
}

/// Returns the training rows and the test rows.
fn train_and_test(rows: &PeerRows) -> (FeatureTable, FeatureTable) {
    let names = |n: usize| (0..n).map(|at| at.to_string()).collect::<Vec<_>>();
    let class_count = *rows.y.iter().max().expect("rows") as usize + 1;
    let table = FeatureTable {
        features: names(rows.x.len()),
        x: rows.x.concat(),
        targets: RowTargets::Classes(RowClasses {
            names: names(class_count),
            y: rows.y.clone(),
        }),
        groups: vec![0; rows.y.len()],
    };
    let places: Vec<usize> = (0..table.row_count()).collect();
    let (train, test) = places.split_at(rows.train);
    (table.select_rows(train), table.select_rows(test))
}

fn fit_case(case: &PeerCase, table: &FeatureTable, seed: u64) -> FittedPipeline {
    let rows = LearnedRows::from_table(table);
    fit_pipeline(&case.pipeline, &case.parameters, rows, seed, &|| false).expect("fitted")
}

/// Number of rows of a quick fit, more of them of one class.
const QUICK_ROWS: usize = 103;

/// Fits the pipeline with these hyper-parameters on few rows.
fn fit_small(pipeline: &str, parameters: Value) -> FittedPipeline {
    let (table, _) = train_and_test(&peer_results().tables["two"]);
    let table = table.select_rows(&(0..QUICK_ROWS).collect::<Vec<_>>());
    let parameters = serde_json::from_value(parameters).expect("an object");
    fit_pipeline(
        pipeline,
        &parameters,
        LearnedRows::from_table(&table),
        1,
        &|| false,
    )
    .expect("fitted")
}

/// Hyper-parameters with which each pipeline is fitted quickly.
fn quick_parameters(pipeline: &str) -> Value {
    match pipeline {
        "xgb" | "rf" | "et" => json!({"n_estimators": 8}),
        "nn" => json!({"max_iter": 3, "hidden_layer_sizes": [8]}),
        _ => json!({}),
    }
}

/// Hyper-parameters with which every step of a fit sees all rows and draws none at random.
fn whole_parameters(pipeline: &str) -> Value {
    match pipeline {
        // Large leaves, so that no two columns tie for a split.
        "xgb" => json!({
            "n_estimators": 12, "subsample": 1.0, "colsample_bytree": 1.0, "max_depth": 2, "min_child_weight": 4.0
        }),

        "nn" => json!({
            "max_iter": 30, "hidden_layer_sizes": [8], "batch_size": 4096, "alpha": 0.0, "scaler": "none"
        }),
        _ => json!({"scaler": "none"}),
    }
}

/// A weight means the same as in scikit-learn and xgboost. `svc`, `rf` and `et` are skipped: the
/// sigmoids of `svc` and the forests draw random rows, so their fits depend on the number of rows.
#[test]
fn weight_of_two_is_equivalent_to_a_repeated_row() {
    let (table, test) = train_and_test(&peer_results().tables["two"]);
    let rows: Vec<usize> = (0..120).collect();
    let mut twice = rows.clone();
    twice.extend(rows.iter().step_by(3));
    let mut counts = vec![0.0; rows.len()];
    for row in &twice {
        counts[*row] += 1.0;
    }
    let once = table.select_rows(&rows);
    let repeated = table.select_rows(&twice);

    for pipeline in ["lasso", "ridge", "enet", "xgb", "nn"] {
        let parameters: HyperParameters =
            serde_json::from_value(whole_parameters(pipeline)).expect("an object");
        let fit = |table: &FeatureTable, weights: Option<&[f64]>| {
            let rows = LearnedRows {
                weights,
                ..LearnedRows::from_table(table)
            };
            let fitted = fit_pipeline(pipeline, &parameters, rows, 1, &|| false);
            fitted
                .expect("fitted")
                .predict(&test)
                .expect("probabilities")
        };
        assert_close(
            pipeline,
            &fit(&once, Some(&counts)),
            &fit(&repeated, None),
            1e-3,
        );
        let apart = fit(&once, None)
            .iter()
            .zip(fit(&repeated, None))
            .any(|(a, b)| (a - b).abs() > 0.01);
        assert!(apart, "{pipeline}: the weights matter");
    }
}

#[test]
fn weights_of_one_have_no_effect_and_wrong_counts_are_rejected() {
    let (table, _) = train_and_test(&peer_results().tables["two"]);
    for pipeline in PIPELINE_NAMES {
        let parameters = serde_json::from_value(quick_parameters(pipeline)).expect("an object");
        let fit = |weights: Option<&[f64]>| {
            let rows = LearnedRows {
                weights,
                ..LearnedRows::from_table(&table)
            };
            fit_pipeline(pipeline, &parameters, rows, 1, &|| false)
        };
        let once = vec![1.0; table.row_count()];
        assert_eq!(
            fit(Some(&once)).expect("fitted"),
            fit(None).expect("fitted"),
            "{pipeline}"
        );
        let mut more = once.clone();
        more[3] = 7.5;
        assert_ne!(
            fit(Some(&more)).expect("fitted"),
            fit(None).expect("fitted"),
            "{pipeline}"
        );
        let refused = fit(Some(&once[1..])).expect_err("refused");
        assert!(
            format!("{refused:#}").contains("weights for"),
            "{refused:#}"
        );
    }
}

/// Writes the pipeline and returns its file as JSON.
fn written_document(fitted: &FittedPipeline) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    fitted.write(dir.path()).expect("written");
    serde_json::from_slice(&fs_err::read(dir.path().join(PIPELINE_FILE)).expect("read"))
        .expect("JSON")
}

fn assert_close(what: &str, ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (place, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert!(
            (ours - theirs).abs() < tolerance,
            "{what} at {place}: {ours}, and theirs is {theirs}"
        );
    }
}

fn as_numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|number| number.as_f64().expect("a number"))
        .collect()
}

/// Returns the probability that a row of class `class` gets a larger probability of that class than
/// another row. Ties count half.
fn one_class_auc(class: u32, probabilities: &[f64], classes: usize, y: &[u32]) -> f64 {
    let of = |own: bool| {
        let rows = y
            .iter()
            .enumerate()
            .filter(move |(_, y)| (**y == class) == own);
        rows.map(|(row, _)| probabilities[row * classes + class as usize])
            .collect::<Vec<_>>()
    };
    let (own, others) = (of(true), of(false));
    let wins = |a: f64| {
        others
            .iter()
            .map(|b| {
                if a > *b {
                    1.0
                } else {
                    f64::from(a == *b) / 2.0
                }
            })
            .sum::<f64>()
    };
    own.iter().map(|a| wins(*a)).sum::<f64>() / (own.len() * others.len()) as f64
}

/// Computes the ROC-AUC like scikit-learn: for two classes the AUC of the second class, for more
/// classes the mean AUC of each class against the rest.
fn auc(probabilities: &[f64], classes: usize, y: &[u32]) -> f64 {
    let of = |class| one_class_auc(class, probabilities, classes, y);
    if classes == 2 {
        of(1)
    } else {
        (0..classes as u32).map(of).sum::<f64>() / classes as f64
    }
}

#[test]
fn logistic_regressions_have_the_coefficients_of_scikit_learn() {
    let expected = peer_results();
    let logistic = expected
        .cases
        .iter()
        .filter_map(|case| Some((case, case.probabilities.as_ref()?)));
    let mut compared = (0, 0);
    for (case, probabilities) in logistic {
        let what = format!("{} {} {:?}", case.table, case.pipeline, case.parameters);
        let (train, test) = train_and_test(&expected.tables[&case.table]);
        let fitted = fit_case(case, &train, 1);
        let model = &written_document(&fitted)["body"]["target"]["classes"]["model"]["logistic"];
        // The sign of a component is arbitrary, and so is the sign of its coefficient. Cases with
        // components have no expected coefficients.
        if let Some(coefficients) = &case.coefficients {
            assert_close(
                &what,
                &as_numbers(&model["weights"]),
                &coefficients.concat(),
                5e-5,
            );
            assert_close(
                &what,
                &as_numbers(&model["intercepts"]),
                case.intercepts.as_ref().expect("intercepts"),
                5e-5,
            );
            compared.1 += 1;
        }
        let probabilities = probabilities.concat();
        let ours = fitted.predict(&test).expect("scored");
        assert_close(&what, &ours[..probabilities.len()], &probabilities, 5e-5);
        compared.0 += 1;
    }
    assert_eq!(compared, (24, 20));
}

#[test]
fn split_gain_importances_match_xgboost_and_scikit_learn() {
    let expected = peer_results();
    let mut compared = 0;
    for case in &expected.cases {
        let Some(theirs) = &case.importances else {
            continue;
        };
        let (train, _) = train_and_test(&expected.tables[&case.table]);
        let ours = fit_case(case, &train, 1)
            .importances()
            .expect("trees have them");
        assert_eq!(ours.measure, ImportanceMeasure::SplitGain);
        let what = format!("{} {} {:?}", case.table, case.pipeline, case.parameters);
        assert!(
            (ours.values.iter().sum::<f64>() - 1.0).abs() < 1e-9,
            "{what}"
        );
        assert_close(&what, &ours.values, theirs, 0.06);
        compared += 1;
    }
    assert_eq!(compared, 8);
}

/// Ten components of ten columns are a rotation of the columns, and an L2 penalty does not change
/// under rotation.
#[test]
fn coefficients_of_components_are_mapped_to_columns() {
    let of = |parameters: Value| {
        fit_small("ridge", parameters)
            .importances()
            .expect("coefficients")
            .values
    };
    let plain = of(json!({"scaler": "none"}));
    let turned = of(json!({"scaler": "none", "selection": "svd", "selection_n_components": 10}));
    let (table, _) = train_and_test(&peer_results().tables["two"]);
    for (at, (plain, turned)) in plain.iter().zip(turned).enumerate() {
        let column = &table.column(at)[..QUICK_ROWS];
        let mean = column.iter().sum::<f64>() / QUICK_ROWS as f64;
        let spread = (column
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / QUICK_ROWS as f64)
            .sqrt();
        assert!(
            (plain * spread - turned).abs() < 1e-3 * (1.0 + turned.abs()),
            "{at}: {} {turned}",
            plain * spread
        );
    }
}

#[test]
fn importances_refer_to_the_columns_of_the_table() {
    let of = |pipeline: &str, parameters: Value| {
        let fitted = fit_small(pipeline, parameters);
        (fitted.importances(), fitted.used_features())
    };
    let selection = json!({"selection": "forest", "selection_min_importance": 0.1});
    for pipeline in ["lasso", "ridge", "enet", "xgb", "rf", "et"] {
        let (importances, used) = of(pipeline, merged(&quick_parameters(pipeline), &selection));
        let importances = importances.expect("they have them");
        assert!(
            (1..10).contains(&used.len()) && importances.values.len() == 10,
            "{pipeline}: {used:?}"
        );
        assert!(
            importances
                .ranked()
                .iter()
                .all(|place| used.contains(place)),
            "{pipeline}: {importances:?}"
        );
        let sizes: Vec<f64> = importances
            .ranked()
            .iter()
            .map(|place| importances.values[*place].abs())
            .collect();
        assert!(
            !sizes.is_empty() && sizes.is_sorted_by(|a, b| a >= b),
            "{pipeline}: {sizes:?}"
        );
    }
    assert!(of("svc", json!({"kernel": "linear"})).0.is_some());
    assert!(of("svc", json!({})).0.is_none() && of("nn", quick_parameters("nn")).0.is_none());
}

#[test]
fn every_pipeline_reaches_the_auc_of_its_peer() {
    let expected = peer_results();
    for case in &expected.cases {
        let (train, test) = train_and_test(&expected.tables[&case.table]);
        let of = |seed| {
            let probabilities = fit_case(case, &train, seed).predict(&test).expect("scored");
            auc(&probabilities, test.targets.width(), test.targets.classes())
        };
        let ours = (1..=case.seeds).map(of).sum::<f64>() / case.seeds as f64;
        let what = format!("{} {} {:?}", case.table, case.pipeline, case.parameters);
        assert!(
            (ours - case.auc).abs() < 0.01 + 2.0 * case.auc_error,
            "{what}: {ours}, and theirs is {}",
            case.auc
        );
    }
}

/// Returns for each hyper-parameter its name, a value other than the default, and the other
/// parameters that it needs to have an effect.
fn parameter_changes() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("scaler", json!("minmax"), json!({})),
        ("class_weight", json!("balanced"), json!({})),
        // Boosted and extremely randomised trees take missing values as they are, but components do not.
        ("imputer", json!("mean"), json!({"selection": "svd"})),
        ("C", json!(0.3), json!({})),
        ("l1_ratio", json!(0.9), json!({})),
        ("kernel", json!("linear"), json!({})),
        ("gamma", json!(0.3), json!({})),
        ("n_estimators", json!(9), json!({})),
        ("max_depth", json!(2), json!({})),
        ("learning_rate", json!(0.05), json!({})),
        ("solver", json!("sgd"), json!({})),
        (
            "selection_n_components",
            json!(3),
            json!({"selection": "svd"}),
        ),
        ("reg_lambda", json!(5.0), json!({})),
        ("reg_alpha", json!(0.5), json!({})),
        ("min_child_weight", json!(4.0), json!({})),
        ("subsample", json!(0.5), json!({})),
        ("colsample_bytree", json!(0.5), json!({})),
        ("min_samples_leaf", json!(9), json!({})),
        ("max_features", json!(0.9), json!({})),
        ("hidden_layer_sizes", json!([5, 4]), json!({})),
        ("activation", json!("tanh"), json!({})),
        ("alpha", json!(0.5), json!({})),
        ("learning_rate_init", json!(0.02), json!({})),
        ("batch_size", json!(16), json!({})),
        ("max_iter", json!(4), json!({})),
        (
            "selection",
            json!("lasso"),
            json!({"selection_min_coefficient": 0.1}),
        ),
        (
            "selection_threshold",
            json!(2.0),
            json!({"selection": "threshold"}),
        ),
        (
            "selection_mode",
            json!("soft"),
            json!({"selection": "threshold", "selection_threshold": 0.5}),
        ),
        ("selection_C", json!(0.1), json!({"selection": "lasso"})),
        (
            "selection_min_coefficient",
            json!(0.3),
            json!({"selection": "lasso"}),
        ),
        (
            "selection_n_estimators",
            json!(1),
            json!({"selection": "forest", "selection_min_importance": 0.1}),
        ),
        (
            "selection_min_importance",
            json!(0.1),
            json!({"selection": "forest"}),
        ),
    ]
}

/// Merges two objects. Values of `more` win.
fn merged(base: &Value, more: &Value) -> Value {
    let mut all = base.as_object().expect("an object").clone();
    all.extend(more.as_object().expect("an object").clone());
    Value::Object(all)
}

#[test]
fn every_hyper_parameter_has_an_effect() {
    let learnt = |pipeline: &str, parameters: Value| {
        let body = written_document(&fit_small(pipeline, parameters))["body"].clone();
        (body["steps"].clone(), body["target"].clone())
    };
    for pipeline in PIPELINE_NAMES {
        for name in hyper_parameter_names(pipeline).expect("a pipeline") {
            let change = parameter_changes()
                .into_iter()
                .find(|(known, ..)| *known == name);
            let change = match (pipeline, name) {
                // Shrinking gives the same machine in less time: src/pipelines/solvers/smo.rs.
                ("svc", "shrinking") => continue,
                ("nn", "learning_rate") => Some(("", json!("invscaling"), json!({}))),
                _ => change,
            };
            let (_, value, base) =
                change.unwrap_or_else(|| panic!("no change of `{name}` is tried"));
            let base = merged(&quick_parameters(pipeline), &base);
            let changed = merged(&base, &json!({ name: value }));
            assert!(
                learnt(pipeline, base) != learnt(pipeline, changed),
                "`{name}` of `{pipeline}` has no effect"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for pipeline in PIPELINE_NAMES {
        let bytes = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a pool");
            let parameters = merged(
                &quick_parameters(pipeline),
                &json!({"selection": "forest", "selection_n_estimators": 9}),
            );
            let dir = tempfile::tempdir().expect("a directory");
            pool.install(|| fit_small(pipeline, parameters))
                .write(dir.path())
                .expect("written");
            fs_err::read(dir.path().join(PIPELINE_FILE)).expect("read")
        };
        assert!(bytes(1) == bytes(4), "{pipeline}");
    }
}

#[test]
fn written_file_restores_the_pipeline() {
    let (_, test) = train_and_test(&peer_results().tables["two"]);
    for pipeline in PIPELINE_NAMES {
        let fitted = fit_small(pipeline, quick_parameters(pipeline));
        let dir = tempfile::tempdir().expect("a directory");
        fitted.write(dir.path()).expect("written");
        let read = FittedPipeline::open(dir.path()).expect("sound");
        assert!(read == fitted, "{pipeline}");
        let scored = |fitted: &FittedPipeline| fitted.predict(&test).expect("scored");
        assert_eq!(scored(&read), scored(&fitted));
        for row in scored(&read).chunks_exact(2) {
            assert!(
                (row[0] + row[1] - 1.0).abs() < 1e-12 && row[0] >= 0.0 && row[1] >= 0.0,
                "{pipeline}: {row:?}"
            );
        }
    }
}

#[test]
fn invalid_pipeline_files_are_rejected() {
    let refusal = |change: fn(&mut Value)| {
        let mut document = written_document(&fit_small("xgb", quick_parameters("xgb")));
        change(&mut document);
        let dir = tempfile::tempdir().expect("a directory");
        fs_err::write(
            dir.path().join(PIPELINE_FILE),
            serde_json::to_vec(&document).expect("JSON"),
        )
        .expect("written");
        format!(
            "{:#}",
            FittedPipeline::open(dir.path()).expect_err("is refused")
        )
    };
    assert!(
        refusal(|document| document["format_version"] = json!(4)).contains(
            "is pipeline format version 4, and this program reads pipeline format version 5"
        )
    );
    let one_class =
        |document: &mut Value| document["body"]["target"]["classes"]["present"] = json!([0]);
    assert!(refusal(one_class).contains("two or more"));
    assert!(
        refusal(|document| document["body"]["steps"]["columns"][0]["place"] = json!(10))
            .contains("a column is not below 10")
    );
    assert!(
        refusal(|document| document["body"]["steps"]["columns"] = json!([]))
            .contains("the model has no columns")
    );
    let stray = |document: &mut Value| {
        document["body"]["target"]["classes"]["model"]["boosted"]["trees"][0]["features"][0] =
            json!(77)
    };
    assert!(refusal(stray).contains("a node of a tree is out of range"));
}

#[test]
fn fit_stops_on_request() {
    let (table, _) = train_and_test(&peer_results().tables["two"]);
    for pipeline in PIPELINE_NAMES {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) == 2;
        let rows = LearnedRows::from_table(&table);
        let error =
            fit_pipeline(pipeline, &HyperParameters::new(), rows, 1, &stop).expect_err("stopped");
        assert!(error.is::<FitStopped>(), "{pipeline}: {error}");
    }
}

#[test]
fn clipped_pipeline_limits_values_to_the_training_range() {
    let (table, _) = train_and_test(&peer_results().tables["two"]);
    let n = table.row_count();
    let mut ends = table.clone();
    let mut beyond = table.clone();
    for place in 0..table.column_count() {
        let column = &table.x[place * n..(place + 1) * n];
        let highest = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        ends.x[place * n..(place + 1) * n].fill(highest);
        beyond.x[place * n..(place + 1) * n].fill(1000.0 + highest);
    }

    for pipeline in PIPELINE_NAMES {
        let parameters = serde_json::from_value(quick_parameters(pipeline)).expect("an object");
        let fit = |rows: LearnedRows<'_>| {
            fit_pipeline(pipeline, &parameters, rows, 1, &|| false).expect("fitted")
        };
        let kept = fit(LearnedRows::from_table(&table));
        let clipped = fit(LearnedRows {
            beyond: ValuesBeyond::Clipped,
            ..LearnedRows::from_table(&table)
        });
        let of = |fitted: &FittedPipeline, table: &FeatureTable| {
            fitted.predict(table).expect("probabilities")
        };
        assert_eq!(of(&clipped, &table), of(&kept, &table), "{pipeline}");
        assert_eq!(of(&clipped, &beyond), of(&kept, &ends), "{pipeline}");
        let is_of_trees = matches!(pipeline, "xgb" | "rf" | "et");
        let is_same = of(&kept, &beyond) == of(&kept, &ends);
        assert_eq!(is_same, is_of_trees, "{pipeline}");
    }
}

#[test]
fn pipelines_accept_missing_values() {
    let (mut table, mut test) = train_and_test(&peer_results().tables["two"]);
    // Missing are every fifth number of the first feature, and the whole second feature.
    let n = table.row_count();
    table.x[..n]
        .iter_mut()
        .step_by(5)
        .for_each(|value| *value = f64::NAN);
    table.x[n..2 * n].fill(f64::NAN);
    test.x
        .iter_mut()
        .step_by(7)
        .for_each(|value| *value = f64::NAN);
    for pipeline in PIPELINE_NAMES {
        let parameters = serde_json::from_value(quick_parameters(pipeline)).expect("an object");
        let fitted = fit_pipeline(
            pipeline,
            &parameters,
            LearnedRows::from_table(&table),
            1,
            &|| false,
        )
        .expect("fitted");
        let probabilities = fitted.predict(&test).expect("scored");
        assert!(
            probabilities.iter().all(|p| (0.0..=1.0).contains(p)),
            "{pipeline}"
        );
    }
}

#[test]
fn a_class_without_rows_has_probability_zero() {
    let (mut table, test) = train_and_test(&peer_results().tables["two"]);
    let names = ["never", "0", "1"].map(str::to_owned).to_vec();
    let y = table.targets.classes().iter().map(|class| class + 1);
    table.targets = RowTargets::Classes(RowClasses {
        names,
        y: y.collect(),
    });
    for pipeline in PIPELINE_NAMES {
        let parameters: HyperParameters =
            serde_json::from_value(quick_parameters(pipeline)).expect("an object");
        let fitted = fit_pipeline(
            pipeline,
            &parameters,
            LearnedRows::from_table(&table),
            1,
            &|| false,
        )
        .expect("fitted");
        let rows = fitted.predict(&test).expect("scored");
        assert!(
            rows.chunks_exact(3)
                .all(|row| row[0] == 0.0 && (row[1] + row[2] - 1.0).abs() < 1e-12),
            "{pipeline}"
        );
    }
}

#[test]
fn untrainable_tables_are_rejected() {
    let (table, test) = train_and_test(&peer_results().tables["two"]);
    let refusal = |change: &dyn Fn(&mut FeatureTable)| {
        let mut table = table.clone();
        change(&mut table);
        format!(
            "{:#}",
            fit_pipeline(
                "lasso",
                &HyperParameters::new(),
                LearnedRows::from_table(&table),
                1,
                &|| false
            )
            .expect_err("is refused")
        )
    };
    assert_eq!(
        refusal(&|table| {
            table.targets = RowTargets::Classes(RowClasses {
                names: table.targets.class_names().to_vec(),
                y: vec![1; table.row_count()],
            })
        }),
        "every row has class `1`; a model needs at least two classes"
    );
    assert_eq!(
        refusal(&|table| *table = table.select_rows(&[])),
        "the table has no rows"
    );
    assert_eq!(
        refusal(&|table| table.x[3] = f64::INFINITY),
        "feature `0` has an infinite value"
    );
    let none = json!({"selection": "lasso", "selection_C": 1e-6});
    let error = fit_pipeline(
        "lasso",
        &serde_json::from_value(none).expect("an object"),
        LearnedRows::from_table(&table),
        1,
        &|| false,
    );
    assert!(
        format!("{:#}", error.expect_err("is refused"))
            .contains("the selection keeps none of 10 features")
    );
    let mut other = test.clone();
    other.features.swap(0, 1);
    let error = fit_small("lasso", json!({}))
        .predict(&other)
        .expect_err("is refused");
    assert_eq!(
        error.to_string(),
        "feature 1 is `1`, expected `0` as in the training table"
    );
}

#[derive(Deserialize)]
struct SpacesFile {
    pipelines: std::collections::BTreeMap<String, SearchSpace>,
}

#[derive(Deserialize)]
struct SearchSpace {
    parameters: std::collections::BTreeMap<String, Parameter>,
}

#[test]
fn bundled_search_spaces_have_valid_values() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/pipelines.yaml");
    let spaces: SpacesFile =
        poolcast_config::yaml::read(&fs_err::read_to_string(path).expect("read"))
            .expect("search spaces");
    assert_eq!(
        spaces
            .pipelines
            .keys()
            .collect::<std::collections::BTreeSet<_>>(),
        PIPELINE_NAMES.map(String::from).iter().collect()
    );
    for (pipeline, space) in spaces.pipelines {
        for step in 0..=20 {
            let draw = |parameter: &Parameter| match parameter {
                Parameter::Constant(value) => value.clone(),
                Parameter::Drawn(distribution) => distribution.draw(f64::from(step) / 20.0),
            };
            let parameters = space
                .parameters
                .iter()
                .map(|(name, parameter)| (name.clone(), draw(parameter)))
                .collect();
            check_hyper_parameters(&pipeline, &parameters)
                .unwrap_or_else(|error| panic!("{}", poolcast_base::error::render(&error)));
        }
    }
}
