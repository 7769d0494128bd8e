//! Classical pipelines beside scikit-learn's and xgboost's on the same rows (`tests/data/pipelines`), and what holds for
//! each of them: the same seed gives the same bytes, and a file gives back what was written.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use poolcast::config::Parameter;
use poolcast::pipelines::{FILE, Fitted, PIPELINES, Parameters, Stopped, check, fit, names};
use poolcast::tables::Table;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Expected {
    tables: std::collections::BTreeMap<String, Rows>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Rows {
    x: Vec<Vec<f64>>,
    y: Vec<u32>,
    train: usize,
}

#[derive(Deserialize)]
struct Case {
    table: String,
    pipeline: String,
    parameters: Parameters,
    auc: f64,
    /// Over as many the AUC is the mean.
    seeds: u64,
    coefficients: Option<Vec<Vec<f64>>>,
    intercepts: Option<Vec<f64>>,
    probabilities: Option<Vec<Vec<f64>>>,
}

fn expected() -> Expected {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pipelines/expected.json");
    serde_json::from_str(&fs_err::read_to_string(path).expect("read")).expect("as make.py writes it")
}

/// The training rows and the others.
fn tables(rows: &Rows) -> (Table, Table) {
    let names = |n: usize| (0..n).map(|at| at.to_string()).collect::<Vec<_>>();
    let classes = *rows.y.iter().max().expect("rows") as usize + 1;
    let table = Table {
        features: names(rows.x.len()),
        x: rows.x.concat(),
        y: rows.y.clone(),
        classes: names(classes),
        groups: vec![0; rows.y.len()],
    };
    let places: Vec<usize> = (0..table.n()).collect();
    let (train, test) = places.split_at(rows.train);
    (table.rows(train), table.rows(test))
}

fn fitted(case: &Case, table: &Table, seed: u64) -> Fitted {
    fit(&case.pipeline, &case.parameters, table, seed, &|| false).expect("fitted")
}

/// The pipeline with these hyper-parameters on a hundred rows.
fn small(pipeline: &str, parameters: Value) -> Fitted {
    let (table, _) = tables(&expected().tables["two"]);
    let table = table.rows(&(0..100).collect::<Vec<_>>());
    let parameters = serde_json::from_value(parameters).expect("an object");
    fit(pipeline, &parameters, &table, 1, &|| false).expect("fitted")
}

/// Hyper-parameters under which each pipeline is quickly fitted.
fn quick(pipeline: &str) -> Value {
    match pipeline {
        "xgb" | "rf" => json!({"n_estimators": 8}),
        "nn" => json!({"max_iter": 3, "hidden_layer_sizes": [8]}),
        _ => json!({}),
    }
}

/// The file of a pipeline.
fn file(fitted: &Fitted) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    fitted.write(dir.path()).expect("written");
    serde_json::from_slice(&fs_err::read(dir.path().join(FILE)).expect("read")).expect("JSON")
}

