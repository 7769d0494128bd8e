//! Finds the path in a hold reason that HTCondor used on the access point.

/// A path that a hold reason names, and that the access point could not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedPath<'a> {
    /// The path, as the reason has it.
    pub(super) path: &'a str,
    /// Purpose for which HTCondor used it.
    pub(super) use_of_path: PathUse,
    /// Error number; `None` if the reason has none.
    pub(super) error: Option<i32>,
    /// True if nothing else failed: a reason names only the first of several files.
    pub(super) is_only_failure: bool,
    /// The access point, if the reason names it.
    pub(super) access_point: Option<&'a str>,
}

/// Purpose for which HTCondor uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PathUse {
    /// Read it as an input file.
    Read,
    /// Write an output file.
    Write,
    /// Enter it as the initial working directory.
    Enter,
    /// Execute it on the access point.
    Execute,
    /// Send it with the job: the executable or the container image.
    Send,
}

/// Texts before a path, and after it up to the error number, in reasons of file transfers.
const TRANSFER_FORMS: [(&str, &str, PathUse); 6] = [
    ("error reading from ", ": (errno ", PathUse::Read),
    ("reading from file ", ": (errno ", PathUse::Read),
    ("failed to write to file ", ": (errno ", PathUse::Write),
    ("writing to file ", ": (errno ", PathUse::Write),
    ("failed to create output directory (", "): ", PathUse::Write),
    ("failed to create directory ", ": ", PathUse::Write),
];

impl<'a> NamedPath<'a> {
    /// Returns the path on the access point that `reason`, a single line, names; `None` if it names
    /// none, or one on an execution point.
    pub(super) fn in_reason(hold_code: i32, reason: &'a str) -> Option<NamedPath<'a>> {
        match hold_code {
            6 => program_path(reason),
            12 | 13 => transfer_path(reason),
            14 => initial_directory(reason),
            _ => None,
        }
    }
}

/// Parses `Transfer input files failure at access point AP while ... Details: reading from file
/// FILE: (errno 2) No such file or directory`, and the form of versions before 23.
fn transfer_path(reason: &str) -> Option<NamedPath<'_>> {
    let (access_point, details) = match reason.split_once(" files failure at access point ") {
        Some((_, rest)) => {
            let (place, details) = rest.split_once(" Details: ")?;
            (place.split(' ').next(), details)
        }
        None => (None, shadow_words(reason)?),
    };
    let (path, after, use_of_path) =
        TRANSFER_FORMS.iter().find_map(|(before, after, purpose)| {
            let (_, rest) = details.split_once(before)?;
            let (path, after) = rest.split_once(after)?;
            Some((path, after, *purpose))
        })?;
    Some(NamedPath {
        path,
        use_of_path,
        error: error_number(after),
        is_only_failure: failures(details) <= 1,
        access_point,
    })
}

/// Returns the words of the shadow, which is on the access point, in a reason that names the starter,
/// too.
fn shadow_words(reason: &str) -> Option<&str> {
    if reason.contains(" failure at execution point ") {
        return None;
    }
    let (_, words) = reason.split_once("SHADOW at ")?;
    Some(words.split("; STARTER").next().unwrap_or(words))
}

/// Returns the number of failed files in `3 total failures: first failure: ...`.
fn failures(details: &str) -> usize {
    let count = details
        .split_once(" total failures")
        .and_then(|(before, _)| {
            let number = before.rsplit(' ').next()?;
            number.parse().ok()
        });
    count.unwrap_or(1)
}

/// Parses the number at the beginning of `2) No such file`, or at the end of `No such file (errno
/// 2)`.
fn error_number(text: &str) -> Option<i32> {
    let number = match text.rsplit_once("(errno ") {
        Some((_, number)) => number,
        None => text,
    };
    number.split(')').next()?.parse().ok()
}

/// Parses `Cannot access initial working directory DIR: No such file or directory`.
fn initial_directory(reason: &str) -> Option<NamedPath<'_>> {
    let (_, rest) = reason.split_once("Cannot access initial working directory ")?;
    let (path, _) = rest.rsplit_once(": ")?;
    Some(NamedPath {
        path,
        use_of_path: PathUse::Enter,
        error: None,
        is_only_failure: true,
        access_point: None,
    })
}

