//! Tests of `poolcast run`: all stages on the bundled log, with small models.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::place::{LOG_TEXT, Outcome, Place};
use crate::sweep::{caught, start, wait};

/// Configuration of a small sweep of networks on the bundled log.
pub(crate) const SMALL: &str = "
logs: [EventLog.xz]
out: out
runs: 3
epochs: 3
preprocessing: {parameters: {j: {values: [3, 5]}, m: 4, timeframe_len: 10}}
training: {parameters: {model: {values: [lstm, gru, mlp]}, hidden_size: {values: [4, 8]}, learning_rate: {distribution: uniform, min: 0.001, max: 0.02}}}
evaluation: {resamples: 50}
";

/// Returns the files in the directory `name`, without those that depend on times and workers.
fn timeless(place: &Place, name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = place.files(name);
    files.retain(|name, _| {
        ![
            "results.jsonl",
            "results.csv",
            "status.log",
            "last-page.json",
        ]
        .contains(&name.as_str())
    });
    files
}

fn place() -> Place {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    place
}

/// A test directory like [`place`], with a part of the log.
fn short_place() -> Place {
    let place = Place::with_short_log();
    place.write("small.yaml", SMALL);
    place
}

#[test]
fn run_writes_all_results_and_a_second_run_changes_nothing() {
    let place = place();
    let first = place.run("run small.yaml");
    assert_eq!(first.code, Some(0), "{first}");
    for heading in [
        "Events",
        "Samples of the best trial",
        "Trials, by judged_roc_auc",
        "The best trial on holds",
        "Advice on the jobs",
        "8 held jobs: ",
    ] {
        assert!(
            first.stdout.lines().any(|line| line.starts_with(heading)),
            "no `{heading}` in\n{first}"
        );
    }
    let before = place.files("out");
    for name in [
        "config.yaml",
        "events/manifest.json",
        "trials/trial-0003/model.safetensors",
        "best.json",
        "report.json",
    ] {
        assert!(before.contains_key(name), "{name} is missing");
    }
    assert!(
        before
            .keys()
            .any(|name| name.starts_with("trials/") && name.ends_with("evaluation-test.json"))
    );
    let trained = |model: &str| first.stdout.split_whitespace().any(|word| word == model);
    assert!(
        ["lstm", "gru", "mlp"]
            .iter()
            .filter(|model| trained(model))
            .count()
            > 1,
        "one model alone in\n{first}"
    );
    let second = place.run("run small.yaml");
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(
        second.stderr.matches("already done").count(),
        2,
        "events and trials\n{second}"
    );
    assert_eq!(place.files("out"), before);
    assert_eq!(second.stdout, first.stdout);
    let before = timeless(&place, "out");
    place.stdout("run small.yaml --overwrite");
    assert_eq!(
        timeless(&place, "out"),
        before,
        "anew, and yet the same bytes"
    );
    let best = place.run("advise out --log EventLog.xz 1161.0");
    assert_eq!(
        best.code,
        Some(10),
        "a directory with a best trial stands for that trial's run\n{best}"
    );
}

#[test]
fn the_answers_advise_and_the_best_trial_predicts() {
    let place = place();
    let report = place.json("run small.yaml --json");
    let best = report["best"]["trial"].as_u64().expect("a trial");
    let trial = format!("out/trials/trial-{best:04}");
    let asked = place.json("advise out --log EventLog.xz --json");
    for basis in [&report["advice"], &asked] {
        assert_eq!(basis["trained_until_ms"], asked["log_end_ms"]);
        let rehearsed = &basis["rehearsed"]["kind_right"]["of"];
        assert!(rehearsed.as_u64() > Some(0), "{basis}");
    }

    let predicted = place.stdout("predict out out/events");
    let of_trial = place.stdout(&format!("predict {trial} out/events"));
    assert!(predicted.lines().count() > 8 && predicted == of_trial);
    let info = fs_err::read_to_string(place.path("out/bestmodel.info")).expect("read");
    assert!(
        info.contains(&format!("model = {}/model.safetensors\n", &trial[4..])),
        "{info}"
    );
}

