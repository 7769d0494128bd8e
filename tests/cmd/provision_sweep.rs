//! Tests of `poolcast sweep` over samples of queue waits: any number of workers gives the same
//! models as `provision train`.

use serde_json::Value;

use crate::place::{Place, files, has_file};
use crate::provision::{VALIDATE_MODELS, place_with_samples};
use crate::sweep::{start, wait};

/// Configuration of four trials of trees over `samples`.
const WAITS: &str = "runs: 4
epochs: 3
wandb: {sweep: {name: waits, metric: {name: held_back_pinball, goal: minimize}}}
provision:
  samples: samples
  model:
    name: {values: [xgb, rf]}
    parameters:
      n_estimators: {min: 5, max: 20}
      xgb.learning_rate: {distribution: log_uniform_values, min: 0.02, max: 0.3}
";

/// Configuration of four trials of networks, and of models that decide directly.
const NETWORKS: &str = "runs: 4
epochs: 3
wandb: {sweep: {name: waits, metric: {name: held_back_cost, goal: minimize}}}
provision:
  samples: samples
  model:
    name: {values: [lstm, nn, dqn]}
    target: {values: [wait, reward]}
    batch_size: {values: [8, 16]}
    parameters: {nn.max_iter: 5}
";

/// A test directory with samples of windows of short jobs, and with `search` in `waits.yaml`.
fn place_with(search: &str) -> Place {
    let place = place_with_samples();
    place.write("waits.yaml", search);
    place
}

/// Returns the result rows in `dir`, without the keys that depend on times, workers, attempts or
/// paths.
fn rows(place: &Place, dir: &str) -> Vec<Value> {
    let path = place.path(dir).join("results.jsonl");
    let text = fs_err::read_to_string(path).expect("read");
    let read = |line: &str| {
        let mut row: Value = serde_json::from_str(line).expect("a row");
        for name in ["worker", "began", "seconds", "attempt"] {
            row[name] = Value::Null;
        }
        row
    };
    text.lines().map(read).collect()
}

#[test]
fn sweep_finds_the_best_wait_model() {
    let place = place_with(WAITS);
    assert_eq!(
        place.stdout("sweep init waits.yaml -o sweep"),
        "4 trials are planned in sweep\n"
    );
    place.stdout("sweep run sweep");
    let found = rows(&place, "sweep");
    let values: Vec<f64> = found
        .iter()
        .filter_map(|row| row["value"].as_f64())
        .collect();
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let best = place.json("sweep best sweep --json");
    assert_eq!((values.len(), best["value"].as_f64()), (4, Some(least)));
    assert_eq!(best["waits"]["held_back_pinball"], best["value"]);

    let trial = format!(
        "sweep/trials/trial-{:04}",
        best["trial"].as_u64().expect("a number")
    );
    let printed = place.stdout("sweep best sweep");
    assert!(
        printed.contains(&format!("its model is in {trial}\n")),
        "{printed}"
    );
    let listed = place.json("sweep list sweep --json");
    assert_eq!(listed["trials"][0]["trial"], best["trial"]);
    let table = place.stdout("sweep list sweep");
    let head: Vec<&str> = table
        .lines()
        .next()
        .map_or(Vec::new(), |head| head.split("  ").map(str::trim).collect());
    assert_eq!(
        head.into_iter()
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>(),
        [
            "rank",
            "trial",
            "state",
            "s",
            "held_back_pinball",
            "held back cost",
            "pipeline",
            "with"
        ],
        "no column is empty, and none is there twice"
    );
    assert_eq!(place.json("sweep status sweep --json")["done"], 4);
    let page = place.json("report sweep --json");
    assert!(
        page.to_string()
            .contains("chosen by the mean pinball loss on the held-back windows")
    );
    place.stdout("report sweep");

    // The configuration of the trial suffices to train the model again, without a sweep.
    place.write("row.yaml", best["config"].to_string());
    place.stdout("-q --threads 1 provision train samples -o again -c row.yaml");
    assert_eq!(place.files("again"), place.files(&trial));
    let summary = place.json("provision train samples -o again -c row.yaml --json");
    assert_eq!(
        summary["held_back"]["quantiles"],
        best["waits"]["quantiles"]
    );
    let validated = place.json(&format!(
        "{VALIDATE_MODELS} --model {trial} -o validation --json"
    ));
    assert_eq!(validated["learned"][0]["base"], "reactive");
    let of_sweep = format!("{VALIDATE_MODELS} --model sweep -o validation --json");
    assert_eq!(
        place.json(&of_sweep),
        validated,
        "a sweep stands for its best trial"
    );

    let before = place.files("sweep");
    for step in ["run", "manage", "work", "status", "cleanup"] {
        place.stdout(&format!("sweep {step} sweep"));
    }
    assert!(place.files("sweep") == before, "it is over, and stays so");
    place.stdout("sweep cleanup sweep --keep 1");
    assert!(has_file(&place.path(&trial), "manifest.json"));
    assert_eq!(
        fs_err::read_dir(place.path("sweep/trials"))
            .expect("listed")
            .count(),
        1
    );
}

