//! Writes the attributes of event 028 from an event and its job, sorted by name like in HTCondor.

use super::body::{
    DynamicSlot, EventBody, HoldCode, JobDescription, JobExit, ResourceUsage, allocated_mb,
    cpus_hundredths, image_kb,
};
use super::buffer::LogBuffer;

/// A value of an attribute, by its ClassAd format.
#[derive(Clone, Copy)]
enum AdValue<'a> {
    /// The ad does not have the attribute.
    Absent,
    Int(i64),
    /// A whole number with type real.
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
    /// User and system time, in seconds.
    Cpu(u32, u32),
    /// Epoch time in milliseconds.
    Time(i64),
    GlobalJobId,
    StructuredNotes,
    /// The node of a DAG, in DAGMan's wording.
    NodeNotes(&'a str),
    ExecuteProps,
}

type AdAttribute<'a> = (&'static str, AdValue<'a>);

/// Writes the headline and the attributes of an event 028.
pub(super) fn write_job_ad<'a>(
    text: &mut LogBuffer,
    time_ms: i64,
    job: &JobDescription<'a>,
    body: &EventBody<'a>,
) {
    // The ad of a remote error does not include the job's attributes.
    let knows_job = !matches!(body, EventBody::RemoteError(..));
    let shared = shared_attributes(time_ms, job, body);
    let mut shared = shared
        .iter()
        .filter(|(name, value)| {
            !matches!(value, AdValue::Absent) && (knows_job || is_event_attribute(name))
        })
        .peekable();

    // Both lists are sorted, so they are merged while they are written.
    text.put("Job ad information event triggered.\n");
    for_each_own_attribute(job, body, &mut |attribute| {
        while let Some(earlier) = shared.next_if(|earlier| earlier.0 < attribute.0) {
            put_attribute(text, job, *earlier);
        }
        put_attribute(text, job, attribute);
    });
    for attribute in shared {
        put_attribute(text, job, *attribute);
    }
}

/// Returns the attributes that the ads of all kinds of events have, sorted.
fn shared_attributes<'a>(
    time_ms: i64,
    job: &JobDescription<'a>,
    body: &EventBody<'_>,
) -> [AdAttribute<'a>; 21] {
    let (type_name, trigger_name) = event_type_names(body);
    [
        ("Cluster", AdValue::Int(job.cluster.into())),
        ("CurrentHosts", AdValue::Int(job.runs.into())),
        (
            "DAGManJobId",
            job.dag_node.map_or(AdValue::Absent, |node| {
                AdValue::Int(node.dagman_cluster.into())
            }),
        ),
        (
            "DAGNodeName",
            job.dag_node
                .map_or(AdValue::Absent, |node| AdValue::Plain(node.name)),
        ),
        ("EventTime", AdValue::Time(time_ms)),
        ("EventTypeNumber", AdValue::Int(28)),
        ("GlobalJobId", AdValue::GlobalJobId),
        ("Iwd", job.iwd.map_or(AdValue::Absent, AdValue::Escaped)),
        (
            "JobBatchName",
            job.batch.map_or(AdValue::Absent, AdValue::Plain),
        ),
        (
            "LastRemoteHost",
            job.last_slot.map_or(AdValue::Absent, AdValue::Slot),
        ),
        ("MyType", AdValue::Plain(type_name)),
        (
            "NumHolds",
            if job.holds > 0 {
                AdValue::Int(job.holds.into())
            } else {
                AdValue::Absent
            },
        ),
        ("Owner", AdValue::Plain(job.owner)),
        ("Proc", AdValue::Int(job.proc.into())),
        ("RequestCpus", AdValue::Int(job.request_cpus.into())),
        (
            "RequestDisk",
            AdValue::Int(job.request_disk_kb.cast_signed()),
        ),
        ("RequestMemory", AdValue::Int(job.request_memory_mb.into())),
        ("Subproc", AdValue::Int(0)),
        (
            "TransferInput",
            job.transfer_input.map_or(AdValue::Absent, AdValue::Escaped),
        ),
        ("TriggerEventTypeName", AdValue::Plain(trigger_name)),
        ("TriggerEventTypeNumber", AdValue::Int(body.number().into())),
    ]
}

/// Returns true if an ad has the shared attribute `name` even without the job's attributes.
fn is_event_attribute(name: &str) -> bool {
    const EVENT_ATTRIBUTES: [&str; 6] = [
        "Cluster",
        "EventTime",
        "EventTypeNumber",
        "MyType",
        "Proc",
        "Subproc",
    ];
    EVENT_ATTRIBUTES.contains(&name) || name.starts_with("Trigger")
}

