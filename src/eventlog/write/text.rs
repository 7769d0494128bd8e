//! Writes events of jobs as a global event log in HTCondor's format. Each record is followed by an
//! event 028 with the attributes of the job and of the event.
//!
//! Stamps are `MM/DD hh:mm:ss`, HTCondor's default for global event logs.

use super::body::{
    DynamicSlot, EventBody, HoldCode, JobDescription, JobExit, LogHeader, ResourceUsage,
    allocated_mb, cpus_hundredths, image_kb,
};
use super::buffer::LogBuffer;
use super::job_ad::write_job_ad;

impl LogBuffer {
    /// Appends the record of an event, and the event 028 that follows it. `time_ms` is epoch time;
    /// stamps are UTC.
    pub fn event(&mut self, time_ms: i64, job: &JobDescription<'_>, body: &EventBody<'_>) {
        self.record_header(body.number(), time_ms, job);
        self.record_body(job, body);
        self.put("...\n");

        self.record_header(28, time_ms, job);
        write_job_ad(self, time_ms, job, body);
        self.put("...\n");
    }

    /// Appends the header of a global event log. Its text is padded to 256 bytes, so that it can be
    /// overwritten at rotation. `stamp_ms` is the time of writing, epoch ms.
    pub fn header(&mut self, stamp_ms: i64, log: &LogHeader<'_>) {
        self.put("008 (-01.-01.-01) ");
        self.put_stamp(stamp_ms);
        self.put(" ");

        let start = self.bytes.len();
        self.put_around("Global JobLog: ctime=", log.created_s, " id=");
        self.put_all(&[log.creator, ".64.2058."]);
        self.put_around("", log.began_s, ".9836.");
        self.put_around("", log.sequence, ".");
        self.put_around("", log.created_s, ".10030 sequence=");
        self.put_around("", log.sequence, " size=");
        self.put_around("", log.size_bytes, " events=0 offset=");
        self.put_around(
            "",
            log.offset_bytes,
            " event_off=0 max_rotation=9999 creator_name=<",
        );
        self.put_all(&[log.creator, ">"]);
        self.bytes.resize(self.bytes.len().max(start + 256), b' ');
        self.put("\n...\n");
    }

    /// Appends the beginning of a record: `NNN (cluster.proc.000) stamp `.
    fn record_header(&mut self, number: u32, time_ms: i64, job: &JobDescription<'_>) {
        self.put_three_digits(number);
        self.put(" (");
        self.put_three_digits(job.cluster);
        self.put(".");
        self.put_three_digits(job.proc);
        self.put(".000) ");
        self.put_stamp(time_ms);
        self.put(" ");
    }

    /// Appends the text and the body lines of a record, without its terminator.
    fn record_body(&mut self, job: &JobDescription<'_>, body: &EventBody<'_>) {
        match body {
            EventBody::Submit(address) => {
                self.put_all(&["Job submitted from host: <", address, ">\n"]);
                if job.batch.is_some() || job.dag_node.is_some() {
                    self.put("    ");
                    self.put_submit_notes(job);
                    self.put("\n");
                }
            }
            EventBody::Execute(slot) => self.execute_body(job, slot),
            EventBody::ExecuteAtSchedd(address) => {
                self.put_all(&["Job executing on host: <", address, ">\n"]);
            }
            EventBody::Evicted(usage, code, reason) => {
                self.evicted_body(job, usage, *code, reason);
            }
            EventBody::Terminated(usage, exit) => self.terminated_body(job, usage, *exit),
            EventBody::ImageSize(memory_mb) => self.image_size_body(*memory_mb),
            EventBody::Aborted(reason) => self.put_all(&["Job was aborted.\n\t", reason, "\n"]),
            EventBody::Held(code, reason) => {
                self.put_all(&["Job was held.\n\t", reason, "\n\tCode "]);
                self.hold_code(*code);
            }
            EventBody::Released(reason) => self.put_all(&["Job was released.\n\t", reason, "\n"]),
            EventBody::RemoteError(slot, code, message) => {
                self.put("Error from starter on ");
                self.put_slot(slot);
                self.put_all(&[":\n\t", message, "\n\tCode "]);
                self.hold_code(*code);
            }
            EventBody::InputStarted(slot) => {
                self.put("Started transferring input files\n");
                self.put_all(&["\tTransferring to host: <", slot.address, ">\n"]);
            }
            EventBody::InputFinished => self.put("Finished transferring input files\n"),
            EventBody::OutputStarted => self.put("Started transferring output files\n"),
            EventBody::OutputFinished => self.put("Finished transferring output files\n"),
        }
    }

    fn execute_body(&mut self, job: &JobDescription<'_>, slot: &DynamicSlot<'_>) {
        self.put_all(&["Job executing on host: <", slot.address, ">\n\tSlotName: "]);
        self.put_slot(slot);
        self.put("\n\tCondorScratchDir = \"");
        self.put_scratch_dir(job);
        self.put_around("\"\n\tCpus = ", job.request_cpus, "\n");
        self.put_around("\tDisk = ", job.request_disk_kb, "\n\tGPUs = 0\n");
        self.put_around("\tMemory = ", allocated_mb(job), "\n");
    }

    fn evicted_body(
        &mut self,
        job: &JobDescription<'_>,
        usage: &ResourceUsage,
        code: HoldCode,
        reason: &str,
    ) {
        self.put("Job was evicted. Code ");
        self.hold_code(code);
        self.put("\t(0) CPU times\n");
        self.cpu_time_lines(usage.user_s, usage.system_s, "Run");
        self.bytes_line(usage.sent_bytes, "Run", " Bytes Sent");
        self.bytes_line(usage.received_bytes, "Run", " Bytes Received");
        self.put_all(&["\tReason: ", reason, "\n"]);
        self.resource_table(job, usage);
    }

