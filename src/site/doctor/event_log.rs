//! The global event log: whether it is configured and readable, how much time it covers, how it is
//! rotated, and its gaps.

use std::path::{Path, PathBuf};

use super::clock;
use poolcast_base::finding::Finding;
use poolcast_base::output::{counted, time_span, utc_time, with_commas};
use poolcast_collect::{LogState, inspect_log};
use poolcast_sweep::condor;

/// Time that a log should cover. Most holds last for less than a day, and their ends teach.
const MIN_SPAN_MS: i64 = 86_400_000;

/// Space for the log that `poolcast` asks for, in bytes: the product of the settings in
/// [`LARGER_LOG`] and one more for the file that is written.
const MIN_LOG_BYTES: u64 = 100_000_000;

/// Lines of configuration for a larger log.
const LARGER_LOG: &str = "as an administrator, in the configuration of HTCondor: EVENT_LOG_MAX_SIZE = 20000000 and EVENT_LOG_MAX_ROTATIONS = 9";

/// Attributes of jobs from which answers know whose jobs succeeded, and who could read a file.
const USEFUL_ATTRIBUTES: [&str; 3] = ["Owner", "TransferInput", "Iwd"];

/// The global event log, as HTCondor's configuration names it.
pub(super) enum LogPlace {
    /// HTCondor's programs are not here.
    Unknown,
    /// `EVENT_LOG` is not defined.
    Undefined,
    /// The path of the log.
    At(PathBuf),
}

impl LogPlace {
    pub(super) fn configured() -> LogPlace {
        match condor::configured_value("EVENT_LOG") {
            Ok(Some(path)) => LogPlace::At(PathBuf::from(path)),
            Ok(None) => LogPlace::Undefined,
            Err(_) => LogPlace::Unknown,
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            LogPlace::At(path) => Some(path),
            LogPlace::Unknown | LogPlace::Undefined => None,
        }
    }
}

/// Examines the log at `place`. A user who has a model, as `has_model` says, need not read it.
pub(super) fn findings(place: &LogPlace, has_model: bool, now_ms: i64) -> Vec<Finding> {
    let path = match place {
        LogPlace::Unknown => return Vec::new(),
        LogPlace::Undefined => {
            return vec![Finding::bad(
                "event log",
                "EVENT_LOG is not defined: HTCondor keeps no log of all jobs",
                "poolcast advise, or poolcast advise --log mine, about your own jobs; an administrator types: poolcast site init",
            )];
        }
        LogPlace::At(path) => path,
    };
    let mut findings = vec![Finding::good(
        "event log",
        format!("EVENT_LOG is {}", path.display()),
    )];
    match inspect_log(path) {
        Ok(state) => {
            findings.push(span_finding(&state));
            findings.extend(gap_finding(&state));
            findings.extend(clock::findings(&state, now_ms));
        }
        Err(error) if is_denied(&error) => {
            // Its rotation is a matter of those who may read it.
            findings.push(denied_finding(path, has_model));
            return findings;
        }
        Err(error) => findings.push(Finding::bad(
            "rights",
            format!("{} cannot be read: {error:#}", path.display()),
            "submit a job, and ask again: HTCondor creates the log with the first event",
        )),
    }
    findings.extend(rotation_finding());
    findings.push(attributes_finding());
    findings
}

/// Describes a log that this user may not read.
fn denied_finding(path: &Path, has_model: bool) -> Finding {
    let words = format!("you may not read {}", path.display());
    if has_model {
        let words = format!("{words}; the model and the logs of your own jobs suffice");
        return Finding::fact("rights", words);
    }
    Finding::bad(
        "rights",
        words,
        "use the logs of your own jobs: poolcast advise --log mine; or ask the administrators for a model: poolcast site init",
    )
}

fn is_denied(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::PermissionDenied)
    })
}

/// Describes the size of the log and the time that it covers.
fn span_finding(state: &LogState) -> Finding {
    let size = format!(
        "{} in {}",
        counted(usize::try_from(state.bytes).unwrap_or(usize::MAX), "byte"),
        counted(state.files, "file")
    );
    let Some((begin_ms, end_ms)) = state.begin_ms.zip(state.end_ms) else {
        return Finding::bad(
            "span",
            format!("{size}, without an event"),
            "submit a job, and ask again",
        );
    };
    let span_ms = end_ms.saturating_sub(begin_ms);
    let words = format!(
        "{size}: {} to {}, {}",
        utc_time(begin_ms),
        utc_time(end_ms),
        time_span(span_ms)
    );
    if span_ms < MIN_SPAN_MS {
        let todo = "collect it regularly: poolcast collect \"$(condor_config_val EVENT_LOG)\" -o archive; or keep more of it, see rotation";
        return Finding::bad(
            "span",
            format!("{words}: less than a day teaches little"),
            todo,
        );
    }
    Finding::good("span", words)
}

