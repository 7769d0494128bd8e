//! Renders forecasts of the starts of pending jobs, and the record of earlier ones.

use super::submission::{WallClock, no_advice_words, queue, situation, wall_time};
use poolcast_base::output;
use poolcast_provision::trace::TraceZone;
use poolcast_slurm::live::{StartAnswer, StartForecast, StartRecord, StartTimes};

/// The whole forecast of the start of a job, and of jobs of other shapes.
pub(in crate::cmd) fn forecast(
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
    let queue = queue(forecast.nodes, &forecast.queue, forecast.ended_runs);
    text.push('\n');
    text.push_str(&situation(
        &forecast.job,
        &queue,
        forecast.shares_nodes,
        &clock,
    ));
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
pub(in crate::cmd) fn record(record: &StartRecord, zone: &TraceZone) -> String {
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
        "of {}, {:.0} % had the start between the 10 % and the 90 % quantile (80 % are expected)",
        output::counted(record.settled, "earlier forecast"),
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
