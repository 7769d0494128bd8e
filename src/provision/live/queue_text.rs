//! Parser of `squeue` text, for Slurm that was built without JSON: a header, and a row per job.

use anyhow::{Context as _, Result, ensure};

use super::listed_job::{ListedJob, ParsedJobs, checked_time_s};
use super::slurm_state::{QueueState, read_state};
use crate::trace::{TimeLimit, elements_of_array, parse_time_limit};
use poolcast_base::error::hinted;

/// The argument of `squeue --format`. The comment is last because it may contain a `|`.
pub(super) const SQUEUE_COLUMNS: &str = "%A|%F|%K|%T|%r|%u|%P|%a|%q|%D|%l|%V|%S|%e|%Q|%N|%k";

/// The header of these columns.
const HEADS: &str = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|STATE|REASON|USER|PARTITION|ACCOUNT|QOS|NODES|TIME_LIMIT|SUBMIT_TIME|START_TIME|END_TIME|PRIORITY|NODELIST|COMMENT";

/// Number of columns.
const COLUMNS: usize = 17;

/// Returns true if `text` begins like such a listing.
pub(super) fn is_queue_text(text: &[u8]) -> bool {
    text.starts_with(b"JOBID|")
}

/// Parses `squeue --format` output with these columns, and with times in seconds of the epoch.
pub(super) fn read_queue_text(text: &[u8]) -> Result<ParsedJobs> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    ensure!(
        head == HEADS,
        hinted(
            "the columns of `squeue` are not the expected ones",
            format!(
                "write them with `SLURM_TIME_FORMAT=%s squeue --all --states=all --format '{SQUEUE_COLUMNS}'`"
            )
        )
    );

    let mut read = ParsedJobs::default();
    for (number, line) in lines.enumerate() {
        let fields: Vec<&str> = line.splitn(COLUMNS, '|').map(str::trim).collect();
        let Ok(fields) = <[&str; COLUMNS]>::try_from(fields) else {
            // The rest of a comment that contains a line break.
            read.left_out += 1;
            continue;
        };
        match listed_job(fields).with_context(|| format!("line {} of `squeue`", number + 2))? {
            Some(job) => read.jobs.push(job),
            None => read.left_out += 1,
        }
    }
    Ok(read)
}

/// Parses the job of a row. Returns `None` if its state is unknown.
fn listed_job(fields: [&str; COLUMNS]) -> Result<Option<ListedJob>> {
    let [
        id,
        array,
        task,
        state,
        reason,
        user,
        partition,
        account,
        qos,
        nodes,
        limit,
        submit,
        start,
        end,
        priority,
        node_list,
        comment,
    ] = fields;
    let Some((state, outcome)) = read_state(&[state.to_owned()]) else {
        return Ok(None);
    };

    let id: u64 = id
        .parse()
        .with_context(|| format!("JOBID is `{id}`, which is not a number"))?;
    let jobs = match state {
        // Pending elements of an array share a row.
        QueueState::Pending if task != "N/A" => elements_of_array(id, task)
            .with_context(|| format!("ARRAY_TASK_ID is `{task}`, which is not a list of tasks"))?,
        _ => 1,
    };
    Ok(Some(ListedJob {
        id,
        array_task: array.parse().ok().zip(task.parse().ok()),
        jobs: u32::try_from(jobs).context("an array has too many elements")?,
        state,
        outcome,
        reason: reason.to_owned(),
        user: user.to_owned(),
        partitions: partition.split(',').map(str::to_owned).collect(),
        account: nonempty_field(account),
        qos: nonempty_field(qos),
        nodes: node_count(nodes)
            .with_context(|| format!("NODES is `{nodes}`, which is not a number of nodes"))?,
        limit_s: limit_s(limit)
            .with_context(|| format!("TIME_LIMIT is `{limit}`, which is not a time limit"))?,
        submit_s: moment_s("SUBMIT_TIME", submit)?.unwrap_or(0),
        // Text has no column for this. For dependent and held jobs, the reason is enough.
        eligible_s: moment_s("SUBMIT_TIME", submit)?,
        start_s: moment_s("START_TIME", start)?,
        end_s: moment_s("END_TIME", end)?,
        priority: priority.parse().ok(),
        node_list: node_list.to_owned(),
        comment: nonempty_field(comment).unwrap_or_default(),
    }))
}

