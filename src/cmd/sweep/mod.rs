//! `poolcast sweep`: turns a search space into trials for workers that share a folder, and reports
//! the results and the best trial.

mod dag_folder;
mod dag_page;
mod dag_status;
mod listing;
mod status_page;
mod status_watch;
mod sweep_page;
mod tracker_lines;
mod trials;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use self::sweep_page::sweep_page;
use self::tracker_lines::{TrackedStatus, add_trackers};
use super::best_wait_model::best_row;
use super::preparation::{begin_sweep, make_tensors};
use super::progress::{Progress, Stage};
use super::report_page::write_job_page;
use super::results_here::named_or_here;
use super::signals::stop_signal;
use super::text::trials::{log_epoch, trial_line};
use super::tracking::{begin_tracking, end_tracking};
use super::whole_sweep::{explain_unfinished, learn_answers, note_pause, run_to_end};
use super::{choices, text};
use poolcast_base::error::{EXIT_DONE, EXIT_RETRY, hinted, too_early};
use poolcast_base::{escape, manifest, output};
use poolcast_cli::{
    SweepCleanupArgs, SweepEvaluateArgs, SweepInitArgs, SweepManageArgs, SweepRunArgs,
    SweepShowArgs, SweepStatusArgs, SweepStep, SweepWorkArgs,
};
use poolcast_queue::{ManagerOutcome, Queue, WorkerTally};
use poolcast_sweep::condor::{self, is_dag, results_directory};
use poolcast_sweep::config::TrialSource;
use poolcast_sweep::{
    self as sweep, EarlierSweep, FrontTrial, SweepFolder, SweepStatus, TrialOutcome, TrialOutcomes,
    TrialRow, events_dir,
};
use poolcast_tensors::TensorSettings;
use poolcast_tracking::tracker_states;

/// Version of the JSON document of a sweep's status.
const STATUS_SCHEMA_VERSION: u32 = 1;

/// Runs one step of a sweep.
pub fn run(step: &SweepStep, threads: usize) -> Result<u8> {
    match step {
        SweepStep::Init(args) => init_sweep(args),
        SweepStep::Manage(args) => manage_sweep(args),
        SweepStep::Work(args) => work_on_sweep(args),
        SweepStep::Run(args) => run_sweep(args, threads),
        SweepStep::List(args) => listing::list(args),
        SweepStep::Pause(args) => pause_sweep(&args.dir),
        SweepStep::Resume(args) => resume_sweep(&args.dir),
        SweepStep::Retry(args) => retry_sweep(&args.dir),
        SweepStep::Status(args) => {
            let named = named_or_here(args.show.dir.as_deref())?;
            if is_dag(&results_directory(&named)?) {
                dag_folder::show_status(args, &named)
            } else {
                show_status(args, &named)
            }
        }
        SweepStep::Best(args) => match results_directory(&named_or_here(args.dir.as_deref())?)? {
            dir if is_dag(&dir) => dag_folder::show_best(args, &dir),
            dir => show_best(args, &dir),
        },
        SweepStep::Evaluate(args) => evaluate_sweep(args),
        SweepStep::Trials(args) => trials::run(args),
        SweepStep::Conclude(args) => trials::conclude(args),
        SweepStep::Cleanup(args) => clean_up_sweep(args),
    }
}

fn init_sweep(args: &SweepInitArgs) -> Result<u8> {
    let sweep = begin_or_open_sweep(args)?;
    let trials = sweep.plan.trials;
    let are = if trials == 1 { "is" } else { "are" };
    output::print(&format!(
        "{} {are} planned in {}\n",
        output::counted(trials, "trial"),
        escape::path(&sweep.dir)
    ))?;
    Ok(EXIT_DONE)
}