#[test]
fn killed_run_resumes_to_the_same_bytes() {
    let place = short_place();
    place.stdout("run small.yaml -o whole");
    let has_checkpoint = || {
        let trials = fs_err::read_dir(place.path("killed/queue/running"))
            .into_iter()
            .flatten();
        trials
            .filter_map(Result::ok)
            .any(|dir| dir.path().join("checkpoint.safetensors").exists())
    };
    caught(|| {
        let mut child = start(&place, "run small.yaml -o killed");
        wait(|| has_checkpoint() || child.try_wait().expect("asked").is_some());
        child.kill().expect("killed");
        child.wait().expect("it ended");
        if !has_checkpoint() {
            fs_err::remove_dir_all(place.path("killed")).expect("removed");
            return None;
        }
        Some(())
    });
    place.stdout("run small.yaml -o killed");
    // Both files name their directory.
    let says_place = |name: &String| name.ends_with("config.yaml") || name == "report.html";
    let files = |name: &str| {
        let files = timeless(&place, name).into_iter();
        files
            .filter(|(name, _)| !says_place(name) && !name.contains("/."))
            .collect::<Vec<_>>()
    };
    assert!(
        files("killed") == files("whole"),
        "a resumed run differs from a whole one"
    );
}

#[test]
fn second_run_names_the_first_and_leaves_it_alone() {
    let place = place();
    fs_err::remove_file(place.path("EventLog.xz")).expect("removed");
    let whole = fs_err::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/gel/EventLog.xz"
    ));
    place.write("EventLog.xz", whole.expect("read"));
    let send = |child: &Child, signal| {
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, signal).expect("sent");
    };
    // It stands still while others want its directory.
    let first = caught(|| {
        let mut command = place.command("run small.yaml");
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("it starts");
        let is_at_work = || place.path("out/queue/running").exists();
        wait(|| is_at_work() || child.try_wait().expect("asked").is_some());
        send(&child, Signal::STOP);
        if is_at_work() {
            return Some(child);
        }
        child.kill().expect("killed");
        child.wait().expect("it ended");
        fs_err::remove_dir_all(place.path("out")).expect("removed");
        None
    });

    // The log has changed since, so the second run would parse it again and begin another sweep.
    place.write("grown", &*LOG_TEXT);
    let busy = format!("error: process {} is writing to `out`", first.id());
    for args in [
        "run small.yaml",
        "run small.yaml --overwrite",
        "run small.yaml --log grown",
        "sweep init small.yaml -o out --overwrite",
    ] {
        let second = place.run(args);
        assert!(
            second.code == Some(1) && second.stderr.starts_with(&busy),
            "{args}\n{second}"
        );
    }

    send(&first, Signal::CONT);
    let first = Outcome::of(first.wait_with_output().expect("it ends"));
    assert_eq!(first.code, Some(0), "{first}");
    let names = place.files("out");
    assert!(
        !names.keys().any(|name| name.starts_with(".lock")),
        "{:?}",
        names.keys()
    );
}

#[test]
fn another_seed_makes_other_trials() {
    let place = short_place();
    let first = place.json("run small.yaml --json");
    place.write("small.yaml", format!("{SMALL}seed: 2\n"));
    let second = place.json("run small.yaml --json");
    let losses = |report: &serde_json::Value| trial_values(report, "last");
    assert_ne!(losses(&first), losses(&second));
    assert_eq!(first["events"], second["events"]);
}

