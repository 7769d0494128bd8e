//! An event and the ad of its job → the attributes of event 028, sorted by name as HTCondor sorts them.

use super::body::{Body, Exit, JobAd, Slot, Usage, allocated_mb, cpus_hundredths, image_kb};
use super::stamp::civil;
use super::text::Text;

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
    Slot(Slot<'a>),
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
pub(super) fn write(text: &mut Text, time_ms: i64, ad: &JobAd<'_>, body: &Body<'_>) {
    let (type_name, trigger) = names(body);
    let number = i64::from(body.number());
    let knows_job = !matches!(body, Body::RemoteError(..));
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
fn names(body: &Body<'_>) -> (&'static str, &'static str) {
    match body {
        Body::Submit(_) => ("SubmitEvent", "ULOG_SUBMIT"),
        Body::Execute(_) => ("ExecuteEvent", "ULOG_EXECUTE"),
        Body::Evicted(..) => ("JobEvictedEvent", "ULOG_JOB_EVICTED"),
        Body::Terminated(..) => ("JobTerminatedEvent", "ULOG_JOB_TERMINATED"),
        Body::ImageSize(_) => ("JobImageSizeEvent", "ULOG_IMAGE_SIZE"),
        Body::Aborted(_) => ("JobAbortedEvent", "ULOG_JOB_ABORTED"),
        Body::Held(..) => ("JobHeldEvent", "ULOG_JOB_HELD"),
        Body::Released(_) => ("JobReleaseEvent", "ULOG_JOB_RELEASED"),
        Body::RemoteError(..) => ("RemoteErrorEvent", "ULOG_REMOTE_ERROR"),
        Body::InputStarted(_)
        | Body::InputFinished
        | Body::OutputStarted
        | Body::OutputFinished => ("FileTransferEvent", "ULOG_FILE_TRANSFER"),
    }
}

/// Hands on what only this kind of event has, sorted.
fn own<'a>(ad: &JobAd<'_>, body: &Body<'a>, take: &mut impl FnMut(Attribute<'a>)) {
    let mut each =
        |attributes: &[Attribute<'a>]| attributes.iter().for_each(|attribute| take(*attribute));
    match *body {
        Body::Submit(address) => {
            each(&[
                ("StructuredNotes", Value::StructuredNotes),
                ("SubmitHost", Value::Address(address)),
            ]);
        }
        Body::Execute(slot) => each(&[
            ("ExecuteHost", Value::Address(slot.address)),
            ("ExecuteProps", Value::ExecuteProps),
            ("SlotName", Value::Slot(slot)),
        ]),
        Body::Evicted(usage, code, reason) => each(&evicted(usage, code, reason)),
        Body::Terminated(usage, exit) => terminated(ad, usage, exit, take),
        Body::ImageSize(memory_mb) => each(&[
            ("MemoryUsage", Value::Int(memory_mb.into())),
            ("ResidentSetSize", Value::Int(i64::from(memory_mb) * 1024)),
            ("Size", Value::Int(image_kb(memory_mb).cast_signed())),
        ]),
        Body::Aborted(reason) | Body::Released(reason) => {
            each(&[("Reason", Value::Escaped(reason))])
        }
        Body::Held((code, subcode), reason) => each(&[
            ("HoldReason", Value::Escaped(reason)),
            ("HoldReasonCode", Value::Int(code.into())),
            ("HoldReasonSubCode", Value::Int(subcode.into())),
        ]),
        Body::RemoteError(slot, (code, subcode), message) => each(&[
            ("Daemon", Value::Plain("starter")),
            ("ErrorMsg", Value::Escaped(message)),
            ("ExecuteHost", Value::Slot(slot)),
            ("HoldReasonCode", Value::Int(code.into())),
            ("HoldReasonSubCode", Value::Int(subcode.into())),
        ]),
        Body::InputStarted(slot) => each(&[
            ("Host", Value::Address(slot.address)),
            ("Type", Value::Int(2)),
        ]),
        Body::InputFinished => each(&[("Type", Value::Int(3))]),
        Body::OutputStarted => each(&[("Type", Value::Int(5))]),
        Body::OutputFinished => each(&[("Type", Value::Int(6))]),
    }
}

fn evicted<'a>(usage: &Usage, (code, subcode): (i32, i32), reason: &'a str) -> [Attribute<'a>; 10] {
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

fn terminated<'a>(ad: &JobAd<'_>, usage: &Usage, exit: Exit, take: &mut impl FnMut(Attribute<'a>)) {
    let value = match exit {
        Exit::Value(value) => ("ReturnValue", Value::Int(value.into())),
        Exit::Signal(signal) => ("TerminatedBySignal", Value::Int(signal.into())),
    };
    let normal = (
        "TerminatedNormally",
        Value::Flag(matches!(exit, Exit::Value(_))),
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
        Exit::Value(_) => std::iter::once(value)
            .chain(late)
            .chain([normal])
            .for_each(&mut *take),
        Exit::Signal(_) => late.into_iter().chain([value, normal]).for_each(&mut *take),
    }
    last.into_iter().for_each(take);
}

/// Writes `name = value` and a line feed.
fn put(text: &mut Text, ad: &JobAd<'_>, (name, value): Attribute<'_>) {
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

fn quoted(text: &mut Text, write: impl FnOnce(&mut Text)) {
    text.put("\"");
    write(text);
    text.put("\"");
}

fn escaped(text: &mut Text, value: &str) {
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
fn event_time(text: &mut Text, time_ms: i64) {
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

fn global_job_id(text: &mut Text, ad: &JobAd<'_>) {
    text.all(&["\"", ad.schedd]);
    text.line("#", ad.cluster, ".");
    text.line("", ad.proc, "#");
    text.line("", ad.submit_s, "\"");
}

fn execute_props(text: &mut Text, ad: &JobAd<'_>) {
    text.line("[ Cpus = ", ad.request_cpus, "; Disk = ");
    text.line("", ad.request_disk_kb, "; GPUs = 0; Memory = ");
    text.line("", allocated_mb(ad), "; CondorScratchDir = \"");
    text.scratch(ad);
    text.put("\" ]");
}
