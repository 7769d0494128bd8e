//! Reads the ads of a history, and writes them as an event log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::job_key::PastJobKey;
use super::past_event::{PastEvent, PastEventBody, description_record, stamp};
use super::past_job::PastJob;
use crate::job_ads::for_each_ad;
use htcondor_eventlog::{GENERIC, HISTORY_ORIGIN};
use poolcast_base::error::hinted;
use poolcast_base::output;

/// The attributes of ended jobs that this program requests from `condor_history`.
pub const HISTORY_ATTRIBUTES: &str = "ClusterId,ProcId,GlobalJobId,QDate,Owner,JobBatchName,DAGNodeName,TransferInput,Iwd,RequestCpus,RequestGPUs,\
    RequestMemory,RequestDisk,MemoryUsage,ResidentSetSize,JobStatus,LastJobStatus,EnteredCurrentStatus,CompletionDate,ExitCode,\
    ExitBySignal,ExitSignal,RemoveReason,NumHolds,LastHoldReasonCode,LastHoldReasonSubCode,LastHoldReason,HoldReasonCode,\
    HoldReasonSubCode,HoldReason,NumShadowStarts,JobRunCount,NumJobStarts,JobStartDate,JobLastStartDate,JobCurrentStartDate,\
    LastVacateTime,RemoteWallClockTime,LastRemoteWallClockTime,LastRemoteHost";

/// The attributes of runs that this program requests from `condor_history -epochs`.
pub const RUN_ATTRIBUTES: &str = "ClusterId,ProcId,GlobalJobId,QDate,Owner,JobBatchName,DAGNodeName,TransferInput,Iwd,RequestCpus,RequestGPUs,\
    RequestMemory,RequestDisk,MemoryUsage,ResidentSetSize,JobCurrentStartDate,EpochWriteDate,HoldReasonCode,HoldReasonSubCode,\
    HoldReason,VacateReasonCode,VacateReasonSubCode,VacateReason,RemoteHost,LastRemoteHost";

/// Beginning of the name of a file with the ad of one job, in `PER_JOB_HISTORY_DIR`.
const JOB_FILE_PREFIX: &str = "history.";

/// The jobs of a history.
#[derive(Debug, Default)]
pub struct PastJobs {
    jobs: BTreeMap<PastJobKey, PastJob>,
    /// Ads that identify no job.
    skipped: usize,
}

/// Numbers of the jobs and of the holds in the log of a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// Jobs, except those that only the queue knows.
    pub jobs: usize,
    /// Holds of these jobs.
    pub holds: usize,
    /// Holds whose times are estimates.
    pub estimated: usize,
    /// Earlier holds of these jobs that the history does not show. Each led to another hold.
    pub missing: usize,
    /// Ads that were skipped, because they lack the id or the submit time of a job.
    pub skipped: usize,
}

impl PastJobs {
    /// Adds the ads in `input`: the output of `condor_history`, with `-json` or `-l`, and perhaps with
    /// `-epochs`.
    ///
    /// # Errors
    /// Fails if `input` cannot be read, or if it has no ads.
    pub fn read(&mut self, input: impl BufRead) -> Result<()> {
        for_each_ad(input, |ad| {
            let Ok(ad) = ad else { return };
            match PastJobKey::of_ad(&ad) {
                Some(key) => {
                    let submit_s = key.submit_s;
                    self.jobs.entry(key).or_default().add(&ad, submit_s);
                }
                None => self.skipped += 1,
            }
        })
        .with_context(|| {
            hinted(
                "cannot parse the text as output of `condor_history`",
                format!("condor_history -json -attributes {HISTORY_ATTRIBUTES}"),
            )
        })
    }

    /// Returns true if there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Requires that there are jobs.
    ///
    /// # Errors
    /// Fails if there are none.
    pub fn ensure_usable(&self) -> Result<()> {
        ensure!(
            !self.jobs.is_empty(),
            hinted(
                format!(
                    "the history has no jobs that can be used; {} without an id or a submit time",
                    output::counted(self.skipped, "ad")
                ),
                format!("condor_history -json -attributes {HISTORY_ATTRIBUTES}"),
            )
        );
        Ok(())
    }

