//! Renders the advice on the time to submit a successor job.

use poolcast_base::output;
use poolcast_provision::trace::TraceZone;
use poolcast_slurm::live::{
    ExpectedStart, ModelAdvice, NoAdviceReason, QueriedJob, QueueCounts, QueueState,
    SubmissionAdvice, SubmissionAnswer,
};

/// The whole advice.
pub(in crate::cmd) fn advice(advice: &SubmissionAdvice, zone: &TraceZone) -> String {
    let clock = WallClock {
        now_s: advice.now_s,
        zone,
    };
    let queue = queue(advice.nodes, &advice.queue, advice.ended_runs);
    let mut text = format!(
        "{}\n\n{}",
        answer(advice, &clock),
        situation(&advice.job, &queue, advice.shares_nodes, &clock)
    );
    if let Some(expected) = &advice.expected {
        text.push_str(&expectation(expected));
    }
    if let Some(model) = &advice.model {
        text.push_str(&learned(model));
    }
    if let Some(start_s) = advice.planned_start_s {
        text.push_str(&format!(
            "Slurm itself would start it {} (`sbatch --test-only`)\n",
            clock.at(start_s)
        ));
    }
    text
}

/// The time, the job, and the `queue` around it.
pub(super) fn situation(
    asked: &QueriedJob,
    queue: &str,
    shares_nodes: bool,
    clock: &WallClock<'_>,
) -> String {
    let now = wall_time(clock.now_s, clock.zone);
    let job = job(asked, clock);
    let mut text = format!("it is {now} {}; {job}\n{queue}\n", clock.zone.name);
    if shares_nodes {
        text.push_str("jobs share nodes: simulated by cores, memory and GPUs\n");
    }
    text
}

/// The prediction of the model that decided the answer.
fn learned(model: &ModelAdvice) -> String {
    let said = match model.wait_s {
        Some(wait_s) => format!("expects a wait of {}", output::time_span(wait_s * 1000)),
        None if model.submits == Some(true) => "would submit now".to_owned(),
        None => "would not submit yet".to_owned(),
    };
    format!("the model {} {said}; the answer follows it\n", model.name)
}

/// Formats times as wall-clock times, with their distance from now.
pub(super) struct WallClock<'a> {
    /// The time now, epoch seconds.
    pub(super) now_s: i64,
    /// The zone of the cluster.
    pub(super) zone: &'a TraceZone,
}

impl WallClock<'_> {
    /// Formats a time like `at 2026-11-23 04:50 (in 30 min 0 s)`.
    pub(super) fn at(&self, moment_s: i64) -> String {
        let away = output::time_span((moment_s - self.now_s).abs() * 1000);
        let wall = wall_time(moment_s, self.zone);
        if moment_s < self.now_s {
            format!("at {wall} ({away} ago)")
        } else {
            format!("at {wall} (in {away})")
        }
    }
}

/// A time in the zone of the cluster, to the minute.
pub(in crate::cmd) fn wall_time(moment_s: i64, zone: &TraceZone) -> String {
    let wall = jiff::Timestamp::from_second(zone.wall_s(moment_s)).unwrap_or_default();
    wall.strftime("%Y-%m-%d %H:%M").to_string()
}

fn answer(advice: &SubmissionAdvice, clock: &WallClock<'_>) -> String {
    match &advice.answer {
        SubmissionAnswer::Now => "SUBMIT NOW".to_owned(),
        SubmissionAnswer::Later {
            not_before_s: Some(not_before_s),
            ask_again_s,
        } => format!(
            "NOT BEFORE {}: ask again {}",
            clock.at(*not_before_s).trim_start_matches("at "),
            clock.at(*ask_again_s)
        ),
        SubmissionAnswer::Later {
            not_before_s: None,
            ask_again_s,
        } if advice.job.state == QueueState::Running => {
            format!("NOT YET: ask again {}", clock.at(*ask_again_s))
        }
        SubmissionAnswer::Later {
            not_before_s: None, ..
        } => "NOT YET: the job itself waits; ask again once it runs".to_owned(),
        SubmissionAnswer::None { reason } => format!("NO ADVICE: {}", no_advice_words(reason)),
    }
}

