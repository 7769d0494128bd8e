//! Tests of several calls on one directory, and of the leftovers of killed calls.

use std::collections::BTreeMap;
use std::path::Path;

use poolcast_base::files::{StagedDirectory, lock_directory};

use crate::collect::generation;
use crate::place::{Outcome, Place};
use crate::sweep::{caught, start, wait};

/// Returns the names of temporary entries in `dir`.
fn temporary(dir: &Path) -> Vec<String> {
    let names = fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".tmp"))
        .collect()
}

#[test]
fn next_call_removes_leftovers_of_a_killed_call() {
    let place = Place::with_run();
    fs_err::create_dir(place.path("work")).expect("made");
    // The tensors are so large that writing them takes a moment.
    let found = caught(|| {
        let mut child = start(
            &place,
            "tensors events -o work/large --j 500 --m 1500 --overwrite",
        );
        let found = || temporary(&place.path("work"));
        wait(|| !found().is_empty() || child.try_wait().expect("asked").is_some());
        child.kill().expect("killed");
        child.wait().expect("it ended");
        Some(found()).filter(|found| !found.is_empty())
    });

    let outcome = place.run("tensors events -o work/small --j 3 --m 3");
    let note = format!(
        "removed `work/{}`, a leftover of a killed process",
        found[0]
    );
    assert!(
        outcome.code == Some(0) && outcome.stderr.contains(&note),
        "{outcome}"
    );
    assert_eq!(temporary(&place.path("work")), Vec::<String>::new());
}

/// Writes a log with `count` rotated generations. Returns their contents by the names that they get
/// in an archive.
fn write_generations(place: &Place, count: u32) -> BTreeMap<String, Vec<u8>> {
    let mut offset = 0;
    let mut archived = BTreeMap::new();
    for number in 1..=count {
        let events = format!("000 ({number}.0.0) 11/21 01:11:00 Job submitted\n...\n");
        let text = generation(1, offset, &events).replace(
            "id=0.1 sequence=1",
            &format!("id=0.{number} sequence={number}"),
        );
        let name = match count - number {
            0 => "EventLog".to_owned(),
            rotations => format!("EventLog.{rotations}"),
        };
        place.write(&name, &text);
        offset += text.len();
        archived.insert(format!("EventLog.1795223400.{number}"), text.into_bytes());
    }
    archived
}

/// Runs `collect EventLog -o ARCHIVE`, and kills it as soon as it has a temporary file. Returns true
/// if one is left.
fn kill_collect(place: &Place, archive: &str) -> bool {
    let dir = place.path(archive);
    fs_err::create_dir(&dir).expect("made");
    let mut child = place
        .command(&format!("collect EventLog -o {archive}"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    while temporary(&dir).is_empty() && child.try_wait().expect("asked").is_none() {
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("it ended");
    !temporary(&dir).is_empty()
}

#[test]
fn collect_completes_the_archive_of_a_killed_call() {
    let place = Place::new();
    let generations = write_generations(&place, 40);
    // A temporary file lasts a moment, so not every kill leaves one.
    let mut archives = (0..200).map(|attempt| format!("archive{attempt}"));
    let archive = archives
        .find(|archive| kill_collect(&place, archive))
        .expect("a kill left a temporary file");

    let outcome = place.run(&format!("collect EventLog -o {archive}"));
    assert!(
        outcome.code == Some(0) && outcome.stderr.contains("a leftover of a killed process"),
        "{outcome}"
    );
    assert_eq!(temporary(&place.path(&archive)), Vec::<String>::new());
    let mut files = place.files(&archive);
    files.remove("manifest.json").expect("a manifest");
    files.retain(|name, _| !name.starts_with('.'));
    assert!(files == generations, "{:?}", files.keys());
}

#[test]
fn second_call_on_a_busy_directory_fails() {
    let place = Place::with_run();
    let staging = StagedDirectory::new(&place.path("out"), false).expect("staged");
    let busy = format!("process {} is writing `out`", std::process::id());
    for args in ["tensors events -o out", "parse EventLog.xz -o out"] {
        let outcome = place.run(args);
        assert!(
            outcome.code == Some(1) && outcome.stderr.contains(&busy),
            "{args}\n{outcome}"
        );
    }
    drop(staging);
    place.stdout("tensors events -o out --j 3 --m 3");

    fs_err::create_dir(place.path("shared")).expect("made");
    let _lock = lock_directory(&place.path("shared")).expect("locked");
    place.write("small.yaml", "logs: [EventLog.xz]\nruns: 1\nepochs: 1\n");
    for args in [
        "sweep init small.yaml -o shared",
        "dag small.yaml -o shared --image docker://x",
    ] {
        let outcome = place.run(args);
        let says_so = outcome
            .stderr
            .contains("another process is writing to `shared`");
        assert!(outcome.code == Some(1) && says_so, "{args}\n{outcome}");
    }
    assert_eq!(
        fs_err::read_dir(place.path("shared"))
            .expect("listed")
            .count(),
        0
    );
}

#[test]
fn one_of_two_calls_on_a_new_folder_wins() {
    let place = Place::with_run();
    place.write("small.yaml", "logs: [EventLog.xz]\nruns: 1\nepochs: 1\n");
    for args in [
        "tensors events -o out --j 3 --m 3",
        "sweep init small.yaml -o out",
    ] {
        let children = [(); 2].map(|()| {
            let mut command = place.command(args);
            command
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            command.spawn().expect("it starts")
        });
        let outcomes =
            children.map(|child| Outcome::of(child.wait_with_output().expect("it ends")));
        let won = outcomes
            .iter()
            .filter(|outcome| outcome.code == Some(0))
            .count();
        // A call that begins after the other is done finds the same result there, and succeeds.
        assert!(won >= 1, "{args}\n{}\n{}", outcomes[0], outcomes[1]);
        let is_written =
            |outcome: &&Outcome| outcome.code == Some(0) && outcome.stderr.contains("writing ");
        let written = outcomes.iter().filter(is_written).count();
        assert!(written <= 1, "{args}\n{}\n{}", outcomes[0], outcomes[1]);
        for lost in outcomes.iter().filter(|outcome| outcome.code != Some(0)) {
            assert!(
                matches!(lost.code, Some(1 | 2)) && lost.stderr.contains("`out"),
                "{args}\n{lost}"
            );
        }
        assert_eq!(temporary(&place.path(".")), Vec::<String>::new());
        if args.starts_with("tensors") {
            place.stdout("train out -o run-of-winner --epochs 1 --hidden-size 2");
        } else {
            place.stdout("sweep status out");
        }
        fs_err::remove_dir_all(place.path("out")).expect("removed");
    }
}

#[test]
fn tensors_say_how_large_they_are_and_refuse_what_nobody_means() {
    let place = Place::with_run();
    let outcome = place.run("tensors events -o out --j 10 --m 10");
    assert!(
        outcome.code == Some(0) && outcome.stderr.starts_with("writing 1.62 MB"),
        "{outcome}"
    );
    let bytes: usize = place.files("out").values().map(Vec::len).sum();
    assert!((1_600_000..1_640_000).contains(&bytes), "{bytes}");
    insta::assert_snapshot!(place.run("tensors events -o huge --j 5000 --m 5000"), @"
    exit 2
    error: samples of 5,000 jobs and 5,000 frames have 25,000,000 cells each, and the maximum is 16,777,216

    hint: choose a smaller `j` or `m`; the published search space has at most 100 of each
    ");
    assert!(!place.path("huge").exists());
}
