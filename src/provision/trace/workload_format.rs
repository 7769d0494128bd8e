//! Parser of the Standard Workload Format 2.2 of the Parallel Workloads Archive: a header of
//! comments, then rows of 18 numbers. The number -1 means unknown.
//!
//! <https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>

use anyhow::Result;

use super::local_time::TraceZone;
use super::row_collector::{RowCollector, UserHashes};
use super::row_fault::RowFault;
use super::text_lines::{TextLine, TextLines};
use super::trace_job::{JobFate, JobNumber, OptionalSeconds, TraceJob};

/// Fields per row.
pub(super) const FIELDS_PER_ROW: usize = 18;

/// The status of a cancelled job.
const CANCELLED_STATUS: i64 = 5;

/// The values of the header.
#[derive(Debug, Default)]
pub(super) struct WorkloadHead {
    /// The start of the log, in seconds of the epoch; rows count from it.
    begin_s: i64,
    /// The time zone of the cluster, if known.
    pub(super) zone: Option<TraceZone>,
    nodes: Option<u64>,
    processors: Option<u64>,
}

impl WorkloadHead {
    /// Parses one comment line.
    fn add(&mut self, comment: &str) {
        let Some((key, value)) = comment.split_once(':') else {
            return;
        };
        let value = value.trim();
        let number = value.split_ascii_whitespace().next();
        let number = number.and_then(|number| number.parse::<u64>().ok());
        match key.trim_start_matches(';').trim() {
            "UnixStartTime" => self.begin_s = number.map_or(0, |start| start.min(1 << 33) as i64),
            "TimeZoneString" => self.zone = TraceZone::named(value).ok(),
            "MaxNodes" => self.nodes = number,
            "MaxProcs" => self.processors = number,
            _ => {}
        }
    }

    /// Returns the number of nodes of the cluster if the header states it, counted like the nodes
    /// of jobs: a job has `procs_per_node` processors per node if that is given.
    pub(super) fn cluster_nodes(&self, procs_per_node: Option<u32>) -> Option<u32> {
        let nodes = match (self.processors, self.per_node(procs_per_node)) {
            (Some(processors), Some(per_node)) => Some(processors / per_node.max(1)),
            (Some(processors), None) => Some(processors),
            (None, _) => self.nodes,
        };
        let nodes = nodes.and_then(|nodes| u32::try_from(nodes).ok());
        nodes.filter(|nodes| *nodes > 0)
    }

    /// Returns the number of processors per node of jobs: the given one, else the one in the header.
    fn per_node(&self, procs_per_node: Option<u32>) -> Option<u64> {
        let given = procs_per_node.map(u64::from);
        given.or_else(|| self.processors_per_node())
    }

    /// Returns the number of processors per node, if the header states it.
    fn processors_per_node(&self) -> Option<u64> {
        let (nodes, processors) = (self.nodes?, self.processors?);
        let is_whole = nodes > 0 && processors % nodes == 0;
        is_whole.then(|| processors / nodes)
    }
}

/// Parses `first`, a line that was already read, and the lines that follow.
///
/// # Errors
/// Fails if the file cannot be read.
pub(super) fn read_rows(
    first: &str,
    lines: &mut TextLines,
    procs_per_node: Option<u32>,
    users: &mut UserHashes,
    collector: &mut RowCollector,
) -> Result<WorkloadHead> {
    let mut head = WorkloadHead::default();
    let first = TextLine {
        text: Some(first),
        number: 1,
        is_cut: false,
    };
    read_line(first, &mut head, procs_per_node, users, collector);
    while let Some(line) = lines.next()? {
        read_line(line, &mut head, procs_per_node, users, collector);
    }
    Ok(head)
}

