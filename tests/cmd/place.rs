//! Test directories where the real program runs, and the artefacts that most tests start from.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use rustix::fs::StatVfsMountFlags;
use tempfile::TempDir;

use crate::json_documents;

/// Path of the bundled log, from the top of the repository.
pub(crate) const LOG: &str = "tests/data/gel/EventLog.xz";

/// Returns a printed document as its file stores it: without a version, which the manifest has.
pub(crate) fn without_version(document: &serde_json::Value) -> serde_json::Value {
    let mut document = document.clone();
    let version = document
        .as_object_mut()
        .and_then(|keys| keys.remove("schema_version"));
    assert!(version.is_some(), "a document has a version");
    document
}

/// A fresh test directory. The program runs in it, so that messages contain no path of this
/// machine.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place {
            dir: tempfile::tempdir_in(&*SCRATCH).expect("a directory"),
        }
    }

    /// A test directory with the bundled log as `EventLog.xz`. It is decompressed already, because
    /// that takes half of the time of advice; the program looks at the content, not at the name.
    pub(crate) fn with_log() -> Place {
        let place = Place::new();
        symlink(&*DECOMPRESSED_LOG, place.path("EventLog.xz")).expect("linked");
        place
    }

    /// A test directory with the first quarter of the bundled log as `EventLog.xz`, for tests that
    /// compare one sweep with another: most of the time of a sweep is in proportion to its log.
    pub(crate) fn with_short_log() -> Place {
        let place = Place::new();
        symlink(&*SHORT_LOG, place.path("EventLog.xz")).expect("linked");
        place
    }

    /// A test directory like [`Place::with_short_log`], whose log is already parsed, into `events`.
    /// Tests must not change these.
    pub(crate) fn with_short_events() -> Place {
        let place = Place::with_short_log();
        symlink(&*SHORT_EVENTS, place.path("events")).expect("linked");
        place
    }

    /// A test directory with the bundled log as `EventLog.xz`, compressed as it is.
    pub(crate) fn with_compressed_log() -> Place {
        let place = Place::new();
        symlink(repository_path(LOG), place.path("EventLog.xz")).expect("linked");
        place
    }

    /// A test directory with the bundled log and the artefacts of [`SHARED`]: `events` and
    /// `tensors`, which tests must not change, and a `run` of its own, to which answers are added.
    pub(crate) fn with_run() -> Place {
        let place = Place::with_log();
        for name in ["events", "tensors"] {
            symlink(SHARED.join(name), place.path(name)).expect("linked");
        }
        place.copy("run", "run");
        place
    }

    /// A test directory with the bundled log, and in `run` what `learn` has learned from it, to which answers are
    /// added. Tests must not change the events there.
    pub(crate) fn with_answers() -> Place {
        let place = Place::with_log();
        fs_err::create_dir(place.path("run")).expect("made");
        for entry in fs_err::read_dir(&*LEARNED).expect("listed") {
            let (from, name) = entry
                .map(|entry| (entry.path(), entry.file_name()))
                .expect("an entry");
            let to = format!("run/{}", name.to_string_lossy());
            match name.to_str() {
                Some("events") => symlink(from, place.path(&to)).expect("linked"),
                _ if from.is_dir() => place.copy_all(&from, &to),
                _ => drop(fs_err::copy(from, place.path(&to)).expect("copied")),
            }
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs_err::write(self.path(name), bytes).expect("written");
    }

    /// Writes `script`, for the shell, to the file `name`, and makes it executable.
    pub(crate) fn put_program(&self, name: &str, script: &str) {
        self.write(name, format!("#!/bin/sh\n{script}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(self.path(name), mode).expect("made executable");
    }

    /// Copies the shared directory `from` to `to`, so that a test can change it.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        self.copy_all(&SHARED.join(from), to);
    }

    /// Copies the directory `from` with all below it to `to`.
    pub(crate) fn copy_all(&self, from: &Path, to: &str) {
        fs_err::create_dir(self.path(to)).expect("made");
        for entry in fs_err::read_dir(from).expect("listed") {
            let entry = entry.expect("an entry");
            let to = format!("{to}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                self.copy_all(&entry.path(), &to);
            } else {
                fs_err::copy(entry.path(), self.path(&to)).expect("copied");
            }
        }
    }

    /// Returns a command that runs the program with `args`, split at blanks, in a clean
    /// environment.
    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = command(self.dir.path(), args);
        // The current time is always one hour after the end of the bundled log.
        if args.split(' ').next() == Some("advise") {
            command.args(["--now", "2026-11-21T03:26:17Z"]);
        }
        command
    }

    pub(crate) fn run(&self, args: &str) -> Outcome {
        Outcome::of(self.command(args).output().expect("the program starts"))
    }

    /// Runs the program under GNU time. Returns its outcome, and its largest resident size in MiB;
    /// `None` if GNU time is missing.
    pub(crate) fn run_measured(&self, args: &str) -> Option<(Outcome, u64)> {
        let command = self.command(args);
        let variables = command.get_envs();
        let measured = Command::new("/usr/bin/time")
            .args(["-f", "%M"])
            .arg(command.get_program())
            .args(command.get_args())
            .envs(variables.filter_map(|(name, value)| Some((name, value?))))
            .current_dir(self.path(""))
            .output();
        let mut outcome = Outcome::of(measured.ok()?);
        // The size, in KiB, follows the output of the program.
        let end = outcome.stderr.trim_end().rfind('\n').map_or(0, |at| at + 1);
        let size = outcome.stderr.split_off(end);
        let used_kib: u64 = size.trim().parse().expect("a number");
        Some((outcome, used_kib >> 10))
    }

    /// Runs the program, which must succeed, and returns its stdout.
    pub(crate) fn stdout(&self, args: &str) -> String {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(0), "poolcast {args}\n{outcome}");
        outcome.stdout
    }

    /// Runs the program, and returns the JSON document that it prints, after a check against
    /// docs/json.md.
    pub(crate) fn json(&self, args: &str) -> serde_json::Value {
        let document = serde_json::from_str(&self.stdout(args)).expect("JSON");
        json_documents::printed_keys(args, &document);
        document
    }

    /// Returns every file under `name` with its bytes.
    pub(crate) fn files(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        files(&self.path(name))
    }
}

