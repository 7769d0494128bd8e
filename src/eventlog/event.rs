//! One record → one event: the fields that holds, releases and ends turn on.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::LazyLock;

use memchr::memmem;

use super::classad::{Attributes, Form};
use super::record::{Content, Header, Record, body, headline};
use super::stamp::{self, Stamp};

/// Event 000: the job was submitted.
pub const SUBMIT: u16 = 0;
/// Event 001: the job executes.
pub const EXECUTE: u16 = 1;
/// Event 005: the job terminated.
pub const TERMINATED: u16 = 5;
/// Event 008: free text; the header of a global event log is one.
pub const GENERIC: u16 = 8;
/// Event 009: the job was removed.
pub const ABORTED: u16 = 9;
/// Event 012: the job was held.
pub const HELD: u16 = 12;
/// Event 013: the job was released.
pub const RELEASED: u16 = 13;
/// Event 015: a node of a parallel job terminated; its body is that of 005.
pub(super) const NODE_TERMINATED: u16 = 15;
/// Event 028: attributes of the job ad, written after the event that triggered it. Annotation, not a state.
pub const AD_INFORMATION: u16 = 28;

/// Event 040: input or output files of the job are transferred.
pub const FILE_TRANSFER: u16 = 40;

/// HTCondor's name of an event, without `ULOG_`.
pub fn event_name(number: u16) -> &'static str {
    const NAMES: [&str; 48] = [
        "SUBMIT",
        "EXECUTE",
        "EXECUTABLE_ERROR",
        "CHECKPOINTED",
        "JOB_EVICTED",
        "JOB_TERMINATED",
        "IMAGE_SIZE",
        "SHADOW_EXCEPTION",
        "GENERIC",
        "JOB_ABORTED",
        "JOB_SUSPENDED",
        "JOB_UNSUSPENDED",
        "JOB_HELD",
        "JOB_RELEASED",
        "NODE_EXECUTE",
        "NODE_TERMINATED",
        "POST_SCRIPT_TERMINATED",
        "GLOBUS_SUBMIT",
        "GLOBUS_SUBMIT_FAILED",
        "GLOBUS_RESOURCE_UP",
        "GLOBUS_RESOURCE_DOWN",
        "REMOTE_ERROR",
        "JOB_DISCONNECTED",
        "JOB_RECONNECTED",
        "JOB_RECONNECT_FAILED",
        "GRID_RESOURCE_UP",
        "GRID_RESOURCE_DOWN",
        "GRID_SUBMIT",
        "JOB_AD_INFORMATION",
        "JOB_STATUS_UNKNOWN",
        "JOB_STATUS_KNOWN",
        "JOB_STAGE_IN",
        "JOB_STAGE_OUT",
        "ATTRIBUTE_UPDATE",
        "PRESKIP",
        "CLUSTER_SUBMIT",
        "CLUSTER_REMOVE",
        "FACTORY_PAUSED",
        "FACTORY_RESUMED",
        "NONE",
        "FILE_TRANSFER",
        "RESERVE_SPACE",
        "RELEASE_SPACE",
        "FILE_COMPLETE",
        "FILE_USED",
        "FILE_REMOVED",
        "DATAFLOW_JOB_SKIPPED",
        "COMMON_FILES",
    ];
    NAMES.get(usize::from(number)).copied().unwrap_or("unknown")
}

/// One event of one job. Which fields mean something depends on the number; the others are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobEvent {
    /// Epoch time.
    pub time_ms: i64,
    /// The job's cluster; negative when the event belongs to no job.
    pub cluster: i32,
    /// The job's proc; negative when the event belongs to no job or to a whole cluster.
    pub proc: i32,
    /// HTCondor's event number.
    pub number: u16,
    /// 005: 1 if the job ended by itself and not by a signal.
    pub normal: u8,
    /// 005: the return value or the signal. 009: who removed the job, as in [`RemovedBy`]. 012: the bits of what stands for
    /// the template of its reason in [`super::ReasonTemplates`], or 0. 040: HTCondor's type of the transfer: 1 to 3 of input, which is
    /// queued, has started, has finished, 4 to 6 of output; 0 if it does not say.
    pub value: i32,
    /// 012: the hold reason code.
    pub hold_code: i32,
    /// 012: the hold reason subcode.
    pub hold_subcode: i32,
    /// A hash of the record's text: the same event written twice has the same.
    pub text_hash: u32,
}

