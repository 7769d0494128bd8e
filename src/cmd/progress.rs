//! What people see of a stage at work: a bar on a terminal, and notes.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;

use poolcast_holds::events::{IngestListener, IngestStep};
use poolcast_base::output;
use poolcast_sweep::{PrepareListener, PrepareStep};
use poolcast_holds::tensors::BuildProgress;

/// Tensors of a sweep that take less than this are made without a word.
const BYTES_TO_TELL: u64 = 1_000_000_000;

/// Says that a log is read which was not named.
pub(super) fn rotated_note(log: &Path) -> String {
    format!("also reading the rotated generation `{}`", log.display())
}

/// The bar of the stage at work, if one is.
#[derive(Debug, Clone, Default)]
pub(super) struct StageBar {
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

impl StageBar {
    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, bar: ProgressBar) {
        *self.bar() = Some(bar);
    }

    fn advance(&self, by: u64) {
        if let Some(bar) = &*self.bar() {
            bar.inc(by);
        }
    }

    fn end(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    /// A listener that shows the bytes of logs, and tells `on_step` everything else.
    pub(super) fn ingest_listener<'a>(
        &self,
        on_step: &'a (dyn Fn(IngestStep<'_>) + Sync),
    ) -> IngestListener<'a> {
        IngestListener {
            on_bytes: self.on_bytes(),
            on_step,
        }
    }

    /// As [`StageBar::ingest_listener`], of all that is made before the trials of a sweep.
    pub(super) fn prepare_listener<'a>(
        &self,
        on_step: &'a (dyn Fn(PrepareStep<'_>) + Sync),
    ) -> PrepareListener<'a> {
        PrepareListener {
            on_bytes: self.on_bytes(),
            on_step,
        }
    }

    fn on_bytes(&self) -> Arc<dyn Fn(u64) + Send + Sync> {
        let bar = self.clone();
        Arc::new(move |bytes| bar.advance(bytes))
    }

    /// Shows a step of the reading of logs.
    pub(super) fn show_ingest(&self, step: IngestStep<'_>) {
        match step {
            IngestStep::Begun { total_bytes } => self.begin(output::byte_bar(total_bytes, "parse")),
            IngestStep::Ended => self.end(),
            IngestStep::ReadOn { log, offset } => output::note(&format!(
                "`{}`: going on after byte {offset}",
                log.display()
            )),
            IngestStep::NothingNew => output::note("nothing new in the logs"),
            IngestStep::ReadAnew => {
                output::note("the last log cannot be read on: all are read anew");
            }
        }
    }

    /// Shows a step of what is made before the trials of a sweep.
    pub(super) fn show_preparation(&self, step: PrepareStep<'_>) {
        match step {
            PrepareStep::TablesFound => output::note("tables: joined before"),
            PrepareStep::EventsFound => output::note("parse: done before"),
            PrepareStep::TrialsFound => output::note("trials: done before"),
            PrepareStep::AlsoReading(log) => output::note(&rotated_note(log)),
            PrepareStep::FramesChosen(choice) => output::note(&choice.describe()),
            PrepareStep::SaltNote(note) => output::note(note),
            PrepareStep::Ingest(step) => self.show_ingest(step),
            PrepareStep::TensorsBegun { holds } => self.begin_tensors(holds),
            PrepareStep::Tensors { dir, progress } => {
                self.show_tensors(dir, progress, BYTES_TO_TELL);
            }
            PrepareStep::TensorsEnded => self.end(),
        }
    }

    /// Begins the bar of tensors, over the holds that they are made from.
    pub(super) fn begin_tensors(&self, holds: u64) {
        let bar = output::item_bar(0, "tensors");
        bar.set_length(holds);
        self.begin(bar);
    }

    /// Shows how far the tensors in `dir` are; how many bytes they have, if these are
    /// `bytes_to_tell` or more.
    pub(super) fn show_tensors(&self, dir: &Path, progress: BuildProgress, bytes_to_tell: u64) {
        match progress {
            BuildProgress::Planned { bytes } if bytes >= bytes_to_tell => {
                let text = format!(
                    "writing {} to `{}`",
                    indicatif::DecimalBytes(bytes),
                    dir.display()
                );
                match &*self.bar() {
                    Some(bar) => bar.suspend(|| output::note(&text)),
                    None => output::note(&text),
                }
            }
            BuildProgress::Planned { .. } => {}
            BuildProgress::Made { samples } => self.advance(samples),
        }
    }

    /// Ends the bar of tensors.
    pub(super) fn end_tensors(&self) {
        self.end();
    }
}
