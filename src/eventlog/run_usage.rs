//! Parses the resource usage of a run: the transferred bytes and the resource table in events 004
//! and 005, and the memory in event 006.

use std::sync::LazyLock;

use memchr::{memchr, memmem};

use super::event_facts::RunUsage;
use super::record::{LogRecord, RecordContent, body_lines};

static SENT_LINE: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new("  -  Run Bytes Sent By Job"));

static TABLE_LINE: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new("Partitionable Resources :"));

/// Parses the usage of the run that event 004, 005 or 015 ends.
#[inline(never)]
pub(super) fn parse_run_usage(record: &LogRecord<'_>) -> RunUsage {
    let text = match record.content {
        RecordContent::Text(text) => text,
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let number = |name| attributes.number(name).map(whole_number);
            return RunUsage {
                execute_s: number("TimeExecuteUsage"),
                busy_s: number("TimeSlotBusyUsage"),
                sent_kib: attributes.number("SentBytes").map(kib_of_bytes),
                received_kib: attributes.number("ReceivedBytes").map(kib_of_bytes),
                memory_mb: number("MemoryUsage"),
                disk_kib: number("DiskUsage"),
            };
        }
    };

    let mut usage = RunUsage::default();
    let mut rest = text;
    if let Some(at) = SENT_LINE.find(text) {
        let line_start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
        usage.sent_kib = leading_number(&text[line_start..at]).map(kib_of_bytes);
        rest = split_line(&text[at..]).1;
        let (line, _) = split_line(rest);
        if memmem::find(line, b"Run Bytes Received By Job").is_some() {
            usage.received_kib = leading_number(line).map(kib_of_bytes);
        }
    }
    if let Some(at) = TABLE_LINE.find(rest) {
        read_table(&rest[at..], &mut usage);
    }
    usage
}

/// Parses the usage of each resource in the table at the start of `text`. A usage is the number
/// between the colon and the end of the column `Usage`; the cell may be empty.
fn read_table(text: &[u8], usage: &mut RunUsage) {
    let (header, mut rest) = split_line(text);
    let colon = memchr(b':', header);
    let usage_end = memmem::find(header, b" Usage");
    let Some((colon, usage_end)) = colon.zip(usage_end) else {
        return;
    };
    let cell_bytes = usage_end + b" Usage".len() - colon;

    loop {
        let (line, after) = split_line(rest);
        let Some(colon) = memchr(b':', line) else {
            return;
        };
        rest = after;
        let cell = &line[colon + 1..line.len().min(colon + cell_bytes)];
        let number = || leading_number(cell).map(whole_number);
        match line[..colon].trim_ascii() {
            b"TimeExecute (s)" => usage.execute_s = number(),
            b"TimeSlotBusy (s)" => usage.busy_s = number(),
            b"Memory (MB)" => usage.memory_mb = number(),
            b"Disk (KB)" => usage.disk_kib = number(),
            _ => {}
        }
    }
}

/// Parses the memory of the job in event 006, in MB: the larger of `MemoryUsage` and the resident
/// set size; 0 if the event has neither.
pub(super) fn parse_memory_mb(record: &LogRecord<'_>) -> i32 {
    let measured = match record.content {
        RecordContent::Text(text) => memory_line(body_lines(text)),
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            let used_mb = attributes.number("MemoryUsage").map(whole_number);
            let resident_kb = attributes.number("ResidentSetSize");
            used_mb.max(resident_kb.map(mb_of_kib))
        }
    };
    i32::try_from(measured.unwrap_or(0)).unwrap_or(i32::MAX)
}

/// Parses the memory in the lines of event 006, in MB.
fn memory_line(body: &[u8]) -> Option<u32> {
    let mut memory_mb = None;
    let mut rest = body;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        rest = after;
        let line = line.trim_ascii_end();
        if line.ends_with(b"MemoryUsage of job (MB)") {
            memory_mb = memory_mb.max(leading_number(line).map(whole_number));
        }
        if line.ends_with(b"ResidentSetSize of job (KB)") {
            memory_mb = memory_mb.max(leading_number(line).map(mb_of_kib));
        }
    }
    memory_mb
}

/// Splits `text` at its first line feed, which is in neither part.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', text) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}

