//! `poolcast tensors`: turns event shards into tensor shards.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::flags::{flag, flags};
use super::progress::{Progress, Stage};
use super::text;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::{archive, manifest, output};
use poolcast_cli::TensorsArgs;
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_sweep::config::Config;
use poolcast_tensors::{
    self as tensors, Dataset, FrameChoice, LeakageAudit, TENSORS_FORMAT, TensorSettings,
    TensorSummary,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Opens the store, writes the tensors and prints the counts.
pub fn run(args: &TensorsArgs) -> Result<u8> {
    if let Some(file) = &args.unpack {
        archive::unpack(file, Path::new("."))?;
    }

    let store = EventStore::open(&args.events)?;
    let config = with_chosen_frames(&tensors_config(args)?, &store);
    let settings = config.tensor_settings()?;
    let events_key = manifest::read::<serde_json::Value>(&args.events, EVENTS_FORMAT)?.key;
    let key = settings.key(&events_key)?;

    let is_done = manifest::finished_key(&args.out, TENSORS_FORMAT).as_ref() == Some(&key);
    let summary = if is_done && !args.earlier.overwrite {
        output::note_nothing_new(&args.out, "these tensors");
        // A version before wrote the configuration after the manifest, and may have been killed between.
        if !args.out.join(poolcast_config::FILE).exists() {
            config.write(&args.out)?;
        }
        Dataset::open(&args.out)?.summary
    } else {
        build_tensors(args, &store, &settings, &config, &key)?
    };
    let audit = if args.audit {
        Some(tensors::audit(&Dataset::open(&args.out)?)?)
    } else {
        None
    };

    if args.output.json {
        output::print_json(SCHEMA_VERSION, &PrintedTensors { summary, audit })?;
    } else {
        let audit = audit.as_ref().map(text::tensors::audit).unwrap_or_default();
        output::print(&(text::tensors::summary(&summary) + &audit))?;
    }
    Ok(EXIT_DONE)
}

/// Loads the configuration file, with the overrides of the flags.
fn tensors_config(args: &TensorsArgs) -> Result<Config> {
    Config::load(
        args.config.as_deref(),
        &flags([
            ("preprocessing.parameters.j", flag(&args.j)),
            ("preprocessing.parameters.m", flag(&args.m)),
            (
                "preprocessing.parameters.timeframe_len",
                flag(&args.timeframe_len),
            ),
            ("preprocessing.parameters.context", flag(&args.context)),
            (
                "preprocessing.parameters.vocabulary",
                flag(&args.vocabulary),
            ),
            ("preprocessing.parameters.states", flag(&args.states)),
            ("preprocessing.window", flag(&args.window)),
            ("preprocessing.label", flag(&args.label)),
            ("preprocessing.cycles", flag(&args.cycles)),
            ("preprocessing.split", flag(&args.split)),
            ("seed", flag(&args.seed)),
        ]),
    )
}

/// The configuration, with frames that fit the log if it leaves their choice open.
fn with_chosen_frames(config: &Config, store: &EventStore) -> Config {
    if !config.has_open_frames() {
        return config.clone();
    }
    let choice = FrameChoice::by_log(store);
    output::note(&choice.describe());
    config.with_frames(choice.timeframe_len_s)
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedTensors {
    #[serde(flatten)]
    summary: TensorSummary,
    /// Possible leaks between the splits, with `--audit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<LeakageAudit>,
}

/// Builds the tensors that `args` describe, with a progress bar.
fn build_tensors(
    args: &TensorsArgs,
    store: &EventStore,
    settings: &TensorSettings,
    config: &Config,
    key: &str,
) -> Result<TensorSummary> {
    let config = config.resolved()?;
    let progress = Progress::new(&[Stage::Tensors]);
    progress.begin_tensors(store.summary.hold_count());
    progress.show(|| {
        tensors::build(
            store,
            settings,
            key,
            &args.out,
            args.earlier.overwrite,
            Some(&config),
            |step| progress.show_tensors(&args.out, step, 0),
        )
    })
}
