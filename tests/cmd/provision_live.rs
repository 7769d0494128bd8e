//! Tests of `poolcast provision advise` and `chain`, with recorded output of Slurm's programs, and
//! with fake Slurm programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::{Value, json};

use crate::docs;
use crate::json_documents::{self, PrintedKeys};
use crate::place::{Outcome, Place};
use crate::sweep::wait;

/// Time at which the files below were printed, in s since 1970.
const NOW_S: i64 = 1_700_000_000;

/// A job of the partition `all`.
struct Job {
    id: u64,
    state: &'static str,
    reason: &'static str,
    nodes: u32,
    limit_min: i64,
    start_s: i64,
    end_s: i64,
}

impl Job {
    fn running(id: u64, nodes: u32, limit_min: i64, start_s: i64) -> Job {
        Job {
            id,
            state: "RUNNING",
            reason: "None",
            nodes,
            limit_min,
            start_s,
            end_s: start_s + limit_min * 60,
        }
    }

    fn waiting(id: u64, nodes: u32, limit_min: i64, reason: &'static str) -> Job {
        Job {
            id,
            state: "PENDING",
            reason,
            nodes,
            limit_min,
            start_s: 0,
            end_s: 0,
        }
    }

    fn ended(id: u64, state: &'static str, run_s: i64) -> Job {
        Job {
            id,
            state,
            reason: "None",
            nodes: 1,
            limit_min: 60,
            start_s: NOW_S - 100 - run_s,
            end_s: NOW_S - 100,
        }
    }
}

/// Formats jobs as `squeue --json` of Slurm 22.05 prints them.
fn queue(jobs: &[Job]) -> String {
    let mut rows = Vec::new();
    for job in jobs {
        rows.push(json!({
            "job_id": job.id, "job_state": job.state, "state_reason": job.reason, "user_name": "user\u{1b}[31m", "partition": "all",
            "node_count": job.nodes, "time_limit": job.limit_min, "submit_time": NOW_S - 7000, "eligible_time": NOW_S - 7000,
            "start_time": job.start_s, "end_time": job.end_s, "priority": 1000 - job.id,
            "nodes": if job.start_s > 0 { format!("n{}", job.id % 2 + 1) } else { String::new() }, "comment": "",
        }));
    }
    json!({"jobs": rows}).to_string()
}

const NODES: &str = r#"{"nodes": [{"name": "n1", "state": "allocated", "partitions": ["all"]}, {"name": "n2", "state": "allocated", "partitions": ["all"]},
    {"name": "n3", "state": "down", "partitions": ["all"]}]}"#;

/// A test directory with a queue on two nodes. Job 7 has one node for another three hours, job 6
/// has the other, and two jobs wait.
fn place_with_queue() -> Place {
    let place = Place::new();
    let jobs = [
        Job::running(6, 1, 40, NOW_S - 600),
        Job::running(7, 1, 240, NOW_S - 3600),
        Job::waiting(8, 1, 20, "Resources"),
        Job::waiting(9, 1, 40, "Priority"),
        Job::waiting(10, 2, 600, "Dependency"),
        Job::waiting(11, 2, 600, "JobHeldUser"),
        Job::waiting(12, 2, 600, "BeginTime"),
        Job::ended(3, "FAILED", 50),
        Job::ended(4, "TIMEOUT", 3600),
    ];
    place.write("queue.json", queue(&jobs));
    place.write("nodes.json", NODES);
    // Jobs with a limit of up to half an hour ran for ten minutes, the others for half an hour.
    let mut trace = "JobID|User|Submit|Start|End|TimelimitRaw|NNodes\n".to_owned();
    for number in 0..30 {
        let start_s = NOW_S - 90_000 + number * 2000;
        for (id, limit_min, run_s) in [(number, 20, 600), (100 + number, 40, 1800)] {
            trace.push_str(&format!(
                "{id}|somebody|{start_s}|{start_s}|{}|{limit_min}|1\n",
                start_s + run_s
            ));
        }
    }
    place.write("jobs.txt", trace);
    place.stdout("provision trace jobs.txt -o trace --tz America/Chicago");
    place
}

const FILES: &str = "--queue queue.json --node-list nodes.json --at 1700000000";

#[test]
fn the_moment_to_submit_is_told_from_files() {
    let place = place_with_queue();
    let advise = |args: &str| place.run(&format!("provision advise trace {args} {FILES}"));
    insta::assert_snapshot!(advise("--after 7"));

    let later = place.run(&format!("provision advise trace --after 7 {FILES} --json"));
    let later: serde_json::Value = serde_json::from_str(&later.stdout).expect("JSON");
    assert_eq!(later["action"], "later");
    assert_eq!(
        later["queue"],
        json!({"running": 2, "waiting": 2, "dependent": 1, "held": 1, "later": 1, "limited": 0, "never": 0, "kept": 0})
    );
    // Job 6 is expected to run for 30 of 40 minutes, job 8 for 10 of 20, and job 9 for 30 of 40.
    assert_eq!(later["expected"]["wait_s"], 1200 + 600 + 1800);
    assert_eq!(later["expected"]["wait_by_limits_s"], 1800 + 1200 + 2400);
    assert_eq!(later["nodes"], 2);

    for (job, code) in [("3", 40), ("4", 0), ("6", 0), ("8", 30)] {
        assert_eq!(advise(&format!("--after {job}")).code, Some(code), "{job}");
    }
    let given = advise("--after 7 --nodes 3");
    assert!(given.stdout.contains("3 nodes can be used"), "{given}");
}

#[test]
fn queues_that_cannot_be_forecast_get_no_advice() {
    let place = place_with_queue();
    let queue = fs_err::read_to_string(place.path("queue.json")).expect("read");
    let reason = |files: [(&str, String); 2]| {
        for (name, text) in files {
            place.write(name, text);
        }
        let outcome = place.run(&format!("provision advise trace --after 7 {FILES} --json"));
        assert_eq!(outcome.code, Some(40), "{outcome}");
        let document: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        assert_eq!(document["expected"], json!(null), "{document}");
        (document["because"].clone(), document["detail"].clone())
    };
    let nodes = || ("nodes.json", NODES.to_owned());
    // Only a part of a node is allocated, as Slurm prints it where jobs have cores of their own.
    let mixed = NODES.replacen("allocated", "mixed", 1);
    assert_eq!(
        reason([("queue.json", queue.clone()), ("nodes.json", mixed)]),
        (
            json!("shared_nodes"),
            json!(
                "node n1 is partly allocated, and the cores and the memory of node n1 are not listed"
            )
        )
    );
    let twice = queue.replace("\"n2\"", "\"n1\"");
    assert_eq!(
        reason([("queue.json", twice), nodes()]),
        (
            json!("shared_nodes"),
            json!(
                "two jobs run on node n1, and the cores and the memory of node n1 are not listed"
            )
        )
    );
    let unknown = queue.replace("\"Priority\"", "\"MoonPhase\"");
    assert_eq!(
        reason([("queue.json", unknown), nodes()]),
        (
            json!("unknown_reason"),
            json!("the reason `MoonPhase` of job 9")
        )
    );
    let unknown = queue.replacen("\"PENDING\"", "\"DREAMING\"", 1);
    assert_eq!(
        reason([("queue.json", unknown), nodes()]).0,
        json!("unknown_reason")
    );
}

