//! Tests of privacy: file modes, and the salt for hashes of owners.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::place::{Outcome, Place};

/// Returns a log of nine jobs of two owners. Each job is held and released. Every third job is then
/// held again, and the others terminate.
fn log() -> String {
    let ad = |job: i32, owner: &str| {
        format!(
            "028 ({job}.000.000) 2026-11-21 01:00:0{job} Job ad information event triggered.\n\
             Owner = \"{owner}\"\nGlobalJobId = \"ap#{job}.0#1795222800\"\n...\n"
        )
    };
    let event = |number: &str, job: i32, second: i32, text: &str| {
        format!("{number} ({job}.000.000) 2026-11-21 01:00:{second:02} {text}\n...\n")
    };
    let mut log = String::new();
    for job in 1..=9 {
        log += &event(
            "000",
            job,
            job,
            "Job submitted from host: <10.0.0.1:9618?alias=ap>",
        );
        log += &ad(job, if job % 2 == 0 { "ada" } else { "eve" });
    }
    for job in 1..=9 {
        let held = "Job was held.\n\tTransfer failed\n\tCode 13 Subcode 2";
        log += &event("012", job, 10 + job, held);
        log += &event("013", job, 20 + job, "Job was released.");
        let end = if job % 3 == 0 {
            held
        } else {
            "Job terminated.\n\t(1) Normal termination (return value 0)"
        };
        log += &event(if job % 3 == 0 { "012" } else { "005" }, job, 30 + job, end);
    }
    log
}

/// Runs the program for a user whose home directory is `home` in `place`, with a umask that lets
/// everybody read.
fn at_home(place: &Place, home: &str, file_mode: &str, args: &str) -> Outcome {
    let program = env!("CARGO_BIN_EXE_poolcast");
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("umask 022; exec {program} {args}")])
        .current_dir(place.path("."))
        .env_clear();
    command
        .env("HOME", place.path(home))
        .env("POOLCAST_FILE_MODE", file_mode)
        .env("PATH", "/usr/bin:/bin");
    Outcome::of(command.output().expect("it starts"))
}

fn mode(path: &Path) -> u32 {
    fs_err::symlink_metadata(path)
        .expect("there")
        .permissions()
        .mode()
        & 0o777
}

/// Collects the modes of directories and of files, in and below `dir`.
fn modes(dir: &Path, directories: &mut Vec<u32>, files: &mut Vec<u32>) {
    directories.push(mode(dir));
    for entry in fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            modes(&entry, directories, files)
        } else {
            files.push(mode(&entry))
        }
    }
}

