//! `advise --watch`: asks again and again, and finds out when an answer has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::signals::{EXIT_INTERRUPTED, stop_signal};
use super::text::advice::AdviceView;
use poolcast_advice::{JobAdvice, ProbeResult, ProbeState, cause_name};
use poolcast_base::error::{self, EXIT_DONE};
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_holds::decision::{AnswerFirmness, HoldAction};

/// Interval between checks for a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Escape codes that clear the line of the cursor.
const CLEAR_LINE: &str = "\r\x1b[K";

/// A job in one of its holds: access point, cluster, proc, and hold time.
type WatchedHold = (String, i32, i32, i64);

/// The settings of a watch.
pub(super) struct AdviceWatch<'a> {
    /// Seconds between two questions.
    pub(super) interval_s: u32,
    /// True if a line shows the state between pages.
    pub(super) has_status: bool,
    /// Returns the current time, epoch ms.
    pub(super) now_ms: &'a dyn Fn() -> i64,
}

/// The progress of a watch: the answers that a user has seen.
pub(super) struct WatchProgress<'a> {
    now_ms: &'a dyn Fn() -> i64,
    seen: Option<SeenAnswers>,
}

/// The answers at one time, for the comparison with the last ones.
#[derive(Debug, Clone, PartialEq)]
struct SeenAnswers {
    /// The answers by hold.
    answers: BTreeMap<WatchedHold, SeenAnswer>,
    /// Probes with an outcome.
    probes: BTreeSet<ProbeResult>,
    /// Time at which the answers expire, epoch ms.
    good_until_ms: Option<i64>,
    asked_ms: i64,
}

/// The answer about one job.
#[derive(Debug, Clone, PartialEq)]
struct SeenAnswer {
    action: HoldAction,
    firmness: Option<AnswerFirmness>,
    /// True if the job is a probe that is to be released now.
    is_probe: bool,
    /// Name of the cause and the answer.
    cause: String,
}

impl AdviceWatch<'_> {
    /// Calls `ask` at every interval until no job is held, or until a signal. `ask` shows the
    /// advice if [`WatchProgress::news`] has some for it. Returns the exit code.
    ///
    /// # Errors
    /// Fails if the first question does, or if the output is closed. A later failure is printed, and
    /// the question is repeated.
    pub(super) fn run(
        self,
        mut ask: impl FnMut(&mut WatchProgress<'_>) -> Result<()>,
    ) -> Result<u8> {
        let stop = stop_signal()?;
        let mut progress = WatchProgress {
            now_ms: self.now_ms,
            seen: None,
        };
        let mut last_failure = String::new();
        loop {
            if let Err(failure) = ask(&mut progress) {
                if progress.seen.is_none() || error::is_broken_pipe(&failure) {
                    return Err(failure);
                }
                let text = error::render(&failure);
                if text != last_failure {
                    output::error(text.trim_end());
                    last_failure = text;
                }
            } else {
                last_failure.clear();
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(EXIT_INTERRUPTED);
            }
            let held = progress.seen.as_ref().map_or(0, |seen| seen.answers.len());
            if held == 0 {
                return Ok(EXIT_DONE);
            }
            self.wait(held, &stop)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(EXIT_INTERRUPTED);
            }
        }
    }

    /// Waits for the next question, or for a signal.
    fn wait(&self, held: usize, stop: &AtomicBool) -> Result<()> {
        if self.has_status {
            let text = format!(
                "{}: {}, nothing new; asks again every {} s, Ctrl-C ends this",
                output::utc_time((self.now_ms)()),
                output::counted(held, "held job"),
                self.interval_s
            );
            // A line that fills the terminal could not be cleared.
            let shown = output::cut(&text, output::page_width() - 1);
            output::write(&format!("{CLEAR_LINE}{shown}"))?;
        }
        let until = Instant::now() + Duration::from_secs(self.interval_s.into());
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(POLL_INTERVAL);
        }
        if self.has_status {
            output::write(CLEAR_LINE)?;
        }
        Ok(())
    }
}

impl WatchProgress<'_> {
    /// Returns a line with the time and the changes since the user last saw the advice; `None` if
    /// nothing has changed. The user then has seen the advice in `view`.
    pub(super) fn news(&mut self, view: &AdviceView<'_>) -> Option<PageLine> {
        let now = SeenAnswers::new(view);
        let changes = match &self.seen {
            None => Vec::new(),
            Some(seen) => {
                let changes = now.changes_since(seen);
                if changes.is_empty() {
                    let good_until_ms = seen.good_until_ms;
                    self.seen = Some(SeenAnswers {
                        good_until_ms,
                        ..now
                    });
                    return None;
                }
                changes
            }
        };
        self.seen = Some(now);
        let time = output::utc_time((self.now_ms)());
        let text = if changes.is_empty() {
            time
        } else {
            format!("{time}: {}", changes.join("; "))
        };
        Some(PageLine::of(LineColour::Plain, text))
    }
}

impl SeenAnswers {
    fn new(view: &AdviceView<'_>) -> SeenAnswers {
        let chosen = || view.chosen.iter().copied();
        let is_decided = |probe: &&ProbeResult| probe.state != ProbeState::Open;
        let probes = chosen().flat_map(|one| one.forecast.probes.iter().filter(is_decided));
        SeenAnswers {
            answers: chosen()
                .map(|one| (hold_of(one), SeenAnswer::new(one)))
                .collect(),
            probes: probes.copied().collect(),
            good_until_ms: chosen().filter_map(|one| one.forecast.good_until_ms).min(),
            asked_ms: view.basis.asked_ms,
        }
    }

