//! Tests of `poolcast report`: the page on a run or a sweep, and the same content as JSON.

use std::sync::LazyLock;

use crate::pipelines;
use crate::place::Place;
use crate::run::SMALL;
use crate::sweep::wait;

/// A test directory with a finished run of `small.yaml` in `out`.
static FINISHED: LazyLock<Place> = LazyLock::new(|| {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    place.stdout("run small.yaml");
    place
});

/// Reads a file of `place`.
fn text(place: &Place, name: &str) -> String {
    fs_err::read_to_string(place.path(name)).expect("read")
}

#[test]
fn run_writes_a_self_contained_page() {
    let page = text(&FINISHED, "out/report.html");
    for part in [
        "held",
        "rehearsal",
        "best",
        "evaluation",
        "sweep",
        "data",
        "provenance",
    ] {
        assert!(
            page.contains(&format!("<section id=\"{part}\"")),
            "no {part}"
        );
    }
    assert!(page.contains("default-src 'none'"));
    let page = page.split("<script>").next().expect("the markup before it");
    let loads = ["src=", "href=\"http", "url(", "@import", "NaN", "inf "];
    for word in loads {
        assert!(!page.contains(word), "`{word}` is in the page");
    }
    assert!(page.contains("condor_release "), "no command is shown");

    let figures = page.matches("<figure ").count();
    assert!(figures >= 12, "{figures} figures");
    assert_eq!(page.matches("<desc ").count(), figures);
    assert_eq!(page.matches("<summary>The numbers of").count(), figures);
}

/// The log of the run is relative to the directory in which the run was called.
#[test]
fn a_page_from_another_directory_has_the_same_reasons() {
    let elsewhere = Place::new();
    let run = FINISHED.path("out");
    elsewhere.stdout(&format!("report {} -o page.html", run.display()));
    let causes = |page: &str| {
        let held = page.split("<section id=\"held\"").nth(1);
        let held = held.and_then(|rest| rest.split("</section>").next());
        held.expect("held jobs").matches("/home/").count()
    };
    let found = causes(&text(&elsewhere, "page.html"));
    assert!(found > 0, "no file is named");
    assert_eq!(found, causes(&text(&FINISHED, "out/report.html")));
}

#[test]
fn rehearsal_and_states_are_on_the_page() {
    let report = FINISHED.json("report out --json");
    let parts = report["parts"].as_array().expect("parts");
    let rehearsal = parts.iter().find(|part| part["id"] == "rehearsal");
    insta::assert_snapshot!(format!("{:#}", rehearsal.expect("the part")));

    let state = "this reason in cluster 1086: last failure 2026-11-21 02:2";
    assert!(text(&FINISHED, "out/report.html").contains(state));
    FINISHED.stdout("report out --anonymous -o states.html");
    let nobody = text(&FINISHED, "states.html");
    assert!(!nobody.contains("in cluster 1086"));
    assert!(nobody.contains("<dd>last failure 2026-11-21 02:2"));

    let place = copy_without("rehearsal.json");
    place.stdout("report out -o without.html");
    assert!(!text(&place, "without.html").contains("<section id=\"rehearsal\""));
    place.write("out/rehearsal.json", "{\"schema_version\": 2}");
    let damaged = place.run("report out");
    assert_eq!(damaged.code, Some(2), "{damaged}");
}

#[test]
fn page_does_not_depend_on_the_environment() {
    for (name, variables) in [
        ("a.html", [("TZ", "Asia/Tokyo"), ("LC_ALL", "de_DE.UTF-8")]),
        ("b.html", [("TZ", "UTC"), ("RAYON_NUM_THREADS", "3")]),
    ] {
        let mut command = FINISHED.command(&format!("report out -o {name}"));
        let output = command.envs(variables).output().expect("it starts");
        assert!(output.status.success());
        assert_eq!(text(&FINISHED, name), text(&FINISHED, "out/report.html"));
    }
}

