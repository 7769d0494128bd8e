//! Tests of `poolcast run` where the best trials of each kind of model form an ensemble.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use crate::place::{Outcome, Place, run_for_all};

/// Configuration of four kinds of model on one set of samples. One of the kinds uses no static
/// features. The ensemble is better than the best trial.
pub(crate) const FOUR_KINDS: &str = "
logs: [EventLog.xz]
out: out
seed: 2
runs: 2
epochs: 3
preprocessing: {parameters: {j: 3, m: 4, timeframe_len: 600}}
training: {time_cuts: 2, parameters: {model: {values: [lstm, mlp]}, hidden_size: 4, learning_rate: 0.01, batch_size: 64}}
wandb: {sweep: {method: grid}}
pipelines:
  enet: {runs: 1, parameters: {C: 0.1}}
  xgb: {runs: 1, parameters: {n_estimators: 20, max_depth: 2}}
evaluation: {resamples: 50}
";

const KINDS: &str = "3 enet, 1 lstm, 2 mlp, 4 xgb";

fn place() -> (Place, Outcome) {
    let place = Place::with_log();
    place.write("kinds.yaml", FOUR_KINDS);
    let outcome = place.run("run kinds.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    (place, outcome)
}

/// A run for the tests of this file that do not look at what it prints.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| run_for_all("four-kinds", FOUR_KINDS));

/// A test directory like [`place`].
fn place_with_copy() -> Place {
    let place = Place::with_log();
    place.write("kinds.yaml", FOUR_KINDS);
    place.copy_all(&RUN, "out");
    place
}

/// Reads the file `name`.
fn text(place: &Place, name: &str) -> String {
    fs_err::read_to_string(place.path(name)).expect("read")
}

/// Reads the values of `bestmodel.info`.
fn info(place: &Place) -> BTreeMap<String, String> {
    let lines = text(place, "out/bestmodel.info");
    let pairs = lines.lines().filter_map(|line| line.split_once(" = "));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Finds the ROC-AUC among `scores` of an evaluation.
fn roc_auc(scores: &serde_json::Value) -> f64 {
    let mut scores = scores.as_array().expect("scores").iter();
    let area = scores.find(|score| score["name"] == "roc_auc");
    area.expect("an area")["value"].as_f64().expect("a number")
}

/// The causes of holds are in the log, which a run keeps.
#[test]
fn evaluation_without_the_log_has_no_scores_after_probes() {
    let place = place_with_copy();
    let tensors = fs_err::read_dir(place.path("out/tensors")).expect("listed");
    let tensors = tensors.last().expect("tensors").expect("listed").path();
    let evaluate = format!("evaluate out {}", tensors.display());
    let words = "\nonce one job of each cause was tried (";
    assert!(place.stdout(&evaluate).contains(words));

    fs_err::remove_dir_all(place.path("out/events")).expect("removed");
    let evaluated = place.stdout(&evaluate);
    assert!(!evaluated.contains(words), "{evaluated}");
    let validated = place.stdout(&format!("{evaluate} --side validate"));
    assert!(!validated.contains(words), "{validated}");
}

#[test]
fn ensemble_is_chosen_unless_the_best_trial_is_shown_to_be_better() {
    let (place, first) = place();
    assert!(
        first
            .stdout
            .contains("\nThe ensemble of the best trials on holds that it has not seen\n"),
        "{first}"
    );
    let said = format!("; trials {KINDS}\nthe ensemble is in out/ensemble\n");
    assert!(first.stdout.contains(&said), "{first}");
    let line = |line: &&str| line.starts_with("best by input, judged_");
    let by_input = first.stdout.lines().find(line).expect("a line");
    for part in [
        ": frames alone 0.",
        " (trial 1), static features, with the frames 0.",
        ", all together 0.",
    ] {
        assert!(by_input.contains(part), "{by_input}");
    }

    let info = info(&place);
    let value = |key: &str| -> f64 { info[key].parse().expect("a number") };
    assert_eq!(info["ensemble"], KINDS);
    assert!(value("ensemble_value") > value("value"), "{info:?}");
    assert_eq!(info["model"], "ensemble/manifest.json");

    // `evaluate` scores the ensemble that did not learn from the test split, also when it is called
    // on `out`.
    let tensors = fs_err::read_dir(place.path("out/tensors")).expect("listed");
    let tensors: Vec<_> = tensors.map(|dir| dir.expect("listed").path()).collect();
    let evaluation = place.json(&format!("evaluate out {} --json", tensors[0].display()));
    let ensemble = &evaluation["methods"][0];
    assert_eq!(ensemble["name"], "ensemble");
    let area = roc_auc(&ensemble["scores"]);
    assert_eq!(area, value("test_roc_auc"));

    // The outcome of one job of a cause says something about the others.
    let probed = &evaluation["after_probes"];
    assert!(probed["samples"].as_u64() > Some(50), "{probed}");
    let probed_area = roc_auc(&probed["scores"]);
    assert!(probed_area > area, "{probed_area} {area}");

    // The outcomes of earlier holds advise.
    let advice = place.json("advise out --log EventLog.xz --json");
    assert!(advice["rehearsed"].is_object());
    let page = text(&place, "out/report.html");
    assert!(page.contains("An ensemble of the best trials of 4 kinds is used"));

    // The best run of a tracker is a trial, and has the model of that trial.
    let sent = place.stdout("track out --to wandb --dry-run");
    assert!(sent.contains("pipeline.json"), "{sent}");

    let shown = place.stdout("sweep best out");
    assert!(
        shown.contains("the ensemble is in out/ensemble\n"),
        "{shown}"
    );
}

#[test]
fn ensemble_survives_cleanup_and_is_rebuilt_to_the_same_bytes() {
    let place = place_with_copy();
    let timeless = || {
        let mut files = place.files("out");
        files.retain(|name, _| name != "status.log" && !name.ends_with("times.jsonl"));
        files
    };
    let before = timeless();
    assert!(!place.path("out/ensemble/trial-0001/times.jsonl").exists());

    place.stdout("sweep cleanup out --keep 1");
    let left = timeless();
    for trial in 1..=4 {
        assert!(
            left.contains_key(&format!("trials/trial-{trial:04}/manifest.json")),
            "trial {trial} has no model any more"
        );
    }

    // A later run completes an ensemble that was killed.
    for gone in [
        "ensemble/manifest.json",
        "ensemble/trial-0004/manifest.json",
    ] {
        fs_err::remove_file(place.path(&format!("out/{gone}"))).expect("removed");
    }
    place.stdout("run kinds.yaml");
    assert!(timeless() == before, "it is not what it was");

    fs_err::remove_dir_all(place.path("out/ensemble")).expect("removed");
    place.stdout("sweep evaluate out");
    let again = timeless();
    let of_ensemble = |files: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        let files = files.clone().into_iter();
        files
            .filter(|(name, _)| name.starts_with("ensemble/"))
            .collect()
    };
    assert!(of_ensemble(&again) == of_ensemble(&before));
}