/// Describes the generations of the log that are missing between others.
fn gap_finding(state: &LogState) -> Option<Finding> {
    if !state.has_header {
        return None;
    }
    if state.gaps.is_empty() {
        return Some(Finding::good("gaps", "no generation of the log is missing"));
    }
    let gaps: Vec<String> = state
        .gaps
        .iter()
        .map(|(after, before)| format!("{after} and {before}"))
        .collect();
    Some(Finding::bad(
        "gaps",
        format!("generations are missing between {}", gaps.join(", ")),
        "let HTCondor alone rotate the log, and collect it: poolcast collect LOG -o archive",
    ))
}

/// Says which attributes of jobs the log lacks.
fn attributes_finding() -> Finding {
    let setting = condor::configured_value("EVENT_LOG_JOB_AD_INFORMATION_ATTRS");
    Finding::fact(
        "job ads",
        attributes_words(&setting.ok().flatten().unwrap_or_default()),
    )
}

/// Says which of [`USEFUL_ATTRIBUTES`] are not among `listed`, which are separated by commas or blanks.
fn attributes_words(listed: &str) -> String {
    let listed: Vec<&str> = listed
        .split([',', ' ', '\t'])
        .filter(|name| !name.is_empty())
        .collect();
    let is_missing = |name: &&str| !listed.iter().any(|one| one.eq_ignore_ascii_case(name));
    let missing: Vec<&str> = USEFUL_ATTRIBUTES.into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return "the log names the owner and the input files of each job".to_owned();
    }
    format!(
        "the log lacks {}, which answers could use: add them to EVENT_LOG_JOB_AD_INFORMATION_ATTRS",
        missing.join(", ")
    )
}

/// Describes the settings for the rotation of the log.
fn rotation_finding() -> Option<Finding> {
    let value = |name| condor::configured_value(name).ok().flatten();
    let number = |name| value(name)?.trim().parse::<u64>().ok();
    let max_bytes = number("EVENT_LOG_MAX_SIZE")?;
    // HTCondor renames one generation to `.old` if the number is 1.
    let rotations = number("EVENT_LOG_MAX_ROTATIONS")?;
    Some(rotation_words(max_bytes, rotations))
}

fn rotation_words(max_bytes: u64, rotations: u64) -> Finding {
    if max_bytes == 0 {
        return Finding::bad(
            "rotation",
            "EVENT_LOG_MAX_SIZE = 0: the log is never rotated, and grows without end",
            LARGER_LOG,
        );
    }
    let kept = max_bytes.saturating_mul(rotations.saturating_add(1));
    let words = format!(
        "EVENT_LOG_MAX_SIZE = {max_bytes}, EVENT_LOG_MAX_ROTATIONS = {rotations}: at most {} bytes are kept",
        with_commas(kept)
    );
    if kept < MIN_LOG_BYTES {
        return Finding::bad("rotation", words, LARGER_LOG);
    }
    Finding::good("rotation", words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::finding::FindingState;

    #[test]
    fn missing_attributes_of_jobs_are_named() {
        let lacks = attributes_words("owner, RequestMemory");
        assert!(lacks.contains("lacks TransferInput, Iwd,"), "{lacks}");
        let complete = attributes_words("Owner TransferInput,Iwd");
        assert!(complete.contains("names the owner and the input files"));
    }

    fn state(span_ms: i64) -> LogState {
        LogState {
            files: 2,
            bytes: 1_234_567,
            begin_ms: Some(1_795_225_787_000),
            end_ms: Some(1_795_225_787_000 + span_ms),
            gaps: Vec::new(),
            has_header: true,
            has_years: true,
        }
    }

    #[test]
    fn minutes_of_a_log_are_too_few() {
        let short = span_finding(&state(600_000));
        assert_eq!(short.state, FindingState::Bad);
        assert!(
            short.words.starts_with("1,234,567 bytes in 2 files: 2026-11-21 01:49:47 UTC to 2026-11-21 01:59:47 UTC, 10 min 0 s"),
            "{}",
            short.words
        );
        assert_eq!(span_finding(&state(MIN_SPAN_MS)).state, FindingState::Good);
        let empty = LogState {
            end_ms: None,
            ..state(0)
        };
        assert_eq!(span_finding(&empty).state, FindingState::Bad);
    }

    #[test]
    fn default_rotation_keeps_too_little() {
        assert_eq!(rotation_words(1_000_000, 1).state, FindingState::Bad);
        assert_eq!(rotation_words(20_000_000, 9).state, FindingState::Good);
        assert_eq!(rotation_words(0, 9).state, FindingState::Bad);
        assert_eq!(rotation_words(u64::MAX, u64::MAX).state, FindingState::Good);
    }

    #[test]
    fn missing_generations_are_named() {
        let mut found = state(MIN_SPAN_MS);
        assert_eq!(
            gap_finding(&found).map(|gap| gap.state),
            Some(FindingState::Good)
        );
        found.gaps = vec![(3, 7)];
        let gap = gap_finding(&found).expect("a finding");
        assert_eq!(gap.words, "generations are missing between 3 and 7");
        found.has_header = false;
        assert_eq!(gap_finding(&found), None);
    }
}
