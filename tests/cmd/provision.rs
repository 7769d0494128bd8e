//! Tests of `poolcast provision` on exports of a real cluster's accounting, and on broken exports.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::place::{Place, begin_directory, call_in, files};

/// A test directory with ten days of a real cluster as `jobs.txt.xz`.
pub(crate) fn place_with_jobs() -> Place {
    let place = Place::new();
    link_jobs(&place.path(""));
    place
}

/// Links the accounting of that cluster into `dir`.
pub(crate) fn link_jobs(dir: &Path) {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/provision/jobs.txt.xz");
    symlink(jobs, dir.join("jobs.txt.xz")).expect("linked");
}

const TRACE: &str = "provision trace jobs.txt.xz -o trace --tz America/Chicago";

#[test]
fn a_trace_tells_of_its_cluster() {
    let place = place_with_jobs();
    insta::assert_snapshot!(place.run(&format!("{TRACE} --stats")));
    let again = place.run(TRACE);
    assert!(
        again.stderr.contains("nothing new: `trace` already holds"),
        "{again}"
    );

    let document = place.json(&format!("{TRACE} --stats --json"));
    assert_eq!(document["jobs"], 2402);
    assert_eq!(document["statistics"]["over_limit"], 0);
    assert_eq!(document["sources"][0]["form"], "sacct_text");
}

#[test]
fn trace_of_the_same_export_has_the_same_bytes() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    let first = files(&place.path("trace"));
    place.stdout(&format!("--threads 1 {TRACE} --overwrite"));
    assert_eq!(files(&place.path("trace")), first);
}

#[test]
fn trace_contains_no_names() {
    let place = Place::new();
    let head = "JobID|JobName|User|Submit|Start|End|TimelimitRaw|NNodes\n";
    let row = "1|hidden-name|hidden-user|1000|1010|1020|60|1\n";
    place.write("jobs.txt", format!("{head}{row}"));
    place.stdout("provision trace jobs.txt -o trace");
    for (name, bytes) in files(&place.path("trace")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("hidden"), "{name}");
    }
}

