//! Tests with hostile input: foreign files in shared folders, and control characters in names and
//! texts.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::place::Place;
use crate::run::SMALL;
use crate::sweep::wait;

fn make_pipe(place: &Place, name: &str) {
    assert!(
        Command::new("mkfifo")
            .arg(place.path(name))
            .status()
            .expect("mkfifo runs")
            .success()
    );
}

#[test]
fn foreign_files_in_a_queue_are_skipped() {
    let place = Place::with_short_log();
    place.write("small.yaml", SMALL);
    place.stdout("sweep init small.yaml -o sweep");
    let mut manager = place
        .command("sweep manage sweep")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait(|| place.path("sweep/queue/sealed.json").exists());
    manager.kill().expect("killed");
    manager.wait().expect("it ended");

    // The results include a pipe, an endless device and a sparse file of a terabyte. A worker file
    // and the log are pipes.
    make_pipe(&place, "sweep/queue/results/pipe.jsonl");
    symlink("/dev/zero", place.path("sweep/queue/results/zero.jsonl")).expect("linked");
    fs_err::File::create(place.path("sweep/queue/results/hole.jsonl"))
        .expect("made")
        .set_len(1 << 40)
        .expect("sparse");
    make_pipe(&place, "sweep/queue/workers/ghost");
    fs_err::remove_file(place.path("sweep/status.log")).expect("removed");
    make_pipe(&place, "sweep/status.log");

    // The items include trials that do not exist, a trial with too many epochs, a trial that an
    // unknown worker has marked as done, and a pipe. Two entries look like segments, but are a file
    // and a link.
    let items = place.path("sweep/queue/items");
    let mut segments = fs_err::read_dir(&items)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path());
    let segment = segments
        .find(|path| path.join("t000001-e000003.a1.ready").exists())
        .expect("the first trial is ready");
    for name in [
        "t000000-e000003.a1.ready",
        "t000077-e000003.a1.ready",
        "t000001-e000099.a1.ready",
    ] {
        fs_err::write(segment.join(name), "").expect("written");
    }
    fs_err::write(segment.join("t000001-e000003.a1.done.ghost"), "").expect("written");
    let name = segment
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    make_pipe(
        &place,
        &format!("sweep/queue/items/{name}/t000002-e000003.a9.ready"),
    );
    fs_err::write(items.join("p200.b000007.s00000.n1"), "").expect("written");
    symlink("/", items.join("p200.b000008.s00000.n1")).expect("linked");

    let outcome = place.run("sweep run sweep --threads 2");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(
        outcome
            .stdout
            .starts_with("3 trials: 3 done, 0 failed, 0 running, 0 ready\n"),
        "{outcome}"
    );
    for name in [
        "pipe.jsonl",
        "zero.jsonl",
        "t000077-e000003",
        "t000001-e000099",
        "p200.b000007",
        "p200.b000008",
    ] {
        assert!(
            outcome.stderr.contains(name),
            "`{name}` is not named in\n{outcome}"
        );
    }
}

/// A text that sets the window title, sets a colour by one byte, runs backwards, has invisible
/// characters, and forges a line.
const HOSTILE: &str = "h\u{1b}]0;t\u{7}\u{9b}31m\u{202e}\u{200b}\u{e0041}\r\nfake: line";

