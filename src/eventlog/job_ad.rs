//! Event 028 → what it says of its job: who submitted it, when, and what it asks for.

use std::num::NonZeroU64;
use std::sync::LazyLock;

use memchr::{memchr, memchr_iter, memmem};

use super::event_facts::SubmissionNames;
use super::record::{LogRecord, RecordContent};
use super::stamp::{Stamp, parse_stamp};
use super::submission_names::submission_names;

/// What event 028 tells about its job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobAd {
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
    /// The name of the schedd, from `GlobalJobId`, if the ad has one.
    pub schedd: Option<String>,
    /// When the job was submitted, epoch seconds, from `GlobalJobId`; 0 if the ad has none.
    pub submit_s: i64,
    /// `Owner`.
    pub owner: Option<String>,
    /// What it asks for.
    pub request: ResourceRequest,
    /// What its submission is called.
    pub names: SubmissionNames,
}

/// The resources a job asks for, where its ad has them as numbers; 0 where it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ResourceRequest {
    /// `RequestCpus`; 255 stands for more, too.
    pub cpus: u8,
    /// `RequestGPUs`; 255 stands for more, too.
    pub gpus: u8,
    /// `RequestMemory`, MiB.
    pub memory_mb: u32,
    /// `RequestDisk`, MiB, where the ad counts KiB; rounded up.
    pub disk_mb: u32,
}

/// What the ads of all events of a job have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AdKey {
    /// A hash of its id and its `GlobalJobId`, or its `Owner` if it has no other.
    pub(super) hash: NonZeroU64,
    /// Spreads jobs over a table, those of neighbouring clusters side by side, as such run at the
    /// same time.
    pub(super) spread: u64,
}

const GLOBAL_JOB_ID: usize = 0;
const OWNER: usize = 1;
/// The first of four attributes of the request.
const REQUEST: usize = 2;
const BATCH_NAME: usize = 6;
const DAG_NODE_NAME: usize = 7;

/// What is read of a job's ad.
const AD_ATTRIBUTES: [&str; 8] = [
    "GlobalJobId",
    "Owner",
    "RequestCpus",
    "RequestGPUs",
    "RequestMemory",
    "RequestDisk",
    "JobBatchName",
    "DAGNodeName",
];

/// The line of `GlobalJobId` in text.
static GLOBAL_JOB_ID_LINE: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| line_finder(AD_ATTRIBUTES[GLOBAL_JOB_ID]));

/// The line of `Owner` in text.
static OWNER_LINE: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| line_finder(AD_ATTRIBUTES[OWNER]));

/// What tells the ad in an event 028 from those of other jobs; `None` when it carries neither a
/// `GlobalJobId` nor an `Owner`.
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

/// The ad in an event 028; `None` when it carries neither a `GlobalJobId` with its submit time nor,
/// instead of that, an `Owner`.
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

fn job_ad<'a>(
    (cluster, proc): (i32, i32),
    text_of: impl Fn(usize) -> Option<&'a str>,
    request: ResourceRequest,
) -> Option<JobAd> {
    let global_job_id = text_of(GLOBAL_JOB_ID);
    let owner = text_of(OWNER);
    let name_of = |at| text_of(at).map(str::as_bytes);
    let names = submission_names(name_of(BATCH_NAME), name_of(DAG_NODE_NAME));

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
    })
}

/// The values of [`AD_ATTRIBUTES`] in text, each from the first line that says it.
fn attribute_values(text: &[u8]) -> [Option<&[u8]>; AD_ATTRIBUTES.len()] {
    let mut values = [None; AD_ATTRIBUTES.len()];
    // The first line is the header's.
    let mut ends = memchr_iter(b'\n', text);
    let mut start = ends.next().map_or(0, |end| end + 1);

    for end in ends {
        let line = &text[start..end];
        start = end + 1;
        // One look at the first letter passes over most of the hundred lines of an ad.
        if !matches!(line.first(), Some(b'D' | b'G' | b'J' | b'O' | b'R')) {
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

/// The request, whose numbers `number_of` reads by their place in [`AD_ATTRIBUTES`].
fn resource_request(number_of: impl Fn(usize) -> Option<i64>) -> ResourceRequest {
    let number = |at| number_of(REQUEST + at).unwrap_or(0).max(0).cast_unsigned();
    let small = |n| u8::try_from(n).unwrap_or(u8::MAX);
    let large = |n| u32::try_from(n).unwrap_or(u32::MAX);
    ResourceRequest {
        cpus: small(number(0)),
        gpus: small(number(1)),
        memory_mb: large(number(2)),
        disk_mb: large(number(3).div_ceil(1024)),
    }
}

/// When the event happened that an event 028 annotates: this stamp has a year, which that of the
/// record may lack.
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

/// Finds the first line of an ad that says `name`.
fn line_finder(name: &str) -> memmem::Finder<'static> {
    memmem::Finder::new(&format!("\n{name} = ")).into_owned()
}

/// The value in the line of `text` that `line` finds.
fn find_value<'a>(text: &'a [u8], line: &memmem::Finder<'_>) -> Option<&'a [u8]> {
    let rest = &text[line.find(text)? + line.needle().len()..];
    Some(&rest[..memchr(b'\n', rest)?])
}

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
    fn annotations_name_the_job() {
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
    fn an_owner_is_enough() {
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
