//! Tests of what `advise` says about the thing that failed: a server that fails and comes back, and
//! jobs that have been held for longer than anything learned.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::place::{LOG_TEXT, Place};

const CONFIG: &str = "logs: [EventLog.xz]\nout: out\nruns: 0\n\
    wandb: {sweep: {metric: {name: validation_roc_auc, goal: maximize}}}\n\
    preprocessing: {parameters: {j: 2, m: 4, timeframe_len: 20}}\n\
    pipelines: {et: {method: random, runs: 1, parameters: {n_estimators: 10, min_samples_leaf: 10, max_features: 0.3}}}\n";

/// Owners of the jobs that use the server. The last job stays held.
const OWNERS: [&str; 4] = ["ada", "bob", "cy", "ada"];

/// Events of jobs 90000.0 to 90003.0 just after the bundled log: a server fails for all of them,
/// and then three get past it.
fn server_log() -> String {
    let mut log = String::new();
    let mut add = |second: usize, number: u16, job: usize, text: &str| {
        let cluster = 90_000 + job;
        write!(
            log,
            "{number:03} ({cluster}.000.000) 11/21 02:26:{second} {text}\n...\n"
        )
        .expect("written");
    };
    for (job, owner) in OWNERS.iter().enumerate() {
        let url = format!("https://fs1.example.edu/in/part{job}.dat");
        add(
            20,
            0,
            job,
            "Job submitted from host: <127.0.0.1:9618?alias=localhost>",
        );
        let ad = format!(
            "Job ad information event triggered.\nGlobalJobId = \"localhost#{}.0#1795227980\"\nOwner = \"{owner}\"\nTriggerEventTypeNumber = 0",
            90_000 + job
        );
        add(20, 28, job, &ad);
        add(22, 1, job, "Job executing on host: <10.0.0.2:1>");
        let held = format!(
            "Job was held.\n\tTransfer input files failure at execution point slot1@node using protocol https. \
             Details: {url}: server returned 503 Service Unavailable ( URL file = {url} )|\n\tCode 13 Subcode 256"
        );
        add(25, 12, job, &held);
    }
    for job in 0..3 {
        add(
            40,
            13,
            job,
            "Job was released.\n\tvia condor_release (by user ada)",
        );
        add(42, 1, job, "Job executing on host: <10.0.0.2:1>");
    }
    for job in 0..3 {
        let ended = "Job terminated.\n\t(1) Normal termination (return value 0)";
        add(58, 5, job, ended);
    }
    log
}

/// Returns the answer on one job, with its reasons in one text.
fn answer(place: &Place, log: &str, job: &str) -> (Value, String) {
    let document = place.json(&format!("advise out --log {log} --json"));
    let jobs = document["advice"].as_array().expect("jobs");
    let one = jobs.iter().find(|one| one["job"] == job);
    let one = one.expect("the job is held").clone();
    let text = place.run(&format!("advise out --log {log} {job}")).stdout;
    (one, text)
}

#[test]
fn state_of_the_failed_thing_is_shown() {
    let place = Place::with_log();
    place.write("run.yaml", CONFIG);
    place.stdout("run run.yaml");
    let log = LOG_TEXT.clone() + &server_log();
    place.write("EventLog", &log);

    let page = place.stdout("advise out --log EventLog");
    let line = "\n    fs1.example.edu: last failure 02:26, 3 successes since, of 3 owners\n";
    assert!(page.contains(line), "{page}");
    let state = json!({
        "kind": "origin",
        "last_failure_ms": 1_795_227_985_000_i64,
        "successes_since": 3,
        "owners_since": 3,
        "success_lower": 0.1_f64.powf(1.0 / 3.0),
    });
    let (held, text) = answer(&place, "EventLog", "90003.0");
    assert_eq!(held["state"], state);
    assert_eq!(held["action"], "release");
    for reason in [
        "3 of 3 jobs with this cause got past it since 2026-11-21 02:26:25 UTC: with 90 % confidence, at least 46 % do",
        "; fs1.example.edu: last failure 2026-11-21 02:26:25 UTC, 3 successes since, of 3 owners\n",
    ] {
        assert!(text.contains(reason), "{text}");
    }
    let (early, _) = answer(&place, "EventLog", "1086.0");
    assert!(early["probability"].is_number() && early["later_probability"].is_number());

    // Nineteen minutes later, nothing has changed but the ages of the holds.
    let later = "000 (99999.000.000) 11/21 02:45:00 Job submitted from host: <127.0.0.1:9618?alias=localhost>\n...\n";
    place.write("Later", log + later);
    let (old, text) = answer(&place, "Later", "1086.0");
    assert_eq!(old["action"], early["action"]);
    assert_eq!(old["firmness"], "possible");
    assert!(old["probability"].is_null() && old["later_probability"].is_null());
    assert!(
        text.contains("no job in this log was released after more than 5 min 30 s,"),
        "{text}"
    );
    let (recovered, _) = answer(&place, "Later", "90003.0");
    assert_eq!(recovered["action"], "release");
    assert_eq!(recovered["firmness"], "probable");
    assert!(recovered["probability"].is_null());
    let (by_rule, text) = answer(&place, "Later", "1161.0");
    assert_eq!(
        (&by_rule["action"], &by_rule["ground"]),
        (&json!("fix"), &json!("rule"))
    );
    assert!(!text.contains("no job in this log"), "{text}");
}
