//! `poolcast parse`: turns event logs into event shards.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::logs::{find_logs, read_options, user_salt};
use super::progress::{Progress, Stage};
use super::text;
use htcondor_eventlog::{self as eventlog, ReadOptions};
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::output;
use poolcast_cli::ParseArgs;
use poolcast_collect::explain;
use poolcast_events::{EventStore, IngestStep, LogIngest, SourceLog, event_store_key};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Reads the logs, writes the store and prints the counts.
pub fn run(args: &ParseArgs) -> Result<u8> {
    let logs = find_logs(&args.logs)?;
    let options = read_options(args.ap.clone(), args.year, &logs)?;
    if args.dump {
        return dump_events(&logs, &options);
    }

    let out = args
        .out
        .as_deref()
        .context("`--out` is required without `--dump`")?;
    let salt = user_salt()?;
    let mut ingest = if args.earlier.overwrite {
        LogIngest::replacing(&logs, &options, &salt, out)?
    } else {
        LogIngest::reading_on(&logs, &options, &salt, out)?
    };

    let progress = Progress::new(&[Stage::Read]);
    let on_step = |step: IngestStep<'_>| progress.show_ingest(step);
    let sources = progress.show(|| ingest.read(&progress.ingest_listener(&on_step)))?;
    if args.strict {
        reject_damage(&sources)?;
    }
    let summary = ingest.write(&event_store_key(&sources, &options)?)?;

    if args.output.json {
        output::print_json(SCHEMA_VERSION, &summary)?;
    } else {
        output::print(&text::events::summary(&summary))?;
    }
    if args.stats {
        output::print(&text::events::holds_by_code(&EventStore::open(out)?))?;
    }
    Ok(EXIT_DONE)
}

fn dump_events(logs: &[PathBuf], options: &ReadOptions) -> Result<u8> {
    let mut out = std::io::BufWriter::new(output::stdout()?);
    for log in logs {
        eventlog::dump(log, options, &mut out).map_err(explain)?;
    }
    out.flush()?;
    Ok(EXIT_DONE)
}

/// Fails on the first damage in a log, for `--strict`.
fn reject_damage(sources: &[SourceLog]) -> Result<()> {
    for source in sources {
        let damage = source.places.iter().find(|place| place.anomaly.is_damage());
        if let Some(place) = damage {
            bail!(hinted(
                format!(
                    "`{}`: line {} (byte {}): {}",
                    source.name,
                    place.line,
                    place.offset,
                    place.anomaly.describe()
                ),
                "omit `--strict` to count damage and continue",
            ));
        }
    }
    Ok(())
}
