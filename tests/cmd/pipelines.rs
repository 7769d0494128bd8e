//! Tests of `poolcast sweep` with classical pipelines: the user's own tables, folds, splits, and
//! unbiased scores of the chosen trial.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::place::Place;
use crate::run::SMALL;

/// A test directory laid out like the top of the repository, with the sweep of `config/table.yaml`
/// in `sweep`. Each pair in `changes` replaces its first text with its second.
pub(crate) fn place(changes: &[(&str, &str)], flags: &str) -> Place {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    symlink(root.join("tests"), place.path("tests")).expect("linked");
    let text = fs_err::read_to_string(root.join("config/table.yaml")).expect("read");
    let text = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "`{from}` is not in config/table.yaml");
        text.replace(from, to)
    });
    place.write("table.yaml", text + "evaluation: {resamples: 100}\n");
    place.stdout(&format!("sweep init table.yaml -o sweep {flags}"));
    place
}

fn rows(place: &Place, name: &str) -> Vec<Value> {
    let text = fs_err::read_to_string(place.path(name).join("results.jsonl")).expect("read");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Returns the models and predictions of a sweep, by file name.
fn made(place: &Place, name: &str) -> BTreeMap<String, Vec<u8>> {
    let files = place.files(&format!("{name}/trials")).into_iter();
    files
        .filter(|(name, _)| {
            name.ends_with("pipeline.json") || name.ends_with("predictions.safetensors")
        })
        .collect()
}

#[test]
fn features_that_tell_the_target_are_named_and_an_accuracy_stands_beside_one_answer_for_all() {
    let place = Place::new();
    let row = |row: usize| (format!("r{row}"), usize::from(row.is_multiple_of(4)));
    let rows = || (0..120).map(row);
    let features = rows()
        .enumerate()
        .map(|(at, (name, class))| format!("{name},{},{}\n", 10 * class, at * 7 % 11));
    let metadata = rows().map(|(name, class)| format!("{name},{}\n", ["no", "yes"][class]));
    place.write(
        "features.csv",
        "run,code,noise\n".to_owned() + &features.collect::<String>(),
    );
    place.write(
        "metadata.csv",
        "run,ill\n".to_owned() + &metadata.collect::<String>(),
    );
    place.write(
        "sweep.yaml",
        "wandb: {sweep: {metric: {name: validation_accuracy, goal: maximize}}}\n\
         data: {features: features.csv, metadata: metadata.csv, index: run, target: ill, cv: 3}\n\
         pipelines: {lasso: {}}\nruns: 0\nevaluation: {resamples: 100}\n",
    );
    let begun = place.run("sweep init sweep.yaml");
    assert!(
        begun
            .stderr
            .contains("`code`: one feature alone tells the target"),
        "{begun}"
    );
    place.stdout("sweep run out");

    // The sweep of this directory need not be named.
    let choice = &place.json("sweep best --json")["choices"][0];
    assert_eq!(choice["baseline"]["value"], 0.75, "{choice}");
    let shown = place.stdout("sweep best");
    assert!(shown.contains("one answer for all (95 %)"), "{shown}");
    assert!(place.stdout("sweep list").contains("lasso"));
    assert!(
        place
            .stdout("sweep status --once")
            .starts_with("1 trial: 1 done")
    );
    assert_eq!(place.stdout("report"), "out/report.html\n");
    let page = fs_err::read_to_string(place.path("out/report.html")).expect("read");
    assert!(page.contains("one answer for all rows"));
    let lost = Place::new().run("sweep list");
    assert!(
        lost.stderr.contains("there is no run or sweep here"),
        "{lost}"
    );
}

#[test]
fn pipeline_trial_is_reproduced_from_its_row() {
    let place = place(&[], "");
    let printed = place.stdout("sweep run sweep --threads 2 --keep 2");
    assert!(
        printed.starts_with("20 trials: 20 done, 0 failed, 0 running, 0 ready\n"),
        "{printed}"
    );
    let found = rows(&place, "sweep");
    assert_eq!(
        made(&place, "sweep").len(),
        2 * 2 * 2,
        "a model and predictions of the two best of each split"
    );
    for row in &found {
        let folds = row["fit"]["folds"].as_array().expect("folds");
        let values: Vec<f64> = folds
            .iter()
            .filter_map(|fold| fold["roc_auc"].as_f64())
            .collect();
        let mean = values.iter().sum::<f64>() / 5.0;
        assert!(
            values.len() == 5 && (row["value"].as_f64().expect("a value") - mean).abs() < 1e-12,
            "{row}"
        );
        assert_eq!(row["fit_seconds"].as_array().map(Vec::len), Some(6));
        assert!(row["fit"]["validation"]["roc_auc"].is_number(), "{row}");
        assert_eq!(
            (row["attempt"].as_u64(), row["seed"].as_u64()),
            (Some(1), Some(1))
        );
    }
    let names = |key: &str| {
        found
            .iter()
            .map(|row| row[key].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("split"), [vec!["A1"; 10], vec!["B2"; 10]].concat());
    assert_eq!(
        names("pipeline"),
        [["enet"; 4].to_vec(), vec!["lasso"; 6]].concat().repeat(2)
    );
    // The best trial of B2 is trained again from its configuration.
    let best = place.json("sweep best sweep --json")["choices"][1]["trial"]
        .as_u64()
        .expect("a trial");
    assert_eq!(
        place.stdout(&format!(
            "sweep init sweep/trials/trial-{best:04}/config.yaml -o again"
        )),
        "1 trial is planned in again\n"
    );
    place.stdout("sweep run again");
    let of = |name: &str, trial: u64| -> Vec<Vec<u8>> {
        let made = made(&place, name).into_iter();
        made.filter(|(name, _)| name.starts_with(&format!("trial-{trial:04}/")))
            .map(|(_, bytes)| bytes)
            .collect()
    };
    assert!(
        of("sweep", best).len() == 2 && of("sweep", best) == of("again", 1),
        "byte for byte"
    );
    place.stdout(&format!("-q sweep trials sweep {best} -o part"));
    assert!(of("part", best) == of("sweep", best), "byte for byte");
    let without = |row: &Value| {
        let mut row = row.clone();
        for key in ["trial", "worker", "began", "seconds", "fit_seconds"] {
            row.as_object_mut().expect("an object").remove(key);
        }
        row
    };
    assert_eq!(
        without(&rows(&place, "again")[0]),
        without(&found[best as usize - 1])
    );
    // No command changes a finished sweep or deletes its files.
    let before = place.files("sweep");
    for step in [
        "init table.yaml -o",
        "run",
        "manage",
        "work",
        "status",
        "best",
        "cleanup",
    ] {
        assert_eq!(
            place.run(&format!("sweep {step} sweep")).code,
            Some(0),
            "{step}"
        );
    }
    assert!(place.files("sweep") == before);
}

#[test]
fn best_of_each_split_is_reported_with_intervals() {
    let place = place(&[], "--split-names B2 --pipeline-names lasso --cv 3");
    let printed = place.stdout("sweep run sweep");
    assert!(
        printed
            .lines()
            .any(|line| line.starts_with("B2 ") && line.contains("lasso")),
        "{printed}"
    );
    let best = place.json("sweep best sweep --json");
    assert_eq!(best["choices"].as_array().map(Vec::len), Some(1));
    let best = &best["choices"][0];
    assert_eq!(
        (&best["trials"], &best["split"], &best["pipeline"]),
        (&6.into(), &"B2".into(), &"lasso".into())
    );
    for key in ["corrected", "validation"] {
        let [value, low, high] =
            ["value", "low", "high"].map(|part| best[key][part].as_f64().expect("a number"));
        assert!(
            0.5 < low && low < value && value <= high && high <= 1.0,
            "{key}: {best}"
        );
    }
    assert!(
        best["corrected"]["value"].as_f64() < best["value"].as_f64().map(|value| value + 0.02),
        "{best}"
    );
    assert_eq!(
        best["row"]["fit"]["folds"].as_array().map(Vec::len),
        Some(3)
    );
}

#[test]
fn folds_can_be_by_group_or_by_time() {
    for (folds, count, target) in [
        ("leave-one-group-out", 2, "condition"),
        ("time", 5, "severity"),
    ] {
        let changes = [
            ("group: patient", "group: cohort"),
            ("target: condition", &format!("target: {target}")),
            ("cv: 5", &format!("cv: 5\n  folds: {folds}")),
        ];
        let changes = if folds == "time" {
            &changes[1..]
        } else {
            &changes[..]
        };
        let place = place(changes, "--split-names A1 --pipeline-names lasso");
        place.stdout("sweep run sweep");
        let found = rows(&place, "sweep");
        let strong = found.last().expect("a row");
        assert_eq!(
            strong["fit"]["folds"].as_array().map(Vec::len),
            Some(count),
            "{strong}"
        );
        assert!(strong["value"].as_f64() > Some(0.55), "{strong}");
    }
}

#[test]
fn invalid_number_of_folds_is_rejected() {
    let place = place(&[], "");
    for no in ["False", "false", "0", "1", "True"] {
        let refused = place.run(&format!("sweep init table.yaml -o other --cv {no}"));
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused.stderr.contains("a number of folds from 2 to 1000")
                && refused.stderr.contains("omit `--cv`"),
            "{refused}"
        );
        assert!(!place.path("other").exists());
    }
    let refused = place.run("sweep init table.yaml -o other --validate False");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("unexpected argument 'False'"),
        "{refused}"
    );
    place.stdout("sweep init table.yaml -o other --cv --validate");
    assert!(
        place
            .run("sweep manage other --cv 5 --validate --help")
            .code
            == Some(0)
    );
}

