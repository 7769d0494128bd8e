//! Tests of `poolcast parse` on real and damaged logs.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::time::SystemTime;

use crate::place::{LOG, LOG_TEXT, Outcome, Place, queue, repository_path};

/// The header of a global event log and seven records of two jobs, as HTCondor writes them.
const SMALL: &str = "\
008 (-01.-01.-01) 11/21 01:49:47 Global JobLog: ctime=1795225787 id=0.1.2.3 sequence=1 size=0 events=0 offset=0 event_off=0 max_rotation=1 creator_name=<schedd@ap.example>
...
000 (001.000.000) 11/21 01:50:00 Job submitted from host: <10.0.0.1:9618?alias=ap.example>
...
001 (001.000.000) 11/21 01:50:10 Job executing on host: <10.0.0.2:9618>
...
012 (001.000.000) 11/21 01:50:20 Job was held.
\tTransfer output files failure
\tCode 12 Subcode 2
...
013 (001.000.000) 11/21 01:51:00 Job was released.
\tvia condor_release (by user ada)
...
005 (001.000.000) 11/21 01:52:00 Job terminated.
\t(1) Normal termination (return value 0)
...
000 (002.000.000) 11/21 01:53:00 Job submitted from host: <10.0.0.1:9618?alias=ap.example>
...
009 (002.000.000) 11/21 01:54:00 Job was aborted.
\tvia condor_rm (by user ada)
...
";