/// Returns the value of a column, or `None` if it is empty.
fn nonempty_field(field: &str) -> Option<String> {
    let is_stated = !["", "N/A", "(null)"].contains(&field);
    is_stated.then(|| field.to_owned())
}

/// Parses `4`, `2-4` (the minimum of a range), or `2K` (2048).
fn node_count(field: &str) -> Option<u32> {
    let least = field.split('-').next()?;
    match least.strip_suffix('K') {
        Some(thousands) => thousands.parse::<u32>().ok()?.checked_mul(1024),
        None => least.parse().ok(),
    }
}

/// Parses a time limit to seconds. Returns `Some(None)` if there is none.
fn limit_s(field: &str) -> Option<Option<i64>> {
    match field {
        "NOT_SET" | "INVALID" | "N/A" => Some(None),
        _ => match parse_time_limit(field)? {
            TimeLimit::Seconds(limit_s) => Some(Some(limit_s)),
            TimeLimit::None => Some(None),
        },
    }
}

fn moment_s(column: &str, field: &str) -> Result<Option<i64>> {
    if ["N/A", "NONE", "Unknown"].contains(&field) {
        return Ok(None);
    }
    let moment_s: i64 = field.parse().with_context(|| {
        hinted(
            format!("{column} is `{field}`, which is not a time in epoch seconds"),
            "set `SLURM_TIME_FORMAT=%s` to let `squeue` write such times",
        )
    })?;
    checked_time_s(column, Some(moment_s).filter(|moment_s| *moment_s > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::IdleReason;

    const ROWS: &str = "\
7|5|1|RUNNING|None|a|all|(null)|normal|2|3:00|1000|1002|1182|42|n[1-2]|x|y
5|5|2-4%1|PENDING|JobArrayTaskLimit|a|all,other|lab|(null)|2-4|UNLIMITED|1000|N/A|N/A|41||(null)
9|9|N/A|PENDING|Dependency|b|all|lab|(null)|1K|2-00:00:00|1001|N/A|N/A|0||(null)
a line of a comment
10|10|N/A|DREAMING|None|b|all|lab|(null)|1|1:00|1001|1002|1003|0|n1|(null)
";

    fn listing(rows: &str) -> Result<ParsedJobs> {
        read_queue_text(format!("{HEADS}\n{rows}").as_bytes())
    }

    #[test]
    fn rows_are_parsed_into_jobs() {
        let read = listing(ROWS).expect("read");
        assert_eq!((read.jobs.len(), read.left_out), (3, 2));
        let [element, array, dependent] = &read.jobs[..] else {
            panic!("three jobs");
        };
        assert_eq!((element.name(), element.jobs), ("5_1".to_owned(), 1));
        assert_eq!(
            (element.start_s, element.end_s, element.limit_s),
            (Some(1002), Some(1182), Some(180))
        );
        assert_eq!(
            (element.comment.as_str(), element.account.as_deref()),
            ("x|y", None)
        );
        assert_eq!((array.jobs, array.nodes, array.limit_s), (3, 2, None));
        assert_eq!(array.partitions, ["all", "other"]);
        assert_eq!((dependent.nodes, dependent.limit_s), (1024, Some(172_800)));
        assert_eq!(dependent.idle_reason(2000), Some(IdleReason::Depends));
    }

    #[test]
    fn invalid_rows_are_rejected_with_line_and_column() {
        let refusal = |rows: &str| {
            let error = listing(rows).expect_err("refused");
            poolcast_base::error::render(&error)
        };
        for (from, to, named) in [
            ("7|5|1", "x|5|1", "line 2 of `squeue`"),
            ("1182", "2023-03-01T12:00:00", "SLURM_TIME_FORMAT=%s"),
            ("|2-4|", "|many|", "NODES is `many`"),
            ("2-00:00:00", "soon", "TIME_LIMIT is `soon`"),
            ("2-4%1", "4-2", "ARRAY_TASK_ID is `4-2`"),
        ] {
            let text = refusal(&ROWS.replacen(from, to, 1));
            assert!(text.contains(named), "{named}: {text}");
        }
        let error = read_queue_text(b"JOBID|NAME\n").expect_err("refused");
        assert!(poolcast_base::error::render(&error).contains("--format"));
    }
}
