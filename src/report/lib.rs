//! Reports on a run, a sweep or a DAG, as one HTML page or as JSON.

mod best_part;
mod data_part;
mod document;
mod drawing;
mod evaluation_part;
mod failure_tables;
mod held_jobs;
mod held_part;
mod hold_history;
mod inputs;
mod loss_curves;
mod page;
mod parallel_plot;
mod parameter_axis;
mod parameter_figures;
mod plot;
mod provenance_part;
mod rehearsal_part;
mod reported_trial;
mod rung_figure;
mod scale;
mod score_curves;
mod scored_samples;
mod sweep_part;
mod trial_table;
mod words;

use anyhow::Result;

use document::ReportPart;

pub use document::{Report, SCHEMA_VERSION};
pub use held_jobs::HeldJobs;
pub use inputs::{ReportInputs, ReportedKind, kind_of};
pub use page::page;

/// File name of the page, in the directory that it reports on.
pub const REPORT_FILE: &str = "report.html";

/// Makes the report on `inputs`. `held` is the advice on held jobs, if there is any.
///
/// # Errors
/// Fails if a file exists but is not valid.
pub fn report(inputs: &ReportInputs, held: Option<&HeldJobs>) -> Result<Report> {
    let parts = if inputs.runs_program() {
        vec![
            best_part::best_part(inputs),
            sweep_part::sweep_part(inputs)?,
            provenance_part::provenance_part(inputs)?,
        ]
    } else {
        parts_on_models(inputs, held)?
    };
    let named = held.filter(|_| !inputs.is_anonymous);
    Ok(Report {
        title: named.map_or_else(|| inputs.title(), HeldJobs::title),
        about: inputs.about(held),
        reload_s: inputs.reload_s,
        parts,
    })
}

/// Makes the report on `held` alone.
pub fn held_report(held: &HeldJobs) -> Report {
    Report {
        title: held.title(),
        about: vec![held.log_sentence(false)],
        reload_s: None,
        parts: vec![held_part::held_jobs_part(held, false)],
    }
}

/// Makes the parts on models that answer about held jobs or waits, and on their data.
fn parts_on_models(inputs: &ReportInputs, held: Option<&HeldJobs>) -> Result<Vec<ReportPart>> {
    let mut parts = vec![held_part::held_part(inputs, held)];
    parts.extend(
        inputs
            .rehearsal
            .as_ref()
            .map(rehearsal_part::rehearsal_part),
    );
    parts.extend([
        best_part::best_part(inputs),
        evaluation_part::evaluation_part(inputs)?,
        sweep_part::sweep_part(inputs)?,
        data_part::data_part(inputs)?,
        provenance_part::provenance_part(inputs)?,
    ]);
    Ok(parts)
}