/// Makes the folder of a sweep, or opens the sweep of the same configuration that is there.
fn begin_or_open_sweep(args: &SweepInitArgs) -> Result<SweepFolder> {
    let config = choices::sweep_config(args)?;
    for note in config.command.iter().flat_map(|command| &command.notes) {
        output::note(&format!("note: {note}"));
    }
    choices::note_single_features(&config);
    let (begun, earlier) = match args.overwrite {
        true => (None, EarlierSweep::Replace),
        false => {
            let begun = SweepFolder::open_if_begun(&config.out, &config)?;
            (begun, EarlierSweep::Extend)
        }
    };
    let sweep = match begun {
        Some(sweep) => sweep,
        None => {
            let place = format!("`{}`", args.config.display());
            let progress = Progress::new(&[Stage::Read]);
            progress
                .show(|| begin_sweep(&config, &place, earlier, &progress))?
                .0
        }
    };
    choices::note_repeats(&sweep)?;
    Ok(sweep)
}

fn manage_sweep(args: &SweepManageArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let sweep = open_sweep(args)?;
    let Some(queue) = sweep.queue()? else {
        return end_sweep(&sweep);
    };
    note_pause(&queue, &sweep);

    let keep = kept_models(args, &sweep)?;
    let prepare = |samples: &[TensorSettings]| {
        let progress = Progress::new(&[Stage::Tensors]);
        progress.show(|| make_tensors(&sweep, &events_dir(&sweep.dir), samples, &progress))
    };
    let tracking = begin_tracking(&sweep.config, &sweep.dir, &stop);
    let no_look = AtomicBool::new(false);
    let managed =
        sweep::manage_trials(&sweep, &queue, keep, &stop, &no_look, prepare, output::note);
    end_tracking(tracking);
    match managed? {
        ManagerOutcome::AllEnded(_) => end_sweep(&sweep),
        managed => explain_unfinished(&managed, &sweep),
    }
}

fn work_on_sweep(args: &SweepWorkArgs) -> Result<u8> {
    let stop = stop_signal()?;
    let sweep = SweepFolder::open(&args.dir)?;
    let Some(queue) = sweep.queue()? else {
        output::note("all trials have ended");
        return Ok(EXIT_DONE);
    };
    if queue.sealed_trials()?.is_none() {
        output::note("waiting for `poolcast sweep manage` to fill the queue");
    }
    note_pause(&queue, &sweep);

    let tally = work_with_notes(args, &sweep, &queue, &stop)?;
    output::print(&format!(
        "{} done\n",
        output::counted(tally.acknowledged, "trial")
    ))?;
    if tally.stopped {
        output::note("stopped; unfinished trials are back in the queue");
        return Ok(EXIT_RETRY);
    }
    Ok(EXIT_DONE)
}

/// Works on the sweep, and reports the progress of this worker on stderr.
fn work_with_notes(
    args: &SweepWorkArgs,
    sweep: &SweepFolder,
    queue: &Queue,
    stop: &AtomicBool,
) -> Result<WorkerTally> {
    let count = AtomicUsize::new(0);
    let last = Mutex::new(String::new());
    let ended = |row: &TrialRow| {
        let text = trial_line(row, sweep);
        count.fetch_add(1, Ordering::Relaxed);
        // Thousands of fits may end within a second, so fits go to the log instead of stderr.
        if row.fit.is_some() {
            tracing::info!("{text}")
        } else {
            output::note(&text)
        }
        if let Ok(mut last) = last.lock() {
            *last = text;
        }
    };
    let progress_note = || {
        let last = last.lock().map(|last| last.clone()).unwrap_or_default();
        format!(
            "{} done here; the last was {}",
            output::counted(count.load(Ordering::Relaxed), "trial"),
            if last.is_empty() { "none" } else { &last }
        )
    };

    let limit = trial_limit(args.trial_timeout);
    output::with_progress_notes(progress_note, || {
        sweep::work_trials(sweep, queue, limit, 1, stop, log_epoch, ended)
    })
}

/// Opens the sweep in the folder. It is an error if its choices differ from those in the flags.
fn open_sweep(args: &SweepManageArgs) -> Result<SweepFolder> {
    let sweep = SweepFolder::open(&args.dir)?;
    choices::check_same_choices(&sweep, &args.choice)?;
    Ok(sweep)
}

