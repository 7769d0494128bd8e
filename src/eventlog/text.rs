//! Events of jobs → the text of a global event log, as HTCondor writes it: each record, and after it the 028 with the
//! attributes of the job and of the event.
//!
//! Stamps are `MM/DD hh:mm:ss`, HTCondor's default for global event logs. Everything is appended to one buffer.

use super::body::{
    DynamicSlot, EventBody, HoldCode, JobDescription, JobExit, LogHeader, ResourceUsage,
    allocated_mb, cpus_hundredths, image_kb,
};
use super::information;
use super::stamp::civil;

/// Text being written.
#[derive(Debug, Default)]
pub struct LogBuffer {
    /// What was written so far.
    pub bytes: Vec<u8>,
}

impl LogBuffer {
    /// Appends the record of an event, and the 028 that follows it. `time_ms` is epoch time; stamps are UTC.
    pub fn event(&mut self, time_ms: i64, ad: &JobDescription<'_>, body: &EventBody<'_>) {
        self.head(body.number(), time_ms, ad);
        self.body(ad, body);
        self.put("...\n");
        self.head(28, time_ms, ad);
        information::write(self, time_ms, ad, body);
        self.put("...\n");
    }

    /// Appends the header of a global event log: its text is padded to 256 bytes, so that it can be written anew at rotation.
    /// `stamp_ms` is when it is written, epoch time.
    pub fn header(&mut self, stamp_ms: i64, log: &LogHeader<'_>) {
        self.put("008 (-01.-01.-01) ");
        self.stamp(stamp_ms);
        self.put(" ");
        let start = self.bytes.len();
        self.line("Global JobLog: ctime=", log.created_s, " id=");
        self.all(&[log.creator, ".64.2058."]);
        self.line("", log.began_s, ".9836.");
        self.line("", log.sequence, ".");
        self.line("", log.created_s, ".10030 sequence=");
        self.line("", log.sequence, " size=");
        self.line("", log.size_bytes, " events=0 offset=");
        self.line(
            "",
            log.offset_bytes,
            " event_off=0 max_rotation=9999 creator_name=<",
        );
        self.all(&[log.creator, ">"]);
        self.bytes.resize(self.bytes.len().max(start + 256), b' ');
        self.put("\n...\n");
    }

    fn head(&mut self, number: u32, time_ms: i64, ad: &JobDescription<'_>) {
        self.padded(number);
        self.put(" (");
        self.padded(ad.cluster);
        self.put(".");
        self.padded(ad.proc);
        self.put(".000) ");
        self.stamp(time_ms);
        self.put(" ");
    }

    fn body(&mut self, ad: &JobDescription<'_>, body: &EventBody<'_>) {
        match body {
            EventBody::Submit(address) => {
                self.all(&[
                    "Job submitted from host: <",
                    address,
                    ">\n    [ JobBatchName = \"",
                    ad.batch,
                    "\" ]\n",
                ]);
            }
            EventBody::Execute(slot) => self.execute(ad, slot),
            EventBody::Evicted(usage, code, reason) => self.evicted(ad, usage, *code, reason),
            EventBody::Terminated(usage, exit) => self.terminated(ad, usage, *exit),
            EventBody::ImageSize(memory_mb) => self.image_size(*memory_mb),
            EventBody::Aborted(reason) => self.all(&["Job was aborted.\n\t", reason, "\n"]),
            EventBody::Held(code, reason) => {
                self.all(&["Job was held.\n\t", reason, "\n\tCode "]);
                self.code(*code);
            }
            EventBody::Released(reason) => self.all(&["Job was released.\n\t", reason, "\n"]),
            EventBody::RemoteError(slot, code, message) => {
                self.put("Error from starter on ");
                self.slot(slot);
                self.all(&[":\n\t", message, "\n\tCode "]);
                self.code(*code);
            }
            EventBody::InputStarted(slot) => {
                self.all(&[
                    "Started transferring input files\n\tTransferring to host: <",
                    slot.address,
                    ">\n",
                ]);
            }
            EventBody::InputFinished => self.put("Finished transferring input files\n"),
            EventBody::OutputStarted => self.put("Started transferring output files\n"),
            EventBody::OutputFinished => self.put("Finished transferring output files\n"),
        }
    }

    fn execute(&mut self, ad: &JobDescription<'_>, slot: &DynamicSlot<'_>) {
        self.all(&["Job executing on host: <", slot.address, ">\n\tSlotName: "]);
        self.slot(slot);
        self.put("\n\tCondorScratchDir = \"");
        self.scratch(ad);
        self.line("\"\n\tCpus = ", ad.request_cpus, "\n");
        self.line("\tDisk = ", ad.request_disk_kb, "\n\tGPUs = 0\n");
        self.line("\tMemory = ", allocated_mb(ad), "\n");
    }

    fn evicted(
        &mut self,
        ad: &JobDescription<'_>,
        usage: &ResourceUsage,
        code: HoldCode,
        reason: &str,
    ) {
        self.put("Job was evicted. Code ");
        self.code(code);
        self.put("\t(0) CPU times\n");
        self.cpu_times(usage.user_s, usage.system_s, "Run");
        self.bytes_line(usage.sent_bytes, "Run Bytes Sent");
        self.bytes_line(usage.received_bytes, "Run Bytes Received");
        self.all(&["\tReason: ", reason, "\n"]);
        self.table(ad, usage);
    }

