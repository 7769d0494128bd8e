//! Tests of `advise --thing`: it opens a thing of the last page, and prints its commands.

use std::fmt::Write as _;

use crate::place::{Outcome, Place};

/// Returns a log of jobs of `clusters` that each miss another file, and of three more that used too much memory.
fn log_of(clusters: std::ops::Range<u32>) -> String {
    let mut log = String::new();
    let mut add = |cluster: u32, memory_mb: u32, reason: &str| {
        write!(
            log,
            "000 ({cluster}.0.0) 2026-11-21 01:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n\
             028 ({cluster}.0.0) 2026-11-21 01:00:00 Job ad information event triggered.\nOwner = \"ada\"\nRequestMemory = 128\n...\n\
             006 ({cluster}.0.0) 2026-11-21 01:00:00 Image size of job updated: 300000\n\
             \t{memory_mb}  -  MemoryUsage of job (MB)\n\t300000  -  ResidentSetSize of job (KB)\n...\n\
             012 ({cluster}.0.0) 2026-11-21 02:00:00 Job was held.\n\t{reason}\n...\n"
        )
        .expect("written");
    };
    for cluster in clusters {
        let file = char::from(b'a' + (cluster % 26) as u8);
        add(
            cluster,
            100,
            &format!(
                "Transfer input files failure at access point ap while sending files to execution point slot1@node. \
                 Details: reading from file /home/ada/in/{file}.dat: (errno 2) No such file or directory\n\tCode 13 Subcode 2"
            ),
        );
    }
    for cluster in 10..13 {
        let reason =
            "Error from slot1@node: memory usage exceeded request_memory\n\tCode 34 Subcode 102";
        add(cluster, 300, reason);
    }
    log
}

/// Runs `advise job.log` with `args`, and with a directory that keeps the numbers of the page.
fn advise(place: &Place, args: &str) -> Outcome {
    let mut command = place.command(&format!("advise job.log --no-look {args}"));
    command.env("XDG_STATE_HOME", place.path("state"));
    Outcome::of(command.output().expect("the program starts"))
}

/// A directory with a log of jobs that are held for two things, and the page about it.
fn place_with_page() -> (Place, String) {
    let place = Place::new();
    place.write("job.log", log_of(100..108));
    let page = advise(&place, "").stdout;
    (place, page)
}

#[test]
fn number_opens_a_thing_of_the_page() {
    let (place, page) = place_with_page();
    assert!(
        page.contains(" 1      8  73%  FIX            own input file missing      ada 8"),
        "{page}"
    );
    assert!(
        page.contains(" 2      3 100%  FIX            asked less memory than used ada 3"),
        "{page}"
    );
    let opened = advise(&place, "--thing 1").stdout;
    assert!(
        opened.starts_with("#1 own input file missing: 8 jobs in 8 clusters"),
        "{opened}"
    );
    assert_eq!(
        opened.matches("once fixed: condor_release").count(),
        8,
        "{opened}"
    );
    assert!(!opened.contains("condor_qedit"), "{opened}");

    let document = advise(&place, "--thing 2 --json").stdout;
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(document["things"][0]["kind"], "memory");
    assert_eq!(document["advice"].as_array().map(Vec::len), Some(3));
}

#[test]
fn commands_are_lines_for_a_shell() {
    let (place, _) = place_with_page();
    let memory = advise(&place, "--thing 2 --commands").stdout;
    let starts: Vec<&str> = (memory.lines())
        .map(|line| line.split(" -").next().unwrap_or(line))
        .collect();
    assert_eq!(
        starts,
        [
            "# 3 jobs now:",
            "condor_qedit",
            "# 3 jobs now:",
            "condor_release"
        ],
        "{memory}"
    );
    // Nothing is released before a person has put the files there.
    let files = advise(&place, "--thing 1 --commands").stdout;
    assert!(files.lines().all(|line| line.starts_with("# ")), "{files}");
    assert!(files.contains("# condor_release "), "{files}");
}

#[test]
fn jobs_that_the_page_did_not_show_are_left_out() {
    let (place, _) = place_with_page();
    place.write("job.log", log_of(101..110));
    let outcome = advise(&place, "--thing 1 --jobs");
    assert!(
        outcome.stdout.contains("107.0") && !outcome.stdout.contains("108.0"),
        "{outcome}"
    );
    let note = "note: 1 of the 8 jobs of this number are not held any more";
    assert!(outcome.stderr.contains(note), "{outcome}");

    place.write("job.log", log_of(200..208));
    let failure = advise(&place, "--thing 1");
    assert_eq!(failure.code, Some(2), "{failure}");
    assert!(
        failure
            .stderr
            .contains("none of the 8 jobs of this number is held any more"),
        "{failure}"
    );
}

#[test]
fn numbers_without_a_page_are_refused() {
    let place = Place::new();
    place.write("job.log", log_of(100..108));
    let refused = |args: &str, why: &str| {
        let failure = advise(&place, args);
        assert_eq!(failure.code, Some(2), "{failure}");
        assert!(failure.stderr.contains(why), "{failure}");
    };
    refused("--thing 1", "no page with numbers is known");
    assert_eq!(advise(&place, "").code, Some(0));
    refused("--thing 3", "the last page has no number 3");
    refused("--thing 1 --owner ada", "one of another call");
    refused("--commands", "--thing <NUMBER>");
}
