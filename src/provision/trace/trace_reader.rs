//! Reads source files into the jobs of a trace.

use std::io::Cursor;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::accounting_text::EXPORT_HINT;
use super::export_overlap::merge_exports;
use super::local_time::TraceZone;
use super::row_collector::UserHashes;
use super::source_file::{TraceSource, read_source, read_stream};
use super::trace_job::TraceJob;
use super::trace_store::{JobTrace, TRACE_FORMAT, TraceSummary};
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_base::salt::{self, OwnerSalt};

/// Options for reading the files of a trace.
#[derive(Debug, Clone, Default)]
pub struct TraceOptions {
    /// The time zone of local stamps.
    pub zone: Option<TraceZone>,
    /// Processors per node, for files that count processors.
    pub procs_per_node: Option<u32>,
}

/// The jobs of a trace, before they are stored.
#[derive(Debug)]
pub struct ReadTrace {
    /// The jobs, by submission time.
    pub jobs: Vec<TraceJob>,
    /// The source files.
    pub sources: Vec<TraceSource>,
    /// The time zone of the cluster.
    pub zone: TraceZone,
    /// Rows that were dropped because another row about the same run is more complete.
    pub repeated_rows: u64,
}

/// Reads `files`, and hashes user names with `salt`.
///
/// # Errors
/// Fails if a file cannot be read or is not a trace, and if no file has a valid row.
pub fn read_trace(
    files: &[PathBuf],
    options: &TraceOptions,
    salt: &OwnerSalt,
) -> Result<ReadTrace> {
    let mut users = UserHashes::new(salt.text());
    let (mut jobs, mut sources) = (Vec::new(), Vec::new());
    let mut named_zone = None;
    for file in files {
        let zone = options.zone.as_ref();
        let content = read_source(file, zone, options.procs_per_node, &mut users)?;
        if jobs.is_empty() {
            jobs = content.jobs;
        } else {
            jobs.extend(content.jobs);
        }
        sources.push(content.source);
        named_zone = named_zone.or(content.zone);
    }
    ensure!(!jobs.is_empty(), no_rows(&sources));

    let repeated_rows = merge_exports(&mut jobs);
    let zone = options.zone.clone().or(named_zone);
    Ok(ReadTrace {
        jobs,
        sources,
        zone: zone.unwrap_or_else(TraceZone::utc),
        repeated_rows,
    })
}

/// Parses output of `sacct` whose times are in seconds of the epoch. The trace may be empty.
///
/// # Errors
/// Fails if `text` is not such output.
pub fn read_accounting(text: Vec<u8>, salt: &OwnerSalt) -> Result<JobTrace> {
    let mut users = UserHashes::new(salt.text());
    let content = read_stream("sacct", Cursor::new(text), None, None, &mut users)?;
    let mut jobs = content.jobs;
    merge_exports(&mut jobs);
    let zone = TraceZone::utc();
    let mut summary = TraceSummary::of(&jobs, vec![content.source], &zone);
    summary.owner_salt_digest = salt::digest(salt.text());
    Ok(JobTrace {
        summary,
        jobs,
        zone,
    })
}

fn no_rows(sources: &[TraceSource]) -> poolcast_base::error::HintedError {
    let reasons = sources.iter().flat_map(|source| &source.rejected);
    let first = reasons.max_by_key(|rejected| rejected.rows);
    let message = match first {
        Some(first) => format!(
            "no row of the trace is usable; most frequent reason: {}, first at line {}",
            first.fault, first.first_line
        ),
        None if sources.iter().any(|source| source.step_rows > 0) => {
            "the trace has rows of job steps alone, and none of a job".to_owned()
        }
        None => "the trace has no rows".to_owned(),
    };
    hinted(message, EXPORT_HINT)
}

