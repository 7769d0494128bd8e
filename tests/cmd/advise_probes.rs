//! Tests of what `poolcast advise` says about the results of probes.

use crate::json_documents::{PrintedKeys, printed_keys};
use crate::place::Place;

/// Returns one record of job `cluster`.0, at a second after 02:00.
fn record(number: &str, cluster: u32, second: u32, body: &str) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!("{number} ({cluster}.0.0) 2026-11-21 02:{minute:02}:{second:02} {body}\n...\n")
}

/// Returns the records of a job that is held at `second` for the missing file `file`.
pub(crate) fn held(cluster: u32, second: u32, file: &str) -> String {
    let reason = format!(
        "Job was held.\n\tTransfer input files failure at access point localhost: reading from file /home/ada/{file}\n\tCode 13 Subcode 2"
    );
    record(
        "000",
        cluster,
        second - 10,
        "Job submitted from host: <10.0.0.1:9618>",
    ) + &record("012", cluster, second, &reason)
}

/// Returns the records of a release at `second`, after which the job ends with `value`.
pub(crate) fn released(cluster: u32, second: u32, value: u32) -> String {
    let end = format!("Job terminated.\n\t(1) Normal termination (return value {value})");
    record(
        "013",
        cluster,
        second,
        "Job was released.\n\tvia condor_release (by user ada)",
    ) + &record(
        "001",
        cluster,
        second + 1,
        "Job executing on host: <10.0.0.2:9618>",
    ) + &record("005", cluster, second + 2, &end)
}

/// Makes the last answer about job 7.0 in the ledger one that names `probe` as a probe.
pub(crate) fn name_probe(place: &Place, probe: &str) {
    let path = place.path("run/answers.jsonl");
    let ledger = fs_err::read_to_string(&path).expect("kept");
    let named = ledger.replace(
        "\"cluster\":7",
        &format!("\"probes\":[\"{probe}\"],\"cluster\":7"),
    );
    assert_ne!(named, ledger);
    fs_err::write(path, named).expect("written");
}

/// A place with a run, and a log of jobs 7.0 and 8.0, which are held for one file.
pub(crate) fn place() -> Place {
    let place = Place::with_answers();
    place.write("EventLog", log_of_two());
    place
}

/// The log of jobs 7.0 and 8.0.
pub(crate) fn log_of_two() -> String {
    held(7, 10, "typo.dat") + &held(8, 10, "typo.dat")
}

#[test]
fn result_of_a_probe_is_on_the_page_and_in_the_reasons() {
    let place = place();
    place.stdout("advise run --log EventLog");
    name_probe(&place, "8.0");
    let log = |value| place.write("EventLog", log_of_two() + &released(8, 60, value));
    log(0);
    let ended_well = "the probe 8.0 of 02:01 ended well";
    let page = place.stdout("advise run --log EventLog");
    assert!(page.contains(&format!("\n    {ended_well}\n")), "{page}");
    let long = place.stdout("advise run --log EventLog --long");
    assert!(long.contains(&format!("  why: {ended_well}; ")), "{long}");
    let json = place.json("advise run --log EventLog --json");
    assert_eq!(json["advice"][0]["probes"][0]["state"], "succeeded");
    assert_eq!(json["groups"][0]["probes"], json["advice"][0]["probes"]);

    log(1);
    let page = place.stdout("advise run --log EventLog");
    assert!(page.contains("the probe 8.0 of 02:01 failed\n"), "{page}");
}

/// Returns the keys for a document with earlier answers and with the result of a probe.
pub(crate) fn probe_documents() -> PrintedKeys {
    let place = place();
    place.stdout("advise run --log EventLog");
    name_probe(&place, "8.0");
    place.write("EventLog", log_of_two() + &released(8, 60, 0));
    let call = "advise run --log EventLog --json";
    printed_keys(call, &place.json(call))
}