/// Who removed a job, as far as the reason in event 009 tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedBy {
    /// No reason, or one of an unknown form.
    Unknown = 0,
    /// `condor_rm`.
    Person = 1,
    /// A periodic or on-exit expression of the job or of the access point.
    Policy = 2,
}

/// What event 028 tells about its job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobAd {
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
    /// The name of the schedd, from `GlobalJobId`.
    pub schedd: String,
    /// When the job was submitted, epoch seconds, from `GlobalJobId`.
    pub submit_s: i64,
    /// `Owner`.
    pub owner: Option<String>,
    /// What it asks for.
    pub request: ResourceRequest,
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

/// The job that `header` names; `None` if HTCondor's 32 bits cannot hold its numbers.
pub(super) fn job(header: &Header) -> Option<(i32, i32)> {
    Some((
        i32::try_from(header.cluster).ok()?,
        i32::try_from(header.proc).ok()?,
    ))
}

/// The attributes of a record that is a ClassAd. They are read again wherever they are needed: such logs are rare, and
/// records that own nothing make text fast.
fn attributes(record: &Record<'_>, form: Form) -> Attributes {
    Attributes::read(record.whole, form).unwrap_or_default()
}

/// The event in `record`; its time is filled in by who knows the year, the reason of a hold by who keeps templates.
pub(super) fn event(record: &Record<'_>) -> JobEvent {
    let number = record.header.number;
    let (cluster, proc) = job(&record.header).unwrap_or((-1, -1));
    let text_hash = text_hash(record);
    let mut event = JobEvent {
        cluster,
        proc,
        number,
        text_hash,
        ..JobEvent::default()
    };
    match number {
        HELD => (event.hold_code, event.hold_subcode) = hold(record).0.unwrap_or((0, 0)),
        TERMINATED | NODE_TERMINATED => (event.normal, event.value) = ending(record),
        ABORTED => event.value = removed_by(record) as i32,
        FILE_TRANSFER => event.value = transfer(record),
        _ => {}
    }
    event
}

/// Of what follows the stamp, so that the same event in two logs with stamps of other forms has the same.
fn text_hash(record: &Record<'_>) -> u32 {
    let text = match record.content {
        Content::Text(text) => text,
        Content::Ad(_) => record.whole,
    };
    twox_hash::XxHash3_64::oneshot(text) as u32
}

/// The codes of a hold, if it has any, and its reason. In text the codes are the last `Code N Subcode M` line: reasons
/// written before HTCondor 23.8 span lines, and the codes come after them.
pub(super) fn hold<'a>(record: &Record<'a>) -> (Option<(i32, i32)>, Cow<'a, [u8]>) {
    let body = match record.content {
        Content::Text(text) => body(text),
        Content::Ad(form) => {
            let ad = attributes(record, form);
            let int = |name| ad.int(name).and_then(|n| i32::try_from(n).ok());
            let codes =
                int("HoldReasonCode").map(|code| (code, int("HoldReasonSubCode").unwrap_or(0)));
            return (
                codes,
                Cow::Owned(ad.text("HoldReason").unwrap_or_default().into()),
            );
        }
    };
    let mut end = body.len();
    while let Some(newline) = memchr::memrchr(b'\n', &body[..end]) {
        if let Some(codes) = codes(&body[newline + 1..end]) {
            return (Some(codes), Cow::Borrowed(&body[..newline]));
        }
        end = newline;
    }
    match codes(&body[..end]) {
        Some(codes) => (Some(codes), Cow::Borrowed(&[])),
        None => (None, Cow::Borrowed(body)),
    }
}

fn codes(line: &[u8]) -> Option<(i32, i32)> {
    let rest = line.trim_ascii().strip_prefix(b"Code ")?;
    let (code, rest) = leading_int(rest)?;
    let (subcode, _) = leading_int(rest.strip_prefix(b" Subcode ")?)?;
    Some((code, subcode))
}

