//! Shows people the progress of a command over all its stages: one bar on a terminal, elsewhere a line a minute.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use indicatif::{DecimalBytes, ProgressBar};

use super::time_left::{StageWork, time_left, time_words};
use poolcast_base::output;
use poolcast_events::{IngestListener, IngestStep};
use poolcast_sweep::{PrepareListener, PrepareStep};
use poolcast_tensors::BuildProgress;

/// Size in bytes from which the tensors of a sweep are announced. Smaller ones are made silently.
const MIN_ANNOUNCED_BYTES: u64 = 1_000_000_000;

/// Seconds that a byte of a log takes to be read and stored.
const READ_S_PER_BYTE: f64 = 2.5e-9;
/// Seconds that a byte of a log takes to be read again for the words on the page.
const PAGE_S_PER_BYTE: f64 = 1.5e-9;

/// Characters of the bar.
const BAR_WIDTH: usize = 20;

/// The note that a log is read although the user did not name it.
pub(super) fn rotated_note(log: &Path) -> String {
    format!("also reading the rotated generation `{}`", log.display())
}

/// A stage of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Reads and stores the logs, in bytes.
    Read,
    /// Makes tensors, in holds.
    Tensors,
    /// Runs the trials of a sweep.
    Trials,
    /// Scores the best model.
    Scores,
    /// Rehearses and learns the answers.
    Answers,
    /// Writes the page about the held jobs.
    Page,
}

/// The state of one stage.
#[derive(Debug)]
struct StageState {
    stage: Stage,
    expected_s: Option<f64>,
    /// Units of work in all, done so far, and done by earlier calls.
    total: u64,
    done: u64,
    found: u64,
    began: Option<Instant>,
    /// The time from its beginning to the last unit, in seconds.
    counted_s: f64,
    /// The time that it took, in seconds, once it is over.
    took_s: Option<f64>,
    facts: String,
}

impl StageState {
    fn new(stage: Stage) -> StageState {
        StageState {
            stage,
            expected_s: None,
            total: 0,
            done: 0,
            found: 0,
            began: None,
            counted_s: 0.0,
            took_s: None,
            facts: String::new(),
        }
    }

    fn work(&self) -> StageWork {
        let todo = self.total.saturating_sub(self.found) as f64;
        let done = self.done.saturating_sub(self.found) as f64;
        let left = if self.total > 0 {
            todo / self.total as f64
        } else {
            1.0
        };
        StageWork {
            expected_s: self.expected_s.map(|seconds| seconds * left),
            done: match self.took_s {
                Some(_) => 1.0,
                None if todo > 0.0 => (done / todo).min(1.0),
                None => 0.0,
            },
            spent_s: self.took_s.unwrap_or(self.counted_s),
            since_s: match self.took_s {
                Some(_) => 0.0,
                None => self.elapsed_s() - self.counted_s,
            },
        }
    }

    fn elapsed_s(&self) -> f64 {
        self.began
            .map_or(0.0, |began| began.elapsed().as_secs_f64())
    }

    /// Sets what is done.
    fn count(&mut self, done: u64) {
        if done != self.done {
            self.done = done;
            self.counted_s = self.elapsed_s();
        }
    }

    /// What the stage does now.
    fn text(&self) -> String {
        let facts = self.facts.clone();
        match self.stage {
            Stage::Read if self.total == 0 => {
                format!("reading logs, {}", DecimalBytes(self.done))
            }
            Stage::Read => format!(
                "reading logs, {} of {}",
                DecimalBytes(self.done),
                DecimalBytes(self.total)
            ),
            Stage::Tensors => format!(
                "making samples of {} of {}",
                output::with_commas(self.done),
                output::counted(self.total as usize, "hold")
            ),
            Stage::Trials | Stage::Answers => facts,
            Stage::Scores => "scoring the best model".to_owned(),
            Stage::Page => "writing the page".to_owned(),
        }
    }
}

/// The progress of a command over its stages.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    stages: Arc<Mutex<Vec<StageState>>>,
    bar: ProgressBar,
}

