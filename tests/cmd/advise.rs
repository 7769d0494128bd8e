//! `poolcast advise`: held jobs of the bundled log, and job ids that get none.

use std::io::Read as _;

use crate::place::{Place, queue};

#[test]
fn a_rule_answers_by_itself() {
    let place = Place::with_run();
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz 1161.0"), @"
    exit 10
    1161.0: FIX, THEN RELEASE
      why: an input file is missing on the access point: put it back or correct its name, then release; of 192 earlier holds for this reason 0 succeeded once released, of the last ten 0
      hold code 13/2: input files could not be transferred to the job: no such file or directory
      held since 2026-11-21 02:26:02 UTC, 15 s when the log ends
      held 3 times so far, 3 times for this reason; no other job of its cluster is held for it now
      run: condor_q -hold 1161.0
      once it is fixed: condor_release 1161.0
    ");
    let json = place.run("advise run --log EventLog.xz 1161.0 --json");
    assert_eq!(json.code, Some(10));
    let document: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let advice = &document["advice"][0];
    assert_eq!(
        (&document["schema_version"], &advice["action"]),
        (&1.into(), &"fix".into())
    );
    assert!(
        advice["probability"].is_null() && advice["like_cases"].is_null(),
        "no odds where a rule decides"
    );
}

#[test]
fn the_moment_of_asking_can_be_named() {
    let place = Place::with_run();
    // 1161.0 was held at 02:26:02 for the third time, and the log ends at 02:26:17.
    let earlier = place.run("advise run --log EventLog.xz 1161.0 --at 2026-11-21T02:26:05Z");
    insta::assert_snapshot!(earlier);
    let seconds = place.run("advise run --log EventLog.xz 1161.0 --at 1795227965");
    assert_eq!(seconds.stdout, earlier.stdout);
    insta::assert_snapshot!(
        place.run("advise run --log EventLog.xz 1161.0 --at 2026-11-21T02:26:01")
    );
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz --at 2026-11-22"));
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz --at now"));
}

#[test]
fn nothing_after_the_moment_of_asking_has_influence() {
    let place = Place::with_run();
    let mut log = String::new();
    let file = fs_err::File::open(place.path("EventLog.xz")).expect("opened");
    liblzma::read::XzDecoder::new(file)
        .read_to_string(&mut log)
        .expect("read");
    let end = log
        .find(") 11/21 02:15:00")
        .expect("a record of that second");
    let end = log[..end].rfind("...\n").expect("the end of a record") + 4;
    place.write("EventLog", &log[..end]);

    let document = |args: &str| -> serde_json::Value {
        serde_json::from_str(&place.run(&format!("advise run {args} --json")).stdout).expect("JSON")
    };
    let known_then = document("--log EventLog");
    let at_ms = known_then["asked_ms"].as_i64().expect("ms");
    let at = jiff::Timestamp::from_millisecond(at_ms).expect("in range");
    let later = document(&format!("--log EventLog.xz --at {at}"));
    assert_eq!(later["asked_ms"], at_ms);
    assert_eq!(later["advice"], known_then["advice"]);
    assert!(
        known_then["advice"]
            .as_array()
            .is_some_and(|all| all.len() > 3)
    );
}

#[test]
fn all_held_jobs_are_those_of_the_queue() {
    let place = Place::with_run();
    let outcome = place.run("advise run --log EventLog.xz --json");
    assert_eq!(outcome.code, Some(40), "they differ");
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let advice = document["advice"].as_array().expect("a list");
    let found: Vec<&str> = advice
        .iter()
        .map(|advice| advice["job"].as_str().expect("an id"))
        .collect();
    let queue = queue();
    let mut held: Vec<&serde_json::Value> =
        queue.iter().filter(|ad| ad["JobStatus"] == 5).collect();
    held.sort_by_key(|ad| (ad["ClusterId"].as_i64(), ad["ProcId"].as_i64()));
    assert_eq!(
        found,
        held.iter()
            .map(|ad| format!("{}.{}", ad["ClusterId"], ad["ProcId"]))
            .collect::<Vec<_>>()
    );
    for (advice, ad) in advice.iter().zip(held) {
        assert_eq!(
            (&advice["hold_code"], &advice["hold_subcode"]),
            (&ad["HoldReasonCode"], &ad["HoldReasonSubCode"])
        );
        let since_s = advice["held_since_ms"].as_i64().expect("ms") / 1000;
        assert!(
            (since_s - ad["EnteredCurrentStatus"].as_i64().expect("s")).abs() <= 1,
            "{advice}"
        );
    }
}