    fn terminated(&mut self, ad: &JobDescription<'_>, usage: &ResourceUsage, exit: JobExit) {
        match exit {
            JobExit::Value(value) => self.line(
                "Job terminated.\n\t(1) Normal termination (return value ",
                value,
                ")\n",
            ),
            JobExit::Signal(signal) => {
                self.line(
                    "Job terminated.\n\t(0) Abnormal termination (signal ",
                    signal,
                    ")\n\t(0) No core file\n",
                );
            }
        }
        self.cpu_times(usage.user_s, usage.system_s, "Run");
        self.cpu_times(usage.total_user_s, usage.system_s, "Total");
        for which in ["Run", "Total"] {
            for (bytes, direction) in [
                (usage.sent_bytes, " Bytes Sent"),
                (usage.received_bytes, " Bytes Received"),
            ] {
                self.line("\t", bytes, "  -  ");
                self.all(&[which, direction, " By Job\n"]);
            }
        }
        self.table(ad, usage);
    }

    fn image_size(&mut self, memory_mb: u32) {
        let resident_kb = u64::from(memory_mb) * 1024;
        self.line("Image size of job updated: ", image_kb(memory_mb), "\n");
        self.line("\t", memory_mb, "  -  MemoryUsage of job (MB)\n");
        self.line("\t", resident_kb, "  -  ResidentSetSize of job (KB)\n");
    }

    /// The lines of remote and local CPU time.
    fn cpu_times(&mut self, user_s: u32, system_s: u32, which: &str) {
        for (user_s, system_s, place) in [(user_s, system_s, " Remote"), (0, 0, " Local")] {
            self.put("\t\t");
            self.cpu_time(user_s, system_s);
            self.all(&["  -  ", which, place, " Usage\n"]);
        }
    }

    fn bytes_line(&mut self, bytes: u32, what: &str) {
        self.line("\t", bytes, "  -  ");
        self.all(&[what, " By Job\n"]);
    }

    /// The table of resources; its cells are right-aligned under the words of its header.
    fn table(&mut self, ad: &JobDescription<'_>, usage: &ResourceUsage) {
        let disk_kb = ad.request_disk_kb;
        self.put("\tPartitionable Resources :    Usage  Request Allocated \n\t   Cpus                 :     ");
        self.hundredths(cpus_hundredths(usage));
        self.cells(&[(9, ad.request_cpus.into()), (10, ad.request_cpus.into())]);
        self.put("\t   Disk (KB)            :");
        self.cells(&[(9, usage.disk_kb.into()), (9, disk_kb), (10, disk_kb)]);
        self.put(
            "\t   GPUs                 :                           0 \n\t   Memory (MB)          :",
        );
        self.cells(&[
            (9, usage.memory_mb.into()),
            (9, ad.request_memory_mb.into()),
            (10, allocated_mb(ad).into()),
        ]);
        for (label, seconds) in [
            ("\t   TimeExecute (s)      :", usage.execute_s),
            ("\t   TimeSlotBusy (s)     :", usage.busy_s),
        ] {
            self.put(label);
            self.right(seconds.into(), 9);
            self.put("                    \n");
        }
    }

    fn cells(&mut self, cells: &[(usize, u64)]) {
        cells
            .iter()
            .for_each(|&(width, value)| self.right(value, width));
        self.put(" \n");
    }