/// Parses `File 'FILE' is missing or not executable`, which only the schedd writes.
fn program_path(reason: &str) -> Option<NamedPath<'_>> {
    let path = reason
        .strip_prefix("File '")?
        .strip_suffix("' is missing or not executable")?;
    Some(NamedPath {
        path,
        use_of_path: PathUse::Execute,
        error: None,
        is_only_failure: true,
        access_point: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(code: i32, reason: &str) -> Option<(&str, PathUse, Option<i32>, bool)> {
        let named = NamedPath::in_reason(code, reason)?;
        let NamedPath {
            path,
            use_of_path,
            error,
            is_only_failure,
            ..
        } = named;
        Some((path, use_of_path, error, is_only_failure))
    }

    #[test]
    fn paths_of_the_access_point_are_found() {
        let reason = "Transfer input files failure at access point ap40 while sending files to execution point slot1_3@localhost. \
            Details: reading from file /home/ada/in/typo.dat: (errno 2) No such file or directory";
        let input = Some(("/home/ada/in/typo.dat", PathUse::Read, Some(2), true));
        assert_eq!(named(13, reason), input);
        assert_eq!(
            NamedPath::in_reason(13, reason).and_then(|named| named.access_point),
            Some("ap40")
        );
        let several = "Transfer input files failure at access point ap40 while sending files to execution point slot1_3@localhost. \
            Details: 2 total failures: first failure: reading from file /home/ada/a b.dat: (errno 13) Permission denied";
        assert_eq!(
            named(13, several),
            Some(("/home/ada/a b.dat", PathUse::Read, Some(13), false))
        );
        let output = "Transfer output files failure at access point ap40 while receiving files from execution point slot1@e. \
            Details: writing to file /home/ada/out/x.dat: (errno 28) No space left on device";
        assert_eq!(
            named(12, output),
            Some(("/home/ada/out/x.dat", PathUse::Write, Some(28), true))
        );
        let directory = "Error from slot1@e: SHADOW at 10.0.0.1 failed to create directory /home/ada/out: No such file or directory (errno 2)";
        assert_eq!(
            named(12, directory),
            Some(("/home/ada/out", PathUse::Write, Some(2), true))
        );
        assert_eq!(
            named(
                14,
                "Cannot access initial working directory /home/ada/run: No such file or directory"
            ),
            Some(("/home/ada/run", PathUse::Enter, None, true))
        );
        assert_eq!(
            named(6, "File '/home/ada/x.sh' is missing or not executable"),
            Some(("/home/ada/x.sh", PathUse::Execute, None, true))
        );
    }

    #[test]
    fn both_sides_of_older_reasons_are_told_apart() {
        let at_ap = "Error from slot1@TODDS480S: SHADOW at 127.0.0.1 failed to send file(s) to <127.0.0.1:50240>: error reading \
            from /home/ada/in.dat: (errno 2) No such file or directory; STARTER failed to receive file(s) from <127.0.0.1:50211>";
        let input = Some(("/home/ada/in.dat", PathUse::Read, Some(2), true));
        assert_eq!(named(13, at_ap), input);
        let at_ap = "Error from slot1@TODDS480S: STARTER at 127.0.0.1 failed to send file(s) to <127.0.0.1:50288>; SHADOW at 127.0.0.1 \
            failed to write to file /home/ada/not_there/blah: (errno 2) No such file or directory";
        assert_eq!(
            named(12, at_ap),
            Some(("/home/ada/not_there/blah", PathUse::Write, Some(2), true))
        );
        let at_ep = "Error from slot2@TODDS480S: STARTER at 127.0.0.1 failed to send file(s) to <127.0.0.1:50212>: error reading \
            from /var/lib/condor/execute/dir_13724/trans2.bat: (errno 2) No such file or directory; SHADOW failed to receive file(s) from \
            <127.0.0.1:50258>";
        assert_eq!(named(12, at_ep), None);
    }

    #[test]
    fn paths_of_execution_points_and_other_texts_are_ignored() {
        let at_ep = "Transfer output files failure at execution point slot1_2@localhost while sending files to access point localhost. \
            Details: 1 total failures: first failure: reading from file /var/lib/condor/execute/dir_53015/scratch/out.txt: \
            (errno 2) No such file or directory";
        assert_eq!(named(12, at_ep), None);
        for (code, reason) in [
            (13, ""),
            (13, "reading from file /home/ada/x: (errno 2) No such file"),
            (
                13,
                "Transfer input files failure at access point ap. Details: reading from file /home/ada/cut",
            ),
            (
                6,
                "Error from slot1@e: Failed to execute '/home/ada/x.sh': (errno=2: 'No such file')",
            ),
            (14, "Cannot access initial working directory "),
            (26, "Cannot access initial working directory /home/ada: no"),
        ] {
            assert_eq!(named(code, reason), None, "{reason}");
        }
    }
}
