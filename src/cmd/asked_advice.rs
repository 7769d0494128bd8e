//! A model, logs and a queue → the advice on all held jobs, and what it rests on.

use std::path::Path;

use anyhow::Result;

use super::advice_sources::AdviceSources;
use super::logs::read_store;
use super::trained_run;
use poolcast_holds::advice::{
    self, AdviceBasis, AnswerTally, JobAdvice, JobQueue, JobSelection, LogWords, QueueAgreement,
};
use poolcast_holds::events::EventStore;
use poolcast_base::output;

/// How `advise` asks.
#[derive(Debug, Default)]
pub(super) struct AdviceQuestion<'a> {
    /// The year of the first event, where the log does not name it.
    pub(super) year: Option<i16>,
    /// The moment of asking, epoch ms; the end of the log if it is absent.
    pub(super) at_ms: Option<i64>,
    /// What decides who is held.
    pub(super) queue: Option<&'a JobQueue>,
    /// The jobs that were named, which have to be held.
    pub(super) selections: &'a [JobSelection],
}

/// The advice on all held jobs.
pub(super) struct AskedAdvice {
    /// What it rests on.
    pub(super) basis: AdviceBasis,
    /// The advice.
    pub(super) all: Vec<JobAdvice>,
    /// How far the log and the queue agree, if the queue was asked.
    pub(super) agreement: Option<QueueAgreement>,
    /// How answers given earlier turned out, if any was decided.
    pub(super) earlier: Option<AnswerTally>,
}

impl AskedAdvice {
    /// Reads the logs, and judges the jobs that are held.
    ///
    /// # Errors
    /// Fails where a log cannot be read, and for what cannot be asked.
    pub(super) fn of_sources(
        sources: &AdviceSources,
        question: &AdviceQuestion<'_>,
    ) -> Result<AskedAdvice> {
        let AdviceQuestion {
            year, at_ms, queue, ..
        } = *question;
        let config = &sources.config;
        let mut words = LogWords::until(at_ms);
        let store = read_store(&sources.logs, year, config, Some(&mut words))?;

        let model = sources
            .models
            .at_moment(at_ms.unwrap_or(store.summary.end_ms));
        let mut all = advice::advise(&store, model, &config.advice, queue, at_ms)?;
        words.add_to(&mut all);

        let origin = trained_run::model_origin(&sources.run, &sources.results);
        let basis = AdviceBasis::new(&store, model, origin, at_ms);
        let mut agreement = None;
        if let Some(queue) = queue {
            let ap = basis.access_points.first().map_or("", String::as_str);
            let (corrected, found) = queue.correct(all, ap, basis.asked_ms);
            (all, agreement) = (corrected, Some(found));
        }
        // Of another moment it is not known what was said before.
        let earlier = match at_ms {
            None => earlier_answers(&sources.results, &store),
            Some(_) => None,
        };
        advice::check_selections(&store, &all, question.selections, at_ms)?;
        Ok(AskedAdvice {
            basis,
            all,
            agreement,
            earlier,
        })
    }
    /// Keeps what was `said` beside the run. Where that cannot be, as in a run of somebody else, it is
    /// not.
    pub(super) fn record(&self, sources: &AdviceSources, said: &[&JobAdvice]) {
        if let Err(error) = advice::record_answers(&sources.results, said, self.basis.asked_ms) {
            output::note(&format!(
                "note: these answers are not kept for `--check`: {error:#}"
            ));
        }
    }
}

/// How the answers that are kept in `results` turned out by the end of `store`. A ledger that cannot
/// be read says nothing here: who adds to it says why.
pub(super) fn earlier_answers(results: &Path, store: &EventStore) -> Option<AnswerTally> {
    let given = advice::read_answers(results).ok()?;
    if given.is_empty() {
        return None;
    }
    advice::check_answers(&given, store).tally()
}