/// Whether a job ended by itself, and the return value, else the signal.
pub(super) fn ending(record: &Record<'_>) -> (u8, i32) {
    let text = match record.content {
        Content::Text(text) => text,
        Content::Ad(form) => {
            let ad = attributes(record, form);
            let normal = ad.bool("TerminatedNormally").unwrap_or(false);
            let value = ad.int(if normal {
                "ReturnValue"
            } else {
                "TerminatedBySignal"
            });
            return (
                u8::from(normal),
                value.and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
            );
        }
    };
    for line in lines(body(text)) {
        let line = line.trim_ascii_start();
        let after = |words: &[u8]| {
            line.strip_prefix(words)
                .and_then(leading_int)
                .map(|(value, _)| value)
        };
        if let Some(value) = after(b"(1) Normal termination (return value ") {
            return (1, value);
        }
        if let Some(signal) = after(b"(0) Abnormal termination (signal ") {
            return (0, signal);
        }
    }
    (0, 0)
}

/// The type of a file transfer, as in [`JobEvent::value`].
fn transfer(record: &Record<'_>) -> i32 {
    let text = match record.content {
        Content::Text(text) => headline(text),
        Content::Ad(form) => {
            return attributes(record, form)
                .int("Type")
                .filter(|kind| (1..=6).contains(kind))
                .unwrap_or(0) as i32;
        }
    };
    let stage = match text {
        [b'E', ..] => 1,
        [b'S', ..] => 2,
        [b'F', ..] => 3,
        _ => return 0,
    };
    if text.ends_with(b"input files") {
        stage
    } else if text.ends_with(b"output files") {
        3 + stage
    } else {
        0
    }
}

fn leading_int(text: &[u8]) -> Option<(i32, &[u8])> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let end = sign
        + text[sign..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, &text[end..]))
}

fn removed_by(record: &Record<'_>) -> RemovedBy {
    let reason = match record.content {
        Content::Text(text) => Cow::Borrowed(body(text)),
        Content::Ad(form) => Cow::Owned(
            attributes(record, form)
                .text("Reason")
                .unwrap_or("")
                .as_bytes()
                .to_vec(),
        ),
    };
    let holds = |words: &[u8]| memmem::find(&reason, words).is_some();
    if holds(b"evaluated to TRUE") || holds(b"evaluated to UNDEFINED") {
        RemovedBy::Policy
    } else if holds(b"via condor_rm") || holds(b"by the user") {
        RemovedBy::Person
    } else {
        RemovedBy::Unknown
    }
}

/// What the ads of all events of a job have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AdKey {
    /// A hash of its id and its `GlobalJobId`.
    pub(super) hash: NonZeroU64,
    /// Spreads jobs over a table, those of neighbouring clusters side by side, as such run at the same time.
    pub(super) spread: u64,
}

/// What tells the ad in an event 028 from those of other jobs; `None` when it does not carry a `GlobalJobId`.
pub(super) fn ad_key(record: &Record<'_>) -> Option<AdKey> {
    let (cluster, proc) = job(&record.header)
        .map(|(cluster, proc)| (cluster.cast_unsigned(), proc.cast_unsigned()))?;
    let hash = |global_job_id: &[u8]| {
        twox_hash::XxHash3_64::oneshot_with_seed(
            u64::from(cluster) << 32 | u64::from(proc),
            global_job_id,
        )
    };
    let hash = match record.content {
        Content::Text(text) => hash(value(text, &GLOBAL_JOB_ID)?),
        Content::Ad(form) => hash(attributes(record, form).text(AD_ATTRIBUTES[0])?.as_bytes()),
    };
    let spread = u64::from(cluster) + u64::from(proc) * 0x9e37;
    Some(AdKey {
        hash: NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN),
        spread,
    })
}

/// The ad in an event 028; `None` when it does not carry a `GlobalJobId` with its submit time.
pub(super) fn ad(record: &Record<'_>) -> Option<JobAd> {
    let job = job(&record.header)?;
    match record.content {
        Content::Text(text) => {
            let values = ad_values(text);
            let text = |at: usize| values[at].and_then(quoted);
            let number = |at: usize| {
                std::str::from_utf8(values[2 + at]?)
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            };
            ad_of(job, text(0)?, text(1), request(number))
        }
        Content::Ad(form) => {
            let ad = attributes(record, form);
            let text = |at: usize| ad.text(AD_ATTRIBUTES[at]);
            ad_of(
                job,
                text(0)?,
                text(1),
                request(|at| ad.int(AD_ATTRIBUTES[2 + at])),
            )
        }
    }
}