impl Progress {
    /// Creates the progress of a command with these stages, in their order. Nothing is drawn until one begins.
    pub(super) fn new(stages: &[Stage]) -> Progress {
        let stages = stages.iter().copied().map(StageState::new).collect();
        let stages: Arc<Mutex<Vec<StageState>>> = Arc::new(Mutex::new(stages));
        let shown = Arc::clone(&stages);
        Progress {
            stages,
            bar: output::line_bar(move || bar_line(&lock(&shown))),
        }
    }

    /// Shows the progress while `work` lasts.
    pub(super) fn show<T>(&self, work: impl FnOnce() -> T) -> T {
        let stages = Arc::clone(&self.stages);
        let done = output::with_progress_notes(move || line(&lock(&stages)), work);
        self.finish();
        done
    }

    /// Removes the bar, before results are printed.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Sets the time that `stage` is expected to take, in seconds on the machine on which costs were measured.
    pub(super) fn expect(&self, stage: Stage, seconds: f64) {
        self.change(stage, |state| state.expected_s = Some(seconds));
    }

    /// Begins `stage`, which ends those before it. Its work has `total` units; earlier calls did `found` of them.
    /// A stage that the command does not list is part of the current one.
    pub(super) fn begin(&self, stage: Stage, total: u64, found: u64) {
        let mut stages = lock(&self.stages);
        let Some(place) = stages.iter().position(|state| state.stage == stage) else {
            return;
        };
        for earlier in &mut stages[..place] {
            end(earlier);
        }
        let state = &mut stages[place];
        state.began.get_or_insert_with(Instant::now);
        state.took_s = None;
        (state.total, state.done, state.found) = (total, found, found);
        drop(stages);
        self.bar.enable_steady_tick(output::DRAW_INTERVAL);
    }

    /// Adds `units` to what is done of `stage`.
    pub(super) fn advance(&self, stage: Stage, units: u64) {
        self.change(stage, |state| state.count(state.done + units));
    }

    /// Sets what is done of `stage`, and what it does now.
    pub(super) fn set(&self, stage: Stage, done: u64, facts: String) {
        self.change(stage, |state| {
            state.count(done);
            state.facts = facts;
        });
    }

    /// Sets what `stage` does now.
    pub(super) fn say(&self, stage: Stage, facts: String) {
        self.change(stage, |state| state.facts = facts);
    }

    fn change(&self, stage: Stage, change: impl FnOnce(&mut StageState)) {
        let mut stages = lock(&self.stages);
        if let Some(state) = stages.iter_mut().find(|state| state.stage == stage) {
            change(state);
        }
    }

    /// A listener that counts the bytes read, and passes all other steps to `on_step`.
    pub(super) fn ingest_listener<'a>(
        &self,
        on_step: &'a (dyn Fn(IngestStep<'_>) + Sync),
    ) -> IngestListener<'a> {
        IngestListener {
            on_bytes: self.on_bytes(),
            on_step,
        }
    }

    /// Like [`Progress::ingest_listener`], but for all preparations of a sweep's trials.
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
        let progress = self.clone();
        Arc::new(move |bytes| progress.advance(Stage::Read, bytes))
    }

    /// Shows a step of reading logs.
    pub(super) fn show_ingest(&self, step: IngestStep<'_>) {
        match step {
            IngestStep::Begun { total_bytes } => {
                self.begin(Stage::Read, total_bytes, 0);
                self.expect(Stage::Read, total_bytes as f64 * READ_S_PER_BYTE);
                self.expect(Stage::Page, total_bytes as f64 * PAGE_S_PER_BYTE);
            }
            IngestStep::Ended => self.end_if_last(Stage::Read),
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
            PrepareStep::TensorsEnded => self.end_if_last(Stage::Tensors),
        }
    }

    /// Begins to make tensors of `holds` holds.
    pub(super) fn begin_tensors(&self, holds: u64) {
        self.begin(Stage::Tensors, holds, 0);
        let holds = output::counted(holds as usize, "hold");
        self.say(Stage::Trials, format!("making samples of {holds}"));
    }

    /// Shows the progress of the tensors in `dir`. Their size is announced if it is at least
    /// `bytes_to_tell`.
    pub(super) fn show_tensors(&self, dir: &Path, progress: BuildProgress, bytes_to_tell: u64) {
        match progress {
            BuildProgress::Planned { bytes } if bytes >= bytes_to_tell => {
                let size = DecimalBytes(bytes);
                output::note(&format!("writing {size} to `{}`", dir.display()));
            }
            BuildProgress::Planned { .. } => {}
            BuildProgress::Made { samples } => self.advance(Stage::Tensors, samples),
        }
    }

    /// Removes the bar if `stage` is the last one: what follows it in the command is fast.
    fn end_if_last(&self, stage: Stage) {
        let mut stages = lock(&self.stages);
        if let Some(last) = stages.last_mut().filter(|last| last.stage == stage) {
            end(last);
            drop(stages);
            self.finish();
        }
    }
}