#[test]
fn trial_with_a_non_finite_loss_is_not_chosen() {
    let place = place();
    // At this learning rate the weights jump about. With the weight decay as well, they grow ten
    // thousandfold per step.
    let rate = "learning_rate: {distribution: uniform, min: 0.001, max: 0.02}";
    place.write(
        "wild.yaml",
        SMALL.replace(rate, "learning_rate: 10, weight_decay: {values: [0, 1000]}"),
    );
    let first = place.json("run wild.yaml --json");
    let trials = first["best"]["trials"].as_array().expect("trials");
    let is_wild = |trial: &serde_json::Value| trial["status"] == "non-finite";
    let wild = trials.iter().filter(|trial| is_wild(trial)).count();
    assert!((1..trials.len()).contains(&wild), "{trials:?}");
    let best = first["best"]["trial"].as_u64().expect("a trial") as usize;
    assert!(!is_wild(&trials[best - 1]));
    for (trial, number) in trials.iter().zip(1..) {
        let path = place.path(&format!("out/trials/trial-{number:04}/metrics.json"));
        let metrics: serde_json::Value =
            serde_json::from_slice(&fs_err::read(path).expect("read")).expect("JSON");
        assert!(
            ["status", "epochs", "best", "calibration"]
                .iter()
                .all(|key| metrics[key] == trial[key]),
            "{metrics}"
        );
    }
    assert_eq!(
        place.json("run wild.yaml --json"),
        first,
        "again, from what is there"
    );
    assert!(
        place
            .stdout("run wild.yaml")
            .contains("the loss is not finite in epoch 1; a smaller learning rate may help")
    );
}

/// Returns the small sweep with `keys` in `wandb.sweep`, and with `lines` added.
fn sweep(keys: &str, lines: &str) -> String {
    // The models learn so little that their F-measures are equal.
    let metric = "metric: {name: validation_loss, goal: minimize}";
    format!(
        "{}wandb: {{sweep: {{{keys}, {metric}}}}}\n{lines}",
        SMALL.replace("runs: 3\nepochs: 3\n", "")
    )
}

/// Returns the value of `key` for each trial.
fn trial_values(report: &serde_json::Value, key: &str) -> Vec<serde_json::Value> {
    report["best"]["trials"]
        .as_array()
        .expect("trials")
        .iter()
        .map(|trial| trial[key].clone())
        .collect()
}

#[test]
fn grid_search_tries_every_point_up_to_the_cap() {
    let place = short_place();
    let rate = "learning_rate: {distribution: uniform, min: 0.001, max: 0.02}";
    let grid = sweep("method: grid", "runs: 1\nepochs: 1\n").replace(rate, "learning_rate: 0.01");
    let grid = grid.replace("model: {values: [lstm, gru, mlp]}, ", "");
    place.write("grid.yaml", &grid);
    place.stdout("run grid.yaml");
    let sizes = |trial: usize| {
        let text =
            fs_err::read_to_string(place.path(&format!("out/trials/trial-{trial:04}/config.yaml")))
                .expect("read");
        ["hidden_size: ", "j: "].map(|key| {
            text.split(key)
                .nth(1)
                .expect("a key")
                .lines()
                .next()
                .expect("a line")
                .to_owned()
        })
    };
    let expected = [["4", "3"], ["4", "5"], ["8", "3"], ["8", "5"]];
    assert_eq!(
        [1, 2, 3, 4]
            .map(sizes)
            .map(|sizes| sizes.map(|size| size.trim_end_matches(".0").to_owned())),
        expected
    );
    place.write(
        "grid.yaml",
        grid.replace("method: grid", "method: grid, run_cap: 3"),
    );
    assert_eq!(
        trial_values(&place.json("run grid.yaml -o capped --json"), "trial").len(),
        3
    );
}

