//! Tests of `poolcast explain`.

use std::process::Stdio;

use crate::json_documents::{PrintedKeys, printed_keys};
use crate::place::{Outcome, Place};

/// Explains `reason`, given as one argument, with further `options`.
fn explained(options: &str, reason: &str) -> Outcome {
    let place = Place::new();
    let mut command = place.command(&format!("explain {options}"));
    Outcome::of(command.arg(reason).output().expect("run"))
}

/// Returns the keys of the documents about reasons with each kind of number and amount.
pub(crate) fn explain_documents() -> PrintedKeys {
    let reasons = [
        "Job raised a signal 9. It has gone over memory limit of 2048 megabytes. Peak usage: 3100 megabytes.",
        "The job exceeded allowed job duration of 60 seconds",
        "Transfer input files failure. Details: reading from file /home/u/in: (errno 2) No such file or directory",
        "Failed to transfer file https://x.example/in: HTTP 503 Service Unavailable",
        "payload ended with exit code 139",
    ];
    let mut printed = PrintedKeys::new();
    for reason in reasons {
        let json = explained("--json", reason).stdout;
        let document = serde_json::from_str(&json).expect("JSON");
        printed.extend(printed_keys("explain --json", &document));
    }
    printed
}

#[test]
fn a_reason_is_explained_in_three_lines() {
    let program = "Error from slot1@w3.lab.example: Failed to execute '/scratch/condor/execute/dir_7/run.sh' with arguments 1: (errno=2: 'No such file or directory')";
    insta::assert_snapshot!(explained("", program), @"
    exit 0
    means: the machine slot1@w3.lab.example could not start the program run.sh: it does not exist (errno 2)
    do:    FIX, THEN RELEASE: run.sh cannot be started: correct its path; if it is a script, its first line must name an interpreter (#!) and have no DOS line end (dos2unix) (fault: the user; attributes: Cmd, TransferExecutable)
    look:  the program and its first line
    ");
    insta::assert_snapshot!(explained("--code 34 --subcode 102", "something new"), @"
    exit 0
    means: the job used more memory than it may: something new
    do:    FIX, THEN RELEASE: by the code alone: raise RequestMemory above the larger of limit and use (fault: the user; attributes: RequestMemory)
    look:  MemoryUsage and RequestMemory
    ");
    insta::assert_snapshot!(explained("", "something new"), @"
    exit 0
    means: not understood: something new
    do:    NO ADVICE: the text says too little
    look:  the job's log, and its ad: condor_q -l JOB
    ");
    let elsewhere = program
        .replace("slot1@w3", "slot2@w4")
        .replace("dir_7", "dir_8");
    let counted = format!(
        "   17 34 102 It has gone over memory limit of 64 megabytes.\n    3 6 2 {program}\n    1 6 2 {elsewhere}\n    2 34 102 It has gone over memory limit of 99 megabytes.\n"
    );
    insta::assert_snapshot!(explained("", &counted), @"
    exit 0
    19 jobs, hold code 34/102
    means: the job used more memory than it may (limit 64 MB)
    do:    FIX, THEN RELEASE: raise RequestMemory above the larger of limit and use (fault: the user; attributes: RequestMemory)
    look:  MemoryUsage and RequestMemory

    4 jobs, hold code 6/2
    means: the machine slot1@w3.lab.example could not start the program run.sh: it does not exist (errno 2)
    do:    FIX, THEN RELEASE: run.sh cannot be started: correct its path; if it is a script, its first line must name an interpreter (#!) and have no DOS line end (dos2unix) (fault: the user; attributes: Cmd, TransferExecutable)
    look:  the program and its first line
    ");
    insta::assert_snapshot!(explained("", " "), @"
    exit 2
    error: there is no reason to explain

    hint: name it in quotation marks, or pipe it: condor_q -af HoldReason JOB | poolcast explain
    ");
}

#[test]
fn a_reason_comes_from_standard_input_and_is_explained_as_json() {
    let place = Place::new();
    place.write(
        "reason",
        "Error from slot1@w3.lab.example: Job has gone over memory limit of 2048 megabytes. Peak usage: 3100 megabytes.\n",
    );
    let input = fs_err::File::open(place.path("reason")).expect("opened");
    let mut command = place.command("explain --json");
    let output = command.stdin(Stdio::from(input.into_parts().0)).output();
    let json = Outcome::of(output.expect("run")).stdout;
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let document = &document["reasons"][0];
    assert_eq!(document["action"], "fix");
    assert_eq!(document["facts"]["thing"], "memory");
    assert_eq!(document["facts"]["used"]["mib"], 3100);
    assert_eq!(document["attributes"][0], "RequestMemory");
}

#[test]
fn nothing_raw_of_a_reason_reaches_the_terminal() {
    let shown = explained("", "bad \u{1b}]0;title\u{7} \u{202e}word").stdout;
    assert!(
        !shown.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
}