    /// Writes the events of the jobs as an event log into `output`. The log of each access point has
    /// a header of its own, which states that it was made from a history.
    ///
    /// # Errors
    /// Fails if there are no jobs, or if `output` cannot be written.
    pub fn write_log(&self, output: &mut impl Write) -> Result<HistoryCounts> {
        self.ensure_usable()?;
        let mut counts = HistoryCounts {
            skipped: self.skipped,
            ..HistoryCounts::default()
        };
        let mut events_by_schedd: BTreeMap<&str, Vec<(PastEvent, &PastJobKey, &PastJob)>> =
            BTreeMap::new();
        for (key, job) in &self.jobs {
            let timeline = job.timeline(key.submit_s);
            if !job.is_of_queue() {
                counts.jobs += 1;
                counts.holds += timeline.holds;
            }
            counts.estimated += usize::from(timeline.has_estimate);
            counts.missing += timeline.missing_holds;
            let events = events_by_schedd.entry(&key.schedd).or_default();
            events.extend((timeline.events.into_iter()).map(|event| (event, key, job)));
        }
        // The number of missing holds counts for all access points, so one header has it.
        let mut missing = counts.missing;
        for (schedd, mut events) in events_by_schedd {
            events.sort_by_key(|(event, ..)| event.time_s);
            write_schedd_log(output, schedd, std::mem::take(&mut missing), &events)?;
        }
        Ok(counts)
    }
}

/// Writes the log of one access point, whose `events` are sorted by time. Its header has the number of
/// `missing` holds.
fn write_schedd_log(
    output: &mut impl Write,
    schedd: &str,
    missing: usize,
    events: &[(PastEvent, &PastJobKey, &PastJob)],
) -> Result<()> {
    let created_s = events.first().map_or(0, |(event, ..)| event.time_s);
    let info = format!(
        "Global JobLog: ctime={created_s} id={HISTORY_ORIGIN}.{created_s} sequence=1 size=0 events=0 offset=0 event_off=0 \
         max_rotation=0 creator_name=<{schedd}> origin={HISTORY_ORIGIN} missing_holds={missing}"
    );
    let header = json!({
        "EventTypeNumber": GENERIC, "EventTime": stamp(created_s),
        "Cluster": -1, "Proc": -1, "Subproc": -1, "Info": info,
    });
    writeln!(output, "{header}")?;
    for (event, key, job) in events {
        writeln!(output, "{}", event.record(key))?;
        if event.body == PastEventBody::Submitted {
            writeln!(output, "{}", description_record(key, job.description()))?;
        }
    }
    Ok(())
}

impl HistoryCounts {
    /// Describes the history.
    pub fn words(&self) -> String {
        let mut words = format!(
            "the history shows {} of {}",
            output::counted(self.holds, "hold"),
            output::counted(self.jobs, "job"),
        );
        if self.estimated > 0 {
            let estimated = output::with_commas(self.estimated as u64);
            words.push_str(&format!(", {estimated} of them at an estimated time"));
        }
        if self.missing > 0 {
            let missing = output::counted(self.missing, "earlier hold");
            words.push_str(&format!(
                "; it lacks {missing} of these jobs, each of which led to another hold, so releases look better here than they were"
            ));
        }
        if self.skipped > 0 {
            let skipped = output::counted(self.skipped, "ad");
            words.push_str(&format!("; {skipped} could not be used"));
        }
        words
    }
}

/// Returns the files of jobs in `dir`, which is a `PER_JOB_HISTORY_DIR`, in the order of their names.
///
/// # Errors
/// Fails if the directory cannot be read, or if it has no such file.
pub fn history_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str);
        if name.is_some_and(is_job_file) {
            files.push(path);
        }
    }
    ensure!(
        !files.is_empty(),
        hinted(
            format!(
                "`{}` has no files of jobs, such as `history.123.0`",
                dir.display()
            ),
            "name the directory that `condor_config_val PER_JOB_HISTORY_DIR` prints"
        )
    );
    files.sort();
    Ok(files)
}

