//! Parser of `squeue` text, for Slurm that was built without JSON: a header, and a row per job.

use std::collections::HashMap;

use anyhow::{Context as _, Result, ensure};

use super::listed_job::{ListedJob, ParsedJobs, array_limit, checked_time_s};
use super::slurm_state::{QueueState, read_state};
use poolcast_base::error::hinted;
use poolcast_provision::trace::{TimeLimit, elements_of_array, parse_time_limit};

/// The argument of `squeue --format`. It has no comments, because the line breaks in a comment of
/// any user could forge rows.
pub(super) const SQUEUE_COLUMNS: &str = "%A|%F|%K|%T|%r|%u|%U|%P|%a|%q|%D|%l|%V|%S|%e|%Q|%N";

/// The argument of `squeue --format` for the comments of the caller's own jobs.
pub(super) const COMMENT_COLUMNS: &str = "%A|%k";

/// The header of these columns.
const HEADS: &str = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|STATE|REASON|USER|UID|PARTITION|ACCOUNT|QOS|NODES|TIME_LIMIT|SUBMIT_TIME|START_TIME|END_TIME|PRIORITY|NODELIST";

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
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let Ok(fields) = <[&str; COLUMNS]>::try_from(fields) else {
            read.left_out += 1;
            continue;
        };
        let job = listed_job(fields).with_context(|| format!("line {} of `squeue`", number + 2))?;
        read.jobs.push(job);
    }
    Ok(read)
}

/// Sets the comments of `jobs` from the rows `JOBID|COMMENT` of `squeue`. A row that is the rest of
/// a comment with a line break changes no job of another user, because no such job is among `jobs`.
pub(super) fn add_comments<'a>(jobs: impl Iterator<Item = &'a mut ListedJob>, rows: &str) {
    let mut comments: HashMap<u64, &str> = HashMap::new();
    for row in rows.lines() {
        if let Some((id, comment)) = row.split_once('|')
            && let Ok(id) = id.trim().parse()
        {
            comments.insert(id, comment);
        }
    }
    for job in jobs {
        if let Some(comment) = comments.get(&job.id) {
            job.comment = nonempty_field(comment).unwrap_or_default();
        }
    }
}

/// Parses the job of a row.
fn listed_job(fields: [&str; COLUMNS]) -> Result<ListedJob> {
    let [
        id,
        array,
        task,
        state,
        reason,
        user,
        user_id,
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
    ] = fields;
    let (state, outcome) = read_state(&[state.to_owned()]);

    let id: u64 = id
        .parse()
        .with_context(|| format!("JOBID is `{id}`, which is not a number"))?;
    let jobs = match state {
        // Pending elements of an array share a row.
        QueueState::Pending if task != "N/A" => elements_of_array(id, task)
            .with_context(|| format!("ARRAY_TASK_ID is `{task}`, which is not a list of tasks"))?,
        _ => 1,
    };
    Ok(ListedJob {
        id,
        array_task: array.parse().ok().zip(task.parse().ok()),
        jobs: u32::try_from(jobs).context("an array has too many elements")?,
        array_limit: array_limit(task),
        state,
        outcome,
        reason: reason.to_owned(),
        user: user.to_owned(),
        user_id: user_id.parse().ok(),
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
        comment: String::new(),
        resources: None,
    })
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
    use crate::live::{IdleReason, PendingRole};

    const ROWS: &str = "\
7|5|1|RUNNING|None|a|1000|all|(null)|normal|2|3:00|1000|1002|1182|42|n[1-2]
5|5|2-4%1|PENDING|JobArrayTaskLimit|a|1000|all,other|lab|(null)|2-4|UNLIMITED|1000|N/A|N/A|41|
9|9|N/A|PENDING|Dependency|b|1001|all|lab|(null)|1K|2-00:00:00|1001|N/A|N/A|0|
not a row
10|10|N/A|DREAMING|None|b|1001|all|lab|(null)|1|1:00|1001|1002|1003|0|n1
";

    fn listing(rows: &str) -> Result<ParsedJobs> {
        read_queue_text(format!("{HEADS}\n{rows}").as_bytes())
    }

    #[test]
    fn rows_are_parsed_into_jobs() {
        let read = listing(ROWS).expect("read");
        assert_eq!((read.jobs.len(), read.left_out), (4, 1));
        let [element, array, dependent, dreaming] = &read.jobs[..] else {
            panic!("four jobs");
        };
        assert_eq!((element.name(), element.jobs), ("5_1".to_owned(), 1));
        assert_eq!(
            (element.start_s, element.end_s, element.limit_s),
            (Some(1002), Some(1182), Some(180))
        );
        assert_eq!(
            (element.user_id, element.account.as_deref()),
            (Some(1000), None)
        );
        assert_eq!((array.jobs, array.nodes, array.limit_s), (3, 2, None));
        assert_eq!((array.array_limit, element.array_limit), (Some(1), None));
        assert_eq!(array.partitions, ["all", "other"]);
        assert_eq!((dependent.nodes, dependent.limit_s), (1024, Some(172_800)));
        let role = PendingRole::Idle(IdleReason::Depends);
        assert_eq!(dependent.pending_role(2000), Some(role));
        assert_eq!(dreaming.state, QueueState::Unknown);
    }

    /// The rows are as Slurm 22.05 prints them for a comment with a line break.
    #[test]
    fn comments_with_line_breaks_do_not_forge_rows() {
        let mut read = listing(ROWS).expect("read");
        let own = |job: &&mut ListedJob| job.user_id == Some(1000);
        let rows = "7|x|y\n5|a\n9|poolcast chain c link 1\nthe end\n10\n11|b\n";
        add_comments(read.jobs.iter_mut().filter(own), rows);
        let comments: Vec<&str> = read.jobs.iter().map(|job| job.comment.as_str()).collect();
        assert_eq!(comments, ["x|y", "a", "", ""]);

        let with_comments = format!("{HEADS}|COMMENT\n7|7|N/A|PENDING|None");
        let error = read_queue_text(with_comments.as_bytes()).expect_err("rejected");
        assert!(
            poolcast_base::error::render(&error).contains("%N'"),
            "{error}"
        );
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
