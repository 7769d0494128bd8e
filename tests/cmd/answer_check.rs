//! Tests of `poolcast advise --check`: the outcomes of earlier answers.

use crate::place::{LOG_TEXT, Place};

/// A test directory with a run of its own, and the bundled log up to 02:15.
pub(crate) fn place() -> Place {
    let place = Place::with_answers();
    fs_err::rename(place.path("run"), place.path("mine")).expect("moved");
    let log = &*LOG_TEXT;
    let end = log
        .find(") 11/21 02:15:00")
        .expect("a record of that second");
    let end = log[..end].rfind("...\n").expect("the end of a record") + 4;
    place.write("EventLog", &log[..end]);
    place
}

#[test]
fn answers_are_held_against_what_came_of_the_jobs() {
    let place = place();
    let none = place.stdout("advise mine --log EventLog --check");
    assert_eq!(
        none,
        "no answer was given yet: `poolcast advise` gives and saves them\n"
    );

    let given = place.json("advise mine --log EventLog --json");
    let ledger = || fs_err::read_to_string(place.path("mine/answers.jsonl")).expect("kept");
    let first = ledger();
    let held = given["held"].as_u64().expect("a number") as usize;
    assert_eq!(first.lines().count(), held);
    assert!(
        !first.contains("tester") && !first.contains("No such file"),
        "{first}"
    );
    place.stdout("advise mine --log EventLog --jobs");
    assert_eq!(ledger(), first, "the same answer is not kept twice");

    insta::assert_snapshot!(place.stdout("advise mine --log EventLog.xz --check"), @"
    Answers given since 2026-11-21 02:14:59 UTC, and outcomes of the jobs until 2026-11-21 02:26:17 UTC
    answer          given  held  released  decided  undecided  succeeded  repaired  right  95 % interval  with hidden repairs
    probe               4     0         4        1          0          1         0      -              -                    -
    fix                 5     0         5        5          0          0         0  100 %       51-100 %                    -
    fix (possibly)     18     0        17       17          0          0         0  100 %       68-100 %                    -
    leave               1     0         1        1          0          0         0      -              -                    -
    22 of 22 decided answers were right
    undecided: successes after fix without a repair that is known; the fault may have been fixed as the answer asks
    repaired: the log shows that the job was changed before it succeeded, the answer printed the command that changes it, or looks found its file missing and then there
    right: a success after release, a failure or a repair after fix, a failure after remove, and after later a success within three releases; after later, two failures among them are wrong, and one failure decides nothing
    interval: jobs of one cluster count as one
    with hidden repairs: the share of right answers if all undecided jobs, and all that succeeded after a release by hand for later, were repaired, and if none was
    ");
    let check = place.json("advise mine --log EventLog.xz --check --json");
    let rows = check["answers"].as_array().expect("a list");
    let sum = |key: &str| {
        rows.iter()
            .map(|row| row[key].as_u64().unwrap_or(0))
            .sum::<u64>() as usize
    };
    assert_eq!(sum("given"), held);
    assert!(
        sum("decided") <= sum("released") && sum("released") + sum("still_held") <= held,
        "{check}"
    );
    assert_eq!(check["since_ms"], given["asked_ms"]);

    // The page summarizes the check in one line.
    let page = place.stdout("advise mine --log EventLog.xz");
    let head = page.split("\n\n").next().expect("a head");
    let filters = [
        (r"(?m)^model .*(\n  .*)?", "model ..."),
        (r"(?m)^note: .*(\n  .*)?", "note: ..."),
    ];
    insta::with_settings!({filters => filters}, {
        insta::assert_snapshot!(head, @"
        8 held jobs: 8 to fix first
        log of localhost: 2026-11-21 01:49 to 2026-11-21 02:26 UTC, 2,119 holds
        rules answer, and the outcomes of earlier holds: learned until 2026-11-21 02:26
          UTC (0 holds since), rehearsed on its log: right about 131 of 141 faults, and
          in 23 of 23 firm answers
        good until 2026-11-21 02:26:29 UTC, which is over: ask with `--queue now`
        earlier answers since 2026-11-21 02:14 UTC: FIX 22 of 22 right, TRY ONE 1
          succeeded and 0 failed
        ");
    });
    let then = place.stdout("advise mine --log EventLog.xz --at 2026-11-21T02:20:00Z");
    assert!(!then.contains("earlier answers"), "{then}");
    place.write("mine/answers.jsonl", &first);
    let undecided = place.stdout("advise mine --log EventLog");
    assert!(!undecided.contains("earlier answers"), "{undecided}");

    // A killed call leaves part of a line.
    place.write("mine/answers.jsonl", &first[..first.len() - 20]);
    place.stdout("advise mine --log EventLog");
    let again = place.json("advise mine --log EventLog.xz --check --json");
    assert_eq!(again["answers"], check["answers"]);
}

#[test]
fn a_ledger_that_is_none_of_ours_is_named_and_no_reason_to_be_silent() {
    let place = place();
    fs_err::create_dir(place.path("mine/answers.jsonl")).expect("made");
    let said = place.run("advise mine --log EventLog --jobs");
    assert_eq!(said.code, Some(0), "{said}");
    assert!(
        said.stderr
            .starts_with("note: these answers are not saved for `--check`"),
        "{said}"
    );
    fs_err::remove_dir(place.path("mine/answers.jsonl")).expect("removed");

    place.write("mine/answers.jsonl", "{\"version\": 9}\n");
    insta::assert_snapshot!(place.run("advise mine --log EventLog --check"), @"
    exit 2
    error: `mine/answers.jsonl` has version 9, expected 1

    hint: move it away: the next answers start a new file
    ");
    place.write("mine/answers.jsonl", "{\u{1b}[31m}\n");
    insta::assert_snapshot!(place.run("advise mine --log EventLog --check"), @"
    exit 2
    error: `mine/answers.jsonl` has a damaged line
      caused by: key must be a string at line 1 column 2

    hint: move it away: the next answers start a new file
    ");
}

/// Returns the log of one job that is held for a missing file; with its success after a release if
/// `is_whole`. It is changed before that if `is_edited`.
fn log_of_one_job(is_whole: bool, is_edited: bool) -> String {
    let mut records = vec![
        ("000", "00", "Job submitted from host: <10.0.0.1:9618>"),
        (
            "012",
            "10",
            "Job was held.\n\tTransfer input files failure at access point localhost: reading from file /home/ada/typo.dat\n\tCode 13 Subcode 2",
        ),
    ];
    if is_whole {
        if is_edited {
            records.push((
                "033",
                "20",
                "Changing job attribute TransferInput from typo.dat to type.dat",
            ));
        }
        records.extend([
            (
                "013",
                "30",
                "Job was released.\n\tvia condor_release (by user ada)",
            ),
            ("001", "40", "Job executing on host: <10.0.0.2:9618>"),
            (
                "005",
                "50",
                "Job terminated.\n\t(1) Normal termination (return value 0)",
            ),
        ]);
    }
    let text = |&(number, second, body): &(&str, &str, &str)| {
        format!("{number} (7.0.0) 2026-11-21 02:00:{second} {body}\n...\n")
    };
    records.iter().map(text).collect()
}

#[test]
fn fix_is_right_if_the_job_succeeds_repaired_and_else_undecided() {
    let place = Place::with_answers();
    place.write("EventLog", log_of_one_job(false, false));
    assert_eq!(
        place.json("advise run --log EventLog --json")["counts"]["fix"],
        1
    );
    let check = |is_edited| {
        place.write("EventLog", log_of_one_job(true, is_edited));
        let check = place.json("advise run --log EventLog --check --json");
        let page = place.stdout("advise run --log EventLog");
        assert_eq!(
            page.contains("UTC: FIX 1 of 1 right\n"),
            is_edited,
            "{page}"
        );
        assert_eq!(page.contains("earlier answers"), is_edited, "{page}");
        assert_eq!(check["total"].is_null(), !is_edited);
        let row = &check["answers"][0];
        ["decided", "undecided", "repaired", "right"].map(|key| row[key].as_u64().expect(key))
    };
    assert_eq!(check(false), [0, 1, 0, 0]);
    assert_eq!(check(true), [1, 0, 1, 1]);
}

/// Eight jobs are held for memory, and succeed after the printed `condor_qedit`, which writes no event.
#[test]
fn who_types_the_printed_commands_makes_fix_right() {
    let place = Place::with_answers();
    let records = |is_whole: bool| {
        let mut text = String::new();
        for proc in 0..8 {
            let mut add = |number: &str, second: u32, body: &str| {
                text.push_str(&format!(
                    "{number} (7.{proc}.0) 2026-11-21 02:00:{second:02} {body}\n...\n"
                ));
            };
            add("000", 0, "Job submitted from host: <10.0.0.1:9618>");
            add(
                "028",
                0,
                "Job ad information event triggered.\nOwner = \"ada\"\nRequestMemory = 128",
            );
            add("001", 1, "Job executing on host: <10.0.0.2:9618>");
            add(
                "006",
                5,
                "Image size of job updated: 150000\n\t150  -  MemoryUsage of job (MB)\n\t150000  -  ResidentSetSize of job (KB)",
            );
            add(
                "012",
                10,
                "Job was held.\n\tmemory usage exceeded request_memory\n\tCode 34 Subcode 102",
            );
            if is_whole {
                add(
                    "013",
                    30,
                    "Job was released.\n\tvia condor_release (by user ada)",
                );
                add("001", 40, "Job executing on host: <10.0.0.2:9618>");
                add(
                    "005",
                    50,
                    "Job terminated.\n\t(1) Normal termination (return value 0)",
                );
            }
        }
        text
    };
    place.write("EventLog", records(false));
    let page = place.stdout("advise run --log EventLog");
    assert!(page.contains("RequestMemory"), "{page}");
    place.write("EventLog", records(true));
    let page = place.stdout("advise run --log EventLog");
    assert!(page.contains("UTC: FIX 8 of 8 right\n"), "{page}");
}

/// Appends jobs to the whole log that were held at 02:27:01, after the model had learned; the log
/// shows no repair, and `successes` of them succeed. Also writes that they got this `answer`: an action and its
/// firmness.
fn write_told(place: &Place, log: &str, answer: (&str, &str), (successes, of): (u32, u32)) {
    let (action, firmness) = answer;
    let mut records = String::new();
    let mut ledger = String::new();
    for cluster in 9001..9001 + of {
        let value = u32::from(cluster >= 9001 + successes);
        let mut add = |number: &str, second: u32, body: &str| {
            records.push_str(&format!(
                "{number} ({cluster}.000.000) 11/21 02:27:{second:02} {body}\n...\n"
            ));
        };
        add("000", 0, "Job submitted from host: <10.0.0.1:9618>");
        add("012", 1, "Job was held.\n\tquota\n\tCode 6 Subcode 122");
        add(
            "013",
            2,
            "Job was released.\n\tvia condor_release (by user ada)",
        );
        add("001", 3, "Job executing on host: <10.0.0.2:9618>");
        let end = format!("Job terminated.\n\t(1) Normal termination (return value {value})");
        add("005", 4, &end);
        let submitted_ms = 1_795_228_020_000_u64;
        let held_ms = submitted_ms + 1000;
        ledger.push_str(&format!(
            "{{\"version\":1,\"ap\":\"localhost\",\"cluster\":{cluster},\"proc\":0,\"submitted_ms\":{submitted_ms},\"held_ms\":{held_ms},\"action\":\"{action}\",\"firmness\":\"{firmness}\",\"probability\":0.1,\"asked_ms\":{held_ms}}}\n"
        ));
    }
    place.write("EventLog", format!("{log}{records}"));
    place.write("mine/answers.jsonl", ledger);
}

#[test]
fn kind_that_breaks_its_promise_is_called_less_firm() {
    let place = place();
    let log = &*LOG_TEXT;
    let told = |document: &serde_json::Value| {
        let groups = document["groups"].as_array().expect("groups").iter();
        let by_model = groups.filter(|group| !group["odds"].is_null());
        let answers = by_model.map(|group| (group["action"].clone(), group["firmness"].clone()));
        answers.collect::<Vec<_>>()
    };
    let advise = "advise mine --log EventLog";
    let fix = ("fix", "probable");
    write_told(&place, log, fix, (0, 20));
    let kept = told(&place.json(&format!("{advise} --json")));
    assert!(kept.iter().any(|(action, _)| action == "fix"), "{kept:?}");

    // A user who does what FIX asks for shows nothing against it.
    write_told(&place, log, fix, (15, 20));
    let obeyed = place.json(&format!("{advise} --json"));
    assert_eq!(told(&obeyed), kept);
    assert_eq!(obeyed["earlier"]["kinds"][0]["right"], 5);
    let page = place.stdout(advise);
    assert!(page.contains("UTC: FIX 5 of 5 right\n"), "{page}");
    assert!(!page.contains("was right in only"), "{page}");
    insta::assert_snapshot!(place.stdout(&format!("{advise} --check")), @"
    Answers given since 2026-11-21 02:27:01 UTC, and outcomes of the jobs until 2026-11-21 02:27:04 UTC
    answer          given  held  released  decided  undecided  succeeded  repaired  right  95 % interval  with hidden repairs
    fix                 7     7         0        0          0          0         0      -              -                    -
    fix (probably)     20     0        20        5         15          0         0  100 %       57-100 %             25-100 %
    fix (possibly)      1     1         0        0          0          0         0      -              -                    -
    5 of 5 decided answers were right
    undecided: successes after fix without a repair that is known; the fault may have been fixed as the answer asks
    repaired: the log shows that the job was changed before it succeeded, the answer printed the command that changes it, or looks found its file missing and then there
    right: a success after release, a failure or a repair after fix, a failure after remove, and after later a success within three releases; after later, two failures among them are wrong, and one failure decides nothing
    interval: jobs of one cluster count as one
    with hidden repairs: the share of right answers if all undecided jobs, and all that succeeded after a release by hand for later, were repaired, and if none was
    ");

    write_told(&place, log, ("release", "probable"), (5, 20));
    let page = place.stdout(advise);
    let page = page.replace("\n  ", " ");
    let note = "note: PROBABLY RELEASE AS IT IS was right in only 5 of 20 cases since the model was learned: such answers are called POSSIBLY RELEASE AS IT IS until `poolcast learn` learns again";
    assert!(page.contains(note), "{page}");
    assert!(page.contains("UTC: RELEASE 5 of 20 right\n"), "{page}");

    // Nineteen answers contradict nothing.
    write_told(&place, log, ("release", "probable"), (5, 19));
    let page = place.stdout(advise);
    assert!(!page.contains("was right in only"), "{page}");
}