#[test]
fn killed_workers_do_not_change_wait_models() {
    let place = place_with(NETWORKS);
    place.stdout("sweep init waits.yaml -o whole");
    place.stdout("sweep run whole --threads 1");

    place.stdout("sweep init waits.yaml -o sweep");
    // The sweep has its own copy of the samples.
    fs_err::remove_dir_all(place.path("samples")).expect("removed");
    let mut manager = start(&place, "sweep manage sweep");
    let is_begun = || {
        let running = fs_err::read_dir(place.path("sweep/queue/running")).ok();
        running.is_some_and(|mut dirs| {
            dirs.any(|dir| dir.is_ok_and(|dir| dir.path().join("checkpoint.safetensors").exists()))
        })
    };
    let mut worker = start(&place, "sweep work sweep --threads 1");
    wait(|| is_begun() || worker.try_wait().expect("asked").is_some());
    worker.kill().expect("killed");
    worker.wait().expect("it ended");
    let workers = [(); 2].map(|()| start(&place, "sweep work sweep --threads 1"));
    for mut worker in workers {
        assert_eq!(worker.wait().expect("it ended").code(), Some(0));
    }
    assert_eq!(manager.wait().expect("it ended").code(), Some(0));
    assert_eq!(rows(&place, "sweep"), rows(&place, "whole"));
    let trials = |dir: &str| files(&place.path(dir).join("trials"));
    assert!(trials("sweep") == trials("whole"));
}

#[test]
fn grid_and_bayes_search_wait_models() {
    let place = place_with("");
    let metric = "metric: {name: held_back_pinball, goal: minimize}";
    let search = |method: &str, model: &str| {
        place.write(
            "waits.yaml",
            format!(
                "runs: 6\nwandb: {{sweep: {{method: {method}, {metric}}}}}\nprovision: {{samples: samples, model: {model}}}\n"
            ),
        );
        let begun = place.run(&format!("sweep init waits.yaml -o {method}"));
        assert_eq!(begun.code, Some(0), "{begun}");
        place.stdout(&format!("sweep run {method}"));
        (begun, rows(&place, method))
    };
    // The learning rate has no effect on forests, so the three forests of this grid are one trial.
    let (begun, grid) = search(
        "grid",
        "{name: {values: [xgb, rf]}, parameters: {n_estimators: 5, learning_rate: {values: [0.1, 0.2, 0.3]}}}",
    );
    assert_eq!(grid.len(), 4);
    assert!(
        begun
            .stderr
            .contains("but for what does not count for its kind"),
        "{begun}"
    );
    let (_, bayes) = search(
        "bayes",
        "{name: {values: [xgb, rf]}, parameters: {n_estimators: {min: 2, max: 9}}}",
    );
    assert_eq!(bayes.len(), 6);
    assert!(bayes.iter().all(|row| row["ended"] == "done"));
}

