//! Reads the report of a running program: lines of JSON in its report file or in its output, or the
//! files of the `wandb` library.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Map, Value};

use super::report_line::parse_line;
use super::wandb_files::{GivenValues, WandbFiles};
use poolcast_base::files;

/// Maximum number of values of the metric that are kept. Hyperband compares trials up to there.
const MAX_VALUES: usize = 10_000;

/// Maximum number of names whose last value is kept.
const MAX_NAMES: usize = 1000;

/// Maximum length of a name, and of a line, in bytes.
const MAX_NAME_BYTES: usize = 200;
const MAX_LINE_BYTES: usize = 1 << 20;

/// Maximum number of bytes that are read at once.
const BLOCK_BYTES: u64 = 1 << 20;

/// The values that a program has reported so far.
#[derive(Debug, Clone, Default)]
pub(super) struct TrialReport {
    /// The first values of the metric, where it was defined.
    pub(super) values: Vec<Option<f64>>,
    /// The last value of the metric.
    pub(super) value: Option<f64>,
    /// Number of reports of the metric.
    pub(super) reports: usize,
    /// Last value of each name.
    pub(super) last: BTreeMap<String, f64>,
}

impl TrialReport {
    fn is_empty(&self) -> bool {
        self.reports == 0 && self.last.is_empty()
    }

    /// Adds the numbers of `object`, a line of the report.
    fn add(&mut self, object: Map<String, Value>, metric: Option<&str>) {
        let mut numbers = BTreeMap::new();
        add_numbers(&mut numbers, "", object);
        if let Some(value) = metric.and_then(|metric| numbers.get(metric)) {
            self.reports += 1;
            self.value = *value;
            if self.values.len() < MAX_VALUES {
                self.values.push(*value);
            }
        }
        self.set_last(numbers);
    }

    /// Sets the values of `object`, which the program has put into its summary in place of the last
    /// ones.
    fn set(&mut self, object: Map<String, Value>, metric: Option<&str>) {
        let mut numbers = BTreeMap::new();
        add_numbers(&mut numbers, "", object);
        if let Some(value) = metric.and_then(|metric| numbers.get(metric)) {
            self.value = *value;
        }
        self.set_last(numbers);
    }

    fn set_last(&mut self, numbers: BTreeMap<String, Option<f64>>) {
        for (name, value) in numbers {
            let has_room = self.last.len() < MAX_NAMES || self.last.contains_key(&name);
            match value {
                Some(value) if has_room => {
                    self.last.insert(name, value);
                }
                _ => {}
            }
        }
    }
}

/// Adds the numbers of `object`, whose names continue the name `above`. A number that JSON lacks is
/// `None`.
fn add_numbers(
    numbers: &mut BTreeMap<String, Option<f64>>,
    above: &str,
    object: Map<String, Value>,
) {
    for (name, value) in object {
        let name = format!("{above}{name}");
        if name.len() > MAX_NAME_BYTES {
            continue;
        }
        match value {
            Value::Object(nested) => add_numbers(numbers, &format!("{name}."), nested),
            Value::Number(number) => {
                numbers.insert(name, number.as_f64());
            }
            Value::Null => {
                numbers.insert(name, None);
            }
            Value::Bool(_) | Value::String(_) | Value::Array(_) => {}
        }
    }
}

/// A text file that grows while it is read.
struct GrowingFile {
    path: PathBuf,
    offset: u64,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
}

impl GrowingFile {
    fn new(path: &Path) -> GrowingFile {
        GrowingFile {
            path: path.to_owned(),
            offset: 0,
            begun: Vec::new(),
        }
    }

    /// Calls `on_line` with each line that was completed since the last call. A line that is too
    /// long is dropped.
    fn read_lines(&mut self, mut on_line: impl FnMut(&[u8])) -> Result<()> {
        loop {
            let block = self.read_block()?;
            if block.is_empty() {
                return Ok(());
            }
            for line in block.split_inclusive(|byte| *byte == b'\n') {
                if self.begun.len() + line.len() <= MAX_LINE_BYTES {
                    self.begun.extend_from_slice(line);
                }
                if line.ends_with(b"\n") {
                    on_line(&self.begun);
                    self.begun.clear();
                }
            }
        }
    }

    /// Calls `on_line` with a last line that has no end.
    fn read_last_line(&mut self, mut on_line: impl FnMut(&[u8])) {
        on_line(&std::mem::take(&mut self.begun));
    }

    fn read_block(&mut self) -> Result<Vec<u8>> {
        let mut block = Vec::new();
        // The program may not have made the file yet, or may have removed it.
        if !files::is_regular(&self.path) {
            return Ok(block);
        }
        let mut file = files::open_regular(&self.path, u64::MAX)?;
        file.seek(SeekFrom::Start(self.offset))?;
        file.take(BLOCK_BYTES).read_to_end(&mut block)?;
        self.offset += block.len() as u64;
        Ok(block)
    }
}