/// Returns true if `name` is `history.CLUSTER.PROC`.
fn is_job_file(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    name.strip_prefix(JOB_FILE_PREFIX)
        .and_then(|id| id.split_once('.'))
        .is_some_and(|(cluster, proc)| is_number(cluster) && is_number(proc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The minute in which the jobs of the test data ran, epoch seconds.
    const MINUTE_S: i64 = 1_795_648_800;

    fn test_file(name: &str) -> Vec<u8> {
        fs_err::read(format!("../../tests/data/history/{name}")).expect("read")
    }

    /// Returns the records of the log of the history in `inputs`, and its counts.
    fn written(inputs: &[&[u8]]) -> (Vec<Value>, HistoryCounts) {
        let mut jobs = PastJobs::default();
        for input in inputs {
            jobs.read(*input).expect("ads");
        }
        let mut log = Vec::new();
        let counts = jobs.write_log(&mut log).expect("a log");
        let lines = log
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let records = lines.map(|line| serde_json::from_slice(line).expect("JSON"));
        (records.collect(), counts)
    }

    /// Returns the events of a job, each as its number and its second.
    fn events_of(records: &[Value], job: (i64, i64)) -> Vec<(i64, i64)> {
        let number = |record: &Value, name: &str| record[name].as_i64().expect("a number");
        let mut events = Vec::new();
        for record in records {
            let event = number(record, "EventTypeNumber");
            if event != 28 && (number(record, "Cluster"), number(record, "Proc")) == job {
                let stamp: jiff::Timestamp = (record["EventTime"].as_str().expect("a stamp"))
                    .parse()
                    .expect("a time");
                events.push((event, stamp.as_second() - MINUTE_S));
            }
        }
        events
    }

    /// The times are those in the event log of the same pool, except for the releases, which are
    /// at the start of the next run: the jobs were released at 35 and 50.
    #[test]
    fn runs_of_a_real_pool_show_each_hold() {
        let (records, counts) = written(&[&test_file("jobs.json"), &test_file("runs.json")]);
        assert_eq!(
            (counts.jobs, counts.holds, counts.estimated, counts.missing),
            (12, 19, 0, 0)
        );
        let disk = [
            (0, 12),
            (1, 17),
            (12, 18),
            (13, 37),
            (1, 37),
            (12, 38),
            (13, 52),
            (1, 52),
            (5, 53),
        ];
        assert_eq!(events_of(&records, (2, 0)), disk);
        let removed_while_held = [
            (0, 13),
            (1, 17),
            (12, 23),
            (13, 37),
            (1, 37),
            (12, 43),
            (13, 52),
            (1, 52),
            (12, 58),
            (9, 68),
        ];
        assert_eq!(events_of(&records, (7, 0)), removed_while_held);
        let submitted_on_hold = [(0, 13), (12, 13), (13, 37), (1, 37), (5, 39)];
        assert_eq!(events_of(&records, (8, 0)), submitted_on_hold);
        assert_eq!(events_of(&records, (6, 0)), [(0, 13), (1, 17), (5, 19)]);
    }

    /// The last holds were at 38, 42 and 58, and the policy of job 7 is counted three times a hold.
    #[test]
    fn an_ad_alone_shows_the_last_hold_at_an_estimated_time() {
        let (records, counts) = written(&[&test_file("jobs.json")]);
        assert_eq!(
            (counts.jobs, counts.holds, counts.estimated, counts.missing),
            (12, 9, 8, 10)
        );
        assert_eq!(
            events_of(&records, (2, 0)),
            [(0, 12), (1, 37), (12, 38), (13, 52), (1, 52), (5, 53)]
        );
        assert_eq!(
            events_of(&records, (5, 0)),
            [(0, 13), (1, 37), (12, 42), (13, 52), (1, 52), (5, 54)]
        );
        assert_eq!(
            events_of(&records, (7, 0)),
            [(0, 13), (1, 52), (12, 58), (9, 68)]
        );
        assert!(
            counts.words().contains("lacks 10 earlier holds"),
            "{}",
            counts.words()
        );
        let header = records[0]["Info"].as_str().expect("a header");
        assert!(
            header.ends_with("creator_name=<localhost> origin=condor_history missing_holds=10")
        );
    }

    /// The end of a job must not change the time of its hold.
    #[test]
    fn estimates_do_not_depend_on_the_last_run() {
        let hold_of = |ended: &str| {
            let ad = format!(
                r#"[{{"ClusterId": 1, "ProcId": 0, "QDate": 1795648801, "NumHolds": 1, "NumShadowStarts": 2, "LastHoldReasonCode": 12,
                "JobStartDate": 1795648802, "JobLastStartDate": 1795648802, "JobCurrentStartDate": 1795648830, {ended}}}]"#
            );
            let (records, _) = written(&[ad.as_bytes()]);
            let events = events_of(&records, (1, 0));
            events.into_iter().find(|(number, _)| *number == 12)
        };
        let short = r#""JobStatus": 4, "ExitCode": 0, "CompletionDate": 1795648831, "RemoteWallClockTime": 8.0, "LastRemoteWallClockTime": 1.0"#;
        let long = r#""JobStatus": 4, "ExitCode": 3, "CompletionDate": 1795649830, "RemoteWallClockTime": 1007.0, "LastRemoteWallClockTime": 1000.0"#;
        assert_eq!(hold_of(short), Some((12, 9)));
        assert_eq!(hold_of(long), Some((12, 9)));
    }

    /// A request may have been raised to repair a job, after the hold that a sample is about.
    #[test]
    fn requests_are_those_before_the_first_hold() {
        let ad = |more: &str| {
            format!(
                r#"{{"ClusterId": 1, "ProcId": 0, "QDate": 1795648801, "Owner": "ada", {more}}}"#
            )
        };
        let run = |end_s, request| {
            ad(&format!(
                r#""JobCurrentStartDate": 1795648802, "EpochWriteDate": {end_s}, "RequestMemory": {request}, "HoldReasonCode": 34"#
            ))
        };
        let ended = |hold: &str| {
            ad(&format!(
                r#""JobStatus": 4, "ExitCode": 0, "CompletionDate": 1795648831, "RequestMemory": 4096{hold}"#
            ))
        };
        let last_hold = r#", "LastHoldReasonCode": 34, "JobCurrentStartDate": 1795648830"#;
        let request = |ads: &[String]| {
            let list = format!("[{}]", ads.join(", "));
            let (records, _) = written(&[list.as_bytes()]);
            let described = records.iter().find(|one| one["EventTypeNumber"] == 28);
            let described = described.expect("a description");
            assert_eq!(described["Owner"], "ada");
            described["RequestMemory"].as_i64()
        };
        assert_eq!(request(&[ended("")]), Some(4096));
        assert_eq!(request(&[ended(last_hold)]), None);
        let runs = [run(1_795_648_820, 1024), run(1_795_648_810, 512)];
        let all = [ended(last_hold), runs[0].clone(), runs[1].clone()];
        assert_eq!(request(&all), Some(512));
    }

    /// A job that ran more often than it was held was evicted, perhaps after its hold.
    #[test]
    fn a_hold_among_evictions_is_placed_before_them() {
        let ad = br#"[{"ClusterId": 1, "ProcId": 0, "QDate": 1795648801, "NumHolds": 1, "NumShadowStarts": 4, "LastHoldReasonCode": 12,
            "JobStatus": 4, "ExitCode": 0, "CompletionDate": 1795648831, "RemoteWallClockTime": 7.0, "LastRemoteWallClockTime": 1.0,
            "JobStartDate": 1795648802, "JobLastStartDate": 1795648820, "JobCurrentStartDate": 1795648830}]"#;
        let (records, _) = written(&[ad]);
        let expected = [(0, 1), (1, 2), (12, 4), (13, 30), (1, 30), (5, 31)];
        assert_eq!(events_of(&records, (1, 0)), expected);
    }

    #[test]
    fn a_held_job_of_the_queue_is_held_at_the_end() {
        let ad = br#"[{"ClusterId": 1, "ProcId": 0, "QDate": 1795648801, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 2,
            "HoldReason": "no file", "EnteredCurrentStatus": 1795648809, "JobCurrentStartDate": 1795648805}]"#;
        let (records, counts) = written(&[ad]);
        assert_eq!(events_of(&records, (1, 0)), [(0, 1), (1, 5), (12, 9)]);
        assert_eq!((counts.jobs, counts.holds, counts.estimated), (0, 0, 0));
    }

    /// The ads of runs show the earlier holds of a job that is held, and perhaps the present one.
    #[test]
    fn runs_of_a_held_job_come_before_its_hold() {
        let run = |start_s: i64, end_s: i64| {
            format!(
                r#"{{"ClusterId": 1, "ProcId": 0, "QDate": 1795648801, "JobCurrentStartDate": {}, "EpochWriteDate": {},
                "HoldReasonCode": 13, "HoldReason": "no file"}}"#,
                MINUTE_S + start_s,
                MINUTE_S + end_s
            )
        };
        let held = |start_s: i64, held_s: i64| {
            format!(
                r#"{{"ClusterId": 1, "ProcId": 0, "QDate": 1795648801, "JobStatus": 5, "HoldReasonCode": 13, "HoldReason": "no file",
                "EnteredCurrentStatus": {}, "JobCurrentStartDate": {}}}"#,
                MINUTE_S + held_s,
                MINUTE_S + start_s
            )
        };
        let events = |ads: &[String]| {
            let (records, _) = written(&[format!("[{}]", ads.join(",")).as_bytes()]);
            events_of(&records, (1, 0))
        };
        let once = [(0, 1), (1, 5), (12, 9)];
        assert_eq!(events(&[run(5, 8), held(5, 9)]), once);
        let again = [(13, 20), (1, 20), (12, 25)];
        let twice = [&once[..], &again].concat();
        assert_eq!(events(&[run(5, 9), held(20, 25)]), twice);
        assert_eq!(events(&[run(5, 9), run(20, 24), held(20, 25)]), twice);
        let without_run = [&once[..], &[(13, 25), (12, 25)]].concat();
        assert_eq!(events(&[run(5, 9), held(5, 25)]), without_run);
    }

    #[test]
    fn hostile_ads_make_no_records() {
        let ads = br#"[{"ClusterId": 1}, {"ClusterId": -1, "ProcId": 0, "QDate": 5}, {"ClusterId": 1, "ProcId": 0, "QDate": 99999999999999},
            {"ClusterId": 1, "ProcId": 0, "QDate": 5, "JobStatus": 4, "ExitCode": 0, "CompletionDate": 9223372036854775807},
            {"ClusterId": 2, "ProcId": 0, "QDate": 5, "GlobalJobId": "a> b\n...\n#2.0#5", "JobStatus": 3, "RemoveReason": "x\n...\n012",
             "EnteredCurrentStatus": 9, "JobCurrentStartDate": 7, "RemoteWallClockTime": 1e300, "LastRemoteWallClockTime": -1e300,
             "NumShadowStarts": -9223372036854775807, "NumHolds": 9223372036854775807, "LastJobStatus": 2, "LastHoldReasonCode": 12},
            {"ClusterId": 3, "ProcId": 0, "QDate": 5, "EpochWriteDate": 4, "JobCurrentStartDate": 8, "HoldReasonCode": 12, "Owner": "a\"b"}]"#;
        let (records, counts) = written(&[ads]);
        assert_eq!((counts.jobs, counts.skipped), (2, 3));
        assert_eq!(
            records[0]["Info"]
                .as_str()
                .map(|info| info.contains("<unknown>")),
            Some(true)
        );
        let numbers = |job| {
            Vec::from_iter(
                events_of(&records, job)
                    .into_iter()
                    .map(|(number, _)| number),
            )
        };
        assert_eq!(numbers((1, 0)), [0]);
        assert_eq!(numbers((2, 0)), [0, 12, 13, 1, 9]);
        assert_eq!(numbers((3, 0)), [0, 1, 12]);
        assert!(PastJobs::default().write_log(&mut Vec::new()).is_err());
    }

    #[test]
    fn the_reader_knows_that_the_log_is_a_history() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut jobs = PastJobs::default();
        jobs.read(&*test_file("jobs.json")).expect("ads");
        let path = dir.path().join("history.log");
        let mut log = Vec::new();
        jobs.write_log(&mut log).expect("a log");
        fs_err::write(&path, log).expect("written");

        let mut holds = 0;
        let options = htcondor_eventlog::ReadOptions::default();
        let read = htcondor_eventlog::read(&path, &options, |_| {}, &mut |batch| {
            assert_eq!(batch.ap, "localhost");
            assert!(
                batch
                    .ads
                    .iter()
                    .all(|ad| ad.owner.as_deref() == Some("ada"))
            );
            let is_hold = |event: &&htcondor_eventlog::JobEvent| event.number == 12;
            holds += batch.events.iter().filter(is_hold).count();
            Ok(())
        })
        .expect("read");
        let generation = read.generation.expect("a header");
        assert_eq!((generation.missing_holds, holds), (Some(10), 9));
        assert!(read.anomalies.is_empty(), "{:?}", read.anomalies);
    }

    #[test]
    fn only_files_of_jobs_are_read_in_a_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(history_files(dir.path()).is_err());
        for name in [
            "history.12.0",
            "history.3.1",
            "history",
            "history.1",
            "history.old.0",
            "x.1.0",
        ] {
            fs_err::write(dir.path().join(name), "").expect("written");
        }
        let found = history_files(dir.path()).expect("files");
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["history.12.0", "history.3.1"]);
    }
}
