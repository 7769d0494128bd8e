//! Tests of `poolcast advise --dag`, which DAGMan runs when the job of a node is held.

use std::process::Command;

use crate::place::{Outcome, Place, queue, repository_path};

/// Output of `condor_q` of HTCondor 25.14.1 for the held job of a node.
const NODE_QUEUE: &str = r#"[
{
  "ClusterId": 15,
  "EnteredCurrentStatus": 1795379673,
  "GlobalJobId": "localhost#15.0#1795379649",
  "HoldReason": "Transfer input files failure at access point localhost while sending files to execution point slot1_1@localhost. Details: 1 total failures: first failure: reading from file /home/tester/try/missing.dat: (errno 2) No such file or directory",
  "HoldReasonCode": 13,
  "HoldReasonSubCode": 2,
  "JobStatus": 5,
  "NumHolds": 4,
  "NumJobStarts": 0,
  "Owner": "tester",
  "ProcId": 0,
  "QDate": 1795379649,
  "RequestMemory": 16
}
]
"#;

/// Writes a `condor_q` that prints `queue` and records its arguments.
pub(crate) fn put_condor_q(place: &Place, queue: &str) {
    place.write("queue.json", queue);
    let here = place.path("");
    let script = format!(
        "echo \"$@\" >> {0}/asked\ncat {0}/queue.json",
        here.display()
    );
    place.put_program("condor_q", &script);
}

/// Calls the program as a script of DAGMan 14.
fn call_as_script(place: &Place, args: &str) -> Outcome {
    let path = format!("{}:/usr/bin:/bin", place.path("").display());
    let mut command = place.command(args);
    command.env("PATH", path).env("CONDOR_ID", "14.0");
    Outcome::of(command.output().expect("it starts"))
}

/// Calls the program, which must succeed without output, and returns the advice that it writes to
/// `file`.
fn advice_of(place: &Place, args: &str, file: &str) -> String {
    let outcome = call_as_script(place, args);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(outcome.stdout, "", "{outcome}");
    fs_err::read_to_string(place.path(file)).expect("advice")
}

/// Returns the queue of the bundled log, limited to clusters where `is_wanted` is true.
pub(crate) fn queue_of(is_wanted: impl Fn(i64) -> bool) -> String {
    let jobs: Vec<_> = queue()
        .into_iter()
        .filter(|job| is_wanted(job["ClusterId"].as_i64().expect("a number")))
        .collect();
    serde_json::to_string_pretty(&jobs).expect("JSON")
}

#[test]
fn held_node_gets_advice_on_its_job() {
    let place = Place::with_log();
    place.copy("run", "mine");
    put_condor_q(&place, &queue_of(|cluster| cluster == 1161));
    let said = advice_of(
        &place,
        "advise mine --log EventLog.xz --dag A/1",
        "A_1.advice",
    );
    let filters = [(r"ROC-AUC .*", "ROC-AUC ..."), (r"\n *\[.*", "")];
    insta::with_settings!({filters => filters}, {
        insta::assert_snapshot!("advice_on_a_node", said);
    });
    let asked = fs_err::read_to_string(place.path("asked")).expect("it was asked");
    assert_eq!(asked.lines().count(), 1);
    assert!(
        asked.starts_with("-allusers -constraint JobStatus==5 && DAGManJobId==14 && DAGNodeName==\"A/1\" -json -attributes ClusterId,"),
        "{asked}"
    );
    let ledger = fs_err::read_to_string(place.path("mine/answers.jsonl")).expect("kept");
    assert!(ledger.contains("\"cluster\":1161"), "{ledger}");

    // Advice on several jobs of a node is a page, and replaces the earlier advice.
    put_condor_q(&place, &queue_of(|cluster| cluster != 1161));
    let said = advice_of(
        &place,
        "advise mine --log EventLog.xz --dag A/1",
        "A_1.advice",
    );
    assert!(
        said.contains("node A/1 of DAGMan 14: 7 held jobs\n") && said.contains("  code "),
        "{said}"
    );
    assert!(!said.contains("left out"), "{said}");
}

#[test]
fn a_held_node_gets_rules_where_there_is_no_model() {
    let place = Place::new();
    put_condor_q(&place, NODE_QUEUE);
    insta::assert_snapshot!(advice_of(&place, "advise --dag A", "A.advice"));

    put_condor_q(&place, "");
    insta::assert_snapshot!(advice_of(&place, "advise --dag A", "A.advice"), @"2026-11-21 03:26:17 UTC, node A of DAGMan 14: no job of it is held any more");
    put_condor_q(&place, "\u{1b}[31m");
    let said = advice_of(&place, "advise no/such/run --dag A\u{1b}", "A_.advice");
    assert!(
        said.contains("node A\\u{1b} of DAGMan 14: the queue does not answer\n\nerror: ")
            && !said.contains('\u{1b}'),
        "{said}"
    );
}

/// Runs `condor/held-node.sh` for node A with its home in `place`, where `event_log` is HTCondor's log;
/// returns the arguments with which it calls the program.
fn arguments_of_script(place: &Place, event_log: &str) -> String {
    fs_err::create_dir_all(place.path(".local/bin")).expect("made");
    fs_err::create_dir_all(place.path("held-jobs")).expect("made");
    // The script does not wait for the program, and the pipe does.
    let pipe = place.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    place.put_program(
        ".local/bin/poolcast",
        &format!("echo \"$@\" >{}", pipe.display()),
    );
    place.put_program("condor_config_val", &format!("echo {event_log}"));
    let script = place.path("held-jobs/held-node.sh");
    fs_err::copy(repository_path("condor/held-node.sh"), &script).expect("copied");
    let home = place.path("").display().to_string();
    let home = home.trim_end_matches('/');
    let ended = Command::new("sh")
        .arg(&script)
        .arg("A")
        .current_dir(home)
        .env("HOME", home)
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", place.path("").display()),
        )
        .status();
    assert!(ended.expect("a shell").success());
    let arguments = fs_err::read_to_string(&pipe).expect("read");
    fs_err::remove_file(&pipe).expect("removed");
    arguments.replace(home, "HOME")
}

#[test]
fn held_node_script_names_the_run_and_the_log_that_are_there() {
    let place = Place::new();
    let log = place.path("EventLog").display().to_string();
    assert_eq!(arguments_of_script(&place, &log), "-q advise --dag A\n");
    place.write("EventLog", "");
    fs_err::create_dir_all(place.path("held-jobs/out")).expect("made");
    assert_eq!(
        arguments_of_script(&place, &log),
        "-q advise HOME/held-jobs/out --log HOME/EventLog --dag A\n"
    );
}

#[test]
fn a_script_of_no_dagman_is_told_so() {
    let place = Place::new();
    insta::assert_snapshot!(place.run("advise --dag A"), @"
    exit 2
    error: not called by DAGMan: CONDOR_ID is not the id of a job

    hint: `--dag` is for the SCRIPT HOLD of a DAG; at a prompt, type `poolcast advise JOB`
    ");
    let both = call_as_script(&place, "advise --dag A --queue now");
    assert_eq!(both.code, Some(2), "{both}");
}