#[test]
fn what_is_left_out_is_said() {
    let place = Place::new();
    place.write(
        "jobs.txt",
        "JobID|Submit|Start|End|TimelimitRaw|NNodes\n1|1000|1010|1020|60|1\n1.batch|1010|1010|1020||1\nx|1000|1010|1020|60|1\n\
         2|1000|Unknown|Unknown|UNLIMITED|1\n1|1000|1010|1020|60|1\n3|1000|1010|10",
    );
    insta::assert_snapshot!(place.run("provision trace jobs.txt -o trace"), @"
    exit 0
    jobs.txt: 5 rows (sacct with bars)
      1 row rejected, file ends within the row: the first is line 7
      1 row rejected, invalid job id: the first is line 4
      1 row of job steps ignored
    2 jobs from 1970-01-01 00:16:40 UTC to 1970-01-01 00:17:00 UTC; the time zone is UTC
      1 ran
      1 still waiting
      1 without a time limit of their own
    1 row ignored, because another row describes the same run
    ");
    place.write(
        "broken.txt",
        "JobID|Submit|Start|End|TimelimitRaw|NNodes\nx|1000|1010|1020|60|1\n",
    );
    insta::assert_snapshot!(place.run("provision trace broken.txt -o other"), @"
    exit 2
    error: no row of the trace is usable; most frequent reason: invalid job id, first at line 2

    hint: export with `sacct -a -D -X -P -S 2023-01-01 -E now -o JobID,User,Submit,Eligible,Start,End,Elapsed,Timelimit,NNodes,State`
    ");
    place.write(
        "local.txt",
        "JobID|Submit|Start|End|TimelimitRaw|NNodes\n1|2023-01-01T00:00:00|None|None|60|1\n",
    );
    insta::assert_snapshot!(place.run("provision trace local.txt -o other"), @"
    exit 2
    error: cannot read the trace `local.txt`
      caused by: the stamp `2023-01-01T00:00:00` is local, and its time zone is unknown

    hint: give the cluster's zone, such as `--tz America/Chicago`
    ");
    insta::assert_snapshot!(place.run("provision trace absent -o other"), @"
    exit 2
    error: failed to open file `absent`: No such file or directory (os error 2)
    ");
    assert!(!place.path("other").exists());
}

#[test]
fn existing_trace_is_replaced_only_with_overwrite() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    let other = place.run("provision trace jobs.txt.xz -o trace --tz UTC");
    assert_eq!(other.code, Some(2), "{other}");
    assert!(other.stderr.contains("already exists"), "{other}");
    place.stdout("provision trace jobs.txt.xz -o trace --tz UTC --overwrite");
}

#[test]
fn a_trace_is_simulated_beside_what_was_logged() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    insta::assert_snapshot!(place.run("provision replay trace"));
    insta::assert_snapshot!(
        place.run("provision replay trace --scheduler published --nodes 76 --since 2023-03-01")
    );

    place.write(
        "dated.yaml",
        "provision: {nodes: {2023-01-01: 40, 2023-03-01T12:00: 76}, max_jobs_per_user: 0}",
    );
    let dated = place.stdout("provision replay trace --config dated.yaml");
    let expected = "nodes: 40 from 2023-02-27, 76 from 2023-03-01; users run any number of jobs\n";
    assert!(dated.starts_with(expected), "{dated}");
    assert!(
        dated.contains("warning: the jobs that ran at the beginning use 30 nodes more"),
        "{dated}"
    );
}

#[test]
fn written_starts_do_not_depend_on_thread_count() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    place.stdout("provision replay trace --starts starts");
    place.stdout("--threads 1 provision replay trace --starts again");
    let starts = fs_err::read_to_string(place.path("starts")).expect("read");
    let again = fs_err::read_to_string(place.path("again")).expect("read");
    assert_eq!(starts, again);
    let lines: Vec<&str> = starts.lines().collect();
    assert_eq!(lines.len(), 1910);
    let fields: Vec<&str> = lines[0].split('\t').collect();
    assert_eq!((fields.len(), fields[1].len()), (3, 19), "{}", lines[0]);
}

#[test]
fn what_cannot_be_simulated_says_so() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    let refusal = |args: &str| {
        let outcome = place.run(&format!("provision replay {args}"));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        outcome.stderr
    };
    insta::assert_snapshot!(refusal("absent"), @"
    error: `absent` holds no trace (no manifest.json)

    hint: make it with `poolcast provision trace FILE... -o TRACE`
    ");
    insta::assert_snapshot!(refusal("trace --since soon"), @"
    error: `--since soon` is not a date

    hint: write `2022-11-10`, or `2022-11-10T12:00`
    ");
    insta::assert_snapshot!(refusal("trace --slurm-config x.json"), @"
    error: `--slurm-config` is for the published scheduler

    hint: add `--scheduler published`; the keys under `provision` configure Slurm
    ");
    insta::assert_snapshot!(refusal("trace --nodes 0"), @"
    error: cannot use the configuration
      caused by: `provision.nodes` must be between 1 and 16777215, got 0

    hint: `poolcast config` explains every key
    ");
    place.write("dates.yaml", "provision: {nodes: {soon: 5}}");
    insta::assert_snapshot!(refusal("trace -c dates.yaml"), @"
    error: cannot use `dates.yaml`
      caused by: `provision.nodes` has `soon`, which is not a date

    hint: write `2022-11-10`, or `2022-11-10T12:00`
    ");

    let manifest = fs_err::read_to_string(place.path("trace/manifest.json")).expect("read");
    let newer = manifest.replace("\"format_version\": 1", "\"format_version\": 2");
    place.write("trace/manifest.json", newer);
    assert!(
        refusal("trace").contains("has trace format version 2, and this program reads version 1")
    );
}

/// Call that validates policies on one window. `small.yaml` sets few draws.
const VALIDATE: &str = "provision validate trace -c small.yaml --start-time 2023-03-02 --end-time 2023-03-03 --interval 24";

#[test]
fn policies_are_compared_on_the_same_windows() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    place.write(
        "small.yaml",
        "provision: {decision_interval: 480, num_probe: 2, draws: 5}",
    );
    // `-q` hides the progress, which appears only on a busy machine.
    insta::assert_snapshot!(place.run(&format!("-q {VALIDATE} -o validation")));
    let written = files(&place.path("validation"));
    assert_eq!(written.len(), 10, "{:?}", written.keys());
    let log = String::from_utf8_lossy(&written["forecast-1/reward.log"]);
    let row = "\n1000000,1000001,-2.8830555555555555,-2.9833333333333334,2023-03-06 13:18:00,0,2023-03-06 13:18:00,2023-03-06 08:17:01\n";
    assert!(log.contains(row), "{log}");

    let again = place.run(&format!("{VALIDATE} -o validation"));
    assert!(
        again
            .stderr
            .contains("nothing new: `validation` already holds"),
        "{again}"
    );
    let other = place.run(&format!("{VALIDATE} -o validation --job-nodes 2"));
    assert_eq!(other.code, Some(2), "{other}");

    place.stdout(&format!("--threads 1 {VALIDATE} -o single"));
    assert_eq!(files(&place.path("single")), written);
}

#[test]
fn cold_start_begins_with_an_empty_cluster() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    place.write(
        "small.yaml",
        "provision: {decision_interval: 1440, num_probe: 2, draws: 1, run_history: 10}",
    );
    let text = place.stdout(&format!("{VALIDATE} --cold-start -o cold"));
    assert!(
        text.contains("each window begins with an empty cluster"),
        "{text}"
    );

    let at_end_h = |options: &str| {
        let document = place.json(&format!("{SAMPLES} --num-probe 2 {options} --json"));
        document["waits"][1]["wait_mean_h"]
            .as_f64()
            .expect("a number")
    };
    let (warm_h, cold_h) = (at_end_h("-o warm"), at_end_h("-o colder --cold-start"));
    assert!(cold_h < warm_h, "{cold_h} {warm_h}");
}

/// Configuration with jobs of eight hours, so that ten days have disjoint windows.
const SHORT: &str = "provision: {workload_len: 1, warmup_len: 0, job_limit: 480, decision_interval: 120, interval: 2, num_probe: 3, draws: 5}";

/// Directory with a trace, and samples of its first days. It is made once for all tests of a process.
static SAMPLED: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = begin_directory("provision");
    link_jobs(&dir);
    fs_err::write(dir.join("short.yaml"), SHORT).expect("written");
    call_in(&dir, TRACE);
    call_in(
        &dir,
        "-q provision samples trace -c short.yaml -o samples --start-time 2023-02-27T16:00 --end-time 2023-03-03",
    );
    dir
});

/// A test directory with a trace, and samples of its first days.
pub(crate) fn place_with_samples() -> Place {
    let place = place_with_jobs();
    place.write("short.yaml", SHORT);
    for name in ["trace", "samples"] {
        place.copy_all(&SAMPLED.join(name), name);
    }
    place
}

/// Models that have learned from the samples, by name, with the options of their training.
const MODELS: [(&str, &str); 4] = [
    ("trees", ""),
    ("lstm", "--model lstm --epochs 1"),
    ("base", "--target reward"),
    ("head", "--model policy_gradient --base base"),
];

/// Directory with these models. It is made once for all tests of a process.
static TRAINED: LazyLock<&Path> = LazyLock::new(|| {
    for (name, options) in MODELS {
        call_in(
            &SAMPLED,
            &format!("-q provision train samples -o {name} {options}"),
        );
    }
    &SAMPLED
});

/// Like [`place_with_samples`], with models that have learned from the samples.
pub(crate) fn place_with_models() -> Place {
    let place = place_with_samples();
    for (name, _) in MODELS {
        place.copy_all(&TRAINED.join(name), name);
    }
    place
}

/// Call that validates models on three windows of later days.
pub(crate) const VALIDATE_MODELS: &str = "provision validate trace -c short.yaml --start-time 2023-03-06 --end-time 2023-03-06T12:00 --interval 4";

#[test]
fn models_are_compared_on_unseen_windows() {
    let place = place_with_models();
    let validate = format!("{VALIDATE_MODELS} --model trees --model lstm");
    let document = place.json(&format!("{validate} -o validation --json"));
    let written = place.files("validation");
    for policy in ["xgb-1", "xgb-3", "lstm-1", "lstm-3"] {
        assert!(
            written.contains_key(&format!("{policy}/reward.log")),
            "{policy}"
        );
    }
    let learned = document["learned"].as_array().expect("a list");
    assert_eq!(learned.len(), 4);
    assert_eq!(learned[1]["policy"], "xgb-3");
    assert_eq!(
        (&learned[1]["base"], &learned[1]["cost_ratio"]),
        (&"reactive".into(), &3.0.into())
    );
    place.stdout(&format!("--threads 1 {validate} -o single"));
    assert_eq!(place.files("single"), written);

    let validate = format!("{VALIDATE_MODELS} --model base --model head -o heads");
    let document = place.json(&format!("{validate} --json"));
    let learned = document["learned"].as_array().expect("a list");
    assert_eq!(
        (&learned[0]["policy"], &learned[0]["base"]),
        (&"xgb".into(), &"reactive".into())
    );
    assert_eq!(learned[1]["policy"], "policy_gradient-xgb");
    assert_eq!(learned[1]["base"], "xgb");
    let cost_h = |number: usize| learned[number]["cost_h"].as_f64().expect("a number");
    let text = place.stdout(&validate);
    let named = text.contains("\npolicy_gradient-xgb does not beat xgb: ");
    assert_eq!(named, cost_h(1) >= cost_h(0), "{text}");
}

#[test]
fn models_that_do_not_fit_are_refused() {
    let place = place_with_models();
    let refusal = |args: &str| {
        let outcome = place.run(&format!(
            "provision validate trace -c short.yaml -o validation {args}"
        ));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        outcome.stderr
    };
    insta::assert_snapshot!(refusal("--model trees --start-time 2023-03-03T12:00"));
    insta::assert_snapshot!(refusal(
        "--model trees --start-time 2023-03-06 --job-nodes 2"
    ));
    insta::assert_snapshot!(refusal(
        "--model trees --model base --start-time 2023-03-06"
    ));
    insta::assert_snapshot!(refusal("--model samples"));

    let manifest = fs_err::read_to_string(place.path("trees/manifest.json")).expect("read");
    let other = manifest.replace("\"waiting_nodes\"", "\"waiting_hosts\"");
    place.write("trees/manifest.json", other);
    let foreign = refusal("--model trees --start-time 2023-03-06");
    assert!(
        foreign.contains("was trained on other features"),
        "{foreign}"
    );
    let newer = manifest.replace("\"format_version\": 1", "\"format_version\": 2");
    place.write("trees/manifest.json", newer);
    let newer = refusal("--model trees --start-time 2023-03-06");
    assert!(newer.contains("format version 2"), "{newer}");
    assert!(!place.path("validation").exists());
}

/// Call that draws samples from two windows.
const SAMPLES: &str =
    "provision samples trace --start-time 2023-03-02 --end-time 2023-03-03 --interval 12";

#[test]
fn samples_are_the_same_whatever_the_threads() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    insta::assert_snapshot!(place.run(&format!("-q {SAMPLES} -o samples")));
    let written = files(&place.path("samples"));
    assert_eq!(written.len(), 2, "{:?}", written.keys());
    place.stdout(&format!("--threads 1 {SAMPLES} -o single"));
    assert_eq!(files(&place.path("single")), written);

    // A repeated call finds the existing samples.
    let again = place.run(&format!("{SAMPLES} -o samples"));
    assert!(
        again
            .stderr
            .contains("nothing new: `samples` already holds these samples"),
        "{again}"
    );
    let other = place.run(&format!("{SAMPLES} -o samples --num-probe 3"));
    assert!(other.stderr.contains("already exists"), "{other}");

    let cold = place.json(&format!(
        "{SAMPLES} -o cold --cold-start --num-probe 3 --json"
    ));
    assert_eq!((&cold["rows"], &cold["probes"]), (&6.into(), &3.into()));
    let last_s = cold["known_until_s"].as_i64().expect("a moment");
    assert!(last_s > cold["last_s"].as_i64().expect("a moment") + 4 * 86_400);
}