/// Number of best trials of `sweep` whose models are kept.
fn kept_models(args: &SweepManageArgs, sweep: &SweepFolder) -> Result<usize> {
    let chosen = args.keep.map(|keep| keep as usize);
    chosen.map_or_else(|| sweep::default_keep(sweep), Ok)
}

/// Time limit of a trial; `Duration::MAX` if `seconds` is `None`.
fn trial_limit(seconds: Option<u32>) -> Duration {
    seconds.map_or(Duration::MAX, |seconds| Duration::from_secs(seconds.into()))
}

fn run_sweep(args: &SweepRunArgs, threads: usize) -> Result<u8> {
    let sweep = if args.manage.dir.is_dir() {
        open_sweep(&args.manage)?
    } else {
        begin_or_open_sweep(&args.init())?
    };
    let limit = trial_limit(args.trial_timeout);
    let keep = kept_models(&args.manage, &sweep)?;
    let progress = Progress::new(&[Stage::Trials, Stage::Answers]);
    let is_over = progress.show(|| -> Result<bool> {
        Ok(run_to_end(&sweep, threads, limit, keep, &progress)? && learn_ended(&sweep, &progress)?)
    })?;
    match is_over {
        true => print_summary(&sweep),
        false => Ok(EXIT_RETRY),
    }
}

fn pause_sweep(dir: &Path) -> Result<u8> {
    let is_new = open_queue(dir)?.pause()?;
    output::note(if is_new {
        "paused: within seconds, workers return their trials to the queue; they claim none until `poolcast sweep resume`"
    } else {
        "the sweep is already paused; `poolcast sweep resume` resumes it"
    });
    Ok(EXIT_DONE)
}

fn resume_sweep(dir: &Path) -> Result<u8> {
    let queue = open_queue(dir)?;
    let is_lifted = queue.lift_dispatch()?;
    let was_paused = queue.resume()? || is_lifted;
    output::note(if was_paused {
        "resumed: workers claim trials again"
    } else {
        "the sweep is not paused"
    });
    Ok(EXIT_DONE)
}

fn retry_sweep(dir: &Path) -> Result<u8> {
    let count = sweep::retry_failed(&SweepFolder::open(dir)?)?;
    output::note(&match count {
        0 => "no trial has failed".to_owned(),
        count => format!(
            "{} run again with `poolcast sweep run {}`; all others keep their results",
            output::counted(count, "trial"),
            escape::path(dir)
        ),
    });
    Ok(EXIT_DONE)
}

/// Opens the queue of the sweep in `dir`. It is an error if all trials have ended.
fn open_queue(dir: &Path) -> Result<Queue> {
    ensure!(
        !is_dag(dir),
        hinted(
            format!("`{}` is the directory of a DAG", dir.display()),
            "use `condor_hold` and `condor_release` to pause and resume its jobs"
        )
    );
    SweepFolder::open(dir)?.queue()?.with_context(|| {
        hinted(
            format!("all trials of `{}` have ended", dir.display()),
            "`poolcast sweep best DIR` shows the best",
        )
    })
}

/// Writes the ensemble, learns the answers, and prints the summary, once all trials of `sweep` have ended.
fn end_sweep(sweep: &SweepFolder) -> Result<u8> {
    let progress = Progress::new(&[Stage::Answers]);
    match progress.show(|| learn_ended(sweep, &progress))? {
        true => print_summary(sweep),
        false => Ok(EXIT_RETRY),
    }
}

/// Writes the ensemble and learns the answers, once all trials of `sweep` have ended; returns false if a signal
/// stopped it.
fn learn_ended(sweep: &SweepFolder, progress: &Progress) -> Result<bool> {
    sweep::write_ensemble(sweep, &sweep.dir)?;
    learn_answers(sweep, &sweep.dir, progress)
}

