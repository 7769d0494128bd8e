//! Tests of `poolcast dag`: the DAG that it writes, the input that it rejects before submission,
//! and the nodes of the DAG, which run here one by one.

use std::collections::BTreeMap;

use crate::mlflow_server::MlflowServer;
use crate::nodes;
use crate::place::{self, Outcome, Place};
use crate::run::SMALL;
use crate::wandb_server::WandbServer;

const IMAGE: &str = "osdf:///ospool/ap40/data/me/poolcast-1.sif";

/// A test directory with a small sweep in `small.yaml`, whose `dag` key ends with `more`. Its log
/// is already parsed, and each job trains two trials.
fn place(more: &str) -> Place {
    let place = Place::with_short_events();
    place.write("small.yaml", small(SMALL, more));
    place
}

/// Appends to the configuration `sweep` a `dag` key that starts from parsed events and ends with
/// `more`.
pub(crate) fn small(sweep: &str, more: &str) -> String {
    format!("{sweep}dag: {{image: {IMAGE}, events: events, trials_per_job: 2{more}}}\n")
}

/// Reads a file of the DAG in `out`, with `/home/me/` in place of the test directory.
fn file(place: &Place, name: &str) -> String {
    let text = fs_err::read_to_string(place.path("out").join(name)).expect("read");
    text.replace(&*place.path("").to_string_lossy(), "/home/me/")
}

