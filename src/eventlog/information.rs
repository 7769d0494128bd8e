//! An event and the ad of its job → the attributes of event 028, sorted by name as HTCondor sorts them.

use super::body::{
    DynamicSlot, EventBody, JobDescription, JobExit, ResourceUsage, allocated_mb, cpus_hundredths,
    image_kb,
};
use super::stamp::civil;
use super::text::LogBuffer;

/// A value of an attribute, in the forms that ClassAds write differently.
#[derive(Clone, Copy)]
enum Value<'a> {
    Int(i64),
    /// A whole number of type real.
    Real(u32),
    Hundredths(u32),
    Flag(bool),
    /// A string without quotes or backslashes.
    Plain(&'a str),
    /// Any string.
    Escaped(&'a str),
    /// An address in angle brackets.
    Address(&'a str),
    Slot(DynamicSlot<'a>),
    /// User and system time.
    Cpu(u32, u32),
    /// Epoch time in milliseconds.
    Time(i64),
    GlobalJobId,
    StructuredNotes,
    ExecuteProps,
}

type Attribute<'a> = (&'static str, Value<'a>);

/// Writes the headline and the attributes of an event 028.
pub(super) fn write(
    text: &mut LogBuffer,
    time_ms: i64,
    ad: &JobDescription<'_>,
    body: &EventBody<'_>,
) {
    let (type_name, trigger) = names(body);
    let number = i64::from(body.number());
    let knows_job = !matches!(body, EventBody::RemoteError(..));
    let shared = [
        ("Cluster", Value::Int(ad.cluster.into())),
        ("CurrentHosts", Value::Int(ad.runs.into())),
        ("EventTime", Value::Time(time_ms)),
        ("EventTypeNumber", Value::Int(28)),
        ("GlobalJobId", Value::GlobalJobId),
        ("JobBatchName", Value::Plain(ad.batch)),
        ("MyType", Value::Plain(type_name)),
        ("NumHolds", Value::Int(ad.holds.into())),
        ("Owner", Value::Plain(ad.owner)),
        ("Proc", Value::Int(ad.proc.into())),
        ("RequestCpus", Value::Int(ad.request_cpus.into())),
        ("RequestDisk", Value::Int(ad.request_disk_kb.cast_signed())),
        ("RequestMemory", Value::Int(ad.request_memory_mb.into())),
        ("Subproc", Value::Int(0)),
        ("TriggerEventTypeName", Value::Plain(trigger)),
        ("TriggerEventTypeNumber", Value::Int(number)),
    ];
    // The record of a remote error is written without the job's ad.
    let of_event = [
        "Cluster",
        "EventTime",
        "EventTypeNumber",
        "MyType",
        "Proc",
        "Subproc",
    ];
    let is_there = |name: &str| match name {
        "NumHolds" => ad.holds > 0 && knows_job,
        _ => knows_job || of_event.contains(&name) || name.starts_with("Trigger"),
    };
    text.put("Job ad information event triggered.\n");
    let mut shared = shared.iter().filter(|(name, _)| is_there(name)).peekable();
    own(ad, body, &mut |attribute| {
        while let Some(earlier) = shared.next_if(|earlier| earlier.0 < attribute.0) {
            put(text, ad, *earlier);
        }
        put(text, ad, attribute);
    });
    shared.for_each(|attribute| put(text, ad, *attribute));
}

/// The type of the event as its ad names it, and its number's name.
fn names(body: &EventBody<'_>) -> (&'static str, &'static str) {
    match body {
        EventBody::Submit(_) => ("SubmitEvent", "ULOG_SUBMIT"),
        EventBody::Execute(_) => ("ExecuteEvent", "ULOG_EXECUTE"),
        EventBody::Evicted(..) => ("JobEvictedEvent", "ULOG_JOB_EVICTED"),
        EventBody::Terminated(..) => ("JobTerminatedEvent", "ULOG_JOB_TERMINATED"),
        EventBody::ImageSize(_) => ("JobImageSizeEvent", "ULOG_IMAGE_SIZE"),
        EventBody::Aborted(_) => ("JobAbortedEvent", "ULOG_JOB_ABORTED"),
        EventBody::Held(..) => ("JobHeldEvent", "ULOG_JOB_HELD"),
        EventBody::Released(_) => ("JobReleaseEvent", "ULOG_JOB_RELEASED"),
        EventBody::RemoteError(..) => ("RemoteErrorEvent", "ULOG_REMOTE_ERROR"),
        EventBody::InputStarted(_)
        | EventBody::InputFinished
        | EventBody::OutputStarted
        | EventBody::OutputFinished => ("FileTransferEvent", "ULOG_FILE_TRANSFER"),
    }
}

/// Hands on what only this kind of event has, sorted.
fn own<'a>(ad: &JobDescription<'_>, body: &EventBody<'a>, take: &mut impl FnMut(Attribute<'a>)) {
    let mut each =
        |attributes: &[Attribute<'a>]| attributes.iter().for_each(|attribute| take(*attribute));
    match *body {
        EventBody::Submit(address) => {
            each(&[
                ("StructuredNotes", Value::StructuredNotes),
                ("SubmitHost", Value::Address(address)),
            ]);
        }
        EventBody::Execute(slot) => each(&[
            ("ExecuteHost", Value::Address(slot.address)),
            ("ExecuteProps", Value::ExecuteProps),
            ("SlotName", Value::Slot(slot)),
        ]),
        EventBody::Evicted(usage, code, reason) => each(&evicted(usage, code, reason)),
        EventBody::Terminated(usage, exit) => terminated(ad, usage, exit, take),
        EventBody::ImageSize(memory_mb) => each(&[
            ("MemoryUsage", Value::Int(memory_mb.into())),
            ("ResidentSetSize", Value::Int(i64::from(memory_mb) * 1024)),
            ("Size", Value::Int(image_kb(memory_mb).cast_signed())),
        ]),
        EventBody::Aborted(reason) | EventBody::Released(reason) => {
            each(&[("Reason", Value::Escaped(reason))])
        }
        EventBody::Held((code, subcode), reason) => each(&[
            ("HoldReason", Value::Escaped(reason)),
            ("HoldReasonCode", Value::Int(code.into())),
            ("HoldReasonSubCode", Value::Int(subcode.into())),
        ]),
        EventBody::RemoteError(slot, (code, subcode), message) => each(&[
            ("Daemon", Value::Plain("starter")),
            ("ErrorMsg", Value::Escaped(message)),
            ("ExecuteHost", Value::Slot(slot)),
            ("HoldReasonCode", Value::Int(code.into())),
            ("HoldReasonSubCode", Value::Int(subcode.into())),
        ]),
        EventBody::InputStarted(slot) => each(&[
            ("Host", Value::Address(slot.address)),
            ("Type", Value::Int(2)),
        ]),
        EventBody::InputFinished => each(&[("Type", Value::Int(3))]),
        EventBody::OutputStarted => each(&[("Type", Value::Int(5))]),
        EventBody::OutputFinished => each(&[("Type", Value::Int(6))]),
    }
}

fn evicted<'a>(
    usage: &ResourceUsage,
    (code, subcode): (i32, i32),
    reason: &'a str,
) -> [Attribute<'a>; 10] {
    [
        ("Checkpointed", Value::Flag(false)),
        ("Reason", Value::Escaped(reason)),
        ("ReasonCode", Value::Int(code.into())),
        ("ReasonSubCode", Value::Int(subcode.into())),
        ("ReceivedBytes", Value::Real(usage.received_bytes)),
        ("RunLocalUsage", Value::Cpu(0, 0)),
        ("RunRemoteUsage", Value::Cpu(usage.user_s, usage.system_s)),
        ("SentBytes", Value::Real(usage.sent_bytes)),
        ("TerminatedAndRequeued", Value::Flag(false)),
        ("TerminatedNormally", Value::Flag(false)),
    ]
}

fn terminated<'a>(
    ad: &JobDescription<'_>,
    usage: &ResourceUsage,
    exit: JobExit,
    take: &mut impl FnMut(Attribute<'a>),
) {
    let value = match exit {
        JobExit::Value(value) => ("ReturnValue", Value::Int(value.into())),
        JobExit::Signal(signal) => ("TerminatedBySignal", Value::Int(signal.into())),
    };
    let normal = (
        "TerminatedNormally",
        Value::Flag(matches!(exit, JobExit::Value(_))),
    );
    let early = [
        ("Cpus", Value::Int(ad.request_cpus.into())),
        ("CpusUsage", Value::Hundredths(cpus_hundredths(usage))),
        ("Disk", Value::Int(ad.request_disk_kb.cast_signed())),
        ("DiskUsage", Value::Int(usage.disk_kb.into())),
        ("GPUs", Value::Int(0)),
        ("Memory", Value::Int(allocated_mb(ad).into())),
        ("MemoryUsage", Value::Int(usage.memory_mb.into())),
        ("ReceivedBytes", Value::Real(usage.received_bytes)),
    ];
    let late = [
        ("RunLocalUsage", Value::Cpu(0, 0)),
        ("RunRemoteUsage", Value::Cpu(usage.user_s, usage.system_s)),
        ("SentBytes", Value::Real(usage.sent_bytes)),
    ];
    let last = [
        ("TimeExecuteUsage", Value::Int(usage.execute_s.into())),
        ("TimeSlotBusyUsage", Value::Int(usage.busy_s.into())),
        ("TotalLocalUsage", Value::Cpu(0, 0)),
        ("TotalReceivedBytes", Value::Real(usage.received_bytes)),
        (
            "TotalRemoteUsage",
            Value::Cpu(usage.total_user_s, usage.system_s),
        ),
        ("TotalSentBytes", Value::Real(usage.sent_bytes)),
    ];
    early.into_iter().for_each(&mut *take);
    match exit {
        JobExit::Value(_) => std::iter::once(value)
            .chain(late)
            .chain([normal])
            .for_each(&mut *take),
        JobExit::Signal(_) => late.into_iter().chain([value, normal]).for_each(&mut *take),
    }
    last.into_iter().for_each(take);
}

/// Writes `name = value` and a line feed.
fn put(text: &mut LogBuffer, ad: &JobDescription<'_>, (name, value): Attribute<'_>) {
    text.all(&[name, " = "]);
    match value {
        Value::Int(value) => text.int(value),
        Value::Real(value) => text.line("", value, ".0"),
        Value::Hundredths(value) => text.hundredths(value),
        Value::Flag(value) => text.put(if value { "true" } else { "false" }),
        Value::Plain(value) => text.all(&["\"", value, "\""]),
        Value::Escaped(value) => escaped(text, value),
        Value::Address(address) => text.all(&["\"<", address, ">\""]),
        Value::Slot(slot) => quoted(text, |text| text.slot(&slot)),
        Value::Cpu(user_s, system_s) => quoted(text, |text| text.cpu_time(user_s, system_s)),
        Value::Time(time_ms) => quoted(text, |text| event_time(text, time_ms)),
        Value::GlobalJobId => global_job_id(text, ad),
        Value::StructuredNotes => text.all(&["[ JobBatchName = \"", ad.batch, "\" ]"]),
        Value::ExecuteProps => execute_props(text, ad),
    }
    text.put("\n");
}

fn quoted(text: &mut LogBuffer, write: impl FnOnce(&mut LogBuffer)) {
    text.put("\"");
    write(text);
    text.put("\"");
}

fn escaped(text: &mut LogBuffer, value: &str) {
    quoted(text, |text| {
        for part in value.split_inclusive(['"', '\\']) {
            let plain = part.strip_suffix(['"', '\\']).unwrap_or(part);
            text.put(plain);
            if plain.len() < part.len() {
                text.all(&["\\", &part[plain.len()..]]);
            }
        }
    });
}

/// `YYYY-MM-DDThh:mm:ss.mmm`.
fn event_time(text: &mut LogBuffer, time_ms: i64) {
    let (year, month, day) = civil(time_ms);
    text.line("", year, "-");
    text.two(month);
    text.put("-");
    text.two(day);
    text.put("T");
    text.clock((time_ms.rem_euclid(86_400_000) / 1000) as u32);
    let ms = time_ms.rem_euclid(1000) as u32;
    text.line(".", ms / 100, "");
    text.two(ms % 100);
}

fn global_job_id(text: &mut LogBuffer, ad: &JobDescription<'_>) {
    text.all(&["\"", ad.schedd]);
    text.line("#", ad.cluster, ".");
    text.line("", ad.proc, "#");
    text.line("", ad.submit_s, "\"");
}

fn execute_props(text: &mut LogBuffer, ad: &JobDescription<'_>) {
    text.line("[ Cpus = ", ad.request_cpus, "; Disk = ");
    text.line("", ad.request_disk_kb, "; GPUs = 0; Memory = ");
    text.line("", allocated_mb(ad), "; CondorScratchDir = \"");
    text.scratch(ad);
    text.put("\" ]");
}
