//! Renders the advice on the time to submit a successor job.

use poolcast_base::output;
use poolcast_provision::trace::TraceZone;
use poolcast_slurm::live::{
    ExpectedStart, ModelAdvice, NoAdviceReason, QueriedJob, QueueCounts, QueueState, StartAnswer,
    StartForecast, StartRecord, StartTimes, SubmissionAdvice, SubmissionAnswer,
};

/// The note where jobs share nodes.
const SHARED_NODES: &str = "jobs share nodes: simulated by cores, memory and GPUs\n";

/// The whole advice.
pub(in crate::cmd) fn advice(advice: &SubmissionAdvice, zone: &TraceZone) -> String {
    let clock = WallClock {
        now_s: advice.now_s,
        zone,
    };
    let mut text = format!(
        "{}\n\nit is {} {}; {}\n{}\n",
        answer(advice, &clock),
        wall_time(advice.now_s, zone),
        zone.name,
        job(&advice.job, &clock),
        queue(advice.nodes, &advice.queue, advice.ended_runs),
    );
    if advice.shares_nodes {
        text.push_str(SHARED_NODES);
    }
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

/// The whole forecast of the start of a job, and of jobs of other shapes.
pub(in crate::cmd) fn start(
    forecast: &StartForecast,
    earlier: Option<&StartRecord>,
    zone: &TraceZone,
) -> String {
    let clock = WallClock {
        now_s: forecast.now_s,
        zone,
    };
    let mut text = format!("{}\n", start_words(forecast, &clock));
    if let Some(start_s) = forecast.planned_start_s {
        text.push_str(&format!(
            "Slurm itself plans to start it {} (`squeue --start`), as if all jobs ran to their limits\n",
            clock.at(start_s)
        ));
    }
    if let Some(earlier) = earlier.filter(|earlier| earlier.settled > 0) {
        text.push_str(&format!("{}\n", record_words(earlier)));
    }
    text.push_str(&format!(
        "\nit is {} {}; {}\n{}\n",
        wall_time(forecast.now_s, zone),
        zone.name,
        job(&forecast.job, &clock),
        queue(forecast.nodes, &forecast.queue, forecast.ended_runs),
    ));
    if forecast.shares_nodes {
        text.push_str(SHARED_NODES);
    }
    if !forecast.shapes.is_empty() {
        text.push_str("\nsubmitted now in its place:\n");
        text.push_str(&output::aligned_table(&shape_rows(forecast, zone)));
        for shape in &forecast.shapes {
            if let StartAnswer::None { reason } = &shape.answer {
                let span = output::time_span(shape.limit_s * 1000);
                let nodes = output::counted(shape.nodes as usize, "node");
                text.push_str(&format!(
                    "{nodes} for {span}: {}\n",
                    no_advice_words(reason)
                ));
            }
        }
    }
    text
}

/// What became of earlier forecasts.
pub(in crate::cmd) fn start_record(record: &StartRecord, zone: &TraceZone) -> String {
    let Some(since_s) = record.since_s else {
        return "no forecasts yet: `poolcast provision start JOB` keeps each\n".to_owned();
    };
    let mut text = format!(
        "{} of {} since {} {}; the outcome of {} is known\n",
        output::counted(record.forecasts, "forecast"),
        output::counted(record.jobs, "job"),
        wall_time(since_s, zone),
        zone.name,
        output::with_commas(record.settled as u64),
    );
    if record.settled > 0 {
        text.push_str(&format!(
            "{}; {} started earlier, {} later or still waits\n",
            record_words(record),
            output::with_commas(record.earlier as u64),
            output::with_commas(record.later as u64),
        ));
    }
    if let Some(error_s) = record.error_p50_s {
        let span = output::time_span(error_s * 1000);
        text.push_str(&format!(
            "half of the starts were within {span} of the median\n"
        ));
    }
    text
}

fn record_words(record: &StartRecord) -> String {
    format!(
        "of {} earlier forecasts, {:.0} % had the start between the 10 % and the 90 % quantile (80 % are expected)",
        output::with_commas(record.settled as u64),
        100.0 * record.within as f64 / record.settled.max(1) as f64
    )
}

fn start_words(forecast: &StartForecast, clock: &WallClock<'_>) -> String {
    match (&forecast.answer, forecast.job.start_s) {
        (StartAnswer::Started, Some(start_s)) => format!("STARTED {}", clock.at(start_s)),
        (StartAnswer::Started, None) => "STARTED".to_owned(),
        (StartAnswer::Expected(times), _) => format!(
            "STARTS {} in the median of {}; in 10 % of them by {}, in 90 % by {}",
            clock.at(times.start_p50_s),
            output::counted(times.draws, "draw"),
            wall_time(times.start_p10_s, clock.zone),
            wall_time(times.start_p90_s, clock.zone),
        ),
        (StartAnswer::None { reason }, _) => {
            format!("NO FORECAST: {}", no_advice_words(reason))
        }
    }
}

fn shape_rows(forecast: &StartForecast, zone: &TraceZone) -> Vec<Vec<String>> {
    let head = ["nodes", "limit", "10 %", "median", "90 %", "Slurm's plan"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for shape in &forecast.shapes {
        let start = |of: fn(&StartTimes) -> i64| match &shape.answer {
            StartAnswer::Expected(times) => wall_time(of(times), zone),
            StartAnswer::Started | StartAnswer::None { .. } => "-".to_owned(),
        };
        let planned = shape
            .planned_start_s
            .map(|start_s| wall_time(start_s, zone));
        rows.push(vec![
            shape.nodes.to_string(),
            output::time_span(shape.limit_s * 1000),
            start(|times| times.start_p10_s),
            start(|times| times.start_p50_s),
            start(|times| times.start_p90_s),
            planned.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    rows
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
struct WallClock<'a> {
    now_s: i64,
    zone: &'a TraceZone,
}

impl WallClock<'_> {
    /// Formats a time like `at 2026-11-23 04:50 (in 30 min 0 s)`.
    fn at(&self, moment_s: i64) -> String {
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

fn queue(nodes: u32, counts: &QueueCounts, ended_runs: usize) -> String {
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
