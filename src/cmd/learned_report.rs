//! The results of `poolcast learn` and `poolcast run`: a report for programs, a page for people, and the advice.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::asked_advice::earlier_answers;
use super::default_schedd::name_other_schedds;
use super::page_numbers::keep_numbers;
use super::progress::{Progress, Stage};
use super::report_page::write_page;
use super::run_answers::RunAnswers;
use super::study::Study;
use super::text::advice::{AdviceDocument, AdviceView, shell_word};
use super::text::advice_page::AdvicePage;
use super::text::changes::{HeldReport, RunChanges};
use super::{logs, text};
use htcondor_eventlog as eventlog;
use poolcast_advice::{AdviceBasis, JobAdvice, advise, apply_reason_rules};
use poolcast_base::output::JsonDocument;
use poolcast_base::{escape, manifest, output};
use poolcast_events::{EventStore, HoldSource, StoreSummary};
use poolcast_holds::rehearsal::{REHEARSAL_SCHEMA_VERSION, RehearsalTally};
use poolcast_report::{HeldJobs, REPORT_FILE, ReportInputs};
use poolcast_sweep::config::Config;
use poolcast_sweep::events_dir;

/// Contents of `report.json`.
#[derive(Serialize)]
struct RunReport<'a> {
    /// The source of the holds.
    source: HoldSource,
    /// The parsed events.
    events: &'a StoreSummary,
    #[serde(flatten)]
    study: Option<&'a Study>,
    /// Counts of the rehearsed answers, settled by the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    rehearsal: Option<JsonDocument<&'a RehearsalTally>>,
    /// Advice on the jobs that are held when the log ends.
    advice: JsonDocument<AdviceDocument<'a>>,
}

/// Document that `--json` prints.
#[derive(Serialize)]
struct PrintedReport<'a> {
    #[serde(flatten)]
    report: &'a RunReport<'a>,
    /// Changes since the previous run on a shorter log; `None` if there was none, or if the log has
    /// not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<RunChanges>,
}

/// Maximum number of changed jobs or things of one kind that are named before the page.
const MAX_NAMED_CHANGES: usize = 3;

/// The report for programs, in the directory of a run.
pub(super) const RUN_REPORT_FILE: &str = "report.json";

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Advises on the held jobs by what the run of `config` has learned. Writes and prints the results, with the `study`
/// before them if there was one.
pub(super) fn conclude(
    study: Option<&Study>,
    config: &Config,
    is_json: bool,
    progress: &Progress,
) -> Result<()> {
    progress.begin(Stage::Page, 0, 0);
    let out = &config.out;
    let store = &EventStore::open(&events_dir(out))?;
    let learned = RunAnswers::open(out)?;
    let mut advice = advise(store, learned.model(), &config.advice, None)?;
    name_other_schedds(&mut advice);
    let mut held = HeldJobs {
        basis: AdviceBasis::new(store, learned.model()),
        advice,
    };

    let stored = without_texts(&held.advice);
    let rehearsal = RehearsalTally::read(out)?;
    let report = RunReport {
        source: store.summary.source(),
        events: &store.summary,
        study,
        rehearsal: rehearsal.as_ref().map(rehearsal_document),
        advice: JsonDocument {
            schema_version: text::advice::SCHEMA_VERSION,
            body: AdviceView::new(&held.basis, &stored).document(),
        },
    };
    let changes = write_report(out, &report, store)?;
    logs::add_words(config, &config.out, &mut held.advice)?;
    let inputs = ReportInputs::read(out, false)?;
    write_page(&inputs, Some(&held), &out.join(REPORT_FILE))?;
    progress.finish();
    if is_json {
        let report = &report;
        return output::print_json(SCHEMA_VERSION, &PrintedReport { report, changes });
    }

    output::print(&format!(
        "Events\n{}\n{}everything is in {}\n",
        text::events::summary(&store.summary),
        study.map_or_else(String::new, |study| study.text(out)),
        escape::path(out)
    ))?;
    if let Some(tally) = &rehearsal {
        output::print(&format!(
            "\nThe answers about held jobs, rehearsed on this log\n{}",
            text::rehearsal::strategies_table(tally)
        ))?;
        if let Some(table) = text::rehearsal::members_table(tally) {
            output::print(&format!("\n{table}"))?;
        }
    }
    if let Some(changes) = changes {
        output::print(&format!("\n{}", changes.text(MAX_NAMED_CHANGES)))?;
    }
    print_advice(store, config, &held)
}

/// Returns `advice` as it is stored: what reasons state answers, but nothing that they name is in it.
fn without_texts(advice: &[JobAdvice]) -> Vec<JobAdvice> {
    let mut stored = advice.to_vec();
    apply_reason_rules(&mut stored);
    stored
}

/// Prints the page about the held jobs.
fn print_advice(store: &EventStore, config: &Config, held: &HeldJobs) -> Result<()> {
    output::print("\nAdvice on the jobs still held when the log ends\n")?;
    let earlier = earlier_answers(&config.out, store);
    let view = AdviceView {
        call: repeat_command(config),
        earlier: earlier.as_ref(),
        ..AdviceView::new(&held.basis, &held.advice)
    };
    let page = AdvicePage::new(&view);
    output::print_page(&page.lines(0))?;
    let now_ms = jiff::Timestamp::now().as_millisecond();
    keep_numbers(&config.out, &page, &view, now_ms);
    Ok(())
}

fn rehearsal_document(body: &RehearsalTally) -> JsonDocument<&RehearsalTally> {
    JsonDocument {
        schema_version: REHEARSAL_SCHEMA_VERSION,
        body,
    }
}

/// The command that gives the same advice again; `None` if a log can be read only once.
fn repeat_command(config: &Config) -> Option<String> {
    if config.logs.iter().any(|log| eventlog::is_read_once(log)) {
        return None;
    }
    let out = config.out.to_str()?;
    Some(format!("poolcast advise {}", shell_word(out)))
}

/// Writes the report into `out`; returns the changes since the previous report, if the log has
/// changed.
fn write_report(
    out: &Path,
    report: &RunReport<'_>,
    store: &EventStore,
) -> Result<Option<RunChanges>> {
    let path = out.join(RUN_REPORT_FILE);
    let before = fs_err::read(&path).ok();
    let document = JsonDocument {
        schema_version: SCHEMA_VERSION,
        body: report,
    };
    manifest::write_json(&path, &document)?;
    let Some(before) = before else {
        return Ok(None);
    };

    let after = fs_err::read(&path)?;
    if before == after {
        output::note("nothing has changed since the previous run");
        return Ok(None);
    }
    // Another build may have written the previous report in another format.
    let before: serde_json::Value = serde_json::from_slice(&before).unwrap_or_default();
    let after: serde_json::Value = serde_json::from_slice(&after)?;
    if before["events"]["sources"] == after["events"]["sources"] {
        return Ok(None);
    }
    let reports = HeldReport::read(&before).zip(HeldReport::read(&after));
    Ok(reports.map(|(before, after)| RunChanges::between(&before, &after, Some(store))))
}