/// Parses the number at the start of `text`, after optional blanks. Its fraction is only a rounding
/// aid: 0.5 stands for any fraction except 0.
fn leading_number(text: &[u8]) -> Option<f64> {
    let text = text.trim_ascii_start();
    let mut whole = 0u64;
    let mut digits = 0;
    while let Some(digit) = text.get(digits).filter(|byte| byte.is_ascii_digit()) {
        whole = whole
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'));
        digits += 1;
    }
    let fraction = text.get(digits) == Some(&b'.');
    let has_fraction = fraction
        && text[digits + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .any(|&byte| byte != b'0');
    (digits > 0).then_some(whole as f64 + if has_fraction { 0.5 } else { 0.0 })
}

/// Rounds a measured number up.
fn whole_number(number: f64) -> u32 {
    number.max(0.0).ceil() as u32
}

fn mb_of_kib(kib: f64) -> u32 {
    whole_number(kib / 1024.0)
}

fn kib_of_bytes(bytes: f64) -> u32 {
    whole_number(bytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::super::record_scan::RecordScan;
    use super::*;

    fn first(text: &str) -> LogRecord<'_> {
        RecordScan::new(text.as_bytes(), true).collect_records()[0]
    }

    const TERMINATED: &str = "005 (200.000.000) 01/05 02:10:17 Job terminated.
\t(1) Normal termination (return value 0)
\t\tUsr 0 00:11:24, Sys 0 00:00:15  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t\tUsr 0 00:11:24, Sys 0 00:00:15  -  Total Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
\t11915  -  Run Bytes Sent By Job
\t12697092  -  Run Bytes Received By Job
\t99999999  -  Total Bytes Sent By Job
\t99999999  -  Total Bytes Received By Job
\tPartitionable Resources :    Usage  Request Allocated 
\t   Cpus                 :     0.92        1         1 
\t   Disk (KB)            :     4832  4194304   4194304 
\t   GPUs                 :                           0 
\t   Memory (MB)          :     1363     2048      2048 
\t   TimeExecute (s)      :      759                    
\t   TimeSlotBusy (s)     :      776                    
...
";

    #[test]
    fn terminations_report_resource_usage() {
        let expected = RunUsage {
            execute_s: Some(759),
            busy_s: Some(776),
            sent_kib: Some(12),
            received_kib: Some(12400),
            memory_mb: Some(1363),
            disk_kib: Some(4832),
        };
        assert_eq!(parse_run_usage(&first(TERMINATED)), expected);
        let dos = TERMINATED.replace('\n', "\r\n");
        assert_eq!(parse_run_usage(&first(&dos)), expected);
        // Trailing blanks may be missing, and tabs may have become blanks.
        let pasted = TERMINATED.replace(" \n", "\n").replace('\t', "    ");
        assert_eq!(parse_run_usage(&first(&pasted)), expected);
    }

    #[test]
    fn unmeasured_usage_is_none() {
        let evicted = "004 (11.1.0) 11/21 01:50:07 Job was evicted. Code 13 Subcode 2
\t(0) CPU times
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t0  -  Run Bytes Sent By Job
\t1  -  Run Bytes Received By Job
\tReason: Transfer input files failure at access point localhost. Details: x
\tPartitionable Resources :    Usage  Request Allocated 
\t   Cpus                 :                 1         1 
\t   Disk (KB)            :       11    10240     10240 
\t   GPUs                 :                           0 
\t   Memory (MB)          :                64       128 
...
";
        let expected = RunUsage {
            sent_kib: Some(0),
            received_kib: Some(1),
            disk_kib: Some(11),
            ..RunUsage::default()
        };
        assert_eq!(parse_run_usage(&first(evicted)), expected);
        for text in [
            "005 (1.0.0) 11/21 01:50:07 Job terminated.\n\t(1) Normal termination (return value 0)\n...\n",
            "005 (1.0.0) 11/21 01:50:07 Job terminated.\n\tPartitionable Resources :\n\t Memory (MB) : 4\n...\n",
            "004 (1.0.0) 11/21 01:50:07 Job was evicted.\n...\n",
        ] {
            assert_eq!(parse_run_usage(&first(text)), RunUsage::default(), "{text}");
        }
    }

    #[test]
    fn classads_give_the_same_usage() {
        let ids = "\"Cluster\": 1, \"Proc\": 0, \"EventTypeNumber\": 5, \"EventTime\": \"2024-01-02T03:04:05\"";
        let json = format!(
            "{{ {ids}, \"SentBytes\": 11915.0, \"ReceivedBytes\": 12697092, \"MemoryUsage\": 1363, \
             \"DiskUsage\": 4832, \"TimeExecuteUsage\": 759, \"TimeSlotBusyUsage\": 776 }}\n"
        );
        let xml = "<c>\n<a n=\"EventTypeNumber\"><i>5</i></a><a n=\"EventTime\"><s>2024-01-02T03:04:05</s></a>\n\
            <a n=\"SentBytes\"><r>1.1915E4</r></a><a n=\"ReceivedBytes\"><r>12697092.0</r></a>\
            <a n=\"MemoryUsage\"><i>1363</i></a><a n=\"DiskUsage\"><i>4832</i></a>\
            <a n=\"TimeExecuteUsage\"><i>759</i></a><a n=\"TimeSlotBusyUsage\"><i>776</i></a>\n</c>\n";
        let text = parse_run_usage(&first(TERMINATED));
        assert_eq!(parse_run_usage(&first(&json)), text);
        assert_eq!(parse_run_usage(&first(xml)), text);
    }

    #[test]
    fn image_size_events_report_memory() {
        let memory = |lines: &str| {
            let text =
                format!("006 (1.0.0) 01/02 03:04:05 Image size of job updated: 6804\n{lines}...\n");
            parse_memory_mb(&first(&text))
        };
        assert_eq!(
            memory("\t5  -  MemoryUsage of job (MB)\n\t4872  -  ResidentSetSize of job (KB)\n"),
            5
        );
        assert_eq!(memory("\t4872  -  ResidentSetSize of job (KB)\n"), 5);
        assert_eq!(
            memory("\t3  -  MemoryUsage of job (MB)\n\t4872  -  ResidentSetSize of job (KB)\n"),
            5,
            "the larger one"
        );
        assert_eq!(memory(""), 0);
        let ids = "\"Cluster\": 1, \"EventTypeNumber\": 6, \"EventTime\": \"2024-01-02T03:04:05\"";
        let json = format!("{{ {ids}, \"Size\": 9, \"ResidentSetSize\": 4872 }}\n");
        assert_eq!(parse_memory_mb(&first(&json)), 5);
    }
}