fn close(what: &str, ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (place, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert!((ours - theirs).abs() < tolerance, "{what} at {place}: {ours}, and theirs is {theirs}");
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// The chance that a row of class `class` is given a larger probability of it than another row, ties counting half.
fn auc_of(class: u32, probabilities: &[f64], classes: usize, y: &[u32]) -> f64 {
    let of = |own: bool| {
        let rows = y.iter().enumerate().filter(move |(_, y)| (**y == class) == own);
        rows.map(|(row, _)| probabilities[row * classes + class as usize]).collect::<Vec<_>>()
    };
    let (own, others) = (of(true), of(false));
    let wins = |a: f64| others.iter().map(|b| if a > *b { 1.0 } else { f64::from(a == *b) / 2.0 }).sum::<f64>();
    own.iter().map(|a| wins(*a)).sum::<f64>() / (own.len() * others.len()) as f64
}

/// As scikit-learn takes it: of two classes that of the second, of more the mean of each against the rest.
fn auc(probabilities: &[f64], classes: usize, y: &[u32]) -> f64 {
    let of = |class| auc_of(class, probabilities, classes, y);
    if classes == 2 { of(1) } else { (0..classes as u32).map(of).sum::<f64>() / classes as f64 }
}

#[test]
fn logistic_regressions_have_the_coefficients_of_scikit_learn() {
    let expected = expected();
    let logistic = expected.cases.iter().filter_map(|case| Some((case, case.coefficients.as_ref()?)));
    let mut compared = 0;
    for (case, coefficients) in logistic {
        let what = format!("{} {} {:?}", case.table, case.pipeline, case.parameters);
        let (train, test) = tables(&expected.tables[&case.table]);
        let fitted = fitted(case, &train, 1);
        let model = &file(&fitted)["body"]["model"]["logistic"];
        close(&what, &numbers(&model["weights"]), &coefficients.concat(), 5e-5);
        close(&what, &numbers(&model["intercepts"]), case.intercepts.as_ref().expect("intercepts"), 5e-5);
        let probabilities = case.probabilities.as_ref().expect("probabilities").concat();
        let ours = fitted.probabilities(&test).expect("scored");
        close(&what, &ours[..probabilities.len()], &probabilities, 5e-5);
        compared += 1;
    }
    assert_eq!(compared, 12);
}

#[test]
fn every_pipeline_tells_classes_apart_as_well_as_its_peer() {
    let expected = expected();
    for case in &expected.cases {
        let (train, test) = tables(&expected.tables[&case.table]);
        let of = |seed| {
            let probabilities = fitted(case, &train, seed).probabilities(&test).expect("scored");
            auc(&probabilities, test.classes.len(), &test.y)
        };
        let ours = (1..=case.seeds).map(of).sum::<f64>() / case.seeds as f64;
        let what = format!("{} {} {:?}", case.table, case.pipeline, case.parameters);
        assert!((ours - case.auc).abs() < 0.01, "{what}: {ours}, and theirs is {}", case.auc);
    }
}

/// For each hyper-parameter, a value that is not the default, and what must be chosen for it to matter.
fn changes() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("scaler", json!("minmax"), json!({})),
        ("C", json!(0.3), json!({})),
        ("l1_ratio", json!(0.9), json!({})),
        ("kernel", json!("linear"), json!({})),
        ("gamma", json!(0.3), json!({})),
        ("n_estimators", json!(9), json!({})),
        ("max_depth", json!(2), json!({})),
        ("learning_rate", json!(0.05), json!({})),
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
        ("selection", json!("lasso"), json!({"selection_min_coefficient": 0.1})),
        ("selection_threshold", json!(2.0), json!({"selection": "threshold"})),
        ("selection_mode", json!("soft"), json!({"selection": "threshold", "selection_threshold": 0.5})),
        ("selection_C", json!(0.1), json!({"selection": "lasso"})),
        ("selection_min_coefficient", json!(0.3), json!({"selection": "lasso"})),
        ("selection_n_estimators", json!(1), json!({"selection": "forest", "selection_min_importance": 0.1})),
        ("selection_min_importance", json!(0.1), json!({"selection": "forest"})),
    ]
}

/// One object of both, the later winning.
fn with(base: &Value, more: &Value) -> Value {
    let mut all = base.as_object().expect("an object").clone();
    all.extend(more.as_object().expect("an object").clone());
    Value::Object(all)
}

#[test]
fn every_hyper_parameter_has_an_effect() {
    let learnt = |pipeline: &str, parameters: Value| {
        let body = file(&small(pipeline, parameters))["body"].clone();
        (body["steps"].clone(), body["model"].clone())
    };
    for pipeline in PIPELINES {
        for name in names(pipeline).expect("a pipeline") {
            let change = changes().into_iter().find(|(known, ..)| *known == name);
            let (_, value, base) = change.unwrap_or_else(|| panic!("no change of `{name}` is tried"));
            let base = with(&quick(pipeline), &base);
            let changed = with(&base, &json!({ name: value }));
            assert!(learnt(pipeline, base) != learnt(pipeline, changed), "`{name}` of `{pipeline}` has no effect");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    for pipeline in PIPELINES {
        let bytes = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let parameters = with(&quick(pipeline), &json!({"selection": "forest", "selection_n_estimators": 9}));
            let dir = tempfile::tempdir().expect("a directory");
            pool.install(|| small(pipeline, parameters)).write(dir.path()).expect("written");
            fs_err::read(dir.path().join(FILE)).expect("read")
        };
        assert!(bytes(1) == bytes(4), "{pipeline}");
    }
}

#[test]
fn a_file_gives_back_what_was_written() {
    let (_, test) = tables(&expected().tables["two"]);
    for pipeline in PIPELINES {
        let fitted = small(pipeline, quick(pipeline));
        let dir = tempfile::tempdir().expect("a directory");
        fitted.write(dir.path()).expect("written");
        let read = Fitted::open(dir.path()).expect("sound");
        assert!(read == fitted, "{pipeline}");
        let scored = |fitted: &Fitted| fitted.probabilities(&test).expect("scored");
        assert_eq!(scored(&read), scored(&fitted));
        for row in scored(&read).chunks_exact(2) {
            assert!((row[0] + row[1] - 1.0).abs() < 1e-12 && row[0] >= 0.0 && row[1] >= 0.0, "{pipeline}: {row:?}");
        }
    }
}

#[test]
fn files_that_are_not_sound_are_refused() {
    let refusal = |change: fn(&mut Value)| {
        let mut document = file(&small("xgb", quick("xgb")));
        change(&mut document);
        let dir = tempfile::tempdir().expect("a directory");
        fs_err::write(dir.path().join(FILE), serde_json::to_vec(&document).expect("JSON")).expect("written");
        format!("{:#}", Fitted::open(dir.path()).expect_err("is refused"))
    };
    assert!(refusal(|document| document["format_version"] = json!(9)).contains("format version 9"));
    assert!(refusal(|document| document["body"]["present"] = json!([0])).contains("two or more"));
    assert!(refusal(|document| document["body"]["steps"]["columns"][0]["place"] = json!(10)).contains("one of its 10"));
    let stray = |document: &mut Value| document["body"]["model"]["boosted"]["trees"][0]["features"][0] = json!(77);
    assert!(refusal(stray).contains("leads outside itself"));
}

#[test]
fn a_wish_to_stop_is_heard() {
    let (table, _) = tables(&expected().tables["two"]);
    for pipeline in PIPELINES {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) == 2;
        let error = fit(pipeline, &Parameters::new(), &table, 1, &stop).expect_err("stopped");
        assert!(error.is::<Stopped>(), "{pipeline}: {error}");
    }
}