#[test]
fn the_dag_of_a_sweep() {
    let place = place("");
    assert_eq!(
        place.stdout("dag small.yaml"),
        "3 trials on 2 sets of tensors in 2 jobs: out/pipeline.dag\n"
    );
    insta::assert_snapshot!("pipeline", file(&place, "pipeline.dag"));
    assert!(
        place.files("out/events") == place.files("events"),
        "the events are taken over"
    );
    let shown = place.stdout("dag small.yaml -o elsewhere --dry-run");
    assert!(
        shown.contains("==> condor/trials.sub <==")
            && shown.contains("JOB trials-0002 condor/trials.sub"),
        "{shown}"
    );
    assert!(!place.path("elsewhere").exists());
    // A second call changes nothing. Another sweep in the same directory is rejected.
    let before = place.files("out");
    place.stdout("dag small.yaml");
    assert!(place.files("out") == before);
    place.write("small.yaml", small(SMALL, "") + "seed: 2\n");
    insta::assert_snapshot!(place.run("dag small.yaml"), @"
    exit 2
    error: `out/config.yaml` belongs to another sweep

    hint: name another directory; `poolcast sweep cleanup DIR` moves a finished sweep into a directory of its own
    ");
}

#[test]
fn local_log_is_parsed_before_submission_and_not_transferred() {
    let place = Place::with_log();
    place.write("small.yaml", format!("{SMALL}dag: {{image: {IMAGE}}}\n"));
    // Only the first call measures the duration of a trial.
    let first = place.run("dag small.yaml");
    assert!(
        first.code == Some(0) && first.stderr.contains("trial 1, network: about "),
        "{first}"
    );
    let dag = file(&place, "pipeline.dag");
    assert!(
        !dag.contains("EventLog") && !dag.contains("JOB parse"),
        "{dag}"
    );
    assert!(
        place.path("out/events/manifest.json").exists() && !place.path("out/.measured").exists()
    );
    let before = place.files("out");
    let again = place.run("dag small.yaml");
    assert!(!again.stderr.contains("about"), "{again}");
    assert!(place.files("out") == before, "nothing changes");
}

#[test]
fn a_job_parses_where_it_is_told_to_and_logs_that_are_elsewhere() {
    let place = Place::with_log();
    let logs = SMALL.replace(
        "[EventLog.xz]",
        "[EventLog.xz, osdf:///ospool/ap40/data/me/EventLog.1]",
    );
    place.write("small.yaml", format!("{logs}dag: {{image: {IMAGE}}}\n"));
    place.stdout("dag small.yaml");
    let parse = |place: &Place| {
        file(place, "pipeline.dag")
            .lines()
            .skip_while(|line| *line != "JOB parse condor/parse.sub")
            .take(3)
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(parse(&place), @r#"
    JOB parse condor/parse.sub
    VARS parse JOB="parse" image="osdf:///ospool/ap40/data/me/poolcast-1.sif" logs="/home/me/EventLog.xz,osdf:///ospool/ap40/data/me/EventLog.1" names="EventLog.xz EventLog.1"
    RETRY parse 2 UNLESS-EXIT 2
    "#);
    let place = Place::with_log();
    place.write(
        "small.yaml",
        format!("{SMALL}dag: {{image: {IMAGE}, parse_in_job: true}}\n"),
    );
    place.stdout("dag small.yaml");
    insta::assert_snapshot!(parse(&place), @r#"
    JOB parse condor/parse.sub
    VARS parse JOB="parse" image="osdf:///ospool/ap40/data/me/poolcast-1.sif" logs="/home/me/EventLog.xz" names="EventLog.xz"
    RETRY parse 2 UNLESS-EXIT 2
    "#);
}

#[test]
fn jobs_on_hold_and_failures_are_named_with_the_reason() {
    let place = place("");
    place.stdout("dag small.yaml");
    let node = |name: &str, status: u8, held: u8| {
        format!(
            "[\n  Type = \"NodeStatus\";\n  Node = \"{name}\";\n  NodeStatus = {status};\n  JobProcsHeld = {held};\n]\n"
        )
    };
    let dag = "[\n  Type = \"DagStatus\";\n  DagStatus = 3;\n  JobProcsHeld = 1;\n]\n";
    let nodes = [
        node("parse", 6, 0),
        node("tensors-a", 5, 0),
        node("tensors-b", 5, 0),
        node("trials-0001", 3, 1),
    ]
    .concat();
    place.write("out/pipeline.status", format!("{dag}{nodes}"));
    // The disk of the access point was full when the job's output arrived.
    let submitted =
        "000 (2.0.0) 2026-11-22 01:00:14 Job submitted from host: <10.0.0.1:9618>\n...\n";
    let held = "012 (2.0.0) 2026-11-22 01:00:19 Job was held.\n\tNo space left on device\n\tCode 12 Subcode 28\n...\n";
    place.write("out/logs/trials-0001.log", format!("{submitted}{held}"));
    place.write(
        "out/logs/parse.err",
        "note: x\nerror: cannot parse `EventLog`\n  caused by: it is no log\nerror: later\n",
    );
    place.write(
        "out/tensors/b.failed",
        "tensors-b: exit code 2: there is no hold\n",
    );
    insta::assert_snapshot!(place.stdout("sweep status out"), @"
    the DAG is running, and waits for held jobs: 1
             done  running  waiting  failed
    parse       0        0        0       1
    tensors     1        0        0       1
    trials      0        1        0       0
      parse failed: cannot parse `EventLog`
      tensors-b failed: exit code 2: there is no hold
    3 trials: 0 done, 0 failed, 3 remaining
      trials-0001 is held: 12/28 output files could not be transferred back: no space left
        `condor_q -hold` shows the details; use `condor_release` once the cause is fixed
    ");
    place.stdout("report out");
    let page = read_page(&place, "out");
    assert!(page.contains("report on the DAG poolcast") && page.contains("No trial has ended yet"));
    // DAGMan has not updated its status file for a long time.
    let dag = dag
        .replace(
            "  DagStatus",
            "  Timestamp = 1399674138; /* x */\n  DagStatus",
        )
        .replace("Held = 1", "Held = 0");
    place.write(
        "out/pipeline.status",
        format!("{dag}{}", node("best", 5, 0)),
    );
    let status = place.stdout("sweep status out");
    assert!(
        status.starts_with("the DAG is running\nas of ")
            && status.contains("\nDAGMan does not report: "),
        "{status}"
    );
    assert!(
        status.contains("\nall jobs are done, but DAGMan has not ended"),
        "{status}"
    );
    assert!(place.json("sweep status out --json")["silent_s"].as_u64() > Some(300));
}

#[test]
fn per_epoch_dag_has_one_job_per_epoch() {
    let place = place("");
    place.write(
        "small.yaml",
        small(&SMALL.replace("runs: 3", "runs: 1"), ", per_epoch: true"),
    );
    place.stdout("dag small.yaml");
    insta::assert_snapshot!("pipeline-per-epoch", file(&place, "pipeline.dag"));
}

#[test]
fn submit_files_hold_what_the_site_and_the_configuration_add() {
    let place = Place::with_run();
    place.write("site.sub", "# OSPool\n+JobDurationCategory = \"Medium\"\n");
    place.write(
        "small.yaml",
        small(
            SMALL,
            ", submit: {trials: {request_gpus: 1, request_memory: 8GB}}",
        ),
    );
    place.stdout("dag small.yaml --site site.sub");
    let train = file(&place, "condor/trials.sub");
    let added = train
        .split("# The site\n")
        .nth(1)
        .expect("the site's commands");
    insta::assert_snapshot!(added, @r#"
    # OSPool
    +JobDurationCategory = "Medium"

    # `dag.submit.trials` of the configuration
    request_gpus            = 1
    request_memory          = 8GB
    retry_request_memory    = 32GB

    queue
    "#);
    assert!(!file(&place, "condor/best.sub").contains("request_gpus"));
}

#[test]
fn known_sites_are_selected_by_name() {
    let place = place("");
    for (name, command) in [
        ("ospool", "+JobDurationCategory"),
        ("chtc", "want_campus_pools"),
        ("pool", "notification"),
    ] {
        let shown = place.stdout(&format!("dag small.yaml --site {name} --dry-run"));
        assert!(shown.contains(&format!("\n{command} ")), "{name}: {shown}");
    }
    // `./ospool` is the path of a site file, although a known site has that name.
    place.write("ospool", "+Mine = true\n");
    assert!(
        place
            .stdout("dag small.yaml --site ./ospool --dry-run")
            .contains("\n+Mine = true\n")
    );
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_submitted() {
    let place = Place::with_log();
    fs_err::create_dir(place.path("a b")).expect("made");
    fs_err::copy(place.path("EventLog.xz"), place.path("a b/EventLog.xz")).expect("copied");
    place.write("image.sif", "");
    let refused = |change: &dyn Fn(String) -> String, args: &str| {
        place.write(
            "bad.yaml",
            change(format!(
                "{SMALL}dag: {{image: {IMAGE}, parse_in_job: true}}\n"
            )),
        );
        let text = place.run(&format!("dag bad.yaml {args}")).to_string();
        assert!(
            !place.path("out").exists() && !place.path("a b/out").exists(),
            "{text}"
        );
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
            refused(&with("dag: {", "dag: {submit: {trials: {universe: vanilla}}, "), ""),
            refused(&with("dag: {", "dag: {submit: {trials: {request_disk: 4}}, "), ""),
            refused(&with("dag: {", "dag: {submit: {trials: {request_cpus: \"1\\nqueue 9\"}}, "), ""),
            refused(&with("dag: {", "dag: {submit: {train: {request_cpus: 1}}, "), ""),
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

        hint: give absolute paths, paths relative to the current directory, or `osdf:///` addresses

        exit 2
        error: cannot use `bad.yaml`
          caused by: the configuration names no logs

        hint: add `logs: [PATH]` to it, or name parsed events with `--events DIR`

        exit 2
        error: cannot use `bad.yaml`
          caused by: the log `/home/me/a b/EventLog.xz` has a character with a special meaning in a DAG or a submit file

        hint: use letters, digits and `/._-+=:@~`; for a file elsewhere, make a symbolic link with such a name

        exit 2
        error: cannot use `bad.yaml`
          caused by: cannot read the log `sub/../EventLog.xz`
          caused by: failed to open file `sub/../EventLog.xz`: No such file or directory (os error 2)

        hint: give absolute paths, paths relative to the current directory, or `osdf:///` addresses

        exit 2
        error: cannot use `bad.yaml`
          caused by: the directory `/home/me/a b/out` has a character with a special meaning in a DAG or a submit file

        hint: use letters, digits and `/._-+=:@~`; for a file elsewhere, make a symbolic link with such a name

        exit 2
        error: cannot use `bad.yaml`
          caused by: cannot use `wandb.sweep.name`
          caused by: `my sweep.1` is not a valid name of a DAG node

        hint: use letters, digits, `-` and `_`

        exit 2
        error: cannot use `bad.yaml`
          caused by: cannot use `wandb.sweep.name`
          caused by: `trials` is the name of a file or directory of a DAG

        hint: choose a name that no file or directory of a DAG has

        exit 2
        error: cannot use `bad.yaml`
          caused by: a DAG does not support `bayes` or `early_terminate`, because its trials cannot use each other's results

        hint: use `poolcast run` or workers that share a folder, or `method: random`, `sobol` or `grid`

        exit 2
        error: `dag.submit.trials`: `universe` is set by poolcast

        hint: set only resources and policies, such as `request_memory: 4GB`

        exit 2
        error: `dag.submit.trials`: `request_disk` needs a unit

        hint: write for example `4GB`

        exit 2
        error: `dag.submit.trials`: `request_cpus` needs a value on one line

        hint: write `NAME = VALUE`

        exit 2
        error: `bad.yaml` has an unknown key `dag.submit.train`

        hint: `poolcast config` prints every key

        exit 2
        error: cannot use `bad.yaml`
          caused by: cannot read the site file `missing.sub`
          caused by: failed to open file `missing.sub`: No such file or directory (os error 2)

        hint: name a known site (`ospool`, `chtc`, `pool`), or a file of submit commands that every job gets
        ");
}

#[test]
fn away_from_an_access_point_nothing_is_submitted() {
    let place = place("");
    let mut command = place.command("dag small.yaml --submit");
    let outcome = Outcome::of(
        command
            .env("PATH", place.path(""))
            .output()
            .expect("it starts"),
    );
    insta::assert_snapshot!(outcome, @"
    exit 2
    3 trials on 2 sets of tensors in 2 jobs: out/pipeline.dag
    error: cannot run `condor_submit_dag`
      caused by: No such file or directory (os error 2)

    hint: run on an access point: cd out && condor_submit_dag pipeline.dag
    ");
}

/// Returns the models, metrics and predictions of all trials in `dir`, by file name.
fn trials(place: &Place, dir: &str) -> BTreeMap<String, Vec<u8>> {
    let kept = [
        "model.safetensors",
        "metrics.json",
        "pipeline.json",
        "predictions.safetensors",
    ];
    let is_kept = |name: &str| kept.iter().any(|kept| name.ends_with(kept));
    place
        .files(&format!("{dir}/trials"))
        .into_iter()
        .filter(|(name, _)| is_kept(name))
        .collect()
}

/// Returns the result rows of a sweep, without the keys that depend on times, workers, attempts or
/// paths.
fn rows(place: &Place, dir: &str) -> Vec<serde_json::Value> {
    let text = fs_err::read_to_string(place.path(dir).join("results.jsonl")).expect("read");
    let timeless = |line: &str| {
        let mut row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let row_object = row.as_object_mut().expect("an object");
        for key in ["worker", "began", "seconds", "fit_seconds", "attempt"] {
            row_object.remove(key);
        }
        row
    };
    text.lines().map(timeless).collect()
}

/// Reads the report page in the directory `dir`.
fn read_page(place: &Place, dir: &str) -> String {
    fs_err::read_to_string(place.path(&format!("{dir}/report.html"))).expect("a page")
}

/// The small sweep, with fewer steps per epoch. Jobs that exit after every step then start less often.
fn sweep_of_few_steps() -> String {
    SMALL.replace("hidden_size:", "batch_size: 256, hidden_size:")
}

#[test]
fn dag_nodes_produce_the_same_bytes_as_a_local_run() {
    // Each training exits with a checkpoint almost at once, and is then resumed.
    let place = Place::with_run();
    let more = ", submit: {trials: {minutes: 0.001}}";
    place.write("small.yaml", small(&sweep_of_few_steps(), more));
    place.stdout("dag small.yaml -o dag");
    assert!(
        place
            .stdout("sweep status dag")
            .starts_with("DAGMan has not started\n3 trials: 0 done, 0 failed, 3 remaining\n")
    );
    assert_eq!(nodes::run(&place, "dag"), 0);
    place.stdout("run small.yaml -o here");
    assert_eq!(trials(&place, "dag/poolcast").len(), 9);
    assert!(
        trials(&place, "dag/poolcast") == trials(&place, "here"),
        "other trials"
    );
    assert_eq!(rows(&place, "dag/poolcast"), rows(&place, "here"));
    for name in ["best.json", "bestmodel.info"] {
        assert!(
            place.files("dag/poolcast")[name] == place.files("here")[name],
            "another {name}"
        );
    }
    assert!(
        place
            .stdout("sweep status dag")
            .contains("3 trials: 3 done, 0 failed, 0 remaining\nbest: trial ")
    );
    // The first page is from the jobs. The second is made here, from the directory after cleanup.
    for page in [read_page(&place, "dag/poolcast"), {
        place.stdout("report dag");
        read_page(&place, "dag/poolcast")
    }] {
        for figure in ["roc", "values", "by-code"] {
            let figure = format!("<figure id=\"{figure}\"");
            assert!(page.contains(&figure), "no {figure}");
        }
        assert!(!page.contains("-o chosen"), "a directory of a job is named");
    }
    // `sweep best` chooses the same trial again, and `advise` accepts the directory of the DAG as
    // that trial.
    assert_eq!(
        place.stdout("sweep best dag").into_bytes(),
        place.files("dag/poolcast")["bestmodel.info"]
    );
    assert_eq!(
        place.run("advise dag --log EventLog.xz 1161.0").code,
        Some(10)
    );
    tidied(&place);
}

#[test]
fn jobs_receive_only_the_inputs_they_need() {
    let place = place(", cleanup: false");
    place.stdout("dag small.yaml");
    let given = nodes::run_and_list(&place, "out").1;
    let of = |node: &str| given[node].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        of("best"),
        [
            "config.yaml",
            "events/manifest.json",
            "rows/parts.json",
            "rows/trials-0001.jsonl",
            "rows/trials-0002.jsonl"
        ]
    );
    let best = place.json("sweep best out --json")["trial"]
        .as_u64()
        .expect("a trial");
    let evaluate = of("evaluate");
    let models: Vec<_> = evaluate
        .iter()
        .filter(|name| name.contains("/trials/"))
        .collect();
    assert!(
        models.len() == 6
            && models
                .iter()
                .all(|name| name.contains(&format!("trial-000{best}/"))),
        "{evaluate:?}"
    );
    let has = |part: &str| evaluate.iter().any(|name| name.contains(part));
    assert!(!has("checkpoint"), "{evaluate:?}");
    assert!(
        has("/train-00000") && has("/test-00000"),
        "the best is scored on the one, and fitted again on all: {evaluate:?}"
    );
    let trials = of("trials-0001");
    assert!(
        trials
            .iter()
            .all(|name| !name.starts_with("trials/") && !name.ends_with(".xz")),
        "{trials:?}"
    );
}

/// Like [`place`], but the jobs fetch their shared inputs from the directory `origin`, through
/// `address`.
fn sharing_place(address: &str) -> Place {
    let place = Place::with_run();
    fs_err::create_dir(place.path("origin")).expect("made");
    let shared = shared_inputs(&place, address);
    place.write("small.yaml", small(SMALL, &shared));
    place
}

fn shared_inputs(place: &Place, address: &str) -> String {
    let origin = place.path("origin");
    let address = address.replace("ORIGIN", &origin.to_string_lossy());
    format!(
        ", shared_inputs: {{directory: {}, address: '{address}'}}",
        origin.display()
    )
}

/// Returns the name of the directory in `origin` that has the archives of the DAG in `out`.
fn shared_directory(place: &Place, out: &str) -> String {
    let location =
        fs_err::read_to_string(place.path(out).join("condor/shared_inputs")).expect("read");
    let name = location.trim_end().rsplit('/').next().expect("a name");
    name.to_owned()
}

#[test]
fn shared_inputs_are_fetched_from_their_address() {
    let place = sharing_place("osdf:///ospool/ap40/data/me/");
    place.stdout("dag small.yaml");
    let name = shared_directory(&place, "out");
    let token = name.strip_prefix("poolcast-").expect("the sweep's name");
    assert_eq!(token.len(), 32, "{token}");
    let text = file(&place, "pipeline.dag").replace(token, "TOKEN");
    insta::assert_snapshot!("pipeline-shared", text);
    assert_eq!(
        file(&place, "condor/shared_inputs").replace(token, "TOKEN"),
        "/home/me/origin/poolcast-TOKEN\n"
    );
    assert!(place.files("origin").is_empty(), "jobs come first");
    // A second call changes nothing. Another DAG gets another directory.
    let before = place.files("out");
    place.stdout("dag small.yaml");
    assert!(place.files("out") == before);
    place.stdout("dag small.yaml -o other");
    assert_ne!(shared_directory(&place, "other"), name);
}

#[test]
fn a_place_that_jobs_cannot_fetch_from_is_refused() {
    let place = sharing_place("");
    let refused = |shared: &str| {
        let shared = shared.replace("ORIGIN", &place.path("origin").to_string_lossy());
        place.write(
            "small.yaml",
            small(SMALL, &format!(", shared_inputs: {{{shared}}}")),
        );
        let text = place.run("dag small.yaml").to_string();
        assert!(!place.path("out").exists(), "{text}");
        text.replace(&*place.path("").to_string_lossy(), "/home/me/")
    };
    insta::assert_snapshot!(
        [
            refused("directory: /ospool/ap40/data/nobody"),
            refused("directory: origin"),
            refused("directory: ORIGIN"),
            refused("directory: ORIGIN, address: 'ftp://host/x'"),
            refused("directory: ORIGIN, address: 'osdf:///a b'"),
            refused("address: 'osdf:///ospool/x'"),
        ]
        .join("\n"), @"
    exit 2
    error: cannot use `small.yaml`
      caused by: `dag.shared_inputs.directory`: there is no directory `/ospool/ap40/data/nobody`

    hint: give an absolute path, such as /ospool/ap40/data/USER

    exit 2
    error: cannot use `small.yaml`
      caused by: `dag.shared_inputs.directory`: there is no directory `origin`

    hint: give an absolute path, such as /ospool/ap40/data/USER

    exit 2
    error: cannot use `small.yaml`
      caused by: `dag.shared_inputs` has no address for `/home/me/origin`

    hint: add `address`, such as `address: osdf:///NAMESPACE/PATH`; only the addresses of directories below /ospool/ and /staging/ are known

    exit 2
    error: cannot use `small.yaml`
      caused by: `dag.shared_inputs.address`: jobs cannot fetch from `ftp://host/x`

    hint: begin it with osdf:///, pelican://, https://, http:// or file:///

    exit 2
    error: cannot use `small.yaml`
      caused by: the address `osdf:///a b` has a character with a special meaning in a DAG or a submit file

    hint: use letters, digits and `/._-+=:@~`; for a file elsewhere, make a symbolic link with such a name

    exit 2
    error: cannot use `small.yaml`
      caused by: `dag.shared_inputs` has an address but no directory

    hint: name the directory on this access point that jobs find at that address
    ");
}

#[test]
fn dag_with_shared_inputs_produces_the_same_bytes_as_a_local_run() {
    // Each training exits with a checkpoint almost at once, and is then resumed in a directory
    // where its inputs are already unpacked.
    let place = sharing_place("file://ORIGIN");
    let shared = shared_inputs(&place, "file://ORIGIN");
    let more = format!("{shared}, submit: {{trials: {{minutes: 0.001}}}}");
    place.write("small.yaml", small(&sweep_of_few_steps(), &more));
    place.stdout("dag small.yaml -o dag");
    // An earlier packing was interrupted.
    let shared = place.path("origin").join(shared_directory(&place, "dag"));
    fs_err::create_dir(&shared).expect("made");
    fs_err::write(shared.join("events.tar.new"), "half").expect("written");
    let (code, given) = nodes::run_and_list(&place, "dag");
    assert_eq!(
        code,
        0,
        "{}",
        fs_err::read_to_string(place.path("dag/pipeline.report")).expect("read")
    );
    assert_eq!(
        given["tensors-j5-m4-t10-uniform-events"],
        ["events.tar", "tensors/j5-m4-t10-uniform-events.yaml"]
    );
    assert_eq!(
        given["trials-0001"],
        [
            "config.yaml",
            "events/manifest.json",
            "tensors-j5-m4-t10-uniform-events.tar"
        ]
    );
    place.stdout("run small.yaml -o here");
    assert!(
        trials(&place, "dag/poolcast") == trials(&place, "here"),
        "other trials"
    );
    assert_eq!(rows(&place, "dag/poolcast"), rows(&place, "here"));
    assert!(!shared.exists(), "nothing is left where jobs fetched it");
    let checkpoint = |name: &String| name.contains("checkpoint");
    assert!(
        !place.files("dag/poolcast/trials").keys().any(checkpoint),
        "a finished trial has no checkpoint"
    );
}

#[test]
fn shared_table_is_fetched_and_kept_until_cleanup() {
    let place = crate::pipelines::place(&[], "");
    fs_err::create_dir(place.path("origin")).expect("made");
    let table = fs_err::read_to_string(place.path("table.yaml")).expect("read");
    let shared = shared_inputs(&place, "file://ORIGIN");
    place.write(
        "dag.yaml",
        format!("{table}dag: {{image: {IMAGE}, trials_per_job: 20, cleanup: false{shared}}}\n"),
    );
    place.stdout("dag dag.yaml -o dag");
    // The second run, as after a rescue, accepts the archives that the first has packed.
    nodes::run(&place, "dag");
    let (code, given) = nodes::run_and_list(&place, "dag");
    assert_eq!(code, 0);
    let from_table = |name: &&String| name.starts_with("table");
    let tables: Vec<&String> = given["trials-0001"].iter().filter(from_table).collect();
    assert_eq!(tables, ["table.tar"]);
    place.stdout("sweep run sweep");
    assert_eq!(rows(&place, "dag"), rows(&place, "sweep"));
    let shared = place.path("origin").join(shared_directory(&place, "dag"));
    let archives = place::files(&shared).into_keys().collect::<Vec<_>>();
    assert_eq!(archives, ["table.tar"]);

    place.write(
        "dag/pipeline.status",
        "[\n  Type = \"DagStatus\";\n  DagStatus = 5; /* \"STATUS_DONE\" */\n]\n",
    );
    let said = place.stdout("sweep cleanup dag --dry-run");
    let removed = format!("{} is removed\n", shared.display());
    assert!(said.starts_with(&removed) && shared.exists(), "{said}");
    place.stdout("sweep cleanup dag");
    assert!(!shared.exists());
    assert_eq!(
        place.stdout("sweep cleanup dag"),
        "everything is in dag/tables\n"
    );
}

#[test]
fn sharing_fails_with_a_reason_if_the_archive_differs() {
    let place = sharing_place("file://ORIGIN");
    place.write("small.yaml", one(&shared_inputs(&place, "file://ORIGIN")));
    place.stdout("dag small.yaml");
    let shared = place.path("origin").join(shared_directory(&place, "out"));
    fs_err::create_dir(&shared).expect("made");
    fs_err::write(shared.join("events.tar"), "another").expect("written");
    assert_eq!(nodes::run(&place, "out"), 1);
    let report = file(&place, "pipeline.report");
    assert!(
        report.contains("logs/share.err:error: cannot share events: ")
            && report.contains(" has other files, and caches keep them"),
        "{report}"
    );
    assert!(shared.join("events.tar").exists(), "a rescue needs it");
}

#[test]
fn pipelines_over_tables_give_the_same_rows_in_a_dag() {
    let place = crate::pipelines::place(&[], "");
    let table = fs_err::read_to_string(place.path("table.yaml")).expect("read");
    place.write(
        "dag.yaml",
        format!("{table}dag: {{image: {IMAGE}, trials_per_job: 5}}\n"),
    );
    assert_eq!(
        place.stdout("dag dag.yaml -o dag"),
        "20 trials in 5 jobs: dag/pipeline.dag\n"
    );
    assert_eq!(nodes::run(&place, "dag"), 0);
    place.stdout("sweep run sweep");
    assert_eq!(rows(&place, "dag/tables"), rows(&place, "sweep"));
    assert!(
        trials(&place, "dag/tables") == trials(&place, "sweep"),
        "other models or predictions"
    );
    let kept = |dir: &str| place.files(dir)["selection.json"].clone();
    assert!(kept("dag/tables") == kept("sweep"), "another choice");
    assert_eq!(
        place.stdout("sweep best dag").lines().next(),
        place.stdout("sweep best sweep").lines().next()
    );
    // After the DAG is done, cleanup keeps only the models of the best trials.
    place.write(
        "dag/pipeline.status",
        "[\n  Type = \"DagStatus\";\n  DagStatus = 5; /* \"STATUS_DONE\" */\n]\n",
    );
    place.stdout("sweep cleanup dag --keep 1");
    let models = trials(&place, "dag/tables")
        .into_keys()
        .filter(|name| name.ends_with("pipeline.json"));
    assert_eq!(models.count(), 2, "one of each split");
}

#[test]
fn dag_runs_pipelines_beside_the_network_like_a_local_run() {
    let place = place("");
    let both = SMALL.replace("runs: 3", "runs: 2")
        + "pipelines: {lasso: {runs: 2, parameters: {C: {min: 0.1, max: 1.0}}}}\n";
    place.write("small.yaml", small(&both, ""));
    place.stdout("dag small.yaml -o dag");
    assert_eq!(nodes::run(&place, "dag"), 0);
    place.stdout("run small.yaml -o here");
    assert_eq!(rows(&place, "dag/poolcast"), rows(&place, "here"));
    assert!(
        trials(&place, "dag/poolcast") == trials(&place, "here"),
        "other trials"
    );
    for name in ["best.json", "bestmodel.info"] {
        assert!(
            place.files("dag/poolcast")[name] == place.files("here")[name],
            "another {name}"
        );
    }
    assert!(place.files("dag/poolcast").contains_key("selection.json"));
}

#[test]
fn retried_job_trains_only_the_missing_trials() {
    let place = place(", cleanup: false");
    place.stdout("dag small.yaml");
    assert_eq!(nodes::run(&place, "out"), 0);
    let trained = |place: &Place| {
        let mut command = place.command("sweep trials out 1-3 -o mine");
        let outcome = Outcome::of(
            command
                .env("POOLCAST_LOG", "info")
                .output()
                .expect("it starts"),
        );
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let trial = |line: &str| {
            Some(
                line.split_once("trial ")?
                    .1
                    .split_once(": epoch   1 ")?
                    .0
                    .to_owned(),
            )
        };
        outcome
            .stderr
            .lines()
            .filter_map(trial)
            .collect::<Vec<String>>()
    };
    assert_eq!(trained(&place), ["1", "2", "3"]);
    let rows = file_rows(&place);
    assert_eq!(trained(&place), [""; 0], "all have a row");
    // An earlier attempt died in trial 1 and wrote no row.
    place.write("mine/rows.jsonl", "");
    place.write("mine/begun.json", "[1]");
    assert_eq!(trained(&place), ["2", "3", "1"]);
    assert_eq!(file_rows(&place), rows);
}

/// Returns the trial numbers and metrics of the rows in the part `mine`.
fn file_rows(place: &Place) -> Vec<(u64, serde_json::Value)> {
    let text = fs_err::read_to_string(place.path("mine/rows.jsonl")).expect("read");
    let row = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        (
            row["trial"].as_u64().expect("a number"),
            row["metrics"].clone(),
        )
    };
    text.lines().map(row).collect()
}

/// Cleans up the rest of the directory `dag`, whose nodes are done. The last node has already begun
/// the cleanup.
fn tidied(place: &Place) {
    insta::assert_snapshot!(place.run("sweep cleanup dag"), @"
    exit 2
    error: the DAG in `dag` is not done

    hint: `poolcast sweep status DIR` shows its progress; run `condor_submit_dag pipeline.dag` in it to continue from its rescue file
    ");
    place.write("dag/mine", "x");
    place.write("dag/pipeline.dag.nodes.log", "");
    place.write(
        "dag/pipeline.status",
        "[\n  Type = \"DagStatus\";\n  DagStatus = 5; /* \"STATUS_DONE\" */\n]\n",
    );
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
    assert!(
        place.files("dag") == before.into_iter().map(moved).collect(),
        "everything is there, and nothing else"
    );
    assert_eq!(
        place.stdout("sweep cleanup dag"),
        "everything is in dag/poolcast\n"
    );
    assert_eq!(
        place
            .run("advise dag/poolcast --log EventLog.xz 1161.0")
            .code,
        Some(10)
    );
    insta::assert_snapshot!(place.run("dag small.yaml -o dag"), @"
    exit 2
    error: `dag/poolcast` contains a finished sweep of this name

    hint: give this one another `wandb.sweep.name`, or name another directory
    ");
    // With the results of a second sweep beside the first, the user must name one.
    fs_err::create_dir_all(place.path("dag/second/condor")).expect("made");
    place.write("dag/second/condor/node.sh", "x");
    place.write("dag/second/config.yaml", "x");
    insta::assert_snapshot!(place.run("sweep best dag"), @"
    exit 2
    error: `dag` contains several sweeps

    hint: name one of them: `dag/poolcast`, `dag/second`
    ");
}

/// Returns a configuration with one trial of one epoch.
fn one(more: &str) -> String {
    small(
        &SMALL
            .replace("runs: 3", "runs: 1")
            .replace("epochs: 3", "epochs: 1"),
        more,
    )
}

#[test]
fn a_dag_that_is_to_be_left_as_it_is() {
    let place = place("");
    place.write("small.yaml", one(", cleanup: false"));
    place.stdout("dag small.yaml");
    assert_eq!(nodes::run(&place, "out"), 0);
    assert!(place.path("out/bestmodel.info").exists() && !place.path("out/poolcast").exists());
    place.write(
        "out/pipeline.status",
        "[\n  Type = \"DagStatus\";\n  DagStatus = 5; /* \"STATUS_DONE\" */\n]\n",
    );
    insta::assert_snapshot!(place.stdout("sweep cleanup out"), @"
    out/pipeline.report -> out/poolcast/pipeline.report
    out/best.json -> out/poolcast/best.json
    out/bestmodel.info -> out/poolcast/bestmodel.info
    out/results.csv -> out/poolcast/results.csv
    out/results.jsonl -> out/poolcast/results.jsonl
    out/report.html -> out/poolcast/report.html
    out/chosen.files -> out/poolcast/chosen.files
    out/rows -> out/poolcast/rows
    out/logs -> out/poolcast/logs
    out/condor -> out/poolcast/condor
    out/events -> out/poolcast/events
    out/tensors -> out/poolcast/tensors
    out/trials -> out/poolcast/trials
    out/manifest.json -> out/poolcast/manifest.json
    out/config.yaml -> out/poolcast/config.yaml
    out/pipeline.status -> out/poolcast/pipeline.status
    out/pipeline.dag -> out/poolcast/pipeline.dag
    ");
    assert_eq!(
        place.stdout("sweep cleanup out"),
        "everything is in out/poolcast\n"
    );
    assert!(!place.path("out/parts").exists());
    // The result is the directory of a sweep.
    assert_eq!(place.stdout("sweep cleanup out/poolcast --keep 1"), "");
    assert!(
        place
            .stdout("sweep evaluate out")
            .contains("\ntest_roc_auc = ")
    );
}

#[test]
fn the_last_script_tells_trackers_and_never_fails_for_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = place("");
    let server = WandbServer::begin();
    let mlflow = MlflowServer::begin();
    let trackers = format!(
        "wandb: {{enable: true, base_url: \"{}\"}}\nmlflow: {{enable: true, tracking_uri: \"{}\"}}\n",
        server.base_url, mlflow.base_url
    );
    place.write("small.yaml", one("") + &trackers);
    // DAGMan does not pass this key to the script.
    let mut command = place.command("dag small.yaml");
    command
        .env("WANDB_API_KEY", "canary")
        .env("HOME", place.path(""));
    let written = Outcome::of(command.output().expect("it starts"));
    assert!(
        written
            .stderr
            .contains("cannot send to W&B: there is no key for W&B at 127.0.0.1:"),
        "{written}"
    );
    let host = server.base_url.trim_start_matches("http://").to_owned();
    let program = env!("CARGO_BIN_EXE_poolcast");
    let report = |place: &Place| {
        let report = file(place, "pipeline.report");
        let (_, told) = report.split_once("config.yaml\n").expect("it is tidied");
        told.replace(&host, "HOST")
            .replace(program, "PROGRAM")
            .replace(mlflow.base_url.trim_start_matches("http://"), "MLFLOW")
    };

    // Without a key for W&B, the script sends only to MLflow.
    assert_eq!(nodes::run(&place, "out"), 0);
    insta::assert_snapshot!(report(&place), @"
    tracking: 1 run with 1 epoch and 2 files sent to http://MLFLOW, poolcast: 1 ended, 0 running
    tracking: error: there is no key for W&B at HOST
    tracking: hint: write `machine HOST login user password KEY` into ~/.netrc
    tracking: the rest can be sent by: PROGRAM track /home/me/out --to wandb,mlflow
    ");
    assert_eq!(mlflow.runs().len(), 2, "a trial and its sweep");
    assert!(server.requests().is_empty());

    place.write(
        ".netrc",
        format!("machine {host} login user password canary\n"),
    );
    let mode = std::fs::Permissions::from_mode(0o600);
    fs_err::set_permissions(place.path(".netrc"), mode).expect("set");
    place.stdout("dag small.yaml -o again");
    fs_err::remove_dir_all(place.path("out")).expect("removed");
    fs_err::rename(place.path("again"), place.path("out")).expect("moved");
    assert_eq!(nodes::run(&place, "out"), 0);
    insta::assert_snapshot!(report(&place), @"
    tracking: 1 run with 1 epoch and 2 files sent to http://HOST/testuser/poolcast: 1 ended, 0 running
    tracking: 0 runs with 0 epochs and 2 files sent to http://MLFLOW, poolcast: 1 ended, 0 running
    ");
    assert_eq!(server.state().runs.len(), 1);
    assert!(place.path("out/poolcast/tracked-wandb.json").exists());
}

#[test]
fn finished_dag_replaces_no_existing_files() {
    let place = place("");
    place.write("small.yaml", one(""));
    place.stdout("dag small.yaml");
    fs_err::create_dir(place.path("out/poolcast")).expect("made");
    place.write("out/poolcast/logs", "mine");
    assert_eq!(nodes::run(&place, "out"), 0);
    let report = file(&place, "pipeline.report");
    assert!(
        report.ends_with("\nnothing was moved: poolcast/logs is there already\n"),
        "{report}"
    );
    assert!(place.path("out/bestmodel.info").exists());
}

#[test]
fn a_trial_that_fails_is_recorded_and_the_best_of_the_others_is_chosen() {
    let place = place("");
    // At this learning rate the weights jump about. With the weight decay as well, they grow ten
    // thousandfold per step. Two trials share a job.
    let rates = SMALL.replace(
        "{distribution: uniform, min: 0.001, max: 0.02}",
        "10, weight_decay: {values: [1000, 0]}",
    );
    let rates = rates
        .replace("{values: [lstm, gru, mlp]}", "lstm")
        .replace("{values: [4, 8]}", "4");
    place.write(
        "small.yaml",
        small(&(rates + "wandb: {sweep: {method: grid}}\n"), ""),
    );
    assert_eq!(
        place.stdout("dag small.yaml"),
        "4 trials on 2 sets of tensors in 2 jobs: out/pipeline.dag\n"
    );
    // Two trials need these tensors.
    place.write("out/tensors/j3-m4-t10-uniform-events.yaml", "epoch: 3\n");
    assert_eq!(nodes::run(&place, "out"), 0);
    insta::assert_snapshot!(file(&place, "pipeline.report").split("trial = ").next().expect("a head"), @"
    DAG status 0, 0 nodes failed
    tensors-j3-m4-t10-uniform-events failed: exit code 2: `tensors/j3-m4-t10-uniform-events.yaml` has an unknown key `epoch`
    trials-0001 failed: tensors-j3-m4-t10-uniform-events: exit code 2: `tensors/j3-m4-t10-uniform-events.yaml` has an unknown key `epoch`
    ");
    insta::assert_snapshot!(place.stdout("sweep status out"), @"
    DAGMan has not started
    4 trials: 1 done, 3 failed, 0 remaining
      trial 1 failed: tensors-j3-m4-t10-uniform-events: exit code 2: `tensors/j3-m4-t10-uniform-events.yaml` has an unknown key `epoch`
      trial 2 failed: tensors-j3-m4-t10-uniform-events: exit code 2: `tensors/j3-m4-t10-uniform-events.yaml` has an unknown key `epoch`
      trial 3 failed: the loss is not finite in epoch 2; a smaller learning rate may help
    best: trial 4 with judged_roc_auc 0.2759
    everything is in out/poolcast
    ");
    let left = place.files("out/poolcast");
    assert!(
        !left.contains_key("trials/trial-0002/metrics.json")
            && !left.contains_key("logs/trials-0001.err")
    );
}

#[test]
fn a_dag_without_a_trial_that_works_has_failed() {
    let place = place("");
    place.write("small.yaml", one(""));
    place.stdout("dag small.yaml");
    place.write("out/tensors/j5-m4-t10-uniform-events.yaml", "epoch: 3\n");
    assert_eq!(nodes::run(&place, "out"), 1);
    insta::assert_snapshot!(file(&place, "pipeline.report"), @"
    DAG status 2, 2 nodes failed
    tensors-j5-m4-t10-uniform-events failed: exit code 2: `tensors/j5-m4-t10-uniform-events.yaml` has an unknown key `epoch`
    trials-0001 failed: tensors-j5-m4-t10-uniform-events: exit code 2: `tensors/j5-m4-t10-uniform-events.yaml` has an unknown key `epoch`
    logs/best.err:error: none of 1 trial finished; trial 1: tensors-j5-m4-t10-uniform-events: exit code 2: `tensors/j5-m4-t10-uniform-events.yaml` has an unknown key `epoch`
    ");
    // `report` writes a page even without any model.
    place.stdout("report out -o page.html");
    let page = fs_err::read_to_string(place.path("page.html")).expect("read");
    for part in ["held", "best", "evaluation", "sweep", "data", "provenance"] {
        assert!(page.contains(&format!("<section id=\"{part}\"")), "{part}");
    }
    let drawn = page
        .split("<script>")
        .next()
        .expect("what stands before it");
    assert!(!drawn.contains("NaN"));
    let why = "exit code 2: `tensors/j5-m4-t10-uniform-events.yaml` has an unknown key `epoch`";
    assert!(drawn.contains("Trials without a model") && drawn.contains(why));
    assert!(drawn.contains("No trial has a model"), "nothing is scored");
}

/// An event of DAGMan's own job.
fn dagman_event(number: u16, text: &str) -> String {
    format!("{number:03} (14.000.000) 2026-11-22 01:00:{number:02} {text}\n...\n")
}

#[test]
fn removed_dag_is_over() {
    let place = place("");
    place.stdout("dag small.yaml");
    let submitted = dagman_event(0, "Job submitted from host: <10.0.0.1:9618>");
    let removed = dagman_event(9, "Job was aborted.\n\tvia condor_rm (by user me)");
    let log = "out/pipeline.dag.dagman.log";
    place.write(log, &submitted);
    assert!(
        place
            .stdout("sweep status out")
            .starts_with("DAGMan has not started")
    );
    place.write(log, format!("{submitted}{removed}"));
    let idle = place.stdout("sweep status out");
    assert!(
        idle.starts_with("the DAG was removed from the queue; submit it again"),
        "{idle}"
    );

    let dag = "[\n  Type = \"DagStatus\";\n  Timestamp = 1399674138; /* x */\n  DagStatus = 3;\n  JobProcsHeld = 1;\n]\n";
    let node = "[\n  Type = \"NodeStatus\";\n  Node = \"trials-0001\";\n  NodeStatus = 3;\n  JobProcsHeld = 1;\n]\n";
    place.write("out/pipeline.status", format!("{dag}{node}"));
    insta::assert_snapshot!(place.stdout("sweep status out"), @"
    the DAG was removed from the queue; submit it again to continue from its rescue file
            done  running  waiting  failed
    trials     0        0        1       0
    3 trials: 0 done, 0 failed, 3 remaining
    ");
    // Watching a removed DAG ends.
    place.stdout("report out --watch");

    place.write(log, format!("{submitted}{removed}{submitted}"));
    assert!(
        place
            .stdout("sweep status out")
            .starts_with("the DAG is running, and waits for held jobs: 1\n")
    );
}

#[test]
fn dag_that_failed_before_its_trials_reports_why_and_ends_watchers() {
    let place = place("");
    place.stdout("dag small.yaml");
    let node = "[\n  Type = \"NodeStatus\";\n  Node = \"parse\";\n  NodeStatus = 6;\n]\n";
    let dag = "[\n  Type = \"DagStatus\";\n  DagStatus = 6;\n]\n";
    place.write("out/pipeline.status", format!("{dag}{node}"));
    place.write(
        "out/logs/parse.err",
        "error: cannot parse `<img src=x>\u{202e}`\n",
    );

    // Every command that waits for the trials ends.
    place.stdout("report out --watch");
    let page = read_page(&place, "out");
    assert!(page.contains("The DAG has ended, and none of its trials has"));
    assert!(page.contains("Jobs of the DAG that failed"));
    assert!(
        page.contains("cannot parse `&lt;img src=x&gt;"),
        "the reason"
    );
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    let server = WandbServer::begin();
    let mut watching = place.command("track out --to wandb --watch");
    watching
        .env("WANDB_BASE_URL", &server.base_url)
        .env("WANDB_API_KEY", "0123456789012345678901234567890123456789")
        .env("NO_PROXY", "127.0.0.1");
    let watched = Outcome::of(watching.output().expect("it starts"));
    assert_eq!(watched.code, Some(0), "{watched}");

    place.stdout("report out --anonymous -o nobody.html");
    let nobody = fs_err::read_to_string(place.path("nobody.html")).expect("read");
    assert!(nobody.contains("Jobs of the DAG that failed") && !nobody.contains("cannot parse"));

    place.write("out/rows/trials-0001.jsonl", "{\"trial\": 1");
    for args in ["report out", "track out --to wandb --dry-run"] {
        let damaged = place.run(args);
        assert_eq!(damaged.code, Some(2), "{args}: {damaged}");
        assert!(damaged.stderr.contains("trials-0001.jsonl"), "{damaged}");
    }
}

#[test]
fn per_epoch_jobs_give_the_same_model_as_one_training() {
    let place = place("");
    let sweep = SMALL
        .replace("runs: 3", "runs: 1\nearlystop_threshold: 1")
        .replace("epochs: 3", "epochs: 5");
    // At a learning rate of 0 nothing improves, so early stopping ends the training after two
    // epochs.
    let sweep = sweep.replace("{distribution: uniform, min: 0.001, max: 0.02}", "0");
    place.write("small.yaml", small(&sweep, ", per_epoch: true"));
    place.stdout("dag small.yaml -o dag");
    assert_eq!(nodes::run(&place, "dag"), 0);
    place.stdout("run small.yaml -o here");
    assert!(
        trials(&place, "dag/poolcast") == trials(&place, "here"),
        "another trial"
    );
    let logs: Vec<String> = place
        .files("dag/poolcast/logs")
        .into_keys()
        .filter(|name| name.starts_with("trials"))
        .collect();
    assert_eq!(logs, ["trials-0001-0001.err", "trials-0001-0002.err"]);
}

#[test]
fn node_script_records_final_failures_and_rejects_unexpected_files() {
    let place = place("");
    place.stdout("dag small.yaml");
    let script = |words: &[&str]| {
        let status = std::process::Command::new("/bin/sh")
            .args(words)
            .current_dir(place.path("out"))
            .status();
        status.expect("it starts").code()
    };
    let ended = |code: &str, retry: &str| {
        let (own, part) = ("rows/trials-0001.failed", "parts/trials-0001");
        let code = script(&[
            "condor/node.sh",
            "ended",
            own,
            "logs/x.err",
            "trials-0001",
            code,
            retry,
            "2",
            part,
        ]);
        (
            code,
            fs_err::read_to_string(place.path("out").join(own)).ok(),
        )
    };
    place.write(
        "out/logs/x.err",
        "error: cannot write `a`\n  caused by: disk full\n",
    );
    assert_eq!(ended("1", "0"), (Some(1), None), "another attempt may help");
    assert_eq!(
        ended("-1001", "2"),
        (Some(1), None),
        "it was never submitted"
    );
    let record = |text: &str| (Some(0), Some(format!("trials-0001: {text}\n")));
    // The results that the job finished before it died are kept.
    fs_err::create_dir_all(place.path("out/parts/trials-0001/trials/trial-0001")).expect("made");
    place.write("out/parts/trials-0001/trials/trial-0001/metrics.json", "{}");
    place.write("out/parts/trials-0001/rows.jsonl", "");
    assert_eq!(ended("1", "2"), record("exit code 1: cannot write `a`"));
    assert!(
        place.path("out/trials/trial-0001/metrics.json").exists()
            && place.path("out/rows/trials-0001.jsonl").exists()
    );
    assert_eq!(
        ended("-9", "2"),
        record("killed by signal 9: cannot write `a`")
    );
    assert_eq!(
        ended("-1002", "2"),
        record("removed from the queue: cannot write `a`")
    );
    assert_eq!(
        ended("2", "0"),
        record("exit code 2: cannot write `a`"),
        "it will never work"
    );
    assert_eq!(ended("0", "1"), (Some(0), None), "it works after all");
    // The output of a job may have results, but no scripts or control files.
    for name in [
        "condor/node.sh",
        "config.yaml",
        ".profile",
        "rows/parts.json",
    ] {
        fs_err::create_dir(place.path("out/best")).expect("made");
        place.write("out/best/best.json", "{}");
        let taken = place.path("out/best").join(name);
        fs_err::create_dir_all(taken.parent().expect("a parent")).expect("made");
        fs_err::write(&taken, "x").expect("written");
        assert_eq!(
            script(&["condor/node.sh", "take", "0", "best"]),
            Some(1),
            "{name}"
        );
        fs_err::remove_dir_all(place.path("out/best")).expect("removed");
    }
    assert!(!place.path("out/best.json").exists());
    // A job lists the files that its evaluation needs. Names that lead elsewhere or need quotes are
    // rejected.
    for name in [
        "../secret",
        "/etc/passwd",
        "trials/a b",
        "-t",
        ".ssh/id",
        "trials/$(id)",
    ] {
        place.write("out/chosen.files", format!("{name}\n"));
        assert_eq!(script(&["condor/node.sh", "chosen"]), Some(1), "{name}");
    }
}
