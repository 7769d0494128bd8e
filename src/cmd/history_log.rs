//! Reads the history that `--history` names, and writes it as an event log, which the stages read
//! like any other.

use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use poolcast_base::files::{self, AtomicFile};
use poolcast_base::output;
use poolcast_holds::past_jobs::{
    HISTORY_ATTRIBUTES, HistoryCounts, PastJobs, RUN_ATTRIBUTES, history_files,
};
use poolcast_sweep::condor::{self, HistoryAds};

/// Name of the log that is made from a history.
pub(super) const HISTORY_LOG: &str = "history.log";

/// Value of `--history` that stands for the history of this access point.
const NOW: &str = "now";

/// Maximum size of a file of a history, in bytes. It is read in parts.
const MAX_HISTORY_BYTES: u64 = 64 << 30;

/// Writes the history that `named` refers to into the log `path`: files and directories with the
/// output of `condor_history`, `-` for stdin, or `now` for the history of this access point.
///
/// # Errors
/// Fails if a file cannot be read or parsed, if the query fails, or if there are no jobs.
pub(super) fn write_history_log(named: &[PathBuf], path: &Path) -> Result<()> {
    let mut jobs = PastJobs::default();
    for one in named {
        read_source(one, &mut jobs).with_context(|| failure_words(one))?;
    }
    let counts = write_jobs(&jobs, path)?;
    output::note(&format!("note: {}", counts.words()));
    Ok(())
}

/// Reads the jobs of the history that `named` refers to, like [`write_history_log`]. If this access
/// point does not answer, or if there are no jobs, that only causes a note.
///
/// # Errors
/// Fails if a file cannot be read or parsed.
pub(super) fn read_history(named: &[PathBuf]) -> Result<PastJobs> {
    let mut jobs = PastJobs::default();
    let mut unread = Ok(());
    for one in named {
        let read = read_source(one, &mut jobs).with_context(|| failure_words(one));
        if one == Path::new(NOW) {
            unread = read;
        } else {
            read?;
        }
    }
    if let Err(failure) = unread.and_then(|()| jobs.ensure_usable()) {
        output::note(&format!("note: {failure:#}"));
    }
    Ok(jobs)
}

fn failure_words(named: &Path) -> String {
    format!("cannot use the history `{}`", named.display())
}

/// Writes the events of `jobs` into the log `path`.
pub(super) fn write_jobs(jobs: &PastJobs, path: &Path) -> Result<HistoryCounts> {
    let mut log = AtomicFile::new(path)?;
    let mut writer = BufWriter::new(log.file());
    let counts = jobs.write_log(&mut writer)?;
    writer.flush()?;
    drop(writer);
    log.commit(path)?;
    Ok(counts)
}

fn read_source(named: &Path, jobs: &mut PastJobs) -> Result<()> {
    if named == Path::new(NOW) {
        return read_history_here(jobs);
    }
    if named == Path::new("-") {
        let input = std::io::stdin().lock().take(MAX_HISTORY_BYTES);
        return jobs.read(BufReader::new(input));
    }
    if named.is_dir() {
        return read_directory(named, jobs);
    }
    let file = files::open_regular(named, MAX_HISTORY_BYTES)?;
    jobs.read(BufReader::new(file))
}

/// Reads the history of this access point, and the ads of runs if this HTCondor keeps them.
fn read_history_here(jobs: &mut PastJobs) -> Result<()> {
    condor::read_history(HistoryAds::Jobs, HISTORY_ATTRIBUTES, |ads| jobs.read(ads))?;
    let runs = condor::read_history(HistoryAds::Runs, RUN_ATTRIBUTES, |ads| jobs.read(ads));
    if let Err(error) = runs {
        output::note(&format!("note: the ads of runs are not used: {error:#}"));
    }
    Ok(())
}

/// Reads the files of jobs in `dir`. A file that cannot be read only causes a note, because HTCondor
/// writes and administrators remove files at any time.
fn read_directory(dir: &Path, jobs: &mut PastJobs) -> Result<()> {
    let mut failed = 0;
    let mut first_error = None;
    for path in history_files(dir)? {
        let read = files::open_regular(&path, MAX_HISTORY_BYTES)
            .map_err(anyhow::Error::from)
            .and_then(|file| jobs.read(BufReader::new(file)));
        if let Err(error) = read {
            failed += 1;
            first_error.get_or_insert((path, error));
        }
    }
    if let Some((path, error)) = first_error {
        output::note(&format!(
            "note: {} of `{}` cannot be read, such as `{}`: {error:#}",
            output::counted(failed, "file"),
            dir.display(),
            path.display()
        ));
    }
    Ok(())
}
