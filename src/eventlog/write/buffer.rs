//! Buffer for log text, with the formats of numbers, times and names that text records and job ads
//! share.

use super::body::{DynamicSlot, JobDescription};
use crate::dates::civil_date;

/// Text of a log that is being written. Everything is appended to one buffer.
#[derive(Debug, Default)]
pub struct LogBuffer {
    /// Text written so far.
    pub bytes: Vec<u8>,
}

impl LogBuffer {
    /// Appends `slot1_N@host`.
    pub(super) fn put_slot(&mut self, slot: &DynamicSlot<'_>) {
        self.put_around("slot1_", slot.number, "@");
        self.put(slot.host);
    }

    /// Appends the job's directory on its execution point.
    pub(super) fn put_scratch_dir(&mut self, job: &JobDescription<'_>) {
        self.put_around(
            "/var/lib/condor/execute/dir_",
            job.cluster % 30_000 + job.proc,
            "/scratch",
        );
    }

    /// Appends the notes of a submission: its batch, and its node of a DAG.
    pub(super) fn put_submit_notes(&mut self, job: &JobDescription<'_>) {
        self.put("[ ");
        if let Some(node) = job.dag_node {
            self.put_all(&["DAGNodeName = \"", node.name, "\"; "]);
        }
        self.put_all(&["JobBatchName = \"", job.batch.unwrap_or_default(), "\" ]"]);
    }

    /// Appends `Usr d hh:mm:ss, Sys d hh:mm:ss`.
    pub(super) fn put_cpu_time(&mut self, user_s: u32, system_s: u32) {
        for (label, seconds) in [("Usr ", user_s), (", Sys ", system_s)] {
            self.put_around(label, seconds / 86_400, " ");
            self.put_clock(seconds % 86_400);
        }
    }

    /// Appends `MM/DD hh:mm:ss`.
    pub(super) fn put_stamp(&mut self, time_ms: i64) {
        let (_, month, day) = civil_date(time_ms);
        self.put_two_digits(month);
        self.put("/");
        self.put_two_digits(day);
        self.put(" ");
        self.put_clock(second_of_day(time_ms));
    }

    /// Appends `YYYY-MM-DDThh:mm:ss.mmm`.
    pub(super) fn put_date_time(&mut self, time_ms: i64) {
        let (year, month, day) = civil_date(time_ms);
        self.put_around("", year, "-");
        self.put_two_digits(month);
        self.put("-");
        self.put_two_digits(day);
        self.put("T");
        self.put_clock(second_of_day(time_ms));

        let ms = time_ms.rem_euclid(1000) as u32;
        self.put_around(".", ms / 100, "");
        self.put_two_digits(ms % 100);
    }

    /// Appends a time of day, in seconds, as `hh:mm:ss`.
    pub(super) fn put_clock(&mut self, seconds: u32) {
        let hour = seconds / 3600;
        let minute = seconds / 60 % 60;
        let second = seconds % 60;
        // All eight bytes are appended at once, because every record has one or two stamps.
        self.bytes.extend_from_slice(&[
            digit(hour / 10),
            digit(hour),
            b':',
            digit(minute / 10),
            digit(minute),
            b':',
            digit(second / 10),
            digit(second),
        ]);
    }

    /// Appends a number in hundredths, with a decimal point.
    pub(super) fn put_hundredths(&mut self, value: u32) {
        self.put_int(value / 100);
        self.put(".");
        self.put_two_digits(value % 100);
    }

    pub(super) fn put_two_digits(&mut self, n: u32) {
        self.bytes.extend_from_slice(&[digit(n / 10), digit(n)]);
    }

    /// Appends a number with at least three digits.
    pub(super) fn put_three_digits(&mut self, n: u32) {
        if n < 100 {
            self.put(if n < 10 { "00" } else { "0" });
        }
        self.put_int(n);
    }

    /// Appends a number, with blanks before it up to `width` characters.
    pub(super) fn put_right_aligned(&mut self, value: u64, width: usize) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(value);
        let blanks = width.saturating_sub(digits.len());
        self.bytes.extend(std::iter::repeat_n(b' ', blanks));
        self.put(digits);
    }

    /// Appends a number between two texts.
    pub(super) fn put_around(&mut self, before: &str, value: impl itoa::Integer, after: &str) {
        self.put(before);
        self.put_int(value);
        self.put(after);
    }

    pub(super) fn put_int(&mut self, value: impl itoa::Integer) {
        self.put(itoa::Buffer::new().format(value));
    }

    pub(super) fn put_all(&mut self, parts: &[&str]) {
        for part in parts {
            self.put(part);
        }
    }

    pub(super) fn put(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

fn digit(n: u32) -> u8 {
    b'0' + (n % 10) as u8
}

fn second_of_day(time_ms: i64) -> u32 {
    (time_ms.rem_euclid(86_400_000) / 1000) as u32
}
