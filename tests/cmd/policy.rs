//! Tests of `poolcast policy` on logs where releases pay, and on logs where they do not.

use std::fmt::Write as _;

use crate::place::Place;

/// Returns a log of ninety days. Each day, one job is held with 12/256 for 40 minutes, and then
/// succeeds. Another is held with 12/256, released after 30 s, and fails. A third is held with
/// 13/512, and fails. A fourth is held by its owner. Every tenth day, another job is held and stays
/// held.
pub(crate) fn planted_log() -> String {
    let mut records: Vec<(i64, String)> = Vec::new();
    let mut add_job = |cluster: i32, begin_s: i64, code: &str, held_for_s: i64, exit_code: i32| {
        let mut add = |number: u16, at_s: i64, body: &str| {
            let stamp = jiff::Timestamp::from_second(1_767_225_600 + at_s).expect("in range");
            let stamp = stamp.strftime("%Y-%m-%d %H:%M:%S");
            let record = format!("{number:03} ({cluster:03}.000.000) {stamp} {body}\n...\n");
            records.push((at_s, record));
        };
        let held_s = begin_s + 600;
        add(0, begin_s, "Job submitted from host: <127.0.0.1:9618>");
        add(1, begin_s + 60, "Job executing on host: <127.0.0.1:9619>");
        add(
            12,
            held_s,
            &format!("Job was held.\n\tError in the transfer\n\t{code}"),
        );
        if held_for_s == 0 {
            return;
        }
        let released_s = held_s + held_for_s;
        add(13, released_s, "Job was released.\n\tvia condor_release");
        add(
            1,
            released_s + 60,
            "Job executing on host: <127.0.0.1:9619>",
        );
        let ended = format!("Job terminated.\n\t(1) Normal termination (return value {exit_code})");
        add(5, released_s + 1860, &ended);
    };

    for day in 0..90 {
        let begin_s = i64::from(day) * 86_400;
        add_job(1000 + day, begin_s, "Code 12 Subcode 256", 2400, 0);
        add_job(2000 + day, begin_s + 1, "Code 12 Subcode 256", 30, 1);
        add_job(3000 + day, begin_s + 2, "Code 13 Subcode 512", 2400, 1);
        add_job(4000 + day, begin_s + 3, "Code 1 Subcode 0", 2400, 0);
        if day % 10 == 0 {
            add_job(5000 + day, begin_s + 4, "Code 12 Subcode 256", 0, 0);
        }
    }

    records.sort_by_key(|(at_s, _)| *at_s);
    let mut log = String::new();
    for (_, record) in records {
        log.write_str(&record).expect("written");
    }
    log
}

#[test]
fn the_code_that_pays_is_named_and_judged_on_later_holds() {
    let place = Place::new();
    place.write("EventLog", planted_log());
    insta::assert_snapshot!(place.run("policy --log EventLog"));

    place.stdout("parse EventLog -o events");
    assert_eq!(
        place.stdout("policy events"),
        place.stdout("policy --log EventLog")
    );
}

#[test]
fn programs_get_the_expression_and_all_that_it_rests_on() {
    let place = Place::new();
    place.write("EventLog", planted_log());
    insta::assert_snapshot!(place.stdout("policy --log EventLog --json"));
}

#[test]
fn where_nothing_pays_there_is_no_expression() {
    let place = Place::with_log();
    insta::assert_snapshot!(place.run("policy --log EventLog.xz"));

    // If a lost success is expensive, releases pay.
    place.write(
        "cost.yaml",
        "advice: {cost: {wasted_run: 1, lost_success: 4}}",
    );
    insta::assert_snapshot!(place.run("policy --log EventLog.xz --config cost.yaml"));
}

