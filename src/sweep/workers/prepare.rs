//! Prepares the inputs of a sweep's trials before the first trial begins: events, joined tables or
//! wait samples, then tensors. An existing input with the same key is not made again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};

use super::extend::SweepExtension;
use crate::config::{CommandConfig, Config, TrialSource};
use crate::plan::SweepTrials;
use crate::plan::TrialConfig;
use crate::plan::network_trial_count;
use crate::plan::{SweepFolder, check_sweep_dir};
use crate::plan::{events_dir, table_dir, tensors_dir, wait_samples_dir};
use htcondor_eventlog::{self as eventlog, ReadOptions};
use poolcast_base::error::hinted;
use poolcast_base::files::LockedDirectory;
use poolcast_base::manifest;
use poolcast_base::salt::OwnerSalt;
use poolcast_collect::{explain_beginning, find_generations, found_beside, skipped_note};
use poolcast_events::{
    EVENTS_FORMAT, EventStore, IngestListener, IngestStep, LogIngest, event_store_key,
    identify_logs,
};
use poolcast_provision::samples::{SAMPLES_FORMAT, WaitSamples, copy_samples};
use poolcast_provision::wait_model::{check_learnable, check_model_search};
use poolcast_tables::{JoinedTable, TABLE, joined_table_key};
use poolcast_tensors::{
    self as tensors, BuildProgress, FrameChoice, TENSORS_FORMAT, TensorSettings,
};

/// A step in the preparation of a sweep.
#[derive(Debug, Clone, Copy)]
pub enum PrepareStep<'a> {
    /// The tables are already joined.
    TablesFound,
    /// The logs are already parsed.
    EventsFound,
    /// All trials have already ended.
    TrialsFound,
    /// A sweep is extended: trials that have ended keep their results.
    Extended {
        /// Number of trials that have ended.
        kept: usize,
        /// Number of all trials.
        trials: usize,
    },
    /// An earlier sweep is replaced, for this reason.
    Replaced(&'a str),
    /// A rotated generation that the configuration does not name is also read.
    AlsoReading(&'a Path),
    /// A note about files that are not read.
    LogNote(&'a str),
    /// A note about the columns of tables.
    TableNote(&'a str),
    /// The length of time frames was chosen from the log.
    FramesChosen(FrameChoice),
    /// A note about the salt that owners are hashed with.
    SaltNote(&'a str),
    /// The logs are being read.
    Ingest(IngestStep<'a>),
    /// The build of tensors begins.
    TensorsBegun {
        /// The number of holds; some of them become samples.
        holds: u64,
    },
    /// The progress of the tensors.
    Tensors {
        /// The directory that the tensors are written to.
        dir: &'a Path,
        /// The progress of the build.
        progress: BuildProgress,
    },
    /// The tensors are built.
    TensorsEnded,
}

/// The callbacks for the progress of a sweep's preparation.
#[derive(Clone)]
pub struct PrepareListener<'a> {
    /// Receives the number of bytes of each block of a log, on the thread that reads it.
    pub on_bytes: Arc<dyn Fn(u64) + Send + Sync>,
    /// Receives all other steps.
    pub on_step: &'a (dyn Fn(PrepareStep<'_>) + Sync),
}

impl std::fmt::Debug for PrepareListener<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrepareListener").finish_non_exhaustive()
    }
}

/// The treatment of an earlier sweep in the directory of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierSweep {
    /// It is removed, and nothing of it is reused.
    Replace,
    /// It is extended. It is an error if it has other trials than the new one.
    Extend,
    /// It is extended if possible, and replaced otherwise.
    ExtendOrReplace,
}

/// Parses the logs that `config` names, joins its tables, or copies its wait samples. Then begins
/// its sweep in its directory, or opens or extends the one that is there, as `earlier` says. Returns
/// it with the lock of the directory. `place` is the source that the configuration was read from, for
/// messages. A frame length that the log determines becomes a number in the sweep's configuration.
///
/// # Errors
/// Fails for a configuration that no trial can use, and if another process prepares the same sweep.
/// Also fails if the directory holds anything other than a sweep.
pub fn begin_sweep(
    config: &Config,
    place: &str,
    earlier: EarlierSweep,
    listener: &PrepareListener<'_>,
) -> Result<(SweepFolder, LockedDirectory)> {
    check(config, place)?;
    check_sweep_dir(&config.out)?;
    let lock = LockedDirectory::with_holder(&config.out)?;

    let anew = earlier == EarlierSweep::Replace;
    let extension = find_extension(config, earlier, listener)?;
    let source_key = match config.trial_source() {
        TrialSource::Logs => prepare_events(config, anew, listener)?,
        TrialSource::Tables => prepare_tables(config, listener)?,
        TrialSource::WaitSamples => prepare_wait_samples(config)?,
        TrialSource::Command => String::new(),
    };
    let config = if config.trial_source() == TrialSource::Logs && config.has_open_frames() {
        let choice = FrameChoice::by_log(&EventStore::open(&events_dir(&config.out))?);
        (listener.on_step)(PrepareStep::FramesChosen(choice));
        &config.with_frames(choice.timeframe_len_s)
    } else {
        config
    };
    let sweep = match extension {
        Some(extension) => {
            (listener.on_step)(PrepareStep::Extended {
                kept: extension.kept(),
                trials: extension.trials(),
            });
            extension.write(config, source_key)?
        }
        None => SweepFolder::init(&config.out, config, &source_key, anew)?,
    };
    if sweep.is_finished() {
        (listener.on_step)(PrepareStep::TrialsFound);
    }
    Ok((sweep, lock))
}

