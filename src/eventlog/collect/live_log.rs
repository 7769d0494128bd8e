//! A log that is being written and its rotated generations, as they are at one moment.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};

use super::archive::ArchivedGeneration;
use super::whole_records::whole_end;
use poolcast_base::error::hinted;
use crate::generations::{HEAD_BYTES, header_in, sibling_paths};
use crate::source::FIND_LOG_HINT;
use poolcast_base::files;

/// A file of the log; open, it stays the same whatever it is renamed to.
pub(super) struct LiveGeneration {
    pub(super) file: fs_err::File,
    pub(super) known: ArchivedGeneration,
}

/// What a log and its rotated generations are at one moment.
pub(super) struct LiveLog {
    /// Those with a header, in the order they were written.
    pub(super) generations: Vec<LiveGeneration>,
    /// Why the log itself is not among them.
    pub(super) problem: Option<anyhow::Error>,
}

/// A file that may be a generation.
struct OpenedFile {
    /// The generation, if the file has a header.
    generation: Option<LiveGeneration>,
    /// Its first bytes.
    head: Vec<u8>,
}

/// Why a log cannot be collected, and what to do where its rotated generations can be.
struct LogProblem {
    why: anyhow::Error,
    hint: &'static str,
}

impl LiveLog {
    /// The log at `log` and its rotated generations.
    ///
    /// # Errors
    /// Fails where none of them has a header.
    pub(super) fn open(log: &Path) -> Result<LiveLog> {
        let name = log
            .file_name()
            .with_context(|| format!("`{}` is no file", log.display()))?
            .to_string_lossy();
        let mut rotated = sibling_paths(log);
        rotated.sort_by_key(|path| (path.as_os_str().len(), path.clone()));

        let own = open_file(log, &name);
        let problem = find_problem(log, &own);
        let is_readable = own.is_ok();
        let mut generations = Vec::new();
        add_generation(own, &mut generations);
        // From the newest name on: a rotation meanwhile shows a file twice, and hides none.
        for path in rotated {
            add_generation(open_file(&path, &name), &mut generations);
        }

        let place = log.display();
        if generations.is_empty() {
            let message = if is_readable {
                format!("`{place}` does not begin as a global event log does")
            } else {
                format!("cannot open the log `{place}`")
            };
            let why =
                problem.map_or_else(|| anyhow!("it has no generation"), |problem| problem.why);
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

/// Adds what was found in a file, if it is a generation of the same access point that was not met
/// yet.
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

/// Opens the file at `path`, of the log called `name`.
fn open_file(path: &Path, name: &str) -> std::io::Result<OpenedFile> {
    let mut file = files::open_artefact(path, u64::MAX)?;
    let mut head = vec![0; HEAD_BYTES];
    let filled = files::fill_buffer(&mut file, &mut head)?;
    head.truncate(filled);

    let known = header_in(&head).map(|header| ArchivedGeneration::new(name, header));
    let generation = known.map(|known| LiveGeneration { file, known });
    Ok(OpenedFile { generation, head })
}

/// Why the log itself, of which this was found, cannot be collected.
fn find_problem(log: &Path, found: &std::io::Result<OpenedFile>) -> Option<LogProblem> {
    match found {
        Ok(file) if file.generation.is_some() => None,
        Ok(file) => Some(headerless_problem(&file.head)),
        Err(error) if error.kind() == ErrorKind::NotFound && !sibling_paths(log).is_empty() => {
            Some(passing_problem("it is not there: it is being rotated"))
        }
        Err(error) => Some(LogProblem {
            why: std::io::Error::new(error.kind(), error.to_string()).into(),
            hint: FIND_LOG_HINT,
        }),
    }
}

/// Why a file that begins with `head` has no header.
fn headerless_problem(head: &[u8]) -> LogProblem {
    if head.is_empty() {
        return passing_problem("it is empty: it was made just now, or is being rotated");
    }
    let is_whole = head.len() >= HEAD_BYTES || whole_end(head) > 0;
    if !is_whole && begins_as_header(head) {
        return passing_problem("its first record is not whole: it is being rotated");
    }
    LogProblem {
        why: anyhow!(
            "it begins with something else than a header, as after logrotate's `copytruncate`"
        ),
        hint: "let HTCondor rotate it (EVENT_LOG_MAX_SIZE), and copy what it holds now by hand",
    }
}

/// A problem that is gone when the log was rotated: an I/O error, as the exit code of those says
/// so.
fn passing_problem(why: &str) -> LogProblem {
    LogProblem {
        why: std::io::Error::other(why.to_owned()).into(),
        hint: "run the same command again",
    }
}

/// Whether `head` can be the beginning of a header that is being written.
fn begins_as_header(head: &[u8]) -> bool {
    let start = &head[..head.len().min(5)];
    b"008 (".starts_with(start) || matches!(start.first(), Some(b'<' | b'{'))
}