/// Returns the path of a file of the repository.
pub(crate) fn repository_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn command(dir: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poolcast"));
    // This zone has daylight saving time. Nothing printed or stored may depend on it.
    command
        .args(args.split_ascii_whitespace())
        .current_dir(dir)
        .env_clear()
        .env("TZ", "America/Chicago");
    // The rehearsal of a whole log takes seconds. Only its own tests and the README need many moments.
    let is_exact = args.split(' ').next() == Some("config") || args == "run config/quickstart.yaml";
    if !is_exact {
        command.env("POOLCAST_ADVICE__REHEARSED_MODELS", "1");
    }
    // So does the prior, and most tests are about the log that they have.
    if !is_exact {
        command.env("POOLCAST_ADVICE__PRIOR", "false");
    }
    // No test uses the model of the site where it runs.
    if ["advise", "doctor"]
        .iter()
        .any(|verb| args.starts_with(verb))
    {
        command.env("POOLCAST_ADVICE__SITE_MODEL", "site-model");
    }
    // No test makes or reads the salt of the user who runs it.
    command.env("POOLCAST_OWNER_SALT_FILE", &*SALT);
    command
}

/// Files that are in no digest: the times of the epochs of a training, which differ each time, and
/// the identities of the logs of a store, which are other files in each place.
const UNCOMPARED_FILES: [&str; 2] = ["times.jsonl", "log-files.json"];

/// Returns every file below `dir` with its bytes, except those that are in no digest.
pub(crate) fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry"))
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if UNCOMPARED_FILES.contains(&&*name) {
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

/// Returns true if a file or directory of this name exists anywhere below `dir`. A program may be
/// at work there, so entries that disappear meanwhile are skipped.
pub(crate) fn has_file(dir: &Path, name: &str) -> bool {
    let Ok(entries) = fs_err::read_dir(dir) else {
        return false;
    };
    entries
        .filter_map(Result::ok)
        .any(|entry| entry.file_name() == name || has_file(&entry.path(), name))
}

/// Returns the output of `condor_q -json` for the jobs that had not ended at the end of the bundled
/// log.
pub(crate) fn queue() -> Vec<serde_json::Value> {
    let path = repository_path("tests/data/gel/condor_q.json");
    serde_json::from_slice(&fs_err::read(path).expect("read")).expect("JSON")
}

/// Result of one call of the program.
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

/// Minimum space for test directories, bytes. One test writes a queue of 200 MB.
const SCRATCH_BYTES: u64 = 2_000_000_000;

/// Directory for test directories: in memory, where there is space for programs and their files. On
/// a disk, the program waits for each file that it writes.
static SCRATCH: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let is_fit = rustix::fs::statvfs(memory).is_ok_and(|found| {
        !found.f_flag.contains(StatVfsMountFlags::NOEXEC)
            && found.f_bavail * found.f_frsize >= SCRATCH_BYTES
    });
    if is_fit {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
});

