//! Tests of the memory that `poolcast advise` names for the next submission of a batch.

use std::fmt::Write as _;

use crate::json_documents::{PrintedKeys, print_all};
use crate::place::Place;

/// Writes the log of a batch of 15 jobs with runs of an hour. Two of the jobs use 310 MB, and are held
/// for it; the others use 30 MB and succeed.
fn place_with_batch() -> Place {
    let place = Place::new();
    let mut log = String::new();
    for proc in 0..15 {
        let mut record = |number: &str, time: &str, text: &str| {
            writeln!(
                log,
                "{number} (7.{proc}.000) 2026-11-21 {time}:00 {text}\n..."
            )
            .expect("text");
        };
        let is_large = proc % 8 == 2;
        let used_mb = if is_large { 310 } else { 30 };
        record(
            "000",
            "01:00",
            "Job submitted from host: <10.0.0.1:9618>\n    [ JobBatchName = \"sizes\" ]",
        );
        record("001", "01:10", "Job executing on host: <10.0.0.2:9618>");
        record(
            "006",
            "01:20",
            &format!("Image size of job updated: 1\n\t{used_mb}  -  MemoryUsage of job (MB)"),
        );
        if is_large {
            let reason = "Error from slot1@e: memory usage exceeded request_memory";
            record("004", "02:10", "Job was evicted. Code 21 Subcode 102");
            record(
                "012",
                "02:10",
                &format!("Job was held.\n\t{reason}\n\tCode 21 Subcode 102"),
            );
        } else {
            let end = "Job terminated.\n\t(1) Normal termination (return value 0)";
            record("005", "02:10", end);
        }
    }
    place.write("jobs.log", log);
    let queue = r#"[{"ClusterId": 7, "ProcId": 2, "JobStatus": 5, "HoldReasonCode": 21, "HoldReasonSubCode": 102,
        "EnteredCurrentStatus": 1795227000, "RequestMemory": 128, "MemoryUsage": 310, "Owner": "ada"}]"#;
    place.write("queue.json", queue);
    place
}

/// Returns the keys for advice on jobs that were held for memory.
pub(crate) fn memory_documents() -> PrintedKeys {
    let place = place_with_batch();
    print_all(&place, &["advise jobs.log --queue queue.json --json"])
}

#[test]
fn page_names_the_memory_for_the_next_submission() {
    let place = place_with_batch();
    let page = place.run("advise jobs.log --queue queue.json").stdout;
    let lines = "    next submission: request_memory = 128MB, retry_request_memory = 512MB\n    \
                 the first serves 13 of 15 jobs seen, the second the others; ";
    assert!(page.contains(lines), "{page}");
    let saved = page.split_once("the others; ").map(|(_, rest)| rest);
    // 13 and 2 runs of an hour with 128 MB, and two with 512 MB, beside 15 of 128 MB.
    let words = "1.0 GiB hours more than the 1.9";
    let rest = saved.unwrap_or_default().split_whitespace();
    let rest: Vec<&str> = rest.take(7).collect();
    assert_eq!(rest.join(" "), words, "{page}");

    let one = place.run("advise jobs.log 7.2 --queue queue.json").stdout;
    assert!(
        one.contains("  next submission: request_memory = 128MB, "),
        "{one}"
    );
}

#[test]
fn impossible_requests_are_not_believed() {
    let place = place_with_batch();
    let queue = fs_err::read_to_string(place.path("queue.json")).expect("a queue");
    let hostile = queue.replace(
        "\"RequestMemory\": 128",
        "\"RequestMemory\": 18446744073709551615",
    );
    assert_ne!(queue, hostile);
    place.write("queue.json", hostile);
    let page = place.run("advise jobs.log --queue queue.json").stdout;
    let lines = "request_memory = 128MB, retry_request_memory = 512MB";
    assert!(
        page.contains(lines) && !page.contains("GiB hours"),
        "{page}"
    );
}

#[test]
fn savings_need_known_requests() {
    let place = place_with_batch();
    let page = place.run("advise jobs.log").stdout;
    assert!(page.contains("next submission: request_memory"), "{page}");
    assert!(!page.contains("GiB hours"), "{page}");
}
