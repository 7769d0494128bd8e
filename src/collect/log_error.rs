//! Errors of the event log reader, as the program prints them: with their causes and a hint.

use std::io::Read as _;
use std::path::Path;

use super::condor_text::CondorText;
use htcondor_eventlog::{ReadError, SinkError};
use poolcast_base::error::hinted;

/// Advice on finding the log.
pub(super) const FIND_LOG_HINT: &str =
    "`condor_config_val EVENT_LOG` names the global event log of an access point";

/// An error of a sink in a form that the reader can carry.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct CarriedError(anyhow::Error);

/// Wraps the error of a sink, so that [`explain`] can return it.
pub fn sink_error(error: anyhow::Error) -> SinkError {
    Box::new(CarriedError(error))
}

/// Adds a hint to an error of the reader. An error of [`sink_error`] becomes the original error
/// again, and an I/O error stays in the chain of causes, because it decides the exit code.
pub fn explain(error: ReadError) -> anyhow::Error {
    let message = error.to_string();
    match error {
        ReadError::Open { source, .. } => {
            anyhow::Error::from(source).context(hinted(message, FIND_LOG_HINT))
        }
        ReadError::Directory { .. } => hinted(
            message,
            "name the event logs in it, for instance `DIR/EventLog*`",
        )
        .into(),
        ReadError::Empty { .. } => hinted(message, FIND_LOG_HINT).into(),
        ReadError::Read { source, .. } => anyhow::Error::from(source).context(message),
        ReadError::DamagedArchive { path, source } => {
            // As text: a decoder's I/O error would lead to the exit code of a failing disk.
            let cause = format!("the compressed data is damaged or cut short: {source}");
            anyhow::Error::from(hinted(cause, "copy or compress the log again"))
                .context(cannot_read(&path))
        }
        ReadError::NotALog { path } => hinted(message, other_format_hint(&path)).into(),
        ReadError::UnknownYear { .. } => hinted(
            message,
            "name the year of its first event, for instance `--year 2026`",
        )
        .into(),
        ReadError::NoLeapDay { year, .. } => {
            // A leap year, or the year before one.
            let leap = if year % 4 == 0 {
                year - 1
            } else {
                year - year % 4
            };
            hinted(
                message,
                format!("name the year of its first event, for instance `--year {leap}`"),
            )
            .into()
        }
        ReadError::Sink(error) => unwrap_sink_error(error),
        other => other.into(),
    }
}

/// Bytes of a file by which its format is recognised.
const FORMAT_BYTES: u64 = 4096;

/// Returns advice on a file that is no event log: by its name and its first lines.
fn other_format_hint(path: &Path) -> String {
    let shown = path.display().to_string();
    if let Some(dag) = shown.strip_suffix(".dagman.out") {
        return format!("it is DAGMan's own log: the events of its jobs are in `{dag}.nodes.log`");
    }
    let mut begin = Vec::new();
    // A file that cannot be read has no lines.
    let _ =
        fs_err::File::open(path).and_then(|file| file.take(FORMAT_BYTES).read_to_end(&mut begin));
    let text = String::from_utf8_lossy(&begin);
    let is_json = text.contains("\"EventTypeNumber\"");
    match CondorText::of(&text).filter(|_| !is_json) {
        Some(CondorText::EventLog) => {
            "its records do not begin at the left: `poolcast explain` reads their reasons on standard input"
                .to_owned()
        }
        Some(other) => other.words().to_owned(),
        None => format!(
            "an event log's records begin like `012 (123.000.000) 11/21 01:49:47`; {FIND_LOG_HINT}"
        ),
    }
}

/// Like [`explain`], for an error of a function that reads only the beginnings of logs.
pub fn explain_beginning(error: ReadError) -> anyhow::Error {
    let names_reading = matches!(
        error,
        ReadError::Read { .. } | ReadError::DamagedArchive { .. }
    );
    let path = error.path().map(ToOwned::to_owned);
    match path.filter(|_| !names_reading) {
        Some(path) => explain(error).context(cannot_read(&path)),
        None => explain(error),
    }
}

fn cannot_read(log: &Path) -> String {
    format!("cannot read the log `{}`", log.display())
}

