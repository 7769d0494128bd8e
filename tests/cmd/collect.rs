//! Tests of `poolcast collect`: a log that is written and rotated between calls, the archive, and
//! how `parse` reads the archive.

use crate::place::Place;

/// Returns generation `sequence` of a global event log, which begins at byte `offset`, with the
/// records `events`. Its header does not name the access point, as if the schedd had no name of its
/// own.
pub(crate) fn generation(sequence: u32, offset: usize, events: &str) -> String {
    let ctime = 1_795_222_800 + 600 * sequence;
    let text = format!(
        "Global JobLog: ctime={ctime} id=0.{sequence} sequence={sequence} size=0 events=0 offset={offset} event_off=0 \
         max_rotation=1 creator_name=<>"
    );
    format!(
        "008 (-01.-01.-01) 11/21 01:{:02}:00 {text:<256}\n...\n{events}",
        10 * sequence
    )
}

const SUBMIT: &str =
    "000 (1.0.0) 11/21 01:11:00 Job submitted from host: <10.0.0.1:9618?alias=ap.example>\n...\n";
const HELD: &str = "012 (1.0.0) 11/21 01:12:00 Job was held.\n\tx\n\tCode 12 Subcode 2\n...\n";
const RELEASED: &str = "013 (1.0.0) 11/21 01:21:00 Job was released.\n...\n";
const ENDED: &str =
    "005 (1.0.0) 11/21 01:31:00 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n";