    /// Describes the changes since `before`, one sentence for each kind of change. Jobs that join or
    /// leave a cause are not a change.
    fn changes_since(&self, before: &SeenAnswers) -> Vec<String> {
        let mut changes = Vec::new();
        if self.answers.is_empty() {
            changes.push("none of these jobs is held any more".to_owned());
            return changes;
        }
        for probe in self.probes.difference(&before.probes) {
            changes.push(probe.words(self.asked_ms));
        }
        let (mut changed, mut new_causes) = (0, BTreeSet::new());
        let causes: BTreeSet<&str> = before.causes().collect();
        for (hold, answer) in &self.answers {
            match before.answers.get(hold) {
                Some(was) => changed += usize::from(answer.differs_from(was)),
                None if causes.contains(&*answer.cause) => {}
                None => {
                    new_causes.insert(&answer.cause);
                }
            }
        }
        if changed > 0 {
            let jobs = output::counted(changed, "job");
            let verb = if changed == 1 { "has" } else { "have" };
            changes.push(format!("{jobs} {verb} another answer"));
        }
        if !new_causes.is_empty() {
            changes.push(output::counted(new_causes.len(), "new cause"));
        }
        let is_expired = before
            .good_until_ms
            .is_some_and(|until_ms| until_ms <= self.asked_ms);
        if is_expired && changes.is_empty() {
            changes.push("the earlier answers have expired".to_owned());
        }
        changes
    }

    fn causes(&self) -> impl Iterator<Item = &str> {
        self.answers.values().map(|answer| answer.cause.as_str())
    }
}

fn hold_of(advice: &JobAdvice) -> WatchedHold {
    (
        advice.job.ap.as_str().to_owned(),
        advice.job.id.cluster,
        advice.job.id.proc,
        advice.hold.since_ms,
    )
}

impl SeenAnswer {
    fn new(advice: &JobAdvice) -> SeenAnswer {
        SeenAnswer {
            action: advice.verdict.action,
            firmness: advice.verdict.firmness,
            is_probe: advice.verdict.action == HoldAction::Probe
                && advice.verdict.command.is_some(),
            cause: cause_name(advice),
        }
    }

    /// Returns true if a user should read the answer again. While the outcome of a probe is awaited,
    /// no other job is one.
    fn differs_from(&self, before: &SeenAnswer) -> bool {
        let is_new_probe = self.is_probe && !before.is_probe;
        (self.action, self.firmness) != (before.action, before.firmness) || is_new_probe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_advice::JobId;

    /// Returns the answers about jobs of clusters 1, 2, ..., each with an action and a cause.
    fn seen(answers: &[(HoldAction, &str)], asked_ms: i64) -> SeenAnswers {
        let answers = answers.iter().zip(1..);
        SeenAnswers {
            answers: answers
                .map(|(&(action, cause), cluster)| {
                    let answer = SeenAnswer {
                        action,
                        firmness: None,
                        is_probe: false,
                        cause: cause.to_owned(),
                    };
                    (("ap".to_owned(), cluster, 0, 0), answer)
                })
                .collect(),
            probes: BTreeSet::new(),
            good_until_ms: Some(asked_ms + 50),
            asked_ms,
        }
    }

    const LATER: (HoldAction, &str) = (HoldAction::Later, "later");
    const RELEASE: (HoldAction, &str) = (HoldAction::Release, "release");

    #[test]
    fn only_other_answers_and_new_causes_are_news() {
        let before = seen(&[LATER, LATER], 100);
        let news = |answers: &[(HoldAction, &str)]| seen(answers, 110).changes_since(&before);
        assert_eq!(news(&[LATER, LATER]), [""; 0]);
        assert_eq!(news(&[LATER]), [""; 0], "a job left its cause");
        assert_eq!(news(&[LATER; 3]), [""; 0], "a job joined a cause");
        assert_eq!(news(&[LATER, RELEASE]), ["1 job has another answer"]);
        assert_eq!(
            news(&[RELEASE, RELEASE, LATER, (HoldAction::Fix, "new")]),
            ["2 jobs have another answer", "1 new cause"]
        );
        assert_eq!(news(&[]), ["none of these jobs is held any more"]);
    }

    #[test]
    fn probes_are_news_when_they_are_recommended_and_when_they_have_an_outcome() {
        let probe = (HoldAction::Probe, "probe");
        let awaited = seen(&[probe, probe], 100);
        let mut recommended = awaited.clone();
        let first = recommended.answers.values_mut().next().expect("an answer");
        first.is_probe = true;
        assert_eq!(recommended.changes_since(&awaited).len(), 1);
        assert_eq!(awaited.changes_since(&recommended), [""; 0]);

        let mut known = awaited.clone();
        known.probes.insert(ProbeResult {
            job: JobId {
                cluster: 3,
                proc: 1,
            },
            released_ms: 90,
            state: ProbeState::HeldAgain,
        });
        assert_eq!(
            known.changes_since(&awaited),
            ["the probe 3.1 of 00:00 was held again"]
        );
        assert_eq!(known.changes_since(&known.clone()), [""; 0]);
    }

    #[test]
    fn expired_answers_are_news_once_the_log_has_grown() {
        let before = seen(&[LATER], 100);
        let news = |asked_ms| seen(&[LATER], asked_ms).changes_since(&before);
        assert_eq!(news(149), [""; 0]);
        assert_eq!(news(150), ["the earlier answers have expired"]);
    }
}