/// Plans to extend the sweep in the directory of `config`, before its data are prepared. Returns `None`
/// if there is none, or the same one, or one that is replaced.
fn find_extension(
    config: &Config,
    earlier: EarlierSweep,
    listener: &PrepareListener<'_>,
) -> Result<Option<SweepExtension>> {
    let dir = &config.out;
    if earlier == EarlierSweep::Replace || !dir.join(manifest::FILE).exists() {
        return Ok(None);
    }
    let plan = || {
        if SweepFolder::open_if_begun(dir, config)?.is_some() {
            return Ok(None);
        }
        let extension = SweepExtension::plan(SweepFolder::open(dir)?, config)?;
        extension.check_source(&found_source_key(&extension.earlier, config)?)?;
        Ok(Some(extension))
    };
    plan().or_else(|error| {
        if earlier == EarlierSweep::Extend {
            return Err(error);
        }
        (listener.on_step)(PrepareStep::Replaced(&format!("{error:#}")));
        Ok(None)
    })
}

/// The digest of the data that `config` names. Of tables, only the splits of `earlier` count.
///
/// # Errors
/// Fails if they cannot be read.
fn found_source_key(earlier: &SweepFolder, config: &Config) -> Result<String> {
    match config.trial_source() {
        TrialSource::Command => Ok(String::new()),
        TrialSource::WaitSamples => Ok(named_wait_samples(config)?.1.key),
        TrialSource::Tables => {
            let mut data = config.data.clone();
            let known = &earlier.config.data;
            data.splits
                .retain(|name, _| known.splits.contains_key(name));
            data.split_names.clone_from(&known.split_names);
            joined_table_key(&data)
        }
        TrialSource::Logs => {
            let logs = find_generations(&config.logs)?;
            // Bytes that are read from a pipe cannot be read again.
            if logs.iter().any(|log| eventlog::is_read_once(log)) {
                return Ok(String::new());
            }
            let identified = identify_logs(&logs, &events_dir(&config.out))?;
            event_store_key(&identified, &read_options(config, &logs)?)
        }
    }
}

/// Rejects configurations that are known to fail, before any work.
fn check(config: &Config, place: &str) -> Result<()> {
    if let Some(command) = &config.command {
        check_program(command)
            .and_then(|()| Ok(SweepTrials::from_config(config)?.count()))
            .with_context(|| format!("cannot use {place}"))?;
        return Ok(());
    }
    if config.trial_source() == TrialSource::WaitSamples {
        check_model_search(&config.provision)
            .and_then(|()| check_networks(config))
            .with_context(|| format!("cannot use {place}"))?;
        return Ok(());
    }
    ensure!(
        config.logs.is_empty() == config.data.is_given(),
        hinted(
            format!(
                "{place} names {}",
                if config.logs.is_empty() {
                    "no logs"
                } else {
                    "both logs and tables"
                }
            ),
            "give `logs: [PATH]`, tables of your own in `data`, or samples of waits in `provision.samples`"
        )
    );
    ensure!(
        !(config.data.is_given() && config.has_open_frames()),
        "{place} names tables, but `timeframe_len: auto` is for logs"
    );
    // Any frame length works for this check, because the log has not been read yet.
    let config = config.with_frames(1);
    check_networks(&config).with_context(|| format!("cannot use {place}"))
}

/// Rejects a file of `${program}` that does not exist.
fn check_program(command: &CommandConfig) -> Result<()> {
    let place = command.words.iter().position(|word| word == "${program}");
    let (Some(place), Some(program)) = (place, &command.program) else {
        return Ok(());
    };
    let before = place.checked_sub(1).map(|before| &*command.words[before]);
    // A module and the name of a command are looked up when the trial begins.
    let is_module = matches!(before, Some("-m" | "--module"));
    let is_command = matches!(before, None | Some("${env}")) && !program.contains('/');
    if is_module || is_command {
        return Ok(());
    }
    ensure!(
        command.directory.join(program).is_file(),
        hinted(
            format!(
                "it runs `{program}`, which is neither beside the sweep file nor in the current directory"
            ),
            "write the path from the directory of the sweep file, or run poolcast in the directory of the program"
        )
    );
    Ok(())
}

/// Draws each trial of a network or of a wait model once, as a check. Pipelines need no check here,
/// because making their trials has checked them.
fn check_networks(config: &Config) -> Result<()> {
    let trials = SweepTrials::from_config(config)?;
    for number in 1..=network_trial_count(config)? {
        TrialConfig::new(trials.draw(number)?)?;
    }
    Ok(())
}

