//! Tests of what `advise` says about the thing that failed: a server that fails and comes back, and
//! jobs that have been held for longer than anything learned.

use serde_json::{Value, json};

use crate::place::{LOG_TEXT, Place};

const CONFIG: &str = "logs: [EventLog.xz]\nout: out\nruns: 0\n\
    wandb: {sweep: {metric: {name: validation_roc_auc, goal: maximize}}}\n\
    preprocessing: {parameters: {j: 2, m: 4, timeframe_len: 20}}\n\
    pipelines: {et: {method: random, runs: 1, parameters: {n_estimators: 10, min_samples_leaf: 10, max_features: 0.3}}}\n";

/// Owners of the jobs that use the server. The last job stays held.
const OWNERS: [&str; 4] = ["ada", "bob", "cy", "ada"];

/// Returns an event of the only job of `cluster`.
fn event(cluster: usize, second: usize, number: u16, text: &str) -> String {
    format!("{number:03} ({cluster}.000.000) 11/21 02:26:{second} {text}\n...\n")
}

/// Returns the submission of a job at second 20, and its ad with the attributes in `more`.
fn submission(cluster: usize, owner: &str, more: &str) -> String {
    let ad = format!(
        "Job ad information event triggered.\nGlobalJobId = \"localhost#{cluster}.0#1795227980\"\nOwner = \"{owner}\"\n\
         {more}TriggerEventTypeNumber = 0"
    );
    let host = "Job submitted from host: <127.0.0.1:9618?alias=localhost>";
    event(cluster, 20, 0, host) + &event(cluster, 20, 28, &ad)
}

/// Returns the submission of a job and its hold at second 25, because the server fails for its input.
fn held_job(job: usize) -> String {
    let cluster = 90_000 + job;
    let url = format!("https://fs1.example.edu/in/part{job}.dat");
    let held = format!(
        "Job was held.\n\tTransfer input files failure at execution point slot1@node using protocol https. \
         Details: {url}: server returned 503 Service Unavailable ( URL file = {url} )|\n\tCode 13 Subcode 256"
    );
    let executing = "Job executing on host: <10.0.0.2:1>";
    submission(cluster, OWNERS[job], "")
        + &event(cluster, 22, 1, executing)
        + &event(cluster, 25, 12, &held)
}

/// Events of jobs 90000.0 to 90003.0 just after the bundled log: a server fails for all of them,
/// and then three get past it.
fn server_log() -> String {
    let mut log: String = (0..OWNERS.len()).map(held_job).collect();
    let released = "Job was released.\n\tvia condor_release (by user ada)";
    let ended = "Job terminated.\n\t(1) Normal termination (return value 0)";
    for job in 0..3 {
        log += &event(90_000 + job, 40, 13, released);
        log += &event(90_000 + job, 42, 1, "Job executing on host: <10.0.0.2:1>");
    }
    for job in 0..3 {
        log += &event(90_000 + job, 58, 5, ended);
    }
    log
}

/// Returns the events of a job that is never held. It reads `inputs` from second 40 on.
fn reading_job(cluster: usize, inputs: &str) -> String {
    let attribute = format!("TransferInput = \"{inputs}\"\n");
    submission(cluster, "bob", &attribute)
        + &event(cluster, 40, 40, "Started transferring input files")
        + &event(cluster, 42, 1, "Job executing on host: <10.0.0.2:1>")
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
        "reads_since": 0,
    });
    let (held, text) = answer(&place, "EventLog", "90003.0");
    assert_eq!(held["state"], state);
    assert_eq!(held["action"], "release");
    for reason in [
        "3 of 3 jobs got past this cause since 2026-11-21 02:26:25 UTC: with 90 % confidence, at least 46 % do",
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

#[test]
fn jobs_that_were_never_held_count_if_their_ads_name_their_inputs() {
    let place = Place::with_log();
    place.write("run.yaml", CONFIG);
    place.stdout("run run.yaml");
    let asked = |inputs: &[&str]| {
        let readers = (91_000..).zip(inputs);
        let readers: String = readers
            .map(|(at, inputs)| reading_job(at, inputs))
            .collect();
        place.write("EventLog", &(LOG_TEXT.clone() + &held_job(3) + &readers));
        answer(&place, "EventLog", "90003.0")
    };

    let same = "https://fs1.example.edu/in/part3.dat";
    let (released, text) = asked(&[same, &format!("{same},/home/bob/a.dat")]);
    assert_eq!(released["action"], "release", "{text}");
    assert!(text.contains("2 of 2 jobs got past this cause"), "{text}");

    let (held, text) = asked(&["https://fs1.example.edu/in/other.dat"; 2]);
    assert_ne!(held["action"], "release", "{text}");
    assert_eq!(held["state"]["reads_since"], 2);
    assert!(
        text.contains("no success since, but 2 jobs that were not held read from it"),
        "{text}"
    );
}