#[test]
fn page_and_json_document_have_the_same_rows() {
    let report = FINISHED.json("report out --json");
    assert_eq!(
        report["title"],
        "localhost: 8 held jobs, 2026-11-21 02:26:17 UTC"
    );
    let page = text(&FINISHED, "out/report.html");
    let mut rows = 0;
    let mut tables = 0;
    for part in report["parts"].as_array().expect("parts") {
        for block in part["blocks"].as_array().expect("blocks") {
            let table = match block["kind"].as_str() {
                Some("table") => block,
                Some("figure") => &block["table"],
                _ => continue,
            };
            tables += 1;
            rows += table["rows"].as_array().expect("rows").len();
        }
    }
    assert_eq!(page.matches("<table").count(), tables);
    // Each table has a header row, too.
    assert_eq!(page.matches("<tr>").count(), rows + tables);
}

/// The page shows the curve and the scores of the same evaluation.
#[test]
fn area_under_the_drawn_curve_matches_the_score() {
    let report = FINISHED.json("report out --json");
    let parts = report["parts"].as_array().expect("parts");
    let blocks = parts
        .iter()
        .flat_map(|part| part["blocks"].as_array().expect("blocks"));
    let roc = blocks
        .clone()
        .find(|block| block["id"] == "roc")
        .expect("a curve");
    let scores = blocks
        .clone()
        .find(|block| block["title"] == "Scores on holds that the model has not seen")
        .expect("scores");

    let mut area = 0.0;
    let points = roc["table"]["rows"].as_array().expect("points");
    let number = |cell: &serde_json::Value| cell.as_f64().expect("a number");
    for pair in points.windows(2) {
        let width = number(&pair[1][0]) - number(&pair[0][0]);
        area += width * (number(&pair[0][1]) + number(&pair[1][1])) / 2.0;
    }
    let is_area = |row: &&serde_json::Value| {
        row[0]
            .as_str()
            .is_some_and(|name| name.starts_with("ROC-AUC"))
    };
    let rows = scores["rows"].as_array().expect("rows");
    let scored = number(&rows.iter().find(is_area).expect("a row")[1]);
    // A curve of many points is drawn with fewer points, so the area is inexact.
    assert!((area - scored).abs() < 0.01, "{area} beside {scored}");
}

#[test]
fn anonymous_page_contains_no_names() {
    FINISHED.stdout("report out --anonymous -o nobody.html");
    let page = text(&FINISHED, "nobody.html");
    for word in [
        "localhost",
        "tester",
        "EventLog",
        "1148.1",
        "condor_release",
        "out.txt",
        "small",
    ] {
        assert!(!page.contains(word), "`{word}` is in the page");
    }
    assert!(page.contains("8 held jobs"), "the counts stay");
}

#[test]
fn page_of_a_single_run_names_the_missing_steps() {
    let place = Place::with_run();
    place.stdout("report run -o run.html");
    let page = text(&place, "run.html");
    assert!(page.contains("Loss of the best network by epoch"));
    assert!(page.contains("poolcast evaluate run TENSORS"));
    assert!(page.contains("poolcast advise run --log LOG"));
    assert!(page.contains("rate by hold code"), "it was evaluated");
}

