//! `poolcast run`: the whole line on the bundled log, small.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use crate::place::Place;

pub(crate) const SMALL: &str = "
logs: [EventLog.xz]
out: out
runs: 3
epochs: 3
preprocessing: {parameters: {j: {values: [3, 5]}, m: 4, timeframe_len: 10}}
training: {parameters: {hidden_size: {values: [4, 8]}, learning_rate: {distribution: uniform, min: 0.001, max: 0.02}}}
evaluation: {resamples: 50}
";

fn place() -> Place {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    place
}

#[test]
fn everything_is_left_and_a_second_run_changes_nothing() {
    let place = place();
    let first = place.run("run small.yaml");
    assert_eq!(first.code, Some(0), "{first}");
    for heading in [
        "Events",
        "Samples of the best trial",
        "Trials, by validation_loss",
        "The best trial on holds",
        "Advice on the 8 jobs",
    ] {
        assert!(first.stdout.lines().any(|line| line.starts_with(heading)), "no `{heading}` in\n{first}");
    }
    let before = place.files("out");
    for name in
        ["config.yaml", "events/manifest.json", "trials/trial-0003/model.safetensors", "best.json", "report.json"]
    {
        assert!(before.contains_key(name), "{name} is missing");
    }
    assert!(before.keys().any(|name| name.starts_with("trials/") && name.ends_with("evaluation-test.json")));
    let second = place.run("run small.yaml");
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(second.stderr.matches("done before").count(), 1 + 2, "events and both sizes of tensors\n{second}");
    assert_eq!(place.files("out"), before);
    assert_eq!(second.stdout, first.stdout);
    place.stdout("run small.yaml --overwrite");
    assert_eq!(timeless(&place, "out"), timeless_of(before), "anew, and yet the same bytes");
    let best = place.run("advise out --log EventLog.xz 1161.0");
    assert_eq!(best.code, Some(10), "a directory with a best trial stands for that trial's run\n{best}");
}

/// What a run left, but for what says when and by whom.
fn timeless(place: &Place, name: &str) -> BTreeMap<String, Vec<u8>> {
    timeless_of(place.files(name))
}

fn timeless_of(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let timed = ["results.jsonl", "results.csv", "status.log"];
    files.into_iter().filter(|(name, _)| !timed.contains(&name.as_str())).collect()
}

#[test]
fn a_killed_run_goes_on_to_the_same_bytes() {
    let place = place();
    place.stdout("run small.yaml -o whole");
    let mut child = place
        .command("run small.yaml -o killed")
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let has_checkpoint = |dir: fs_err::DirEntry| dir.path().join("checkpoint.safetensors").exists();
    let begun = || {
        fs_err::read_dir(place.path("killed/queue/running"))
            .ok()?
            .flatten()
            .find_map(|dir| has_checkpoint(dir).then_some(()))
    };
    while begun().is_none() {
        assert!(child.try_wait().expect("asked").is_none(), "it ended before it wrote a checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("killed");
    child.wait().expect("it ended");
    place.stdout("run small.yaml -o killed");
    let named_by_place = |name: &String| name != "config.yaml" && !name.ends_with("/config.yaml");
    let files = |name: &str| {
        let files = timeless(&place, name).into_iter();
        files.filter(|(name, _)| named_by_place(name) && !name.contains("/.")).collect::<Vec<_>>()
    };
    assert!(files("killed") == files("whole"), "a resumed run differs from a whole one");
}

#[test]
fn another_seed_makes_other_trials() {
    let place = place();
    let first = place.json("run small.yaml --json");
    place.write("small.yaml", format!("{SMALL}seed: 2\n"));
    let second = place.json("run small.yaml --json");
    assert_ne!(first["best"]["value"], second["best"]["value"]);
    assert_eq!(first["events"], second["events"]);
}

#[test]
fn a_trial_whose_loss_is_no_number_is_left_out() {
    let place = place();
    // At this rate weights either jump about or, with that decay, grow ten thousandfold a step.
    let rate = "learning_rate: {distribution: uniform, min: 0.001, max: 0.02}";
    place.write("wild.yaml", SMALL.replace(rate, "learning_rate: 10, weight_decay: {values: [0, 1000]}"));
    let first = place.json("run wild.yaml --json");
    let trials = first["best"]["trials"].as_array().expect("trials");
    let is_wild = |trial: &serde_json::Value| trial["status"] == "non-finite";
    let wild = trials.iter().filter(|trial| is_wild(trial)).count();
    assert!((1..trials.len()).contains(&wild), "{trials:?}");
    let best = first["best"]["trial"].as_u64().expect("a trial") as usize;
    assert!(!is_wild(&trials[best - 1]));
    for (trial, number) in trials.iter().zip(1..) {
        let path = place.path(&format!("out/trials/trial-{number:04}/metrics.json"));
        let metrics: serde_json::Value = serde_json::from_slice(&fs_err::read(path).expect("read")).expect("JSON");
        assert!(["status", "epochs", "best", "calibration"].iter().all(|key| metrics[key] == trial[key]), "{metrics}");
    }
    assert_eq!(place.json("run wild.yaml --json"), first, "again, from what is there");
    assert!(
        place.stdout("run wild.yaml").contains("the loss is not finite in epoch 1; a smaller learning rate may help")
    );
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

    hint: did you mean `training`? `poolcast config` prints every key
    ");
    insta::assert_snapshot!(refused(SMALL.replace("[EventLog.xz]", "[]")), @"
    exit 2
    error: `bad.yaml` names no logs

    hint: add `logs: [PATH]` to it
    ");
    insta::assert_snapshot!(refused(SMALL.replace("EventLog.xz", "nowhere")), @"
    exit 2
    error: cannot read the log `nowhere`
      caused by: cannot open the log `nowhere`
      caused by: failed to open file `nowhere`: No such file or directory (os error 2)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(refused(SMALL.replace("m: 4", "m: 0")), @"
    exit 2
    error: cannot use `bad.yaml`
      caused by: `m` must be between 1 and 10000, got 0

    hint: `poolcast config` explains every key
    ");
    insta::assert_snapshot!(refused(SMALL.replace("min: 0.001", "min: 1")), @"
    exit 2
    error: `bad.yaml`: `training.parameters.learning_rate`: `uniform` needs min <= max, got 1 and 0.02

    hint: `poolcast config` explains every key
    ");
    assert!(!place.path("none").exists());
    insta::assert_snapshot!(place.run("run nowhere.yaml"), @"
    exit 2
    error: cannot read the configuration `nowhere.yaml`
      caused by: failed to open file `nowhere.yaml`: No such file or directory (os error 2)

    hint: `poolcast config > FILE` writes one to start from
    ");
}