fn print_summary(sweep: &SweepFolder) -> Result<u8> {
    let status = sweep::sweep_status(sweep)?;
    output::print(&sweep_page(&status, output::page_width()).text)?;
    output::print(&format!(
        "results are in {}\n",
        escape::path(&sweep.dir.join(sweep::ROWS_FILE))
    ))?;
    match sweep.config.trial_source() {
        TrialSource::WaitSamples => {
            best_row(sweep)?;
            return Ok(EXIT_DONE);
        }
        TrialSource::Command => return end_of_program_sweep(sweep, &status),
        TrialSource::Logs | TrialSource::Tables => {}
    }
    if sweep.config.pipelines.is_empty() {
        sweep::choose_model(sweep, &sweep::trial_rows(sweep)?)?;
        return Ok(EXIT_DONE);
    }

    let choices = choices::split_choices(sweep, &mut TrialOutcomes::read(sweep)?)?;
    output::print(&choices::choice_table(&choices))?;
    Ok(EXIT_DONE)
}

/// Ends a sweep of a program: with the best trial, if it has a metric. It is an error if no trial
/// has a value.
fn end_of_program_sweep(sweep: &SweepFolder, status: &SweepStatus) -> Result<u8> {
    if sweep.config.wandb.sweep.metric.reported.is_some() || status.done == 0 {
        best_row(sweep)?;
    }
    Ok(EXIT_DONE)
}

fn show_status(args: &SweepStatusArgs, dir: &Path) -> Result<u8> {
    let sweep = SweepFolder::open(dir)?;
    if args.show.json {
        let status = TrackedStatus {
            status: sweep::sweep_status(&sweep)?,
            trackers: tracker_states(&sweep.dir),
        };
        output::print_json(STATUS_SCHEMA_VERSION, &status)?;
        return Ok(EXIT_DONE);
    }
    status_watch::show(args, |columns| {
        let mut page = sweep_page(&sweep::sweep_status(&sweep)?, columns);
        add_trackers(&mut page, &tracker_states(&sweep.dir), columns);
        Ok(page)
    })
}

fn show_best(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let sweep = SweepFolder::open(dir)?;
    if !sweep.config.pipelines.is_empty() {
        choices::print_choices(&sweep, &mut TrialOutcomes::read(&sweep)?, args.json)?;
        return Ok(EXIT_DONE);
    }

    match sweep.config.trial_source() {
        TrialSource::WaitSamples | TrialSource::Command => {
            return show_best_row(&sweep, args.json);
        }
        TrialSource::Logs | TrialSource::Tables => {}
    }

    let rows = sweep::trial_rows(&sweep)?;
    let best =
        sweep::choose_model(&sweep, &rows).with_context(|| choices::no_best_error(&sweep))?;
    let row = rows
        .iter()
        .find(|row| row.trial == best.trial)
        .context("the best trial has no row")?;

    let front = front_of(&sweep, &TrialOutcomes::from_rows(rows.clone()));
    if args.json {
        output::print_json(
            choices::BEST_SCHEMA_VERSION,
            &BestDocument {
                row: choices::WholeRow::new(row),
                front,
            },
        )?;
    } else {
        output::print(&best_text(&sweep, row, rows.len()))?;
        output::print(&choices::front_text(&sweep.config, &front))?;
        output::print(&text::trials::ensemble_text(&best, &sweep.dir))?;
        output::print(&text::trials::inputs_text(&best))?;
        let of_best = sweep::no_better_than_chance(&sweep, &best)?;
        output::print(&text::trials::chance_text(of_best))?;
    }
    Ok(EXIT_DONE)
}

/// Shows the best trial over samples of waits, or of a program.
fn show_best_row(sweep: &SweepFolder, as_json: bool) -> Result<u8> {
    let row = best_row(sweep)?;
    let outcomes = TrialOutcomes::read(sweep)?;
    let front = front_of(sweep, &outcomes);
    if as_json {
        let document = BestDocument {
            row: choices::WholeRow::new(&row),
            front,
        };
        output::print_json(choices::BEST_SCHEMA_VERSION, &document)?;
        return Ok(EXIT_DONE);
    }
    output::print(&best_text(sweep, &row, outcomes.all().len()))?;
    output::print(&choices::front_text(&sweep.config, &front))?;
    let Some(waits) = &row.waits else {
        return Ok(EXIT_DONE);
    };
    output::print(&text::wait_model::held_back(&waits.held_back))?;
    output::print(&format!(
        "\nvalidate it on later windows: poolcast provision validate TRACE --model {}\n",
        escape::path(&sweep.dir)
    ))?;
    Ok(EXIT_DONE)
}