fn ad_of(
    (cluster, proc): (i32, i32),
    global_job_id: &str,
    owner: Option<&str>,
    request: ResourceRequest,
) -> Option<JobAd> {
    let (schedd, rest) = global_job_id.split_once('#')?;
    let submit_s = rest.rsplit_once('#')?.1.parse().ok()?;
    Some(JobAd {
        cluster,
        proc,
        schedd: schedd.to_owned(),
        submit_s,
        owner: owner.map(str::to_owned),
        request,
    })
}

/// What is read of a job's ad; the last four are its request.
const AD_ATTRIBUTES: [&str; 6] = [
    "GlobalJobId",
    "Owner",
    "RequestCpus",
    "RequestGPUs",
    "RequestMemory",
    "RequestDisk",
];

/// The line of the first of them in text.
static GLOBAL_JOB_ID: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| line_of(AD_ATTRIBUTES[0]));

/// The values of [`AD_ATTRIBUTES`] in text, each from the first line that says it.
fn ad_values(text: &[u8]) -> [Option<&[u8]>; AD_ATTRIBUTES.len()] {
    let mut values = [None; AD_ATTRIBUTES.len()];
    // The first line is the header's.
    let mut ends = memchr::memchr_iter(b'\n', text);
    let mut start = ends.next().map_or(0, |end| end + 1);
    for end in ends {
        let line = &text[std::mem::replace(&mut start, end + 1)..end];
        if !matches!(line.first(), Some(b'G' | b'O' | b'R')) {
            continue;
        }
        let said = |name: &str| line.strip_prefix(name.as_bytes())?.strip_prefix(b" = ");
        if let Some((at, value)) = AD_ATTRIBUTES
            .iter()
            .zip(0..)
            .find_map(|(name, at)| Some((at, said(name)?)))
        {
            values[at] = values[at].or(Some(value));
        }
    }
    values
}

/// The request, from the last four of [`AD_ATTRIBUTES`].
fn request(number: impl Fn(usize) -> Option<i64>) -> ResourceRequest {
    let number = |at| number(at).unwrap_or(0).max(0).cast_unsigned();
    let small = |at| u8::try_from(number(at)).unwrap_or(u8::MAX);
    let large = |n| u32::try_from(n).unwrap_or(u32::MAX);
    ResourceRequest {
        cpus: small(0),
        gpus: small(1),
        memory_mb: large(number(2)),
        disk_mb: large(number(3).div_ceil(1024)),
    }
}

/// When the event happened that an event 028 annotates: this stamp has a year, which that of the record may lack.
pub(super) fn ad_stamp(record: &Record<'_>) -> Option<Stamp> {
    match record.content {
        Content::Text(text) => {
            let time = value(text, &line_of("EventTime"))?;
            stamp::parse(quoted(time)?.as_bytes())
                .map(|(stamp, _)| stamp)
                .filter(|stamp| stamp.has_year)
        }
        Content::Ad(_) => None,
    }
}

/// Finds the first line of an ad that says `name`.
fn line_of(name: &str) -> memmem::Finder<'static> {
    memmem::Finder::new(&format!("\n{name} = ")).into_owned()
}

/// The value in the line of `text` that `line` finds.
fn value<'a>(text: &'a [u8], line: &memmem::Finder<'_>) -> Option<&'a [u8]> {
    let rest = &text[line.find(text)? + line.needle().len()..];
    Some(&rest[..memchr::memchr(b'\n', rest)?])
}

fn quoted(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value.trim_ascii())
        .ok()?
        .strip_prefix('"')?
        .strip_suffix('"')
}

/// The text of a header line; in a ClassAd, that of the attribute `name`.
pub(super) fn said(record: &Record<'_>, name: &str) -> Option<String> {
    match record.content {
        Content::Text(text) => std::str::from_utf8(headline(text)).ok().map(str::to_owned),
        Content::Ad(form) => attributes(record, form).text(name).map(str::to_owned),
    }
}

/// The name of the submit host in event 000: the `alias` of its address, else the address.
pub(super) fn submit_host(record: &Record<'_>) -> Option<String> {
    let text = said(record, "SubmitHost")?;
    let address = text.split_once('<')?.1.split_once('>')?.0;
    let alias = address
        .split(['?', '&'])
        .find_map(|part| part.strip_prefix("alias="));
    let host = alias.unwrap_or_else(|| address.split([':', '?']).next().unwrap_or(address));
    (!host.is_empty()).then(|| host.to_owned())
}