#[test]
fn invalid_wait_model_fails_alone() {
    let trees = "n_estimators: {values: [3, 4]}";
    let search = WAITS.replace("n_estimators: {min: 5, max: 20}", trees);
    let place = place_with(&search);
    place.stdout("sweep init waits.yaml -o sweep");
    let path = place.path("sweep/config.yaml");
    let config = fs_err::read_to_string(&path).expect("read");
    let values = config.replacen("- 4\n", "- -4\n", 1);
    assert_ne!(values, config);
    fs_err::write(&path, values).expect("written");
    place.stdout("sweep run sweep");
    let found = rows(&place, "sweep");
    let invalid: Vec<&Value> = found
        .iter()
        .filter(|row| row["ended"] == "invalid")
        .collect();
    assert!((1..4).contains(&invalid.len()), "{}", invalid.len());
    for row in invalid {
        let error = row["error"].as_str().expect("it says why");
        assert!(error.contains("`n_estimators` of pipeline"), "{error}");
    }
}

#[test]
fn what_cannot_be_searched_says_so() {
    let place = place_with(WAITS);
    let refusal = |from: &str, to: &str| {
        assert!(WAITS.contains(from), "{from}");
        place.write("other.yaml", WAITS.replace(from, to));
        let outcome = place.run("sweep init other.yaml -o other");
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(!place.path("other").exists(), "nothing is left");
        outcome.stderr
    };
    insta::assert_snapshot!(refusal("xgb, rf]", "xgb, rv]"));
    insta::assert_snapshot!(refusal("n_estimators", "n_estimator"));
    insta::assert_snapshot!(refusal("  model:\n", "  model:\n    nmae: xgb\n"));
    insta::assert_snapshot!(refusal("min: 5, max: 20", "min: 0, max: 1"));
    insta::assert_snapshot!(refusal("held_back_pinball", "validation_loss"));
    insta::assert_snapshot!(refusal("  model:\n", "  model:\n    target: reward\n"));
    insta::assert_snapshot!(refusal("samples: samples", "samples: trace"));
    insta::assert_snapshot!(refusal("runs: 4", "logs: [EventLog]"));
    insta::assert_snapshot!(refusal(
        "metric:",
        "early_terminate: {type: asha, min_iter: 1}, metric:"
    ));

    insta::assert_snapshot!(place.run("dag waits.yaml -o dag").stderr);
    insta::assert_snapshot!(place.run("run waits.yaml -o run").stderr);
    insta::assert_snapshot!(
        place
            .run("provision train samples -o model -c waits.yaml")
            .stderr
    );
    place.stdout("sweep init waits.yaml -o sweep");
    place.stdout("sweep run sweep");
    insta::assert_snapshot!(place.run("sweep evaluate sweep").stderr);
}

#[test]
fn a_sweep_without_a_model_of_waits_is_refused() {
    let place = place_with(WAITS);
    place.stdout("sweep init waits.yaml -o waits");
    place.write("rows.csv", "id,a\n1,2\n2,3\n3,4\n4,5\n");
    place.write("ill.csv", "id,ill,learned\n1,1,1\n2,0,1\n3,1,0\n4,0,0\n");
    place.write(
        "tables.yaml",
        "wandb: {sweep: {metric: {name: validation_roc_auc, goal: maximize}}}\n\
         data: {features: rows.csv, metadata: ill.csv, index: id, target: ill, validate: true, \
         splits: {train_A: learned == 1, validate_A: learned == 0}}\n\
         pipelines: {lasso: {method: grid, parameters: {C: {values: [1]}}}}\n",
    );
    place.stdout("sweep init tables.yaml -o tables");
    for dir in ["waits", "tables"] {
        let outcome = place.run(&format!("{VALIDATE_MODELS} --model {dir} -o validation"));
        insta::assert_snapshot!(outcome.stderr);
        assert!(!place.path("validation").exists(), "nothing is begun");
    }
}
