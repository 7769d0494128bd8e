//! Adds the results of earlier probes to the advice on the jobs that they were about.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::answer_ledger::{GivenAnswer, HoldKey};
use super::job_advice::JobAdvice;
use super::job_command::JobId;
use super::probe_result::{ProbeResult, ProbeState};
use htcondor_eventlog::HELD;
use poolcast_base::shared_text::SharedText;
use poolcast_config::LabelKind;
use poolcast_events::{EventStore, StoredJob};
use poolcast_tensors::{ExclusionReason, HoldCycle, HoldOutcome, hold_cycles, next_run_outcome};

/// A probe: access point, cluster and proc of the job, and the prediction time of the answer.
type ProbeKey<'a> = (&'a str, i32, i32, i64);

/// Adds to `advice` what `store` shows of the probes that the last answers on the same holds in
/// `given` recommended, and gives them as reasons.
pub fn add_probe_results(advice: &mut [JobAdvice], given: &[GivenAnswer], store: &EventStore) {
    let mut recommended: HashMap<HoldKey, &GivenAnswer> = HashMap::new();
    for answer in given.iter().filter(|answer| !answer.probes.is_empty()) {
        recommended.insert(answer.hold(), answer);
    }
    if recommended.is_empty() {
        return;
    }

    let of_held: Vec<Option<&GivenAnswer>> = advice
        .iter()
        .map(|one| recommended.get(&hold_of(one)).copied())
        .collect();
    let results = probe_results(&of_held, store);
    let asked_ms = store.summary.end_ms;
    // The jobs of a cause share their results and the words for them.
    let mut shared: HashMap<_, SharedResults> = HashMap::new();
    for (one, answer) in advice.iter_mut().zip(of_held) {
        let Some(answer) = answer else {
            continue;
        };
        let key = (answer.ap.as_str(), &answer.probes[..], answer.asked_ms);
        let SharedResults { found, words } = shared.entry(key).or_insert_with(|| {
            let result = |job: &JobId| {
                let key = (answer.ap.as_str(), job.cluster, job.proc, answer.asked_ms);
                results.get(&key).copied()
            };
            let found: Arc<[ProbeResult]> = answer.probes.iter().filter_map(result).collect();
            let words = found.iter().map(|result| result.words(asked_ms).into());
            let words = words.collect();
            SharedResults { found, words }
        });
        if !found.is_empty() {
            one.forecast.probes = Arc::clone(found);
            one.verdict.reasons = words.iter().chain(&*one.verdict.reasons).cloned().collect();
        }
    }
}

/// The results of the probes of one cause.
struct SharedResults {
    found: Arc<[ProbeResult]>,
    words: Vec<SharedText>,
}

fn hold_of(advice: &JobAdvice) -> HoldKey {
    (
        advice.job.ap.as_str().to_owned(),
        advice.job.id.cluster,
        advice.job.id.proc,
        advice.job.submitted_ms,
        advice.hold.since_ms,
    )
}

/// Returns the results of the probes that `answers` recommended. A probe that was not released is
/// left out.
fn probe_results<'a>(
    answers: &[Option<&'a GivenAnswer>],
    store: &'a EventStore,
) -> BTreeMap<ProbeKey<'a>, ProbeResult> {
    let mut asked: HashMap<(&'a str, i32, i32), Vec<i64>> = HashMap::new();
    for answer in answers.iter().flatten() {
        for job in &answer.probes {
            let times_ms = asked
                .entry((&answer.ap, job.cluster, job.proc))
                .or_default();
            if !times_ms.contains(&answer.asked_ms) {
                times_ms.push(answer.asked_ms);
            }
        }
    }

    let mut results = BTreeMap::new();
    for job in store.jobs().iter() {
        let ap = store.summary.aps[job.ap as usize].as_str();
        let key = (ap, job.cluster, job.proc);
        let Some((&(ap, ..), times_ms)) = asked.get_key_value(&key) else {
            continue;
        };
        let cycles = hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap));
        for &asked_ms in times_ms {
            let is_before = |cycle: &&HoldCycle| job.history.time_ms[cycle.hold] <= asked_ms;
            let hold = cycles.iter().rfind(is_before);
            let result = hold.and_then(|hold| probe_result(&job, hold, store.summary.end_ms));
            if let Some(result) = result {
                results.insert((ap, job.cluster, job.proc, asked_ms), result);
            }
        }
    }
    results
}

