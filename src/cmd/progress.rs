//! Shows people the progress of a stage: a bar on a terminal, and notes.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::ProgressBar;

use poolcast_base::output;
use poolcast_events::{IngestListener, IngestStep};
use poolcast_sweep::{PrepareListener, PrepareStep};
use poolcast_tensors::BuildProgress;

/// Size in bytes from which the tensors of a sweep are announced. Smaller ones are made silently.
const MIN_ANNOUNCED_BYTES: u64 = 1_000_000_000;

/// The note that a log is read although the user did not name it.
pub(super) fn rotated_note(log: &Path) -> String {
    format!("also reading the rotated generation `{}`", log.display())
}

/// The progress bar of the current stage, if there is one.
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

    /// A listener that advances the bar by the bytes read, and passes all other steps to `on_step`.
    pub(super) fn ingest_listener<'a>(
        &self,
        on_step: &'a (dyn Fn(IngestStep<'_>) + Sync),
    ) -> IngestListener<'a> {
        IngestListener {
            on_bytes: self.on_bytes(),
            on_step,
        }
    }

    /// Like [`StageBar::ingest_listener`], but for all preparations of a sweep's trials.
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

    /// Shows a step of reading logs.
    pub(super) fn show_ingest(&self, step: IngestStep<'_>) {
        match step {
            IngestStep::Begun { total_bytes } => self.begin(output::byte_bar(total_bytes, "parse")),
            IngestStep::Ended => self.end(),
            IngestStep::YearAssumed { log, year } => output::note(&format!(
                "`{}`: its time stamps have no year: its first event is taken to be of {year}, by the last change of the file; --year names another",
                log.display()
            )),
            IngestStep::ReadOn { log, offset } => output::note(&format!(
                "`{}`: continuing after byte {offset}",
                log.display()
            )),
            IngestStep::NothingNew => output::note("nothing new in the logs"),
            IngestStep::ReadAnew => {
                output::note("cannot resume the last log: reading all logs from scratch");
            }
        }
    }

    /// Shows a step of the preparations of a sweep's trials.
    pub(super) fn show_preparation(&self, step: PrepareStep<'_>) {
        match step {
            PrepareStep::TablesFound => output::note("tables: already joined"),
            PrepareStep::EventsFound => output::note("parse: already done"),
            PrepareStep::TrialsFound => output::note("trials: already done"),
            PrepareStep::Extended { kept, trials } => output::note(&format!(
                "trials: {kept} of {trials} have ended, and keep their results"
            )),
            PrepareStep::Replaced(reason) => {
                output::note(&format!("note: all trials run again: {reason}"));
            }
            PrepareStep::AlsoReading(log) => output::note(&rotated_note(log)),
            PrepareStep::FramesChosen(choice) => output::note(&choice.describe()),
            PrepareStep::SaltNote(note)
            | PrepareStep::LogNote(note)
            | PrepareStep::TableNote(note) => output::note(note),
            PrepareStep::Ingest(step) => self.show_ingest(step),
            PrepareStep::TensorsBegun { holds } => self.begin_tensors(holds),
            PrepareStep::Tensors { dir, progress } => {
                self.show_tensors(dir, progress, MIN_ANNOUNCED_BYTES);
            }
            PrepareStep::TensorsEnded => self.end(),
        }
    }

    /// Begins the bar of tensors, whose length is the number of holds.
    pub(super) fn begin_tensors(&self, holds: u64) {
        let bar = output::item_bar(0, "tensors");
        bar.set_length(holds);
        self.begin(bar);
    }

    /// Shows the progress of the tensors in `dir`. Their size is announced if it is at least
    /// `bytes_to_tell`.
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
