//! Tests of changed artefacts: every verb that opens one rejects the changed file by name, whatever
//! the change.

use std::path::Path;
use std::process::Command;

use crate::place::{Outcome, Place};

/// The kind of an artefact, and the arguments of a verb that reads it. `IN` stands for the
/// artefact.
type Reader = (&'static str, &'static str);

/// The verbs that open events or tensors.
const READERS: [Reader; 3] = [
    ("events", "tensors IN -o out"),
    ("tensors", "train IN -o out --epochs 1"),
    ("tensors", "evaluate run IN"),
];

fn shards(dir: &Path) -> Vec<String> {
    let names = fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| name.ends_with(".safetensors"))
        .collect()
}

/// Returns the byte range of tensor `name` in a shard.
fn place_of(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let (length, rest) = bytes.split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&rest[..length]).expect("a header");
    let offset = |end: usize| {
        8 + length
            + header[name]["data_offsets"][end]
                .as_u64()
                .expect("an offset") as usize
    };
    offset(0)..offset(1)
}

/// Returns the names of the tensors in a shard.
fn tensors(bytes: &[u8]) -> Vec<String> {
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value =
        serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    let names = header.as_object().expect("an object").keys();
    names
        .filter(|name| *name != "__metadata__")
        .cloned()
        .collect()
}

/// Asserts that the call failed with an error that names `path`.
fn refused(outcome: &Outcome, path: &str) {
    assert_eq!(outcome.code, Some(2), "{path}\n{outcome}");
    assert!(
        outcome.stderr.contains(&format!("`{path}`")),
        "{path}\n{outcome}"
    );
}

#[test]
fn flipped_byte_in_any_shard_is_rejected_by_every_verb() {
    let place = Place::with_run();
    for (kind, args) in READERS {
        place.copy(kind, "IN");
        for shard in shards(&place.path("IN")) {
            let path = place.path("IN").join(&shard);
            let bytes = fs_err::read(&path).expect("read");
            for at in [9, bytes.len() / 2, bytes.len() - 1] {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1;
                fs_err::write(&path, flipped).expect("written");
                refused(&place.run(args), &format!("IN/{shard}"));
            }
            fs_err::write(&path, bytes).expect("written");
        }
        assert!(!place.path("out").exists(), "nothing is written");
        fs_err::remove_dir_all(place.path("IN")).expect("removed");
    }
}

#[test]
fn sweep_rejects_changed_events_and_tables() {
    let place = Place::with_log();
    place.write("small.yaml", "logs: [EventLog.xz]\nruns: 1\nepochs: 1\n");
    place.stdout("sweep init small.yaml -o sweep");
    let shard = "sweep/events/events-00000.safetensors";
    let mut bytes = fs_err::read(place.path(shard)).expect("read");
    *bytes.last_mut().expect("bytes") ^= 1;
    place.write(shard, bytes);
    refused(&place.run("sweep run sweep"), shard);

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::os::unix::fs::symlink(root.join("tests"), place.path("tests")).expect("linked");
    place.write(
        "table.yaml",
        fs_err::read(root.join("config/table.yaml")).expect("read"),
    );
    place.stdout("sweep init table.yaml -o tables");
    let shard = "tables/table/table.safetensors";
    let mut bytes = fs_err::read(place.path(shard)).expect("read");
    *bytes.last_mut().expect("bytes") ^= 1;
    place.write(shard, bytes);
    refused(&place.run("sweep run tables"), shard);
}

#[test]
fn no_verify_skips_the_digest_check() {
    let place = Place::with_run();
    place.copy("tensors", "changed");
    let shard = place.path("changed/train-00000.safetensors");
    let mut bytes = fs_err::read(&shard).expect("read");
    let at = place_of(&bytes, "proc").start;
    bytes[at] ^= 1;
    fs_err::write(&shard, bytes).expect("written");
    refused(
        &place.run("train changed -o out --epochs 1"),
        "changed/train-00000.safetensors",
    );
    place.stdout("train changed -o out --epochs 1 --no-verify");
}