/// Reads the report of a program while it runs. Its report file counts, or else what it gave to
/// `wandb`, or else the lines of JSON in its output.
pub(super) struct ReportReader {
    metric: Option<String>,
    file: GrowingFile,
    of_file: TrialReport,
    wandb: WandbFiles,
    of_wandb: TrialReport,
    log: GrowingFile,
    of_log: TrialReport,
}

impl ReportReader {
    /// Reads the report file `file`, the files of `wandb` below `dir`, and the output in `log`, from
    /// their beginning.
    pub(super) fn new(metric: Option<String>, file: &Path, dir: &Path, log: &Path) -> ReportReader {
        ReportReader {
            metric,
            file: GrowingFile::new(file),
            of_file: TrialReport::default(),
            wandb: WandbFiles::new(dir),
            of_wandb: TrialReport::default(),
            log: GrowingFile::new(log),
            of_log: TrialReport::default(),
        }
    }

    /// The report so far.
    pub(super) fn report(&self) -> &TrialReport {
        let reports = [&self.of_file, &self.of_wandb];
        let found = reports.into_iter().find(|report| !report.is_empty());
        found.unwrap_or(&self.of_log)
    }

    /// Reads the lines that the program has completed since the last call. After the end of the
    /// program, `is_over`, a last line need not be complete.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(super) fn read(&mut self, is_over: bool) -> Result<()> {
        let metric = self.metric.as_deref();
        let of_wandb = &mut self.of_wandb;
        self.wandb.read(|values| match values {
            GivenValues::Logged(values) => of_wandb.add(values, metric),
            GivenValues::Summary(values) => of_wandb.set(values, metric),
        })?;
        for (file, report) in [
            (&mut self.file, &mut self.of_file),
            (&mut self.log, &mut self.of_log),
        ] {
            let mut add = |line: &[u8]| {
                if let Some(object) = parse_line(line) {
                    report.add(object, metric);
                }
            };
            file.read_lines(&mut add)?;
            if is_over {
                file.read_last_line(&mut add);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(file: &str, log: &str, metric: &str) -> TrialReport {
        let dir = tempfile::tempdir().expect("a directory");
        let [file_path, log_path] = ["report", "log"].map(|name| dir.path().join(name));
        fs_err::write(&file_path, file).expect("written");
        fs_err::write(&log_path, log).expect("written");
        let mut reader =
            ReportReader::new(Some(metric.to_owned()), &file_path, dir.path(), &log_path);
        reader.read(true).expect("read");
        reader.report().clone()
    }

    #[test]
    fn last_value_and_history_of_the_metric_are_kept() {
        let log = "begins\n{\"loss\": 3, \"step\": 1}\n{\"acc\": 0.5}\n  {\"loss\": 2.5}\n{broken\n{\"loss\": 2}";
        let report = report_of("", log, "loss");
        assert_eq!(report.values, [Some(3.0), Some(2.5), Some(2.0)]);
        assert_eq!((report.value, report.reports), (Some(2.0), 3));
        assert_eq!(report.last["acc"], 0.5);
    }

    #[test]
    fn report_file_counts_instead_of_the_output() {
        let report = report_of("{\"loss\": 1}\n", "{\"loss\": 9}\n{\"loss\": 8}\n", "loss");
        assert_eq!(report.values, [Some(1.0)]);
    }

    #[test]
    fn nested_names_are_dotted() {
        let report = report_of("{\"val\": {\"loss\": 1.5}, \"a/b\": 2}\n", "", "val.loss");
        assert_eq!((report.value, report.last["a/b"]), (Some(1.5), 2.0));
    }

    #[test]
    fn infinite_values_are_undefined() {
        let report = report_of(r#"{"loss": NaN, "a": -Infinity, "b": 1}"#, "", "loss");
        assert_eq!((report.value, report.reports), (None, 1));
        assert_eq!(report.last, BTreeMap::from([("b".to_owned(), 1.0)]));
    }

    #[test]
    fn lines_are_read_once_they_are_complete() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("report");
        let log = dir.path().join("log");
        let mut reader = ReportReader::new(Some("a".to_owned()), &path, dir.path(), &log);
        reader.read(false).expect("no file yet");
        for (text, reports) in [("{\"a\": ", 0), ("1}\n{\"a\"", 1), (": 2}\n", 2)] {
            let mut file = fs_err::OpenOptions::new();
            let mut file = file.create(true).append(true).open(&path).expect("opened");
            std::io::Write::write_all(&mut file, text.as_bytes()).expect("written");
            reader.read(false).expect("read");
            assert_eq!(reader.report().reports, reports);
        }
    }
}
