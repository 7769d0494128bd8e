//! `poolcast dag`: the DAG of a sweep, what is refused before anything is submitted, and its nodes run one by one.

use std::path::Path;

use crate::place::Place;
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
      caused by: the trials of a DAG do not learn from each other, as `bayes` and `early_terminate` do

    hint: run it on one machine with `poolcast run`, or use `method: random`, `sobol` or `grid`

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