#[test]
fn what_is_missing_is_no_obstacle() {
    let (mut table, mut test) = tables(&expected().tables["two"]);
    // Every fifth number of the first feature, and the whole second feature.
    let n = table.n();
    table.x[..n].iter_mut().step_by(5).for_each(|value| *value = f64::NAN);
    table.x[n..2 * n].fill(f64::NAN);
    test.x.iter_mut().step_by(7).for_each(|value| *value = f64::NAN);
    for pipeline in PIPELINES {
        let parameters = serde_json::from_value(quick(pipeline)).expect("an object");
        let fitted = fit(pipeline, &parameters, &table, 1, &|| false).expect("fitted");
        let probabilities = fitted.probabilities(&test).expect("scored");
        assert!(probabilities.iter().all(|p| (0.0..=1.0).contains(p)), "{pipeline}");
    }
}

#[test]
fn a_class_without_rows_has_probability_zero() {
    let (mut table, test) = tables(&expected().tables["two"]);
    table.classes.insert(0, "never".to_owned());
    table.y.iter_mut().for_each(|class| *class += 1);
    for pipeline in PIPELINES {
        let parameters: Parameters = serde_json::from_value(quick(pipeline)).expect("an object");
        let fitted = fit(pipeline, &parameters, &table, 1, &|| false).expect("fitted");
        let rows = fitted.probabilities(&test).expect("scored");
        assert!(rows.chunks_exact(3).all(|row| row[0] == 0.0 && (row[1] + row[2] - 1.0).abs() < 1e-12), "{pipeline}");
    }
}

#[test]
fn tables_that_teach_nothing_are_refused() {
    let (table, test) = tables(&expected().tables["two"]);
    let refusal = |change: &dyn Fn(&mut Table)| {
        let mut table = table.clone();
        change(&mut table);
        format!("{:#}", fit("lasso", &Parameters::new(), &table, 1, &|| false).expect_err("is refused"))
    };
    assert_eq!(refusal(&|table| table.y.fill(1)), "every row is of class `1`, and a model needs two");
    assert_eq!(refusal(&|table| *table = table.rows(&[])), "the table has no rows");
    assert_eq!(refusal(&|table| table.x[3] = f64::INFINITY), "feature `0` has an infinite number");
    let none = json!({"selection": "lasso", "selection_C": 1e-6});
    let error = fit("lasso", &serde_json::from_value(none).expect("an object"), &table, 1, &|| false);
    assert!(format!("{:#}", error.expect_err("is refused")).contains("leaves none of the 10 features"));
    let mut other = test.clone();
    other.features.swap(0, 1);
    let error = small("lasso", json!({})).probabilities(&other).expect_err("is refused");
    assert_eq!(error.to_string(), "feature 1 is `1`, and the pipeline was fitted with `0` there");
}

#[derive(Deserialize)]
struct Spaces {
    pipelines: std::collections::BTreeMap<String, Space>,
}

#[derive(Deserialize)]
struct Space {
    parameters: std::collections::BTreeMap<String, Parameter<Value>>,
}

#[test]
fn the_search_spaces_hold_what_the_pipelines_take() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/pipelines.yaml");
    let spaces: Spaces = serde_yaml_ng::from_str(&fs_err::read_to_string(path).expect("read")).expect("search spaces");
    assert_eq!(
        spaces.pipelines.keys().collect::<std::collections::BTreeSet<_>>(),
        PIPELINES.map(String::from).iter().collect()
    );
    for (pipeline, space) in spaces.pipelines {
        for step in 0..=20 {
            let draw = |parameter: &Parameter<Value>| match parameter {
                Parameter::Constant(value) => value.clone(),
                Parameter::Drawn(distribution) => distribution.draw(f64::from(step) / 20.0),
            };
            let parameters = space.parameters.iter().map(|(name, parameter)| (name.clone(), draw(parameter))).collect();
            check(&pipeline, &parameters).unwrap_or_else(|error| panic!("{}", poolcast::error::render(&error)));
        }
    }
}