    fn terminated_body(&mut self, job: &JobDescription<'_>, usage: &ResourceUsage, exit: JobExit) {
        self.put("Job terminated.\n");
        match exit {
            JobExit::Value(value) => {
                self.put_around("\t(1) Normal termination (return value ", value, ")\n");
            }
            JobExit::Signal(signal) => {
                self.put_around("\t(0) Abnormal termination (signal ", signal, ")\n");
                self.put("\t(0) No core file\n");
            }
        }

        self.cpu_time_lines(usage.user_s, usage.system_s, "Run");
        self.cpu_time_lines(usage.total_user_s, usage.system_s, "Total");
        for usage_scope in ["Run", "Total"] {
            self.bytes_line(usage.sent_bytes, usage_scope, " Bytes Sent");
            self.bytes_line(usage.received_bytes, usage_scope, " Bytes Received");
        }
        self.resource_table(job, usage);
    }

    fn image_size_body(&mut self, memory_mb: u32) {
        let resident_kb = u64::from(memory_mb) * 1024;
        self.put_around("Image size of job updated: ", image_kb(memory_mb), "\n");
        self.put_around("\t", memory_mb, "  -  MemoryUsage of job (MB)\n");
        self.put_around("\t", resident_kb, "  -  ResidentSetSize of job (KB)\n");
    }

    /// Appends the lines of remote and local CPU time. Local time is 0, because nothing runs on the
    /// access point.
    fn cpu_time_lines(&mut self, user_s: u32, system_s: u32, usage_scope: &str) {
        for (user_s, system_s, place) in [(user_s, system_s, " Remote"), (0, 0, " Local")] {
            self.put("\t\t");
            self.put_cpu_time(user_s, system_s);
            self.put_all(&["  -  ", usage_scope, place, " Usage\n"]);
        }
    }

    fn bytes_line(&mut self, bytes: u32, usage_scope: &str, direction: &str) {
        self.put_around("\t", bytes, "  -  ");
        self.put_all(&[usage_scope, direction, " By Job\n"]);
    }

    /// Appends the table of resources. Its cells are right-aligned under the words of its header.
    fn resource_table(&mut self, job: &JobDescription<'_>, usage: &ResourceUsage) {
        self.put("\tPartitionable Resources :    Usage  Request Allocated \n");

        self.put("\t   Cpus                 :     ");
        self.put_hundredths(cpus_hundredths(usage));
        let cpus = u64::from(job.request_cpus);
        self.table_cells(&[(9, cpus), (10, cpus)]);

        let disk_kb = job.request_disk_kb;
        self.put("\t   Disk (KB)            :");
        self.table_cells(&[(9, usage.disk_kb.into()), (9, disk_kb), (10, disk_kb)]);

        self.put("\t   GPUs                 :                           0 \n");

        self.put("\t   Memory (MB)          :");
        self.table_cells(&[
            (9, usage.memory_mb.into()),
            (9, job.request_memory_mb.into()),
            (10, allocated_mb(job).into()),
        ]);

        for (label, seconds) in [
            ("\t   TimeExecute (s)      :", usage.execute_s),
            ("\t   TimeSlotBusy (s)     :", usage.busy_s),
        ] {
            self.put(label);
            self.put_right_aligned(seconds.into(), 9);
            self.put("                    \n");
        }
    }

    /// Appends the cells of a row, each with its width.
    fn table_cells(&mut self, cells: &[(usize, u64)]) {
        for &(width, value) in cells {
            self.put_right_aligned(value, width);
        }
        self.put(" \n");
    }

    /// Appends `CODE Subcode SUBCODE` and a line feed.
    fn hold_code(&mut self, (code, subcode): HoldCode) {
        self.put_int(code);
        self.put_around(" Subcode ", subcode, "\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::body::DagNode;
    use super::*;

    const TEST_JOB: JobDescription<'_> = JobDescription {
        cluster: 11,
        proc: 1,
        submit_s: 1_795_225_803,
        schedd: "ap.example",
        owner: "ada",
        batch: Some("ok"),
        dag_node: None,
        last_slot: None,
        request_cpus: 1,
        request_disk_kb: 10_240,
        request_memory_mb: 64,
        transfer_input: None,
        iwd: None,
        runs: false,
        holds: 1,
    };
    const TIME_MS: i64 = 1_795_225_807_019;

    fn written(body: &EventBody<'_>) -> String {
        let mut text = LogBuffer::default();
        text.event(TIME_MS, &TEST_JOB, body);
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
    fn a_node_of_a_dag_and_a_job_without_a_batch() {
        let submitted = |ad: &JobDescription<'_>| {
            let mut text = LogBuffer::default();
            text.event(TIME_MS, ad, &EventBody::Submit("10.0.0.1:9618"));
            String::from_utf8(text.bytes).expect("text")
        };
        let node = JobDescription {
            batch: Some("wf.dag+7"),
            dag_node: Some(DagNode {
                dagman_cluster: 7,
                name: "fit_01",
            }),
            last_slot: Some(DynamicSlot {
                number: 3,
                host: "e1.example",
                address: "10.0.0.2:9618",
            }),
            ..TEST_JOB
        };
        let plain = JobDescription {
            batch: None,
            ..TEST_JOB
        };
        insta::assert_snapshot!(submitted(&node) + &submitted(&plain));
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