/// A test directory with hostile names and texts wherever it can have some.
fn hostile_place() -> Place {
    let place = Place::with_run();
    symlink(
        place.path("EventLog.xz"),
        place.path(&format!("{HOSTILE}.xz")),
    )
    .expect("linked");
    let escaped = serde_json::to_string(HOSTILE).expect("JSON");

    // A log with a hostile access point and a hostile hold reason.
    let name = HOSTILE.split('\r').next().expect("a part");
    let log = format!(
        "008 (-1.-1.-1) 2026-01-01 00:00:00 Global JobLog: ctime=1767225600 id={name}.1.1767225600.1 sequence=1 size=0 \
         events=0 offset=0 event_off=0 max_rotation=1 creator_name=<{name}>\n...\n\
         000 (7.0.0) 2026-01-01 00:00:01 Job submitted from host: <{name}>\n...\n\
         012 (7.0.0) 2026-01-01 00:00:02 Job was held.\n\t{name} error\n\tCode 12 Subcode 2\n...\n"
    );
    place.write("ap.log", log);

    // Configurations of a sweep and of pipelines over tables, and invalid configurations.
    place.write(
        "sweep.yaml",
        SMALL.replace(
            "runs: 3",
            &format!("runs: 1\nwandb: {{sweep: {{name: {escaped}}}}}"),
        ),
    );
    place.write("key.yaml", format!("{{{escaped}: 1}}"));
    place.write("twice.yaml", format!("{{{escaped}: 1, {escaped}: 2}}"));
    place.write("word.yaml", format!("preprocessing: {{window: {escaped}}}"));
    place.write("value.yaml", format!("epochs: {escaped}"));
    place.write("logs.yaml", format!("logs: [{escaped}]\nout: {escaped}"));
    place.write("raw.yaml", format!("seed: \"{HOSTILE}\"\n"));
    place.write(
        "image.yaml",
        SMALL.to_owned()
            + &format!("dag: {{image: {escaped}, submit: {{train: {{{escaped}: 1}}}}}}"),
    );
    place.write("features.csv", "run,a\n1,1\n2,2\n3,3\n4,4\n");
    place.write(
        "metadata.csv",
        format!("run,class\n1,\"{HOSTILE}\"\n2,b\n3,\"{HOSTILE}\"\n4,b\n"),
    );
    let tables = |split: &str, filter: &str| {
        let data = serde_json::json!({
            "out": "tables", "runs": 0, "pipelines": {"lasso": {}},
            "data": {"features": "features.csv", "metadata": "metadata.csv", "index": "run", "target": "class", "cv": 2,
                "splits": {split: filter}},
        });
        data.to_string()
    };
    place.write("tables.yaml", tables(HOSTILE, "run >= 0"));
    place.write("column.yaml", tables("A", &format!("`{HOSTILE}` == 1")));
    place.write("filter.yaml", tables("A", &format!("class == '{HOSTILE}'")));

    // Foreign artefacts, and a hostile `condor_submit_dag`.
    fs_err::create_dir(place.path("foreign")).expect("made");
    place.write(
        "foreign/manifest.json",
        format!("{{\"format\": {escaped}, \"format_version\": 1, \"key\": {escaped}}}"),
    );
    fs_err::create_dir(place.path("broken")).expect("made");
    place.write("broken/manifest.json", HOSTILE);
    fs_err::create_dir(place.path("bin")).expect("made");
    place.put_program(
        "bin/condor_submit_dag",
        "printf 'no \\033[31m\\n\\342\\200\\256'\nprintf '\\033]0;x\\007' >&2\nexit 1",
    );
    place.write("x.sif", "");
    place
}