/// The frames of random jobs say nothing about a fault. With `asha`, a network that sees only these
/// ends at the first rung.
#[test]
fn kind_whose_input_adds_nothing_ends_early() {
    let place = Place::with_log();
    place.write(
        "kinds.yaml",
        "
logs: [EventLog.xz]
epochs: 9
preprocessing: {parameters: {j: 3, m: 4, timeframe_len: 20}}
training:
  time_cuts: 2
  parameters: {model: {values: [lstm, mlp, outcomes]}, hidden_size: {values: [4, 8]}, learning_rate: 0.01, batch_size: 64}
wandb: {sweep: {method: grid, deterministic: true, early_terminate: {type: asha, min_iter: 3, eta: 3}}}
evaluation: {resamples: 20}
",
    );
    let report = place.json("run kinds.yaml -o out --json");
    let epochs = trial_values(&report, "epochs");
    let models = trial_values(&report, "model");
    let of_kind = |kind: &str| -> Vec<u64> {
        let pairs = models.iter().zip(&epochs);
        let own = pairs.filter(|(model, _)| *model == kind);
        own.filter_map(|(_, epochs)| epochs.as_u64()).collect()
    };
    assert_eq!(of_kind("lstm"), [3, 3]);
    let others = [of_kind("mlp"), of_kind("outcomes")].concat();
    assert_eq!(others.iter().filter(|epochs| **epochs == 9).count(), 2);
}

#[test]
fn deterministic_sweeps_do_not_depend_on_thread_count() {
    let place = short_place();
    place.write(
        "bayes.yaml",
        sweep(
            "method: bayes, deterministic: true",
            "runs: 14\nepochs: 1\n",
        ),
    );
    let hyperband = "deterministic: true, early_terminate: {type: hyperband, min_iter: 1, eta: 2}";
    place.write("hyperband.yaml", sweep(hyperband, "runs: 10\nepochs: 3\n"));
    place.write(
        "asha.yaml",
        sweep(
            "method: sobol, deterministic: true, early_terminate: {type: asha, min_iter: 1, eta: 2}",
            "runs: 8\nepochs: 4\n",
        ),
    );
    for (name, epochs) in [("bayes", 1), ("hyperband", 3), ("asha", 4)] {
        let one = place.json(&format!(
            "run {name}.yaml -o one --threads 1 --overwrite --json"
        ));
        let files = |dir: &str| {
            let mut files = timeless(&place, dir);
            // Both name their directory.
            files
                .retain(|name, _| !name.ends_with("config.yaml") && !name.ends_with("report.html"));
            files
        };
        let two = place.json(&format!(
            "run {name}.yaml -o two --threads 2 --overwrite --json"
        ));
        assert!(
            one == two && files("one") == files("two"),
            "{name}: threads matter"
        );
        assert_eq!(place.json(&format!("run {name}.yaml -o two --json")), two);
        assert!(
            files("one") == files("two"),
            "{name}: a second run changes something"
        );
        let statuses = trial_values(&one, "status");
        let whole = statuses
            .iter()
            .filter(|status| *status == "finished")
            .count();
        match name {
            "bayes" => assert_eq!(whole, 14, "{statuses:?}"),
            _ => assert!((1..statuses.len()).contains(&whole), "{statuses:?}"),
        }
        for (status, trained) in statuses.iter().zip(trial_values(&one, "epochs")) {
            assert_eq!(
                status == "finished",
                trained == epochs,
                "{name}: {status} after {trained}"
            );
            assert!(
                status == "finished" || status == "terminated early",
                "{status}"
            );
        }
        if name == "asha" {
            let mut trained: Vec<u64> = trial_values(&one, "epochs")
                .iter()
                .filter_map(serde_json::Value::as_u64)
                .collect();
            trained.sort_unstable();
            assert_eq!(
                trained,
                [1, 1, 1, 1, 2, 2, 4, 4],
                "half of each rung is promoted"
            );
        }
    }
}