#[test]
fn sweep_with_other_choices_is_rejected_and_left_untouched() {
    let place = place(&[], "--split-names A1 --pipeline-names lasso --cv 3");
    place.stdout("sweep run sweep --pipeline-names lasso --split-names A1 --cv 3 --validate");
    let before = place.files("sweep");
    for other in [
        "--pipeline-names lasso,enet",
        "--split-names B2",
        "--cv",
        "--cv 4",
    ] {
        for step in ["manage", "run"] {
            let refused = place.run(&format!("sweep {step} sweep {other}"));
            assert_eq!(refused.code, Some(2), "{step} {other}: {refused}");
            assert!(
                refused.stderr.contains(
                    "holds a sweep of other choices: pipelines `lasso`, splits `A1`, 3 folds"
                ),
                "{refused}"
            );
        }
        let refused = place.run(&format!("sweep init table.yaml -o sweep {other}"));
        assert!(
            refused.code == Some(2) && refused.stderr.contains("contains another sweep"),
            "{refused}"
        );
    }
    assert!(place.files("sweep") == before);
    let unknown = place.run("sweep init table.yaml -o other --pipeline-names laso");
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains("there is no pipeline `laso`"),
        "{unknown}"
    );
    let unknown = place.run("sweep init table.yaml -o other --split-names A1,B3");
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains("there is no split `B3`"),
        "{unknown}"
    );
}

