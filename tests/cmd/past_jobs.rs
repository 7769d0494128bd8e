//! Tests of `--history`: `run`, `policy` and `advise` for users without an event log.

use std::fmt::Write as _;

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

    // The held jobs of such a run are those in the queue.
    let advice = with_programs(&place, "advise", &programs);
    assert_eq!(advice.code, Some(0), "{advice}");
    assert!(advice.stdout.starts_with("1 held job: "), "{advice}");
    assert!(
        advice.stdout.contains("learned from the history"),
        "{advice}"
    );

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
        (&"history".into(), &serde_json::Value::Null)
    );
    let whole = place.stdout("policy --history jobs.json runs.json");
    assert!(whole.contains("of 4 hold codes, none was shown"), "{whole}");
    assert!(whole.contains("learned from the history"), "{whole}");
    assert_eq!(place.run("policy --history out.json").code, Some(2));
    let both = place.run("policy --history jobs.json --log jobs.json");
    assert_eq!(both.code, Some(2), "{both}");
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
