//! Tests of `poolcast sweep`: any number of workers gives the same trials, even if workers or
//! managers are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{Place, has_file};
use crate::run::SMALL;

/// A test directory with a sweep of `trials` small trials in `sweep`.
fn place(trials: usize) -> Place {
    let place = Place::with_short_log();
    place.write(
        "small.yaml",
        SMALL.replace("runs: 3", &format!("runs: {trials}")),
    );
    let printed = place.stdout("sweep init small.yaml -o sweep");
    assert!(
        printed.starts_with(&format!("{trials} trial")) && printed.ends_with(" planned in sweep\n"),
        "{printed}"
    );
    place
}

pub(crate) fn start(place: &Place, args: &str) -> Child {
    place
        .command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

pub(crate) fn wait(mut until: impl FnMut() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(
            began.elapsed() < Duration::from_secs(3600),
            "it takes too long"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Calls `attempt` until it has caught a process at work. On a busy machine, a process may end before a
/// test looks at it.
pub(crate) fn caught<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    (0..100)
        .find_map(|_| attempt())
        .expect("a process is caught at work")
}

fn rows(place: &Place) -> Vec<Value> {
    let text = fs_err::read_to_string(place.path("sweep/results.jsonl")).expect("read");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Returns the result rows without the keys that depend on times, workers or attempts.
fn timeless(place: &Place) -> Vec<Value> {
    let mut rows = rows(place);
    for row in &mut rows {
        for name in ["began", "seconds", "fit_seconds", "worker", "attempt"] {
            row.as_object_mut()
                .expect("an object")
                .remove(name)
                .expect("it is there");
        }
    }
    rows
}

fn models(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let files = place.files("sweep/trials").into_iter();
    files
        .filter(|(name, _)| name.ends_with("model.safetensors"))
        .collect()
}

#[test]
fn sweep_writes_rows_that_reproduce_its_trials() {
    let place = place(3);
    let status = place.json("sweep status sweep --json");
    assert_eq!(
        (&status["trials"], &status["ready"], &status["done"]),
        (&3.into(), &3.into(), &0.into())
    );
    assert!(
        place
            .stdout("sweep init small.yaml -o sweep")
            .contains("3 trials"),
        "again, and nothing changes"
    );
    let printed = place.stdout("sweep run sweep --threads 2");
    assert!(
        printed.starts_with("3 trials: 3 done, 0 failed, 0 running, 0 ready\nbest: trial "),
        "{printed}"
    );
    assert!(!place.path("sweep/queue").exists());
    assert!(
        !place
            .files("sweep")
            .keys()
            .any(|name| name.contains("checkpoint")),
        "what has ended needs none"
    );
    let found = rows(&place);
    assert_eq!(
        found
            .iter()
            .map(|row| row["trial"].as_u64())
            .collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3)]
    );
    let best = place.json("sweep best sweep --json");
    let largest = found
        .iter()
        .filter_map(|row| row["value"].as_f64())
        .fold(f64::MIN, f64::max);
    assert_eq!(
        (best["value"].as_f64(), best["ended"].as_str()),
        (Some(largest), Some("done"))
    );
    let table = fs_err::read_to_string(place.path("sweep/results.csv")).expect("read");
    assert!(
        table.lines().count() == 4
            && table
                .starts_with("trial,pipeline,split,budget,ended,error,value,folds,attempt,worker,"),
        "{table}"
    );
    let log = fs_err::read_to_string(place.path("sweep/status.log")).expect("read");
    assert!(
        log.contains(" managing 3 trials\n")
            && log.ends_with(" ended: 3 done, 0 failed, 0 quarantined\n"),
        "{log}"
    );
    // The configuration of a trial suffices to train the same model.
    let parameters = &found[1]["parameters"];
    let name = format!(
        "j{}-m4-t10-uniform-events",
        parameters["j"].as_f64().expect("a number")
    );
    place.stdout(&format!(
        "train sweep/tensors/{name} -o again -c sweep/trials/trial-0002/config.yaml"
    ));
    assert!(
        place.files("again")["model.safetensors"] == models(&place)["trial-0002/model.safetensors"]
    );
    // No command changes a finished sweep.
    let before = place.files("sweep");
    for step in ["run", "manage", "work", "status", "cleanup"] {
        assert_eq!(
            place.run(&format!("sweep {step} sweep")).code,
            Some(0),
            "{step}"
        );
    }
    assert!(place.files("sweep") == before);
    let mut held = place.json("advise sweep --log EventLog.xz --action fix --json");
    let job = held["advice"][0]["job"].take();
    let job = job.as_str().expect("a job to fix");
    let advice = place.run(&format!("advise sweep --log EventLog.xz {job}"));
    assert_eq!(
        advice.code,
        Some(10),
        "a sweep stands for its best trial\n{advice}"
    );
}

#[test]
fn sweep_can_draw_the_set_of_states() {
    let place = Place::with_short_log();
    let states = "m: 4, states: {values: [null, [0, 1, 12, 13, input-transfer, output-transfer]]},";
    place.write(
        "small.yaml",
        SMALL
            .replace("m: 4,", states)
            .replace("runs: 3", "runs: 5")
            .replace("epochs: 3", "epochs: 1"),
    );
    place.stdout("sweep init small.yaml -o sweep");
    place.stdout("sweep run sweep");
    let found = fs_err::read_dir(place.path("sweep/tensors"))
        .expect("listed")
        .map(|entry| {
            let manifest = entry.expect("an entry").path().join("manifest.json");
            let manifest: Value =
                serde_json::from_slice(&fs_err::read(manifest).expect("read")).expect("JSON");
            manifest["e"].as_u64().expect("a number")
        });
    assert_eq!(found.collect::<BTreeSet<u64>>(), BTreeSet::from([6, 49]));
    assert!(
        rows(&place).iter().all(|row| row["error"].is_null()),
        "{:?}",
        rows(&place)
    );
}

#[test]
fn only_the_models_of_the_best_trials_are_kept() {
    let place = place(3);
    place.stdout("sweep run sweep --keep 2");
    assert_eq!(models(&place).len(), 2);
    place.stdout("sweep cleanup sweep --keep 1");
    let best = place.json("sweep best sweep --json")["trial"]
        .as_u64()
        .expect("a number");
    assert_eq!(
        models(&place).into_keys().collect::<Vec<_>>(),
        [format!("trial-{best:04}/model.safetensors")]
    );
    assert!(place.path("sweep/trials/trial-0001/metrics.json").exists());
}

#[test]
fn trials_are_listed_from_best_to_worst() {
    let place = place(3);
    assert!(
        place
            .stdout("sweep list sweep")
            .starts_with("rank  trial  state"),
        "and nothing below it yet"
    );
    place.stdout("sweep run sweep");
    let best = place.json("sweep best sweep --json");
    let listed = place.json("sweep list sweep --json");
    let listed = listed["trials"].as_array().expect("a list");
    let numbers = |key: &str| {
        listed
            .iter()
            .map(|one| one[key].as_f64().expect("a number"))
            .collect::<Vec<_>>()
    };
    assert_eq!((listed.len(), &listed[0]["trial"]), (3, &best["trial"]));
    assert_eq!(numbers("rank"), [1.0, 2.0, 3.0]);
    assert!(numbers("value").is_sorted_by(|a, b| a >= b), "values fall");
    for one in listed {
        assert_eq!(
            (&one["state"], &one["budget"], &one["epochs"]),
            (&"done".into(), &3.into(), &3.into())
        );
        assert!(
            one["seconds"].is_f64()
                && one["metrics"]["loss"].is_f64()
                && one["parameters"]["j"].is_i64(),
            "{one}"
        );
    }
    let table = place.stdout("sweep list sweep --top 1");
    assert_eq!(table.lines().count(), 2, "{table}");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[0].find("  with"),
        lines[1].find("  batch_size="),
        "parameters begin below their head: {table}"
    );
    let is_whole = |parameter: &str| !parameter.ends_with(".0");
    let mut parameters = table
        .split_whitespace()
        .filter(|word| word.contains('='))
        .peekable();
    assert!(
        parameters.peek().is_some() && parameters.all(is_whole),
        "whole numbers print whole: {table}"
    );
    let csv = place.stdout("sweep list sweep --csv");
    assert!(
        csv.starts_with("rank,trial,state,seconds,budget,epochs,value,accuracy,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 4);
    for name in [
        "sweep/results.jsonl",
        "sweep/results.csv",
        "sweep/bestmodel.info",
        "sweep/config.yaml",
    ] {
        let text = fs_err::read_to_string(place.path(name)).expect("read");
        // Cost ratios are not whole numbers, so `.0` is correct there.
        let text = text.replace("  cost_ratio:\n  - 1.0\n  - 3.0\n", "");
        for number in ["j", "m", "hidden_size", "batch_size"] {
            let whole = text.contains(&format!("\"{number}\":")) || !name.ends_with("jsonl");
            let words = text
                .split(['"', ':', ' ', ',', '\n'])
                .filter(|word| word.ends_with(".0"))
                .collect::<Vec<_>>();
            let known = |word: &&str| ["4.0", "8.0", "3.0", "5.0"].contains(word);
            assert!(
                whole && !words.iter().any(known),
                "{number} in {name}: {words:?}"
            );
        }
    }
}

/// A test directory with a sweep in `sweep` that has ranked two pipelines and a network by the answers that each one
/// alone would give.
fn place_of_answers() -> Place {
    let place = Place::with_short_log();
    let forests =
        "et: {runs: 1, parameters: {n_estimators: 5}}, ridge: {runs: 1, parameters: {C: 0.1}}";
    let metric = "wandb: {sweep: {metric: {name: answers_log_loss, goal: minimize}}}";
    let config =
        SMALL.replace("runs: 3", "runs: 1") + &format!("pipelines: {{{forests}}}\n{metric}\n");
    place.write("answers.yaml", config);
    place.stdout("sweep run answers.yaml -o sweep");
    place
}

#[test]
fn trials_are_ranked_by_the_answers_that_each_alone_would_give() {
    let place = place_of_answers();
    let rows = rows(&place);
    let values: Vec<f64> = (rows.iter())
        .map(|row| {
            let losses = ["now", "later"].map(|question| {
                let scores = &row["answers"][question];
                assert!(scores["settled"].as_u64() > Some(20), "{row}");
                scores["log_loss"].as_f64().expect("a loss")
            });
            let value = row["value"].as_f64().expect("a value");
            assert!((value - (losses[0] + losses[1]) / 2.0).abs() < 1e-12);
            value
        })
        .collect();
    assert_eq!(values.len(), 3);
    let best = values.iter().copied().fold(f64::INFINITY, f64::min);
    let printed = place.stdout("sweep list sweep");
    assert!(printed.contains("answers_log_loss"), "{printed}");
    let first = printed.lines().nth(1).expect("a trial");
    assert!(first.contains(&format!("{best:.4}")), "{printed}");

    let refused = place.run("dag answers.yaml -o dag --dry-run");
    assert!(refused.stderr.contains("answers_log_loss"), "{refused}");
}

#[test]
fn paused_sweep_waits_and_resumes() {
    let place = Place::with_short_log();
    place.write(
        "long.yaml",
        SMALL.replace("epochs: 3", "epochs: 100000\nearlystop_threshold: 100000"),
    );
    place.stdout("sweep init long.yaml -o sweep");
    let paused = place.run("sweep pause sweep");
    assert!(
        paused.code == Some(0) && paused.stderr.starts_with("paused: "),
        "{paused}"
    );
    assert!(
        place
            .run("sweep pause sweep")
            .stderr
            .contains("already paused")
    );
    let mut run = start(&place, "sweep run sweep --threads 1");
    let running = || {
        let status = place.json("sweep status sweep --json");
        (
            status["running"].as_array().map_or(0, Vec::len),
            status["is_paused"] == true,
        )
    };
    wait(|| place.path("sweep/queue/sealed.json").exists());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(running(), (0, true), "nobody takes anything");
    assert!(
        place
            .stdout("sweep status sweep --once")
            .contains("\npaused: workers claim no trial")
    );
    assert!(
        place
            .run("sweep resume sweep")
            .stderr
            .contains("claim trials again")
    );
    wait(|| running() == (1, false));
    let begun = || has_file(&place.path("sweep/queue/running"), "checkpoint.safetensors");
    wait(begun);
    // A pause during a training makes it write a checkpoint, and nothing counts as lost.
    place.stdout("sweep pause sweep");
    wait(|| running() == (0, true));
    assert!(
        begun() && run.try_wait().expect("asked").is_none(),
        "it waits"
    );
    place.stdout("sweep resume sweep");
    wait(|| running() == (1, false));
    // A run that is stopped and started again never has two copies of the files of a trial.
    for _ in 0..2 {
        let sent = std::process::Command::new("kill")
            .args(["-s", "INT", &run.id().to_string()])
            .status();
        assert!(sent.expect("kill starts").success());
        assert_eq!(run.wait().expect("it ended").code(), Some(130));
        let dirs = fs_err::read_dir(place.path("sweep/queue/running")).expect("listed");
        let trials: Vec<String> = dirs
            .map(|dir| {
                dir.expect("listed")
                    .file_name()
                    .to_string_lossy()
                    .split('.')
                    .next()
                    .unwrap_or("")
                    .to_owned()
            })
            .collect();
        let distinct: BTreeSet<&String> = trials.iter().collect();
        assert_eq!(distinct.len(), trials.len(), "{trials:?}");
        run = start(&place, "sweep run sweep --threads 1");
        wait(|| running() == (1, false));
    }
    run.kill().expect("killed");
    run.wait().expect("it ended");
    let ended = place.run("sweep run sweep --trial-timeout 1");
    assert_eq!(ended.code, Some(2), "{ended}");
    let over = place.run("sweep pause sweep");
    assert!(
        over.code == Some(2) && over.stderr.contains("have ended"),
        "{over}"
    );
}

/// A test directory with a sweep of 2,100 fits of one pipeline on a small table, in `sweep`.
fn place_with_many_fits() -> Place {
    let place = Place::new();
    let rows = (0..24).map(|row| {
        let (class, wave) = (row % 2, f64::from(row * row % 7));
        (
            format!("r{row},{wave},{}\n", f64::from(class) * 2.0 + wave),
            format!("r{row},{class},{}\n", row % 4 < 2),
        )
    });
    let (features, metadata): (Vec<String>, Vec<String>) = rows.unzip();
    place.write("features.csv", format!("id,a,b\n{}", features.concat()));
    place.write(
        "metadata.csv",
        format!("id,ill,learned\n{}", metadata.concat()),
    );
    let values: Vec<String> = (1..=2100)
        .map(|at| format!("{}", f64::from(at) / 64.0))
        .collect();
    place.write(
        "fits.yaml",
        format!(
            "wandb: {{sweep: {{metric: {{name: validation_roc_auc, goal: maximize}}}}}}\n\
             data: {{features: features.csv, metadata: metadata.csv, index: id, target: ill, validate: true, \
             splits: {{train_A: learned, validate_A: not learned}}}}\n\
             pipelines: {{lasso: {{method: grid, parameters: {{C: {{values: [{}]}}}}}}}}\n",
            values.join(", ")
        ),
    );
    assert_eq!(
        place.stdout("sweep init fits.yaml -o sweep"),
        "2,100 trials are planned in sweep\n"
    );
    place
}

/// Returns the largest number of entries of a directory at or below `dir`, and the number of these
/// directories.
fn entries(dir: &std::path::Path) -> (usize, usize) {
    let paths = fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path());
    let paths: Vec<_> = paths.collect();
    let below = paths
        .iter()
        .filter(|path| path.is_dir())
        .map(|path| entries(path));
    below.fold((paths.len(), 1), |(most, count), (below, dirs)| {
        (most.max(below), count + dirs)
    })
}

#[test]
fn short_fits_are_chunked_and_only_the_best_keep_files() {
    let whole = place_with_many_fits();
    whole.stdout("sweep run sweep --threads 1 --keep 3");
    let place = place_with_many_fits();
    let mut manager = start(&place, "sweep manage sweep --keep 3");
    let mut workers: Vec<Child> = (0..2)
        .map(|_| start(&place, "sweep work sweep --threads 1"))
        .collect();
    let ended = || {
        place.json("sweep status sweep --json")["done"]
            .as_u64()
            .expect("a number")
    };
    for least in [100, 400] {
        wait(|| ended() >= least);
        let mut worker = workers.remove(0);
        worker.kill().expect("killed");
        worker.wait().expect("it ended");
        workers.push(start(&place, "sweep work sweep --threads 1"));
    }
    let trials = || {
        if place.path("sweep/trials").exists() {
            entries(&place.path("sweep/trials")).1
        } else {
            0
        }
    };
    // Counted are the directories of the three best trials of each of the four workers, their
    // parents, and trials that no better one has replaced yet.
    let under_way = (entries(&place.path("sweep")).0, trials());
    assert!(
        under_way.0 <= 1000 && under_way.1 < 100,
        "it prunes as it goes: {under_way:?}"
    );
    workers.push(manager);
    for mut worker in workers {
        assert_eq!(worker.wait().expect("it ended").code(), Some(0));
    }
    assert_eq!(timeless(&place), timeless(&whole));
    assert_eq!(place.json("sweep status sweep --json")["done"], 2100);
    let models = |place: &Place| {
        let mut files = place.files("sweep/trials");
        files.retain(|name, _| !name.ends_with("config.yaml"));
        files
    };
    assert!(
        models(&place) == models(&whole) && models(&place).len() == 3 * 3,
        "{:?}",
        models(&place).keys()
    );
    assert!(entries(&place.path("sweep")).0 <= 1000);
    let info = fs_err::read_to_string(place.path("sweep/bestmodel.info")).expect("read");
    let best = place.json("sweep best sweep --json");
    assert!(
        info.starts_with(&format!(
            "A.trial = {}\nA.pipeline = lasso\n",
            best["choices"][0]["trial"]
        )),
        "{info}"
    );
    assert!(
        info.contains("\nA.trials = 2100\nA.failed = 0\n") && info.contains("\nA.C = "),
        "{info}"
    );
    assert_eq!(
        place
            .stdout("sweep list sweep --csv --top 7")
            .lines()
            .count(),
        8
    );
    manager = start(&place, "sweep manage sweep");
    assert_eq!(
        manager.wait().expect("it ended").code(),
        Some(0),
        "it is over, and stays so"
    );
}

#[test]
fn killed_managers_and_workers_change_nothing() {
    let whole = place(4);
    whole.stdout("sweep run sweep --threads 1");
    let is_begun = |place: &Place| {
        let running = fs_err::read_dir(place.path("sweep/queue/running")).ok();
        running.is_some_and(|mut dirs| {
            dirs.any(|dir| dir.is_ok_and(|dir| dir.path().join("checkpoint.safetensors").exists()))
        })
    };
    let place = caught(|| {
        let place = place(4);
        let mut manager = start(&place, "sweep manage sweep");
        wait(|| place.path("sweep/queue/sealed.json").exists());
        manager.kill().expect("killed");
        manager.wait().expect("it ended");
        let mut worker = start(&place, "sweep work sweep --threads 1");
        wait(|| is_begun(&place) || worker.try_wait().expect("asked").is_some());
        worker.kill().expect("killed");
        worker.wait().expect("it ended");
        is_begun(&place).then_some(place)
    });
    // The first worker finds the lease of the dead worker, even without a manager.
    let outcomes: Vec<Child> = (0..2)
        .map(|_| start(&place, "sweep work sweep --threads 1"))
        .collect();
    for mut worker in outcomes {
        assert_eq!(worker.wait().expect("it ended").code(), Some(0));
    }
    let status = place.json("sweep status sweep --json");
    assert_eq!(
        (&status["done"], status["running"].as_array().map(Vec::len)),
        (&4.into(), Some(0))
    );
    assert!(
        !place.path("sweep/results.jsonl").exists(),
        "results are the manager's"
    );
    place.stdout("sweep manage sweep");
    assert_eq!(timeless(&place), timeless(&whole));
    assert!(models(&place) == models(&whole));
    let log = fs_err::read_to_string(place.path("sweep/status.log")).expect("read");
    assert!(log.contains("which is dead"), "{log}");
}

#[test]
fn second_manager_exits_and_stopped_worker_returns_its_trial() {
    let place = Place::with_short_log();
    place.write(
        "long.yaml",
        SMALL.replace("epochs: 3", "epochs: 100000\nearlystop_threshold: 100000"),
    );
    place.stdout("sweep init long.yaml -o sweep");
    let mut manager = start(&place, "sweep manage sweep");
    wait(|| place.path("sweep/queue/sealed.json").exists());
    let second = place.run("sweep manage sweep");
    assert_eq!(second.code, Some(1), "{second}");
    assert!(second.stderr.contains("`sweep` is managed by "), "{second}");
    let worker = start(&place, "sweep work sweep");
    wait(|| {
        place.json("sweep status sweep --json")["running"]
            .as_array()
            .is_some_and(|running| !running.is_empty())
    });
    let signal = |process: &Child, name: &str| {
        let sent = std::process::Command::new("kill")
            .args(["-s", name, &process.id().to_string()])
            .status();
        assert!(sent.expect("kill starts").success());
    };
    signal(&worker, "TERM");
    let worker = worker.wait_with_output().expect("it ended");
    assert_eq!(worker.status.code(), Some(1));
    let status = place.json("sweep status sweep --json");
    assert_eq!(
        (&status["ready"], status["running"].as_array().map(Vec::len)),
        (&3.into(), Some(0)),
        "{status}"
    );
    signal(&manager, "INT");
    let interrupted = manager.wait().expect("it ended");
    assert_eq!(interrupted.code(), Some(130), "Ctrl-C is no failure");
    let late = place.run("sweep run sweep --trial-timeout 1");
    assert_eq!(late.code, Some(2), "{late}");
    assert!(late.stdout.contains("failed, time-limit: 3"), "{late}");
    assert!(late.stderr.contains("none of 3 trials finished"), "{late}");
    assert!(rows(&place).iter().all(|row| {
        row["error"]
            .as_str()
            .is_some_and(|error| error.contains("longer than 1 s"))
    }));
}

#[test]
fn invalid_trial_fails_alone_and_is_not_retried() {
    let place = place(3);
    let path = place.path("sweep/config.yaml");
    let config = fs_err::read_to_string(&path).expect("read");
    let (begin, rest) = config.split_once("hidden_size:").expect("it is there");
    let (_, end) = rest.split_once("learning_rate:").expect("it is there");
    fs_err::write(
        &path,
        format!("{begin}hidden_size:\n      values: [4, 99999]\n    learning_rate:{end}"),
    )
    .expect("written");
    let outcome = place.run("sweep run sweep");
    let found = rows(&place);
    let invalid: Vec<&Value> = found
        .iter()
        .filter(|row| row["ended"] == "invalid")
        .collect();
    assert!(!invalid.is_empty(), "{outcome}");
    for row in invalid {
        assert_eq!(row["attempt"], 1, "not tried again");
        assert!(
            row["error"]
                .as_str()
                .is_some_and(|error| error.contains("hidden_size") && error.contains("99999")),
            "{row}"
        );
    }
}

#[test]
fn what_is_no_sweep_is_named() {
    let place = place(1);
    fs_err::create_dir(place.path("empty")).expect("made");
    insta::assert_snapshot!(place.run("sweep work empty"), @"
    exit 2
    error: `empty` holds no sweep (no manifest.json)

    hint: make it with `poolcast sweep init CONFIG -o DIR`
    ");
    insta::assert_snapshot!(place.run("sweep status sweep/events"), @"
    exit 2
    error: `sweep/events` holds events, not sweep

    hint: make it with `poolcast sweep init CONFIG -o DIR`
    ");
    insta::assert_snapshot!(place.run("sweep cleanup sweep"), @"
    exit 2
    error: the sweep in `sweep` has not finished

    hint: finish it with `poolcast sweep run DIR`; `poolcast sweep status DIR` shows its progress
    ");
    insta::assert_snapshot!(place.run("sweep best sweep"), @"
    exit 1
    error: the sweep in `sweep` has no best trial
      caused by: none of 0 trials finished

    hint: `poolcast sweep status DIR` shows its progress, and why trials failed
    ");
    place.write("other.yaml", format!("{SMALL}seed: 2\n"));
    insta::assert_snapshot!(place.run("sweep init other.yaml -o sweep"), @"
    exit 2
    error: `sweep` contains another sweep: `seed` was `1`, and is now `2`

    hint: name another directory with `-o DIR`
    ");
    insta::assert_snapshot!(place.run("sweep init small.yaml -o sweep/events --overwrite"), @r#"
    exit 2
    error: `sweep/events` contains "events", not a sweep

    hint: name another directory
    "#);
    let newer = |name: &str| {
        let path = place.path(name);
        let text = fs_err::read_to_string(&path)
            .expect("read")
            .replace("\"format_version\": ", "\"format_version\": 7");
        fs_err::write(path, text).expect("written");
    };
    newer("sweep/queue/manifest.json");
    insta::assert_snapshot!(place.run("sweep work sweep"), @"
    exit 2
    error: cannot continue the sweep in `sweep`
      caused by: `sweep/queue` has queue format version 73, and this program reads version 3

    hint: make it with `poolcast sweep init CONFIG -o DIR`
    ");
    newer("sweep/manifest.json");
    insta::assert_snapshot!(place.run("sweep work sweep"), @"
    exit 2
    error: `sweep` has sweep format version 78, and this program reads version 8

    hint: make it with `poolcast sweep init CONFIG -o DIR`
    ");
}

#[test]
fn unwritable_folder_is_reported_by_name() {
    let place = place(1);
    // This fails as on a read-only file system. Permissions alone do not stop root.
    fs_err::remove_dir(place.path("sweep/queue/workers")).expect("removed");
    place.write("sweep/queue/workers", "");
    let refused = place.run("sweep work sweep");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("queue/workers/"), "{refused}");
}

#[test]
fn deterministic_sweeps_do_not_depend_on_the_number_of_workers() {
    for (keys, runs) in [
        ("method: bayes", 6),
        ("early_terminate: {type: hyperband, min_iter: 1, eta: 2}", 6),
        (
            "method: sobol, early_terminate: {type: asha, min_iter: 1, eta: 2}",
            6,
        ),
    ] {
        let place = Place::with_short_log();
        let sweep = format!(
            "{}wandb: {{sweep: {{deterministic: true, {keys}}}}}\n",
            SMALL.replace("runs: 3", &format!("runs: {runs}"))
        );
        place.write("learns.yaml", &sweep);
        place.stdout("run learns.yaml -o whole --threads 1");
        place.stdout("sweep init learns.yaml -o sweep");
        let mut workers: Vec<Child> = (0..3)
            .map(|_| start(&place, "sweep work sweep --threads 1"))
            .collect();
        let mut killed = start(&place, "sweep manage sweep");
        wait(|| {
            fs_err::read_dir(place.path("sweep/trials"))
                .is_ok_and(|mut trials| trials.next().is_some())
        });
        killed.kill().expect("killed");
        killed.wait().expect("it ended");
        place.stdout("sweep manage sweep");
        assert!(
            workers
                .iter_mut()
                .all(|worker| worker.wait().expect("it ended").success()),
            "{keys}"
        );
        let models = |name: &str| {
            let mut files = place.files(name);
            files.retain(|name, _| {
                name.starts_with("trials/")
                    && !name.ends_with("config.yaml")
                    && !name.ends_with("evaluation-test.json")
            });
            files
        };
        let (here, whole) = (models("sweep"), models("whole"));
        assert!(
            !here.keys().any(|name| name.contains("checkpoint")),
            "{keys}: what has ended needs no checkpoint"
        );
        let names: BTreeSet<&String> = here.keys().chain(whole.keys()).collect();
        let differ: Vec<_> = names
            .into_iter()
            .filter(|name| here.get(*name) != whole.get(*name))
            .collect();
        assert!(differ.is_empty(), "{keys}: workers matter for {differ:?}");
        let trials: Vec<u64> = rows(&place)
            .iter()
            .filter_map(|row| row["trial"].as_u64())
            .collect();
        assert_eq!(
            trials,
            (1..=runs).collect::<Vec<u64>>(),
            "{keys}: one row a trial"
        );
    }
}

#[test]
fn run_finishes_a_sweep_that_workers_began() {
    let place = place(3);
    let mut worker = start(&place, "sweep run sweep --threads 1");
    wait(|| {
        fs_err::read_dir(place.path("sweep/trials")).is_ok_and(|mut trials| trials.next().is_some())
    });
    worker.kill().expect("killed");
    worker.wait().expect("it ended");
    let first = place
        .path("sweep/trials")
        .read_dir()
        .expect("listed")
        .next()
        .expect("a trial")
        .expect("listed")
        .path();
    let before = first
        .join("model.safetensors")
        .metadata()
        .expect("a model")
        .modified()
        .expect("a time");
    assert_eq!(place.run("run small.yaml -o sweep").code, Some(0));
    assert_eq!(rows(&place).len(), 3);
    assert_eq!(
        first
            .join("model.safetensors")
            .metadata()
            .expect("a model")
            .modified()
            .expect("a time"),
        before
    );
}

/// The manager was killed after the last trial had ended, and its host cannot tell that it is dead.
/// So workers find that all trials have ended before a new manager has the seat.
#[test]
fn sweep_that_ended_under_a_dead_manager_is_finished_not_stopped() {
    let place = place(2);
    let mut manager = start(&place, "sweep manage sweep");
    wait(|| place.path("sweep/queue/sealed.json").exists());
    manager.kill().expect("killed");
    manager.wait().expect("it ended");
    place.stdout("sweep work sweep --threads 1");
    for file in fs_err::read_dir(place.path("sweep/queue/workers")).expect("listed") {
        fs_err::remove_file(file.expect("a file").path()).expect("removed");
    }
    let settings = fs_err::read_to_string(place.path("sweep/queue/manifest.json")).expect("read");
    let short = settings.replace("\"lease_s\": 120.0", "\"lease_s\": 2.0");
    assert_ne!(short, settings);
    place.write("sweep/queue/manifest.json", short);

    let outcome = place.run("sweep run sweep --threads 1");
    assert!(
        outcome.code == Some(0) && !outcome.stderr.contains("was stopped"),
        "{outcome}"
    );
    assert_eq!(rows(&place).len(), 2);
}