#[test]
fn overlapping_rows_or_groups_of_a_split_are_rejected() {
    let place = place(&[], "");
    let text = fs_err::read_to_string(place.path("table.yaml")).expect("read");
    let refused = |changes: &[(&str, &str)]| {
        place.write(
            "bad.yaml",
            changes
                .iter()
                .fold(text.clone(), |text, (from, to)| text.replace(from, to)),
        );
        let refused = place.run("sweep init bad.yaml -o bad");
        assert!(
            refused.code == Some(2) && !place.path("bad/queue").exists(),
            "{refused}"
        );
        refused.stderr
    };
    let rows = refused(&[(
        "\"cohort == 'Ireland' and",
        "\"cohort in ['Ireland', 'USA'] and",
    )]);
    assert!(
        rows.contains("`train_A1` and `validate_A1` share the row `r000`, "),
        "{rows}"
    );
    // The second sample of a patient moves to the validation rows.
    let groups = refused(&[
        (
            "\"cohort not in ['Spain', 'Japan']\"",
            "\"cohort not in ['Spain', 'Japan'] and run != 'r005'\"",
        ),
        (
            "\"cohort in ['Spain', 'Japan']\"",
            "\"cohort in ['Spain', 'Japan'] or run == 'r005'\"",
        ),
    ]);
    assert!(
        groups
            .contains("the training and validation rows of the split `B2` share the group `p004`"),
        "{groups}"
    );
}

#[test]
fn time_limit_ends_the_trial_but_not_the_worker() {
    // No machine fits this number of trees within a second. Whether it fits other pipelines in time
    // depends on its load.
    let slow = "  rf:\n    method: grid\n    parameters: {n_estimators: 100000, max_depth: {values: [8, 9]}}\n";
    let place = place(
        &[("  enet:", &format!("{slow}  enet:"))],
        "--split-names A1 --pipeline-names rf",
    );
    let run = place.run("sweep run sweep --threads 1 --trial-timeout 1");
    assert!(run.stdout.contains("2 trials: 0 done, 2 failed"), "{run}");
    let late = rows(&place, "sweep");
    for row in &late {
        assert!(
            row["ended"] == "time-limit" && row["attempt"] == 1 && row["fit"].is_null(),
            "{row}"
        );
        let error = row["error"].as_str().expect("an error");
        assert!(error.contains("longer than 1 s"), "{error}");
    }
    assert_eq!(late[0]["worker"], late[1]["worker"], "one worker did both");
}