#[test]
fn a_log_without_releases_and_none_at_all() {
    let place = Place::new();
    place.write(
        "EventLog",
        "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <a>\n...\n\
         012 (1.0.0) 2026-11-21 01:50:20 Job was held.\n\tx\n\tCode 12 Subcode 2\n...\n",
    );
    insta::assert_snapshot!(place.run("policy --log EventLog"), @"
    exit 0
    no periodic_release: no release in the log has an outcome to learn from

    There are no later releases to compare policies on.
    ");
    assert_eq!(
        place.json("policy --log EventLog --json")["expression"],
        serde_json::Value::Null
    );

    // One outcome is too few for a split, so all outcomes are learned from, and there is no cutoff.
    let more = "013 (1.0.0) 2026-11-21 01:51:20 Job was released.\n\tvia condor_release\n...\n\
                005 (1.0.0) 2026-11-21 01:52:20 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n";
    let log = fs_err::read_to_string(place.path("EventLog")).expect("read");
    place.write("EventLog", log + more);
    insta::assert_snapshot!(place.stdout("policy --log EventLog"), @"
    no periodic_release: of 1 hold code, none was shown to succeed after at least 75 % of its releases, with 95 % confidence

    There are no later releases to compare policies on.

    Learned from 1 release; a code pays from 75 %:
    hold code                  holds  releases  succeeded  at least
    12/2 no: too few releases      1         1      100 %      21 %
    ");
}

#[test]
fn the_logs_of_a_configuration_or_of_a_run_are_found() {
    let place = Place::with_log();
    insta::assert_snapshot!(place.run("policy"), @"
    exit 2
    error: there is no run here

    hint: name the log: --log LOG; `condor_config_val EVENT_LOG` prints that of an access point
    ");

    let named = place.stdout("policy --log EventLog.xz");
    place.write("pool.yaml", "logs: [EventLog.xz]\nout: elsewhere\n");
    assert_eq!(place.stdout("policy --config pool.yaml"), named);

    // The costs of the run apply if no configuration is named.
    place.copy("run", "elsewhere");
    let path = place.path("elsewhere/config.yaml");
    let config = fs_err::read_to_string(&path).expect("read");
    let config = config
        .replace("logs: []", "logs: [EventLog.xz]")
        .replace("cost: null", "cost: {wasted_run: 1.0, lost_success: 4.0}");
    fs_err::write(&path, config).expect("written");
    let costs = "advice: {cost: {wasted_run: 1, lost_success: 4}}\n";
    place.write("cost.yaml", costs);
    let by_cost = place.stdout("policy --log EventLog.xz --config cost.yaml");
    assert!(by_cost.contains("a code pays from 20 %"), "{by_cost}");
    assert_eq!(place.stdout("policy"), by_cost);
    assert_eq!(place.stdout("policy --config cost.yaml"), by_cost);
}

#[test]
fn policy_document_matches_the_output() {
    let place = Place::new();
    place.write("EventLog", planted_log());
    let printed = place.stdout("policy --log EventLog");
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policy.md");
    let document = fs_err::read_to_string(document).expect("read");
    let shown = document.split("```text\n").nth(1).expect("a block");
    let shown = shown.split("```").next().expect("its end");
    assert_eq!(printed, shown);
}

/// Returns a log of ninety days in which the submit files of `owners` hold a job each day with
/// 3/75. If the second element is true, the job succeeds after its release. Job ads name the owners
/// if `is_named`.
fn log_of_owners(owners: &[(&str, bool)], is_named: bool) -> String {
    let mut log = String::new();
    for day in 0..90 {
        for (place, (owner, is_success)) in owners.iter().enumerate() {
            let cluster = 1000 * (place + 1) + day;
            let mut add = |number: u16, after_s: i64, body: &str| {
                let at_s = 1_767_225_600 + 86_400 * day as i64 + 10 * place as i64 + after_s;
                let stamp = jiff::Timestamp::from_second(at_s).expect("in range");
                let stamp = stamp.strftime("%Y-%m-%d %H:%M:%S");
                writeln!(log, "{number:03} ({cluster}.000.000) {stamp} {body}\n...")
                    .expect("written");
            };
            add(0, 0, "Job submitted from host: <127.0.0.1:9618>");
            if is_named {
                let ad = format!("Job ad information event triggered.\nOwner = \"{owner}\"");
                add(28, 0, &ad);
            }
            add(1, 1, "Job executing on host: <127.0.0.1:9619>");
            let reason =
                "The job attribute PeriodicHold expression '(NumJobStarts > 0)' evaluated to TRUE";
            add(
                12,
                2,
                &format!("Job was held.\n\t{reason}\n\tCode 3 Subcode 75"),
            );
            add(13, 2402, "Job was released.\n\tvia condor_release");
            add(1, 2403, "Job executing on host: <127.0.0.1:9619>");
            let exit_code = i32::from(!is_success);
            let end =
                format!("Job terminated.\n\t(1) Normal termination (return value {exit_code})");
            add(5, 2404, &end);
        }
    }
    log
}

#[test]
fn codes_of_submit_files_are_released_for_their_owner_alone() {
    let owners = [("ada", true), ("eve", false), ("o\" || true || \"", true)];
    let place = Place::new();
    place.write("EventLog", log_of_owners(&owners, true));
    insta::assert_snapshot!(place.stdout("policy --log EventLog"));
    let policy = place.json("policy --log EventLog --json");
    let expression = policy["expression"].as_str().expect("a rule");
    assert!(
        expression.contains("(Owner == \"ada\" && HoldReasonCode == 3"),
        "{expression}"
    );
    assert_eq!(
        expression.matches("HoldReasonCode").count(),
        1,
        "{expression}"
    );

    // Neither a log without names nor a store of events says which owner is meant.
    place.stdout("parse EventLog -o events");
    place.write("nameless", log_of_owners(&owners, false));
    for args in ["policy --log nameless", "policy events"] {
        let shown = place.stdout(args);
        assert!(shown.contains("no periodic_release"), "{shown}");
        assert!(
            shown.contains("3/75 no: each owner gives it a meaning"),
            "{shown}"
        );
    }
}

#[test]
fn codes_that_advise_answers_otherwise_are_named() {
    let place = Place::with_answers();
    place.write(
        "cost.yaml",
        "advice: {cost: {wasted_run: 1, lost_success: 9}}",
    );
    let policy = "policy --log EventLog.xz --config cost.yaml";
    let alone = place.json(&format!("{policy} --json"));
    assert!(alone["contradictions"].is_null(), "no model is asked");

    place.write("pool.yaml", "out: run\n");
    let found = place.json(&format!("{policy} --json"));
    let first = &found["contradictions"][0];
    assert_eq!(
        (&first["hold_code"], &first["hold_subcode"]),
        (&12.into(), &2.into())
    );
    assert_eq!(
        (&first["is_released"], &first["answer"]),
        (&true.into(), &"fix".into())
    );
    let shown = place.stdout(policy);
    let line = " held jobs: `advise` says FIX, THEN RELEASE, and this policy releases them";
    assert!(
        shown.contains("contradicts this policy on the same log"),
        "{shown}"
    );
    assert!(shown.contains(line), "{shown}");
}
