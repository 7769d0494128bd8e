//! Tests of `poolcast simulate`: every verb can read the simulated log, and the log is
//! deterministic.

use std::collections::BTreeSet;

use poolcast_simulate::read_truth;
use serde_json::Value;

use crate::place::Place;

const SMALL: &str = "--jobs 400 --days 7";

fn simulated(place: &Place, log: &str, more: &str) -> Vec<u8> {
    place.stdout(&format!(
        "{more} simulate -o {log} --truth {log}.truth {SMALL}"
    ));
    fs_err::read(place.path(log)).expect("read")
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let place = Place::new();
    let one = simulated(&place, "one", "--threads 1");
    assert!(one == simulated(&place, "three", "--threads 3"));
    let truth = |name: &str| fs_err::read(place.path(name)).expect("read");
    assert!(truth("one.truth") == truth("three.truth"));
    place.stdout(&format!(
        "simulate -o other --truth other.truth {SMALL} --seed 2"
    ));
    assert!(one != fs_err::read(place.path("other")).expect("read"));
}

#[test]
fn parse_finds_every_job_and_hold_of_the_truth() {
    let place = Place::new();
    let summary =
        place.json("simulate -o EventLog --truth truth --jobs 1000 --start 2024-02-26 --json");
    let parsed = place.json("parse EventLog -o events --strict --json");
    assert_eq!(
        (&parsed["jobs"], &summary["jobs"]),
        (&1000.into(), &1000.into())
    );
    let holds: BTreeSet<_> = dumped(&place, "EventLog")
        .into_iter()
        .filter(|event| event["type"] == 12)
        .map(key)
        .collect();
    let truth = read_truth(&place.path("truth")).expect("read");
    assert!(truth.len() > 20 && holds.len() == truth.len());
    for row in truth {
        let time = jiff::Timestamp::from_millisecond(row.hold_time_ms).expect("in range");
        let time = time.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        assert!(
            holds.contains(&(row.cluster.into(), row.proc.into(), time)),
            "{row:?}"
        );
    }
}

/// Returns every event of a log except headers, without its line and its offset.
fn dumped(place: &Place, log: &str) -> Vec<Value> {
    let text = place.stdout(&format!("parse {log} --dump"));
    let event = |line| {
        let mut event: Value = serde_json::from_str(line).expect("JSON");
        event
            .as_object_mut()
            .expect("an object")
            .retain(|name, _| name != "line" && name != "offset");
        event
    };
    text.lines()
        .map(event)
        .filter(|event| event["type"] != 8)
        .collect()
}

fn key(event: Value) -> (i64, i64, String) {
    let number = |name: &str| event[name].as_i64().expect("a number");
    (
        number("cluster"),
        number("proc"),
        event["time"].as_str().expect("a time")[..19].to_owned(),
    )
}

#[test]
fn rotated_log_has_the_same_events_as_a_single_file() {
    let place = Place::new();
    simulated(&place, "whole", "");
    place.stdout(&format!(
        "simulate -o cut --truth cut.truth {SMALL} --rotate-bytes 500000"
    ));
    assert!(place.path("cut.2").exists());
    assert!(dumped(&place, "whole") == dumped(&place, "cut"));
    place.stdout("parse cut -o events --strict");
}