#[test]
fn an_archive_is_the_log_across_rotations() {
    let place = Place::new();
    let first = generation(1, 0, &format!("{SUBMIT}{HELD}"));
    // The last record is only partly written.
    place.write("EventLog", format!("{first}{}", &RELEASED[..30]));
    insta::assert_snapshot!(place.run("collect EventLog -o archive"), @"
    exit 0
    archive: 450 bytes, 450 of them new; generations: 1
    ");
    insta::assert_snapshot!(place.run("collect EventLog -o archive"), @"
    exit 0
    archive: 450 bytes, 0 of them new; generations: 1
    ");
    let (first, second) = (
        format!("{first}{RELEASED}"),
        generation(2, first.len() + RELEASED.len(), ENDED),
    );
    place.write("EventLog.old", &first);
    place.write("EventLog", &second);
    insta::assert_snapshot!(place.run("collect EventLog -o archive"), @"
    exit 0
    archive: 881 bytes, 431 of them new; generations: 2
    ");
    let archive = place.files("archive");
    let names: Vec<&str> = archive.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "EventLog.1795223400.1",
            "EventLog.1795224000.2",
            "manifest.json"
        ]
    );
    assert!(archive[names[0]] == first.as_bytes() && archive[names[1]] == second.as_bytes());
    let mut parse = place.command(
        "parse archive/EventLog.1795224000.2 archive/EventLog.1795223400.1 -o events --stats",
    );
    insta::assert_snapshot!(crate::place::Outcome::of(parse.output().expect("it starts")), @"
    exit 0
    EventLog.1795223400.1, EventLog.1795224000.2: 6 records of 1 job at ap.example, 2026-11-21 01:11:00 UTC to 2026-11-21 01:31:00 UTC
      000 SUBMIT          1
      005 JOB_TERMINATED  1
      008 GENERIC         2
      012 JOB_HELD        1
      013 JOB_RELEASED    1
      holds by code                                                               holds  jobs  released  then succeeded
      12/2 output files could not be transferred back: no such file or directory      1     1     100 %           100 %
      what most of their reasons state
      12/2: HTCondor could not use what the job needs: it does not exist
    ");
}

#[test]
fn what_was_rotated_away_is_missed_and_a_gap() {
    let place = Place::new();
    let first = generation(1, 0, &format!("{SUBMIT}{HELD}"));
    place.write("EventLog", &first);
    place.stdout("collect EventLog -o archive");
    // The release was written to the end of the first generation and never collected. Later the
    // third generation is rotated away, too.
    let offset = first.len() + RELEASED.len();
    place.write("EventLog", generation(2, offset, ENDED));
    insta::assert_snapshot!(place.run("collect EventLog -o archive"), @"
    exit 0
    archive: 832 bytes, 382 of them new; generations: 2
    warning: 49 bytes between generations 1 and 2 were rotated away before they were collected; collect more often, or set a larger EVENT_LOG_MAX_SIZE
    ");
    place.write("EventLog", generation(4, 9000, SUBMIT));
    insta::assert_snapshot!(place.run("collect EventLog -o archive"), @"
    exit 0
    archive: 1,215 bytes, 383 of them new; generations: 3
    warning: 8,119 bytes between generations 2 and 4 were rotated away before they were collected; collect more often, or set a larger EVENT_LOG_MAX_SIZE
    ");
    let lost = place.json("collect EventLog -o archive --json")["lost"].clone();
    insta::assert_snapshot!(lost, @r#"[{"after":1,"ap":"","before":2,"bytes":49},{"after":2,"ap":"","before":4,"bytes":8119}]"#);
    let names = ["1795223400.1", "1795224000.2", "1795225200.4"]
        .map(|name| format!("archive/EventLog.{name}"))
        .join(" ");
    let parsed = place.stdout(&format!("parse {names} -o events"));
    let gaps: Vec<&str> = parsed
        .lines()
        .filter(|line| line.contains("a gap"))
        .collect();
    insta::assert_snapshot!(gaps.join("\n"), @"
    a gap at ap.example: 2026-11-21 01:12:00 UTC to 2026-11-21 01:20:00 UTC
    a gap at ap.example: 2026-11-21 01:31:00 UTC to 2026-11-21 01:40:00 UTC
    ");
}

#[test]
fn what_cannot_be_collected_is_named() {
    let place = Place::new();
    place.write("user.log", SUBMIT);
    insta::assert_snapshot!(place.run("collect user.log -o archive"), @"
    exit 2
    error: `user.log` does not begin like a global event log
      caused by: it does not begin with a header, as after logrotate's `copytruncate`

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(place.run("collect missing -o archive"), @"
    exit 2
    error: cannot open the log `missing`
      caused by: failed to open file `missing`: No such file or directory (os error 2)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    assert!(!place.path("archive").exists());
    place.write("EventLog", generation(1, 0, SUBMIT));
    fs_err::create_dir(place.path("mine")).expect("made");
    place.write("mine/precious", "x");
    insta::assert_snapshot!(place.run("collect EventLog -o mine"), @"
    exit 2
    error: `mine` is not an archive

    hint: name an empty or a new directory
    ");
}

/// logrotate's `copytruncate` leaves a log without a header, beside a copy that has one.
#[test]
fn a_log_that_was_cut_is_not_taken_for_collected() {
    let place = Place::new();
    let first = generation(1, 0, &format!("{SUBMIT}{HELD}"));
    place.write("EventLog", &first);
    place.stdout("collect EventLog -o archive");
    place.write("EventLog.1", format!("{first}{RELEASED}"));
    place.write("EventLog", ENDED);
    insta::assert_snapshot!(place.run("collect EventLog -o archive"), @"
    exit 2
    error: `EventLog` is not collected, but its rotated generations are
      caused by: it does not begin with a header, as after logrotate's `copytruncate`

    hint: let HTCondor rotate it (EVENT_LOG_MAX_SIZE), and copy its present contents by hand
    ");
    let archive = place.files("archive");
    assert!(
        archive["EventLog.1795223400.1"] == format!("{first}{RELEASED}").as_bytes(),
        "the copy's end is there"
    );
}

/// HTCondor first renames the full log, and then creates the new log.
#[test]
fn the_instant_of_rotation_is_worth_a_retry() {
    let place = Place::new();
    let first = generation(1, 0, &format!("{SUBMIT}{HELD}"));
    place.write("EventLog.old", &first);
    insta::assert_snapshot!(place.run("collect EventLog -o archive"), @"
    exit 1
    error: `EventLog` is not collected, but its rotated generations are
      caused by: it does not exist: it is being rotated

    hint: run the same command again
    ");
    assert!(place.files("archive")["EventLog.1795223400.1"] == first.as_bytes());
    let second = generation(2, first.len(), ENDED);
    for (written, why) in [
        (0, "it is empty"),
        (3, "its first record is incomplete"),
        (100, "its first record is incomplete"),
    ] {
        place.write("EventLog", &second[..written]);
        let outcome = place.run("collect EventLog -o archive");
        assert!(
            outcome.code == Some(1) && outcome.stderr.contains(why),
            "{outcome}"
        );
    }
    place.write("EventLog", &second);
    place.stdout("collect EventLog -o archive");
    assert!(place.files("archive")["EventLog.1795224000.2"] == second.as_bytes());
    place.write("alone", "");
    assert_eq!(place.run("collect alone -o other").code, Some(1));
    assert!(!place.path("other").exists());
}

#[test]
fn a_store_whose_log_has_rotated_says_how_to_go_on() {
    let place = Place::new();
    let first = generation(1, 0, &format!("{SUBMIT}{HELD}"));
    place.write("EventLog", &first);
    place.stdout("parse EventLog -o events");
    // HTCondor rewrites the header of a full log.
    place.write(
        "EventLog.old",
        format!("{first}{RELEASED}").replace("size=0 events=0", "size=9 events=3"),
    );
    place.write(
        "EventLog",
        generation(2, first.len() + RELEASED.len(), ENDED),
    );
    insta::assert_snapshot!(place.run("parse EventLog -o events"), @"
    exit 2
    also reading the rotated generation `EventLog.old`
    error: `EventLog` has rotated since it was parsed into `events`, so its earlier generation cannot be read further

    hint: keep all generations with `poolcast collect LOG -o ARCHIVE`, and parse the archive into another directory
    ");
}