fn lines(body: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    body.split(|&byte| byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::super::record::Records;
    use super::*;

    fn first(text: &str) -> Record<'_> {
        Records::new(text.as_bytes(), true).all()[0]
    }

    fn parse(text: &str) -> JobEvent {
        event(&first(text))
    }

    #[test]
    fn holds_keep_their_codes() {
        let hold = |body: &str| {
            let event = parse(&format!(
                "012 (1.0.0) 01/02 03:04:05 Job was held.\n{body}...\n"
            ));
            (event.hold_code, event.hold_subcode)
        };
        assert_eq!(hold("\tno file\n\tCode 13 Subcode 2\n"), (13, 2));
        assert_eq!(
            hold("\tfirst\n\tCode 1 Subcode 1 was said\n\tthird\n    Code 12 Subcode -256\r\n"),
            (12, -256)
        );
        assert_eq!(hold("\tReason unspecified\n"), (0, 0));
        assert_eq!(hold(""), (0, 0));
    }

    #[test]
    fn ends_keep_how_and_by_whom() {
        let end = |number: &str, body: &str| {
            parse(&format!("{number} (1.0.0) 01/02 03:04:05 x\n{body}\n...\n"))
        };
        let value = |event: JobEvent| (event.normal, event.value);
        assert_eq!(
            value(end("005", "\t(1) Normal termination (return value 3)")),
            (1, 3)
        );
        assert_eq!(
            value(end("005", "\t(0) Abnormal termination (signal 9)")),
            (0, 9)
        );
        let removed = |reason: &str| end("009", reason).value;
        assert_eq!(
            removed("\tvia condor_rm (by user u)"),
            RemovedBy::Person as i32
        );
        let policy = "\tThe system macro SYSTEM_PERIODIC_REMOVE expression 'NumHolds >= 4' evaluated to TRUE";
        assert_eq!(removed(policy), RemovedBy::Policy as i32);
        assert_eq!(removed(""), RemovedBy::Unknown as i32);
    }

    #[test]
    fn transfers_keep_which_way_and_how_far() {
        let transfer = |line: &str| {
            parse(&format!(
                "040 (1.0.0) 01/02 03:04:05 {line}\n\tTransferring to host: <x>\n...\n"
            ))
            .value
        };
        let stages = [
            "Entered queue to transfer",
            "Started transferring",
            "Finished transferring",
        ];
        let found = ["input", "output"]
            .map(|way| stages.map(|stage| transfer(&format!("{stage} {way} files"))));
        assert_eq!(found, [[1, 2, 3], [4, 5, 6]]);
        assert_eq!(
            (
                transfer("Started transferring"),
                transfer("Lost input files"),
                transfer("")
            ),
            (0, 0, 0)
        );
        let ad = |kind: i32| {
            let when = "\"EventTime\": \"2024-01-02T03:04:05\"";
            parse(&format!("{{\n  \"Cluster\": 7,\n  \"EventTypeNumber\": 40,\n  {when},\n  \"Type\": {kind}\n}}\n"))
                .value
        };
        assert_eq!([1, 5, 7, -1].map(ad), [1, 5, 0, 0]);
    }

    #[test]
    fn annotations_name_the_job() {
        let text = "028 (4.2.0) 01/02 03:04:05 Job ad information event triggered.\n\
            GlobalJobId = \"ap40.example#4.2#1795225787\"\nOwner = \"ada\"\n\
            RequestCpus = 4\nRequestDisk = 1025\nRequestMemory = ifThenElse(true, 1, 2)\nRequestGPUs = 300\n...\n";
        let found = ad(&first(text)).expect("an ad");
        assert_eq!(
            (
                found.schedd.as_str(),
                found.submit_s,
                found.owner.as_deref()
            ),
            ("ap40.example", 1_795_225_787, Some("ada"))
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
    fn submit_hosts_have_a_name() {
        let said = |text: &str| submit_host(&first(text));
        let submit = "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <10.0.0.1:9618?addrs=10.0.0.1-9618&alias=ap.example&sock=x>\n...\n";
        assert_eq!(said(submit).as_deref(), Some("ap.example"));
        let plain = "000 (1.0.0) 01/02 03:04:05 Job submitted from host: <10.0.0.1:32779>\n...\n";
        assert_eq!(said(plain).as_deref(), Some("10.0.0.1"));
    }
}
