//! The state of a global event log: its size, the time that it covers, and its missing generations.

use std::io::Read as _;
use std::path::Path;

use anyhow::Result;

use super::log_error::{explain, explain_beginning};
use htcondor_eventlog::{
    self as eventlog, EventReader, GlobalHeader, HEADER_BYTES, ReadOptions, find_generations,
    likely_access_point, sequence_number,
};

/// The state of a global event log with its rotated generations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    /// Number of files.
    pub files: usize,
    /// Their size, in bytes.
    pub bytes: u64,
    /// Time of the first event, epoch ms.
    pub begin_ms: Option<i64>,
    /// Time of the last event, epoch ms.
    pub end_ms: Option<i64>,
    /// Pairs of sequence numbers between which generations are missing.
    pub gaps: Vec<(u64, u64)>,
    /// True if the oldest file has the header of a global event log.
    pub has_header: bool,
    /// True if the time stamps have a year.
    pub has_years: bool,
}

/// Examines the log at `log` with its rotated generations. The last file is read whole, and of the
/// others only the beginning.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn inspect_log(log: &Path) -> Result<LogState> {
    let named = [log.to_owned()];
    let files = find_generations(&named).map_err(explain_beginning)?;
    let mut state = LogState {
        files: files.len(),
        bytes: 0,
        begin_ms: None,
        end_ms: None,
        gaps: Vec::new(),
        has_header: false,
        has_years: false,
    };
    let mut before = None;
    for file in &files {
        let bytes = fs_err::metadata(file)?.len();
        state.bytes = state.bytes.saturating_add(bytes);
        let sequence = sequence_number(file).map_err(explain_beginning)?;
        if let (Some(before), Some(sequence)) = (before, sequence)
            && sequence.saturating_sub(before) > 1
        {
            state.gaps.push((before, sequence));
        }
        before = sequence.or(before);
    }

    let options = ReadOptions {
        likely_ap: likely_access_point(&files).map_err(explain_beginning)?,
        ..ReadOptions::default()
    };
    if let Some(first) = files.first() {
        let beginning = read_beginning(first)?;
        state.has_header = GlobalHeader::find(&beginning).is_some();
        state.has_years = has_years(&beginning);
        let event = EventReader::with_options(first, &options)
            .map_err(explain)?
            .next();
        state.begin_ms = event
            .transpose()
            .map_err(explain)?
            .map(|found| found.event.time_ms);
    }
    if let Some(last) = files.last() {
        let summary = eventlog::read(last, &options, |_| {}, &mut |_| Ok(())).map_err(explain)?;
        // A file that was just created has its header alone.
        state.end_ms = summary.end_ms.or(state.begin_ms);
    }
    Ok(state)
}

fn read_beginning(file: &Path) -> Result<Vec<u8>> {
    let mut beginning = Vec::new();
    let opened = fs_err::File::open(file)?;
    opened
        .take(HEADER_BYTES as u64)
        .read_to_end(&mut beginning)?;
    Ok(beginning)
}

/// Returns true if the last record of `beginning` has a stamp with a year. Stamps without one are
/// `11/21 02:05:00`. The header of the log may have another form than its events.
fn has_years(beginning: &[u8]) -> bool {
    let text = String::from_utf8_lossy(beginning);
    let mut stamps = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(" (")?;
        let is_number = number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit());
        let stamp = rest.split_once(") ")?.1;
        is_number.then(|| stamp.split(' ').next().unwrap_or(stamp))
    });
    stamps.next_back().is_none_or(|stamp| !stamp.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(sequence: u64, minute: u32) -> String {
        format!(
            "008 (-01.-01.-01) 01/28 06:28:38 Global JobLog: ctime={} id=0 sequence={sequence} size=0 creator_name=<a>\n...\n\
             000 (7.000.000) 2026-11-21 01:{minute:02}:00 Job submitted from host: <10.0.0.1>\n...\n",
            1_795_225_780 + sequence
        )
    }

    #[test]
    fn missing_generations_and_the_covered_time_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| fs_err::write(dir.path().join(name), text);
        write("EventLog", &generation(9, 50)).expect("written");
        write("EventLog.1", &generation(8, 40)).expect("written");
        write("EventLog.2", &generation(5, 10)).expect("written");
        let state = inspect_log(&dir.path().join("EventLog")).expect("read");
        assert_eq!((state.files, state.gaps), (3, vec![(5, 8)]));
        let span_ms = state
            .end_ms
            .zip(state.begin_ms)
            .map(|(end, begin)| end - begin);
        assert_eq!(span_ms, Some(40 * 60_000));
        assert!(state.has_header && state.has_years);
        assert!(inspect_log(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn largest_sequence_number_is_no_overflow() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| fs_err::write(dir.path().join(name), text);
        let largest = generation(9, 10).replace("sequence=9", &format!("sequence={}", u64::MAX));
        write("EventLog", &largest).expect("written");
        write("EventLog.1", &largest).expect("written");
        let state = inspect_log(&dir.path().join("EventLog")).expect("read");
        assert_eq!((state.files, state.gaps), (2, Vec::new()));
    }

    #[test]
    fn stamps_without_a_year_are_recognised() {
        assert!(!has_years(
            b"012 (1.0.0) 11/21 02:05:00 Job was held.\n...\n"
        ));
        assert!(has_years(b"012 (1.0.0) 2026-11-21 02:05:00 x 1/2\n...\n"));
        assert!(has_years(b"{\"MyType\": \"JobHeldEvent\"}\n"));
    }
}
