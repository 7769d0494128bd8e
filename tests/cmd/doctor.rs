//! `poolcast doctor`: what a machine has and lacks.

use crate::collect::generation;
use crate::json_documents::{PrintedKeys, printed_keys};
use crate::own_logs::with_programs;
use crate::place::{Outcome, Place};

/// Options of the call: the time is shortly after the events of [`generation`].
const CALL: &str = "doctor --now 2026-11-22T00:00:00Z";

/// A `condor_config_val` that knows the log `EventLog` of the test, and no other setting than these.
fn settings(place: &Place, more: &str) -> String {
    format!(
        "case $1 in EVENT_LOG) echo {} ;; LOG) echo /var/log/condor ;; QUEUE_SUPER_USERS) echo root, condor; echo false ;; {more} *) echo \"Not defined: $1\" >&2; exit 1 ;; esac",
        place.path("EventLog").display()
    )
}

fn examine(place: &Place, args: &str, settings: &str, queue: &str) -> Outcome {
    let programs = [
        ("condor_config_val", settings),
        ("condor_q", queue),
        ("condor_history", "echo '[]'"),
    ];
    let mut outcome = with_programs(place, args, &programs);
    let dir = place.path("").display().to_string();
    outcome.stdout = outcome.stdout.replace(dir.trim_end_matches('/'), "DIR");
    outcome
}

/// Returns the lines about one check.
fn line<'a>(outcome: &'a Outcome, check: &str) -> &'a str {
    let found = outcome
        .stdout
        .lines()
        .find(|line| line[6..].starts_with(check));
    found.unwrap_or_else(|| panic!("no line about {check}: {outcome}"))
}

pub(crate) fn doctor_documents() -> PrintedKeys {
    let place = Place::new();
    let call = format!("{CALL} --json");
    let outcome = place.run(&call);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let document = serde_json::from_str(&outcome.stdout).expect("JSON");
    printed_keys(&call, &document)
}

#[test]
fn machine_without_htcondor_says_so() {
    let place = Place::new();
    let outcome = place.run(CALL);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    insta::assert_snapshot!(outcome.stdout);
}

#[test]
fn log_queue_and_rights_are_examined() {
    let place = Place::new();
    let held = "012 (1.0.0) 11/21 01:12:00 Job was held.\n\tno reason\n\tCode 6 Subcode 122\n...\n";
    place.write("EventLog", generation(5, 0, held));
    place.write("EventLog.1", generation(2, 0, held));
    let rotation = "EVENT_LOG_MAX_SIZE) echo 1000000 ;; EVENT_LOG_MAX_ROTATIONS) echo 1 ;;";
    let bad = examine(&place, CALL, &settings(&place, rotation), "exec sleep 60");
    assert_eq!(bad.code, Some(1), "{bad}");
    for (check, words) in [
        ("event log", "good"),
        ("gaps", "BAD   gaps"),
        ("span", "BAD"),
        ("rotation", "BAD"),
        ("years", "good"),
        ("clock", "good"),
        ("queue", "BAD"),
        ("history", "good"),
        ("model", "BAD"),
    ] {
        assert!(line(&bad, check).starts_with(words), "{check}: {bad}");
    }
    assert!(bad.stdout.contains("missing between 2 and 5"), "{bad}");
    let answers = examine(&place, CALL, &settings(&place, ""), "echo '[]'");
    assert!(line(&answers, "queue").contains("0 held jobs"), "{answers}");
    assert!(line(&answers, "others' jobs").starts_with("-"), "{answers}");
}

#[test]
fn schedd_that_begins_is_waited_for() {
    let place = Place::new();
    let fails_once =
        "if [ -e asked ]; then echo '[]'; else touch asked; echo no schedd >&2; exit 1; fi";
    let elsewhere = examine(&place, CALL, &settings(&place, ""), fails_once);
    assert!(line(&elsewhere, "queue").starts_with("BAD"), "{elsewhere}");
    assert!(!elsewhere.stderr.contains("waiting"), "{elsewhere}");

    fs_err::remove_file(place.path("asked")).expect("it was asked");
    let daemons = "DAEMON_LIST) echo MASTER, SCHEDD ;;";
    let here = examine(&place, CALL, &settings(&place, daemons), fails_once);
    assert!(line(&here, "queue").starts_with("good"), "{here}");
    assert!(here.stderr.contains("waiting up to 30 s"), "{here}");
}

#[test]
fn undefined_and_unreadable_logs_get_what_to_type() {
    let place = Place::new();
    let undefined = "case $1 in LOG) echo /x ;; *) echo \"Not defined: $1\" >&2; exit 1 ;; esac";
    let outcome = examine(&place, CALL, undefined, "echo '[]'");
    assert!(
        outcome.stdout.contains("BAD   event log") && outcome.stdout.contains("poolcast site init"),
        "{outcome}"
    );
    let missing = examine(&place, CALL, &settings(&place, ""), "echo '[]'");
    assert!(line(&missing, "rights").starts_with("BAD"), "{missing}");
    let broken = examine(
        &place,
        CALL,
        "echo no configuration >&2; exit 1",
        "echo '[]'",
    );
    assert!(line(&broken, "htcondor").starts_with("BAD"), "{broken}");
}

#[test]
fn hostile_paths_do_not_reach_the_terminal() {
    let place = Place::new();
    let hostile = "case $1 in EVENT_LOG) printf '/a\\033[31mb\\n' ;; *) echo x ;; esac";
    let outcome = examine(&place, CALL, hostile, "echo '[]'");
    assert!(!outcome.stdout.contains('\u{1b}'), "{outcome}");
}