#[test]
fn the_model_answers_where_no_rule_does() {
    let place = Place::with_run();
    let filters = [
        (r"unchanged: \d+ %", "unchanged: ## %"),
        (r"\d\.\d{2}\b", "#.##"),
    ];
    insta::with_settings!({filters => filters}, {
        insta::assert_snapshot!(place.run("advise run --log EventLog.xz 1185.0"), @"
        exit 40
        1185.0: NO ADVICE
          why: the odds are too even to say: answers to holds like it were wrong too often
          hold code 12/2: output files could not be transferred back: no such file or directory
          held since 2026-11-21 02:26:05 UTC, 12 s when the log ends
          held 3 times so far, 3 times for this reason; 3 other jobs of its cluster are held for it now
          probability of success if released unchanged: ## %
          the model on later holds: ROC-AUC #.## [#.##, #.##]; it can be wrong
        ");
    });
}

#[test]
fn a_cluster_at_once() {
    let place = Place::with_run();
    let text = place.run("advise run --log EventLog.xz 1185").stdout;
    let heads: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(' ') && !line.is_empty())
        .collect();
    assert_eq!(
        heads,
        [0, 1, 2, 3].map(|proc| format!("1185.{proc}: NO ADVICE"))
    );
}

#[test]
fn costs_decide_and_what_was_never_right_often_enough_is_not_said() {
    let place = Place::with_run();
    let action = |settings: &str| {
        place.copy("run", settings);
        let config =
            fs_err::read_to_string(place.path(settings).join("config.yaml")).expect("read");
        let (before, rest) = config.split_once("advice:\n").expect("a key");
        let after: Vec<&str> = rest
            .lines()
            .skip_while(|line| line.starts_with(' '))
            .collect();
        let advice = match settings {
            "release" => {
                "{precision: 0.9, probable_precision: 0.9, cost: {wasted_run: 1.0, lost_success: 1000.0}, remove_from_holds: 5}"
            }
            "fix" => {
                "{precision: 0.9, probable_precision: 0.9, cost: {wasted_run: 1000.0, lost_success: 1.0}, remove_from_holds: 5}"
            }
            "remove" => {
                "{precision: 0.9, probable_precision: 0.9, cost: {wasted_run: 1000.0, lost_success: 1.0}, remove_from_holds: 1}"
            }
            _ => "{precision: 1.0, probable_precision: 1.0, cost: null, remove_from_holds: 5}",
        };
        place.write(
            &format!("{settings}/config.yaml"),
            format!("{before}advice: {advice}\n{}\n", after.join("\n")),
        );
        // How good the model is has no part in this test.
        fs_err::remove_file(place.path(settings).join("evaluation-test.json")).expect("removed");
        let outcome = place.run(&format!("advise {settings} --log EventLog.xz 1185.0"));
        let first = outcome.stdout.lines().next().unwrap_or_default().to_owned();
        (
            outcome.code,
            first,
            outcome
                .stdout
                .lines()
                .rfind(|line| line.contains("condor_"))
                .map(str::trim)
                .map(str::to_owned),
        )
    };
    let said = |code, first: &str, last: Option<&str>| {
        (Some(code), first.to_owned(), last.map(str::to_owned))
    };
    assert_eq!(
        action("release"),
        said(
            0,
            "1185.0: RELEASE AS IT IS",
            Some("run: condor_release 1185.0")
        )
    );
    assert_eq!(
        action("fix"),
        said(
            10,
            "1185.0: FIX, THEN RELEASE",
            Some("once it is fixed: condor_release 1185.0")
        )
    );
    assert_eq!(
        action("remove"),
        said(20, "1185.0: REMOVE", Some("run: condor_rm 1185.0"))
    );
    assert_eq!(action("none"), said(40, "1185.0: NO ADVICE", None));
}