/// Returns the type of the event in its ad, and the name of its event number.
fn event_type_names(body: &EventBody<'_>) -> (&'static str, &'static str) {
    match body {
        EventBody::Submit(_) => ("SubmitEvent", "ULOG_SUBMIT"),
        EventBody::Execute(_) | EventBody::ExecuteAtSchedd(_) => ("ExecuteEvent", "ULOG_EXECUTE"),
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

/// Passes the attributes that only this kind of event has to `take`, sorted.
fn for_each_own_attribute<'a>(
    job: &JobDescription<'a>,
    body: &EventBody<'a>,
    take: &mut impl FnMut(AdAttribute<'a>),
) {
    let mut take_all =
        |attributes: &[AdAttribute<'a>]| attributes.iter().for_each(|attribute| take(*attribute));
    match *body {
        EventBody::Submit(address) => {
            if let Some(node) = job.dag_node {
                take_all(&[("LogNotes", AdValue::NodeNotes(node.name))]);
            }
            if job.batch.is_some() || job.dag_node.is_some() {
                take_all(&[("StructuredNotes", AdValue::StructuredNotes)]);
            }
            take_all(&[("SubmitHost", AdValue::Address(address))]);
        }
        EventBody::ExecuteAtSchedd(address) => {
            take_all(&[("ExecuteHost", AdValue::Address(address))]);
        }
        EventBody::Execute(slot) => take_all(&[
            ("ExecuteHost", AdValue::Address(slot.address)),
            ("ExecuteProps", AdValue::ExecuteProps),
            ("SlotName", AdValue::Slot(slot)),
        ]),
        EventBody::Evicted(usage, code, reason) => {
            take_all(&evicted_attributes(usage, code, reason));
        }
        EventBody::Terminated(usage, exit) => {
            for_each_terminated_attribute(job, usage, exit, take);
        }
        EventBody::ImageSize(memory_mb) => take_all(&[
            ("MemoryUsage", AdValue::Int(memory_mb.into())),
            ("ResidentSetSize", AdValue::Int(i64::from(memory_mb) * 1024)),
            ("Size", AdValue::Int(image_kb(memory_mb).cast_signed())),
        ]),
        EventBody::Aborted(reason) | EventBody::Released(reason) => {
            take_all(&[("Reason", AdValue::Escaped(reason))]);
        }
        EventBody::Held((code, subcode), reason) => take_all(&[
            ("HoldReason", AdValue::Escaped(reason)),
            ("HoldReasonCode", AdValue::Int(code.into())),
            ("HoldReasonSubCode", AdValue::Int(subcode.into())),
        ]),
        EventBody::RemoteError(slot, (code, subcode), message) => take_all(&[
            ("Daemon", AdValue::Plain("starter")),
            ("ErrorMsg", AdValue::Escaped(message)),
            ("ExecuteHost", AdValue::Slot(slot)),
            ("HoldReasonCode", AdValue::Int(code.into())),
            ("HoldReasonSubCode", AdValue::Int(subcode.into())),
        ]),
        EventBody::InputStarted(slot) => take_all(&[
            ("Host", AdValue::Address(slot.address)),
            ("Type", AdValue::Int(2)),
        ]),
        EventBody::InputFinished => take_all(&[("Type", AdValue::Int(3))]),
        EventBody::OutputStarted => take_all(&[("Type", AdValue::Int(5))]),
        EventBody::OutputFinished => take_all(&[("Type", AdValue::Int(6))]),
    }
}

fn evicted_attributes<'a>(
    usage: &ResourceUsage,
    (code, subcode): HoldCode,
    reason: &'a str,
) -> [AdAttribute<'a>; 10] {
    [
        ("Checkpointed", AdValue::Flag(false)),
        ("Reason", AdValue::Escaped(reason)),
        ("ReasonCode", AdValue::Int(code.into())),
        ("ReasonSubCode", AdValue::Int(subcode.into())),
        ("ReceivedBytes", AdValue::Real(usage.received_bytes)),
        ("RunLocalUsage", AdValue::Cpu(0, 0)),
        ("RunRemoteUsage", AdValue::Cpu(usage.user_s, usage.system_s)),
        ("SentBytes", AdValue::Real(usage.sent_bytes)),
        ("TerminatedAndRequeued", AdValue::Flag(false)),
        ("TerminatedNormally", AdValue::Flag(false)),
    ]
}

fn for_each_terminated_attribute<'a>(
    job: &JobDescription<'_>,
    usage: &ResourceUsage,
    exit: JobExit,
    take: &mut impl FnMut(AdAttribute<'a>),
) {
    let early = [
        ("Cpus", AdValue::Int(job.request_cpus.into())),
        ("CpusUsage", AdValue::Hundredths(cpus_hundredths(usage))),
        ("Disk", AdValue::Int(job.request_disk_kb.cast_signed())),
        ("DiskUsage", AdValue::Int(usage.disk_kb.into())),
        ("GPUs", AdValue::Int(0)),
        ("Memory", AdValue::Int(allocated_mb(job).into())),
        ("MemoryUsage", AdValue::Int(usage.memory_mb.into())),
        ("ReceivedBytes", AdValue::Real(usage.received_bytes)),
    ];
    let late = [
        ("RunLocalUsage", AdValue::Cpu(0, 0)),
        ("RunRemoteUsage", AdValue::Cpu(usage.user_s, usage.system_s)),
        ("SentBytes", AdValue::Real(usage.sent_bytes)),
    ];
    let last = [
        ("TimeExecuteUsage", AdValue::Int(usage.execute_s.into())),
        ("TimeSlotBusyUsage", AdValue::Int(usage.busy_s.into())),
        ("TotalLocalUsage", AdValue::Cpu(0, 0)),
        ("TotalReceivedBytes", AdValue::Real(usage.received_bytes)),
        (
            "TotalRemoteUsage",
            AdValue::Cpu(usage.total_user_s, usage.system_s),
        ),
        ("TotalSentBytes", AdValue::Real(usage.sent_bytes)),
    ];

    early.into_iter().for_each(&mut *take);
    // The position of the exit's value depends on its name.
    match exit {
        JobExit::Value(value) => {
            take(("ReturnValue", AdValue::Int(value.into())));
            late.into_iter().for_each(&mut *take);
            take(("TerminatedNormally", AdValue::Flag(true)));
        }
        JobExit::Signal(signal) => {
            late.into_iter().for_each(&mut *take);
            take(("TerminatedBySignal", AdValue::Int(signal.into())));
            take(("TerminatedNormally", AdValue::Flag(false)));
        }
    }
    last.into_iter().for_each(take);
}

/// Writes `name = value` and a line feed.
fn put_attribute(text: &mut LogBuffer, job: &JobDescription<'_>, (name, value): AdAttribute<'_>) {
    text.put_all(&[name, " = "]);
    match value {
        AdValue::Int(value) => text.put_int(value),
        AdValue::Real(value) => text.put_around("", value, ".0"),
        AdValue::Hundredths(value) => text.put_hundredths(value),
        AdValue::Flag(value) => text.put(if value { "true" } else { "false" }),
        AdValue::Plain(value) => text.put_all(&["\"", value, "\""]),
        AdValue::Escaped(value) => put_escaped(text, value),
        AdValue::Address(address) => text.put_all(&["\"<", address, ">\""]),
        AdValue::Slot(slot) => put_quoted(text, |text| text.put_slot(&slot)),
        AdValue::Cpu(user_s, system_s) => {
            put_quoted(text, |text| text.put_cpu_time(user_s, system_s));
        }
        AdValue::Time(time_ms) => put_quoted(text, |text| text.put_date_time(time_ms)),
        AdValue::GlobalJobId => put_global_job_id(text, job),
        AdValue::Absent => {}
        AdValue::StructuredNotes => text.put_submit_notes(job),
        AdValue::NodeNotes(node) => text.put_all(&["\"DAG Node: ", node, "\""]),
        AdValue::ExecuteProps => put_execute_props(text, job),
    }
    text.put("\n");
}

fn put_quoted(text: &mut LogBuffer, write: impl FnOnce(&mut LogBuffer)) {
    text.put("\"");
    write(text);
    text.put("\"");
}

/// Writes a string in quotes, with a backslash before each quote and backslash.
fn put_escaped(text: &mut LogBuffer, value: &str) {
    text.put("\"");
    for part in value.split_inclusive(['"', '\\']) {
        let plain = part.strip_suffix(['"', '\\']).unwrap_or(part);
        text.put(plain);
        if plain.len() < part.len() {
            text.put_all(&["\\", &part[plain.len()..]]);
        }
    }
    text.put("\"");
}

fn put_global_job_id(text: &mut LogBuffer, job: &JobDescription<'_>) {
    text.put_all(&["\"", job.schedd]);
    text.put_around("#", job.cluster, ".");
    text.put_around("", job.proc, "#");
    text.put_around("", job.submit_s, "\"");
}

fn put_execute_props(text: &mut LogBuffer, job: &JobDescription<'_>) {
    text.put_around("[ Cpus = ", job.request_cpus, "; Disk = ");
    text.put_around("", job.request_disk_kb, "; GPUs = 0; Memory = ");
    text.put_around("", allocated_mb(job), "; CondorScratchDir = \"");
    text.put_scratch_dir(job);
    text.put("\" ]");
}