fn unwrap_sink_error(error: SinkError) -> anyhow::Error {
    let error = match error.downcast::<CarriedError>() {
        Ok(carried) => return carried.0,
        Err(other) => other,
    };
    match error.downcast::<std::io::Error>() {
        Ok(io) => (*io).into(),
        Err(other) => anyhow::Error::from_boxed(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;
    use htcondor_eventlog::{ReadOptions, likely_access_point, read};
    use poolcast_base::error::{EXIT_NEVER, EXIT_RETRY, exit_code, is_broken_pipe, render};
    use std::io;

    fn read_text(text: &[u8], options: &ReadOptions) -> anyhow::Error {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        fs_err::write(&path, text).expect("written");
        let result = read(&path, options, |_| {}, &mut |_| Ok(()));
        explain(result.expect_err("refused"))
    }

    #[test]
    fn hints_name_commands_and_options() {
        let path = "EventLog".into();
        let without_year = render(&explain(ReadError::UnknownYear { path }));
        assert!(without_year.contains("--year"));
        let leap_day = b"000 (1.0.0) 02/29 17:59:30 s\n...\n";
        let in_2025 = ReadOptions {
            year: Some(2025),
            ..ReadOptions::default()
        };
        let contradicted = render(&read_text(leap_day, &in_2025));
        assert!(contradicted.contains("29 February") && contradicted.contains("--year 2024"));
        let other = render(&read_text(b"hello\nworld\n", &ReadOptions::default()));
        assert!(other.contains("is not an HTCondor event log") && other.contains("EVENT_LOG"));
        for (text, named) in [
            (
                &b" ID OWNER HELD_SINCE HOLD_REASON\n 1.0 ada 11/29 09:10 x\n"[..],
                "poolcast explain",
            ),
            (b"Args = \"\"\nClusterId = 7\n", "--queue"),
            (
                b"  012 (1.000.000) 11/29 09:10:00 Job was held.\n",
                "poolcast explain",
            ),
        ] {
            let hint = render(&read_text(text, &ReadOptions::default()));
            assert!(hint.contains(named), "{hint}");
        }
        let path = "my.dag.dagman.out".into();
        let dagman = render(&explain(ReadError::NotALog { path }));
        assert!(dagman.contains("`my.dag.nodes.log`"), "{dagman}");
        let empty = render(&read_text(b"", &ReadOptions::default()));
        assert!(empty.contains("is empty") && empty.contains("EVENT_LOG"));
    }

    #[test]
    fn damaged_archives_are_not_worth_a_retry() {
        let magic_alone = [0x28, 0xb5, 0x2f, 0xfd, 0, 0];
        let error = read_text(&magic_alone, &ReadOptions::default());
        assert!(render(&error).contains("damaged or cut short"), "{error:#}");
        assert_eq!(exit_code(&error), EXIT_NEVER);
    }

    #[test]
    fn failed_reads_are_worth_a_retry() {
        let error = || ReadError::Read {
            path: "EventLog".into(),
            source: io::Error::other("disk gone"),
        };
        for error in [explain(error()), explain_beginning(error())] {
            assert_eq!(
                render(&error),
                "error: cannot read the log `EventLog`\n  caused by: disk gone\n"
            );
            assert_eq!(exit_code(&error), EXIT_RETRY);
        }
    }

    #[test]
    fn beginnings_are_named_once() {
        let logs = ["missing".into(), "missing too".into()];
        let error = likely_access_point(&logs).expect_err("refused");
        assert!(render(&explain_beginning(error)).starts_with(
            "error: cannot read the log `missing`\n  caused by: cannot open the log `missing`\n"
        ));
    }

    #[test]
    fn sink_errors_are_returned_unchanged() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let failed: anyhow::Result<()> =
            Err(full()).context(hinted("cannot write `a`", "use `-o DIR`"));
        let error = sink_error(failed.expect_err("an error"));
        let error = explain(ReadError::Sink(error));
        let text = render(&error);
        assert!(text.starts_with("error: cannot write `a`\n"), "{text}");
        assert!(text.ends_with("hint: use `-o DIR`\n"), "{text}");
        assert_eq!(exit_code(&error), EXIT_RETRY);

        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&explain(ReadError::Sink(closed.into()))));
        let other = explain(ReadError::Sink("enough".into()));
        assert_eq!(other.to_string(), "enough");
    }
}