fn read_line(
    line: TextLine<'_>,
    head: &mut WorkloadHead,
    procs_per_node: Option<u32>,
    users: &mut UserHashes,
    collector: &mut RowCollector,
) {
    let Some(text) = line.text else {
        collector.add(line.number, Err(RowFault::NotText));
        return;
    };
    if text.starts_with(';') {
        head.add(text);
    }
    if text.is_empty() || text.starts_with(';') {
        return;
    }
    if line.is_cut {
        collector.add(line.number, Err(RowFault::CutShort));
        return;
    }

    let per_node = head.per_node(procs_per_node).unwrap_or(1);
    match WorkloadRow::parse(text) {
        Err(fault) => collector.add(line.number, Err(fault)),
        // A burst of a checkpointed job; the whole job has its own row.
        Ok(row) if (2..=4).contains(&row.status) => collector.step_rows += 1,
        Ok(row) => {
            let job = row.job(head.begin_s, per_node, users);
            let has_limit = row.requested_s >= 0;
            if job.is_ok_and(|job| job.run_s.get().is_some()) && !has_limit {
                collector.limits_from_runs += 1;
            }
            collector.add(line.number, job.map(|job| vec![job]));
        }
    }
}

/// The fields of a row that this program uses. Times are in seconds.
struct WorkloadRow {
    number: i64,
    submit_s: i64,
    wait_s: i64,
    run_s: i64,
    processors: i64,
    requested_processors: i64,
    requested_s: i64,
    status: i64,
    user: i64,
}

impl WorkloadRow {
    fn parse(text: &str) -> Result<WorkloadRow, RowFault> {
        let mut fields = [0i64; FIELDS_PER_ROW];
        let mut count = 0;
        for word in text.split_ascii_whitespace() {
            let field = fields.get_mut(count).ok_or(RowFault::FieldCount)?;
            // Some logs contain averages with a fraction.
            let number: f64 = word.parse().map_err(|_| RowFault::FieldCount)?;
            *field = number as i64;
            count += 1;
        }
        if count < FIELDS_PER_ROW {
            return Err(RowFault::FieldCount);
        }
        Ok(WorkloadRow {
            number: fields[0],
            submit_s: fields[1],
            wait_s: fields[2],
            run_s: fields[3],
            processors: fields[4],
            requested_processors: fields[7],
            requested_s: fields[8],
            status: fields[10],
            user: fields[11],
        })
    }

    fn job(
        &self,
        begin_s: i64,
        per_node: u64,
        users: &mut UserHashes,
    ) -> Result<TraceJob, RowFault> {
        let number = u64::try_from(self.number).map_err(|_| RowFault::JobId)?;
        if self.submit_s < 0 || self.submit_s > 1 << 40 {
            return Err(RowFault::Submit);
        }
        let submit_s = begin_s + self.submit_s;
        let known = |value: i64| Some(value).filter(|value| (0..1 << 40).contains(value));
        let (wait_s, run_s) = (known(self.wait_s), known(self.run_s));
        let user = if self.user < 0 {
            0
        } else {
            users.hash(&self.user.to_string())
        };

        let mut job = TraceJob {
            id: JobNumber::single(number),
            user,
            submit_s,
            eligible_s: submit_s,
            start_s: OptionalSeconds::UNKNOWN,
            end_s: OptionalSeconds::UNKNOWN,
            run_s: OptionalSeconds::UNKNOWN,
            limit_s: known(self.requested_s).or(run_s).into(),
            nodes: self.nodes(per_node)?,
            fate: JobFate::Ended,
        };
        if self.status == CANCELLED_STATUS && run_s.is_none_or(|run_s| run_s == 0) {
            job.end_s = (submit_s + wait_s.ok_or(RowFault::NoOutcome)?).into();
            job.fate = JobFate::Cancelled;
            return Ok(job);
        }
        let run_s = run_s.ok_or(RowFault::NoOutcome)?;
        job.run_s = run_s.into();
        // Workloads generated by a model have no waits.
        let start_s = wait_s.map(|wait_s| submit_s + wait_s);
        job.start_s = start_s.into();
        job.end_s = start_s.map(|start_s| start_s + run_s).into();
        Ok(job)
    }

    fn nodes(&self, per_node: u64) -> Result<u32, RowFault> {
        let processors = if self.requested_processors > 0 {
            self.requested_processors
        } else {
            self.processors
        };
        let processors = u64::try_from(processors).map_err(|_| RowFault::Nodes)?;
        let nodes = processors.div_ceil(per_node.max(1));
        u32::try_from(nodes)
            .ok()
            .filter(|nodes| *nodes > 0)
            .ok_or(RowFault::Nodes)
    }
}
