//! Computes the advice on all held jobs from a model, logs and a queue.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::advice_sources::{AdviceSources, LearnedRun};
use super::default_schedd::{default_schedd, name_other_schedds};
use super::logs::ReadLogs;
use poolcast_advice::{
    self, AdviceBasis, AdviceModel, AnswerTally, CheckedAnswers, EndedJob, GivenAnswer, JobAdvice,
    JobId, JobQueue, JobSelection, LogWords, ModelObjection, ModelOrigin, PublishedOrigin,
    QueueAgreement, RestartLoop, add_memory_plans, add_probe_results, advise, answers_of_log,
    apply_reason_rules, check_selections, lower_broken_promises, read_answers, record_answers,
    restart_loops,
};
use poolcast_base::error::hinted;
use poolcast_base::output;
use poolcast_events::EventStore;
use poolcast_holds::answers::LearnedAnswers;
use poolcast_holds::config::AdviceConfig;
use poolcast_sweep::config::Config;
use poolcast_sweep::find_members;

/// A query to `advise`.
#[derive(Debug, Default)]
pub(super) struct AdviceQuery<'a> {
    /// Year of the first event, for logs without years.
    pub(super) year: Option<i16>,
    /// Prediction time that the user named, epoch ms.
    pub(super) at_ms: Option<i64>,
    /// Current time, epoch ms.
    pub(super) now_ms: i64,
    /// The queue, which decides which jobs are held.
    pub(super) queue: Option<JobQueue>,
    /// True if the queue was asked now, and is not from a file.
    pub(super) is_queue_of_now: bool,
    /// True if the queue was asked for the jobs of this user alone.
    pub(super) is_of_this_user: bool,
    /// The jobs that the user named. Each of them must be held.
    pub(super) selections: &'a [JobSelection],
}

impl AdviceQuery<'_> {
    /// Returns the time until which logs that end at `log_end_ms` are complete, epoch ms. Nothing has happened
    /// since the last event if the queue was asked now, or if the logs are those that are written here. Logs of
    /// a user's own jobs often end before a published model has learned, and a model must not judge what it has
    /// learned from.
    fn known_ms(
        &self,
        log_end_ms: i64,
        is_written_here: bool,
        learned: Option<&LearnedRun>,
    ) -> i64 {
        let is_of_now = self.is_queue_of_now || is_written_here && self.queue.is_none();
        let now_ms = is_of_now.then_some(self.now_ms);
        let published = learned.filter(|learned| learned.published.is_some());
        let model_ms = published.and_then(LearnedRun::known_ms);
        let later = [now_ms, model_ms].into_iter().flatten();
        later.fold(log_end_ms, i64::max)
    }
}

/// The advice on all held jobs.
pub(super) struct ComputedAdvice {
    /// The data and the model behind the advice.
    pub(super) basis: AdviceBasis,
    /// One entry per held job.
    pub(super) all: Vec<JobAdvice>,
    /// The jobs among the selected ones that have ended.
    pub(super) ended: Vec<EndedJob>,
    /// The jobs that start and are put back again.
    pub(super) loops: Vec<RestartLoop>,
    /// Agreement between the log and the queue, if the queue was queried.
    pub(super) agreement: Option<QueueAgreement>,
    /// Results of earlier answers, if the outcome of any is decided.
    pub(super) earlier: Option<AnswerTally>,
    /// What to say if no job of this user is held, where the queue was asked for these alone and
    /// others have held jobs.
    pub(super) none_of_own: Option<String>,
}