#[test]
fn special_files_in_artefacts_are_rejected_without_hanging() {
    let place = Place::with_run();
    for (kind, args) in READERS {
        place.copy(kind, "IN");
        for name in shards(&place.path("IN"))
            .into_iter()
            .chain(["manifest.json".to_owned()])
        {
            let path = place.path("IN").join(&name);
            let bytes = fs_err::read(&path).expect("read");
            for what in ["pipe", "zero", "directory"] {
                fs_err::remove_file(&path).expect("removed");
                match what {
                    "pipe" => assert!(
                        Command::new("mkfifo")
                            .arg(&path)
                            .status()
                            .expect("it runs")
                            .success()
                    ),
                    "zero" => std::os::unix::fs::symlink("/dev/zero", &path).expect("linked"),
                    _ => fs_err::create_dir(&path).expect("made"),
                }
                let mut limited = Command::new("timeout");
                let program = place.command(args);
                limited
                    .arg("60")
                    .arg(program.get_program())
                    .args(program.get_args());
                limited.current_dir(place.path(".")).env_clear();
                let outcome = Outcome::of(limited.output().expect("it starts"));
                assert_eq!(outcome.code, Some(2), "{what} as {name}\n{outcome}");
                assert!(
                    outcome.stderr.contains("`IN"),
                    "{what} as {name}\n{outcome}"
                );
                if what == "directory" {
                    fs_err::remove_dir(&path)
                } else {
                    fs_err::remove_file(&path)
                }
                .expect("removed");
                fs_err::write(&path, &bytes).expect("written");
            }
        }
        fs_err::remove_dir_all(place.path("IN")).expect("removed");
    }
}

/// A test directory with small artefacts, for tests that make many calls.
fn small() -> Place {
    let place = Place::new();
    place.stdout("simulate -o log --truth truth --jobs 150 --days 7");
    place.stdout("parse log -o events");
    place.stdout("tensors events -o tensors --j 3 --m 3 --split random");
    place.stdout("train tensors -o run --epochs 1 --hidden-size 2");
    place
}

#[test]
fn corrupt_columns_cause_no_panic() {
    let place = small();
    // One shard of each artefact, with a verb that reads it.
    let readers = [
        (
            "events/events",
            "tensors events -o out --no-verify --overwrite --context same-owner-first --j 3 --m 3",
        ),
        (
            "tensors/train",
            "train tensors -o out --no-verify --overwrite --epochs 1 --hidden-size 2",
        ),
        (
            "tensors/test",
            "evaluate run tensors --no-verify --resamples 10",
        ),
    ];
    for (shard, args) in readers {
        let path = place.path(&format!("{shard}-00000.safetensors"));
        let bytes = fs_err::read(&path).expect("read");
        for name in tensors(&bytes) {
            for pattern in [[0xff; 8], [0, 0, 0, 0, 0, 0, 0, 0x80]] {
                let mut changed = bytes.clone();
                let column = &mut changed[place_of(&bytes, &name)];
                column
                    .iter_mut()
                    .zip(pattern.iter().cycle())
                    .for_each(|(byte, new)| *byte = *new);
                fs_err::write(&path, changed).expect("written");
                let outcome = place.run(args);
                let is_told =
                    matches!(outcome.code, Some(0..=2)) && !outcome.stderr.contains("panicked");
                assert!(is_told, "{shard}: {name} of {pattern:?}\n{outcome}");
            }
        }
        fs_err::write(&path, bytes).expect("written");
    }
}

#[test]
fn job_without_events_is_rejected() {
    let place = small();
    let path = place.path("events/events-00000.safetensors");
    let mut bytes = fs_err::read(&path).expect("read");
    let bounds = place_of(&bytes, "bounds");
    bytes[bounds][8..16].fill(0);
    fs_err::write(&path, bytes).expect("written");
    let outcome = place.run("tensors events -o out --no-verify");
    refused(&outcome, "events/events-00000.safetensors");
    assert!(
        outcome.stderr.contains("its job bounds are out of order"),
        "{outcome}"
    );
}
