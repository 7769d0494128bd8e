//! Parses the job ad in event 028: the owner, the submit time, the requested resources, the names of
//! the submission and the input files.

use std::num::NonZeroU64;
use std::sync::LazyLock;

use memchr::{memchr, memchr_iter, memmem};

use super::event_facts::SubmissionNames;
use super::input_files::{InputFile, input_files};
use super::record::{LogRecord, RecordContent};
use super::stamp::{Stamp, parse_stamp};
use super::submission_names::submission_names;

/// Data about a job, from event 028.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobAd {
    /// Cluster of the job.
    pub cluster: i32,
    /// Proc of the job.
    pub proc: i32,
    /// Name of the schedd, from `GlobalJobId`, if the ad has one.
    pub schedd: Option<String>,
    /// Submit time, epoch seconds, from `GlobalJobId`; 0 if the ad has none.
    pub submit_s: i64,
    /// `Owner`.
    pub owner: Option<String>,
    /// Requested resources.
    pub request: ResourceRequest,
    /// Names of the submission.
    pub names: SubmissionNames,
    /// Input files: at most [`super::MAX_INPUT_FILES`].
    pub inputs: Vec<InputFile>,
}

/// Resources that a job requests; 0 if its ad does not have them as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ResourceRequest {
    /// `RequestCpus`; 255 also means more.
    pub cpus: u8,
    /// `RequestGPUs`; 255 also means more.
    pub gpus: u8,
    /// `RequestMemory`, in MiB.
    pub memory_mb: u32,
    /// `RequestDisk`, converted from KiB to MiB and rounded up.
    pub disk_mb: u32,
}

/// Key that the ads of all events of a job share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AdKey {
    /// Hash of the job's id and its `GlobalJobId`, or its `Owner` if it has no `GlobalJobId`.
    pub(super) hash: NonZeroU64,
    /// Position of the job in a hash table. Jobs of neighbouring clusters are close together,
    /// because they run at the same time.
    pub(super) spread: u64,
}

const GLOBAL_JOB_ID: usize = 0;
const OWNER: usize = 1;
/// Index of the first of the four request attributes.
const FIRST_REQUEST: usize = 2;
const BATCH_NAME: usize = 6;
const DAG_NODE_NAME: usize = 7;
const TRANSFER_INPUT: usize = 8;
const IWD: usize = 9;

/// Attributes of a job's ad that are read.
const AD_ATTRIBUTES: [&str; 10] = [
    "GlobalJobId",
    "Owner",
    "RequestCpus",
    "RequestGPUs",
    "RequestMemory",
    "RequestDisk",
    "JobBatchName",
    "DAGNodeName",
    "TransferInput",
    "Iwd",
];

/// Finds the line of `GlobalJobId` in text.
static GLOBAL_JOB_ID_LINE: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| line_finder(AD_ATTRIBUTES[GLOBAL_JOB_ID]));

/// Finds the line of `Owner` in text.
static OWNER_LINE: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| line_finder(AD_ATTRIBUTES[OWNER]));

/// Parses the key of the ad in an event 028. Returns `None` if the ad has neither a `GlobalJobId`
/// nor an `Owner`.
pub(super) fn parse_ad_key(record: &LogRecord<'_>) -> Option<AdKey> {
    let (cluster, proc) = record.header.job_id()?;
    let cluster = u64::from(cluster.cast_unsigned());
    let proc = u64::from(proc.cast_unsigned());
    let hash_with_job = |global_job_id: &[u8]| {
        twox_hash::XxHash3_64::oneshot_with_seed(cluster << 32 | proc, global_job_id)
    };

    let hash = match record.content {
        RecordContent::Text(text) => {
            let global_job_id = find_value(text, &GLOBAL_JOB_ID_LINE);
            hash_with_job(global_job_id.or_else(|| find_value(text, &OWNER_LINE))?)
        }
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let text_of = |at: usize| attributes.text(AD_ATTRIBUTES[at]);
            hash_with_job(
                text_of(GLOBAL_JOB_ID)
                    .or_else(|| text_of(OWNER))?
                    .as_bytes(),
            )
        }
    };
    Some(AdKey {
        hash: NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN),
        spread: cluster + proc * 0x9e37,
    })
}

/// Parses the ad in an event 028. Returns `None` if the ad has neither a `GlobalJobId` with a
/// submit time nor, in place of a `GlobalJobId`, an `Owner`.
pub(super) fn parse_ad(record: &LogRecord<'_>) -> Option<JobAd> {
    let job_id = record.header.job_id()?;
    match record.content {
        RecordContent::Text(text) => {
            let values = attribute_values(text);
            let text_of = |at: usize| values[at].and_then(unquote);
            let number_of = |at: usize| std::str::from_utf8(values[at]?).ok()?.trim().parse().ok();
            let request = resource_request(number_of);
            job_ad(job_id, text_of, request)
        }
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let text_of = |at: usize| attributes.text(AD_ATTRIBUTES[at]);
            let request = resource_request(|at| attributes.int(AD_ATTRIBUTES[at]));
            job_ad(job_id, text_of, request)
        }
    }
}

/// Builds the ad from its texts, which `text_of` returns by their index in [`AD_ATTRIBUTES`].
fn job_ad<'a>(
    (cluster, proc): (i32, i32),
    text_of: impl Fn(usize) -> Option<&'a str>,
    request: ResourceRequest,
) -> Option<JobAd> {
    let global_job_id = text_of(GLOBAL_JOB_ID);
    let owner = text_of(OWNER);
    let name_of = |at| text_of(at).map(str::as_bytes);
    let names = submission_names(name_of(BATCH_NAME), name_of(DAG_NODE_NAME));

    // The form of a `GlobalJobId` is `schedd#cluster.proc#submit_time`.
    let (schedd, submit_s) = match global_job_id {
        Some(global_job_id) => {
            let (schedd, rest) = global_job_id.split_once('#')?;
            (Some(schedd), rest.rsplit_once('#')?.1.parse().ok()?)
        }
        None if owner.is_some() => (None, 0),
        None => return None,
    };
    Some(JobAd {
        cluster,
        proc,
        schedd: schedd.map(str::to_owned),
        submit_s,
        owner: owner.map(str::to_owned),
        request,
        names,
        inputs: text_of(TRANSFER_INPUT)
            .map(|list| input_files(list, text_of(IWD)))
            .unwrap_or_default(),
    })
}