#[test]
fn nothing_else_is_replaced() {
    let place = Place::new();
    simulated(&place, "EventLog", "");
    place.write("precious", "x");
    let call = |log: &str, truth: &str, more: &str| {
        place.run(&format!("simulate -o {log} --truth {truth} {SMALL} {more}"))
    };
    insta::assert_snapshot!(call("EventLog", "EventLog.truth", "--seed 2"), @"
    exit 2
    error: `EventLog` already exists

    hint: name another file; `--help` says how one is replaced
    ");
    insta::assert_snapshot!(call("precious", "truth", "--overwrite"), @"
    exit 2
    error: cannot replace `precious` without its truth file
      caused by: `truth` is not a usable truth shard
      caused by: failed to open file `truth`: No such file or directory (os error 2)

    hint: name another file
    ");
    insta::assert_snapshot!(call("new", "new", ""), @"
    exit 2
    error: the log and the truth file are the same file

    hint: name another file with `--truth`
    ");
    assert_eq!(fs_err::read(place.path("precious")).expect("read"), b"x");
    place.stdout(&format!(
        "simulate -o cut --truth truth {SMALL} --rotate-bytes 500000"
    ));
    place.stdout(&format!(
        "simulate -o cut --truth truth {SMALL} --overwrite"
    ));
    assert!(
        !place.path("cut.1").exists(),
        "generations of the earlier log would be read with the new one"
    );
}

#[test]
fn repeated_call_finds_the_existing_simulation() {
    let place = Place::new();
    let call = format!("simulate -o EventLog --truth truth {SMALL} --rotate-bytes 500000");
    let printed = place.stdout(&call);
    let made = place.files(".");

    let again = place.run(&call);
    assert_eq!(
        (again.code, &again.stdout, &*again.stderr),
        (
            Some(0),
            &printed,
            "nothing new: `EventLog` already holds this simulation\n"
        )
    );
    assert_eq!(place.files("."), made);
    let json = place.json(&format!("{call} --json"));
    assert_eq!(
        json,
        place.json(&format!("{call} --json --overwrite")),
        "what is found says the same as what is made"
    );

    // A log to which another program has added text is not replaced.
    let log = place.path("EventLog");
    let text = fs_err::read_to_string(&log).expect("read");
    fs_err::write(&log, text + "another's\n").expect("written");
    let refused = place.run(&call);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("`EventLog` already exists"),
        "{refused}"
    );
}

#[test]
fn evaluation_includes_the_best_possible_scores() {
    let place = Place::new();
    place.stdout("simulate -o log --truth truth --jobs 12000 --seed 1");
    place.stdout("parse log -o events");
    place.stdout(
        "tensors events -o tensors --j 2 --m 3 --timeframe-len 3600 --vocabulary hold-codes",
    );
    place.stdout("train tensors -o run --epochs 1 --hidden-size 4");
    let scores = place.json("evaluate run tensors --truth truth --resamples 10 --json");
    let roc_auc = |scores: &Value, name: &str| {
        let methods = scores["methods"].as_array().expect("methods");
        let own = methods
            .iter()
            .find(|method| method["name"] == name)
            .expect("the method");
        let score = own["scores"]
            .as_array()
            .expect("scores")
            .iter()
            .find(|score| score["name"] == "roc_auc");
        score.expect("an area")["value"].as_f64().expect("a number")
    };
    let best = roc_auc(&scores, "best possible");
    assert!(best > roc_auc(&scores, "rate by hold code"));

    // Samples of the time of the hold lack the events until the release, so even the best possible
    // score is lower.
    place.stdout(
        "tensors events -o at-hold --j 2 --m 3 --timeframe-len 3600 --vocabulary hold-codes --window hold",
    );
    place.stdout("train at-hold -o run-at-hold --epochs 1 --hidden-size 4");
    let scores = place.json("evaluate run-at-hold at-hold --truth truth --resamples 10 --json");
    assert!(roc_auc(&scores, "best possible") < best);
    place.stdout("simulate -o other --truth untruth --jobs 1000 --seed 4");
    let refusal = place.run("evaluate run tensors --truth untruth");
    assert!(
        refusal.code == Some(2) && refusal.stderr.contains("lacks some holds"),
        "{refusal}"
    );
    let refusal = place.run("tensors events -o more --j 2 --m 3 --timeframe-len 3600");
    assert_eq!(refusal.code, Some(0), "{refusal}");
    let refusal = place.run("evaluate run more");
    assert!(
        refusal.code == Some(2) && refusal.stderr.contains("--vocabulary hold-codes"),
        "{refusal}"
    );
}

#[test]
fn static_features_improve_scores() {
    let place = Place::new();
    place.stdout("simulate -o log --truth truth --jobs 20000 --seed 1");
    place.stdout("parse log -o events");
    place.stdout("tensors events -o tensors --j 1 --m 2 --timeframe-len 3600");
    let roc_auc = |model: &str| {
        place.stdout(&format!(
            "train tensors -o {model} --epochs 20 --earlystop-threshold 20 --hidden-size 4 --model {model}"
        ));
        let scores = place.json(&format!("evaluate {model} tensors --resamples 10 --json"));
        scores["methods"][0]["scores"][4]["value"]
            .as_f64()
            .expect("an area")
    };
    let (plain, with_static) = (roc_auc("lstm"), roc_auc("lstm+static"));
    assert!(
        with_static > plain + 0.05,
        "{with_static} with, {plain} without"
    );
}