/// Text of the bundled log.
pub(crate) static LOG_TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    let file = fs_err::File::open(repository_path(LOG)).expect("opened");
    liblzma::read::XzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("read");
    text
});

/// A file with the text of the bundled log.
static DECOMPRESSED_LOG: LazyLock<PathBuf> =
    LazyLock::new(|| file_for_all("EventLog", LOG_TEXT.as_bytes()));

/// A file with the first quarter of the text of the bundled log.
static SHORT_LOG: LazyLock<PathBuf> = LazyLock::new(|| {
    let end_of_event = "\n...\n";
    let quarter = LOG_TEXT.len() / 4;
    let begin = LOG_TEXT.ceil_char_boundary(quarter);
    let left = LOG_TEXT[begin..].find(end_of_event).expect("an event");
    let end = begin + left + end_of_event.len();
    file_for_all("ShortEventLog", &LOG_TEXT.as_bytes()[..end])
});

/// Directory with the parsed first quarter of the bundled log.
static SHORT_EVENTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = begin_directory("short");
    symlink(&*SHORT_LOG, dir.join("EventLog.xz")).expect("linked");
    call_in(&dir, "parse EventLog.xz -o events");
    dir.join("events")
});

/// Writes a file that all processes of these tests may use at once, and returns its path.
fn file_for_all(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let written = process_path(name);
    fs_err::write(&written, bytes).expect("written");
    fs_err::rename(written, &path).expect("renamed");
    path
}

/// Makes a directory for all tests of this process, with the bundled log as `EventLog.xz`, and a run
/// on it in `out`. Returns the path of the run.
pub(crate) fn run_for_all(name: &str, config: &str) -> PathBuf {
    let dir = begin_directory(name);
    symlink(&*DECOMPRESSED_LOG, dir.join("EventLog.xz")).expect("linked");
    fs_err::write(dir.join("run.yaml"), config).expect("written");
    call_in(&dir, "run run.yaml");
    dir.join("out")
}

/// Makes an empty directory for artefacts of all tests of this process.
pub(crate) fn begin_directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        fs_err::remove_dir_all(&dir).expect("removed");
    }
    fs_err::create_dir_all(&dir).expect("made");
    dir
}

/// Runs the program in `dir`, where it must succeed.
pub(crate) fn call_in(dir: &Path, args: &str) {
    let outcome = Outcome::of(command(dir, args).output().expect("the program starts"));
    assert_eq!(outcome.code, Some(0), "poolcast {args}\n{outcome}");
}

/// Returns the path of a file for all tests of this process.
fn process_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
}

/// A file with the salt for hashes of owners.
static SALT: LazyLock<PathBuf> = LazyLock::new(|| {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    let path = process_path("owner-salt");
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

/// What `learn` has learned from the bundled log, with a short rehearsal. It is made once for all tests of a process.
static LEARNED: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = begin_directory("learned");
    symlink(&*DECOMPRESSED_LOG, dir.join("EventLog.xz")).expect("linked");
    let config = "logs: [EventLog.xz]\nadvice: {rehearsed_models: 4}\n";
    fs_err::write(dir.join("learn.yaml"), config).expect("written");
    call_in(&dir, "learn learn.yaml -o run");
    dir.join("run")
});

/// Directory with the parsed bundled log, its tensors, and a small model trained on them. It is
/// made once for all tests of a process.
static SHARED: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = begin_directory("cmd");
    symlink(&*DECOMPRESSED_LOG, dir.join("EventLog.xz")).expect("linked");
    // The best of three epochs by loss gives many jobs the same answer. Tests of advice rely on
    // that.
    let watched = "earlystop_metric: {name: validation_loss, goal: minimize}\n";
    fs_err::write(dir.join("train.yaml"), watched).expect("written");
    for args in [
        "parse EventLog.xz -o events",
        "tensors events -o tensors --j 5 --m 6 --timeframe-len 10",
        "train tensors -o run --config train.yaml --hidden-size 8 --epochs 3 --learning-rate 0.01",
        "evaluate run tensors --resamples 200",
    ] {
        call_in(&dir, args);
    }
    dir
});