/// Ends a stage. One that never began was not needed, so its expected time says nothing.
fn end(state: &mut StageState) {
    if state.began.is_none() {
        state.expected_s = None;
    }
    let took_s = state.elapsed_s();
    state.took_s.get_or_insert(took_s);
}

fn lock(stages: &Mutex<Vec<StageState>>) -> MutexGuard<'_, Vec<StageState>> {
    stages.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The current stage, the time left, and what the stage does, on one line.
fn line(stages: &[StageState]) -> String {
    let is_current = |state: &StageState| state.began.is_some() && state.took_s.is_none();
    let Some(current) = stages.iter().position(is_current) else {
        return "starting".to_owned();
    };

    let works: Vec<StageWork> = stages.iter().map(StageState::work).collect();
    let mut words = Vec::new();
    if stages.len() > 1 {
        words.push(format!("stage {} of {}", current + 1, stages.len()));
    }
    let left = time_left(&works).map(time_words);
    let left_here = || time_left(&works[current..=current]).map(time_words);
    words.extend(left.or_else(|| Some(left_here()? + " in it")));
    words.push(stages[current].text());
    words.join(", ")
}

/// The line of a terminal: a bar over the time of all stages, or of the current one where others are unknown.
fn bar_line(stages: &[StageState]) -> String {
    let works: Vec<StageWork> = stages.iter().map(StageState::work).collect();
    let spent_s: f64 = works.iter().map(|work| work.spent_s + work.since_s).sum();
    let share = match time_left(&works) {
        Some((low_s, high_s)) => spent_s / (spent_s + (low_s * high_s).sqrt()).max(1e-9),
        None => works
            .iter()
            .map(|work| work.done)
            .find(|done| *done < 1.0)
            .unwrap_or(0.0),
    };
    let full = (share * BAR_WIDTH as f64) as usize;
    let bar = format!("[{:<BAR_WIDTH$}] ", "=".repeat(full.min(BAR_WIDTH)));
    let room = output::page_width().saturating_sub(BAR_WIDTH + 4);
    bar + &output::cut(&line(stages), room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_counts_stages_and_leaves_out_a_time_that_is_unknown() {
        let progress = Progress::new(&[Stage::Read, Stage::Answers, Stage::Page]);
        let text = || line(&lock(&progress.stages));
        assert_eq!(text(), "starting");
        progress.begin(Stage::Read, 2_000_000, 0);
        assert_eq!(text(), "stage 1 of 3, reading logs, 0 B of 2.00 MB");

        // A stage that is not listed is part of the current one.
        progress.begin(Stage::Tensors, 5, 0);
        progress.begin(Stage::Answers, 10, 4);
        progress.set(Stage::Answers, 4, "2 of 5 models".to_owned());
        assert_eq!(text(), "stage 2 of 3, 2 of 5 models");
        progress.expect(Stage::Answers, 1000.0);
        progress.expect(Stage::Page, 0.0);
        assert_eq!(
            text(),
            "stage 2 of 3, 6 min 0 s to 16 min 0 s left, 2 of 5 models"
        );
    }

    #[test]
    fn stages_that_were_not_needed_say_nothing_about_the_speed() {
        let progress = Progress::new(&[Stage::Trials, Stage::Answers]);
        progress.expect(Stage::Trials, 1000.0);
        progress.begin(Stage::Answers, 1, 0);
        let skipped = lock(&progress.stages)[0].work();
        assert_eq!((skipped.expected_s, skipped.done), (None, 1.0));
    }
}
