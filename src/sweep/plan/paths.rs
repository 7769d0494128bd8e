//! The names of all files and directories in the folder of a sweep.

use std::path::{Path, PathBuf};

use anyhow::Result;

use poolcast_base::manifest;
use poolcast_tensors::TensorSettings;

/// The rows of all trials, one JSON document per line. The file exists once all trials have ended.
pub const ROWS_FILE: &str = "results.jsonl";

/// The same rows as a table for spreadsheets.
pub(crate) const TABLE_FILE: &str = "results.csv";

/// The manager's log, one line per event.
pub const LOG_FILE: &str = "status.log";

/// The choice of the best network, for programs.
pub const BEST_FILE: &str = "best.json";

/// What `poolcast run` could not learn, where a log has too few holds for a model.
pub const FEW_HOLDS_FILE: &str = "few-holds.json";

/// The best model and its scores, for people.
pub const INFO_FILE: &str = "bestmodel.info";

/// The choices among pipelines, one for each split.
pub const SELECTION_FILE: &str = "selection.json";

/// The patterns, one per line, of the files in a sweep's folder that are needed to score its
/// choices.
pub const CHOSEN_FILE: &str = "chosen.files";

/// The predictions of a fit, in its trial's directory.
pub(crate) const PREDICTIONS_FILE: &str = "predictions.safetensors";

/// The largest number of a trial whose directory is in `trials/` itself. Directories of later
/// trials are in `trials/thousands/`, a thousand in each subdirectory, so that no directory has too
/// many entries.
const LAST_FLAT_TRIAL: usize = 999;

/// The queue of the sweep in `dir`.
pub(crate) fn queue_dir(dir: &Path) -> PathBuf {
    dir.join("queue")
}

/// The lock file that is held while a trial's directory replaces an older one.
pub(crate) fn publish_lock_file(dir: &Path) -> PathBuf {
    queue_dir(dir).join("publish.lock")
}

/// The store of events of the sweep in `dir`.
pub fn events_dir(dir: &Path) -> PathBuf {
    dir.join("events")
}

/// The model for questions in the middle of a hold, in the results in `dir`.
pub fn answers_dir(dir: &Path) -> PathBuf {
    dir.join("answers")
}

/// Returns true if `dir` has results of `poolcast learn`, or of `poolcast run` on a log with too few holds to train a
/// model.
pub fn has_no_model(dir: &Path) -> bool {
    let has_answers = answers_dir(dir).join(manifest::FILE).is_file();
    (has_answers || dir.join(FEW_HOLDS_FILE).is_file()) && !dir.join(BEST_FILE).is_file()
}

/// The joined tables of the sweep in `dir`.
pub fn table_dir(dir: &Path) -> PathBuf {
    dir.join("table")
}

/// The wait samples of the sweep in `dir`, copied from the output of `provision samples`.
pub(crate) fn wait_samples_dir(dir: &Path) -> PathBuf {
    dir.join("samples")
}

/// The tensors with these `settings` in the sweep in `dir`. Trials with equal settings share them.
pub fn tensors_dir(dir: &Path, settings: &TensorSettings) -> PathBuf {
    let j = settings.j;
    let m = settings.m;
    let timeframe_len_s = settings.timeframe_len_s;

    let mut name = format!(
        "j{j}-m{m}-t{timeframe_len_s}-{}-{}",
        settings.context, settings.vocabulary
    );
    let states = settings.states.to_string();
    if !states.is_empty() {
        name += &format!("-{:.8}", manifest::sha256(states.as_bytes()));
    }
    dir.join("tensors").join(name)
}

/// The ensemble of the sweep in `dir`, made if it is better than the best trial alone.
pub fn ensemble_dir(dir: &Path) -> PathBuf {
    dir.join("ensemble")
}

/// The directory of `trial` of the sweep in `dir`.
pub fn trial_dir(dir: &Path, trial: usize) -> PathBuf {
    let name = format!("trial-{trial:04}");
    if trial <= LAST_FLAT_TRIAL {
        return trials_dir(dir).join(name);
    }

    let thousand = format!("{:04}", trial / 1000);
    thousands_dir(dir).join(thousand).join(name)
}

/// A trial, and its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TrialDir {
    pub(crate) trial: usize,
    pub(crate) path: PathBuf,
}

/// The existing directories of trials in the sweep's folder `dir`.
pub(crate) fn existing_trial_dirs(dir: &Path) -> Result<Vec<TrialDir>> {
    let mut paths = directory_entries(&trials_dir(dir))?;
    for thousand in directory_entries(&thousands_dir(dir))? {
        paths.extend(directory_entries(&thousand)?);
    }

    let mut found = Vec::new();
    for path in paths {
        // Skip directories with a trial's name in a wrong path; they do not belong to the sweep.
        if let Some(trial) = trial_number(&path)
            && trial_dir(dir, trial) == path
        {
            found.push(TrialDir { trial, path });
        }
    }
    Ok(found)
}

fn trials_dir(dir: &Path) -> PathBuf {
    dir.join("trials")
}

fn thousands_dir(dir: &Path) -> PathBuf {
    trials_dir(dir).join("thousands")
}

fn directory_entries(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs_err::read_dir(dir)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn trial_number(path: &Path) -> Option<usize> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("trial-")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_directory_of_trials_has_more_than_a_thousand_entries() {
        let out = tempfile::tempdir().expect("a directory");
        let all = [1, 999, 1000, 1001, 1999, 2000, 496_400, 1_000_000];
        for trial in all {
            fs_err::create_dir_all(trial_dir(out.path(), trial)).expect("made");
        }
        let mut found = existing_trial_dirs(out.path()).expect("listed");
        found.sort();
        let wanted = all.map(|trial| TrialDir {
            trial,
            path: trial_dir(out.path(), trial),
        });
        assert_eq!(found, wanted);
        let parents = (1..=1_000_000).map(|trial| trial_dir(Path::new(""), trial));
        let mut entries = std::collections::BTreeMap::<PathBuf, usize>::new();
        for dir in parents {
            *entries
                .entry(dir.parent().expect("a parent").to_owned())
                .or_default() += 1;
        }
        assert!(entries.values().all(|count| *count <= 1000));
        assert!(entries[Path::new("trials")] < 1000 && entries.len() <= 1001);
    }
}