#[test]
fn what_cannot_be_run_is_named_before_any_work() {
    let place = place();
    let refused = |text: String| {
        place.write("bad.yaml", text);
        place.run("run bad.yaml -o none").to_string()
    };
    insta::assert_snapshot!(refused(SMALL.replace("runs:", "trials:")), @"
    exit 2
    error: `bad.yaml` has an unknown key `trials`

    hint: `poolcast config` prints every key
    ");
    insta::assert_snapshot!(refused(SMALL.replace("[EventLog.xz]", "[]")), @"
    exit 2
    error: `bad.yaml` names no logs

    hint: give `logs: [PATH]`, tables of your own in `data`, or samples of waits in `provision.samples`
    ");
    insta::assert_snapshot!(refused(SMALL.replace("EventLog.xz", "nowhere")), @"
    exit 2
    error: cannot read the log `nowhere`
      caused by: cannot open the log `nowhere`
      caused by: failed to open file `nowhere`: No such file or directory (os error 2)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(refused(sweep("method: grid", "")), @"
    exit 2
    error: cannot use `bad.yaml`
      caused by: a grid cannot search `learning_rate`, because its values cannot be counted

    hint: give `values`, `int_uniform` or `q_uniform`, or use `method: random`
    ");
    insta::assert_snapshot!(refused(sweep("method: newton", "")), @"
    exit 2
    error: `bad.yaml`: `wandb.sweep.method` must be `grid` or `random` or `sobol` or `bayes`, got `newton`

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused(sweep("early_terminate: {type: hyperband, eta: 2}", "")), @"
    exit 2
    error: cannot use `bad.yaml`
      caused by: `wandb.sweep.early_terminate` has no epoch at which it stops trials

    hint: give `min_iter: 3`, or `max_iter: 27` and `s: 2`
    ");
    insta::assert_snapshot!(refused(sweep("early_terminate: {type: asha, min_iters: 2}", "")), @"
    exit 2
    error: `bad.yaml` has an unknown key `wandb.sweep.early_terminate.min_iters`

    hint: did you mean `min_iter`? `poolcast config` prints every key
    ");
    insta::assert_snapshot!(refused(sweep("early_terminate: {type: asha, min_iter: 20, eta: 1}", "epochs: 5")), @"
    exit 2
    error: cannot use `bad.yaml`
      caused by: `wandb.sweep.early_terminate.min_iter` must be between 1 and 5, got 20

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused(sweep("run_cap: 0", "")), @"
    exit 2
    error: cannot use `bad.yaml`
      caused by: `wandb.sweep.run_cap` must be between 1 and 1000000000, got 0

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused(SMALL.replace("max: 0.02", "max: 0.0002")), @"
    exit 2
    error: `bad.yaml`: `training.parameters.learning_rate`: `uniform` needs min < max, got 0.001 and 0.0002

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused(SMALL.replace("m: 4", "m: 0")), @"
    exit 2
    error: cannot use `bad.yaml`
      caused by: `m` must be between 1 and 10000, got 0

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused(SMALL.replace("min: 0.001", "min: 1")), @"
    exit 2
    error: `bad.yaml`: `training.parameters.learning_rate`: `uniform` needs min < max, got 1 and 0.02

    hint: `poolcast config` explains every key
    ");
    assert!(!place.path("none").exists());
    insta::assert_snapshot!(place.run("run nowhere.yaml"), @"
    exit 2
    error: cannot read the configuration `nowhere.yaml`
      caused by: failed to open file `nowhere.yaml`: No such file or directory (os error 2)

    hint: `poolcast config` prints one to start from
    ");
}

#[test]
fn a_log_is_enough() {
    let place = Place::with_log();
    let small = [
        ("POOLCAST_RUNS", "1"),
        ("POOLCAST_EPOCHS", "1"),
        ("POOLCAST_TRAINING__TIME_CUTS", "1"),
        ("POOLCAST_EVALUATION__RESAMPLES", "10"),
        ("POOLCAST_PIPELINES__XGB__PARAMETERS__N_ESTIMATORS", "5"),
    ];
    let mut command = place.command("run --log EventLog.xz");
    let outcome = Outcome::of(command.envs(small).output().expect("it starts"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(
        outcome.stderr.contains(
            "time frames of 20 s: the median hold was released after 50 s, and the log spans 36 min 30 s"
        ),
        "{outcome}"
    );

    let config = fs_err::read_to_string(place.path("out/config.yaml")).expect("read");
    for line in ["timeframe_len: 20", "- EventLog.xz", "out: out", "enet:"] {
        assert!(
            config.lines().any(|found| found.trim() == line),
            "no `{line}` in\n{config}"
        );
    }

    // `predict` accepts trials of every kind, not only the best trial.
    for trial in ["out/trials/trial-0001", "out/trials/trial-0002"] {
        let asked = format!("predict {trial} --log EventLog.xz --json");
        let rows = place.json(&asked)["rows"].take();
        assert!(
            rows.as_array().is_some_and(|rows| !rows.is_empty()),
            "{trial}: {rows}"
        );
    }

    insta::assert_snapshot!(place.run("run"), @"
    exit 2
    error: the following required arguments were not provided:
      <CONFIG>

    Usage: poolcast run <CONFIG>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run("run --log nowhere -o other"), @"
    exit 2
    error: cannot read the log `nowhere`
      caused by: cannot open the log `nowhere`
      caused by: failed to open file `nowhere`: No such file or directory (os error 2)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
}

#[test]
fn run_on_a_grown_log_reports_changes_since_the_previous_run() {
    let place = place();
    let log = &*LOG_TEXT;
    let middle = log.find(") 11/21 02:20:00").expect("a record of then");
    let middle = log[..middle].rfind("...\n").expect("the end of one") + 4;
    place.write(
        "auto.yaml",
        SMALL.replace("timeframe_len: 10", "timeframe_len: auto"),
    );

    place.write("EventLog", &log[..middle]);
    let first = place.stdout("run auto.yaml --log EventLog");
    assert!(!first.contains("Since the previous report"));

    place.write("EventLog", log);
    let second = place.run("run auto.yaml --log EventLog");
    assert_eq!(second.code, Some(0), "{second}");
    let changes: Vec<&str> = second
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("Since the previous report"))
        .take(5)
        .collect();
    assert_eq!(
        changes[0],
        "Since the previous report, whose log ended 2026-11-21 02:19:59 UTC"
    );
    assert!(changes[1].ends_with(" more holds"), "{changes:?}");
    assert!(
        changes[2].starts_with("  best before: trial "),
        "{changes:?}"
    );
    assert!(changes[3].starts_with("  best now: trial "), "{changes:?}");
    assert!(changes[4].contains(" still held, "), "{changes:?}");

    let third = place.run("run auto.yaml --log EventLog");
    assert!(
        third
            .stderr
            .contains("nothing has changed since the previous run"),
        "{third}"
    );
    assert!(!third.stdout.contains("Since the previous report"));
}

#[test]
fn the_length_of_frames_is_a_number_once_a_sweep_begins() {
    let place = place();
    place.write(
        "auto.yaml",
        SMALL.replace("timeframe_len: 10", "timeframe_len: auto"),
    );
    let said = "time frames of 20 s: the median hold was released after 50 s";
    let begun = place.run("sweep init auto.yaml -o sweep");
    assert!(begun.stderr.contains(said), "{begun}");
    let config = fs_err::read_to_string(place.path("sweep/config.yaml")).expect("read");
    assert!(config.contains("timeframe_len: 20\n"), "{config}");
    let again = place.stdout("sweep init auto.yaml -o sweep");
    assert_eq!(again, begun.stdout, "it is the same sweep");

    place.stdout("parse EventLog.xz -o events");
    let tensors = place.run("tensors events -o tensors --config auto.yaml --j 3");
    assert!(tensors.stderr.contains(said), "{tensors}");

    // `dag` does not read the log, so it cannot choose the length.
    insta::assert_snapshot!(place.run("dag auto.yaml -o dag --image image.sif --dry-run"), @r#"
    exit 2
    error: cannot use `auto.yaml`
      caused by: trial 1 cannot run
      caused by: `timeframe_len` must be a whole number from 1 to 31536000, or `auto` in `run`, `sweep init` and `tensors`, got "auto"
    "#);
}