/// Returns the outcome of the release that ended the hold of `cycle`, as known at `end_ms`; `None` if
/// there was none.
fn probe_result(job: &StoredJob<'_>, cycle: &HoldCycle, end_ms: i64) -> Option<ProbeResult> {
    let history = &job.history;
    let release = cycle.end.filter(|_| cycle.is_released(history))?;
    let has_passed = || {
        let run = next_run_outcome(history, cycle);
        run.is_some_and(|run| run.is_success() && run.decided_ms() <= end_ms)
    };
    let state = match cycle.outcome {
        HoldOutcome::Label(true) => ProbeState::Succeeded,
        HoldOutcome::Label(false) if history.number[cycle.decided] == HELD => ProbeState::HeldAgain,
        HoldOutcome::Label(false) => ProbeState::Failed,
        HoldOutcome::LeftOut(ExclusionReason::RemovedAfterRelease) => ProbeState::Removed,
        HoldOutcome::LeftOut(_) if has_passed() => ProbeState::Passed,
        HoldOutcome::LeftOut(_) => ProbeState::Open,
    };
    Some(ProbeResult {
        job: JobId {
            cluster: job.cluster,
            proc: job.proc,
        },
        released_ms: history.time_ms[release],
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{ABORTED, EXECUTE, RELEASED, SUBMIT, TERMINATED};
    use poolcast_holds::decision::HoldAction;
    use test_stores::TestLog;

    /// Returns the advice on a job that is held for the same file as a probe, after the end of the
    /// probe: `then` has its events after its hold at second 100. The answer was given at `asked_s`.
    fn advised(then: &[(i64, u16)], asked_s: i64) -> JobAdvice {
        let mut log = TestLog::default();
        let mut events = vec![(91, SUBMIT, 0), (98, EXECUTE, 0), (100, HELD, 7)];
        events.extend(then.iter().map(|&(s, number)| (s, number, 7)));
        let probe = log.add(&events);
        let other = log.add_held(7, 90);
        log.add_held(9, 4_000);
        let given = GivenAnswer {
            asked_ms: 1000 * asked_s,
            probes: vec![JobId {
                cluster: probe,
                proc: 0,
            }],
            ..GivenAnswer::of_test_job(other, 90, HoldAction::Probe)
        };
        let mut advice = [JobAdvice::of_test_job().with(|one| {
            one.job.id.cluster = other;
            one.job.id.proc = 0;
            one.job.submitted_ms = given.submitted_ms;
            one.hold.since_ms = given.held_ms;
        })];
        add_probe_results(&mut advice, &[given], &log.store());
        let [advice] = advice;
        advice
    }

    #[test]
    fn result_of_a_probe_is_a_reason() {
        let said = |then: &[(i64, u16)]| {
            let advice = advised(then, 120);
            let reasons = advice.verdict.reasons.iter();
            let reasons: Vec<&str> = reasons.map(SharedText::as_str).collect();
            assert_eq!(reasons.last(), Some(&"so"), "the other reasons stay");
            let probes = advice.forecast.probes.iter();
            let states: Vec<ProbeState> = probes.map(|probe| probe.state).collect();
            (states, reasons[0].to_owned())
        };
        let started = [(200, RELEASED), (201, EXECUTE)];
        let ended = |number| [&started[..], &[(209, number)]].concat();
        let case = |then: &[(i64, u16)], state, words: &str| {
            assert_eq!(
                said(then),
                (vec![state], format!("the probe 1.0 of 00:03 {words}"))
            );
        };
        case(&ended(TERMINATED), ProbeState::Succeeded, "ended well");
        case(&ended(HELD), ProbeState::HeldAgain, "was held again");
        case(&ended(ABORTED), ProbeState::Removed, "was removed");
        case(&started[..1], ProbeState::Open, "has not ended yet");
        // It ran for 2 s before its hold, and now for more than an hour.
        case(
            &started,
            ProbeState::Passed,
            "got past the fault and still runs",
        );
        assert_eq!(said(&[]).0, [], "it was not released");
    }

    #[test]
    fn hold_that_was_asked_about_counts() {
        let again = [
            (200, RELEASED),
            (203, HELD),
            (300, RELEASED),
            (309, TERMINATED),
        ];
        let state = |asked_s| advised(&again, asked_s).forecast.probes[0].state;
        assert_eq!(state(120), ProbeState::HeldAgain);
        assert_eq!(state(250), ProbeState::Succeeded);
    }

    #[test]
    fn results_of_another_hold_are_not_added() {
        let mut log = TestLog::default();
        log.add_released(7, 100, 200, true);
        let other = log.add_held(7, 150);
        let given = GivenAnswer {
            probes: vec![JobId {
                cluster: 1,
                proc: 0,
            }],
            ..GivenAnswer::of_test_job(other, 120, HoldAction::Probe)
        };
        let mut advice = [JobAdvice::of_test_job().with(|one| {
            one.job.id.cluster = other;
            one.job.id.proc = 0;
            one.hold.since_ms = 150_000;
            one.job.submitted_ms = given.submitted_ms;
        })];
        add_probe_results(&mut advice, &[given], &log.store());
        assert_eq!(advice[0].forecast.probes.len(), 0);
    }
}
