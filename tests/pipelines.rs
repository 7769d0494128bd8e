//! Classical pipelines beside scikit-learn's and xgboost's on the same rows (`tests/data/pipelines`), and what holds for
//! each of them: the same seed gives the same bytes, and a file gives back what was written.

use std::path::Path;

use poolcast::pipelines::{FILE, Fitted, Parameters, fit};
use poolcast::tables::Table;
use serde::Deserialize;
use serde_json::Value;

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

fn fitted(case: &Case, table: &Table) -> Fitted {
    fit(&case.pipeline, &case.parameters, table, 1, &|| false).expect("fitted")
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
        let fitted = fitted(case, &train);
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
        let ours = auc(&fitted(case, &train).probabilities(&test).expect("scored"), test.classes.len(), &test.y);
        println!("{} {} {:?}: {ours:.4}, theirs {:.4}", case.table, case.pipeline, case.parameters, case.auc);
        assert!((ours - case.auc).abs() < 0.01, "{} {:?}: {ours}, theirs {}", case.pipeline, case.parameters, case.auc);
    }
}
