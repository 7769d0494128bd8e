//! Tests of `--history`: `run`, `policy` and `advise` for users without an event log.

use std::fmt::Write as _;

use serde_json::Value;

use crate::json_documents::{PrintedKeys, print_all};
use crate::own_logs::with_programs;
use crate::place::{Place, repository_path};

/// Scripts of HTCondor's programs: the history of a real pool, and a queue with one held job.
const HISTORY: &str = "case \"$*\" in *-epochs*) cat runs.json ;; *) cat jobs.json ;; esac";
const QUEUE: &str = r#"echo '[{"ClusterId": 9, "ProcId": 0, "GlobalJobId": "localhost#9.0#1795648860", "Owner": "ada", "QDate": 1795648860,
    "JobStatus": 5, "HoldReasonCode": 12, "HoldReasonSubCode": 2, "HoldReason": "no output", "EnteredCurrentStatus": 1795648870,
    "JobCurrentStartDate": 1795648865, "NumShadowStarts": 1, "NumHolds": 1}]'"#;

/// A directory with the history of a real pool: the ads of jobs, and the ads of their runs.
fn place_with_history() -> Place {
    let place = Place::new();
    for name in ["jobs.json", "runs.json"] {
        let bytes = fs_err::read(repository_path(&format!("tests/data/history/{name}")));
        place.write(name, bytes.expect("read"));
    }
    place
}

/// Returns the keys for what was learned from a history.
pub(crate) fn history_documents() -> PrintedKeys {
    let place = place_with_history();
    place.stdout("run --history jobs.json -o run");
    let calls = [
        "policy --history jobs.json --json",
        "parse run/history.log -o events --json",
        "tensors events -o tensors --json",
    ];
    print_all(&place, &calls)
}

#[test]
fn a_history_teaches_and_the_results_say_so() {
    let place = place_with_history();
    let run = place.run("run --history jobs.json runs.json -o run");
    assert_eq!(run.code, Some(0), "{run}");
    let learned = "learned from the history: the last hold of each job and its end";
    assert!(run.stdout.contains(learned), "{run}");
    assert!(
        run.stderr
            .contains("note: the history shows 19 holds of 12 jobs\n"),
        "{run}"
    );
    let report = place.json("run --history jobs.json runs.json -o run --json");
    assert_eq!(report["source"], "history");
    assert_eq!(report["events"]["events_by_number"]["12"], 19);
    let mode = fs_err::metadata(place.path("run/history.log")).expect("written");
    assert!(mode.is_file());

    place.write("EventLog", "000 (1.0.0) 2026-11-21 01:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n012 (1.0.0) 2026-11-21 01:01:00 Job was held.\n\tx\n\tCode 12 Subcode 2\n...\n");
    let of_log = place.json("run --log EventLog -o of-log --json");
    assert_eq!(of_log["source"], "log");
}

#[test]
fn the_history_and_the_queue_here_are_asked() {
    let place = place_with_history();
    let programs = [("condor_history", HISTORY), ("condor_q", QUEUE)];
    let run = with_programs(&place, "run --history now -o out", &programs);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("19 holds of 12 jobs"), "{run}");

    // The held jobs of such a run are those in the queue. A request asks the history again.
    let asked = format!("echo asked >> asked; {HISTORY}");
    let programs = [("condor_history", asked.as_str()), ("condor_q", QUEUE)];
    for (call, queries) in [("advise", 0), ("advise --history now", 2)] {
        let advice = with_programs(&place, call, &programs);
        assert_eq!(advice.code, Some(0), "{advice}");
        assert!(advice.stdout.starts_with("1 held job: "), "{advice}");
        assert!(
            advice.stdout.contains("learned from the history"),
            "{advice}"
        );
        let asked = fs_err::read_to_string(place.path("asked")).unwrap_or_default();
        assert_eq!(asked.lines().count(), queries, "of jobs, and of runs");
    }

    let old = "case \"$*\" in *-epochs*) echo 'Error: Unknown argument' >&2; exit 1 ;; *) cat jobs.json ;; esac";
    let run = with_programs(
        &place,
        "run --history now -o old",
        &[("condor_history", old)],
    );
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stderr.contains(
            "the ads of runs are not used: condor_history failed: Error: Unknown argument"
        ) && run
            .stderr
            .contains("it lacks 10 earlier holds of these jobs"),
        "{run}"
    );
}

#[test]
fn a_policy_is_not_made_from_last_holds_alone() {
    let place = place_with_history();
    let refused = place.stdout("policy --history jobs.json");
    assert!(
        refused.starts_with("no periodic_release: the history shows 9 holds, and lacks 10 earlier holds that were followed by another hold"),
        "{refused}"
    );
    let document = place.json("policy --history jobs.json --json");
    assert_eq!(
        (&document["source"], &document["expression"]),
        (&"history".into(), &Value::Null)
    );
    let whole = place.stdout("policy --history jobs.json runs.json");
    assert!(whole.contains("of 4 hold codes, none was shown"), "{whole}");
    assert!(whole.contains("learned from the history"), "{whole}");
    assert_eq!(place.run("policy --history out.json").code, Some(2));
    let both = place.run("policy --history jobs.json --log jobs.json");
    assert_eq!(both.code, Some(2), "{both}");
}

