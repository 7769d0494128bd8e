//! `poolcast collect`: copies a live, rotating global event log into an archive that only grows.

use anyhow::Result;

use poolcast_base::error::EXIT_DONE;
use poolcast_base::escape;
use poolcast_base::output;
use poolcast_cli::CollectArgs;
use poolcast_collect::LostEvents;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Archives the new events, and warns about events that were rotated away before.
pub fn run(args: &CollectArgs) -> Result<u8> {
    let collected = poolcast_collect::collect(&args.logs, &args.out)?;
    for lost in &collected.newly_lost {
        output::note(&loss_warning(lost));
    }
    if args.json {
        output::print_json(SCHEMA_VERSION, &collected)?;
        return Ok(EXIT_DONE);
    }

    let generations = &collected.archive.generations;
    let bytes: u64 = generations.iter().map(|generation| generation.bytes).sum();
    output::print(&format!(
        "{}: {}, {} of them new; generations: {}\n",
        escape::path(&args.out),
        output::counted(bytes as usize, "byte"),
        output::with_commas(collected.new_bytes),
        generations.len()
    ))?;

    Ok(EXIT_DONE)
}

fn loss_warning(lost: &LostEvents) -> String {
    let LostEvents {
        ap,
        after,
        before,
        bytes,
    } = lost;

    let what = if *bytes > 0 {
        output::counted(*bytes as usize, "byte")
    } else {
        "events".to_owned()
    };
    let of_ap = if ap.is_empty() {
        String::new()
    } else {
        format!(" of {ap}")
    };
    format!(
        "warning: {what} between generations {after} and {before}{of_ap} were rotated away before \
         they were collected; collect more often, or set a larger EVENT_LOG_MAX_SIZE"
    )
}