#[test]
fn what_cannot_be_sampled_says_so() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    let refusal = |args: &str| {
        let outcome = place.run(&format!("provision samples trace -o samples {args}"));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        outcome.stderr
    };
    let beyond_the_end = refusal("--start-time 2023-03-14");
    assert!(
        beyond_the_end.contains("no window of 5 days fits"),
        "{beyond_the_end}"
    );
    let too_large = refusal("--job-nodes 77");
    assert!(
        too_large.contains("the cluster never has more than 76"),
        "{too_large}"
    );
    insta::assert_snapshot!(refusal("--num-probe 1"), @"
    error: cannot use the configuration
      caused by: `provision.num_probe` must be between 2 and 1000, got 1

    hint: `poolcast config` explains every key
    ");
    place.write(
        "closed.yaml",
        "provision: {nodes: {2023-01-01: 76, 2023-03-04: 1}}",
    );
    let never = "-c closed.yaml --start-time 2023-03-02 --end-time 2023-03-03 --job-nodes 2";
    insta::assert_snapshot!(refusal(never), @"error: there is no window in which both chained jobs start");
    assert!(!place.path("samples").exists());

    // At the beginning, more jobs run than the nodes can hold.
    place.write(
        "few.yaml",
        "provision: {nodes: {2023-01-01: 40, 2023-03-01: 76}}",
    );
    let few = place.stdout(&format!("{SAMPLES} -c few.yaml -o samples --num-probe 2"));
    let warning =
        "warning: the jobs that ran at the beginning use 30 nodes more than the cluster has\n";
    assert!(few.contains(warning), "{few}");
}