/// Returns a list of past jobs, numbered from 100, that were held once: every other job for a lost
/// output file, after which it ended with `exit_code`; the others for another reason, after which they
/// ended otherwise.
fn held_once(exit_code: i32) -> String {
    let ads = (0..60).map(|number| {
        let (job, submit_s) = (100 + number, 1_795_150_000 + 600 * number);
        let [start_s, again_s, end_s] = [60, 1800, 2400].map(|after_s| submit_s + after_s);
        let (subcode, code) = match number % 2 {
            0 => (2, exit_code),
            _ => (256, 1 - exit_code),
        };
        format!(
            r#"{{"ClusterId": {job}, "ProcId": 0, "GlobalJobId": "10.0.0.1#{job}.0#{submit_s}", "QDate": {submit_s}, "Owner": "ada",
            "JobStatus": 4, "ExitCode": {code}, "ExitBySignal": false, "NumHolds": 1, "NumShadowStarts": 2, "JobStartDate": {start_s},
            "JobLastStartDate": {start_s}, "JobCurrentStartDate": {again_s}, "CompletionDate": {end_s}, "RemoteWallClockTime": 700.0,
            "LastRemoteWallClockTime": 600.0, "LastHoldReasonCode": 12, "LastHoldReasonSubCode": {subcode}, "LastHoldReason": "no reason"}}"#
        )
    });
    format!("[{}]", ads.collect::<Vec<_>>().join(", "))
}

/// A queue with the jobs of [`held_once`], and then one that was held for a lost output file.
const HELD_LATER: &str = r#"[{"ClusterId": 200, "ProcId": 0, "GlobalJobId": "10.0.0.1#200.0#1795223400", "QDate": 1795223400, "Owner": "ada",
    "JobStatus": 5, "EnteredCurrentStatus": 1795224180, "HoldReasonCode": 12, "HoldReasonSubCode": 2, "HoldReason": "no reason",
    "NumHolds": 1, "NumShadowStarts": 1, "JobCurrentStartDate": 1795223500}]"#;

/// Returns the program's answer about the only held job, and the number of earlier holds like its.
fn only_answer(document: &Value) -> (&str, Option<u64>) {
    let advice = document["advice"].as_array().expect("a list");
    assert_eq!(advice.len(), 1, "{document}");
    let action = advice[0]["action"].as_str().expect("an action");
    (action, advice[0]["like_cases"]["holds"].as_u64())
}

#[test]
fn the_ends_of_past_jobs_are_evidence() {
    let place = Place::new();
    place.write("queue.json", HELD_LATER);
    place.write("good.json", held_once(0));
    place.write("bad.json", held_once(1));
    let asked = |args: &str| -> Value {
        let mut command = place.command(&format!("advise --queue queue.json --json {args}"));
        let output = command.env("POOLCAST_ADVICE__PRIOR", "true").output();
        serde_json::from_slice(&output.expect("it starts").stdout).expect("JSON")
    };
    assert_eq!(only_answer(&asked("")), ("none", None));
    let good = asked("--history good.json");
    assert_eq!(only_answer(&good), ("probe", Some(30)));
    // All of them failed, and none got past the hold.
    assert_eq!(only_answer(&asked("--history bad.json")), ("fix", Some(30)));
    assert_eq!(
        (&good["source"], &good["holds"]),
        (&"history".into(), &61.into())
    );
    insta::assert_snapshot!(place.run("advise --queue queue.json --history good.json 200"));

    for history in ["missing.json", "Cargo.toml", "queue"] {
        fs_err::create_dir_all(place.path("queue")).expect("made");
        let refused = place.run(&format!("advise --queue queue.json --history {history}"));
        assert_eq!(refused.code, Some(2), "{refused}");
    }
    let twice = place.run("advise --queue - --history -");
    assert!(
        twice.code == Some(2) && twice.stderr.contains("standard input can be only one"),
        "{twice}"
    );
}

