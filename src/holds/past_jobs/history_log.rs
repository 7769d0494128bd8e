//! Reads the ads of a history, and writes them as an event log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::past_event::{PastEvent, PastEventBody, description_record, stamp};
use super::past_job::{PastJob, PastJobKey};
use crate::job_ads::for_each_history_ad;
use htcondor_eventlog::{GENERIC, HISTORY_ORIGIN};
use poolcast_base::error::hinted;
use poolcast_base::output;

/// The attributes of ended jobs that this program requests from `condor_history`.
pub const HISTORY_ATTRIBUTES: &str = "ClusterId,ProcId,GlobalJobId,QDate,Owner,JobBatchName,DAGNodeName,RequestCpus,RequestGPUs,\
    RequestMemory,RequestDisk,MemoryUsage,ResidentSetSize,JobStatus,LastJobStatus,EnteredCurrentStatus,CompletionDate,ExitCode,\
    ExitBySignal,ExitSignal,RemoveReason,NumHolds,LastHoldReasonCode,LastHoldReasonSubCode,LastHoldReason,HoldReasonCode,\
    HoldReasonSubCode,HoldReason,NumShadowStarts,JobRunCount,NumJobStarts,JobStartDate,JobLastStartDate,JobCurrentStartDate,\
    LastVacateTime,RemoteWallClockTime,LastRemoteWallClockTime,LastRemoteHost";

/// The attributes of runs that this program requests from `condor_history -epochs`.
pub const RUN_ATTRIBUTES: &str = "ClusterId,ProcId,GlobalJobId,QDate,Owner,JobBatchName,DAGNodeName,RequestCpus,RequestGPUs,\
    RequestMemory,RequestDisk,MemoryUsage,ResidentSetSize,JobCurrentStartDate,EpochWriteDate,HoldReasonCode,HoldReasonSubCode,\
    HoldReason,VacateReasonCode,VacateReasonSubCode,VacateReason,RemoteHost,LastRemoteHost";

/// Beginning of the name of a file with the ad of one job, in `PER_JOB_HISTORY_DIR`.
const JOB_FILE_PREFIX: &str = "history.";

/// Number of known holds for each missing one, from which on shares of outcomes are about right.
const MIN_HOLDS_PER_MISSING: usize = 20;

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
    /// Jobs.
    pub jobs: usize,
    /// Holds.
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
        for_each_history_ad(input, |ad| match PastJobKey::of_ad(&ad) {
            Some(key) => {
                let submit_s = key.submit_s;
                self.jobs.entry(key).or_default().add(&ad, submit_s);
            }
            None => self.skipped += 1,
        })
        .with_context(|| {
            hinted(
                "cannot parse the text as output of `condor_history`",
                format!("condor_history -json -attributes {HISTORY_ATTRIBUTES}"),
            )
        })
    }

    /// Writes the events of the jobs as an event log into `output`. The log of each access point has
    /// a header of its own, which states that it was made from a history.
    ///
    /// # Errors
    /// Fails if there are no jobs, or if `output` cannot be written.
    pub fn write_log(&self, output: &mut impl Write) -> Result<HistoryCounts> {
        ensure!(
            !self.jobs.is_empty(),
            hinted(
                format!(
                    "the history has no jobs that can be used ({} have no id or no submit time)",
                    output::counted(self.skipped, "ad")
                ),
                format!("condor_history -json -attributes {HISTORY_ATTRIBUTES}"),
            )
        );
        let mut counts = HistoryCounts {
            skipped: self.skipped,
            ..HistoryCounts::default()
        };
        let mut events_by_schedd: BTreeMap<&str, Vec<(PastEvent, &PastJobKey, &PastJob)>> =
            BTreeMap::new();
        for (key, job) in &self.jobs {
            let timeline = job.timeline(key.submit_s);
            counts.jobs += 1;
            counts.holds += timeline.holds;
            counts.estimated += usize::from(timeline.has_estimate);
            counts.missing += timeline.missing_holds;
            let events = events_by_schedd.entry(&key.schedd).or_default();
            events.extend((timeline.events.into_iter()).map(|event| (event, key, job)));
        }
        for (schedd, mut events) in events_by_schedd {
            events.sort_by_key(|(event, ..)| event.time_s);
            write_schedd_log(output, schedd, &events)?;
        }
        Ok(counts)
    }
}

/// Writes the log of one access point, whose `events` are sorted by time.
fn write_schedd_log(
    output: &mut impl Write,
    schedd: &str,
    events: &[(PastEvent, &PastJobKey, &PastJob)],
) -> Result<()> {
    let created_s = events.first().map_or(0, |(event, ..)| event.time_s);
    let info = format!(
        "Global JobLog: ctime={created_s} id={HISTORY_ORIGIN}.{created_s} sequence=1 size=0 events=0 offset=0 event_off=0 \
         max_rotation=0 creator_name=<{schedd}> origin={HISTORY_ORIGIN}"
    );
    let header = json!({
        "EventTypeNumber": GENERIC, "EventTime": stamp(created_s),
        "Cluster": -1, "Proc": -1, "Subproc": -1, "Info": info,
    });
    writeln!(output, "{header}")?;
    for (event, key, job) in events {
        writeln!(output, "{}", event.record(key))?;
        if event.body == PastEventBody::Submitted {
            writeln!(output, "{}", description_record(key, &job.description))?;
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

    /// Returns true if the history lacks so many holds that shares of successful releases mislead.
    pub fn lacks_holds(&self) -> bool {
        self.missing * MIN_HOLDS_PER_MISSING > self.holds
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