    fn right(&mut self, value: u64, width: usize) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(value);
        self.bytes.extend(std::iter::repeat_n(
            b' ',
            width.saturating_sub(digits.len()),
        ));
        self.put(digits);
    }

    fn code(&mut self, (code, subcode): HoldCode) {
        self.int(code);
        self.line(" Subcode ", subcode, "\n");
    }

    /// `slot1_N@host`.
    pub(super) fn slot(&mut self, slot: &DynamicSlot<'_>) {
        self.line("slot1_", slot.number, "@");
        self.put(slot.host);
    }

    /// The job's directory on its execution point.
    pub(super) fn scratch(&mut self, ad: &JobDescription<'_>) {
        self.line(
            "/var/lib/condor/execute/dir_",
            ad.cluster % 30_000 + ad.proc,
            "/scratch",
        );
    }

    /// `Usr d hh:mm:ss, Sys d hh:mm:ss`.
    pub(super) fn cpu_time(&mut self, user_s: u32, system_s: u32) {
        for (label, seconds) in [("Usr ", user_s), (", Sys ", system_s)] {
            self.line(label, seconds / 86_400, " ");
            self.clock(seconds % 86_400);
        }
    }

    /// `MM/DD hh:mm:ss`.
    pub(super) fn stamp(&mut self, time_ms: i64) {
        let (_, month, day) = civil(time_ms);
        self.two(month);
        self.put("/");
        self.two(day);
        self.put(" ");
        self.clock((time_ms.rem_euclid(86_400_000) / 1000) as u32);
    }

    /// Seconds of a day as `hh:mm:ss`.
    pub(super) fn clock(&mut self, seconds: u32) {
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let digit = |n: u32| b'0' + (n % 10) as u8;
        let text = [
            hour / 10,
            hour,
            99,
            minute / 10,
            minute,
            99,
            second / 10,
            second,
        ];
        self.bytes
            .extend_from_slice(&text.map(|n| if n == 99 { b':' } else { digit(n) }));
    }

    /// A number in hundredths, with its point.
    pub(super) fn hundredths(&mut self, value: u32) {
        self.int(value / 100);
        self.put(".");
        self.two(value % 100);
    }

    pub(super) fn two(&mut self, n: u32) {
        self.bytes
            .extend_from_slice(&[b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]);
    }

    /// A number of at least three digits.
    fn padded(&mut self, n: u32) {
        if n < 100 {
            self.put(if n < 10 { "00" } else { "0" });
        }
        self.int(n);
    }

    pub(super) fn line(&mut self, before: &str, value: impl itoa::Integer, after: &str) {
        self.put(before);
        self.int(value);
        self.put(after);
    }

    pub(super) fn int(&mut self, value: impl itoa::Integer) {
        self.put(itoa::Buffer::new().format(value));
    }

    pub(super) fn all(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.put(part));
    }

    pub(super) fn put(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AD: JobDescription<'_> = JobDescription {
        cluster: 11,
        proc: 1,
        submit_s: 1_795_225_803,
        schedd: "ap.example",
        owner: "ada",
        batch: "ok",
        request_cpus: 1,
        request_disk_kb: 10_240,
        request_memory_mb: 64,
        runs: false,
        holds: 1,
    };
    const TIME_MS: i64 = 1_795_225_807_019;

    fn written(body: &EventBody<'_>) -> String {
        let mut text = LogBuffer::default();
        text.event(TIME_MS, &AD, body);
        String::from_utf8(text.bytes).expect("text")
    }

    #[test]
    fn a_hold_and_its_ad() {
        insta::assert_snapshot!(written(&EventBody::Held((13, 2), "no \"in\\put\"")), @r#"
        012 (011.001.000) 11/21 01:50:07 Job was held.
        	no "in\put"
        	Code 13 Subcode 2
        ...
        028 (011.001.000) 11/21 01:50:07 Job ad information event triggered.
        Cluster = 11
        CurrentHosts = 0
        EventTime = "2026-11-21T01:50:07.019"
        EventTypeNumber = 28
        GlobalJobId = "ap.example#11.1#1795225803"
        HoldReason = "no \"in\\put\""
        HoldReasonCode = 13
        HoldReasonSubCode = 2
        JobBatchName = "ok"
        MyType = "JobHeldEvent"
        NumHolds = 1
        Owner = "ada"
        Proc = 1
        RequestCpus = 1
        RequestDisk = 10240
        RequestMemory = 64
        Subproc = 0
        TriggerEventTypeName = "ULOG_JOB_HELD"
        TriggerEventTypeNumber = 12
        ...
        "#);
    }

    #[test]
    fn an_end_and_its_table() {
        let usage = ResourceUsage {
            user_s: 90_061,
            system_s: 3,
            total_user_s: 90_100,
            sent_bytes: 5,
            received_bytes: 484,
            memory_mb: 5,
            disk_kb: 16,
            execute_s: 100_000,
            busy_s: 100_005,
        };
        let text = written(&EventBody::Terminated(&usage, JobExit::Value(0)));
        insta::assert_snapshot!(text.split("028").next().expect("a record"), @"
        005 (011.001.000) 11/21 01:50:07 Job terminated.
        	(1) Normal termination (return value 0)
        		Usr 1 01:01:01, Sys 0 00:00:03  -  Run Remote Usage
        		Usr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
        		Usr 1 01:01:40, Sys 0 00:00:03  -  Total Remote Usage
        		Usr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
        	5  -  Run Bytes Sent By Job
        	484  -  Run Bytes Received By Job
        	5  -  Total Bytes Sent By Job
        	484  -  Total Bytes Received By Job
        	Partitionable Resources :    Usage  Request Allocated 
        	   Cpus                 :     0.90        1         1 
        	   Disk (KB)            :       16    10240     10240 
        	   GPUs                 :                           0 
        	   Memory (MB)          :        5       64       128 
        	   TimeExecute (s)      :   100000                    
        	   TimeSlotBusy (s)     :   100005                    
        ...
        ");
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| Some(line.split_once(" = ")?.0))
            .collect();
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn headers_keep_their_length() {
        let header = LogHeader {
            creator: "ap.example",
            began_s: 1_795_225_787,
            created_s: 1_795_225_787,
            sequence: 1,
            size_bytes: 0,
            offset_bytes: 0,
        };
        let length = |header: &LogHeader<'_>| {
            let mut text = LogBuffer::default();
            text.header(TIME_MS, header);
            text.bytes.len()
        };
        assert_eq!(length(&header), 33 + 256 + 5);
        assert_eq!(
            length(&LogHeader {
                size_bytes: 1 << 40,
                ..header
            }),
            length(&header)
        );
    }
}
