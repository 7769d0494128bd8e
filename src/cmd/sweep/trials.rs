//! `poolcast sweep trials` and `sweep conclude`: the steps that jobs of a DAG run, to do trials and
//! to collect their results.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::cmd::report_page::write_job_page;
use crate::cmd::signals::{exit_time, stop_signal};
use crate::cmd::text::trials::{log_epoch, trial_line};
use poolcast_base::error::{EXIT_CHECKPOINTED, EXIT_DONE, EXIT_RETRY};
use poolcast_base::{archive, output};
use poolcast_cli::{SweepConcludeArgs, SweepTrialsArgs};
use poolcast_sweep::condor;
use poolcast_sweep::{self as sweep, PartEnd, SweepPart, TrialRow};

/// Interval between progress notes of a job.
const NOTE_INTERVAL: Duration = Duration::from_secs(60);

/// Runs the trials. If it must stop early, the exit code says so.
pub(super) fn run(args: &SweepTrialsArgs) -> Result<u8> {
    let stop = stop_signal()?;
    if let Some(file) = &args.unpack {
        archive::unpack(file, Path::new("."))?;
    }

    let sweep = condor::open_sweep(&args.dir)
        .with_context(|| format!("cannot use `{}`", args.dir.display()))?;
    let part_name = args.out.file_name().unwrap_or_default();
    let until_epoch = args.until_epoch.map(|epochs| epochs as usize);
    let part = SweepPart {
        sweep: &sweep,
        dir: &args.out,
        worker: part_name.to_string_lossy().into_owned(),
        device: &args.device.open()?,
        until_epoch: until_epoch.unwrap_or(usize::MAX),
        stop: &stop,
        leave: args.self_checkpoint.map(exit_time).transpose()?,
    };

    let trials = &args.trials.0;
    let all = trials.len();
    let count = Cell::new(sweep::part_rows(&args.out)?.len());
    let printed_at = Cell::new(None::<Instant>);
    let on_row = |row: &TrialRow| {
        count.set(count.get() + 1);
        if printed_at
            .get()
            .is_none_or(|at| at.elapsed() > NOTE_INTERVAL)
            || count.get() == all
        {
            output::note(&format!(
                "{} of {all}: {}",
                count.get(),
                trial_line(row, &sweep)
            ));
            printed_at.set(Some(Instant::now()));
        }
    };

    for (trial, epochs) in sweep::part_at_work(&args.out) {
        output::note(&format!("trial {trial}: continuing after epoch {epochs}"));
    }
    match part.run(trials, log_epoch, on_row)? {
        PartEnd::Over => Ok(EXIT_DONE),
        PartEnd::Left => {
            output::note(&format!(
                "stopped early; the same command continues in `{}`",
                args.out.display()
            ));
            Ok(if args.self_checkpoint.is_some() {
                EXIT_CHECKPOINTED
            } else {
                EXIT_RETRY
            })
        }
    }
}

/// Writes the results of all trials.
pub(super) fn conclude(args: &SweepConcludeArgs) -> Result<u8> {
    let sweep = condor::open_sweep(&args.dir)?;
    let rows = condor::read_all_rows(&sweep)?;
    let out = args.out.as_deref().unwrap_or(&args.dir);
    sweep::conclude_parts(&sweep, &rows, out)?;
    write_job_page(&sweep, &rows, out);
    output::print(&format!("{}\n", output::counted(rows.len(), "trial")))?;
    Ok(EXIT_DONE)
}
