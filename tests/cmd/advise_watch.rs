//! Tests of `poolcast advise --watch`: a log that grows meanwhile.

use std::process::{Child, Stdio};

use crate::advise_probes::{held, log_of_two, name_probe, place, released};
use crate::json_documents;
use crate::place::{Outcome, Place};
use crate::sweep::wait;

/// A call of `advise --watch` whose output is in the file `shown`, and whose errors are in `errors`.
struct Watch<'a> {
    place: &'a Place,
    child: Child,
}

impl Watch<'_> {
    fn start<'a>(place: &'a Place, args: &str) -> Watch<'a> {
        let file = |name| {
            let made = fs_err::File::create(place.path(name)).expect("made");
            Stdio::from(made.into_file())
        };
        let child = place
            .command(&format!("advise run --log EventLog {args}"))
            .stdout(file("shown"))
            .stderr(file("errors"))
            .spawn()
            .expect("the program starts");
        Watch { place, child }
    }

    fn shown(&self) -> String {
        fs_err::read_to_string(self.place.path("shown")).expect("read")
    }

    fn errors(&self) -> String {
        fs_err::read_to_string(self.place.path("errors")).expect("read")
    }

    /// Waits until the output has `text`.
    fn wait_for(&self, text: &str) {
        wait(|| self.shown().contains(text));
    }

    /// Appends records to the log.
    fn append(&self, records: &str) {
        use std::io::Write as _;
        let mut log = fs_err::OpenOptions::new()
            .append(true)
            .open(self.place.path("EventLog"))
            .expect("opened");
        log.write_all(records.as_bytes()).expect("written");
    }

    /// Waits for the end. The outcome has the errors, but not what was shown.
    fn end(mut self) -> Outcome {
        let code = self.child.wait().expect("it ended").code();
        Outcome {
            code,
            stdout: String::new(),
            stderr: self.errors(),
        }
    }
}

#[test]
fn watch_prints_what_is_new_until_no_job_is_held() {
    let place = place();
    let watch = Watch::start(&place, "--watch=1");
    watch.wait_for("once fixed: ");
    // The file is there before its lines are.
    let ledger = place.path("run/answers.jsonl");
    wait(|| fs_err::read_to_string(&ledger).is_ok_and(|lines| lines.ends_with('\n')));
    name_probe(&place, "8.0");
    // Another job joins the cause, which is no news.
    watch.append(&held(9, 15, "typo.dat"));
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let first = watch.shown();

    watch.append(&released(8, 20, 0));
    watch.wait_for(": the probe 8.0 of 02:00 ended well; 2 jobs have another answer\n");
    watch.append(&held(10, 50, "other.dat"));
    watch.wait_for(": 1 new cause\n");
    assert!(watch.shown().starts_with(&first));
    watch.append(&(released(7, 60, 0) + &released(9, 60, 0) + &released(10, 60, 0)));
    let text = |place: &Place| fs_err::read_to_string(place.path("shown")).expect("read");
    let ended = watch.end();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended}");

    let shown = text(&place);
    let stamps: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("2026-11-21 03:26:17 UTC"))
        .map(|line| line.trim_start_matches("2026-11-21 03:26:17 UTC"))
        .collect();
    assert_eq!(
        stamps,
        [
            "",
            ": the probe 8.0 of 02:00 ended well; 2 jobs have another answer",
            ": 1 new cause",
            ": none of these jobs is held any more"
        ],
        "{shown}"
    );
    assert!(
        shown.contains("    the probe 8.0 of 02:00 ended well\n"),
        "below the cause: {shown}"
    );
}

#[test]
fn watch_prints_a_json_line_per_change() {
    let place = place();
    let watch = Watch::start(&place, "7.0 --watch=1 --json");
    watch.wait_for("}\n");
    watch.append(&released(7, 60, 0));
    let ended = watch.end();
    assert_eq!(ended.code, Some(0), "{ended}");
    let shown = fs_err::read_to_string(place.path("shown")).expect("read");
    let documents: Vec<serde_json::Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let chosen: Vec<_> = documents
        .iter()
        .map(|document| document["advice"].as_array().map(Vec::len))
        .collect();
    assert_eq!(chosen, [Some(1), Some(0)], "7.0 alone is watched");
    for document in &documents {
        json_documents::printed_keys("advise run --watch --json", document);
    }
}

#[test]
fn watch_is_interrupted() {
    let place = place();
    let watch = Watch::start(&place, "--watch=600");
    watch.wait_for("once fixed");
    let killed = std::process::Command::new("kill")
        .args(["-s", "INT", &watch.child.id().to_string()])
        .status();
    assert!(killed.expect("kill starts").success());
    assert_eq!(watch.end().code, Some(130));
}

#[test]
fn failure_after_the_first_answer_is_named_and_watching_continues() {
    let place = place();
    let watch = Watch::start(&place, "--watch=1");
    watch.wait_for("once fixed");
    fs_err::rename(place.path("EventLog"), place.path("moved")).expect("moved");
    wait(|| watch.errors().contains("error: "));
    // The next looks fail for the same reason.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let whole = log_of_two() + &released(7, 60, 0) + &released(8, 60, 0);
    place.write("EventLog", whole);
    let ended = watch.end();
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(ended.stderr.matches("error: ").count(), 1, "{ended}");
}

#[test]
fn watch_rejects_what_can_be_asked_once() {
    let place = place();
    insta::assert_snapshot!(place.run("advise run --watch --at 2026-11-21"), @"
    exit 2
    error: the argument '--watch[=<SECONDS>]' cannot be used with '--at <TIME>'

    Usage: poolcast advise --watch[=<SECONDS>] <JOB|LOG|DIR|RUN>...

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run("advise run --log - --watch"), @"
    exit 2
    error: cannot watch standard input or a pipe: `--watch` reads its input again and again

    hint: name a file, or use `--queue now`
    ");
    for option in ["--check", "--dag A", "--ids", "--exit-code"] {
        let refused = place.run(&format!("advise run --watch {option}"));
        assert_eq!(refused.code, Some(2), "{option}");
        assert!(refused.stderr.contains("cannot be used with"), "{refused}");
    }
    let gone = place.run("advise run --log EventLog --queue - --watch");
    assert_eq!(gone.code, Some(2), "{gone}");
    assert!(gone.stderr.contains("cannot watch"), "{gone}");
}