impl ComputedAdvice {
    /// Reads the logs and judges the held jobs. Without logs, those in the queue are judged by rule.
    ///
    /// # Errors
    /// Fails if a log cannot be read, if there is neither a log nor a queue, or if a selected job
    /// cannot be judged.
    pub(super) fn from_sources(
        sources: &AdviceSources,
        question: AdviceQuery<'_>,
    ) -> Result<ComputedAdvice> {
        let (at_ms, is_queue_of_now) = (question.at_ms, question.is_queue_of_now);
        // Only the queue knows which jobs of the log of all users are of this one.
        let is_unknown_whose = sources.has_event_log && question.queue.is_none() && at_ms.is_none();
        if sources.has_no_events() || is_unknown_whose {
            return ComputedAdvice::from_queue(sources, question);
        }
        let has_jobs_of_others = sources.has_event_log && question.is_of_this_user;
        let mut words = LogWords::until(at_ms);
        let ReadLogs {
            mut store,
            is_written_here,
            utc_offset_ms,
        } = sources.read_store(question.year, at_ms, Some(&mut words))?;
        let log_end_ms = store.summary.end_ms;

        let learned = sources.learned.as_ref();
        let known_ms = || question.known_ms(log_end_ms, is_written_here, learned);
        store.summary.end_ms = at_ms.unwrap_or_else(known_ms);
        let settings = &sources.config.advice;
        let (mut all, mut basis) = judge_by_models(sources, learned, &store, &question)?;
        for one in &mut all {
            one.set_utc_offset(utc_offset_ms);
        }
        words.add_to(&mut all);
        basis.log_end_ms = Some(log_end_ms);

        // The ledger has answers for the end of the log only, so it says nothing about another
        // time.
        let of_end = learned.filter(|_| at_ms.is_none());
        let earlier = of_end.and_then(|learned| {
            apply_earlier_answers(learned, &store, settings, &mut all, &mut basis)
        });

        let (mut all, agreement) =
            corrected_by_queue(all, question.queue, &basis, has_jobs_of_others);

        apply_reason_rules(&mut all);
        add_memory_plans(&store, &mut all);
        if !is_queue_of_now {
            name_other_schedds(&mut all);
        }
        let ended = check_selections(&store, &all, question.selections, at_ms)?;
        let mut loops = Vec::new();
        if !has_jobs_of_others {
            loops = loops_beside(&all, &store, basis.asked_ms, is_queue_of_now, &words);
        }

        Ok(ComputedAdvice {
            basis,
            all,
            ended,
            loops,
            agreement,
            earlier,
            none_of_own: None,
        })
    }

    /// Judges the held jobs in the queue by rule, because no log of theirs is here.
    fn from_queue(sources: &AdviceSources, question: AdviceQuery<'_>) -> Result<ComputedAdvice> {
        let AdviceQuery {
            queue,
            selections,
            now_ms,
            is_queue_of_now,
            ..
        } = question;
        let queue = queue.context(hinted(
            "there is nothing to advise on: no log is named, there is no run here, and no queue answers",
            "name the logs of your jobs: poolcast advise *.log; or the queue: --queue FILE",
        ))?;
        let (mut all, agreement) = queue.correct(Vec::new(), "", now_ms);
        apply_reason_rules(&mut all);
        if !is_queue_of_now {
            name_other_schedds(&mut all);
        }
        for selection in selections {
            ensure!(
                all.iter()
                    .any(|one| selection.has(one.job.id.cluster, one.job.id.proc)),
                hinted(
                    format!("{selection} is not held in the queue"),
                    "name the log of the job, which shows what happened to it: poolcast advise JOB job.log"
                )
            );
        }
        let unused_model = sources.learned.as_ref().and_then(published_origin);
        Ok(ComputedAdvice {
            basis: AdviceBasis {
                unused_model,
                ..AdviceBasis::without_log(now_ms)
            },
            all,
            ended: Vec::new(),
            loops: Vec::new(),
            agreement: Some(agreement),
            earlier: None,
            none_of_own: None,
        })
    }

    /// Records the answers in `said`, given at `now_ms`, next to the run, if there is one. A failure, as
    /// in the run of another user, only causes a note.
    pub(super) fn record(&self, sources: &AdviceSources, said: &[&JobAdvice], now_ms: i64) {
        let ledger = (sources.learned.as_ref()).and_then(LearnedRun::ledger_dir);
        let Some(dir) = ledger else {
            return;
        };
        let recorded = fs_err::create_dir_all(&dir)
            .map_err(anyhow::Error::from)
            .and_then(|()| record_answers(&dir, said, self.basis.asked_ms, now_ms));
        if let Err(error) = recorded {
            output::note(&format!(
                "note: these answers are not saved for `--check`: {error:#}"
            ));
        }
    }
}

/// Corrects the advice `all` by the `queue`, if there is one.
fn corrected_by_queue(
    all: Vec<JobAdvice>,
    queue: Option<JobQueue>,
    basis: &AdviceBasis,
    has_jobs_of_others: bool,
) -> (Vec<JobAdvice>, Option<QueueAgreement>) {
    let Some(queue) = queue else {
        return (all, None);
    };
    let ap = basis.access_points.first().map_or("", String::as_str);
    let (corrected, mut found) = queue.correct(all, ap, basis.asked_ms);
    // The queue was asked for the jobs of one user alone.
    if has_jobs_of_others {
        found.not_in_queue = 0;
    }
    (corrected, Some(found))
}

