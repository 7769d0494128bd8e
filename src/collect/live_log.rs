//! A snapshot of a log that is being written, with its rotated generations.

use std::io::{ErrorKind, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};

use super::archive::ArchivedGeneration;
use super::log_error::FIND_LOG_HINT;
use htcondor_eventlog::{GlobalHeader, HEADER_BYTES, rotated_paths, whole_records_end};
use poolcast_base::error::hinted;
use poolcast_base::files;

/// An open file of the log. It stays the same file if it is renamed.
pub(super) struct LiveGeneration {
    pub(super) file: fs_err::File,
    pub(super) known: ArchivedGeneration,
}

/// A log and its rotated generations at one time.
pub(super) struct LiveLog {
    /// Generations with a header, in the order in which they were written.
    pub(super) generations: Vec<LiveGeneration>,
    /// Problem of the log itself, if it is not among them.
    pub(super) problem: Option<anyhow::Error>,
}

/// A file that may be a generation.
struct OpenedFile {
    /// Generation, if the file has a header.
    generation: Option<LiveGeneration>,
    /// First bytes of the file.
    head: Vec<u8>,
}

/// A problem that prevents the collection of a log, and a hint for the case that its rotated
/// generations can be collected.
struct LogProblem {
    why: anyhow::Error,
    hint: &'static str,
}

impl LiveLog {
    /// Opens the log at `log` and its rotated generations.
    ///
    /// # Errors
    /// Fails if none of them has a header.
    pub(super) fn open(log: &Path) -> Result<LiveLog> {
        let name = log
            .file_name()
            .with_context(|| format!("`{}` is not a file", log.display()))?
            .to_string_lossy();
        let mut rotated = rotated_paths(log);
        rotated.sort_by_key(|path| (path.as_os_str().len(), path.clone()));

        let own = open_file(log, &name);
        let problem = find_problem(log, &own);
        let is_readable = own.is_ok();
        let mut generations = Vec::new();
        add_generation(own, &mut generations);
        // From the newest name to the oldest: a rotation in between shows a file twice, but hides
        // none.
        for path in rotated {
            add_generation(open_file(&path, &name), &mut generations);
        }

        let place = log.display();
        if generations.is_empty() {
            let message = if is_readable {
                format!("`{place}` does not begin like a global event log")
            } else {
                format!("cannot open the log `{place}`")
            };
            let why = problem.map_or_else(
                || anyhow!("it has no generation with a header"),
                |problem| problem.why,
            );
            return Err(why.context(hinted(message, FIND_LOG_HINT)));
        }

        generations.sort_by_key(|live| live.known.sort_key());
        let message = format!("`{place}` is not collected, but its rotated generations are");
        let problem = problem.map(|problem| problem.why.context(hinted(message, problem.hint)));
        Ok(LiveLog {
            generations,
            problem,
        })
    }
}

/// Adds the opened file if it is a generation of the same access point and is not in the list yet.
fn add_generation(found: std::io::Result<OpenedFile>, generations: &mut Vec<LiveGeneration>) {
    let Ok(OpenedFile {
        generation: Some(found),
        ..
    }) = found
    else {
        return;
    };
    let is_other = generations
        .iter()
        .any(|live| live.known.ap != found.known.ap || live.known.file == found.known.file);
    if !is_other {
        generations.push(found);
    }
}

/// Opens the file at `path`, which belongs to the log named `name`.
fn open_file(path: &Path, name: &str) -> std::io::Result<OpenedFile> {
    let mut file = files::open_artefact(path, u64::MAX)?;
    let mut head = Vec::new();
    file.by_ref()
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut head)?;

    let known = GlobalHeader::find(&head).map(|header| ArchivedGeneration::new(name, header));
    let generation = known.map(|known| LiveGeneration { file, known });
    Ok(OpenedFile { generation, head })
}

/// Returns the problem that prevents the collection of the log itself; `None` if there is none.
/// `found` is the result of opening the log.
fn find_problem(log: &Path, found: &std::io::Result<OpenedFile>) -> Option<LogProblem> {
    match found {
        Ok(file) if file.generation.is_some() => None,
        Ok(file) => Some(headerless_problem(&file.head)),
        Err(error) if error.kind() == ErrorKind::NotFound && !rotated_paths(log).is_empty() => {
            Some(transient_problem("it does not exist: it is being rotated"))
        }
        Err(error) => Some(LogProblem {
            why: std::io::Error::new(error.kind(), error.to_string()).into(),
            hint: FIND_LOG_HINT,
        }),
    }
}

/// Explains the missing header of a file that begins with `head`.
fn headerless_problem(head: &[u8]) -> LogProblem {
    if head.is_empty() {
        return transient_problem("it is empty: it was just created, or is being rotated");
    }
    let is_whole = head.len() >= HEADER_BYTES || whole_records_end(head) > 0;
    if !is_whole && may_begin_header(head) {
        return transient_problem("its first record is incomplete: it is being rotated");
    }
    LogProblem {
        why: anyhow!("it does not begin with a header, as after logrotate's `copytruncate`"),
        hint: "let HTCondor rotate it (EVENT_LOG_MAX_SIZE), and copy its present contents by hand",
    }
}

/// Creates a problem that ends when the rotation is over. It is an I/O error, so that the exit code
/// says that a retry may help.
fn transient_problem(why: &str) -> LogProblem {
    LogProblem {
        why: std::io::Error::other(why.to_owned()).into(),
        hint: "run the same command again",
    }
}

/// Returns true if `head` may be the beginning of a header that is being written.
fn may_begin_header(head: &[u8]) -> bool {
    let start = &head[..head.len().min(5)];
    b"008 (".starts_with(start) || matches!(start.first(), Some(b'<' | b'{'))
}