#[test]
fn the_bundled_log() {
    let place = Place::with_compressed_log();
    insta::assert_snapshot!(place.run("parse EventLog.xz -o events"), @"
    exit 0
    EventLog.xz: 94,113 records of 3,991 jobs at localhost, 2026-11-21 01:49:47 UTC to 2026-11-21 02:26:17 UTC
      000 SUBMIT               3,991
      001 EXECUTE              5,133
      004 JOB_EVICTED          2,117
      005 JOB_TERMINATED       3,533
      006 IMAGE_SIZE           4,258
      008 GENERIC                  1
      009 JOB_ABORTED            452
      012 JOB_HELD             2,125
      013 JOB_RELEASED         1,846
      021 REMOTE_ERROR         2,068
      028 JOB_AD_INFORMATION  47,056
      040 FILE_TRANSFER       21,533
      6 x duplicate event, kept once
    ");
}

#[test]
fn each_job_of_history_and_queue_is_parsed_once() {
    let place = Place::with_log();
    let gel = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gel");
    let history = liblzma::read::XzDecoder::new(
        fs_err::File::open(gel.join("history.json.xz")).expect("opened"),
    );
    let history: Vec<serde_json::Value> = serde_json::from_reader(history).expect("JSON");
    let queue = queue();
    let parsed = place.json("parse EventLog.xz -o events --json");
    assert_eq!(parsed["jobs"], history.len() + queue.len());
    let held = queue.iter().filter(|ad| ad["JobStatus"] == 5).count();
    assert_eq!(held, 8, "as many as advice is given on");
}

#[test]
fn compression_is_detected_by_content_and_does_not_change_shards() {
    let place = Place::new();
    place.write("plain.xz", SMALL);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(SMALL.as_bytes()).expect("written");
    place.write("EventLog.1", gzip.finish().expect("ended"));
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(SMALL.as_bytes()).expect("written");
    place.write("EventLog", xz.finish().expect("ended"));
    place.write(
        "log.gz",
        zstd::encode_all(SMALL.as_bytes(), 1).expect("encoded"),
    );
    let shards = |log: &str| {
        place.stdout(&format!("parse {log} -o events-{log}"));
        let mut files = place.files(&format!("events-{log}"));
        files
            .remove("manifest.json")
            .expect("it names the log and its digest");
        files
    };
    let plain = shards("plain.xz");
    assert_eq!(plain.len(), 1);
    assert!(
        ["EventLog.1", "EventLog", "log.gz"]
            .iter()
            .all(|log| shards(log) == plain)
    );
}

#[test]
fn parsed_events_do_not_depend_on_thread_count() {
    let place = Place::with_log();
    let files = |threads: u32| {
        place.stdout(&format!(
            "--threads {threads} parse EventLog.xz -o events-{threads}"
        ));
        place.files(&format!("events-{threads}"))
    };
    let one = files(1);
    assert_eq!((files(2) == one, files(8) == one), (true, true));
}

#[test]
fn a_small_log_and_its_year() {
    let place = Place::new();
    place.write("EventLog", SMALL);
    insta::assert_snapshot!(place.run("parse EventLog -o events"), @"
    exit 0
    EventLog: 8 records of 2 jobs at schedd@ap.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:54:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      008 GENERIC         1
      009 JOB_ABORTED     1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
    ");
    // Without its header, the log does not contain the year. The last change of the file gives it, and
    // not the clock.
    let (_, headless) = SMALL.split_once("...\n").expect("a header");
    place.write("user.log", headless);
    let changed: jiff::Timestamp = "2018-12-01T00:00:00Z".parse().expect("a time");
    let file = std::fs::File::open(place.path("user.log")).expect("opened");
    file.set_modified(changed.into()).expect("set");
    insta::assert_snapshot!(place.run("parse user.log -o no-year"), @"
    exit 0
    user.log: 7 records of 2 jobs at ap.example, 2018-11-21 01:50:00 UTC to 2018-11-21 01:54:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      009 JOB_ABORTED     1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
    `user.log`: its time stamps have no year: its first event is taken to be of 2018, by the last change of the file; --year names another
    ");
    insta::assert_snapshot!(place.run("parse user.log --year 2019 -o year"), @"
    exit 0
    user.log: 7 records of 2 jobs at ap.example, 2019-11-21 01:50:00 UTC to 2019-11-21 01:54:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      009 JOB_ABORTED     1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
    ");
}

/// A hole of a sparse file reads as NULs.
#[test]
fn a_hole_of_nuls_is_counted_in_bounded_memory() {
    use std::io::{Seek as _, SeekFrom};
    const HOLE_BYTES: u32 = 400 << 20;
    let place = Place::new();
    let at = SMALL.find("013 (").expect("a release");
    let mut file = fs_err::File::create(place.path("hole")).expect("made");
    file.write_all(&SMALL.as_bytes()[..at]).expect("written");
    file.seek(SeekFrom::Current(HOLE_BYTES.into()))
        .expect("skipped");
    file.write_all(&SMALL.as_bytes()[at..]).expect("written");
    drop(file);

    let args = "parse hole -o events --threads 2";
    let Some((outcome, used_mib)) = place.run_measured(args) else {
        return;
    };
    insta::assert_snapshot!(outcome, @"
    exit 0
    hole: 8 records of 2 jobs at schedd@ap.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:54:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      008 GENERIC         1
      009 JOB_ABORTED     1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
      1 x blank lines, text or NULs between records
          hole: line 11 (byte 448)
    ");
    assert!(used_mib < 100, "{used_mib} MiB");
    let dumped = place.stdout("parse hole --dump");
    let last: serde_json::Value =
        serde_json::from_str(dumped.lines().last().expect("an event")).expect("JSON");
    let last_offset = SMALL.trim_end().rfind("...\n").expect("a record") + 4;
    assert_eq!(last["offset"], u64::from(HOLE_BYTES) + last_offset as u64);
}

#[test]
fn damage_is_counted_and_the_rest_kept() {
    let place = Place::new();
    let records = |log: &str, bytes: &[u8]| {
        place.write(log, bytes);
        place.stdout(&format!("parse {log} -o events-{log}"))
    };
    insta::assert_snapshot!(records("cut", &SMALL.as_bytes()[..SMALL.len() - 30]), @"
    cut: 7 records of 2 jobs at schedd@ap.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:53:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      008 GENERIC         1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
      1 x an unfinished last record, skipped
          cut: line 19 (byte 726)
    ");
    let at = SMALL.find("013 (").expect("a release");
    let (head, tail) = SMALL.as_bytes().split_at(at);
    insta::assert_snapshot!(records("nul", &[head, &[0; 4096], tail].concat()), @"
    nul: 8 records of 2 jobs at schedd@ap.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:54:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      008 GENERIC         1
      009 JOB_ABORTED     1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
      1 x blank lines, text or NULs between records
          nul: line 11 (byte 448)
    ");
    insta::assert_snapshot!(records("end", SMALL.replacen("...\n013", "013", 1).as_bytes()), @"
    end: 8 records of 2 jobs at schedd@ap.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:54:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      008 GENERIC         1
      009 JOB_ABORTED     1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
      1 x a record without its end
          end: line 7 (byte 347)
    ");
    let mut latin1 = SMALL.as_bytes().to_vec();
    latin1[SMALL.find("failure").expect("a reason")] = 0xf6;
    insta::assert_snapshot!(records("bytes", &latin1), @"
    bytes: 8 records of 2 jobs at schedd@ap.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:54:00 UTC
      000 SUBMIT          2
      001 EXECUTE         1
      005 JOB_TERMINATED  1
      008 GENERIC         1
      009 JOB_ABORTED     1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
    ");
}

#[test]
fn what_is_no_log_is_named() {
    let place = Place::new();
    place.write("empty", "");
    place.write("notes.txt", "Meeting at ten\n012 was the room\n");
    place.write(
        "noise",
        (0..9999u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes())
            .collect::<Vec<u8>>(),
    );
    place.write("log.json", "{ \"EventTypeNumber\": 12, \"Cluster\": 1 }\n");
    place.write(
        "cut.xz",
        &fs_err::read(repository_path(LOG)).expect("read")[..5000],
    );
    fs_err::create_dir(place.path("logs")).expect("made");
    let refused = |log: &str| {
        let outcome = place.run(&format!("parse {log} -o events"));
        assert!(!place.path("events").exists(), "{log} left something");
        outcome
    };
    insta::assert_snapshot!(refused("missing"), @"
    exit 2
    error: cannot read the log `missing`
      caused by: cannot open the log `missing`
      caused by: failed to open file `missing`: No such file or directory (os error 2)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(refused("empty"), @"
    exit 2
    error: cannot read the log `empty`
      caused by: `empty` is empty

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(refused("notes.txt"), @"
    exit 2
    error: `notes.txt` is not an HTCondor event log

    hint: an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(refused("noise"), @"
    exit 2
    error: `noise` is not an HTCondor event log

    hint: an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(refused("log.json"), @"
    exit 2
    error: `log.json` is not an HTCondor event log

    hint: an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    insta::assert_snapshot!(refused("cut.xz"), @"
    exit 2
    error: cannot read the log `cut.xz`
      caused by: the compressed data is damaged or cut short: premature eof

    hint: copy or compress the log again
    ");
    insta::assert_snapshot!(refused("logs"), @"
    exit 2
    error: there is no event log in `logs`

    hint: name the directory with the logs that the submit files name (`log =`)
    ");
    insta::assert_snapshot!(refused("empty/EventLog"), @"
    exit 2
    error: cannot read the log `empty/EventLog`
      caused by: cannot open the log `empty/EventLog`
      caused by: failed to open file `empty/EventLog`: Not a directory (os error 20)

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
}

/// Reading a process's memory at address 0 is an input/output error even for root, who may read
/// everything else.
#[test]
fn a_failing_disk_is_worth_a_retry() {
    let place = Place::new();
    insta::assert_snapshot!(place.run("parse /proc/self/mem -o events"), @"
    exit 1
    error: cannot read the log `/proc/self/mem`
      caused by: failed to read from file `/proc/self/mem`: Input/output error (os error 5)
    ");
}

#[test]
fn an_earlier_result_stays_until_a_new_one_is_whole() {
    let place = Place::new();
    place.write("EventLog", SMALL);
    place.stdout("parse EventLog -o events");
    let before = place.files("events");
    place.write("other", SMALL.replace("(001.", "(007."));
    insta::assert_snapshot!(place.run("parse other -o events"), @"
    exit 2
    error: `events` already exists

    hint: name another directory, or replace it with the flag that `--help` lists
    ");
    place.write("notes.txt", "no log\n");
    assert_eq!(
        place
            .run("parse EventLog notes.txt -o events --overwrite")
            .code,
        Some(2)
    );
    assert_eq!(place.files("events"), before);
    place.write("EventLog", SMALL.replace("(002.", "(003."));
    place.stdout("parse EventLog -o events --overwrite");
    assert_ne!(place.files("events"), before);
    fs_err::create_dir(place.path("mine")).expect("made");
    place.write("mine/thesis.tex", "years of work");
    insta::assert_snapshot!(place.run("parse EventLog -o mine --overwrite"), @"
    exit 2
    error: cannot replace `mine`: it has no manifest.json

    hint: name another directory
    ");
    assert_eq!(place.files("mine").len(), 1);
}

/// Returns generation `sequence` of a global event log, created `minute` minutes past 01:00, with
/// the records `events`.
fn generation(sequence: u32, minute: u32, events: &str) -> String {
    let ctime = 1_795_222_800 + 60 * minute;
    format!(
        "008 (-01.-01.-01) 11/21 01:{minute:02}:00 Global JobLog: ctime={ctime} id=0 sequence={sequence} size=0 \
         creator_name=<ap@example>\n...\n{events}"
    )
}

#[test]
fn rotated_generations_are_found_ordered_and_joined() {
    let place = Place::new();
    let submit = "000 (1.0.0) 11/21 01:10:00 Job submitted from host: <10.0.0.1:9618>\n...\n";
    let held = "012 (1.0.0) 11/21 01:11:00 Job was held.\n\tx\n\tCode 12 Subcode 2\n...\n";
    let released = "013 (1.0.0) 11/21 01:21:00 Job was released.\n...\n";
    let ended = "005 (1.0.0) 11/21 01:31:00 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n";
    place.write("EventLog.2", generation(1, 10, &format!("{submit}{held}")));
    // The hold and the release are each in two generations, as if a writer had not noticed the
    // rotation.
    place.write(
        "EventLog.1",
        generation(2, 20, &format!("{held}{released}")),
    );
    place.write("EventLog", generation(3, 30, &format!("{released}{ended}")));
    insta::assert_snapshot!(place.run("parse EventLog -o events --stats"), @"
    exit 0
    EventLog.2, EventLog.1, EventLog: 9 records of 1 job at ap@example, 2026-11-21 01:10:00 UTC to 2026-11-21 01:31:00 UTC
      000 SUBMIT          1
      005 JOB_TERMINATED  1
      008 GENERIC         3
      012 JOB_HELD        2
      013 JOB_RELEASED    2
      2 x duplicate event, kept once
      holds by code                                                               holds  jobs  released  then succeeded
      12/2 output files could not be transferred back: no such file or directory      1     1     100 %           100 %
      what most of their reasons state
      12/2: HTCondor could not use what the job needs: it does not exist
    also reading the rotated generation `EventLog.2`
    also reading the rotated generation `EventLog.1`
    ");
    fs_err::remove_file(place.path("EventLog.1")).expect("removed");
    insta::assert_snapshot!(place.run("parse EventLog -o gap --stats"), @"
    exit 0
    EventLog.2, EventLog: 6 records of 1 job at ap@example, 2026-11-21 01:10:00 UTC to 2026-11-21 01:31:00 UTC
      000 SUBMIT          1
      005 JOB_TERMINATED  1
      008 GENERIC         2
      012 JOB_HELD        1
      013 JOB_RELEASED    1
      a gap at ap@example: 2026-11-21 01:11:00 UTC to 2026-11-21 01:30:00 UTC
      holds by code                                                               holds  jobs  released  then succeeded
      12/2 output files could not be transferred back: no such file or directory      1     1       0 %               -
      what most of their reasons state
      12/2: HTCondor could not use what the job needs: it does not exist
    also reading the rotated generation `EventLog.2`
    ");
    assert_eq!(
        place.run("tensors gap -o tensors --j 1 --m 2").code,
        Some(2),
        "no label across a gap"
    );
}

#[test]
fn strict_refuses_damage_but_not_a_log_that_is_being_written() {
    let place = Place::new();
    place.write("damaged", SMALL.replacen("...\n013", "013", 1));
    insta::assert_snapshot!(place.run("parse damaged -o events --strict"), @"
    exit 2
    error: `damaged`: line 7 (byte 347): a record without its end

    hint: omit `--strict` to count damage and continue
    ");
    assert!(!place.path("events").exists());
    place.write("growing", &SMALL[..SMALL.len() - 9]);
    assert_eq!(place.run("parse growing -o events --strict").code, Some(0));
}

#[test]
fn a_dump_has_a_line_an_event() {
    let place = Place::new();
    place.write("EventLog", SMALL);
    insta::assert_snapshot!(place.run("parse EventLog --dump"), @r#"
    exit 0
    {"type":8,"name":"GENERIC","cluster":-1,"proc":-1,"subproc":-1,"time":"2026-11-21T01:49:47Z","line":1,"offset":0}
    {"type":0,"name":"SUBMIT","cluster":1,"proc":0,"subproc":0,"time":"2026-11-21T01:50:00Z","line":3,"offset":176}
    {"type":1,"name":"EXECUTE","cluster":1,"proc":0,"subproc":0,"time":"2026-11-21T01:50:10Z","line":5,"offset":271}
    {"type":12,"name":"JOB_HELD","cluster":1,"proc":0,"subproc":0,"time":"2026-11-21T01:50:20Z","hold_code":12,"hold_subcode":2,"line":7,"offset":347}
    {"type":13,"name":"JOB_RELEASED","cluster":1,"proc":0,"subproc":0,"time":"2026-11-21T01:51:00Z","line":11,"offset":448}
    {"type":5,"name":"JOB_TERMINATED","cluster":1,"proc":0,"subproc":0,"time":"2026-11-21T01:52:00Z","return_value":0,"line":14,"offset":537}
    {"type":0,"name":"SUBMIT","cluster":2,"proc":0,"subproc":0,"time":"2026-11-21T01:53:00Z","line":17,"offset":631}
    {"type":9,"name":"JOB_ABORTED","cluster":2,"proc":0,"subproc":0,"time":"2026-11-21T01:54:00Z","line":19,"offset":726}
    "#);
}

#[test]
fn grown_log_is_resumed_to_the_same_bytes_as_a_full_parse() {
    let place = Place::with_log();
    let mut text = LOG_TEXT.clone().into_bytes();
    // The first two lengths end within a record.
    for end in [1_000_003, 20_000_001, text.len(), text.len()] {
        place.write("EventLog", &text[..end]);
        let outcome = place.run("parse EventLog -o events");
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let said = if end == 1_000_003 {
            ""
        } else {
            "continuing after byte"
        };
        assert!(
            outcome.stderr.contains(said) || outcome.stderr.contains("nothing new"),
            "{outcome}"
        );
    }
    place.stdout("parse EventLog -o anew");
    assert!(
        place.files("events") == place.files("anew"),
        "reading on and reading anew differ"
    );
    place.write(
        "EventLog.2026",
        "000 (7777.0.0) 2026-11-22 01:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n",
    );
    place.stdout("parse EventLog EventLog.2026 -o events");
    place.stdout("parse EventLog EventLog.2026 -o anew --overwrite");
    assert!(
        place.files("events") == place.files("anew"),
        "one log more differs"
    );
    text[5000] ^= 1;
    place.write("EventLog", &text);
    assert_eq!(
        place.run("parse EventLog -o events").code,
        Some(2),
        "its beginning has changed: it is another log"
    );
}

/// Returns the inode and the time of the last write of each file of a store.
fn identities(place: &Place, dir: &str) -> BTreeMap<String, (u64, SystemTime)> {
    let entries = fs_err::read_dir(place.path(dir)).expect("listed");
    let identity = |entry: fs_err::DirEntry| {
        let found = entry.metadata().expect("there");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, (found.ino(), found.modified().expect("a time")))
    };
    entries
        .map(|entry| identity(entry.expect("an entry")))
        .filter(|(name, _)| name != "log-files.json")
        .collect()
}

#[test]
fn nothing_new_writes_no_store() {
    let place = Place::new();
    place.write("EventLog", SMALL);
    let first = place.stdout("parse EventLog -o events");
    let before = identities(&place, "events");
    assert_eq!(before.len(), 2);
    let again = place.run("parse EventLog -o events");
    assert_eq!(again.stdout, first);
    assert!(again.stderr.contains("nothing new in the logs"), "{again}");
    assert_eq!(identities(&place, "events"), before);

    // A copy is another file with the same content.
    fs_err::copy(place.path("EventLog"), place.path("copy")).expect("copied");
    fs_err::rename(place.path("copy"), place.path("EventLog")).expect("renamed");
    place.stdout("parse EventLog -o events");
    assert_eq!(identities(&place, "events"), before);

    // Other content of the same size is another log, whatever its time says.
    let written = fs_err::metadata(place.path("EventLog")).expect("there");
    place.write("EventLog", SMALL.replace("01:54:00", "01:55:00"));
    let file = fs_err::File::options()
        .write(true)
        .open(place.path("EventLog"));
    let time = written.modified().expect("a time");
    file.expect("opened")
        .file()
        .set_modified(time)
        .expect("set");
    assert_eq!(place.run("parse EventLog -o events").code, Some(2));
    assert_eq!(identities(&place, "events"), before);
}

#[test]
fn renamed_log_is_recognised_and_its_shards_are_kept() {
    let place = Place::new();
    place.write("EventLog", SMALL);
    place.stdout("parse EventLog -o events");
    let before = identities(&place, "events");
    fs_err::rename(place.path("EventLog"), place.path("EventLog.2026")).expect("renamed");
    let outcome = place.run("parse EventLog.2026 -o events");
    assert!(outcome.stderr.contains("nothing new"), "{outcome}");
    let shard = "events-00000.safetensors";
    assert_eq!(identities(&place, "events")[shard], before[shard]);
    place.stdout("parse EventLog.2026 -o anew");
    assert_eq!(place.files("events"), place.files("anew"));
}

#[test]
fn only_shards_that_growth_touches_are_written() {
    let place = Place::new();
    let job = |cluster: usize, number: u16, minute: usize, words: &str| {
        let (hour, minute) = (minute / 60, minute % 60);
        format!("{number:03} ({cluster}.0.0) 2026-11-21 {hour:02}:{minute:02}:00 {words}\n...\n")
    };
    let submit = "Job submitted from host: <10.0.0.1:9618>";
    let mut text = String::new();
    for cluster in 1..=60_000 {
        text += &job(cluster, 0, cluster / 1000, submit);
        for minute in 60..69 {
            text += &job(cluster, 1, minute, "Job executing on host: <10.0.0.2:9618>");
        }
    }
    place.write("EventLog", &text);
    place.stdout("parse EventLog -o events");
    let before = identities(&place, "events");
    assert!(before.len() > 3, "{before:?}");

    // A job of the first shard is held, and a job is new.
    text += &job(7, 12, 90, "Job was held.\n\tx\n\tCode 12 Subcode 2");
    text += &job(60_001, 0, 91, submit);
    place.write("EventLog", &text);
    place.stdout("parse EventLog -o events");
    let after = identities(&place, "events");
    let rewritten: Vec<&String> = after
        .iter()
        .filter(|(name, identity)| before.get(*name) != Some(identity))
        .map(|(name, _)| name)
        .collect();
    let last = format!("events-{:05}.safetensors", after.len() - 2);
    assert_eq!(
        rewritten,
        ["events-00000.safetensors", &last, "manifest.json"]
    );
    place.stdout("parse EventLog -o anew");
    assert!(place.files("events") == place.files("anew"));
}

#[test]
fn no_free_text_enters_the_store() {
    let place = Place::new();
    let reason = "\tCannot access initial working directory /home/evelyn/thesis: Permission denied";
    let ad = "028 (001.000.000) 11/21 01:50:00 Job ad information event triggered.\nOwner = \"evelyn\"\n\
              GlobalJobId = \"ap.example#1.0#1795225800\"\nCmd = \"/home/evelyn/run.sh\"\n...\n";
    let text = SMALL
        .replace("\tTransfer output files failure", reason)
        .replacen("001 (001", &format!("{ad}001 (001"), 1);
    place.write("EventLog", text);
    let stats = place.stdout("parse EventLog -o events --stats");
    let reason = "12/2: the access point could not open the initial working directory: permission is denied\n";
    assert!(stats.ends_with(reason), "{stats}");
    for (name, bytes) in place.files("events") {
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("evelyn") && !text.contains("thesis"),
            "{name}"
        );
    }
}

/// Returns [`SMALL`] with a header that job 1 has forged.
fn forged() -> String {
    let text = "Global JobLog: ctime=1600000000 id=0 sequence=9 size=0 creator_name=<evil>";
    SMALL.replacen(
        "001 (001",
        &format!("008 (001.000.000) 11/21 01:50:05 {text}\n...\n001 (001"),
        1,
    )
}

#[test]
fn header_forged_by_a_job_is_ignored() {
    let place = Place::new();
    place.write("EventLog", forged());
    let text = place.stdout("parse EventLog -o events --strict");
    assert!(
        text.contains("9 records of 2 jobs at schedd@ap.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:54:00"),
        "{text}"
    );
    let dumped = place.stdout("parse EventLog --dump");
    let times: Vec<&str> = dumped
        .lines()
        .filter_map(|line| line.split("\"time\":\"").nth(1)?.get(..20))
        .collect();
    assert!(
        times.is_sorted() && times[2] == "2026-11-21T01:50:05Z",
        "{times:?}"
    );
}

#[test]
fn a_header_that_outgrew_its_place_is_damage() {
    let place = Place::new();
    let grown = SMALL
        .replace("size=0", "size=1000123")
        .replacen("000 (001", "01", 1);
    place.write("EventLog", grown);
    let text = place.stdout("parse EventLog -o events");
    assert!(
        text.contains(
            "1 x an event overwritten by the log's header, skipped\n      EventLog: line 3 (byte 182)"
        ),
        "{text}"
    );
    insta::assert_snapshot!(place.run("parse EventLog -o strict --strict"), @"
    exit 2
    error: `EventLog`: line 3 (byte 182): an event overwritten by the log's header, skipped

    hint: omit `--strict` to count damage and continue
    ");
}

#[test]
fn summer_time_ends_within_a_log() {
    let place = Place::new();
    let log = "\
000 (1.0.0) 2026-11-01 01:40:00 Job submitted from host: <10.0.0.1:9618>
...
012 (1.0.0) 2026-11-01 01:50:00 Job was held.
\tx
\tCode 12 Subcode 2
...
013 (1.0.0) 2026-11-01 01:05:00 Job was released.
...
005 (1.0.0) 2026-11-01 01:10:00 Job terminated.
\t(1) Normal termination (return value 0)
...
";
    place.write("user.log", log);
    insta::assert_snapshot!(place.run("parse user.log -o events --strict --stats"), @"
    exit 0
    user.log: 4 records of 1 job at 10.0.0.1, 2026-11-01 01:40:00 UTC to 2026-11-01 02:10:00 UTC
      000 SUBMIT          1
      005 JOB_TERMINATED  1
      012 JOB_HELD        1
      013 JOB_RELEASED    1
      1 x a change of time zone: local time went back by about an hour
          user.log: line 7 (byte 149)
      holds by code                                                               holds  jobs  released  then succeeded
      12/2 output files could not be transferred back: no such file or directory      1     1     100 %           100 %
      what most of their reasons state
      12/2: HTCondor could not use what the job needs: it does not exist
    ");
    let times = |log: &str| -> Vec<String> {
        let lines = place.stdout(&format!("parse {log} --dump"));
        lines
            .lines()
            .filter_map(|line| Some(line.split("\"time\":\"").nth(1)?.get(11..19)?.to_owned()))
            .collect()
    };
    assert_eq!(
        times("user.log"),
        ["01:40:00", "01:50:00", "01:05:00", "01:10:00"],
        "as they are written"
    );
}

#[test]
fn years_that_cannot_be_are_refused() {
    let place = Place::new();
    place.write("user.log", "001 (1.0.0) 11/21 01:50:00 x\n...\n");
    insta::assert_snapshot!(place.run("parse user.log -o events --year 0"), @"
    exit 2
    error: invalid value '0' for '--year <YEAR>': 0 is not in 1970..=2100

    For more information, try '--help'.
    ");
    place.write("config.yaml", "logs: [user.log]\nparse: {year: 2101}\n");
    assert!(place.run("run config.yaml").stderr.contains("parse.year"));
    place.write(
        "far.log",
        "001 (1.0.0) 2026-11-21 01:50:00 x\n...\n001 (1.0.0) 9999-11-21 01:50:00 x\n...\n",
    );
    let text = place.stdout("parse far.log -o events");
    assert!(
        text.contains("1 x a record whose header cannot be read or contradicts its text, skipped\n      far.log: line 3"),
        "{text}"
    );
}

/// Runs the program with `args` and passes `input` on its standard input.
fn piped(place: &Place, args: &str, input: &[u8]) -> Outcome {
    let mut command = place.command(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("ended");
    writer.join().expect("written");
    Outcome::of(output)
}

#[test]
fn pipes_are_read_like_files() {
    let place = Place::with_log();
    place.write("EventLog", SMALL);
    place.stdout("parse EventLog -o file");
    let shards = |dir: &str| {
        let mut files = place.files(dir);
        files.remove("manifest.json").expect("it names the log");
        files
    };
    for log in ["-", "/dev/stdin", "/dev/fd/0"] {
        let outcome = piped(
            &place,
            &format!("parse {log} -o piped --overwrite"),
            SMALL.as_bytes(),
        );
        assert_eq!(outcome.code, Some(0), "{log}: {outcome}");
        assert!(shards("file") == shards("piped"), "{log}");
    }
    // A compressed log that is larger than the buffer of a pipe.
    let log = fs_err::read(repository_path(LOG)).expect("read");
    place.stdout("parse EventLog.xz -o whole");
    let outcome = piped(&place, "parse - -o piped --overwrite", &log);
    assert!(
        outcome.stdout.starts_with("standard input: 94,113 records"),
        "{outcome}"
    );
    assert!(shards("whole") == shards("piped"));
    let fifo = place.path("fifo");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .expect("mkfifo");
    assert!(made.success());
    let writer = std::thread::spawn(move || fs_err::write(fifo, SMALL).expect("written"));
    place.stdout("parse fifo -o piped --overwrite");
    writer.join().expect("written");
    assert!(shards("file") == shards("piped"));
    assert_eq!(
        piped(&place, "parse - --dump", SMALL.as_bytes()).stdout,
        place.stdout("parse EventLog --dump")
    );
}

#[test]
fn damage_in_a_pipe_has_its_place() {
    let place = Place::new();
    let damaged = SMALL.replacen("...\n013", "013", 1);
    let outcome = piped(&place, "parse - -o events --strict", damaged.as_bytes());
    insta::assert_snapshot!(outcome, @"
    exit 2
    error: `standard input`: line 7 (byte 347): a record without its end

    hint: omit `--strict` to count damage and continue
    ");
    insta::assert_snapshot!(piped(&place, "parse - -o events", b""), @"
    exit 2
    error: `-` is empty

    hint: `condor_config_val EVENT_LOG` names the global event log of an access point
    ");
    place.write("EventLog", SMALL);
    place.stdout("parse EventLog -o events");
    insta::assert_snapshot!(piped(&place, "parse - -o events", SMALL.as_bytes()), @"
    exit 2
    error: `events` already exists

    hint: name another directory, or replace it with the flag that `--help` lists
    ");
}

#[test]
fn compressed_empty_log_is_reported_as_empty() {
    let place = Place::new();
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    place.write("log.gz", gzip.finish().expect("ended"));
    place.write(
        "log.xz",
        liblzma::write::XzEncoder::new(Vec::new(), 1)
            .finish()
            .expect("ended"),
    );
    place.write("log.zst", zstd::encode_all(&b""[..], 1).expect("encoded"));
    for log in ["log.gz", "log.xz", "log.zst"] {
        let outcome = place.run(&format!("parse {log} -o events"));
        assert!(
            outcome.code == Some(2) && outcome.stderr.contains(&format!("`{log}` is empty")),
            "{outcome}"
        );
    }
}

#[test]
fn closed_pipe_is_no_error_but_a_full_disk_is() {
    let place = Place::with_log();
    let mut command = place.command("parse EventLog.xz --dump");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut first = [0; 10];
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_exact(&mut first)
        .expect("read");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
    place.write("config.yaml", "logs: [EventLog.xz]\n");
    for args in [
        "parse EventLog.xz --dump",
        "parse EventLog.xz -o events",
        "config",
        "--help",
        "--version",
        "parse --help",
    ] {
        let full = fs_err::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("opened");
        let outcome = Outcome::of(
            place
                .command(args)
                .stdout(full.into_file())
                .output()
                .expect("the program starts"),
        );
        assert!(
            outcome.code == Some(1) && outcome.stderr.contains("No space left on device"),
            "{args}: {outcome}"
        );
    }
}

/// Runs the program by way of a shell that closes standard output.
fn run_without_stdout(place: &Place, args: &str) -> Outcome {
    let command = place.command(args);
    let variables = command.get_envs();
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", "exec \"$@\" >&-", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(place.path(""));
    Outcome::of(shell.output().expect("the shell starts"))
}

#[test]
fn closed_stdout_is_an_error() {
    let place = Place::with_run();
    place.write("config.yaml", "logs: [EventLog.xz]\n");
    for args in [
        "advise run --log EventLog.xz",
        "advise run --log EventLog.xz --json",
        "advise run --log EventLog.xz --ids",
        "parse EventLog.xz --dump",
        "parse EventLog.xz -o parsed",
        "config",
        "--help",
        "--version",
    ] {
        let outcome = run_without_stdout(&place, args);
        assert!(
            outcome.code == Some(1) && outcome.stderr.contains("standard output is closed"),
            "{args}: {outcome}"
        );
        // /dev/null, open for reads and writes, is what the runtime puts in place of a closed one.
        let ignored = place.command(args).stdout(Stdio::null()).output();
        let ignored = Outcome::of(ignored.expect("the program starts"));
        assert_eq!(ignored.code, Some(0), "{args}: {ignored}");
    }
    let wrong = run_without_stdout(&place, "advise --no-such-option");
    assert_eq!(wrong.code, Some(2), "{wrong}");
}

#[test]
fn jobs_of_two_access_points_in_one_log_stay_apart() {
    let place = Place::new();
    let own = |host: &str, end: u32| {
        format!(
            "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1:9618?alias={host}>\n...\n\
             012 (1.0.0) 2026-11-21 01:50:20 Job was held.\n\tx\n\tCode 12 Subcode 2\n...\n\
             013 (1.0.0) 2026-11-21 01:51:00 Job was released.\n...\n\
             005 (1.0.0) 2026-11-21 01:52:00 Job terminated.\n\t(1) Normal termination (return value {end})\n...\n"
        )
    };
    place.write("shared.log", own("one.example", 0) + &own("two.example", 1));
    insta::assert_snapshot!(place.run("parse shared.log -o events --stats"), @"
    exit 0
    shared.log: 8 records of 2 jobs at one.example, two.example, 2026-11-21 01:50:00 UTC to 2026-11-21 01:52:00 UTC
      000 SUBMIT          2
      005 JOB_TERMINATED  2
      012 JOB_HELD        2
      013 JOB_RELEASED    2
      holds by code                                                               holds  jobs  released  then succeeded
      12/2 output files could not be transferred back: no such file or directory      2     2     100 %            50 %
      what most of their reasons state
      12/2: HTCondor could not use what the job needs: it does not exist
    ");
    place.write(
        "shared.log",
        own("one.example", 0)
            + &own("two.example", 1)
            + &own("two.example", 1).replace("(1.", "(2."),
    );
    let grown = place.run("parse shared.log -o events");
    assert!(
        grown.code == Some(0) && grown.stderr.contains("reading all logs from scratch"),
        "{grown}"
    );
    place.stdout("parse shared.log -o anew");
    assert!(place.files("events") == place.files("anew"));
    let (header, _) = SMALL.split_once("000 (").expect("a header");
    place.write(
        "EventLog",
        header.to_owned() + &own("one.example", 0) + &own("two.example", 1),
    );
    let said = "EventLog: jobs of several hosts, treated as one access point; equal ids are one job: one.example, two.example";
    assert!(place.stdout("parse EventLog -o named").contains(said));
}

#[test]
fn a_named_year_without_the_leap_day_of_the_log_is_an_error() {
    let place = Place::new();
    let record =
        |day: &str| format!("001 (1.0.0) {day} 01:50:00 Job executing on host: <a>\n...\n");
    place.write(
        "user.log",
        record("02/10") + &record("02/29") + &record("03/01"),
    );
    let refused = place.run("parse user.log -o events --year 2025");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("29 February"), "{refused}");
    assert!(refused.stderr.contains("--year 2024"), "{refused}");
    let dated = place.run("parse user.log -o events --year 2024");
    assert!(
        dated.stdout.contains("2024-02-10") && dated.stdout.contains("2024-03-01"),
        "{dated}"
    );
}