/// The document that `--json` prints for the best trial of a sweep without pipelines.
#[derive(Serialize)]
struct BestDocument<'a> {
    #[serde(flatten)]
    row: choices::WholeRow<'a>,
    /// The Pareto front, by the first metric; empty for a sweep with one metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    front: Vec<FrontTrial>,
}

fn front_of(sweep: &SweepFolder, outcomes: &TrialOutcomes) -> Vec<FrontTrial> {
    let values = outcomes.all().iter().map(TrialOutcome::metric_values);
    sweep::pareto_front(&sweep.config.wandb.sweep.metric, values)
}

fn best_text(sweep: &SweepFolder, row: &TrialRow, ended: usize) -> String {
    let dir = sweep::trial_dir(&sweep.dir, row.trial);
    let mut text = format!(
        "{}\nchosen from {} that ended, of {}\n",
        trial_line(row, sweep),
        output::counted(ended, "trial"),
        sweep.plan.trials
    );

    let mut parameters = Vec::new();
    for (name, value) in row.counted_parameters() {
        parameters.push(vec![format!("  {name}"), sweep::plain_value(&value)]);
    }
    text.push_str(&output::aligned_table(&parameters));
    let files = match row.reported {
        Some(_) => "its files are",
        None => "its model is",
    };
    text.push_str(&format!("{files} in {}\n", escape::path(&dir)));
    text
}

/// Scores the best trials of a finished sweep.
fn evaluate_sweep(args: &SweepEvaluateArgs) -> Result<u8> {
    let dir = results_directory(&args.dir)?;
    let sweep = SweepFolder::open(&dir)?;
    ensure!(
        sweep.is_finished(),
        too_early(
            format!("the sweep in `{}` has not finished", dir.display()),
            "`poolcast sweep status DIR` shows its progress"
        )
    );

    ensure!(
        sweep.config.trial_source() != TrialSource::Command,
        hinted(
            "`sweep evaluate` cannot score the trials of a program, which reports its own scores",
            "`poolcast sweep best DIR` shows the best trial"
        )
    );
    ensure!(
        sweep.config.trial_source() != TrialSource::WaitSamples,
        hinted(
            "`sweep evaluate` cannot score models of waits; they are scored on later windows of a trace",
            "`poolcast sweep best DIR` shows the best trial; `poolcast provision validate TRACE --model DIR` scores it"
        )
    );

    let out = args.out.as_deref().unwrap_or(&dir);
    sweep::write_ensemble(&sweep, out)?;
    let progress = Progress::new(&[Stage::Answers]);
    if !progress.show(|| learn_answers(&sweep, out, &progress))? {
        return Ok(EXIT_RETRY);
    }
    let rows = sweep::trial_rows(&sweep)?;
    let judged = sweep::evaluate_choices(&sweep, &rows, out)?;
    if args.out.is_some() {
        write_job_page(&sweep, &rows, out);
    }
    if let Some((_, evaluation)) = &judged.network {
        output::print(&text::evaluation::summary(evaluation))?;
        output::print(&fs_err::read_to_string(out.join(sweep::INFO_FILE))?)?;
    }
    if !judged.choices.is_empty() {
        output::print(&choices::choice_table(&judged.choices))?;
    }
    Ok(EXIT_DONE)
}

fn clean_up_sweep(args: &SweepCleanupArgs) -> Result<u8> {
    if condor::is_untidied(&args.dir)? || !args.dir.join(manifest::FILE).exists() {
        return dag_folder::clean_up(args);
    }
    ensure!(
        !args.dry_run,
        "`--dry-run` is for the directory of a DAG; the cleanup of other sweeps moves nothing"
    );

    let keep = args.keep.map(|keep| keep as usize);
    sweep::clean_up(&SweepFolder::open(&args.dir)?, keep)?;
    Ok(EXIT_DONE)
}