#[test]
fn no_verb_prints_hidden_characters() {
    let place = hostile_place();
    let h = HOSTILE;
    let (hxz, option) = (format!("{h}.xz"), format!("--{h}"));
    let calls: &[&[&str]] = &[
        &[h],
        &[&option],
        &["parse", &option],
        &["parse", h, "-o", "none"],
        &["parse", &hxz, "--ap", h, "-o", h],
        &["parse", &hxz, "--ap", h, "-o", h],
        &["parse", &hxz, "--ap", "other", "-o", h],
        &["parse", "ap.log", "-o", "ap", "--stats"],
        &["parse", "ap.log", "-o", "ap2", "--json"],
        &["parse", "ap.log", "--dump"],
        &["parse", "ap.log", "--year", h, "--dump"],
        &["collect", "ap.log", "-o", "archive"],
        &["collect", "ap.log", "-o", "archive", "--json"],
        &["collect", h, "-o", "archive"],
        &[
            "tensors",
            h,
            "-o",
            "tensors-of-h",
            "--j",
            "3",
            "--m",
            "4",
            "--audit",
        ],
        &["tensors", "ap", "-o", "ap-tensors"],
        &["tensors", "foreign", "-o", "none"],
        &["tensors", "broken", "-o", "none"],
        &["tensors", "events", "-o", "none", "-c", "key.yaml"],
        &["tensors", "events", "-o", "none", "--window", h],
        &[
            "train",
            "tensors-of-h",
            "-o",
            "run/../h-run",
            "--epochs",
            "1",
        ],
        &["train", h, "-o", "none"],
        &["train", "tensors", "-o", "none", "--model", h],
        &["train", "tensors", "-o", "none", "--device", h],
        &["train", "tensors", "-o", "none", "-c", "value.yaml"],
        &["evaluate", "run", h],
        &["evaluate", "foreign", "tensors"],
        &["evaluate", "run", "tensors", "--side", h],
        &["evaluate", "run", "tensors", "--truth", h],
        &["advise", "run", "--log", "ap.log"],
        &["advise", "run", "--log", "ap.log", "--json"],
        &["advise", "run", "--log", h],
        &["advise", "run", "--log", "ap.log", h],
        &["advise", h, "--log", "ap.log"],
        &["simulate", "-o", &option[2..], "--truth", h],
        &[
            "simulate",
            "-o",
            "simulated",
            "--truth",
            "truth",
            "--start",
            h,
        ],
        &[
            "simulate", "-o", "h-sim", "--truth", "h-truth", "--jobs", "50",
        ],
        &["config", "sweep.yaml"],
        &["config", "key.yaml"],
        &["config", "twice.yaml"],
        &["config", "word.yaml"],
        &["config", "value.yaml"],
        &["config", "logs.yaml"],
        &["config", "raw.yaml"],
        &["config", h],
        &["run", "logs.yaml"],
        &["run", h],
        &["sweep", "init", "sweep.yaml", "-o", "h-sweep"],
        &["sweep", "run", "h-sweep"],
        &["sweep", "best", "h-sweep"],
        &["sweep", "init", "tables.yaml"],
        &["sweep", "run", "tables"],
        &["sweep", "best", "tables"],
        &["sweep", "best", "tables", "--json"],
        &["sweep", "list", "tables", "--json"],
        &["sweep", "status", "tables"],
        &["sweep", "init", "column.yaml"],
        &["sweep", "init", "filter.yaml"],
        &["sweep", "init", "tables.yaml", "--split-names", h],
        &["sweep", "init", "tables.yaml", "--pipeline-names", h],
        &["sweep", "status", h],
        &["sweep", "work", "foreign"],
        &["sweep", "manage", "broken"],
        &["sweep", "cleanup", h],
        &[
            "dag",
            "sweep.yaml",
            "-o",
            "h-dag",
            "--image",
            "x.sif",
            "--dry-run",
        ],
        &["dag", "image.yaml", "-o", "h-dag", "--dry-run"],
        &["dag", "image.yaml", "-o", h, "--image", h],
        &["completions", h],
    ];
    let check = |place: &Place, calls: &[&str], environment: &[(&str, &str)]| {
        let mut command = place.command("");
        let output = command
            .args(calls)
            .envs(environment.iter().copied())
            .output()
            .expect("it starts");
        let is_document = calls.contains(&"--json") && output.status.success();
        if let Err(error) = serde_json::from_slice::<serde_json::Value>(&output.stdout)
            && is_document
        {
            panic!("{calls:?} is no JSON: {error}");
        }
        for bytes in [output.stdout, output.stderr] {
            let text =
                String::from_utf8(bytes).unwrap_or_else(|error| panic!("{calls:?}: {error}"));
            let hidden = text
                .chars()
                .find(|c| poolcast_base::escape::is_hidden(*c) && *c != '\n' && *c != '\t');
            assert!(hidden.is_none(), "{calls:?} shows {hidden:?} in\n{text:?}");
            assert!(
                !text
                    .lines()
                    .any(|line| line.trim_start().starts_with("fake: line")),
                "{calls:?} forges\n{text}"
            );
        }
        output.status.code()
    };
    for call in calls {
        let code = check(&place, call, &[]);
        assert!(
            code.is_some_and(|code| code != 101),
            "{call:?} ended with {code:?}"
        );
    }
    check(
        &place,
        &["parse", "ap.log", "-o", "ap3"],
        &[("POOLCAST_LOG", h)],
    );
    check(&place, &["config"], &[("POOLCAST_SEED", h)]);
    check(&place, &["config"], &[("POOLCAST_OUT", h)]);
    let path = format!("{}:/usr/bin:/bin", place.path("bin").display());
    place.write("plain.yaml", SMALL);
    let submit = [
        "dag",
        "plain.yaml",
        "-o",
        "h-submit",
        "--image",
        "x.sif",
        "--submit",
    ];
    assert_eq!(check(&place, &submit, &[("PATH", &path)]), Some(2));
}