#[test]
fn hostile_and_missing_histories_cause_a_note() {
    let place = Place::new();
    place.write("queue.json", HELD_LATER);
    let big = i64::MAX;
    place.write(
        "hostile.json",
        format!(
            r#"[{{"JobStatus": 4}}, 7, {{"ClusterId": "x", "ProcId": 0, "QDate": 5}}, {{"ClusterId": 1, "ProcId": 0, "QDate": {big}}},
            {{"ClusterId": 7, "ProcId": 0, "QDate": 1795200000, "JobStatus": 4, "ExitCode": 0, "CompletionDate": 1, "NumHolds": {big},
            "GlobalJobId": "a b\u001b[31m#7.0#1", "LastHoldReasonCode": 12, "LastHoldReason": "\u001b[31m", "NumShadowStarts": -{big}}},
            {{"ClusterId": 8, "ProcId": 0, "QDate": 1795200000, "JobCurrentStartDate": 1, "EpochWriteDate": 253402300799,
            "HoldReasonCode": 999999999999, "RemoteHost": 5}}]"#
        ),
    );
    let hostile = place.run("advise --queue queue.json --history hostile.json");
    assert_eq!(hostile.code, Some(0), "{hostile}");
    assert!(
        hostile.stdout.starts_with("1 held job: ") && !hostile.stdout.contains('\u{1b}'),
        "{hostile}"
    );
    assert!(
        hostile.stderr.contains("3 ads could not be used"),
        "{hostile}"
    );

    place.write("none.json", r#"[{"JobStatus": 4}]"#);
    let none = place.run("advise --queue queue.json --history none.json");
    assert_eq!(none.code, Some(0), "{none}");
    assert!(
        none.stderr
            .contains("note: the history has no jobs that can be used; 1 ad without an id"),
        "{none}"
    );
    let missing = place.run("advise --queue queue.json --history now");
    assert_eq!(missing.code, Some(0), "{missing}");
    assert!(
        missing
            .stderr
            .contains("note: cannot use the history `now`: cannot run `condor_history`"),
        "{missing}"
    );
}

/// Events that are in a log and in the history count once.
#[test]
fn a_history_adds_to_logs_what_they_lack() {
    let place = place_with_history();
    place.stdout("run --history jobs.json runs.json -o run");
    let log = fs_err::read_to_string(place.path("run/history.log")).expect("read");
    let twice = place.json("advise run --history jobs.json --history runs.json --json");
    assert_eq!(twice["holds"], 19);
    // The beginning of the log has some of the holds, the history the others.
    let lines: Vec<&str> = log.lines().collect();
    let holds = |lines: &[&str]| lines.iter().filter(|line| line.contains(":12,")).count();
    let begun = &lines[..lines.len() / 2];
    assert!((5..15).contains(&holds(begun)), "{log}");
    place.write("begun.log", begun.join("\n") + "\n");
    let completed =
        place.json("advise --log begun.log --history jobs.json --history runs.json --json");
    assert_eq!(completed["holds"], 19);
}

#[test]
fn evidence_of_a_log_and_of_a_history_gives_the_same_answers() {
    let place = place_with_history();
    place.write(
        "held.json",
        QUEUE.trim_start_matches("echo '").trim_end_matches('\''),
    );
    place.write("other.log", "000 (99.0.0) 2026-11-21 01:00:00 Job submitted from host: <10.0.0.1:9618?alias=localhost>\n...\n");
    place.stdout("run --history jobs.json runs.json held.json -o run");
    let of_log = place.json("advise run --log other.log run/history.log --json");
    let of_history = place.json(
        "advise run --log other.log --history jobs.json --history runs.json --history held.json --json",
    );
    assert_eq!(of_log["advice"].as_array().map(Vec::len), Some(1));
    assert_eq!(of_log, of_history);
}

/// Jobs that succeeded after their only hold, as files of `PER_JOB_HISTORY_DIR`.
#[test]
fn files_of_jobs_give_an_expression() {
    let place = Place::new();
    fs_err::create_dir(place.path("per-job")).expect("made");
    for job in 0..120 {
        let submit_s = 1_795_000_000 + job * 3600;
        let mut ad = String::new();
        let times = [
            ("QDate", 0),
            ("JobStartDate", 60),
            ("JobLastStartDate", 60),
            ("JobCurrentStartDate", 1800),
            ("CompletionDate", 2400),
        ];
        for (name, after_s) in times {
            writeln!(ad, "{name} = {}", submit_s + after_s).expect("written");
        }
        writeln!(
            ad,
            "ClusterId = {job}\nProcId = 0\nOwner = \"ada\"\nGlobalJobId = \"ap#{job}.0#{submit_s}\"\nJobStatus = 4\nExitCode = 0\n\
             ExitBySignal = false\nNumHolds = 1\nNumShadowStarts = 2\nRemoteWallClockTime = 700.0\nLastRemoteWallClockTime = 600.0\n\
             LastHoldReasonCode = 12\nLastHoldReasonSubCode = 256\nLastHoldReason = \"the plug-in failed\""
        )
        .expect("written");
        place.write(&format!("per-job/history.{job}.0"), ad);
    }
    place.write("per-job/history.1000.0", "not an ad");
    let policy = place.run("policy --history per-job");
    assert!(policy.stdout.contains("periodic_release = "), "{policy}");
    assert!(
        policy
            .stdout
            .contains("HoldReasonCode == 12 && HoldReasonSubCode == 256"),
        "{policy}"
    );
    assert!(
        policy.stderr.contains("1 file of `per-job` cannot be read"),
        "{policy}"
    );
}