/// Advises on the successor of job 14, with the output of a real Slurm: its nodes, and its queue, in which `change`
/// replaces a text, as `OLD -> NEW`.
fn advise_on_shared_nodes(place: &Place, nodes: &str, change: &str, args: &str) -> Outcome {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/provision");
    let mut text = fs_err::read_to_string(data.join("shared-queue.json")).expect("read");
    if let Some((old, new)) = change.split_once(" -> ") {
        text = text.replace(old, new);
    }
    place.write("queue.json", text);
    let nodes = fs_err::read_to_string(data.join(nodes)).expect("read");
    place.write("nodes", nodes);
    place.run(&format!(
        "provision advise --after 14 --queue queue.json --node-list nodes --at 1796068664 {args}"
    ))
}

#[test]
fn shared_nodes_are_forecast_from_files() {
    let place = Place::new();
    let text = advise_on_shared_nodes(&place, "shared-nodes.txt", "", "");
    assert_eq!(text.code, Some(0), "{text}");
    insta::assert_snapshot!(text.stdout, @"
    SUBMIT NOW

    it is 2026-11-30 19:57 UTC; job 14 of the partition all runs on 1 node and ends at 2026-11-30 20:07 (in 9 min 49 s)
    4 nodes can be used; 5 jobs run and 5 wait for their turn; 0 runs that have ended are known
    jobs share nodes: simulated by cores, memory and GPUs
    submitted now, its successor waits 12 min 49 s in the median, and longer than 12 min 49 s in 10 % of the draws; 12 min 49 s if all jobs run to their limits
    it starts by the end of the job in 0 % of the draws; on average 3 min 0 s without a job, 0 s with two
    ");
    let json = advise_on_shared_nodes(&place, "shared-nodes.json", "", "");
    assert_eq!(json.stdout, text.stdout);

    for (change, because) in [
        (
            r#""features": "" -> "features": "[a|b]""#,
            "cannot simulate the constraint `[a|b]` of job 19",
        ),
        (
            "tres_req_str -> other",
            "`squeue` does not list what job 14 holds",
        ),
        (
            "tres_alloc_str -> other",
            "`squeue` does not list what job 14 holds",
        ),
        (
            r#""tres_alloc_str": "cpu=4 -> "tres_alloc_str": "cpu=9"#,
            "jobs hold more than node n1 has",
        ),
        (
            "gres:gpu:1 -> gres:shard:1",
            "cannot simulate the parts of GPUs of job",
        ),
    ] {
        let refused = advise_on_shared_nodes(&place, "shared-nodes.txt", change, "");
        assert!(refused.stdout.contains(because), "{change}: {refused}");
        assert_eq!(refused.code, Some(40), "{refused}");
    }
}

/// Slurm's plan, in steps of a minute, is in the same listing. It plans the last job behind one that is to use its node.
#[test]
fn starts_of_pending_jobs_are_near_slurms_plan() {
    let place = Place::new();
    advise_on_shared_nodes(&place, "shared-nodes.txt", "", "");
    let start = |args: &str| {
        place.run(&format!(
            "provision start {args} --queue queue.json --node-list nodes --at 1796068664 --json"
        ))
    };
    let mut early_s = Vec::new();
    for job in 19..=23 {
        let outcome = start(&job.to_string());
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let forecast: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let seconds = |key: &str| forecast[key].as_i64().expect("a time");
        early_s.push(seconds("planned_start_s") - seconds("start_p50_s"));
    }
    assert_eq!(early_s, [0, 60, 0, 60, 360]);

    let shapes = start("23 --shape 2 --shape 2x2");
    let shapes: Value = serde_json::from_str(&shapes.stdout).expect("JSON");
    assert_eq!(shapes["shapes"][0]["answer"], "expected");
    assert_eq!(shapes["shapes"][1]["because"], "unknown_request");
    let started = start("14");
    assert!(
        started.stdout.contains(r#""answer": "started""#),
        "{started}"
    );
}

/// The queue of a real cluster in one night, whose jobs started later as the trace says.
#[test]
fn pending_jobs_start_where_their_priority_is() {
    let place = docs::repository();
    let data = "tests/data/provision";
    place.stdout(&format!(
        "provision trace {data}/jobs.txt.xz -o trace --tz America/Chicago"
    ));
    let start = |args: &str| {
        let files = format!("--queue {data}/queue.json --node-list {data}/nodes.json");
        place.run(&format!(
            "provision start {args} --trace trace {files} --at 1678000000 --json"
        ))
    };
    let of = |args: &str| -> Value { serde_json::from_str(&start(args).stdout).expect("JSON") };
    let time_s = |forecast: &Value, key: &str| forecast[key].as_i64().expect("a time");

    // It started after 24,595 s.
    let near = of("736351 --shape 2:00:00 --shape 2-00 --shape 100x60");
    let started_s = 1_678_000_000 + 24_595;
    assert!((time_s(&near, "start_p10_s")..time_s(&near, "start_p90_s")).contains(&started_s));
    // The last job of the queue, and the same job submitted now.
    let behind = &near["shapes"][1];
    assert!(time_s(behind, "start_p50_s") > time_s(&near, "start_p50_s"));
    let short = &near["shapes"][0];
    assert!(time_s(short, "start_p50_s") < time_s(&near, "start_p50_s"));
    assert_eq!(near["shapes"][2]["because"], "too_large");

    // The first job of the queue waited for days for a reason that the trace does not have.
    let kept = start("730017");
    assert_eq!(kept.code, Some(40), "{kept}");
    assert!(kept.stdout.contains(r#""because": "should_run""#), "{kept}");
}

/// Reasons are as Slurm prints them.
#[test]
fn jobs_behind_limits_of_their_own_do_not_compete() {
    let place = Place::new();
    let mut jobs = vec![
        Job::running(6, 1, 40, NOW_S - 600),
        Job::running(7, 1, 240, NOW_S - 3600),
    ];
    let limits = [
        "JobArrayTaskLimit",
        "QOSMaxJobsPerUserLimit",
        "AssocGrpNodeLimit",
        "ReqNodeNotAvail",
        "Licenses",
        "Reservation",
    ];
    for (id, reason) in (20..).zip(limits) {
        jobs.push(Job::waiting(id, 2, 600, reason));
    }
    jobs.push(Job::waiting(30, 2, 600, "PartitionTimeLimit"));
    place.write("queue.json", queue(&jobs));
    place.write("nodes.json", NODES);
    let later = place.run(&format!("provision advise --after 7 {FILES} --json"));
    let later: serde_json::Value = serde_json::from_str(&later.stdout).expect("JSON");
    assert_eq!(
        later["queue"],
        json!({"running": 2, "waiting": 0, "dependent": 0, "held": 0, "later": 0, "limited": 6, "never": 1, "kept": 0})
    );
    assert_eq!(later["expected"]["wait_s"], 1800);

    for job in [20, 23, 30] {
        let start = place.run(&format!("provision start {job} {FILES}"));
        assert_eq!(start.code, Some(40), "{start}");
        let why = "NO FORECAST: the job does not wait for its turn: ";
        assert!(start.stdout.starts_with(why), "{start}");
    }
}

/// A test directory with models of eight-hour jobs, and a queue in which job 7 is such a job.
fn place_with_models_and_queue() -> Place {
    let place = crate::provision::place_with_models();
    let jobs = [
        Job::running(6, 1, 600, NOW_S - 600),
        Job::running(7, 1, 480, NOW_S - 3600),
        Job::waiting(8, 1, 480, "Resources"),
    ];
    place.write("queue.json", queue(&jobs));
    place.write("nodes.json", NODES);
    place
}

#[test]
fn model_decides_if_it_fits_the_job() {
    let place = place_with_models_and_queue();
    let advise = |args: &str| place.run(&format!("provision advise trace {args} {FILES}"));
    let asked = |model: &str| {
        let outcome = advise(&format!("--after 7 --model {model} --json"));
        serde_json::from_str::<serde_json::Value>(&outcome.stdout).expect("JSON")
    };
    let trees = asked("trees");
    assert_eq!(trees["model"]["name"], "xgb");
    let wait_s = trees["model"]["wait_s"].as_i64().expect("a number");
    match trees["not_before_s"].as_i64() {
        Some(not_before_s) => assert_eq!(not_before_s, NOW_S + 7 * 3600 - wait_s),
        None => assert!(
            trees["action"] == "now" && wait_s > 7 * 3600 - 60,
            "{trees}"
        ),
    }
    let said = advise("--after 7 --model trees").stdout;
    assert!(said.contains("the model xgb expects a wait of"), "{said}");

    let head = asked("head");
    assert_eq!(head["model"]["name"], "policy_gradient-xgb");
    let submits = head["model"]["submits"].as_bool().expect("a decision");
    assert_eq!(head["action"], if submits { "now" } else { "later" });

    for (args, why) in [
        ("--after 7 --model lstm", "needs the queue of the last day"),
        ("--after 6 --model trees", "but job 6 differs"),
        (
            "--after 7 --model trees --cost-ratio 2",
            "was not trained for the cost ratio 2",
        ),
        ("--after 7 --model samples", "poolcast provision train"),
    ] {
        let refused = advise(args);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(why), "{refused}");
    }
}

/// Returns the keys that `advise --json` prints, over all kinds of answers.
pub(crate) fn submission_documents() -> PrintedKeys {
    let place = place_with_queue();
    let mut printed = PrintedKeys::new();
    for job in ["7", "6", "3", "8"] {
        let args = format!("provision advise trace --after {job} {FILES} --json");
        let document = serde_json::from_str(&place.run(&args).stdout).expect("JSON");
        printed.extend(json_documents::printed_keys(&args, &document));
    }
    let shared = NODES.replacen("allocated", "mixed", 1);
    place.write("nodes.json", shared);
    let args = format!("provision advise trace --after 7 {FILES} --json");
    let document = serde_json::from_str(&place.run(&args).stdout).expect("JSON");
    printed.extend(json_documents::printed_keys(&args, &document));
    let document = advise_on_shared_nodes(&Place::new(), "shared-nodes.txt", "", "--json");
    let document = serde_json::from_str(&document.stdout).expect("JSON");
    printed.extend(json_documents::printed_keys("provision advise", &document));
    let place = place_with_models_and_queue();
    let args = format!("provision advise trace --after 7 --model trees {FILES} --json");
    let document = serde_json::from_str(&place.run(&args).stdout).expect("JSON");
    printed.extend(json_documents::printed_keys(&args, &document));
    printed
}

/// Returns the keys that `start --json` prints, over all kinds of answers.
pub(crate) fn start_documents() -> PrintedKeys {
    let place = Place::new();
    let mut printed = PrintedKeys::new();
    for (job, change) in [
        ("14", ""),
        ("23 --shape 5 --shape 2x5", ""),
        ("23", r#""features": "" -> "features": "[a|b]""#),
    ] {
        advise_on_shared_nodes(&place, "shared-nodes.txt", change, "");
        let args = format!("provision start {job} --queue queue.json --node-list nodes --json");
        let document = serde_json::from_str(&place.run(&args).stdout).expect("JSON");
        printed.extend(json_documents::printed_keys(&args, &document));
    }
    printed
}

/// Returns the keys that `chain --json` prints.
pub(crate) fn chain_documents() -> PrintedKeys {
    let args = "provision chain job.sh --links 2 --every 1 --json";
    let document = serde_json::from_str(&FakeSlurm::new().run(args).stdout).expect("JSON");
    json_documents::printed_keys(args, &document)
}

#[test]
fn what_is_missing_is_said() {
    let place = place_with_queue();
    insta::assert_snapshot!(place.run(&format!("provision advise --after 7 {FILES}")));
    let salted = place.command(&format!("provision advise trace --after 7 {FILES}"));
    let mut salted = salted;
    salted.env("POOLCAST_OWNER_SALT", "another salt than that of the trace");
    let outcome = Outcome::of(salted.output().expect("it starts"));
    assert!(outcome.stderr.contains("with another salt"), "{outcome}");
}

#[test]
fn what_cannot_be_advised_on_says_so() {
    let place = place_with_queue();
    let refusal = |args: &str| {
        let outcome = place.run(&format!("provision advise trace {args}"));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        outcome.stderr
    };
    insta::assert_snapshot!(refusal(&format!("--after 77 {FILES}")), @"
    error: `squeue` lists no job 77

    hint: list your jobs with `squeue --me`; Slurm drops a job some minutes after it ends
    ");
    insta::assert_snapshot!(refusal("--after 7 --queue queue.json"), @"
    error: the number of nodes in the partition `all` is unknown

    hint: give the output of `sinfo --all --json` as `--node-list FILE`, or the number as `--nodes N`
    ");
    let text = fs_err::read_to_string(place.path("queue.json")).expect("read");
    place.write("queue.json", &text[..text.len() / 2]);
    insta::assert_snapshot!(refusal(&format!("--after 7 {FILES}")), @"
    error: cannot use the queue `queue.json`
      caused by: this is not the JSON of a known version of `squeue`
      caused by: EOF while parsing a string at line 1 column 1204

    hint: write it with `squeue --all --states=all --json`
    ");
    place.write(
        "queue.json",
        text.replace("\"node_count\"", "\"node_counts\""),
    );
    insta::assert_snapshot!(refusal(&format!("--after 7 {FILES}")), @"
    error: cannot use the queue `queue.json`
      caused by: this is not the JSON of a known version of `squeue`
      caused by: missing field `node_count` at line 1 column 283

    hint: write it with `squeue --all --states=all --json`
    ");
    place.write("queue.json", &text);
    place.write("nodes.json", "{}");
    insta::assert_snapshot!(refusal(&format!("--after 7 {FILES}")), @"
    error: cannot use the node list `nodes.json`
      caused by: this is not the JSON of a known version of `sinfo`
      caused by: it has neither `nodes` nor `sinfo`

    hint: write it with `sinfo --all --json`
    ");
}

/// A test directory whose Slurm programs are the fakes in tests/data/provision/slurm.
pub(crate) struct FakeSlurm {
    pub(crate) place: Place,
}

impl FakeSlurm {
    pub(crate) fn new() -> FakeSlurm {
        let place = Place::new();
        for dir in ["slurm", "slurm/jobs", "slurm/plan"] {
            fs_err::create_dir(place.path(dir)).expect("made");
        }
        place.write("job.sh", "#!/bin/bash\n#SBATCH --time=1\n");
        FakeSlurm { place }
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/provision/slurm");
        let mut command = self.place.command(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        command.env("FAKE_SLURM", self.path(""));
        command.env("XDG_STATE_HOME", self.place.path("state"));
        command
    }

    pub(crate) fn run(&self, args: &str) -> Outcome {
        Outcome::of(self.command(args).output().expect("it starts"))
    }

    fn chain(&self, links: u32) -> Outcome {
        self.run(&format!("provision chain job.sh --links {links} --every 1"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path("slurm").join(name)
    }

    /// Makes the fake programs fail once, in the way that `fault` names.
    fn will(&self, fault: &str) {
        fs_err::write(self.path(fault), "").expect("written");
    }

    /// Writes the file `name` of the fake cluster.
    pub(crate) fn set(&self, name: &str, text: &str) {
        fs_err::write(self.path(name), text).expect("written");
    }

    /// Fills the cluster: a link holds one of two nodes for an hour, and another job the other one
    /// for two days. Slurm plans to start a successor in `planned_s` seconds.
    fn fill(&self, planned_s: u32) {
        let now_s = jiff::Timestamp::now().as_second();
        let other = json!({
            "job_id": 5, "job_state": "RUNNING", "user_name": "other", "user_id": 12_345, "partition": "all", "node_count": 1,
            "time_limit": 2880, "submit_time": now_s, "start_time": now_s, "end_time": now_s + 172_800, "nodes": "n3",
        });
        self.set("others", &other.to_string());
        self.set("nodes", "n2 n3");
        self.set("limit", "60");
        self.set("planned", &planned_s.to_string());
    }

    /// Writes the state of a chain of one link, whose job has the number `job`.
    fn state_with_link(&self, job: Option<u64>) {
        let submit_s = jiff::Timestamp::now().as_second() - 1000;
        let link = json!({
            "number": 1, "job": job, "is_released": job.is_some(), "submit_s": submit_s, "start_s": null, "end_s": null, "outcome": null,
        });
        let state = json!({"format": "poolcast chain", "version": 1, "chain": "c", "links": [link], "told_failure": 0});
        fs_err::create_dir(self.place.path("job.sh.chain")).expect("made");
        self.place
            .write("job.sh.chain/state.json", state.to_string());
    }

    /// Writes the file of the job `id` with the comment of link 1 of the chain `c`.
    fn job_of_link(&self, id: u64, user_id: u32, is_released: bool) {
        let submit_s = jiff::Timestamp::now().as_second() - 1000;
        let mut text = format!(
            "comment=\"poolcast chain c link 1\"\nlink=1\nsubmitted={submit_s}\nuser_id={user_id}\npredecessor=\"\"\n"
        );
        if is_released {
            text.push_str(&format!("released={submit_s}\n"));
        }
        self.set(&format!("jobs/{id}"), &text);
    }

    /// Runs a chain of two links until it has looked at the queue four times, and then stops it, unless
    /// it ends before.
    fn chain_for_some_looks(&self) -> Outcome {
        let mut child = self.spawn_chain();
        let mut is_over = false;
        wait(|| {
            is_over = child.try_wait().expect("asked").is_some();
            is_over || self.looks() >= 4
        });
        if !is_over {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
        }
        Outcome {
            code: child.wait().expect("it ended").code(),
            stdout: String::new(),
            stderr: self.messages(),
        }
    }

    /// Counts the answers of `squeue`.
    fn looks(&self) -> usize {
        fs_err::read_to_string(self.path("looks")).map_or(0, |looks| looks.lines().count())
    }

    /// Waits until `squeue` has answered `count` more times.
    fn wait_for_looks(&self, count: usize) {
        let before = self.looks();
        wait(|| self.looks() >= before + count);
    }

    /// Sets how the job of link `number` ends, and after how many seconds.
    pub(crate) fn plan(&self, number: u32, outcome: &str, seconds: u64) {
        let path = self.path("plan").join(number.to_string());
        // The fake programs may be reading the plan.
        let new = self.path("new-plan");
        fs_err::write(&new, format!("{outcome} {seconds}")).expect("written");
        fs_err::rename(new, path).expect("moved");
    }

    /// Starts a chain of two links, which writes its messages to `messages`, and waits until the
    /// first link runs. The link runs until [`FakeSlurm::end_first_link`].
    fn start_chain(&self) -> Child {
        let child = self.spawn_long_chain();
        wait(|| self.released().len() == 1);
        child
    }

    /// Starts a chain like [`FakeSlurm::spawn_chain`]. The first link runs until
    /// [`FakeSlurm::end_first_link`].
    fn spawn_long_chain(&self) -> Child {
        self.plan(1, "COMPLETED", 5000);
        self.spawn_chain()
    }

    /// Starts a chain of two links, which writes its messages to `messages`.
    fn spawn_chain(&self) -> Child {
        let messages = fs_err::File::create(self.path("messages")).expect("made");
        self.command("provision chain job.sh --links 2 --every 1")
            .stderr(messages.into_file())
            .spawn()
            .expect("it starts")
    }

    /// Ends the job of the first link within a second.
    fn end_first_link(&self) {
        let text = fs_err::read_to_string(self.path("jobs/11")).expect("read");
        let mut released = text
            .lines()
            .filter_map(|line| line.strip_prefix("released="));
        let released_s: i64 = released
            .next()
            .expect("released")
            .parse()
            .expect("a number");
        let run_s = jiff::Timestamp::now().as_second() + 1 - released_s;
        self.plan(1, "COMPLETED", run_s.unsigned_abs());
    }

    /// Returns the messages of a chain that [`FakeSlurm::spawn_chain`] has started.
    fn messages(&self) -> String {
        fs_err::read_to_string(self.path("messages")).expect("read")
    }

    /// Returns the released jobs by link, each with its number and the number of its predecessor.
    fn released(&self) -> BTreeMap<String, Vec<(String, String)>> {
        let mut released: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for entry in fs_err::read_dir(self.path("jobs")).expect("listed") {
            let entry = entry.expect("an entry");
            let text = fs_err::read_to_string(entry.path()).expect("read");
            let value = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.map(|value| value.trim_matches('"').to_owned())
            };
            if value("released=").is_some() {
                let id = entry.file_name().to_string_lossy().into_owned();
                let jobs = released.entry(value("link=").expect("a link")).or_default();
                jobs.push((id, value("predecessor=").expect("a predecessor")));
            }
        }
        released
    }

    /// Asserts that exactly one job ran for each of `links` links, and that each job knew its
    /// predecessor.
    fn assert_each_ran_once(&self, links: usize) {
        let released = self.released();
        assert_eq!(released.len(), links, "{released:?}");
        let mut before = String::new();
        for jobs in released.values() {
            assert_eq!(jobs.len(), 1, "{released:?}");
            assert_eq!(jobs[0].1, before, "{released:?}");
            before.clone_from(&jobs[0].0);
        }
    }
}

#[test]
fn chain_submits_each_link_once_in_order() {
    let slurm = FakeSlurm::new();
    let outcome = slurm.run("provision chain job.sh --links 3 --every 1 --json");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(document["is_done"], true);
    assert_eq!(document["links"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["links"][0]["outcome"], "completed");
    slurm.assert_each_ran_once(3);

    let again = slurm.chain(3);
    assert_eq!(again.code, Some(0), "{again}");
    slurm.assert_each_ran_once(3);
    // The same chain can be extended by a link.
    let longer = slurm.chain(4);
    assert_eq!(longer.code, Some(0), "{longer}");
    slurm.assert_each_ran_once(4);
}

#[test]
fn chain_killed_at_a_submission_runs_no_link_twice() {
    at_once(["kill-before", "kill-after"], |fault| {
        let slurm = FakeSlurm::new();
        slurm.will(fault);
        let killed = slurm.chain(2);
        assert_eq!(killed.code, None, "{fault}: {killed}");
        let outcome = slurm.chain(2);
        assert_eq!(outcome.code, Some(0), "{fault}: {outcome}");
        assert!(
            outcome.stderr.contains("was already submitted"),
            "{outcome}"
        );
        slurm.assert_each_ran_once(2);
    });
}

#[test]
fn lost_answer_of_sbatch_causes_no_second_run() {
    let slurm = FakeSlurm::new();
    slurm.will("lost");
    let outcome = slurm.chain(1);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("it is not yet known whether link 1 was submitted"),
        "{outcome}"
    );
    slurm.assert_each_ran_once(1);
}

/// The first submission takes effect only after the chain has repeated it.
#[test]
fn late_submission_is_cancelled() {
    let slurm = FakeSlurm::new();
    slurm.will("late");
    let mut child = slurm.start_chain();
    fs_err::rename(slurm.path("late-11"), slurm.path("jobs/10")).expect("moved");
    let late = || fs_err::read_to_string(slurm.path("jobs/10")).expect("read");
    wait(|| late().contains("cancelled="));
    slurm.end_first_link();
    assert!(child.wait().expect("it ended").success());
    assert!(!late().contains("released="), "{}", late());
    slurm.assert_each_ran_once(2);
}

/// Runs `check` for all `cases` at the same time, because chains mostly wait.
fn at_once<T: Send, const N: usize>(cases: [T; N], check: impl Fn(T) + Sync) {
    let check = &check;
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}

#[test]
fn failed_link_stops_the_chain_until_the_next_call() {
    at_once(["FAILED", "CANCELLED"], |outcome| {
        let slurm = FakeSlurm::new();
        slurm.plan(1, outcome, 1);
        let stopped = slurm.chain(2);
        assert_eq!(stopped.code, Some(2), "{stopped}");
        assert!(
            stopped.stderr.contains("error: link 1 (job 11) "),
            "{stopped}"
        );
        assert_eq!(slurm.released().len(), 1);
        assert_eq!(slurm.chain(2).code, Some(0));
        slurm.assert_each_ran_once(2);
    });
}

#[test]
fn chain_waits_for_a_requeued_link() {
    let slurm = FakeSlurm::new();
    let mut child = slurm.start_chain();
    slurm.wait_for_looks(3);
    slurm.plan(1, "PENDING", 0);
    wait(|| slurm.messages().contains("job 11, waits again"));
    slurm.end_first_link();
    assert!(child.wait().expect("it ended").success());
    slurm.assert_each_ran_once(2);
}

#[test]
fn a_refused_first_link_ends_the_call_and_a_later_one_is_tried_again() {
    let slurm = FakeSlurm::new();
    slurm.will("refuse");
    insta::assert_snapshot!(slurm.chain(2).stderr, @"
    missing: past run times (no accounting: `sacct` failed: Slurm accounting storage is disabled; no trace is given): jobs are assumed to run to their limits, except those similar to ended jobs in the queue
    error: Slurm rejects link 1: sbatch: error: Batch job submission failed: Invalid partition name specified

    hint: correct the script, then run the same command again
    ");
    let mut child = slurm.start_chain();
    slurm.will("refuse");
    slurm.end_first_link();
    assert!(child.wait().expect("it ended").success());
    assert!(!slurm.path("refuse").exists(), "it was refused");
    slurm.assert_each_ran_once(2);
}

#[test]
fn chain_waits_for_an_unreachable_controller() {
    let slurm = FakeSlurm::new();
    slurm.will("away");
    let mut child = slurm.spawn_long_chain();
    let absences = || slurm.messages().matches("Slurm does not answer").count();
    wait(|| absences() == 1);
    // The next round gets no answer either.
    std::thread::sleep(Duration::from_millis(1500));
    fs_err::remove_file(slurm.path("away")).expect("removed");
    wait(|| slurm.released().len() == 1);
    slurm.will("away");
    wait(|| absences() == 2);
    fs_err::remove_file(slurm.path("away")).expect("removed");
    slurm.end_first_link();
    let code = child.wait().expect("it ended").code();
    let messages = slurm.messages();
    assert_eq!(code, Some(0), "{messages}");
    assert_eq!(
        messages.matches("Slurm answers again").count(),
        2,
        "{messages}"
    );
    slurm.assert_each_ran_once(2);
}

#[test]
fn chain_waits_for_a_new_controller_to_hear_of_its_nodes() {
    let slurm = FakeSlurm::new();
    slurm.will("unheard");
    let mut child = slurm.start_chain();
    let note = "the successor of link 1, job 11, has no advice yet: Slurm's controller has just started, and has not heard of 2 nodes yet";
    wait(|| slurm.messages().contains(note));
    slurm.wait_for_looks(2);
    assert_eq!(slurm.released().len(), 1);
    fs_err::remove_file(slurm.path("unheard")).expect("removed");
    slurm.end_first_link();
    assert!(child.wait().expect("it ended").success());
    assert_eq!(slurm.messages().matches(note).count(), 1);
    slurm.assert_each_ran_once(2);
}

#[test]
fn interrupted_chain_resumes_at_the_next_call() {
    let slurm = FakeSlurm::new();
    let mut child = slurm.start_chain();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let code = child.wait().expect("it ended").code();
    let messages = slurm.messages();
    assert_eq!(code, Some(85), "{messages}");
    assert!(
        messages.contains("run the same command again"),
        "{messages}"
    );
    slurm.end_first_link();
    assert_eq!(slurm.chain(2).code, Some(0));
    slurm.assert_each_ran_once(2);
}

#[test]
fn second_chain_in_a_directory_is_rejected() {
    let slurm = FakeSlurm::new();
    let mut child = slurm.start_chain();
    let second = slurm.chain(2);
    assert_eq!(second.code, Some(1), "{second}");
    assert!(
        second
            .stderr
            .contains("another process is writing to `job.sh.chain`"),
        "{second}"
    );
    slurm.end_first_link();
    assert!(child.wait().expect("it ended").success());
    slurm.assert_each_ran_once(2);
}

#[test]
fn what_would_be_done_is_said() {
    let slurm = FakeSlurm::new();
    let dry = slurm.run("provision chain job.sh --links 2 --dry-run");
    assert_eq!(dry.code, Some(0), "{dry}");
    assert!(
        dry.stdout
            .contains("link 1 would be submitted with: sbatch --parsable --hold"),
        "{dry}"
    );
    assert!(!slurm.place.path("job.sh.chain").exists());
    slurm.will("refuse");
    assert_eq!(
        slurm.run("provision chain job.sh --links 2 --dry-run").code,
        Some(2)
    );

    slurm
        .place
        .write("array.sh", "#!/bin/bash\n#SBATCH --array=1-9\n");
    insta::assert_snapshot!(slurm.run("provision chain array.sh --links 2"), @"
    exit 2
    error: `array.sh` requests an array of jobs (`#SBATCH --array=1-9`)

    hint: a link of a chain is one job: start a chain for each element
    ");
}

#[test]
fn advise_queries_a_live_slurm() {
    let slurm = FakeSlurm::new();
    let now_s = jiff::Timestamp::now().as_second();
    let job = format!("comment=\"\"\nlink=1\nsubmitted={now_s}\nreleased={now_s}\n");
    fs_err::write(slurm.path("jobs/11"), job).expect("written");
    // It is far from its end, however long the calls take.
    slurm.set("limit", "6000");
    slurm.plan(1, "COMPLETED", 300_000);
    let without = slurm.run("provision advise --after 11");
    assert_eq!(without.code, Some(30), "{without}");
    assert!(
        without.stdout.contains("Slurm itself would start it"),
        "{without}"
    );
    let missing = "missing: past run times (no accounting: `sacct` failed: Slurm accounting storage is disabled;";
    assert!(without.stderr.contains(missing), "{without}");

    let head = "JobID|User|Submit|Eligible|Start|End|TimelimitRaw|NNodes|State\n";
    fs_err::write(
        slurm.path("sacct.txt"),
        format!("{head}5|me|100|100|110|120|1|1|COMPLETED\n"),
    )
    .expect("written");
    let with = slurm.run("provision advise --after 11");
    assert!(
        with.stdout.contains("1 run that has ended is known"),
        "{with}"
    );
    assert_eq!(with.stderr, "");

    slurm.will("away");
    let away = slurm.run("provision advise --after 11");
    assert!(
        away.stderr.contains("Unable to contact slurm controller"),
        "{away}"
    );
}

/// Settings of a cluster whose jobs share nodes.
const SHARED_NODES: &str =
    "PrivateData = none\nSelectType = select/cons_tres\nSlurmUser = slurm(64030)\n";

#[test]
fn chain_goes_on_with_dependencies_where_it_cannot_forecast() {
    let slurm = FakeSlurm::new();
    slurm.set("config", SHARED_NODES);
    slurm.set("partition", "PartitionName=all OverSubscribe=NO\n");
    let outcome = slurm.chain(3);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let note = "no forecast: jobs share nodes, which cannot be simulated here: SelectType=select/cons_tres, and";
    assert_eq!(outcome.stderr.matches(note).count(), 1, "{outcome}");
    slurm.assert_each_ran_once(3);
    let depends = |job: &str| {
        let text = fs_err::read_to_string(slurm.path("jobs").join(job)).expect("read");
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix("depends=").map(str::to_owned));
        found.expect("a line")
    };
    assert_eq!(["11", "12", "13"].map(depends), ["", "11", "12"]);
    let dry = slurm.run("provision chain job.sh --links 4 --dry-run");
    assert_eq!(dry.code, Some(0), "{dry}");
    assert!(dry.stderr.contains(note), "{dry}");
}

/// A fake cluster with fair-share and limits, in which no more runs are known.
fn slurm_with_limits() -> FakeSlurm {
    let slurm = FakeSlurm::new();
    let more = "PriorityType = priority/multifactor\nPriorityWeightFairShare = 100\nAccountingStorageEnforce = limits\n";
    slurm.set(
        "config",
        &SHARED_NODES.replace("select/cons_tres", "select/linear"),
    );
    let config = fs_err::read_to_string(slurm.path("config")).expect("read");
    slurm.set("config", &format!("{config}{more}"));
    slurm.set(
        "partition",
        "PartitionName=all Default=YES MaxTime=2-00:00:00 OverSubscribe=EXCLUSIVE\n",
    );
    slurm.set("limits", "normal||1\n");
    slurm
}

#[test]
fn what_can_be_known_of_a_cluster_is_said() {
    let slurm = slurm_with_limits();
    let check = |args: &str| slurm.run(&format!("provision check {args}"));
    let found = |args: &str| -> (Option<i32>, Vec<String>) {
        let outcome = check(&format!("{args} --json"));
        let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let findings = document["findings"].as_array().expect("findings");
        let words = |one: &Value| format!("{} {}: {}", one["state"], one["check"], one["words"]);
        let all = findings.iter().map(words);
        (
            outcome.code,
            all.map(|line| line.replace('"', "")).collect(),
        )
    };
    let (code, mut lines) = found("");
    assert_eq!(code, Some(0), "{lines:?}");
    let plan = lines.remove(6);
    assert!(
        plan.starts_with("good plan: `sbatch --test-only` plans a small job in "),
        "{plan}"
    );
    insta::assert_snapshot!(lines.join("\n"), @"
    fact slurm: the programs of slurm 22.05.8
    good queue: `squeue` shows all users: 0 jobs of 0 users
    fact accounting: no past runs are known: jobs are assumed to run to their limits
    good nodes: 2 nodes of the partition all can be used; MaxTime=2-00:00:00; each job has whole nodes
    fact priority: priority/multifactor: jobs wait in the order that `squeue` lists; its factors cannot be read (`sprio` failed: You are not running a supported priority plugin); fair-share lets later jobs pass, which no forecast foresees
    bad limits: MaxJobs none, MaxSubmitJobs 1: a link is submitted only once the one before has ended
    good forecast: waits can be forecast
    ");

    slurm.will("factors");
    slurm.set("limits", "normal|1|\n");
    slurm.will("unheard");
    let (code, lines) = found("--partition all");
    assert_eq!(code, Some(40), "{lines:?}");
    insta::assert_snapshot!([&lines[3..6], &lines[7..]].concat().join("\n"), @"
    bad nodes: 0 nodes of the partition all can be used; MaxTime=2-00:00:00
    fact priority: priority/multifactor: jobs wait in the order that `squeue` lists; `sprio` and `sshare` show its factors; fair-share lets later jobs pass, which no forecast foresees
    fact limits: MaxJobs 1, MaxSubmitJobs none: a link starts only once the one before has ended
    bad forecast: Slurm's controller has just started, and has not heard of 2 nodes yet, which takes some seconds
    ");

    let other = check("--partition gpu");
    assert_eq!(other.code, Some(2), "{other}");
    assert!(other.stderr.contains("use one of: all"), "{other}");
    slurm.will("away");
    let away = check("");
    assert_eq!(away.code, Some(40), "{away}");
    insta::assert_snapshot!(away.stdout, @"
    BAD   slurm  `sinfo` failed: slurm_load_jobs error: Unable to contact slurm
                 controller (connect failure)
          -> run this where `sbatch` is, and once Slurm answers

    to do: 1 thing
    ");
}

/// The results are there before the first link, so that one link is enough.
#[test]
fn commands_of_the_page_on_chains_succeed() {
    let slurm = slurm_with_limits();
    slurm.place.write("train.sbatch", "#!/bin/bash\n");
    fs_err::create_dir(slurm.place.path("results")).expect("made");
    slurm.place.write("results/final.pt", "");
    let page = docs::read("docs/chain.md");
    let blocks = docs::blocks(&page, "sh");
    let commands: Vec<&str> = blocks
        .into_iter()
        .flat_map(str::lines)
        .map(str::trim)
        .collect();
    let commands: Vec<&str> = commands
        .into_iter()
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(commands.len(), 3);

    for typed in commands {
        let rest = typed.strip_prefix("poolcast ").expect("a call of poolcast");
        let (args, done) = rest.split_once(" --done ").unwrap_or((rest, ""));
        let mut command = slurm.command(args);
        let (_, done) = done.split_once('\'').unwrap_or_default();
        if let Some((done, more)) = done.split_once('\'') {
            command.args(["--done", done, "--every", "1"]);
            command.args(more.split_ascii_whitespace());
        }
        let outcome = Outcome::of(command.output().expect("it starts"));
        assert_eq!(outcome.code, Some(0), "{typed}: {outcome}");
    }
    slurm.assert_each_ran_once(1);
}

/// Returns the keys that `check --json` prints.
pub(crate) fn check_documents() -> PrintedKeys {
    let args = "provision check --json";
    let document = serde_json::from_str(&slurm_with_limits().run(args).stdout).expect("JSON");
    json_documents::printed_keys(args, &document)
}

#[test]
fn chain_submits_when_its_user_says() {
    at_once(["dependency", "ended"], |when| {
        let slurm = FakeSlurm::new();
        // A forecast would wait for the first link to run for most of an hour.
        slurm.fill(0);
        slurm.plan(1, "COMPLETED", 4);
        let outcome = slurm.run(&format!(
            "provision chain job.sh --links 2 --every 1 --when {when}"
        ));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        slurm.assert_each_ran_once(2);
        assert!(!outcome.stderr.contains("forecast"), "{outcome}");
        let second = fs_err::read_to_string(slurm.path("jobs/12")).expect("read");
        let depends = second.contains("depends=11\n");
        assert_eq!(depends, when == "dependency", "{second}");
    });
}

#[test]
fn chain_ends_once_its_work_is_done() {
    let slurm = FakeSlurm::new();
    slurm.plan(3, "PENDING", 0);
    let chain = |done: &str| {
        let args = "provision chain job.sh --links 5 --every 1 --when dependency";
        let mut command = slurm.command(args);
        command.args(["--done", done]);
        Outcome::of(command.output().expect("it starts"))
    };
    let unknown = chain("no-such-command");
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(
        unknown.stderr.contains("`--done` has not answered"),
        "{unknown}"
    );
    // The second link runs until the third one has been submitted behind it.
    slurm.plan(2, "COMPLETED", 5000);
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| chain("echo out; test $POOLCAST_LINK -ge 2"));
        wait(|| slurm.path("jobs/13").exists());
        slurm.plan(2, "COMPLETED", 0);
        running.join().expect("it ended")
    });
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let end = "the work was done after link 2";
    assert!(outcome.stderr.contains(end), "{outcome}");
    assert!(!outcome.stdout.contains("out\n"), "{outcome}");
    // The third link was submitted before the end of the second one.
    let third = fs_err::read_to_string(slurm.path("jobs/13")).expect("read");
    assert!(third.contains("cancelled="), "{third}");
    let again = chain("false");
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.stderr.contains(end), "{again}");
    assert!(!slurm.path("jobs/14").exists(), "it goes on");
}

#[test]
fn no_link_is_submitted_that_would_start_after_the_deadline() {
    let end = "no further link is submitted: it would start after the deadline";
    let slurm = FakeSlurm::new();
    let chain = |more: &str| {
        slurm.run(&format!(
            "provision chain job.sh --links 3 --every 1 {more}"
        ))
    };
    let past = chain("--deadline 2020-01-01T00:00:00Z");
    assert_eq!(past.code, Some(0), "{past}");
    assert!(past.stderr.contains(end), "{past}");
    assert!(slurm.released().is_empty());

    // By its limit the first link ends after the deadline, so the second one waits for its end, which is earlier.
    let deadline_s = jiff::Timestamp::now().as_second() + 20_000;
    slurm.set("limit", "600");
    slurm.plan(1, "COMPLETED", 3);
    let outcome = chain(&format!("--deadline {deadline_s} --when dependency"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let depends = |job: &str| {
        let text = fs_err::read_to_string(slurm.path("jobs").join(job)).expect("read");
        text.contains("depends=\n")
    };
    assert!(depends("12"), "it was submitted ahead");
    slurm.assert_each_ran_once(3);
}

#[test]
fn chain_refuses_clusters_that_cannot_be_forecast() {
    let slurm = FakeSlurm::new();
    let refusal = |file: &str, text: &str| {
        slurm.set(file, text);
        let chain = "provision chain job.sh --links 2 --every 1 --when forecast";
        let outcome = slurm.run(chain);
        assert_eq!(outcome.code, Some(40), "{outcome}");
        let dry = slurm.run(&format!("{chain} --dry-run"));
        assert_eq!(dry.code, Some(40), "{dry}");
        fs_err::remove_file(slurm.path(file)).expect("removed");
        outcome.stderr
    };
    let row = json!({
        "job_id": 5, "job_state": "PENDING", "state_reason": "MoonPhase", "partition": "all", "node_count": 1, "time_limit": 9, "submit_time": 1,
    });
    let unknown = refusal("others", &row.to_string());
    assert!(
        unknown.contains("the reason `MoonPhase` of job 5"),
        "{unknown}"
    );
    let cores = "PartitionName=all OverSubscribe=NO\n";
    let forced = refusal("partition", "PartitionName=all OverSubscribe=FORCE:4\n");
    assert!(forced.contains("OverSubscribe=FORCE:4"), "{forced}");
    slurm.set("config", SHARED_NODES);
    insta::assert_snapshot!(refusal("partition", cores), @"
    missing: past run times (no accounting: `sacct` failed: Slurm accounting storage is disabled; no trace is given): jobs are assumed to run to their limits, except those similar to ended jobs in the queue
    error: no advice: jobs share nodes, which cannot be simulated here: SelectType=select/cons_tres, and the cores and the memory of node n1 are not listed

    hint: let each job wait for the end of the previous one: `--when dependency`
    ");
    let hidden = "PrivateData = jobs\nSelectType = select/linear\nSlurmUser = slurm(64030)\n";
    // Slurm hides nothing from root.
    if !rustix::process::getuid().is_root() {
        assert!(refusal("config", hidden).contains("PrivateData"));
    }
    assert!(slurm.released().is_empty(), "a job was submitted");
    slurm.set("config", hidden);
    let outcome = slurm.run("provision chain job.sh --links 1 --every 1 --when forecast");
    let is_root = rustix::process::getuid().is_root();
    assert_eq!(outcome.code, Some(if is_root { 0 } else { 40 }));
}

#[test]
fn chain_obeys_slurms_plan() {
    let slurm = FakeSlurm::new();
    slurm.fill(0);
    let mut child = slurm.start_chain();
    let said = || {
        slurm
            .messages()
            .matches("contradicts Slurm's own plan")
            .count()
    };
    wait(|| said() > 0);
    slurm.wait_for_looks(3);
    slurm.end_first_link();
    assert!(child.wait().expect("it ended").success());
    let messages = slurm.messages();
    assert_eq!(said(), 1, "{messages}");
    let overlaps = messages.matches("with two jobs").count();
    assert_eq!(
        messages.matches(": 0 s with two jobs").count(),
        overlaps,
        "{messages}"
    );
    slurm.assert_each_ran_once(2);
}

/// Submission of the pending job of [`slurm_with_pending_job`], before `now_s`.
const WAITED_S: i64 = 100;

/// A cluster in which job 20 waits: job 5 has one node for two days, and link 11 the other one for an hour.
fn slurm_with_pending_job(now_s: i64) -> FakeSlurm {
    let slurm = FakeSlurm::new();
    let job = format!("comment=\"\"\nlink=1\nsubmitted={now_s}\nreleased={now_s}\n");
    fs_err::write(slurm.path("jobs/11"), job).expect("written");
    slurm.fill(3600);
    slurm.plan(1, "COMPLETED", 300_000);
    let others = fs_err::read_to_string(slurm.path("others")).expect("read");
    let submit_s = now_s - WAITED_S;
    let pending = json!({
        "job_id": 20, "job_state": "PENDING", "state_reason": "Resources", "user_name": "me", "user_id": 12_345, "partition": "all",
        "node_count": 1, "time_limit": 10, "submit_time": submit_s, "eligible_time": submit_s, "priority": 1,
    });
    slurm.set("others", &format!("{others}, {pending}"));
    slurm
}

#[test]
fn forecasts_of_starts_are_kept_and_scored() {
    let now_s = jiff::Timestamp::now().as_second();
    let submit_s = now_s - WAITED_S;
    let slurm = slurm_with_pending_job(now_s);
    assert!(
        slurm
            .run("provision score")
            .stdout
            .starts_with("no forecasts yet")
    );
    let start = slurm.run("provision start 20 --shape 5");
    assert_eq!(start.code, Some(0), "{start}");
    assert!(start.stdout.starts_with("STARTS at "), "{start}");
    assert!(!start.stdout.contains("earlier forecast"), "{start}");

    // It has started within seconds, which is far earlier.
    let head = "JobID|User|Submit|Eligible|Start|End|TimelimitRaw|NNodes|State\n";
    let row = format!("20|me|{submit_s}|{submit_s}|{now_s}|Unknown|10|1|RUNNING\n");
    slurm.set("sacct.txt", &format!("{head}{row}"));
    let score = slurm.run("provision score --json");
    let score: Value = serde_json::from_str(&score.stdout).expect("JSON");
    let counts = ["forecasts", "jobs", "settled", "within", "earlier", "later"];
    assert_eq!(
        counts.map(|key| score[key].as_u64()),
        [1, 1, 1, 0, 1, 0].map(Some)
    );
    let again = slurm.run("provision start 20");
    let words = "of 1 earlier forecast, 0 % had the start between";
    assert!(again.stdout.contains(words), "{again}");
    let text = slurm.run("provision score").stdout;
    assert!(text.starts_with("2 forecasts of 1 job since "), "{text}");
    assert!(
        text.contains("; 2 started earlier, 0 later or still waits\n"),
        "{text}"
    );
}

/// Returns the keys that `start --json` prints about a live Slurm, and `score --json`.
pub(crate) fn score_documents() -> PrintedKeys {
    let slurm = slurm_with_pending_job(jiff::Timestamp::now().as_second());
    let mut printed = PrintedKeys::new();
    for args in ["provision start 20 --json", "provision score --json"] {
        let document = serde_json::from_str(&slurm.run(args).stdout).expect("JSON");
        printed.extend(json_documents::printed_keys(args, &document));
    }
    printed
}

#[test]
fn advise_obeys_slurms_plan() {
    let slurm = FakeSlurm::new();
    slurm.fill(3600);
    slurm.plan(1, "COMPLETED", 5000);
    slurm.job_of_link(11, rustix::process::getuid().as_raw(), true);
    let advise = || slurm.run("provision advise --after 11");
    let agreeing = advise();
    assert_eq!(agreeing.code, Some(0), "{agreeing}");
    slurm.set("planned", "600");
    let shorter = advise();
    assert_eq!(shorter.code, Some(40), "{shorter}");
    assert!(shorter.stdout.contains("contradicts Slurm's own plan"));
    // Two nodes are free, but Slurm does not plan to use them now.
    slurm.set("nodes", "n1 n2 n3 n4");
    let later = advise();
    assert_eq!(later.code, Some(40), "{later}");
    slurm.set("planned", "0");
    assert_eq!(advise().code, Some(30));
}

#[test]
fn link_that_starts_far_too_early_stops_the_chain() {
    let slurm = FakeSlurm::new();
    slurm.fill(3600);
    slurm.plan(1, "COMPLETED", 5000);
    let stopped = slurm.chain(3);
    assert_eq!(stopped.code, Some(40), "{stopped}");
    assert!(
        stopped
            .stderr
            .contains("error: link 2, job 12, has started after"),
        "{stopped}"
    );
    assert_eq!(slurm.released().len(), 2, "a third link was submitted");
    // The next call continues.
    slurm.end_first_link();
    assert_eq!(slurm.chain(2).code, Some(0));
    slurm.assert_each_ran_once(2);
}

/// Job 11 of link 1 runs all the time, but Slurm does not say so.
#[test]
fn no_second_link_runs_while_the_first_one_may_be_alive() {
    let faults = [
        ("lacking", ""),
        ("errors", ""),
        // A state that is not understood prevents forecasts, and ends no link.
        ("plan/1", "DREAMING 0"),
        ("record", "1000|Unknown|RUNNING\n"),
    ];
    at_once(faults, |(file, text)| {
        let slurm = FakeSlurm::new();
        slurm.state_with_link(Some(11));
        slurm.job_of_link(11, rustix::process::getuid().as_raw(), true);
        slurm.plan(1, "COMPLETED", 5000);
        slurm.set("limit", "100");
        slurm.set(file, text);
        if file == "record" {
            slurm.will("lacking");
        }
        let stopped = slurm.chain_for_some_looks();
        assert_eq!(stopped.code, Some(85), "{file}: {stopped}");
        assert_eq!(slurm.released().len(), 1, "{file}: {stopped}");
    });
}

#[test]
fn link_ends_if_the_accounting_says_so() {
    let slurm = FakeSlurm::new();
    slurm.state_with_link(Some(11));
    slurm.will("lacking");
    slurm.set("record", "1000|1060|COMPLETED\n");
    let mut child = slurm.spawn_chain();
    wait(|| slurm.messages().contains("job 11, has completed (`sacct`)"));
    child.kill().expect("killed");
    child.wait().expect("it ended");
}

#[test]
fn jobs_of_neighbours_are_neither_adopted_nor_cancelled() {
    let slurm = FakeSlurm::new();
    slurm.state_with_link(None);
    slurm.job_of_link(3, rustix::process::getuid().as_raw() + 1, false);
    let outcome = slurm.chain(1);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let neighbour = fs_err::read_to_string(slurm.path("jobs/3")).expect("read");
    assert!(
        !neighbour.contains("released=") && !neighbour.contains("cancelled="),
        "{neighbour}"
    );
    slurm.assert_each_ran_once(1);
}

#[test]
fn refusal_behind_a_running_link_is_not_repeated_until_its_end() {
    let slurm = FakeSlurm::new();
    slurm.fill(3600);
    slurm.will("one-job");
    let mut child = slurm.start_chain();
    wait(|| slurm.path("refusals").exists());
    slurm.wait_for_looks(3);
    slurm.end_first_link();
    assert!(child.wait().expect("it ended").success());
    let messages = slurm.messages();
    let refusals = fs_err::read_to_string(slurm.path("refusals")).expect("read");
    assert_eq!(refusals.lines().count(), 1, "{messages}");
    assert!(
        messages.contains("once the link before it has ended"),
        "{messages}"
    );
    slurm.assert_each_ran_once(2);
}

#[test]
fn permanent_refusal_of_squeue_ends_the_chain() {
    let slurm = FakeSlurm::new();
    slurm.will("denied");
    let outcome = slurm.chain(2);
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(
        outcome.stderr.contains("Access/permission denied"),
        "{outcome}"
    );
}

#[test]
fn printed_json_has_the_documented_keys() {
    submission_documents();
    chain_documents();
}
