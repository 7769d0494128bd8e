//! `poolcast tensors`: event shards → tensor shards.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::{flag, flags};
use crate::cli::TensorsArgs;
use crate::config::Config;
use crate::error::EXIT_DONE;
use crate::events::{EVENTS_FORMAT, EventStore};
use crate::tensors::{
    self, BuildProgress, Dataset, LeakageAudit, SplitSide, TENSORS_FORMAT, TensorSettings,
    TensorSummary,
};
use crate::{archive, manifest, output};

/// Opens the store, writes the tensors, prints the counts.
pub fn run(args: &TensorsArgs) -> Result<u8> {
    if let Some(file) = &args.unpack {
        archive::unpack(file, Path::new("."))?;
    }
    let config = Config::load(
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
    )?;
    let settings = TensorSettings::from_config(&config)?;
    let store = EventStore::open(&args.events)?;
    let events_key = manifest::read::<serde_json::Value>(&args.events, EVENTS_FORMAT)?.key;
    let is_done =
        manifest::finished_key(&args.out, TENSORS_FORMAT) == Some(settings.key(&events_key)?);
    let summary = if is_done && !args.overwrite {
        output::note(&format!(
            "nothing new: `{}` holds these tensors already",
            args.out.display()
        ));
        Dataset::open(&args.out)?.summary
    } else {
        let summary = build(&store, &settings, &events_key, &args.out, args.overwrite, 0)?;
        config.write(&args.out)?;
        summary
    };
    let audit = args
        .audit
        .then(|| tensors::audit(&Dataset::open(&args.out)?))
        .transpose()?;
    if args.json {
        output::print_json(&Printed { summary, audit })?;
    } else {
        output::print(&(text(&summary) + &audit.as_ref().map(audit_text).unwrap_or_default()))?;
    }
    Ok(EXIT_DONE)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    #[serde(flatten)]
    summary: TensorSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<LeakageAudit>,
}

/// Builds the tensors in `dir` with a progress bar; says how many bytes they have if these are `bytes_to_tell` or more.
pub(super) fn build(
    store: &EventStore,
    settings: &TensorSettings,
    events_key: &str,
    dir: &Path,
    replace: bool,
    bytes_to_tell: u64,
) -> Result<TensorSummary> {
    let bar = output::item_bar(0, "tensors");
    bar.set_length(
        store
            .summary
            .events_by_number
            .get(&crate::eventlog::HELD)
            .copied()
            .unwrap_or(0),
    );
    let hear = |progress: BuildProgress| match progress {
        BuildProgress::Planned { bytes } if bytes >= bytes_to_tell => {
            bar.suspend(|| {
                output::note(&format!(
                    "writing {} to `{}`",
                    indicatif::DecimalBytes(bytes),
                    dir.display()
                ))
            });
        }
        BuildProgress::Planned { .. } => {}
        BuildProgress::Made { samples } => bar.inc(samples),
    };
    let summary = tensors::build(
        store,
        settings,
        &settings.key(events_key)?,
        dir,
        replace,
        hear,
    );
    bar.finish_and_clear();
    summary
}

/// The counts for people.
pub(super) fn text(summary: &TensorSummary) -> String {
    let settings = &summary.settings;
    let mut text = format!(
        "{}; samples of j = {}, m = {} of {} s, split by {}\n",
        output::counted(summary.cycles_total, "hold cycle"),
        output::counted(settings.j, "job"),
        output::counted(settings.m, "frame"),
        settings.timeframe_len_s,
        settings.split,
    );
    let mut rows = Vec::new();
    for side in SplitSide::ALL {
        let side_summary = &summary.splits[&side];
        let share = 100.0 * side_summary.successes as f64 / side_summary.samples.max(1) as f64;
        rows.push(vec![
            format!("  {}", side.name()),
            output::with_commas(side_summary.samples as u64),
            format!("{share:.1} % success"),
        ]);
    }
    for (reason, count) in &summary.left_out {
        rows.push(vec![
            format!("  left out: {}", reason.name()),
            output::with_commas(*count as u64),
        ]);
    }
    text.push_str(&output::aligned_table(&rows));
    text
}

/// The audit for people.
fn audit_text(audit: &LeakageAudit) -> String {
    let number = |n: usize| output::with_commas(n as u64);
    let head = [
        "leaks between the sides",
        "clusters",
        "hold seconds",
        "equal codes",
        "and label",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for shared in &audit.shared {
        let name = format!("  {} and {}", shared.from.name(), shared.to.name());
        let counts = [
            shared.clusters,
            shared.hold_seconds,
            shared.duplicates,
            shared.duplicates_of_one_label,
        ];
        rows.push(std::iter::once(name).chain(counts.map(number)).collect());
    }
    let mut text = output::aligned_table(&rows);
    text.push_str(&format!(
        "  windows that end after the first test hold: {}\n  outcomes that were not known by then: {}\n",
        number(audit.windows_after_test),
        number(audit.outcomes_after_test),
    ));
    let mut rows = vec![
        ["success by hold code", "train", "validate", "test"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for share in &audit.by_code {
        let cell = |side: SplitSide| {
            format!(
                "{} of {}",
                number(share.successes[&side]),
                number(share.samples[&side])
            )
        };
        let name = format!("  {}/{}", share.hold_code, share.hold_subcode);
        rows.push(
            std::iter::once(name)
                .chain(SplitSide::ALL.map(cell))
                .collect(),
        );
    }
    text + &output::aligned_table(&rows)
}