#[test]
fn what_cannot_be_validated_says_so() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    let refusal = |args: &str| {
        let outcome = place.run(&format!("provision validate trace -o validation {args}"));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        outcome.stderr
    };
    insta::assert_snapshot!(refusal("--job-nodes 80"), @"
    error: the chained jobs need 80 nodes, and the cluster never has more than 76

    hint: give a smaller number with `--job-nodes`
    ");
    insta::assert_snapshot!(refusal("--start-time 2023-03-08"), @"
    error: no window of 5 days fits between the first start and the last submission

    hint: give an earlier `--start-time`, or a shorter `provision.workload_len`
    ");
    insta::assert_snapshot!(refusal("--start-time 2023-02-01"), @"
    error: the first window begins at 2023-02-01T00:00, before the trace shows which jobs run

    hint: give a later `--start-time`
    ");
    insta::assert_snapshot!(refusal("--start-time 2023-03-02 --end-time 2023-03-01"), @"
    error: the first window begins at 2023-03-02T00:00, which is not before `--end-time`

    hint: give a later `--end-time`, or an earlier `--start-time`
    ");
    insta::assert_snapshot!(refusal("--end-time later"), @"
    error: `--end-time later` is not a date

    hint: write `2022-11-10`, or `2022-11-10T12:00`
    ");
    insta::assert_snapshot!(refusal("--cost-ratio 0"), @"
    error: cannot use the configuration
      caused by: `provision.cost_ratio` must be between 0.01 and 100, got 0

    hint: `poolcast config` explains every key
    ");
    place.write("short.yaml", "provision: {workload_len: 2}");
    insta::assert_snapshot!(refusal("-c short.yaml"), @"
    error: cannot use `short.yaml`
      caused by: `provision.warmup_len` must be less than `provision.workload_len`, got 2 and 2

    hint: the chained job enters the queue after the warm-up, while other jobs are still submitted
    ");
    place.write("long.yaml", "provision: {job_limit: 60, job_length: 90}");
    insta::assert_snapshot!(refusal("-c long.yaml"), @"
    error: cannot use `long.yaml`
      caused by: `provision.job_length` must be between 1 and 60, got 90

    hint: `poolcast config` explains every key
    ");
    assert!(!place.path("validation").exists());
}

/// Steps that simulate no other scheduler must not claim to.
#[test]
fn published_scheduler_is_rejected_outside_of_replay() {
    let place = place_with_jobs();
    place.stdout(TRACE);
    place.write("published.yaml", "provision: {scheduler: published}");
    for args in [
        "provision validate trace -o out -c published.yaml",
        "provision samples trace -o out -c published.yaml",
        "provision advise trace -c published.yaml --after 1",
    ] {
        let refused = place.run(args);
        assert_eq!(refused.code, Some(2), "{refused}");
        let told = "`provision.scheduler` is `published`, which only `provision replay` simulates";
        assert!(refused.stderr.contains(told), "{refused}");
    }
    assert!(!place.path("out").exists());
    place.stdout("provision replay trace -c published.yaml --nodes 76");
}

#[test]
fn nodes_of_a_workload_come_from_its_head() {
    let place = Place::new();
    let row = |number: u32, start_s: u32| {
        format!("{number} {start_s} 0 90000 150 -1 -1 150 90000 -1 1 5 -1 -1 1 -1 -1 -1\n")
    };
    let rows = row(1, 0) + &row(2, 100);
    for (name, head, nodes) in [
        ("with", "; MaxNodes: 200\n; MaxProcs: 200\n", 200),
        ("without", "", 300),
    ] {
        place.write(&format!("{name}.swf"), format!("{head}{rows}"));
        place.stdout(&format!("provision trace {name}.swf -o {name}"));
        let replayed = place.json(&format!("provision replay {name} --json"));
        assert_eq!(replayed["nodes"][0]["nodes"], nodes, "{name}");
    }
    let published = place.json("provision replay with --scheduler published --json");
    assert_eq!(published["nodes"][0]["nodes"], 200);
}