#[test]
fn missing_logs_or_tables_are_reported() {
    let place = place(&[], "");
    let refused = |text: &str| {
        place.write("bad.yaml", text);
        let outcome = place.run("sweep init bad.yaml -o bad");
        assert_eq!(outcome.code, Some(2), "{outcome}");
        outcome.stderr
    };
    assert!(refused("pipelines: {lasso: {}}\n").contains("names no logs"));
    assert!(refused("data: {cv: 5}\n").contains("need tables, but `data` names none"));
    let run = place.run("run table.yaml -o bad");
    assert!(
        run.code == Some(2)
            && run
                .stderr
                .contains("names tables, but advice is about the jobs of logs"),
        "{run}"
    );
}

#[test]
fn pipelines_and_networks_are_compared_on_the_same_samples() {
    let place = Place::with_log();
    let pipelines = "pipelines: {lasso: {runs: 2, parameters: {C: {min: 0.1, max: 1.0}}}}\n";
    place.write(
        "small.yaml",
        SMALL.replace("runs: 3", "runs: 1") + pipelines,
    );
    let printed = place.stdout("run small.yaml --threads 1");
    assert!(
        printed.contains("Pipelines and networks on the same samples, by judged_roc_auc"),
        "{printed}"
    );
    let found = rows(&place, "out");
    let names: Vec<&str> = found
        .iter()
        .filter_map(|row| row["pipeline"].as_str())
        .collect();
    assert_eq!((names.len(), &names[1..]), (3, &["lasso", "lasso"][..]));
    assert!(
        found[1]["fit"]["rolling"]["roc_auc"] == found[1]["value"]
            && found[1]["parameters"]["j"].is_number()
    );
    let best = place.json("sweep best out --json")["choices"].take();
    assert_eq!(
        (&best[0]["trials"], &best[0]["split"]),
        (&3.into(), &Value::Null)
    );
    for key in ["corrected", "validation", "test"] {
        assert!(
            best[0][key]["low"].as_f64() < best[0][key]["high"].as_f64(),
            "{key}: {best}"
        );
    }
    let chosen: Value =
        serde_json::from_slice(&fs_err::read(place.path("out/best.json")).expect("read"))
            .expect("JSON");
    assert_eq!(
        (&chosen["trial"], chosen["trials"].as_array().map(Vec::len)),
        (&best[0]["trial"], Some(3)),
        "a trial of any kind advises"
    );
}

#[test]
fn alternative_spaces_are_joined_and_repeats_are_dropped() {
    let svc = "  svc:\n    - {method: grid, parameters: {kernel: linear, C: {values: [0.1, 1]}}}\n    - {method: grid, \
               parameters: {kernel: {values: [rbf, linear]}, gamma: {values: [0.01, 0.1]}}}\n";
    let changes = [
        ("  enet:", &*format!("{svc}  enet:")),
        ("out: out/table", "trial_order: interleaved\nout: out/table"),
    ];
    let place = place(&changes, "--split-names A1 --pipeline-names svc,lasso");
    let init =
        place.run("sweep init table.yaml -o other --split-names A1 --pipeline-names svc,lasso");
    assert!(
        init.stdout.starts_with("10 trials"),
        "6 of lasso, and of svc 2 and 2: {init}"
    );
    assert!(
        init.stderr
            .contains("2 draws repeat others but for parameters without effect"),
        "{init}"
    );
    place.stdout("sweep run sweep --threads 1");
    let found = rows(&place, "sweep");
    let of_svc: Vec<String> = found[6..]
        .iter()
        .map(|row| row["parameters"].to_string())
        .collect();
    assert_eq!(
        of_svc,
        [
            r#"{"C":0.1,"kernel":"linear"}"#,
            r#"{"C":1,"kernel":"linear"}"#,
            r#"{"gamma":0.01,"kernel":"rbf"}"#,
            r#"{"gamma":0.1,"kernel":"rbf"}"#
        ]
    );
}

