//! A directory to work in and the real program in it; the artefacts that most tests start from.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::json_documents;

/// The bundled log.
pub(crate) const LOG: &str = "tests/data/gel/EventLog.xz";

/// A printed document as a file has it, which has its version in a manifest.
pub(crate) fn without_version(document: &serde_json::Value) -> serde_json::Value {
    let mut document = document.clone();
    let version = document
        .as_object_mut()
        .and_then(|keys| keys.remove("schema_version"));
    assert!(version.is_some(), "a document has a version");
    document
}

/// A fresh directory; the program runs in it, so that no message holds a path of this machine.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    /// A place where the bundled log stands as `EventLog.xz`.
    pub(crate) fn with_log() -> Place {
        let place = Place::new();
        symlink(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(LOG),
            place.path("EventLog.xz"),
        )
        .expect("linked");
        place
    }

    /// A place with the bundled log and what [`SHARED`] made of it: `events` and `tensors`, not to be
    /// changed, and a `run` of its own, to which answers are added.
    pub(crate) fn with_run() -> Place {
        let place = Place::with_log();
        for name in ["events", "tensors"] {
            symlink(SHARED.join(name), place.path(name)).expect("linked");
        }
        place.copy("run", "run");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs_err::write(self.path(name), bytes).expect("written");
    }

    /// Copies one of the shared directories here as `to`, to be changed.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        fs_err::create_dir(self.path(to)).expect("made");
        for (name, bytes) in files(&SHARED.join(from)) {
            fs_err::write(self.path(to).join(name), bytes).expect("written");
        }
    }

    /// The program with `args`, divided at blanks, in an environment of its own.
    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = command(self.dir.path(), args);
        // It is always an hour after the bundled log's end.
        if args.split(' ').next() == Some("advise") {
            command.args(["--now", "2026-11-21T03:26:17Z"]);
        }
        command
    }

    pub(crate) fn run(&self, args: &str) -> Outcome {
        Outcome::of(self.command(args).output().expect("the program starts"))
    }

    /// What the program prints on stdout, when it must succeed.
    pub(crate) fn stdout(&self, args: &str) -> String {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(0), "poolcast {args}\n{outcome}");
        outcome.stdout
    }

    /// The JSON document that the program prints, which must be as docs/json.md says.
    pub(crate) fn json(&self, args: &str) -> serde_json::Value {
        let document = serde_json::from_str(&self.stdout(args)).expect("JSON");
        json_documents::printed_keys(args, &document);
        document
    }

    /// Every file under `name` with its bytes.
    pub(crate) fn files(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        files(&self.path(name))
    }
}

fn command(dir: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poolcast"));
    // A zone with daylight saving time: nothing printed or stored may depend on it.
    command
        .args(args.split_ascii_whitespace())
        .current_dir(dir)
        .env_clear()
        .env("TZ", "America/Chicago");
    // No test makes or reads the salt of the user who runs it.
    command.env("POOLCAST_OWNER_SALT_FILE", &*SALT);
    command
}

/// When the epochs of a training were: this differs each time.
const TIMES_FILE: &str = "times.jsonl";

/// Every file below `dir` with its bytes, but for those that say when something was.
pub(crate) fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry"))
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == TIMES_FILE {
            continue;
        }
        if entry.path().is_dir() {
            found.extend(
                files(&entry.path())
                    .into_iter()
                    .map(|(below, bytes)| (format!("{name}/{below}"), bytes)),
            );
        } else {
            found.insert(name, fs_err::read(entry.path()).expect("read"));
        }
    }
    found
}

/// Whether a file or directory of this name lies anywhere below `dir`, where a program may be at
/// work: what goes away while it is looked at is passed over.
pub(crate) fn has_file(dir: &Path, name: &str) -> bool {
    let Ok(entries) = fs_err::read_dir(dir) else {
        return false;
    };
    entries
        .filter_map(Result::ok)
        .any(|entry| entry.file_name() == name || has_file(&entry.path(), name))
}

/// What `condor_q -json` says of the jobs that had not ended when the bundled log did.
pub(crate) fn queue() -> Vec<serde_json::Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gel/condor_q.json");
    serde_json::from_slice(&fs_err::read(path).expect("read")).expect("JSON")
}

/// What one call of the program came to.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn of(output: Output) -> Outcome {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Outcome {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self
            .code
            .map_or("killed".to_owned(), |code| code.to_string());
        write!(f, "exit {code}\n{}{}", self.stdout, self.stderr)
    }
}

/// A file with a salt to hash owners with.
static SALT: LazyLock<PathBuf> = LazyLock::new(|| {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("owner-salt-{}", std::process::id()));
    let mut options = fs_err::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .expect("made");
    file.write_all(b"the salt of all tests\n").expect("written");
    path
});

/// The bundled log, parsed, its tensors, and a small model trained on them: made once for all tests
/// of a process.
static SHARED: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cmd");
    if dir.exists() {
        fs_err::remove_dir_all(&dir).expect("removed");
    }
    fs_err::create_dir_all(&dir).expect("made");
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join(LOG);
    // Of three epochs the one with the least loss says the same of many jobs, which is what tests of
    // advice go by.
    let watched = "earlystop_metric: {name: validation_loss, goal: minimize}\n";
    fs_err::write(dir.join("train.yaml"), watched).expect("written");
    for args in [
        &format!("parse {} -o events", log.display()),
        "tensors events -o tensors --j 5 --m 6 --timeframe-len 10",
        "train tensors -o run --config train.yaml --hidden-size 8 --epochs 3 --learning-rate 0.01",
        "evaluate run tensors --resamples 200",
    ] {
        let outcome = Outcome::of(command(&dir, args).output().expect("the program starts"));
        assert_eq!(outcome.code, Some(0), "poolcast {args}\n{outcome}");
    }
    dir
});