/// Returns the values of [`AD_ATTRIBUTES`] in `text`, each from the first line that has it.
fn attribute_values(text: &[u8]) -> [Option<&[u8]>; AD_ATTRIBUTES.len()] {
    let mut values = [None; AD_ATTRIBUTES.len()];
    // The first line is the rest of the record's header.
    let mut ends = memchr_iter(b'\n', text);
    let mut start = ends.next().map_or(0, |end| end + 1);

    for end in ends {
        let line = &text[start..end];
        start = end + 1;
        // A check of the first letter skips most of the hundred lines of an ad.
        if !matches!(
            line.first(),
            Some(b'D' | b'G' | b'I' | b'J' | b'O' | b'R' | b'T')
        ) {
            continue;
        }
        for (value, name) in values.iter_mut().zip(AD_ATTRIBUTES) {
            let said = line
                .strip_prefix(name.as_bytes())
                .and_then(|rest| rest.strip_prefix(b" = "));
            if said.is_some() {
                *value = value.or(said);
                break;
            }
        }
    }
    values
}

/// Builds the request from numbers that `number_of` returns by their index in [`AD_ATTRIBUTES`].
fn resource_request(number_of: impl Fn(usize) -> Option<i64>) -> ResourceRequest {
    let number = |at| {
        number_of(FIRST_REQUEST + at)
            .unwrap_or(0)
            .max(0)
            .cast_unsigned()
    };
    let small = |n| u8::try_from(n).unwrap_or(u8::MAX);
    let large = |n| u32::try_from(n).unwrap_or(u32::MAX);
    ResourceRequest {
        cpus: small(number(0)),
        gpus: small(number(1)),
        memory_mb: large(number(2)),
        disk_mb: large(number(3).div_ceil(1024)),
    }
}

/// Parses the time of the event that an event 028 annotates. This stamp has a year, which the stamp
/// of the record may lack.
pub(super) fn parse_ad_stamp(record: &LogRecord<'_>) -> Option<Stamp> {
    match record.content {
        RecordContent::Text(text) => {
            let time = find_value(text, &line_finder("EventTime"))?;
            let (stamp, _) = parse_stamp(unquote(time)?.as_bytes())?;
            stamp.has_year.then_some(stamp)
        }
        RecordContent::Ad(_) => None,
    }
}

/// Creates a finder of the first line of an ad that has the attribute `name`.
fn line_finder(name: &str) -> memmem::Finder<'static> {
    memmem::Finder::new(&format!("\n{name} = ")).into_owned()
}

/// Returns the value in the first line of `text` that `line` finds.
fn find_value<'a>(text: &'a [u8], line: &memmem::Finder<'_>) -> Option<&'a [u8]> {
    let rest = &text[line.find(text)? + line.needle().len()..];
    Some(&rest[..memchr(b'\n', rest)?])
}

/// Returns the text of a quoted value; `None` if it has no quotes.
fn unquote(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.trim_ascii())
        .ok()?
        .strip_prefix('"')?
        .strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_scan::RecordScan;

    #[test]
    fn ad_events_describe_their_job() {
        let text = "028 (4.2.0) 01/02 03:04:05 Job ad information event triggered.\n\
            GlobalJobId = \"ap40.example#4.2#1795225787\"\nOwner = \"ada\"\n\
            RequestCpus = 4\nRequestDisk = 1025\nRequestMemory = ifThenElse(true, 1, 2)\nRequestGPUs = 300\n...\n";
        let first = RecordScan::new(text.as_bytes(), true).collect_records()[0];
        let found = parse_ad(&first).expect("an ad");
        assert_eq!(
            (
                found.schedd.as_deref(),
                found.submit_s,
                found.owner.as_deref()
            ),
            (Some("ap40.example"), 1_795_225_787, Some("ada"))
        );
        assert_eq!(
            found.request,
            ResourceRequest {
                cpus: 4,
                gpus: 255,
                memory_mb: 0,
                disk_mb: 2
            }
        );
    }

    #[test]
    fn ads_without_a_global_job_id_are_identified_by_owner() {
        let ad = |attributes: &str| {
            let text = format!(
                "028 (4.2.0) 01/02 03:04:05 Job ad information event triggered.\nJobBatchName = \"wf04.dag+1\"\n\
                 DAGNodeName = \"prep_04\"\n{attributes}...\n"
            );
            let first = RecordScan::new(text.as_bytes(), true).collect_records()[0];
            (parse_ad_key(&first), parse_ad(&first))
        };
        let (key, found) = ad("Owner = \"ivanov\"\nRequestMemory = 128\n");
        let found = found.expect("an ad");
        assert_eq!(
            (found.schedd, found.submit_s, found.owner.as_deref()),
            (None, 0, Some("ivanov"))
        );
        assert_eq!(
            found.names,
            submission_names(Some(b"wf04.dag+1"), Some(b"prep_07"))
        );
        let (other_key, _) = ad("Owner = \"gomez\"\nRequestMemory = 128\n");
        assert!(key.is_some() && other_key.is_some() && key != other_key);
        assert_eq!(ad("RequestMemory = 128\n"), (None, None));
    }
}