#[test]
fn directory_without_results_is_rejected() {
    let place = Place::new();
    fs_err::create_dir(place.path("empty")).expect("made");
    insta::assert_snapshot!(place.run("report empty"), @r"
    exit 2
    error: `empty` is not a run, a sweep or a DAG

    hint: name the directory that `poolcast run`, `sweep init`, `dag` or `train` wrote
    ");
}

/// The page shows names and errors from outside as text, never as markup.
#[test]
fn hostile_names_and_errors_are_escaped() {
    let place = Place::with_short_log();
    let sweep = r#"wandb: {sweep: {name: "</title></script><script>alert(1)</script>\u202e"}}"#;
    place.write("hostile.yaml", format!("{SMALL}{sweep}\n"));
    place.stdout("sweep init hostile.yaml");
    place.stdout("report out");
    let begun = text(&place, "out/report.html");
    assert!(begun.contains("No trial has ended yet"));

    place.stdout("sweep run out");
    let rows = text(&place, "out/results.jsonl");
    let long = format!("<img src=x>\u{202e}{}", "x".repeat(10_000));
    let error = serde_json::to_string(&long).expect("JSON");
    let rows = rows.replacen("\"error\":null", &format!("\"error\":{error}"), 1);
    place.write("out/results.jsonl", rows);
    place.stdout("report out");
    let ended = text(&place, "out/report.html");
    assert!(ended.contains("&lt;img src=x&gt;"), "the error is shown");
    assert!(!ended.contains(&"x".repeat(400)), "it is cut");

    for page in [begun, ended] {
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(!page.contains("<img"));
        assert!(
            !page.contains('\u{202e}'),
            "a character that changes the text direction is left"
        );
    }
}

#[test]
fn watched_page_reloads_until_the_sweep_ends() {
    let place = Place::with_short_log();
    place.write("small.yaml", SMALL);
    place.stdout("sweep init small.yaml");
    let mut watching = place
        .command("-q report out --watch")
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let path = place.path("out/report.html");
    wait(|| path.exists());
    assert!(text(&place, "out/report.html").contains("<body data-reload=\"10\">"));

    place.stdout("sweep run out");
    assert!(watching.wait().expect("it ends").success());
    assert!(text(&place, "out/report.html").contains("<body>"));
}

/// Makes a finished sweep in `sweep`, with the configuration of [`FINISHED`] and `count` rows. Each
/// row is a copy of the first row there, changed by `edit`.
fn sweep_of(count: usize, edit: impl Fn(usize, &mut serde_json::Value)) -> Place {
    let place = Place::new();
    fs_err::create_dir(place.path("sweep")).expect("made");
    place.write("sweep/config.yaml", text(&FINISHED, "out/config.yaml"));
    let mut manifest: serde_json::Value =
        serde_json::from_str(&text(&FINISHED, "out/manifest.json")).expect("JSON");
    manifest["trials"] = count.into();
    place.write("sweep/manifest.json", manifest.to_string());

    let rows = text(&FINISHED, "out/results.jsonl");
    let first = rows.lines().next().expect("a row");
    let row: serde_json::Value = serde_json::from_str(first).expect("JSON");
    let mut lines = String::new();
    for trial in 1..=count {
        let mut row = row.clone();
        row["trial"] = trial.into();
        edit(trial, &mut row);
        lines += &format!("{row}\n");
    }
    place.write("sweep/results.jsonl", lines);
    place
}

/// Writes the report on `sweep` and returns the page.
fn page_of(place: &Place) -> String {
    place.stdout("report sweep");
    text(place, "sweep/report.html")
}

#[test]
fn parameter_importance_is_shown_from_twenty_trials_on() {
    let edit = |trial: usize, row: &mut serde_json::Value| {
        let size = [4, 8, 16][trial % 3];
        row["parameters"]["hidden_size"] = size.into();
        row["parameters"]["learning_rate"] = (0.001 * trial as f64).into();
        row["value"] = (0.5 + 0.01 * f64::from(size) + 1e-6 * trial as f64).into();
    };
    let few = page_of(&sweep_of(19, edit));
    assert!(few.contains("from 20 trials with a value on; there are 19."));
    assert!(few.contains("<figure id=\"parallel\"") && !few.contains("<figure id=\"importance\""));

    let place = sweep_of(60, edit);
    let report = place.json("report sweep --json");
    let parts = report["parts"].as_array().expect("parts");
    let mut blocks = parts
        .iter()
        .flat_map(|part| part["blocks"].as_array().expect("blocks"));
    let importance = blocks
        .find(|block| block["id"] == "importance")
        .expect("told");
    let first = &importance["table"]["rows"][0];
    assert_eq!(first[0], "hidden_size");
    assert!(first[1].as_f64().expect("a share") > 0.9, "{first}");
    let see = importance["see"].as_str().expect("text");
    assert!(see.contains("can be trusted"), "{see}");
    let sizes = blocks
        .find(|block| block["title"] == "By hidden_size")
        .expect("a plot");
    let names: Vec<&serde_json::Value> = sizes["table"]["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| &row[0])
        .collect();
    assert_eq!(
        names.len(),
        3,
        "listed values are shown as words: {names:?}"
    );
}

#[test]
fn rungs_list_the_trials_that_they_stopped() {
    let place = sweep_of(9, |trial, row| {
        let is_stopped = trial % 3 == 0;
        row["metrics"]["epochs"] = if is_stopped { 1 } else { 3 }.into();
        row["metrics"]["status"] = if is_stopped {
            "terminated early"
        } else {
            "finished"
        }
        .into();
    });
    let config = text(&place, "sweep/config.yaml");
    let rule = "early_terminate: {type: hyperband, min_iter: 1, eta: 2}";
    let ruled = config.replace("early_terminate: null", rule);
    assert_ne!(config, ruled);
    place.write("sweep/config.yaml", ruled);
    let report = place.json("report sweep --json");
    let parts = report["parts"].as_array().expect("parts");
    let mut blocks = parts
        .iter()
        .flat_map(|part| part["blocks"].as_array().expect("blocks"));
    let rungs = blocks.find(|block| block["id"] == "rungs").expect("rungs");
    assert_eq!(
        rungs["table"]["rows"],
        serde_json::json!([[1, 9, 6, 3, "3, 6, 9"], [2, 6, 6, 0, ""]])
    );
}

#[test]
fn sweeps_with_extreme_rows_have_a_valid_page() {
    type Edit = fn(usize, &mut serde_json::Value);
    let fails: Edit = |_, row| {
        row["ended"] = "error".into();
        row["value"] = serde_json::Value::Null;
        row["values"] = serde_json::json!([]);
        row["metrics"] = serde_json::Value::Null;
    };
    let is_huge: Edit = |trial, row| {
        row["value"] = if trial == 7 { 1.7e308 } else { -1.7e308 }.into();
        row["values"] = serde_json::json!([1.7e308, null, -1.7e308]);
        row["parameters"]["learning_rate"] = 1.7e308.into();
        row["parameters"]["hidden_size"] = trial.into();
    };
    let is_equal: Edit = |trial, row| {
        row["value"] = 0.5.into();
        row["parameters"]["hidden_size"] = trial.into();
    };
    let is_hostile: Edit = |trial, row| {
        let word = format!("</script><img src=x>\u{202e}{trial}{}", "x".repeat(10_000));
        row["parameters"][&word] = trial.into();
        row["parameters"]["model"] = word.clone().into();
        row["pipeline"] = word.clone().into();
        row["split"] = if trial % 2 == 0 {
            serde_json::Value::Null
        } else {
            word.into()
        };
        row["value"] = trial.into();
    };
    for (count, edit) in [
        (1, is_equal),
        (1, fails),
        (30, fails),
        (30, is_huge),
        (30, is_equal),
        (30, is_hostile),
    ] {
        let page = page_of(&sweep_of(count, edit));
        let markup = page.split("<script>").next().expect("the markup before it");
        for word in ["NaN", "inf ", "<img", "\u{202e}"] {
            assert!(!markup.contains(word), "`{word}` is in a page of {count}");
        }
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(
            page.len() < 500_000,
            "{} bytes of {count} trials",
            page.len()
        );
    }
}

#[test]
fn sweep_over_tables_with_folds_and_classes_has_a_valid_page() {
    let changes = [
        ("target: condition", "target: severity"),
        ("cv: 5", "cv: 3\n  folds: time"),
    ];
    let place = pipelines::place(&changes, "--pipeline-names lasso,enet");
    place.stdout("sweep run sweep");
    let page = page_of(&place);
    let markup = page.split("<script>").next().expect("the markup before it");
    for part in ["held", "best", "evaluation", "sweep", "data", "provenance"] {
        assert!(
            markup.contains(&format!("<section id=\"{part}\"")),
            "{part}"
        );
    }
    for word in ["A1", "lasso", "All trials that have ended"] {
        assert!(markup.contains(word), "`{word}` is not in the page");
    }
    assert!(!markup.contains("NaN") && !markup.contains(" inf"));
}

#[test]
fn truncated_history_only_loses_its_curve() {
    let place = sweep_of(2, |_, _| {});
    let history = text(&FINISHED, "out/trials/trial-0001/history.jsonl");
    for trial in ["trial-0001", "trial-0002"] {
        fs_err::create_dir_all(place.path(&format!("sweep/trials/{trial}"))).expect("made");
    }
    place.write(
        "sweep/trials/trial-0001/history.jsonl",
        &history[..history.len() - 20],
    );
    place.write("sweep/trials/trial-0002/history.jsonl", history);
    let page = page_of(&place);
    assert!(page.contains("Of trial 2, the best network."));

    let rows = text(&place, "sweep/results.jsonl");
    place.write("sweep/results.jsonl", &rows[..rows.len() - 20]);
    let outcome = place.run("report sweep");
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("results.jsonl`, line 2"),
        "{outcome}"
    );
}

/// Returns a log of sixty jobs that all succeed. If `are_held`, each job is first held and
/// released.
fn log_of_one_class(are_held: bool) -> String {
    let mut events = Vec::new();
    for job in 1..=60 {
        let mut add = |number: &str, after_s: u32, text: &str| {
            let at = 60 * job + after_s;
            let (minute, second) = (at / 60, at % 60);
            let stamp = format!(
                "2026-11-21 {:02}:{:02}:{second:02}",
                minute / 60,
                minute % 60
            );
            let event = format!("{number} ({job:03}.000.000) {stamp} {text}\n...\n");
            events.push((at, event));
        };
        add(
            "000",
            0,
            "Job submitted from host: <10.0.0.1:9618?alias=ap>",
        );
        if are_held {
            add(
                "012",
                10,
                "Job was held.\n\tTransfer failed\n\tCode 13 Subcode 2",
            );
            add("013", 20, "Job was released.");
        }
        add("001", 30, "Job executing on host: <10.0.0.2:1>");
        let ended = "Job terminated.\n\t(1) Normal termination (return value 0)";
        add("005", 40, ended);
    }
    events.sort();
    events.into_iter().map(|(_, event)| event).collect()
}

#[test]
fn log_with_one_class_or_without_holds_has_a_valid_page() {
    let place = Place::new();
    for (name, are_held) in [("one", true), ("none", false)] {
        place.write("job.log", log_of_one_class(are_held));
        let config = "runs: 1\nepochs: 2\nevaluation: {resamples: 10}\n\
             preprocessing: {parameters: {j: 3, m: 3, timeframe_len: 10}}\ntraining: {parameters: {hidden_size: 2}}\n";
        place.write(
            "one.yaml",
            format!("logs: [job.log]\nout: {name}\n{config}"),
        );
        place.stdout("run one.yaml");

        place.stdout(&format!("report {name} -o {name}.html"));
        let page = text(&place, &format!("{name}.html"));
        for part in ["held", "best", "evaluation", "sweep", "data", "provenance"] {
            assert!(
                page.contains(&format!("<section id=\"{part}\"")),
                "{name}: {part}"
            );
        }
        let drawn = page.split("<script>").next().expect("the markup before it");
        assert!(!drawn.contains("NaN") && !drawn.contains(" inf"), "{name}");
    }
}

/// Returns the files of the finished run that the report opens, below `out`: one of each kind.
fn reported_files() -> Vec<String> {
    let files = FINISHED.files("out");
    let trial = files
        .keys()
        .find_map(|name| name.strip_suffix("/evaluation-test.json"))
        .expect("the best trial is scored");
    let mut found = vec![
        format!("{trial}/model.safetensors"),
        format!("{trial}/manifest.json"),
        "events/events-00000.safetensors".to_owned(),
        "events/manifest.json".to_owned(),
    ];
    let config = text(&FINISHED, &format!("out/{trial}/config.yaml"));
    let j = config
        .lines()
        .find_map(|line| line.trim().strip_prefix("j: "));
    let tensors = format!("tensors/j{}-", j.expect("a number"));
    let of_best = files.keys().filter(|name| name.starts_with(&tensors));
    found.extend(of_best.cloned());
    found
}

/// A copy of the finished run in `out`, without `left_out`.
fn copy_without(left_out: &str) -> Place {
    let place = Place::with_log();
    for (name, bytes) in FINISHED.files("out") {
        if name != left_out {
            let path = place.path(&format!("out/{name}"));
            fs_err::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs_err::write(path, bytes).expect("written");
        }
    }
    place
}

#[test]
fn damaged_files_are_errors_and_absent_ones_are_not() {
    let files = reported_files();
    assert!(files.len() >= 8, "{files:?}");
    for name in files {
        let place = copy_without(&name);
        let outcome = place.run("report out");
        assert_eq!(outcome.code, Some(0), "without {name}\n{outcome}");

        let mut bytes = FINISHED.files("out")[&name].clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        place.write(&format!("out/{name}"), bytes);
        let outcome = place.run("report out");
        assert_eq!(outcome.code, Some(2), "damaged {name}\n{outcome}");
        assert!(
            outcome.stderr.contains("hint: copy the directory again"),
            "{outcome}"
        );
        assert!(
            outcome
                .stderr
                .contains("poolcast sweep init out/config.yaml -o DIR"),
            "{outcome}"
        );
    }
}

#[test]
fn files_of_another_version_count_as_absent() {
    for name in reported_files() {
        if !name.ends_with("manifest.json") {
            continue;
        }
        let place = copy_without("");
        let manifest = text(&place, &format!("out/{name}"));
        let version = manifest
            .lines()
            .find(|line| line.contains("format_version"));
        let other = manifest.replace(version.expect("a version"), "  \"format_version\": 9999,");
        place.write(&format!("out/{name}"), other);
        let outcome = place.run("report out");
        assert_eq!(outcome.code, Some(0), "{name}\n{outcome}");
        assert!(text(&place, "out/report.html").contains("another version of poolcast"));
    }
}

/// Trials of two kinds have hyper-parameters of one name that mean different things.
#[test]
fn kinds_have_hyper_parameters_and_parallel_coordinates_of_their_own() {
    let place = sweep_of(30, |trial, row| {
        row["value"] = (0.9 - 0.001 * trial as f64).into();
        row["parameters"]["learning_rate"] = (0.001 * trial as f64).into();
        if trial % 2 == 0 {
            let rate = 0.01 * trial as f64;
            row["pipeline"] = "xgb".into();
            row["parameters"] = serde_json::json!({"learning_rate": rate, "max_depth": trial % 5});
            row["metrics"] = serde_json::Value::Null;
            row["values"] = serde_json::json!([]);
        }
    });
    let config = text(&place, "sweep/config.yaml");
    let pipelines = "pipelines: {xgb: {runs: 15, parameters: {learning_rate: {distribution: log_uniform_values, min: 0.01, max: 0.3}}}}";
    let mixed = config.replace("pipelines: {}", pipelines);
    assert_ne!(config, mixed);
    place.write("sweep/config.yaml", mixed);

    let report = place.json("report sweep --json");
    let parts = report["parts"].as_array().expect("parts");
    let blocks: Vec<&serde_json::Value> = parts
        .iter()
        .flat_map(|part| part["blocks"].as_array().expect("blocks"))
        .collect();
    let block = |id: &str| blocks.iter().find(|block| block["id"] == id);
    let names = |id: &str| {
        let columns = block(id).expect(id)["table"]["columns"]
            .as_array()
            .expect("columns");
        let names = columns
            .iter()
            .map(|column| column["name"].as_str().expect("a name").to_owned());
        names.collect::<Vec<String>>()
    };
    assert!(block("parallel").is_none());
    let (first, second) = (names("parallel-1"), names("parallel-2"));
    assert!(
        first.contains(&"network.learning_rate".to_owned()),
        "{first:?}"
    );
    assert!(
        second.contains(&"xgb.learning_rate".to_owned()),
        "{second:?}"
    );
    assert!(second.contains(&"max_depth".to_owned()) && !first.contains(&"max_depth".to_owned()));

    let rows = block("importance").expect("a forest")["table"]["rows"].as_array();
    let ranked: Vec<&str> = rows
        .expect("rows")
        .iter()
        .filter_map(|row| row[0].as_str())
        .collect();
    assert!(ranked.contains(&"network.learning_rate") && ranked.contains(&"xgb.learning_rate"));
    assert!(!ranked.contains(&"learning_rate"), "{ranked:?}");

    // The line of each trial crosses all axes of its panel.
    place.stdout("report sweep");
    let page = text(&place, "sweep/report.html");
    let line = page.split("data-trial=\"1\" d=\"").nth(1).expect("a line");
    let line = line.split('"').next().expect("its end");
    assert_eq!(line.matches('M').count(), 1, "{line}");
    assert_eq!(line.matches('L').count(), first.len() - 2, "{line}");
}

#[test]
fn metric_is_the_value_of_the_kept_epoch_everywhere() {
    let place = sweep_of(2, |trial, row| {
        row["value"] = (0.5 + 0.1 * trial as f64).into();
        row["values"] = serde_json::json!([0.7, 0.8, 0.75]);
        row["metrics"]["best"]["epoch"] = 2.into();
        row["metrics"]["best"]["validation"]["roc_auc"] = 0.8.into();
    });
    let report = place.json("report sweep --json");
    let parts = report["parts"].as_array().expect("parts");
    let mut blocks = parts
        .iter()
        .flat_map(|part| part["blocks"].as_array().expect("blocks"));
    let table = blocks
        .find(|block| block["title"] == "All trials that have ended, the best first")
        .expect("a table");
    let columns = table["columns"].as_array().expect("columns");
    let cells = |name: &str| {
        let at = columns.iter().position(|column| column["name"] == name);
        let rows = table["rows"].as_array().expect("rows").iter();
        rows.map(|row| row[at.expect(name)].as_f64())
            .collect::<Vec<_>>()
    };
    assert_eq!(cells("validation_roc_auc"), [Some(0.8), Some(0.8)]);
    let mut judged = cells("judged_roc_auc");
    judged.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    assert_eq!(judged, [Some(0.6), Some(0.7)]);
}

#[test]
fn page_of_a_run_without_trials_keeps_the_held_jobs() {
    let place = Place::with_answers();
    let page = || fs_err::read_to_string(place.path("run/report.html")).expect("read");
    let of_learn = page();
    assert!(of_learn.contains("typo.dat"), "learn writes them");
    place.stdout("report run");
    assert!(page().contains("typo.dat"));
}

#[test]
fn earlier_report_is_compared_with_the_results_of_now() {
    let place = Place::new();
    let log = &*crate::place::LOG_TEXT;
    let until = |time: &str| {
        let at = log
            .find(&format!(") 11/21 {time}"))
            .expect("a record of then");
        &log[..log[..at].rfind("...\n").expect("the end of one") + 4]
    };
    place.write("EventLog", until("01:53:00"));
    place.stdout("learn --log EventLog -o out");
    place.write("earlier.json", text(&place, "out/report.json"));
    place.write("advice.json", place.stdout("advise out --json"));
    place.write("fixes.json", place.stdout("advise out --json --action fix"));

    place.write("EventLog", until("01:54:00"));
    let learned = place.stdout("learn --log EventLog -o out");
    let shown = place.stdout("report --diff earlier.json out");
    let head: String = shown.split_inclusive('\n').take(3).collect();
    assert!(learned.contains(&head), "learn counts the same\n{learned}");
    let fewer = "    and 24 more\n  54 jobs no longer held\n";
    assert!(learned.contains(fewer), "{fewer} is not in\n{learned}");
    // The log decides these, and no model.
    for line in [
        "Since the previous report, whose log ended 2026-11-21 01:52:59 UTC\n  64 more holds\n",
        "\n  26 jobs still held, 15 of them in another hold, ",
        "\n  27 new held jobs\n    42.2: ",
        "\n    and 17 more\n  54 jobs no longer held\n    41 succeeded\n      20.5: was ",
        "\n      and 31 more\n    3 removed\n      17.1: was ",
        "\n    10 released, and not ended yet\n      19.0: was ",
        "\n  1 new thing\n    input files could not be transferred to the job",
    ] {
        assert!(shown.contains(line), "no {line} in\n{shown}");
    }

    let changes = place.json("report --diff earlier.json out --json");
    let number = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(&text(&place, report)).expect("JSON");
        report["advice"]["held"].as_u64().expect("a number")
    };
    let count = |key: &str| changes[key].as_array().expect(key).len() as u64;
    let still = changes["still_held"].as_u64().expect("a number");
    assert_eq!(still + count("gone_jobs"), number("earlier.json"));
    assert_eq!(still + count("new_jobs"), number("out/report.json"));

    // What `advise` printed has the names of things, too.
    let of_advice = place.json("report --diff advice.json out --json");
    for key in ["new_jobs", "gone_jobs", "other_answers", "held_again"] {
        assert_eq!(of_advice[key], changes[key], "{key}");
    }
    place.write("same.json", place.stdout("advise out --json"));
    let same = place.json("report --diff same.json out --json");
    assert_eq!(same["new_things"], serde_json::json!([]));
    assert_eq!(same["gone_jobs"], serde_json::json!([]));

    place.write("page.json", place.stdout("report out --json"));
    for other in ["fixes.json", "page.json", "EventLog", "missing.json"] {
        let refused = place.run(&format!("report --diff {other} out"));
        let error = format!("error: `{other}` is not a report on all held jobs");
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(&error), "{refused}");
    }
}
