//! Tests of what `advise` says about the thing that failed: a server that fails and comes back, and
//! jobs that have been held for longer than anything learned.

use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::place::{LOG_TEXT, Place, run_for_all};

const CONFIG: &str = "logs: [EventLog.xz]\nout: out\nruns: 0\n\
    wandb: {sweep: {metric: {name: validation_roc_auc, goal: maximize}}}\n\
    preprocessing: {parameters: {j: 2, m: 4, timeframe_len: 20}}\n\
    pipelines: {et: {method: random, runs: 1, parameters: {n_estimators: 10, min_samples_leaf: 10, max_features: 0.3}}}\n";

/// A run with learned answers, for all tests of this file.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| run_for_all("learned-answers", CONFIG));

/// A test directory with the run in `out`, to which answers are added.
fn place_with_answers() -> Place {
    let place = Place::with_log();
    place.copy_all(&RUN, "out");
    place
}

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

/// Returns a hold because of the input at `url`. `error` is what a plug-in says.
fn download_failed(cluster: usize, second: usize, url: &str, error: &str) -> String {
    let held = format!(
        "Job was held.\n\tTransfer input files failure at execution point slot1@node using protocol https. \
         Details: {error} ( URL file = {url} )|\n\tCode 13 Subcode 256"
    );
    event(cluster, second, 12, &held)
}

/// Returns the submission of a job and its hold at second 25, because the server fails for its input.
fn held_job(job: usize) -> String {
    let cluster = 90_000 + job;
    let url = format!("https://fs1.example.edu/in/part{job}.dat");
    let error = format!("{url}: server returned 503 Service Unavailable");
    submission(cluster, OWNERS[job], "")
        + &event(cluster, 22, 1, "Job executing on host: <10.0.0.2:1>")
        + &download_failed(cluster, 25, &url, &error)
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

/// Returns the events of a job that is held for an input file which nobody has asked for before.
fn lost_input() -> String {
    let reason = "Transfer input files failure at access point localhost while sending files to execution point slot1_15@localhost. \
                  Details: 1 total failures: first failure: reading from file /home/tester/gel/in/lost.dat: (errno 2) No such file or directory";
    format!(
        "000 (90010.000.000) 11/21 02:26:26 Job submitted from host: <127.0.0.1:9618?alias=localhost>\n...\n\
         012 (90010.000.000) 11/21 02:26:27 Job was held.\n\t{reason}\n\tCode 13 Subcode 2\n...\n"
    )
}

#[test]
fn state_of_the_failed_thing_is_shown() {
    let place = place_with_answers();
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
    place.write("Later", log + &lost_input() + later);
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
    assert_eq!(recovered["probability"], 0.875, "of three jobs");
    assert!(recovered["later_probability"].is_null());
    let (by_rule, text) = answer(&place, "Later", "90010.0");
    assert_eq!(
        (&by_rule["action"], &by_rule["ground"]),
        (&json!("fix"), &json!("rule"))
    );
    assert!(text.contains("faults that pass are gone by then"), "{text}");
    assert!(
        !text.contains("its probability of success is unknown"),
        "{text}"
    );
}

#[test]
fn jobs_that_were_never_held_count_if_their_ads_name_their_inputs() {
    let place = place_with_answers();
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

/// What HTCondor's own plug-in, which uses curl, says of a file that the server lacks, and of a server that
/// fails.
const CURL_404: &str = "The requested URL returned error: 404";
const CURL_503: &str = "The requested URL returned error: 503";

#[test]
fn return_of_a_server_does_not_help_a_file_that_it_lacks() {
    let place = place_with_answers();
    let url = |file: &str| format!("https://fs1.example.edu/in/{file}");
    let held = |cluster, second, file: &str, error| {
        submission(cluster, "bob", "") + &download_failed(cluster, second, &url(file), error)
    };
    let mut log = LOG_TEXT.clone() + &server_log();
    log += &held(90_010, 59, "smaple.dat", CURL_404);
    log += &held(90_011, 30, "part11.dat", CURL_404);
    log += &held(90_012, 22, "smaple12.dat", CURL_404);
    log += &event(
        90_012,
        23,
        13,
        "Job was released.\n\tThe job attribute PeriodicRelease expression 'NumHolds < 3' evaluated to TRUE",
    );
    log += &download_failed(90_012, 31, &url("smaple12.dat"), CURL_503);
    place.write("EventLog", &log);

    for (job, action, reason) in [
        (
            "90010.0",
            "fix",
            "the server does not have what the address names",
        ),
        ("90011.0", "release", "3 of 3 jobs got past this cause"),
        (
            "90012.0",
            "fix",
            "the server does not have what the address names",
        ),
        ("90003.0", "release", "3 of 3 jobs got past this cause"),
    ] {
        let (answer, text) = answer(&place, "EventLog", job);
        assert_eq!(answer["action"], action, "{job}: {text}");
        assert!(text.contains(reason), "{job}: {text}");
    }
}

/// Returns a job that is held because its input file is missing.
fn job_without_file(cluster: usize, owner: &str, path: &str) -> String {
    let held = format!(
        "Job was held.\n\tTransfer input files failure at access point localhost while sending files to execution point slot1@node. \
         Details: 1 total failures: first failure: reading from file {path}: (errno 2) No such file or directory\n\tCode 13 Subcode 2"
    );
    submission(cluster, owner, "") + &event(cluster, 25, 12, &held)
}

#[test]
fn directory_that_several_owners_miss_is_not_a_wrong_path() {
    let place = place_with_answers();
    let log_of = |owners: &[&str]| {
        let jobs = (92_000..).zip(owners);
        let jobs = jobs.map(|(cluster, owner)| {
            job_without_file(cluster, owner, &format!("/project/ref/part{cluster}.csv"))
        });
        LOG_TEXT.clone() + &jobs.collect::<String>()
    };
    place.write("Two", log_of(&["ada", "bob", "bob"]));
    let (two, _) = answer(&place, "Two", "92000.0");
    assert_eq!(
        (&two["action"], &two["ground"]),
        (&json!("fix"), &json!("rule"))
    );

    place.write("Three", log_of(&["ada", "bob", "cy"]));
    let (three, text) = answer(&place, "Three", "92000.0");
    assert_eq!(
        (&three["action"], &three["firmness"]),
        (&json!("later"), &json!("possible"))
    );
    let reason = "files of several jobs did not arrive from its directory or server, which more likely fails than the path is wrong";
    assert!(text.contains(reason), "{text}");

    let unnamed = log_of(&["ada", "bob", "cy"]).replace("Owner = ", "Nobody = ");
    place.write("Unnamed", unnamed);
    let (unnamed, text) = answer(&place, "Unnamed", "92000.0");
    assert_eq!(
        (&unnamed["action"], &unnamed["firmness"]),
        (&json!("fix"), &json!("probable"))
    );
    assert!(text.contains("so it may be away"), "{text}");
}