#[test]
fn a_hold_on_purpose_is_left_alone() {
    let place = Place::with_run();
    place.write(
        "EventLog",
        "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1:9618>\n...\n\
         012 (1.0.0) 2026-11-21 01:50:20 Job was held.\n\tvia condor_hold (by user ada)\n\tCode 1 Subcode 0\n...\n",
    );
    insta::assert_snapshot!(place.run("advise run --log EventLog"), @"
    exit 30
    1.0: LEAVE IT HELD
      why: a person held this job on purpose: release it once that person's reason is gone
      hold code 1/0: held by a person (condor_hold)
      held since 2026-11-21 01:50:20 UTC, 0 s when the log ends
      held once so far, once for this reason; no other job of its cluster is held for it now
      once the reason to hold it is gone: condor_release 1.0
    ");
}

#[test]
fn jobs_that_are_not_held_are_told_apart() {
    let place = Place::with_run();
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz 999999.0"), @"
    exit 2
    error: job 999999.0 is not in the log

    hint: leave out the job ids to get advice on every held job
    ");
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz 999999"), @"
    exit 2
    error: cluster 999999 is not in the log

    hint: leave out the job ids to get advice on every held job
    ");
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz 1.0"), @"
    exit 2
    error: job 1.0 is not held when the log ends: it terminated at 2026-11-21 01:50:00 UTC

    hint: leave out the job ids to get advice on every held job
    ");
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz 1161.0 1"), @"
    exit 2
    error: cluster 1 has 2 jobs, and none is held

    hint: leave out the job ids to get advice on every held job
    ");
    insta::assert_snapshot!(place.run("advise run --log EventLog.xz twelve"), @"
    exit 2
    error: `twelve` is no job id

    hint: write `123.0` for a job, or `123` for a cluster
    ");
}

#[test]
fn missing_pieces_are_named() {
    let place = Place::with_run();
    insta::assert_snapshot!(place.run("advise events --log EventLog.xz"), @"
    exit 2
    error: `events` holds events, not run

    hint: make it with `poolcast train TENSORS -o RUN`
    ");
    insta::assert_snapshot!(place.run("advise run --log nowhere"), @"
    exit 2
    error: cannot read the log `nowhere`
      caused by: cannot open the log `nowhere`
      caused by: failed to open file `nowhere`: No such file or directory (os error 2)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    place.copy("run", "half");
    fs_err::remove_file(place.path("half/manifest.json")).expect("removed");
    insta::assert_snapshot!(place.run("advise half --log EventLog.xz"), @"
    exit 2
    error: the training in `half` has not finished

    hint: continue it with `poolcast train --resume`
    ");
}

#[test]
fn nobody_is_held() {
    let place = Place::with_run();
    place.write(
        "EventLog",
        "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1:9618>\n...\n",
    );
    insta::assert_snapshot!(place.run("advise run --log EventLog"), @"
    exit 40
    no job is held when the log ends
    ");
}

/// A log of a job with these records, each a number and a second.
fn log_of(records: &[(u16, u32)]) -> String {
    let text = |&(number, second): &(u16, u32)| {
        let body = match number {
            0 => "Job submitted from host: <10.0.0.1:9618>",
            9 => "Job was aborted.\n\tvia condor_rm (by user ada)",
            12 => "Job was held.\n\tdisk quota\n\tCode 6 Subcode 122",
            _ => "Job was released.\n\tvia condor_release (by user ada)",
        };
        format!("{number:03} (1.0.0) 2026-11-21 01:50:{second:02} {body}\n...\n")
    };
    records.iter().map(text).collect()
}

#[test]
fn what_happens_in_one_second_keeps_its_order() {
    let place = Place::with_run();
    let said = |records: &[(u16, u32)]| {
        place.write("EventLog", log_of(records));
        let outcome = place.run("advise run --log EventLog");
        (
            outcome.code,
            outcome.stdout.lines().next().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(
        said(&[(0, 0), (12, 5), (13, 5), (12, 5)]),
        (Some(10), "1.0: FIX, THEN RELEASE".to_owned())
    );
    assert_eq!(
        said(&[(0, 0), (12, 5), (12, 5), (13, 5)]).1,
        "no job is held when the log ends"
    );
    assert_eq!(
        said(&[(0, 0), (9, 5), (12, 5)]).1,
        "no job is held when the log ends",
        "removed"
    );
    assert_eq!(
        said(&[(0, 0), (12, 5), (9, 5)]).1,
        "no job is held when the log ends",
        "removed"
    );
}

#[test]
fn a_quota_is_no_path() {
    let place = Place::with_run();
    place.write("EventLog", log_of(&[(0, 0), (12, 5)]));
    insta::assert_snapshot!(place.run("advise run --log EventLog"), @"
    exit 10
    1.0: FIX, THEN RELEASE
      why: a disk quota is exceeded: remove files or ask for a larger quota, then release
      hold code 6/122: the program could not be started: quota exceeded
      held since 2026-11-21 01:50:05 UTC, 0 s when the log ends
      held once so far, once for this reason; no other job of its cluster is held for it now
      run: condor_q -hold 1.0
      once it is fixed: condor_release 1.0
    ");
}

#[test]
fn a_pipe_is_advised_on() {
    let place = Place::with_run();
    place.write("EventLog", log_of(&[(0, 0), (12, 5)]));
    let log = fs_err::File::open(place.path("EventLog")).expect("opened");
    let mut command = place.command("advise run --log - 1.0");
    // What was read before is not read again, as of a pipe.
    let outcome = crate::place::Outcome::of(
        command
            .stdin(log.into_file())
            .output()
            .expect("the program starts"),
    );
    assert_eq!(
        (outcome.code, outcome.stdout),
        (Some(10), place.run("advise run --log EventLog 1.0").stdout)
    );
}
