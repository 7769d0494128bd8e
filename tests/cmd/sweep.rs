//! `poolcast sweep`: the same trials by any number of workers, whoever is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::Place;
use crate::run::SMALL;

/// A place with a sweep of `trials` small trials in `sweep`.
fn place(trials: usize) -> Place {
    let place = Place::with_log();
    place.write("small.yaml", SMALL.replace("runs: 3", &format!("runs: {trials}")));
    assert_eq!(place.stdout("sweep init small.yaml -o sweep"), format!("{trials} trials are to be done in sweep\n"));
    place
}

fn start(place: &Place, args: &str) -> Child {
    place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

fn wait(mut until: impl FnMut() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(began.elapsed() < Duration::from_secs(120), "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn rows(place: &Place) -> Vec<Value> {
    let text = fs_err::read_to_string(place.path("sweep/results.jsonl")).expect("read");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What the trials came to, but for what says when and by whom.
fn timeless(place: &Place) -> Vec<Value> {
    let mut rows = rows(place);
    for row in &mut rows {
        for name in ["began", "seconds", "worker", "attempt"] {
            row.as_object_mut().expect("an object").remove(name).expect("it is there");
        }
    }
    rows
}

fn models(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let files = place.files("sweep/trials").into_iter();
    files.filter(|(name, _)| name.ends_with("model.safetensors")).collect()
}

#[test]
fn a_sweep_leaves_rows_from_which_trials_are_made_again() {
    let place = place(3);
    let status = place.json("sweep status sweep --json");
    assert_eq!((&status["trials"], &status["ready"], &status["done"]), (&3.into(), &3.into(), &0.into()));
    assert!(place.stdout("sweep init small.yaml -o sweep").contains("3 trials"), "again, and nothing changes");
    let printed = place.stdout("sweep run sweep --threads 2");
    assert!(printed.starts_with("3 trials: 3 done, 0 failed, 0 running, 0 ready\nbest: trial "), "{printed}");
    assert!(!place.path("sweep/queue").exists());
    let found = rows(&place);
    assert_eq!(found.iter().map(|row| row["trial"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    let best = place.json("sweep best sweep --json");
    let least = found.iter().filter_map(|row| row["value"].as_f64()).fold(f64::MAX, f64::min);
    assert_eq!((best["value"].as_f64(), best["ended"].as_str()), (Some(least), Some("done")));
    let table = fs_err::read_to_string(place.path("sweep/results.csv")).expect("read");
    assert!(
        table.lines().count() == 4
            && table.starts_with("trial,pipeline,split,budget,ended,error,value,folds,attempt,worker,"),
        "{table}"
    );
    let log = fs_err::read_to_string(place.path("sweep/status.log")).expect("read");
    assert!(log.contains(" managing 3 trials\n") && log.ends_with(" over: 3 done, 0 failed, 0 quarantined\n"), "{log}");
    // From the row alone.
    let row = &found[1];
    place.write("row.yaml", row["config"].to_string());
    let parameters = &row["parameters"];
    let name = format!("j{}-m4-t10-uniform-events", parameters["j"].as_f64().expect("a number"));
    place.stdout(&format!("train sweep/tensors/{name} -o again -c row.yaml"));
    assert!(place.files("again")["model.safetensors"] == models(&place)["trial-0002/model.safetensors"]);
    // It is over, and stays so.
    let before = place.files("sweep");
    for step in ["run", "manage", "work", "status", "cleanup"] {
        assert_eq!(place.run(&format!("sweep {step} sweep")).code, Some(0), "{step}");
    }
    assert!(place.files("sweep") == before);
    let advice = place.run("advise sweep --log EventLog.xz 1161.0");
    assert_eq!(advice.code, Some(10), "a sweep stands for its best trial\n{advice}");
}

#[test]
fn a_sweep_draws_which_events_are_states() {
    let place = Place::with_log();
    let states = "m: 4, states: {values: [null, [0, 1, 12, 13, input-transfer, output-transfer]]},";
    place.write(
        "small.yaml",
        SMALL.replace("m: 4,", states).replace("runs: 3", "runs: 5").replace("epochs: 3", "epochs: 1"),
    );
    place.stdout("sweep init small.yaml -o sweep");
    place.stdout("sweep run sweep");
    let found = fs_err::read_dir(place.path("sweep/tensors")).expect("listed").map(|entry| {
        let manifest = entry.expect("an entry").path().join("manifest.json");
        let manifest: Value = serde_json::from_slice(&fs_err::read(manifest).expect("read")).expect("JSON");
        manifest["e"].as_u64().expect("a number")
    });
    assert_eq!(found.collect::<BTreeSet<u64>>(), BTreeSet::from([6, 49]));
    assert!(rows(&place).iter().all(|row| row["error"].is_null()), "{:?}", rows(&place));
}

#[test]
fn the_models_of_the_best_are_kept() {
    let place = place(3);
    place.stdout("sweep run sweep --keep 2");
    assert_eq!(models(&place).len(), 2);
    place.stdout("sweep cleanup sweep --keep 1");
    let best = place.json("sweep best sweep --json")["trial"].as_u64().expect("a number");
    assert_eq!(models(&place).into_keys().collect::<Vec<_>>(), [format!("trial-{best:04}/model.safetensors")]);
    assert!(place.path("sweep/trials/trial-0001/metrics.json").exists());
}

#[test]
fn killed_managers_and_workers_change_nothing() {
    let whole = place(4);
    whole.stdout("sweep run sweep --threads 1");
    let place = place(4);
    let mut manager = start(&place, "sweep manage sweep");
    wait(|| place.path("sweep/queue/sealed.json").exists());
    manager.kill().expect("killed");
    manager.wait().expect("it ended");
    let is_begun = |place: &Place| {
        let running = fs_err::read_dir(place.path("sweep/queue/running")).ok();
        running.is_some_and(|mut dirs| {
            dirs.any(|dir| dir.is_ok_and(|dir| dir.path().join("checkpoint.safetensors").exists()))
        })
    };
    let mut worker = start(&place, "sweep work sweep --threads 1");
    wait(|| is_begun(&place) || worker.try_wait().expect("asked").is_some());
    worker.kill().expect("killed");
    worker.wait().expect("it ended");
    // The first worker finds the lease of the dead one; without a manager, too.
    let outcomes: Vec<Child> = (0..2).map(|_| start(&place, "sweep work sweep --threads 1")).collect();
    for mut worker in outcomes {
        assert_eq!(worker.wait().expect("it ended").code(), Some(0));
    }
    let status = place.json("sweep status sweep --json");
    assert_eq!((&status["done"], status["running"].as_array().map(Vec::len)), (&4.into(), Some(0)));
    assert!(!place.path("sweep/results.jsonl").exists(), "results are the manager's");
    place.stdout("sweep manage sweep");
    assert_eq!(timeless(&place), timeless(&whole));
    assert!(models(&place) == models(&whole));
    let log = fs_err::read_to_string(place.path("sweep/status.log")).expect("read");
    assert!(log.contains("which is dead"), "{log}");
}

#[test]
fn a_second_manager_leaves_and_a_stopped_worker_gives_back() {
    let place = Place::with_log();
    place.write(
        "long.yaml",
        SMALL.replace("epochs: 3", "epochs: 100000, earlystop_threshold: 100000").replace(", ", "\n"),
    );
    place.write("long.yaml", SMALL.replace("epochs: 3", "epochs: 100000\nearlystop_threshold: 100000"));
    place.stdout("sweep init long.yaml -o sweep");
    let mut manager = start(&place, "sweep manage sweep");
    wait(|| place.path("sweep/queue/sealed.json").exists());
    let second = place.run("sweep manage sweep");
    assert_eq!(second.code, Some(1), "{second}");
    assert!(second.stderr.contains("`sweep` is managed by "), "{second}");
    let worker = start(&place, "sweep work sweep");
    wait(|| place.json("sweep status sweep --json")["running"].as_array().is_some_and(|running| !running.is_empty()));
    let killed = std::process::Command::new("kill").args(["-s", "TERM", &worker.id().to_string()]).status();
    assert!(killed.expect("kill starts").success());
    let worker = worker.wait_with_output().expect("it ended");
    assert_eq!(worker.status.code(), Some(1));
    let status = place.json("sweep status sweep --json");
    assert_eq!((&status["ready"], status["running"].as_array().map(Vec::len)), (&3.into(), Some(0)), "{status}");
    manager.kill().expect("killed");
    manager.wait().expect("it ended");
    let late = place.run("sweep run sweep --trial-timeout 1");
    assert_eq!(late.code, Some(2), "{late}");
    assert!(late.stdout.contains("failed, time-limit: 3"), "{late}");
    assert!(late.stderr.contains("none of the 3 trials finished"), "{late}");
    assert!(
        rows(&place).iter().all(|row| row["error"].as_str().is_some_and(|error| error.contains("longer than 1 s")))
    );
}

#[test]
fn a_trial_that_cannot_be_fails_alone_and_once() {
    let place = place(3);
    let path = place.path("sweep/config.yaml");
    let config = fs_err::read_to_string(&path).expect("read");
    let (begin, rest) = config.split_once("hidden_size:").expect("it is there");
    let (_, end) = rest.split_once("learning_rate:").expect("it is there");
    fs_err::write(&path, format!("{begin}hidden_size:\n      values: [4, 99999]\n    learning_rate:{end}"))
        .expect("written");
    let outcome = place.run("sweep run sweep");
    let found = rows(&place);
    let invalid: Vec<&Value> = found.iter().filter(|row| row["ended"] == "invalid").collect();
    assert!(!invalid.is_empty(), "{outcome}");
    for row in invalid {
        assert_eq!(row["attempt"], 1, "not tried again");
        assert!(
            row["error"].as_str().is_some_and(|error| error.contains("hidden_size") && error.contains("99999")),
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

    hint: finish it with `poolcast sweep run DIR`; `poolcast sweep status DIR` shows how far it is
    ");
    insta::assert_snapshot!(place.run("sweep best sweep"), @"
    exit 1
    error: the sweep in `sweep` has no best trial
      caused by: none of the 0 trials finished

    hint: `poolcast sweep status DIR` shows how far it is, and why trials failed
    ");
    place.write("other.yaml", format!("{SMALL}seed: 2\n"));
    insta::assert_snapshot!(place.run("sweep init other.yaml -o sweep"), @"
    exit 2
    error: `sweep` holds another sweep

    hint: name another directory
    ");
    insta::assert_snapshot!(place.run("sweep init small.yaml -o sweep/events --overwrite"), @r#"
    exit 2
    error: `sweep/events` holds "events", not a sweep

    hint: name another directory
    "#);
    let newer = |name: &str| {
        let path = place.path(name);
        let text =
            fs_err::read_to_string(&path).expect("read").replace("\"format_version\": ", "\"format_version\": 7");
        fs_err::write(path, text).expect("written");
    };
    newer("sweep/queue/manifest.json");
    insta::assert_snapshot!(place.run("sweep work sweep"), @"
    exit 2
    error: cannot go on with the sweep in `sweep`
      caused by: `sweep/queue` has queue format version 71, and this program reads version 1

    hint: make it with `poolcast sweep init CONFIG -o DIR`
    ");
    newer("sweep/manifest.json");
    insta::assert_snapshot!(place.run("sweep work sweep"), @"
    exit 2
    error: `sweep` has sweep format version 72, and this program reads version 2

    hint: make it with `poolcast sweep init CONFIG -o DIR`
    ");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let place = place(1);
    // As on a file system that is mounted for reading only; permissions alone do not stop root.
    fs_err::remove_dir(place.path("sweep/queue/workers")).expect("removed");
    place.write("sweep/queue/workers", "");
    let refused = place.run("sweep work sweep");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("queue/workers/"), "{refused}");
}

#[test]
fn workers_make_the_trials_that_learn_from_others_as_one_machine_does() {
    let place = Place::with_log();
    for (keys, runs) in [
        ("method: bayes", 6),
        ("early_terminate: {type: hyperband, min_iter: 1, eta: 2}", 6),
        ("method: sobol, early_terminate: {type: asha, min_iter: 1, eta: 2}", 6),
    ] {
        let sweep = format!("{}wandb: {{sweep: {{{keys}}}}}\n", SMALL.replace("runs: 3", &format!("runs: {runs}")));
        place.write("learns.yaml", &sweep);
        place.stdout("run learns.yaml -o whole --threads 1 --overwrite");
        place.stdout("sweep init learns.yaml -o sweep --overwrite");
        let mut workers: Vec<Child> = (0..3).map(|_| start(&place, "sweep work sweep --threads 1")).collect();
        let mut killed = start(&place, "sweep manage sweep");
        wait(|| fs_err::read_dir(place.path("sweep/trials")).is_ok_and(|mut trials| trials.next().is_some()));
        killed.kill().expect("killed");
        killed.wait().expect("it ended");
        place.stdout("sweep manage sweep");
        assert!(workers.iter_mut().all(|worker| worker.wait().expect("it ended").success()), "{keys}");
        let models = |name: &str| {
            let mut files = place.files(name);
            files.retain(|name, _| {
                name.starts_with("trials/") && !name.ends_with("config.yaml") && !name.ends_with("evaluation-test.json")
            });
            files
        };
        let (here, whole) = (models("sweep"), models("whole"));
        let names: BTreeSet<&String> = here.keys().chain(whole.keys()).collect();
        let differ: Vec<_> = names.into_iter().filter(|name| here.get(*name) != whole.get(*name)).collect();
        assert!(differ.is_empty(), "{keys}: workers matter for {differ:?}");
        let trials: Vec<u64> = rows(&place).iter().filter_map(|row| row["trial"].as_u64()).collect();
        assert_eq!(trials, (1..=runs).collect::<Vec<u64>>(), "{keys}: one row a trial");
    }
}

#[test]
fn a_run_ends_what_workers_began() {
    let place = place(3);
    let mut worker = start(&place, "sweep run sweep --threads 1");
    wait(|| fs_err::read_dir(place.path("sweep/trials")).is_ok_and(|mut trials| trials.next().is_some()));
    worker.kill().expect("killed");
    worker.wait().expect("it ended");
    let first = place.path("sweep/trials").read_dir().expect("listed").next().expect("a trial").expect("listed").path();
    let before = first.join("model.safetensors").metadata().expect("a model").modified().expect("a time");
    assert_eq!(place.run("run small.yaml -o sweep").code, Some(0));
    assert_eq!(rows(&place).len(), 3);
    assert_eq!(first.join("model.safetensors").metadata().expect("a model").modified().expect("a time"), before);
}