/// Returns the key of a trace: a digest of its files and of the options they were read with.
pub fn trace_key(read: &ReadTrace, options: &TraceOptions) -> Result<String> {
    #[derive(Serialize)]
    struct TraceInputs<'a> {
        version: u32,
        files: Vec<(u64, &'a str)>,
        zone: &'a str,
        procs_per_node: Option<u32>,
        /// Missing in the keys of files that do not state the size of the cluster.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        cluster_nodes: Vec<u32>,
    }
    let files = read.sources.iter();
    let cluster_nodes = files.clone().filter_map(|source| source.cluster_nodes);
    manifest::key(&TraceInputs {
        version: TRACE_FORMAT.version,
        files: files
            .map(|source| (source.bytes, source.xxh3.as_str()))
            .collect(),
        zone: &read.zone.name,
        procs_per_node: options.procs_per_node,
        cluster_nodes: cluster_nodes.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::row_fault::{RejectedRows, RowFault};
    use super::super::source_file::SourceForm;
    use super::super::trace_job::{JobFate, JobNumber};
    use super::*;

    fn read_parts(parts: &[&str], zone: Option<&str>) -> Result<ReadTrace> {
        let dir = tempfile::tempdir()?;
        let mut files = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            files.push(dir.path().join(format!("part-{number}")));
            fs_err::write(&files[number], part)?;
        }
        let options = TraceOptions {
            zone: zone.map(TraceZone::named).transpose()?,
            procs_per_node: None,
        };
        read_trace(&files, &options, &OwnerSalt::random()?)
    }

    fn read(text: &str) -> ReadTrace {
        read_parts(&[text], Some("America/Chicago")).expect("a trace")
    }

    fn refusal(text: &str) -> String {
        let error = read_parts(&[text], None).expect_err("no trace");
        poolcast_base::error::render(&error)
    }

    /// Formats jobs as `id nodes submit eligible start end run limit fate`. Times are relative to
    /// the first submission.
    fn described_jobs(read: &ReadTrace) -> Vec<String> {
        let begin_s = read.jobs[0].submit_s;
        let mut lines = Vec::new();
        for job in &read.jobs {
            let word = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
            let after = |moment: Option<i64>| word(moment.map(|s| s - begin_s));
            lines.push(format!(
                "{} {} {} {} {} {} {} {} {:?}",
                job.id,
                job.nodes,
                job.submit_s - begin_s,
                job.eligible_s - begin_s,
                after(job.start_s.get()),
                after(job.end_s.get()),
                word(job.run_s.get()),
                word(job.limit_s.get()),
                job.fate
            ));
        }
        lines
    }

    /// All peculiarities of `sacct` text, as a real slurmdbd writes it.
    const SACCT: &str = "\
State|NNodes|JobID|User|Submit|Start|Eligible|End|Timelimit|Elapsed
COMPLETED|2|10|ada|2023-01-01T00:00:00|2023-01-01T00:10:00|2023-01-01T00:00:00|2023-01-01T01:10:00|1-00:00:00|01:00:00
COMPLETED|2|10.batch||2023-01-01T00:10:00|2023-01-01T00:10:00|2023-01-01T00:10:00|2023-01-01T01:10:00||01:00:00
CANCELLED by 0|1|11|ada|2023-01-01T00:01:00|None|2023-01-01T00:01:00|2023-01-01T00:03:00|Partition_Limit|00:00:00
CANCELLED by 1000|1|12|eve|2023-01-01T00:02:00|2023-01-01T00:05:00|2023-01-01T00:02:00|2023-01-01T00:05:00|10:00|00:00:00
COMPLETED|1|13|eve|2023-01-01T00:03:00|2023-01-01T00:05:00|2023-01-01T00:03:00|2023-01-01T00:05:00|10:00|00:00:00
RUNNING|4|14_1|eve|2023-01-01T00:04:00|2023-01-01T00:06:00|2023-01-01T00:05:00|Unknown|UNLIMITED|5-00:00:00
PENDING|1|14_[2-3,7%1]|eve|2023-01-01T00:04:00|Unknown|Unknown|Unknown|2-00:00:00|00:00:00
REQUEUED|1|15|eve|2023-01-01T00:05:00|2023-01-01T00:10:00|2023-01-01T00:05:00|2023-01-01T00:20:00|60|00:10:00
COMPLETED|1|15|eve|2023-01-01T00:05:00|2023-01-01T00:30:00|2023-01-01T00:05:00|2023-01-01T00:40:00|60|00:10:00
COMPLETED|1|16+0|eve|2023-01-01T00:06:00|2023-01-01T00:30:00|2023-01-01T00:06:00|2023-01-01T00:40:00|60|00:10:00
";

    #[test]
    fn sacct_text_is_read_with_columns_in_any_order() {
        let trace = read(SACCT);
        let expected = [
            "10 2 0 0 600 4200 3600 86400 Ended",
            "11 1 60 60 - 180 - - Cancelled",
            "12 1 120 120 - 300 - 600 Cancelled",
            "13 1 180 180 300 300 0 600 Ended",
            "14_1 4 240 300 360 - - - Running",
            "14_2 1 240 240 - - - 172800 Pending",
            "14_3 1 240 240 - - - 172800 Pending",
            "14_7 1 240 240 - - - 172800 Pending",
            "15 1 300 300 600 1200 600 3600 Ended",
            "15 1 300 1200 1800 2400 600 3600 Ended",
            "16+0 1 360 360 1800 2400 600 3600 Ended",
        ];
        assert_eq!(described_jobs(&trace), expected);
        let source = &trace.sources[0];
        assert_eq!((source.rows, source.step_rows), (9, 1));
        assert_eq!(source.form, SourceForm::SacctText);
        let users = [0, 2, 3].map(|at| trace.jobs[at].user);
        assert!(users[0] != users[1] && users[1] == users[2] && !users.contains(&0));
    }

    #[test]
    fn rows_that_cannot_be_used_are_counted_with_their_first_line() {
        let text = "JobID|Submit|Start|End|TimelimitRaw|NNodes\n\
            1|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-01T02:00:00|60|1\n\
            x|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-01T02:00:00|60|1\n\
            3|Unknown|2023-01-01T01:00:00|2023-01-01T02:00:00|60|1\n\
            4|2023-01-01T00:00:00|2022-12-31T23:00:00|2023-01-01T02:00:00|60|1\n\
            5|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-01T00:30:00|60|1\n\
            6|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-01T02:00:00|soon|1\n\
            7|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-01T02:00:00|60|0\n\
            8|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-01T02:00:00|60|1|x\n\
            9|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-01T02:00:00|60|1|x\n\
            10|2023-01-01T00:00:00|2023-01-01T01:00:00|2023-01-0";
        let trace = read(text);
        assert_eq!(trace.jobs.len(), 1);
        let expected = [
            (RowFault::FieldCount, 2, 9),
            (RowFault::CutShort, 1, 11),
            (RowFault::JobId, 1, 3),
            (RowFault::Submit, 1, 4),
            (RowFault::TimeLimit, 1, 7),
            (RowFault::Nodes, 1, 8),
            (RowFault::StartBeforeSubmit, 1, 5),
            (RowFault::EndBeforeStart, 1, 6),
        ];
        let expected = expected.map(|(fault, rows, first_line)| RejectedRows {
            fault,
            rows,
            first_line,
        });
        assert_eq!(trace.sources[0].rejected, expected);
    }

    #[test]
    fn elements_of_all_arrays_are_limited() {
        let mut text = "JobID|Submit|Start|End|TimelimitRaw|NNodes\n".to_owned();
        for array in 1..=60 {
            text += &format!("{array}_[1-99999]|2023-01-01T00:00:00|Unknown|Unknown|60|1\n");
        }
        text += "61|2023-01-01T00:00:00|Unknown|Unknown|60|1\n";
        let trace = read(&text);
        assert_eq!(trace.jobs.len(), 5 * 99_999 + 1);
        let expected = RejectedRows {
            fault: RowFault::ManyElements,
            rows: 55,
            first_line: 7,
        };
        assert_eq!(trace.sources[0].rejected, [expected]);
    }

    #[test]
    fn overlapping_exports_are_merged() {
        let head = "JobID|Submit|Start|End|TimelimitRaw|NNodes\n";
        let earlier = format!(
            "{head}1|2023-01-01T00:00:00|Unknown|Unknown|60|1\n2|2023-01-01T00:01:00|2023-01-01T00:02:00|Unknown|60|1\n"
        );
        let later = format!(
            "{head}1|2023-01-01T00:00:00|2023-01-01T00:05:00|2023-01-01T00:06:00|60|1\n\
             2|2023-01-01T00:01:00|2023-01-01T00:02:00|2023-01-01T00:04:00|60|1\n"
        );
        let zone = Some("UTC");
        let one = read_parts(&[&later], zone).expect("read");
        for parts in [[&earlier[..], &later], [&later, &earlier]] {
            let both = read_parts(&parts, zone).expect("read");
            assert_eq!(described_jobs(&both), described_jobs(&one));
            assert_eq!(both.repeated_rows, 2);
        }
        let joined = read_parts(&[&(earlier.clone() + &later)], zone).expect("read");
        assert_eq!(
            described_jobs(&joined),
            described_jobs(&one),
            "a head may come again"
        );
    }

    /// Slurm 24.11 writes the largest 32-bit numbers for times that it does not know.
    #[test]
    fn jobs_whose_node_failed_end_after_their_run_time() {
        let job = |state: &str, start: u32, end: u32| {
            let text = format!(
                r#"{{"meta": {{}}, "errors": [], "jobs": [{{"job_id": 7, "array": {{"job_id": 0, "task_id": null}}, "user": "ada", "allocation_nodes": 2,
                "time": {{"elapsed": 100, "eligible": 1000, "end": {end}, "start": {start}, "submission": 1000, "limit": 60}},
                "state": {{"current": "{state}", "reason": "None"}}}}]}}"#
            );
            described_jobs(&read(&text))
        };
        assert_eq!(
            job("NODE_FAIL", 1100, 0),
            ["7 2 0 0 100 200 100 3600 Ended"]
        );
        assert_eq!(job("RUNNING", 1100, 0), ["7 2 0 0 100 - - 3600 Running"]);
        let unknown = 4_294_967_294;
        assert_eq!(
            job("PENDING", unknown, unknown),
            ["7 2 0 0 - - - 3600 Pending"]
        );
    }

    /// Slurm 22.05 writes plain numbers, 23.11 writes objects.
    #[test]
    fn the_json_of_old_and_new_slurms_is_read() {
        let old = r#"{"meta": {}, "errors": [], "jobs": [
            {"job_id": 7, "array": {"job_id": 0, "task_id": null}, "het": {"job_id": 0, "job_offset": null}, "user": "ada", "name": "secret",
             "allocation_nodes": 2, "tres": {"allocated": [{"type": "node", "name": null, "id": 4, "count": 2}]},
             "time": {"elapsed": 100, "eligible": 1000, "end": 1200, "start": 1100, "submission": 1000, "limit": 60},
             "state": {"current": "COMPLETED", "reason": "None"}},
            {"job_id": 9, "array": {"job_id": 8, "task_id": 1}, "user": "ada", "allocation_nodes": 1,
             "time": {"elapsed": 0, "eligible": 0, "end": 0, "start": 0, "submission": 1010, "limit": null},
             "state": {"current": "PENDING", "reason": "Dependency"}}]}"#;
        let new = r#"{"jobs": [
            {"job_id": 7, "array": {"job_id": 0, "task_id": {"set": false, "infinite": false, "number": 0}, "task": ""}, "user": "ada",
             "het": {"job_id": 0, "job_offset": {"set": false, "infinite": false, "number": 0}}, "allocation_nodes": 0,
             "tres": {"allocated": [{"type": "node", "count": 2}], "requested": []},
             "time": {"elapsed": 100, "eligible": 1000, "end": 1200, "start": 1100, "submission": 1000,
                      "limit": {"set": true, "infinite": false, "number": 60}}, "state": {"current": ["COMPLETED"]}},
            {"job_id": 9, "array": {"job_id": 8, "task_id": {"set": true, "infinite": false, "number": 1}}, "user": "ada",
             "tres": {"requested": [{"type": "node", "count": 1}]},
             "time": {"elapsed": 0, "eligible": 0, "end": 0, "start": 0, "submission": 1010,
                      "limit": {"set": false, "infinite": true, "number": 0}}, "state": {"current": ["PENDING"]}}]}"#;
        let expected = [
            "7 2 0 0 100 200 100 3600 Ended",
            "8_1 1 10 10 - - - - Pending",
        ];
        for text in [old, new] {
            assert_eq!(described_jobs(&read(text)), expected);
        }

        let unknown = old.replace("\"submission\": 1000", "\"submission\": \"soon\"");
        let refused = refusal(&unknown);
        assert!(
            refused.contains("not the JSON of a known version of `sacct`")
                && refused.contains("line 4"),
            "{refused}"
        );
        assert!(
            refused.contains("a number, null, or an object"),
            "{refused}"
        );
        let missing = refusal(&old.replace("\"time\"", "\"times\""));
        assert!(missing.contains("missing field `time`"), "{missing}");
        assert!(refusal(&old[..old.len() / 2]).contains("EOF"));
    }

    #[test]
    fn the_standard_workload_format_is_read() {
        let head = "; UnixStartTime: 1000\n; TimeZoneString: Europe/Berlin\n; MaxNodes: 10\n; MaxProcs: 80\n";
        let rows = "1 0 10 100 16 -1 -1 16 300 -1 1 5 -1 -1 1 -1 -1 -1\n\
                    2 5 -1 200 -1 -1 -1 9 -1 -1 1 6 -1 -1 1 -1 -1 -1\n\
                    3 6 40 0 -1 -1 -1 8 60 -1 5 6 -1 -1 1 -1 -1 -1\n\
                    4 7 10 30 8 -1 -1 8 60 -1 2 6 -1 -1 1 -1 -1 -1\n\
                    5 8 -1 -1 -1 -1 -1 8 60 -1 5 6 -1 -1 1 -1 -1 -1\n\
                    6 9 1 1 -1 -1 -1 -1 60 -1 1 -1 -1 -1 1 -1 -1 -1\n\
                    7 10 1 1 8 -1\n";
        let trace = read_parts(&[&(head.to_owned() + rows)], None).expect("read");
        let expected = [
            "1 2 0 0 10 110 100 300 Ended",
            "2 2 5 5 - - 200 200 Ended",
            "3 1 6 6 - 46 - 60 Cancelled",
        ];
        assert_eq!(described_jobs(&trace), expected);
        assert_eq!(trace.jobs[0].submit_s, 1000);
        assert_eq!(trace.zone.name, "Europe/Berlin");
        let source = &trace.sources[0];
        assert_eq!(
            (source.rows, source.step_rows, source.limits_from_runs),
            (6, 1, 1)
        );
        let faults: Vec<RowFault> = source.rejected.iter().map(|rows| rows.fault).collect();
        assert_eq!(
            faults,
            [RowFault::FieldCount, RowFault::Nodes, RowFault::NoOutcome]
        );

        let bare = read_parts(&[rows], None).expect("read without a head");
        assert_eq!(bare.jobs[0].nodes, 16);
        assert_eq!(source.cluster_nodes, Some(10));
        assert_eq!(bare.sources[0].cluster_nodes, None);
    }

    /// The nodes of the cluster are in the unit of the nodes of jobs.
    #[test]
    fn the_head_of_a_workload_states_the_nodes_of_the_cluster() {
        let row = "1 0 10 100 16 -1 -1 16 300 -1 1 5 -1 -1 1 -1 -1 -1\n";
        let stated = |head: &str, procs_per_node: Option<u32>| {
            let dir = tempfile::tempdir().expect("a directory");
            let file = dir.path().join("workload.swf");
            fs_err::write(&file, format!("{head}{row}")).expect("written");
            let options = TraceOptions {
                zone: None,
                procs_per_node,
            };
            let salt = OwnerSalt::random().expect("random");
            let read = read_trace(&[file], &options, &salt).expect("read");
            (read.sources[0].cluster_nodes, read.jobs[0].nodes)
        };
        let mira = "; MaxNodes: 49152\n; MaxProcs: 786432\n";
        assert_eq!(stated(mira, None), (Some(49_152), 1));
        assert_eq!(stated(mira, Some(8)), (Some(98_304), 2));
        // Without a whole number of processors per node, nodes are processors.
        assert_eq!(
            stated("; MaxNodes: 3\n; MaxProcs: 100\n", None),
            (Some(100), 16)
        );
        assert_eq!(stated("; MaxProcs: 100\n", None), (Some(100), 16));
        assert_eq!(stated("; MaxNodes: 64\n", None), (Some(64), 16));
        assert_eq!(stated("; MaxNodes: 0\n", None), (None, 16));
        assert_eq!(stated("; MaxNodes: many\n", None), (None, 16));
    }

    #[test]
    fn the_published_log_is_read() {
        let text = "3\n       JobID    JobName    UID               Start              Submit                 End   Priority TimelimitR ExitCode   NNodes\n\
            ------------ ---------- ------ ------------------- ------------------- ------------------- ---------- ---------- -------- --------\n\
            1\ta job\t00000\t2022-11-05T12:00:00\t2022-11-05T11:00:00\t2022-11-07T11:00:00\t1234\t2880\t0:0\t2\n\
            2\tx\t00001\t2022-11-05T12:30:00\t2022-11-05T12:30:00\t2022-11-05T12:30:00\t1234\t60\t0:0\t2\n\
            3\tx\t00001\t810\t2022-11-05T12:30:00\t2022-11-05T12:30:00\t2022-11-05T12:30:00\t1234\t60\t0:0\t2\n";
        let trace = read(text);
        assert_eq!(
            described_jobs(&trace),
            [
                "1 2 0 0 3600 176400 172800 172800 Ended",
                "2 2 5400 5400 - 5400 - 3600 Cancelled"
            ]
        );
        let source = &trace.sources[0];
        assert_eq!(source.form, SourceForm::SacctTable);
        assert_eq!(source.rejected[0].first_line, 6);
        assert_eq!(source.announced_lines, None);
        let short = read(&text.replacen("3\n", "30\n", 1));
        assert_eq!(short.sources[0].announced_lines, Some(31));
    }

    #[test]
    fn tables_are_divided_below_their_dashes() {
        let text = "JobID             User              Submit               Start                 End  Timelimit   NNodes      State \n\
            ------------ --------- ------------------- ------------------- ------------------- ---------- -------- ---------- \n\
            1                  eve 2022-11-05T11:00:00 2022-11-05T12:00:00 2022-11-05T13:00:00 Partition+     1.50K  COMPLETED \n\
            2                      2022-11-05T11:00:00                None 2022-11-05T12:00:00   01:00:00        1 CANCELLED+ \n\
            3                  eve 2022-11-05T11:00:00 2022-11-05T12:00:00 2022-11-05T13:00:00   01:00:00        2 OUT_OF_ME+ \n\
            3.batch                2022-11-05T12:00:00 2022-11-05T12:00:00 2022-11-05T13:00:00                   2 OUT_OF_ME+ \n";
        let trace = read(text);
        assert_eq!(
            described_jobs(&trace),
            [
                "1 1536 0 0 3600 7200 3600 - Ended",
                "2 1 0 0 - 3600 - 3600 Cancelled",
                "3 2 0 0 3600 7200 3600 3600 Ended"
            ]
        );
        assert_eq!(trace.sources[0].step_rows, 1);
    }

    #[test]
    fn exports_of_all_forms_are_read_alike() {
        let form = "JobID|AllocNodes|ReqNodes|Submit|Start|End|Elapsed|Timelimit|State\n\
            5|2|1|2022-11-05T11:00:00|2022-11-05T12:00:00|2022-11-05T13:00:00|INVALID|NOT_SET|COMPLETED\n\
            6|0|3|2022-11-05T11:00:00|Unknown|-|00:00:00|60|PENDING";
        let described = described_jobs(&read(form));
        assert_eq!(described.len(), 2);
        let quoted = form.replace('|', "\",\"").replace('\n', "\"\n\"");
        for other in [
            format!("{form}\n"),
            format!("\u{feff}{form}"),
            format!("$ sacct -X -P\nsacct: a warning\n{form}"),
            form.replace('|', ","),
            form.replace('|', ";"),
            format!("\"{quoted}\""),
            form.replace("JobID", "JobIDRaw"),
            form.replace("T11:00:00", "T11:00:00-05:00"),
            form.replace("T11:00:00", "T16:00:00Z"),
        ] {
            assert_eq!(described_jobs(&read(&other)), described, "{other}");
        }
    }

    #[test]
    fn invalid_files_are_rejected_with_a_reason() {
        assert!(refusal("").contains("is empty"));
        assert!(refusal("  \n\n").contains("is empty"));
        assert!(refusal("hello\n").contains("line 1 is `hello`"));
        assert!(refusal("12\n").contains("expected the header"));
        assert!(refusal(SACCT).contains("--tz America/Chicago"));
        let without = SACCT.replace("Timelimit", "Other");
        assert!(refusal(&without).contains("no column Timelimit or TimelimitRaw"));
        let empty = "JobID|Submit|Start|End|TimelimitRaw|NNodes\n";
        assert!(refusal(empty).contains("the trace has no rows"));
        let broken = format!("{empty}x|1|2|3|60|1\n");
        assert!(refusal(&broken).contains("invalid job id, first at line 2"));
        let steps = format!("{empty}1.batch|1|2|3|60|1\n");
        assert!(refusal(&steps).contains("rows of job steps alone"));
        let failed = r#"{"jobs": [], "errors": [{"error": "no connection"}]}"#;
        assert!(refusal(failed).contains("no connection"));
        assert!(refusal("JobID|Submit\u{0}").contains("no column"));
    }

    #[test]
    fn trace_keys_depend_on_files_and_zone() {
        let key = |text: &str, zone: &str| {
            let read = read_parts(&[text], Some(zone)).expect("read");
            trace_key(&read, &TraceOptions::default()).expect("a key")
        };
        let one = key(SACCT, "UTC");
        assert_eq!(one, key(SACCT, "UTC"));
        assert_ne!(one, key(SACCT, "America/Chicago"));
        assert_ne!(one, key(&SACCT.replace("|eve|", "|bob|"), "UTC"));
        assert_eq!(JobNumber::single(5).to_string(), "5");
        assert!(JobFate::Ended > JobFate::Pending);
    }
}