/// Joins the tables of `config`; returns their key.
///
/// # Errors
/// Fails if they cannot be read or joined.
pub fn prepare_tables(config: &Config, listener: &PrepareListener<'_>) -> Result<String> {
    let dir = table_dir(&config.out);
    let key = joined_table_key(&config.data)?;
    if manifest::finished_key(&dir, TABLE).as_ref() == Some(&key) {
        (listener.on_step)(PrepareStep::TablesFound);
        return Ok(key);
    }
    let table = JoinedTable::read(&config.data)?;
    if let Some(note) = table.note_on_telling_features() {
        (listener.on_step)(PrepareStep::TableNote(&note));
    }
    table.write(&dir, &key)?;
    Ok(key)
}

/// Copies the wait samples that `config` names, so that workers on other hosts have them. Returns
/// their key.
///
/// # Errors
/// Fails if there are no samples, or if nothing can be learned from them.
fn prepare_wait_samples(config: &Config) -> Result<String> {
    let (from, samples) = named_wait_samples(config)?;
    check_learnable(&samples).with_context(|| format!("cannot use `{}`", from.display()))?;
    let dir = wait_samples_dir(&config.out);
    if manifest::finished_key(&dir, SAMPLES_FORMAT).as_ref() != Some(&samples.key) {
        copy_samples(from, &dir)?;
    }
    Ok(samples.key)
}

/// The directory of the wait samples that `config` names, and the samples.
fn named_wait_samples(config: &Config) -> Result<(&Path, WaitSamples)> {
    let from = config.provision.samples.as_deref();
    let from = from.context("the configuration has no `provision.samples`")?;
    Ok((from, WaitSamples::open(from)?))
}

/// The options with which `logs` are read.
fn read_options(config: &Config, logs: &[PathBuf]) -> Result<ReadOptions> {
    Ok(ReadOptions {
        ap: config.parse.ap.clone(),
        year: config.parse.year,
        likely_ap: eventlog::likely_access_point(logs).map_err(explain_beginning)?,
        ..ReadOptions::default()
    })
}

/// Parses the logs of `config`; returns the key of the store.
///
/// # Errors
/// Fails if a log cannot be read.
pub fn prepare_events(
    config: &Config,
    anew: bool,
    listener: &PrepareListener<'_>,
) -> Result<String> {
    let logs = find_generations(&config.logs)?;
    for found in found_beside(&config.logs, &logs) {
        (listener.on_step)(PrepareStep::AlsoReading(found));
    }
    if let Some(note) = skipped_note(&config.logs, &logs) {
        (listener.on_step)(PrepareStep::LogNote(&note));
    }
    let options = read_options(config, &logs)?;

    let dir = events_dir(&config.out);
    // Bytes that are read from a pipe cannot be read again. A pipe is therefore read first, and its
    // key compared later.
    if !anew && !logs.iter().any(|log| eventlog::is_read_once(log)) {
        let key = event_store_key(&identify_logs(&logs, &dir)?, &options)?;
        if manifest::finished_key(&dir, EVENTS_FORMAT).as_ref() == Some(&key) {
            EventStore::open(&dir)?;
            (listener.on_step)(PrepareStep::EventsFound);
            return Ok(key);
        }
    }

    let salt = OwnerSalt::for_this_user()?;
    if let Some(note) = &salt.note {
        (listener.on_step)(PrepareStep::SaltNote(note));
    }
    let mut ingest = if anew {
        LogIngest::replacing(&logs, &options, &salt, &dir)?
    } else {
        LogIngest::updating(&logs, &options, &salt, &dir)?
    };
    let sources = ingest.read(&IngestListener {
        on_bytes: Arc::clone(&listener.on_bytes),
        on_step: &|step| (listener.on_step)(PrepareStep::Ingest(step)),
    })?;
    // The key must describe the bytes that were read. A log may have grown since it was checked.
    let key = event_store_key(&sources, &options)?;
    ingest.write(&key)?;
    Ok(key)
}

/// Makes the tensors of `sweep` for these `samples` settings of its trials, from the store in
/// `events`. Trials with equal settings share their tensors.
///
/// # Errors
/// Fails if tensors cannot be made.
pub fn make_tensors(
    sweep: &SweepFolder,
    events: &Path,
    samples: &[TensorSettings],
    listener: &PrepareListener<'_>,
) -> Result<()> {
    let mut wanted = BTreeMap::new();
    for settings in samples {
        wanted.insert(tensors_dir(&sweep.dir, settings), settings);
    }
    if wanted.is_empty() {
        return Ok(());
    }

    let events_key = &sweep.plan.source_key;
    let store = EventStore::open(events)?;
    for (dir, settings) in wanted {
        let key = settings.key(events_key)?;
        if manifest::finished_key(&dir, TENSORS_FORMAT).as_ref() == Some(&key) {
            continue;
        }
        (listener.on_step)(PrepareStep::TensorsBegun {
            holds: store.summary.hold_count(),
        });
        let progress = |progress| {
            (listener.on_step)(PrepareStep::Tensors {
                dir: &dir,
                progress,
            });
        };
        let built = tensors::build(&store, settings, &key, &dir, true, None, progress);
        (listener.on_step)(PrepareStep::TensorsEnded);
        built?;
    }
    Ok(())
}
