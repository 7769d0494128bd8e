//! Computes the advice on all held jobs from a model, logs and a queue.

use std::path::Path;

use anyhow::Result;

use super::advice_sources::AdviceSources;
use super::logs::read_store;
use super::trained_run;
use poolcast_base::output;
use poolcast_holds::advice::{
    self, AdviceBasis, AdviceModels, AnswerTally, CheckedAnswers, GivenAnswer, JobAdvice, JobQueue,
    JobSelection, LogWords, QueueAgreement,
};
use poolcast_holds::events::EventStore;

/// A query to `advise`.
#[derive(Debug, Default)]
pub(super) struct AdviceQuery<'a> {
    /// Year of the first event, for logs without years.
    pub(super) year: Option<i16>,
    /// Prediction time, epoch ms; the end of the log if `None`.
    pub(super) at_ms: Option<i64>,
    /// The queue, which decides which jobs are held.
    pub(super) queue: Option<JobQueue>,
    /// The jobs that the user named. Each of them must be held.
    pub(super) selections: &'a [JobSelection],
}

/// The advice on all held jobs.
pub(super) struct ComputedAdvice {
    /// The data and the model behind the advice.
    pub(super) basis: AdviceBasis,
    /// One entry per held job.
    pub(super) all: Vec<JobAdvice>,
    /// Agreement between the log and the queue, if the queue was queried.
    pub(super) agreement: Option<QueueAgreement>,
    /// Results of earlier answers, if the outcome of any is decided.
    pub(super) earlier: Option<AnswerTally>,
}

impl ComputedAdvice {
    /// Reads the logs and judges the held jobs.
    ///
    /// # Errors
    /// Fails if a log cannot be read, or if a selected job cannot be judged.
    pub(super) fn from_sources(
        sources: &AdviceSources,
        question: AdviceQuery<'_>,
    ) -> Result<ComputedAdvice> {
        let AdviceQuery {
            year,
            at_ms,
            queue,
            selections,
        } = question;
        let config = &sources.config;
        let mut words = LogWords::until(at_ms);
        let store = read_store(&sources.logs, year, config, Some(&mut words))?;

        let model = sources
            .models
            .at_moment(at_ms.unwrap_or(store.summary.end_ms));
        let origin = trained_run::model_origin(&sources.run, &sources.results);
        let mut all = advice::advise(
            &store,
            AdviceModels {
                trained: model,
                answers: sources.answers.as_ref(),
                origin: &origin,
            },
            &config.advice,
            queue.as_ref(),
            at_ms,
        )?;
        words.add_to(&mut all);

        let mut basis = AdviceBasis::new(&store, model, origin, at_ms);
        let mut earlier = None;
        // The ledger has answers for the end of the log only, so it says nothing about another
        // time.
        if at_ms.is_none() {
            let given = given_answers(&sources.results);
            let checked = CheckedAnswers::new(&given, &store);
            earlier = checked.check().total;
            let learned_ms = sources.answers.as_ref().map(|answers| answers.known_ms);
            let of_model = checked.check_since(learned_ms.unwrap_or(basis.trained_until_ms));
            let broken = advice::lower_broken_promises(&mut all, &of_model, &config.advice);
            basis.caveats.extend(broken);
            advice::add_probe_results(&mut all, &given, &store);
        }
        let mut agreement = None;
        if let Some(queue) = queue {
            let ap = basis.access_points.first().map_or("", String::as_str);
            let (corrected, found) = queue.correct(all, ap, basis.asked_ms);
            (all, agreement) = (corrected, Some(found));
        }
        advice::check_selections(&store, &all, selections, at_ms)?;
        Ok(ComputedAdvice {
            basis,
            all,
            agreement,
            earlier,
        })
    }

    /// Records the answers in `said` next to the run. A failure, as in the run of another user,
    /// only causes a note.
    pub(super) fn record(&self, sources: &AdviceSources, said: &[&JobAdvice]) {
        if let Err(error) = advice::record_answers(&sources.results, said, self.basis.asked_ms) {
            output::note(&format!(
                "note: these answers are not saved for `--check`: {error:#}"
            ));
        }
    }
}

/// The results of the answers recorded in `results`, judged at the end of `store`.
pub(super) fn earlier_answers(results: &Path, store: &EventStore) -> Option<AnswerTally> {
    let given = given_answers(results);
    CheckedAnswers::new(&given, store).check().total
}

/// The answers recorded in `results`. An unreadable ledger counts as empty here; recording further
/// answers reports the error.
fn given_answers(results: &Path) -> Vec<GivenAnswer> {
    advice::read_answers(results).unwrap_or_default()
}