#[test]
fn files_are_for_their_user_alone_unless_asked_otherwise() {
    let place = Place::with_log();
    let header = format!(
        "008 (-01.-01.-01) 2026-11-21 01:00:00 {:<256}\n...\n",
        "Global JobLog: ctime=1795222800 id=0.1 sequence=1 size=0 events=0 offset=0 event_off=0 max_rotation=1 creator_name=<>"
    );
    place.write("EventLog", format!("{header}{}", log()));
    place.write("small.yaml", "logs: [EventLog.xz]\nruns: 1\nepochs: 1\n");
    for (name, directory, file) in [("private", 0o700, 0o600), ("shared", 0o755, 0o644)] {
        for args in [
            "collect EventLog -o NAME/archive",
            "parse EventLog.xz -o NAME/events",
            "tensors NAME/events -o NAME/tensors --j 3 --m 3",
            "train NAME/tensors -o NAME/run --epochs 1 --hidden-size 2",
            "evaluate NAME/run NAME/tensors --resamples 10",
            "sweep init small.yaml -o NAME/sweep",
        ] {
            let outcome = at_home(&place, "home", name, &args.replace("NAME", name));
            assert_eq!(outcome.code, Some(0), "{args}\n{outcome}");
        }
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        modes(&place.path(name), &mut directories, &mut files);
        assert!(
            directories.iter().all(|mode| *mode == directory),
            "{name}: {directories:?}"
        );
        assert!(
            files.len() > 15 && files.iter().all(|mode| *mode == file),
            "{name}: {files:?}"
        );
    }
    insta::assert_snapshot!(at_home(&place, "home", "everybody", "config"), @"
    exit 2
    error: `POOLCAST_FILE_MODE` must be `private` or `shared`, got `everybody`

    hint: `private` makes files that only their owner can use; `shared` applies the umask
    ");
}

#[test]
fn salt_is_created_once_and_reused() {
    let place = Place::new();
    place.write("log", log());
    let first = at_home(&place, "home", "", "parse log -o one --json");
    let salt = place.path("home/.config/poolcast/owner-salt");
    assert_eq!((first.code, mode(&salt)), (Some(0), 0o600), "{first}");
    assert!(
        first.stderr.starts_with("note: created `") && first.stderr.ends_with("keep it\n"),
        "{first}"
    );
    let second = at_home(&place, "home", "", "parse log -o two --json");
    assert_eq!(
        (second.code, second.stderr.as_str()),
        (Some(0), ""),
        "{second}"
    );
    assert!(place.files("one") == place.files("two"), "the same salt");

    let text = fs_err::read_to_string(&salt).expect("read");
    let contains = |bytes: &[u8], text: &str| {
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    let secret = text.trim();
    assert!(
        secret.len() == 64
            && !place
                .files("one")
                .values()
                .any(|bytes| contains(bytes, secret))
    );

    // The program warns about a salt that everybody can read.
    fs_err::set_permissions(&salt, std::fs::Permissions::from_mode(0o644)).expect("set");
    let third = at_home(&place, "home", "", "parse log -o three");
    assert!(
        third.stderr.contains("other users can read the owner salt"),
        "{third}"
    );
    assert!(place.files("one") == place.files("three"));
}

/// Samples and models depend on which jobs have the same owner, but not on the hash of the owner.
#[test]
fn samples_and_models_do_not_depend_on_the_salt() {
    let place = Place::new();
    place.write("log", log());
    let make = |name: &str| {
        for args in [
            "parse log -o NAME/events",
            "tensors NAME/events -o NAME/tensors --j 4 --m 4 --timeframe-len 5 --context same-owner-first --split random",
            "train NAME/tensors -o NAME/run --epochs 2 --hidden-size 4 --model lstm+static",
        ] {
            let outcome = at_home(
                &place,
                &format!("home-{name}"),
                "",
                &args.replace("NAME", name),
            );
            assert_eq!(outcome.code, Some(0), "{args}\n{outcome}");
        }
    };
    make("one");
    make("two");
    assert!(
        place.files("one/events") != place.files("two/events"),
        "owners have other hashes"
    );
    let (one, two) = (place.files("one/tensors"), place.files("two/tensors"));
    assert!(one == two && one.len() == 5, "{:?}", one.keys());
    let (one, two) = (place.files("one/run"), place.files("two/run"));
    assert!(
        one == two && one.contains_key("model.safetensors"),
        "{:?}",
        one.keys()
    );
}

#[test]
fn a_store_is_not_read_on_with_another_salt() {
    let place = Place::new();
    let log = log();
    let (first, last) = log.split_at(log.find("013 (").expect("a release"));
    place.write("log", first);
    let parse = |salt: &str| {
        let mut command = place.command("parse log -o events");
        Outcome::of(
            command
                .env("POOLCAST_OWNER_SALT", salt)
                .output()
                .expect("it starts"),
        )
    };
    assert_eq!(parse("the first of two salts").code, Some(0));
    assert_eq!(
        parse("the second of two salts").code,
        Some(0),
        "there is nothing to read"
    );
    place.write("log", format!("{first}{last}"));
    insta::assert_snapshot!(parse("the second of two salts"), @"
    exit 2
    error: cannot append to `events`, whose owners are hashed with another salt

    hint: set `POOLCAST_OWNER_SALT_FILE` to the file of that salt, or name another directory
    ");
    let outcome = parse("the first of two salts");
    assert!(
        outcome.code == Some(0) && outcome.stderr.contains("continuing after byte"),
        "{outcome}"
    );
}

#[test]
fn unwritable_home_gives_each_store_its_own_salt() {
    let place = Place::new();
    place.write("log", log());
    // A home that is a file can hold nothing, even for root.
    place.write("home", "");
    let outcome = at_home(&place, "home", "", "parse log -o events");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let note = "note: owners are hashed with a salt for this store only";
    assert!(
        outcome.stderr.starts_with(note) && outcome.stderr.contains("POOLCAST_OWNER_SALT_FILE"),
        "{outcome}"
    );

    // If the user names a salt file, the program must be able to create it.
    let mut command = place.command("parse log -o other");
    command
        .env_remove("POOLCAST_OWNER_SALT")
        .env("POOLCAST_OWNER_SALT_FILE", "home/salt");
    let outcome = Outcome::of(command.output().expect("it starts"));
    assert!(
        outcome.code == Some(2)
            && outcome
                .stderr
                .contains("cannot read or create the owner salt in `home/salt`"),
        "{outcome}"
    );
    let mut command = place.command("parse log -o other");
    command
        .env_remove("POOLCAST_OWNER_SALT")
        .env("POOLCAST_OWNER_SALT_FILE", "secrets/salt");
    let outcome = Outcome::of(command.output().expect("it starts"));
    assert!(
        outcome.code == Some(0) && mode(&place.path("secrets/salt")) == 0o600,
        "{outcome}"
    );
}
