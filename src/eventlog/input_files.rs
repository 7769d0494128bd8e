//! Parses the input files in a job's ad. They show which jobs could read a file that others are held
//! for.

use super::event_facts::name_hash;
use super::reason_identity::origin_of;

/// Maximum number of input files of a job that are kept.
pub const MAX_INPUT_FILES: usize = 8;

/// A file or URL that a job reads, as hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InputFile {
    /// Hash of the absolute path or the URL, in full. It equals [`super::HoldFacts::file`] of a hold
    /// whose reason names the same one.
    pub file: u32,
    /// Hash of its origin, as in [`super::HoldFacts::origin`].
    pub origin: u32,
}

/// Parses `list`, the value of `TransferInput`: names separated by commas, relative to the directory
/// `iwd`. URLs come first, as other jobs are likely to read them, too.
pub(super) fn input_files(list: &str, iwd: Option<&str>) -> Vec<InputFile> {
    let mut names: Vec<&str> = list.split(',').map(str::trim).collect();
    names.retain(|name| !name.is_empty());
    names.sort_by_key(|name| !name.contains("://"));

    let files = names
        .into_iter()
        .filter_map(|name| absolute_name(name, iwd))
        .map(|name| InputFile {
            file: name_hash(name.as_bytes()),
            origin: name_hash(origin_of(name.as_bytes())),
        });
    files.take(MAX_INPUT_FILES).collect()
}

/// Returns `name` if it is a URL or an absolute path, or else its path in `iwd`, if that is known.
fn absolute_name(name: &str, iwd: Option<&str>) -> Option<String> {
    let name = name.trim_end_matches('/');
    if name.is_empty() || name.contains("$$(") {
        return None;
    }
    if name.starts_with('/') || name.contains("://") {
        return Some(name.to_owned());
    }
    let iwd = iwd.filter(|iwd| iwd.starts_with('/'))?;
    let name = name.strip_prefix("./").unwrap_or(name);
    Some(format!("{}/{name}", iwd.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::super::reason_identity::read_hold_reason;
    use super::*;

    /// Returns the hashes of what `reason` names.
    fn named(reason: &str) -> InputFile {
        let facts = read_hold_reason(reason.as_bytes(), (13, 2), &mut Vec::new());
        InputFile {
            file: facts.file,
            origin: facts.origin,
        }
    }

    #[test]
    fn inputs_equal_the_files_in_hold_reasons() {
        let files = input_files(
            " in/a.dat,/data/ref.db, osdf:///ospool/ap40/x.tar,,b/",
            Some("/home/ada/"),
        );
        let expected = [
            named("Transfer input files failure: error (osdf:///ospool/ap40/x.tar) timed out"),
            named("Failed to send file(s): reading from file /home/ada/in/a.dat: (errno 2)"),
            named("Failed to send file(s): reading from file /data/ref.db: (errno 2)"),
            named("Failed to send file(s): reading from file /home/ada/b: (errno 2)"),
        ];
        assert_eq!(files, expected);
    }

    #[test]
    fn names_that_are_not_known_yet_are_left_out() {
        assert_eq!(input_files("a, /b/$$(OpSys), /", None), []);
        assert_eq!(input_files("a", Some("relative")), []);
    }

    #[test]
    fn number_of_inputs_is_limited() {
        let list = vec!["/a"; 100].join(",");
        assert_eq!(input_files(&list, None).len(), MAX_INPUT_FILES);
    }
}