/// Describes why there is no advice.
pub(in crate::cmd) fn no_advice_words(reason: &NoAdviceReason) -> String {
    match reason {
        NoAdviceReason::NoLimit => {
            "the job has no time limit, so its end is unknown: set `provision.job_length`".to_owned()
        }
        NoAdviceReason::Failed => {
            "the job has failed: find the cause before you submit another".to_owned()
        }
        NoAdviceReason::Cancelled => "the job was cancelled".to_owned(),
        NoAdviceReason::TooLarge => "the job needs more nodes than can be used now".to_owned(),
        NoAdviceReason::SharedNodes(why) => {
            format!("jobs share nodes, which cannot be simulated here: {why}")
        }
        NoAdviceReason::UnknownRequest(what) => format!("this version cannot simulate {what}"),
        NoAdviceReason::HiddenJobs => {
            "Slurm hides the jobs of other users (PrivateData), so their queue is unknown".to_owned()
        }
        NoAdviceReason::UnheardNodes(nodes) => format!(
            "Slurm's controller has just started, and has not heard of {nodes} yet, which takes some seconds"
        ),
        NoAdviceReason::NotItsTurn(why) => format!("the job does not wait for its turn: {why}"),
        NoAdviceReason::UnknownReason(what) => format!("this version does not know {what}"),
        NoAdviceReason::ShouldRun => {
            "there is room for the job, and still Slurm has not started it: what keeps it waiting is not listed".to_owned()
        }
        NoAdviceReason::UnlikeSlurm => {
            "the forecast contradicts Slurm's own plan (`sbatch --test-only`), so its picture of this cluster is wrong".to_owned()
        }
        NoAdviceReason::NoPlan => {
            "`sbatch --test-only` has not printed when the job would start".to_owned()
        }
    }
}

fn job(job: &QueriedJob, clock: &WallClock<'_>) -> String {
    let nodes = output::counted(job.nodes as usize, "node");
    let name = format!("job {} of the partition {}", job.id, job.partition);
    match (job.state, job.end_s) {
        (QueueState::Pending, _) => format!("{name} waits for {nodes}"),
        (QueueState::Running, Some(end_s)) => {
            format!("{name} runs on {nodes} and ends {}", clock.at(end_s))
        }
        (QueueState::Running, None) => format!("{name} runs on {nodes}"),
        (QueueState::Unknown, _) => format!("{name} is in a state that this version does not know"),
        (QueueState::Completing | QueueState::Ended, end_s) => {
            let how = job
                .outcome
                .map_or("has ended", |outcome| outcome.describe());
            let when = end_s.map_or(String::new(), |end_s| format!(" {}", clock.at(end_s)));
            format!("{name} {how}{when}")
        }
    }
}

/// The usable nodes, and the jobs by their role in the queue.
pub(super) fn queue(nodes: u32, counts: &QueueCounts, ended_runs: usize) -> String {
    let mut text = format!(
        "{} can be used; {} and {} for their turn",
        output::counted(nodes as usize, "node"),
        counted_phrase(counts.running, "job runs", "jobs run"),
        counted_phrase(counts.waiting, "waits", "wait"),
    );
    for (count, one, several) in [
        (counts.dependent, "depends on another", "depend on others"),
        (counts.held, "is held", "are held"),
        (counts.later, "begins later", "begin later"),
        (
            counts.limited,
            "waits for a limit of its own",
            "wait for limits of their own",
        ),
        (counts.never, "cannot start", "cannot start"),
        (
            counts.kept,
            "waits for something that Slurm does not list",
            "wait for something that Slurm does not list",
        ),
    ] {
        if count > 0 {
            text.push_str(&format!(", {}", counted_phrase(count, one, several)));
        }
    }
    let runs = counted_phrase(
        ended_runs,
        "run that has ended is known",
        "runs that have ended are known",
    );
    format!("{text}; {runs}")
}

fn counted_phrase(count: usize, one: &str, several: &str) -> String {
    let word = if count == 1 { one } else { several };
    format!("{} {word}", output::with_commas(count as u64))
}

fn expectation(expected: &ExpectedStart) -> String {
    let span = |s: i64| output::time_span(s * 1000);
    format!(
        "submitted now, its successor waits {} in the median, and longer than {} in 10 % of the draws; {} if all jobs run to their limits\n\
         it starts by the end of the job in {:.0} % of the draws; on average {} without a job, {} with two\n",
        span(expected.wait_p50_s),
        span(expected.wait_p90_s),
        span(expected.wait_by_limits_s),
        expected.starts_by_end * 100.0,
        span(expected.interruption_s as i64),
        span(expected.overlap_s as i64),
    )
}