#[test]
fn reported_importances_name_the_columns_of_the_table() {
    let changes = [
        (
            "  enet:",
            "  rf:\n    parameters: {n_estimators: 20, selection: lasso, selection_C: 0.2}\n  enet:",
        ),
        (
            "    validate_A1:",
            "    evaluate_Spain: \"cohort == 'Spain' and severity is not missing\"\n    evaluate_A1_Japan: \"cohort == 'Japan'\"\n    validate_A1:",
        ),
    ];
    let place = place(
        &changes,
        "--split-names A1 --pipeline-names rf,lasso --cv 2",
    );
    place.stdout("sweep run sweep");
    let found = rows(&place, "sweep");
    for row in &found {
        let evaluation = row["fit"]["evaluation"].as_object().expect("scores");
        assert_eq!(evaluation.keys().collect::<Vec<_>>(), ["A1_Japan", "Spain"]);
        assert!(evaluation["Spain"]["roc_auc"].as_f64() > Some(0.3), "{row}");
    }
    let csv = fs_err::read_to_string(place.path("sweep/results.csv")).expect("read");
    assert!(
        csv.lines()
            .next()
            .is_some_and(|head| head.contains(",evaluation_A1_Japan,evaluation_Spain,")),
        "{csv}"
    );

    let best = &place.json("sweep best sweep --json")["choices"][0];
    let spain = &best["evaluation"]["Spain"];
    let own = &found[best["trial"].as_u64().expect("a trial") as usize - 1]["fit"]["evaluation"]["Spain"]
        ["roc_auc"];
    assert!(
        (spain["value"].as_f64().expect("a value") - own.as_f64().expect("a value")).abs() < 1e-12,
        "{best}"
    );
    assert!(spain["low"].as_f64() < spain["high"].as_f64(), "{best}");
    let importances = &best["importances"];
    assert_eq!(
        importances["measure"],
        if best["pipeline"] == "rf" {
            "split-gain"
        } else {
            "coefficient"
        }
    );
    let features = importances["features"].as_array().expect("features");
    assert!((1..=10).contains(&features.len()), "{importances}");
    let sizes: Vec<f64> = features
        .iter()
        .filter_map(|one| one["own"].as_f64())
        .map(f64::abs)
        .collect();
    assert!(
        sizes.len() == features.len() && sizes.is_sorted_by(|a, b| a >= b),
        "{importances}"
    );
    assert!(features.iter().all(|one| {
        one["feature"]
            .as_str()
            .is_some_and(|name| name.starts_with("taxon_"))
    }));
    assert!(
        features[0]["permutation"].as_f64() > Some(0.01),
        "what matters most is missed: {importances}"
    );

    let text = place.stdout("sweep best sweep");
    let shown = format!("  {} ", features[0]["feature"].as_str().expect("a name"));
    for words in [
        "on Spain",
        "on A1_Japan",
        "ROC-AUC lost if permuted",
        &shown,
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let again = place.stdout("sweep best sweep");
    assert_eq!(again, text);
}

#[test]
fn table_without_splits_is_scored_by_folds() {
    let text =
        fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/table.yaml"))
            .expect("read");
    let (before, after) = (
        text.find("  splits:").expect("there"),
        text.find("pipelines:\n").expect("there"),
    );
    let without =
        format!("{}{}", &text[..before], &text[after..]).replace("  validate: true\n", "");
    let place = place(&[], "--split-names A1");
    place.write("whole.yaml", &without);
    assert_eq!(
        place.stdout("sweep init whole.yaml -o whole --pipeline-names lasso"),
        "6 trials are planned in whole\n"
    );
    place.stdout("sweep run whole --split-names all");
    let best = &place.json("sweep best whole --json")["choices"][0];
    assert_eq!(
        (&best["split"], &best["validation"]),
        (&"all".into(), &Value::Null)
    );
    assert!(
        best["value"].as_f64() > Some(0.6)
            && best["importances"]["features"][0]["permutation"].is_null(),
        "{best}"
    );
    let predicted = place.stdout("predict whole tests/data/table/features.csv");
    assert!(
        predicted.starts_with("run,probability_healthy,probability_ill\n"),
        "{predicted}"
    );
    place.write("judged.yaml", without.replace("  cv: 5\n", ""));
    let refused = place.run("sweep init judged.yaml -o judged");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("`data.splits` is missing"),
        "{refused}"
    );
    assert!(
        refused
            .stderr
            .contains("without `splits`, use `--cv` alone"),
        "{refused}"
    );
}
