//! `poolcast dag`: the DAG of a sweep, what is refused before anything is submitted, and its nodes run one by one.

use std::collections::BTreeMap;

use crate::nodes;
use crate::place::{Outcome, Place};
use crate::run::SMALL;

const IMAGE: &str = "osdf:///ospool/ap40/data/me/poolcast-1.sif";

/// A place with a small sweep in `small.yaml`, whose configuration goes on with `more`.
fn place(more: &str) -> Place {
    let place = Place::with_log();
    place.write("small.yaml", format!("{SMALL}dag: {{image: {IMAGE}}}\n{more}"));
    place
}

/// A file of a DAG, without the directory of this test.
fn file(place: &Place, name: &str) -> String {
    let text = fs_err::read_to_string(place.path("out").join(name)).expect("read");
    text.replace(&*place.path("").to_string_lossy(), "/home/me/")
}

#[test]
fn the_dag_of_a_sweep() {
    let place = place("");
    assert_eq!(place.stdout("dag small.yaml"), "3 trials on 2 different tensors: out/pipeline.dag\n");
    insta::assert_snapshot!("pipeline", file(&place, "pipeline.dag"));
    let shown = place.stdout("dag small.yaml -o elsewhere --dry-run");
    assert!(shown.contains("==> condor/train.sub <==") && shown.contains("JOB train-0003 condor/train.sub"), "{shown}");
    assert!(!place.path("elsewhere").exists());
    // Again, and nothing changes; another sweep is not mixed with it.
    let before = place.files("out");
    place.stdout("dag small.yaml");
    assert!(place.files("out") == before);
    place.write("small.yaml", format!("{SMALL}dag: {{image: {IMAGE}}}\nseed: 2\n"));
    insta::assert_snapshot!(place.run("dag small.yaml"), @"
    exit 2
    error: `out/config.yaml` is there, and of another sweep

    hint: name another directory; `poolcast sweep cleanup DIR` puts a finished sweep into one of its own
    ");
}

#[test]
fn jobs_on_hold_are_named_with_the_reason() {
    let place = place("");
    place.stdout("dag small.yaml");
    let node = "[\n  Type = \"NodeStatus\";\n  Node = \"parse\";\n  NodeStatus = 3;\n  JobProcsHeld = 1;\n]\n";
    place.write(
        "out/pipeline.status",
        format!("[\n  Type = \"DagStatus\";\n  DagStatus = 3;\n  JobProcsHeld = 1;\n]\n{node}"),
    );
    // The access point's disk was full when the job's output came.
    let submitted = "000 (2.0.0) 2026-11-22 01:00:14 Job submitted from host: <10.0.0.1:9618>\n...\n";
    let held = "012 (2.0.0) 2026-11-22 01:00:19 Job was held.\n\tNo space left on device\n\tCode 12 Subcode 28\n...\n";
    place.write("out/logs/parse.log", format!("{submitted}{held}"));
    insta::assert_snapshot!(place.stdout("sweep status out"), @"
    the DAG runs; jobs on hold, which it waits for: 1
           done  at work  waiting  failed
    parse     0        1        0       0
    3 trials: 0 done, 0 failed, 3 to come
      parse is held: 12/28 output files could not be transferred back: no space left
    ");
}

#[test]
fn one_job_an_epoch_as_published() {
    let place = place("");
    place.write(
        "small.yaml",
        format!("{}dag: {{image: {IMAGE}, per_epoch: true}}\n", SMALL.replace("runs: 3", "runs: 1")),
    );
    place.stdout("dag small.yaml");
    insta::assert_snapshot!("pipeline-per-epoch", file(&place, "pipeline.dag"));
}

#[test]
fn submit_files_hold_what_the_site_and_the_configuration_add() {
    let place = Place::with_log();
    place.write("site.sub", "# OSPool\n+JobDurationCategory = \"Medium\"\n");
    let dag = format!("dag: {{image: {IMAGE}, submit: {{train: {{request_gpus: 1, request_memory: 8GB}}}}}}\n");
    place.write("small.yaml", format!("{SMALL}{dag}"));
    place.stdout("dag small.yaml --site site.sub");
    let train = file(&place, "condor/train.sub");
    let added = train.split("# The site\n").nth(1).expect("the site's commands");
    insta::assert_snapshot!(added, @r#"
    # OSPool
    +JobDurationCategory = "Medium"

    # `dag.submit.train` of the configuration
    request_gpus            = 1
    request_memory          = 8GB

    queue
    "#);
    assert!(!file(&place, "condor/best.sub").contains("request_gpus"));
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_submitted() {
    let place = Place::with_log();
    fs_err::create_dir(place.path("a b")).expect("made");
    fs_err::copy(place.path("EventLog.xz"), place.path("a b/EventLog.xz")).expect("copied");
    place.write("image.sif", "");
    let refused = |change: &dyn Fn(String) -> String, args: &str| {
        place.write("bad.yaml", change(format!("{SMALL}dag: {{image: {IMAGE}}}\n")));
        let text = place.run(&format!("dag bad.yaml {args}")).to_string();
        assert!(!place.path("out").exists() && !place.path("a b/out").exists(), "{text}");
        text.replace(&*place.path("").to_string_lossy(), "/home/me/")
    };
    let with = |from: &'static str, to: &'static str| move |text: String| text.replace(from, to);
    insta::assert_snapshot!(
        [
            refused(&|_| SMALL.to_owned(), ""),
            refused(&with("x", "x"), "--image missing.sif"),
            refused(&with("x", "x"), "--image ftp://host/image.sif"),
            refused(&with("EventLog.xz", "missing"), ""),
            refused(&with("[EventLog.xz]", "[]"), ""),
            refused(&with("EventLog.xz", "a b/EventLog.xz"), ""),
            refused(&with("[EventLog.xz]", "[EventLog.xz, sub/../EventLog.xz]"), ""),
            refused(&with("out: out", "out: a b/out"), ""),
            refused(&with("runs: 3", "runs: 3\nwandb: {sweep: {name: my sweep.1}}"), ""),
            refused(&with("runs: 3", "runs: 3\nwandb: {sweep: {name: trials}}"), ""),
            refused(&with("runs: 3", "runs: 3\nwandb: {sweep: {method: bayes}}"), ""),
            refused(&with("dag: {", "dag: {submit: {train: {universe: vanilla}}, "), ""),
            refused(&with("dag: {", "dag: {submit: {train: {request_disk: 4}}, "), ""),
            refused(&with("dag: {", "dag: {submit: {train: {request_cpus: \"1\\nqueue 9\"}}, "), ""),
            refused(&with("dag: {", "dag: {submit: {trains: {request_cpus: 1}}, "), ""),
            refused(&with("x", "x"), "--site missing.sub"),
        ]
        .join("\n"), @"
    exit 2
    error: cannot use `bad.yaml`
      caused by: no container image is named

    hint: name a .sif file, or an osdf:///, docker:// or oras:// address, with `--image` or `dag.image`

    exit 2
    error: cannot use `bad.yaml`
      caused by: `missing.sif` is neither a .sif file nor the address of an image

    hint: name a .sif file, or an osdf:///, docker:// or oras:// address, with `--image` or `dag.image`

    exit 2
    error: cannot use `bad.yaml`
      caused by: `ftp://host/image.sif` is neither a .sif file nor the address of an image

    hint: name a .sif file, or an osdf:///, docker:// or oras:// address, with `--image` or `dag.image`

    exit 2
    error: cannot use `bad.yaml`
      caused by: cannot read the log `missing`
      caused by: failed to open file `missing`: No such file or directory (os error 2)

    hint: `logs` are paths as seen from where poolcast is started

    exit 2
    error: cannot use `bad.yaml`
      caused by: the configuration names no logs

    hint: add `logs: [PATH]` to it

    exit 2
    error: cannot use `bad.yaml`
      caused by: the log `/home/me/a b/EventLog.xz` has a character that DAGMan or a submit file reads as something else

    hint: use letters, digits and `/._-+=:@~`; for a file elsewhere, make a symbolic link with such a name

    exit 2
    error: cannot use `bad.yaml`
      caused by: cannot read the log `sub/../EventLog.xz`
      caused by: failed to open file `sub/../EventLog.xz`: No such file or directory (os error 2)

    hint: `logs` are paths as seen from where poolcast is started

    exit 2
    error: cannot use `bad.yaml`
      caused by: the directory `/home/me/a b/out` has a character that DAGMan or a submit file reads as something else

    hint: use letters, digits and `/._-+=:@~`; for a file elsewhere, make a symbolic link with such a name

    exit 2
    error: cannot use `bad.yaml`
      caused by: cannot use `wandb.sweep.name`
      caused by: no node of a DAG may be called `my sweep.1`

    hint: use letters, digits, `-` and `_`

    exit 2
    error: cannot use `bad.yaml`
      caused by: cannot use `wandb.sweep.name`
      caused by: `trials` is what a DAG leaves beside it

    hint: name it as no file or directory of a DAG is named

    exit 2
    error: cannot use `bad.yaml`
      caused by: the trials of a DAG do not learn from each other, as `bayes` and `early_terminate` do

    hint: do it with `poolcast run` or with workers that share a folder, or use `method: random`, `sobol` or `grid`

    exit 2
    error: `dag.submit.train`: `universe` is decided by poolcast

    hint: name resources and policies only, such as `request_memory: 4GB`

    exit 2
    error: `dag.submit.train`: `request_disk` has no unit

    hint: say what is meant, such as `4GB`

    exit 2
    error: `dag.submit.train`: `request_cpus` needs a value on one line

    hint: write `NAME = VALUE`

    exit 2
    error: `bad.yaml` has an unknown key `dag.submit.trains`

    hint: did you mean `train`? `poolcast config` prints every key

    exit 2
    error: cannot use `bad.yaml`
      caused by: cannot read the site file `missing.sub`
      caused by: failed to open file `missing.sub`: No such file or directory (os error 2)

    hint: condor/ has examples of site files: submit commands that every job gets
    ");
}

#[test]
fn away_from_an_access_point_nothing_is_submitted() {
    let place = place("");
    let mut command = place.command("dag small.yaml --submit");
    let outcome = Outcome::of(command.env("PATH", place.path("")).output().expect("it starts"));
    insta::assert_snapshot!(outcome, @"
    exit 2
    3 trials on 2 different tensors: out/pipeline.dag
    error: cannot run `condor_submit_dag`
      caused by: No such file or directory (os error 2)

    hint: on an access point: cd out && condor_submit_dag pipeline.dag
    ");
}

/// What every trial came to, by file.
fn trials(place: &Place, dir: &str) -> BTreeMap<String, Vec<u8>> {
    let kept = |name: &str| name.ends_with("model.safetensors") || name.ends_with("metrics.json");
    place.files(&format!("{dir}/trials")).into_iter().filter(|(name, _)| kept(name)).collect()
}

#[test]
fn nodes_give_the_bytes_of_a_run_on_one_machine() {
    // A training leaves for its checkpoint at once, and comes again.
    let place = place("");
    let dag = format!("{SMALL}dag: {{image: {IMAGE}, submit: {{train: {{minutes: 0.001}}}}}}\n");
    place.write("small.yaml", dag);
    place.stdout("dag small.yaml -o dag");
    assert!(
        place.stdout("sweep status dag").starts_with("DAGMan has not begun\n3 trials: 0 done, 0 failed, 3 to come\n")
    );
    assert_eq!(nodes::run(&place, "dag"), 0);
    place.stdout("run small.yaml -o here");
    assert_eq!(trials(&place, "dag/poolcast").len(), 6);
    assert!(trials(&place, "dag/poolcast") == trials(&place, "here"), "other trials");
    for name in ["best.json", "bestmodel.info"] {
        assert!(place.files("dag/poolcast")[name] == place.files("here")[name], "another {name}");
    }
    assert!(place.stdout("sweep status dag").contains("3 trials: 3 done, 0 failed, 0 to come\nbest: trial "));
    // A best trial chosen again is the same, and a DAG's directory stands for it.
    assert_eq!(place.stdout("sweep best dag").into_bytes(), place.files("dag/poolcast")["bestmodel.info"]);
    assert_eq!(place.run("advise dag --log EventLog.xz 1161.0").code, Some(10));
    tidied(&place);
}

/// Tidies the rest of the directory `dag`, whose nodes are done; the last of them has begun with it.
fn tidied(place: &Place) {
    insta::assert_snapshot!(place.run("sweep cleanup dag"), @"
    exit 2
    error: the DAG in `dag` is not done

    hint: `poolcast sweep status DIR` shows how far it is; `condor_submit_dag pipeline.dag` in it goes on from its rescue file
    ");
    place.write("dag/mine", "x");
    place.write("dag/pipeline.dag.nodes.log", "");
    place.write("dag/pipeline.status", "[\n  Type = \"DagStatus\";\n  DagStatus = 5; /* \"STATUS_DONE\" */\n]\n");
    let before = place.files("dag");
    let said = place.stdout("sweep cleanup dag --dry-run");
    assert!(place.files("dag") == before, "nothing moves");
    assert_eq!(place.stdout("sweep cleanup dag"), said);
    insta::assert_snapshot!(said, @"
    dag/pipeline.dag.nodes.log -> dag/poolcast/pipeline.dag.nodes.log
    dag/pipeline.report -> dag/poolcast/pipeline.report
    dag/pipeline.status -> dag/poolcast/pipeline.status
    dag/pipeline.dag -> dag/poolcast/pipeline.dag
    ");
    let moved = |(name, bytes): (String, Vec<u8>)| match name.starts_with("pipeline.") {
        true => (format!("poolcast/{name}"), bytes),
        false => (name, bytes),
    };
    assert!(place.files("dag") == before.into_iter().map(moved).collect(), "everything is there, and nothing else");
    assert_eq!(place.stdout("sweep cleanup dag"), "everything is in dag/poolcast\n");
    assert_eq!(place.run("advise dag/poolcast --log EventLog.xz 1161.0").code, Some(10));
    insta::assert_snapshot!(place.run("dag small.yaml -o dag"), @"
    exit 2
    error: `dag/poolcast` holds a finished sweep of this name

    hint: give this one another `wandb.sweep.name`, or name another directory
    ");
    // With another sweep's results beside them a name is needed.
    fs_err::create_dir_all(place.path("dag/second/trials")).expect("made");
    place.write("dag/second/trials/trial-0001.yaml", "x");
    insta::assert_snapshot!(place.run("sweep best dag"), @"
    exit 2
    error: `dag` holds several sweeps

    hint: name one of them: `dag/poolcast`, `dag/second`
    ");
}

#[test]
fn a_dag_that_is_to_be_left_as_it_is() {
    let place = place("");
    let one = SMALL.replace("runs: 3", "runs: 1").replace("epochs: 3", "epochs: 1");
    place.write("small.yaml", format!("{one}dag: {{image: {IMAGE}, cleanup: false}}\n"));
    place.stdout("dag small.yaml");
    assert_eq!(nodes::run(&place, "out"), 0);
    assert!(place.path("out/bestmodel.info").exists() && !place.path("out/poolcast").exists());
    place.write("out/pipeline.status", "[\n  Type = \"DagStatus\";\n  DagStatus = 5; /* \"STATUS_DONE\" */\n]\n");
    insta::assert_snapshot!(place.stdout("sweep cleanup out"), @"
    out/pipeline.report -> out/poolcast/pipeline.report
    out/best.json -> out/poolcast/best.json
    out/bestmodel.info -> out/poolcast/bestmodel.info
    out/logs -> out/poolcast/logs
    out/condor -> out/poolcast/condor
    out/events -> out/poolcast/events
    out/tensors -> out/poolcast/tensors
    out/trials -> out/poolcast/trials
    out/config.yaml -> out/poolcast/config.yaml
    out/pipeline.status -> out/poolcast/pipeline.status
    out/pipeline.dag -> out/poolcast/pipeline.dag
    ");
    assert_eq!(place.stdout("sweep cleanup out"), "everything is in out/poolcast\n");
}

#[test]
fn nothing_is_replaced_by_what_a_dag_leaves() {
    let place = place("");
    let one = SMALL.replace("runs: 3", "runs: 1").replace("epochs: 3", "epochs: 1");
    place.write("small.yaml", format!("{one}dag: {{image: {IMAGE}}}\n"));
    place.stdout("dag small.yaml");
    fs_err::create_dir(place.path("out/poolcast")).expect("made");
    place.write("out/poolcast/logs", "mine");
    assert_eq!(nodes::run(&place, "out"), 0);
    let report = file(&place, "pipeline.report");
    assert!(report.ends_with("\nnothing was moved: poolcast/logs is there already\n"), "{report}");
    assert!(place.path("out/bestmodel.info").exists());
}

#[test]
fn a_trial_that_fails_is_recorded_and_the_best_of_the_others_is_chosen() {
    let place = place("");
    place.stdout("dag small.yaml");
    place.write("out/trials/trial-0001.yaml", "epoch: 3\n");
    // Trial 2 is the only one with these tensors.
    place.write("out/tensors/j3-m4-t10-uniform-events.yaml", "epoch: 3\n");
    assert_eq!(nodes::run(&place, "out"), 0);
    insta::assert_snapshot!(file(&place, "pipeline.report").split("trial = ").next().expect("a head"), @"
    DAG status 0, 0 nodes failed
    trial-0001 failed: train-0001: exit code 2: `trials/trial-0001.yaml` has an unknown key `epoch`
    trial-0002 failed: tensors-j3-m4-t10-uniform-events: exit code 2: `tensors/j3-m4-t10-uniform-events.yaml` has an unknown key `epoch`
    ");
    let status = place.stdout("sweep status out");
    assert!(status.contains("3 trials: 1 done, 2 failed, 0 to come\n  trial 1 failed: train-0001: exit"), "{status}");
    let left = place.files("out/poolcast");
    assert!(!left.contains_key("trials/trial-0002/metrics.json") && !left.contains_key("logs/train-0002.err"));
}

#[test]
fn a_dag_without_a_trial_that_works_has_failed() {
    let place = place("");
    place.write("small.yaml", format!("{}dag: {{image: {IMAGE}}}\n", SMALL.replace("runs: 3", "runs: 1")));
    place.stdout("dag small.yaml");
    place.write("out/trials/trial-0001.yaml", "epoch: 3\n");
    assert_eq!(nodes::run(&place, "out"), 1);
    insta::assert_snapshot!(file(&place, "pipeline.report"), @"
    DAG status 2, 1 nodes failed
    trial-0001 failed: train-0001: exit code 2: `trials/trial-0001.yaml` has an unknown key `epoch`
    logs/best.err:error: none of the 1 trials finished; trial 1: train-0001: exit code 2: `trials/trial-0001.yaml` has an unknown key `epoch`
    ");
}

#[test]
fn a_chain_of_epochs_ends_where_a_whole_training_does() {
    let place = place("");
    let small = SMALL.replace("runs: 3", "runs: 1\nearlystop_threshold: 1").replace("epochs: 3", "epochs: 5");
    // What learns nothing stops after its second epoch.
    let small = small.replace("{distribution: uniform, min: 0.001, max: 0.02}", "0");
    place.write("small.yaml", format!("{small}dag: {{image: {IMAGE}, per_epoch: true}}\n"));
    place.stdout("dag small.yaml -o dag");
    assert_eq!(nodes::run(&place, "dag"), 0);
    place.stdout("run small.yaml -o here");
    assert!(trials(&place, "dag/poolcast") == trials(&place, "here"), "another trial");
    let logs: Vec<String> =
        place.files("dag/poolcast/logs").into_keys().filter(|name| name.starts_with("train")).collect();
    assert_eq!(logs, ["train-0001-0001.err", "train-0001-0002.err"]);
}

#[test]
fn what_is_no_trials_fault_stays_a_failure() {
    let place = place("");
    place.stdout("dag small.yaml");
    let ended = |code: &str, retry: &str| {
        let words =
            ["condor/node.sh", "ended", "trials/trial-0001.failed", "logs/x.err", "train-0001", code, retry, "2"];
        let status = std::process::Command::new("/bin/sh").args(words).current_dir(place.path("out")).status();
        let record = fs_err::read_to_string(place.path("out/trials/trial-0001.failed")).ok();
        (status.expect("it starts").code(), record)
    };
    place.write("out/logs/x.err", "error: cannot write `a`\n  caused by: disk full\n");
    assert_eq!(ended("1", "0"), (Some(1), None), "another attempt may help");
    assert_eq!(ended("-1001", "2"), (Some(1), None), "it was never submitted");
    let record = |text: &str| (Some(0), Some(format!("train-0001: {text}\n")));
    assert_eq!(ended("1", "2"), record("exit code 1: cannot write `a`"));
    assert_eq!(ended("-9", "2"), record("killed by signal 9: cannot write `a`"));
    assert_eq!(ended("-1002", "2"), record("removed from the queue: cannot write `a`"));
    assert_eq!(ended("2", "0"), record("exit code 2: cannot write `a`"), "it will never work");
    assert_eq!(ended("0", "1"), (Some(0), None), "it works after all");
}