/// Finds the jobs in `store` that start and are put back again. Of the held jobs, the advice in `all` speaks.
fn loops_beside(
    all: &[JobAdvice],
    store: &EventStore,
    asked_ms: i64,
    is_queue_of_now: bool,
    words: &LogWords,
) -> Vec<RestartLoop> {
    // The queue may know of a hold that is not in the log.
    let held: HashSet<JobId> = all.iter().map(|one| one.job.id).collect();
    let mut loops = restart_loops(store, asked_ms, |job| !held.contains(&job));
    if !loops.is_empty() && !is_queue_of_now {
        default_schedd().name_others_of_loops(&mut loops);
    }
    words.add_to_loops(&mut loops);
    loops
}

/// Judges the jobs that `store` shows as held, by what was `learned`, or else, and also if that is out of date,
/// by what the store itself shows. Returns the advice and its basis.
fn judge_by_models(
    sources: &AdviceSources,
    learned: Option<&LearnedRun>,
    store: &EventStore,
    question: &AdviceQuery<'_>,
) -> Result<(Vec<JobAdvice>, AdviceBasis)> {
    let config = &sources.config;
    let of_run = learned.and_then(|learned| learned.answers.model());
    let objection = of_run.and_then(|model| model.objection(store));
    let of_run = of_run.filter(|_| objection.is_none());

    let of_store = match of_run {
        Some(_) => None,
        None => learned_from_log(sources, learned, store, question)?,
    };
    let no_origin = ModelOrigin::default();
    let model = of_run.or_else(|| {
        Some(AdviceModel {
            answers: of_store.as_ref()?,
            origin: &no_origin,
        })
    });
    let queue = question.queue.as_ref();
    let all = advise(store, model, &config.advice, queue)?;

    let mut basis = AdviceBasis::new(store, model);
    basis.published_model = of_run.and(learned).and_then(published_origin);
    if let Some(ModelObjection::Caveat(words)) = objection {
        basis.caveats.push(words);
    }
    Ok((all, basis))
}

/// Returns what the log itself teaches. If what was `learned` is out of date, that is kept for the
/// next calls.
fn learned_from_log(
    sources: &AdviceSources,
    learned: Option<&LearnedRun>,
    store: &EventStore,
    question: &AdviceQuery<'_>,
) -> Result<Option<LearnedAnswers>> {
    let Config { seed, .. } = &sources.config;
    let advice = &find_members(&sources.config)?;
    let asked_ms = store.summary.end_ms;
    let dir = learned.and_then(LearnedRun::ledger_dir);
    match (dir, sources.kept_logs()) {
        (Some(dir), Some(logs)) if question.at_ms.is_none() => {
            answers_of_log(&dir, logs, store, asked_ms, advice, *seed)
        }
        _ => LearnedAnswers::without_run(store, asked_ms, advice, *seed),
    }
}

fn published_origin(learned: &LearnedRun) -> Option<PublishedOrigin> {
    let published = learned.published.as_ref()?;
    Some(PublishedOrigin {
        path: learned.results.display().to_string(),
        is_of_site: published.is_of_site,
        learned_ms: learned.known_ms()?,
    })
}

/// The results of the answers recorded in `results`, judged at the end of `store`.
pub(super) fn earlier_answers(results: &Path, store: &EventStore) -> Option<AnswerTally> {
    let given = given_answers(results);
    CheckedAnswers::new(&given, store).check().total
}

/// Applies the results of the earlier answers of `learned` to the advice in `all`: broken promises make
/// it less certain, and it gets the results of probes. Returns the results of all earlier answers, if
/// the outcome of any is decided.
fn apply_earlier_answers(
    learned: &LearnedRun,
    store: &EventStore,
    settings: &AdviceConfig,
    all: &mut [JobAdvice],
    basis: &mut AdviceBasis,
) -> Option<AnswerTally> {
    let dir = learned.ledger_dir();
    let given = dir.map_or_else(Vec::new, |dir| given_answers(&dir));
    let checked = CheckedAnswers::new(&given, store);

    let known_ms = learned.known_ms().or(basis.trained_until_ms);
    let learned_ms = known_ms.unwrap_or(i64::MIN);
    let of_model = checked.check_since(learned_ms);
    let broken = lower_broken_promises(all, &of_model, settings);
    basis.caveats.extend(broken);
    add_probe_results(all, &given, store);
    checked.check().total
}

/// The answers recorded in `results`. An unreadable ledger counts as empty here; recording further
/// answers reports the error.
fn given_answers(results: &Path) -> Vec<GivenAnswer> {
    read_answers(results).unwrap_or_default()
}
