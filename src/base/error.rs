//! Errors as users see them: exit codes, hints, and the text of a chain of causes.

use std::io::ErrorKind;

use crate::escape;

/// Success.
pub const EXIT_DONE: u8 = 0;
/// Failure that a retry may solve: I/O, a lost node, a step that others have not finished yet.
pub const EXIT_RETRY: u8 = 1;
/// Permanent failure: wrong usage, bad data, wrong version. DAGMan's `UNLESS-EXIT`, which accepts a
/// single value, is set to this one.
pub const EXIT_NEVER: u8 = 2;

/// Checkpoint written, restart the job. HTCondor restarts it if its `checkpoint_exit_code` is this
/// value.
pub const EXIT_CHECKPOINTED: u8 = 85;

/// An error with a hint: a next step for the user.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct HintedError {
    message: String,
    hint: String,
    kind: HintedKind,
}

/// The kind of an error with a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HintedKind {
    /// No retry helps.
    Permanent,
    /// A retry helps once other processes have finished their work.
    Early,
    /// An artefact is absent, or of another version.
    Unavailable,
}

/// Creates an error with a hint; `hint` is a command or an option to type.
///
/// The error can be a root error or, through [`anyhow::Error::context`], the context of a cause.
pub fn hinted(message: impl Into<String>, hint: impl Into<String>) -> HintedError {
    HintedError {
        message: message.into(),
        hint: hint.into(),
        kind: HintedKind::Permanent,
    }
}

/// Like [`hinted`], but for an error that a retry solves once other processes have finished their
/// work.
pub fn too_early(message: impl Into<String>, hint: impl Into<String>) -> HintedError {
    HintedError {
        kind: HintedKind::Early,
        ..hinted(message, hint)
    }
}

/// Like [`hinted`], but for an artefact that is absent, or that another version made.
pub fn unavailable(message: impl Into<String>, hint: impl Into<String>) -> HintedError {
    HintedError {
        kind: HintedKind::Unavailable,
        ..hinted(message, hint)
    }
}

/// Returns true if `error` means that an artefact or one of its files is absent, or of another
/// version. Errors about damaged files return false.
pub fn is_unavailable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        let hinted = cause.downcast_ref::<HintedError>();
        io.is_some_and(|io| io.kind() == ErrorKind::NotFound)
            || hinted.is_some_and(|hinted| hinted.kind == HintedKind::Unavailable)
    })
}

/// Returns the exit code for `error`: [`EXIT_RETRY`] if its chain has an operating system error
/// that may be temporary, or it was made by [`too_early`]; else [`EXIT_NEVER`].
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error
        .downcast_ref::<HintedError>()
        .is_some_and(|hinted| hinted.kind == HintedKind::Early)
    {
        return EXIT_RETRY;
    }
    let passing = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| !is_permanent(io.kind()));
    if passing { EXIT_RETRY } else { EXIT_NEVER }
}

fn is_permanent(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::AlreadyExists
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::DirectoryNotEmpty
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidData
            | ErrorKind::InvalidFilename
            | ErrorKind::UnexpectedEof
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::Unsupported
    )
}

/// Returns true if `error` only means that the reader of the output has closed it (`poolcast ... |
/// head`).
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == ErrorKind::BrokenPipe)
}

/// Formats an error for the user: the message, its causes below, and the hint after a blank line.
/// Each takes one line, because names and values in it are escaped.
pub fn render(error: &anyhow::Error) -> String {
    let mut text = format!("error: {}\n", escape::value(&error.to_string()));
    let mut last = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Wrapped operating system errors repeat their own text as their source.
        if !last.contains(&cause) {
            text.push_str(&format!("  caused by: {}\n", escape::value(&cause)));
        }
        last = cause;
    }
    // The hint of the root cause is the most specific. The hint of a context is found only by a
    // downcast of the whole error.
    let root = error.root_cause().downcast_ref::<HintedError>();
    if let Some(hinted) = root.or(error.downcast_ref::<HintedError>()) {
        text.push_str(&format!("\nhint: {}\n", escape::value(&hinted.hint)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn chain_and_hint_are_printed() {
        let error = anyhow::Error::from(std::io::Error::other("disk gone"))
            .context(hinted("cannot write `a`", "use `-o DIR`"))
            .context("parse failed");
        assert_eq!(
            render(&error),
            "error: parse failed\n  caused by: cannot write `a`\n  caused by: disk gone\n\nhint: use `-o DIR`\n"
        );
    }

    #[test]
    fn absence_is_told_from_damage() {
        let absent = anyhow::Error::from(std::io::Error::from(ErrorKind::NotFound)).context("a");
        let damaged = anyhow::Error::from(std::io::Error::from(ErrorKind::InvalidData));
        assert!(is_unavailable(&absent));
        assert!(is_unavailable(
            &anyhow::Error::from(unavailable("m", "h")).context("b")
        ));
        assert!(!is_unavailable(&damaged));
        assert!(!is_unavailable(&hinted("m", "h").into()));
    }

    #[test]
    fn transient_errors_exit_with_retry() {
        let full =
            anyhow::Error::from(std::io::Error::from(ErrorKind::StorageFull)).context("writing");
        let missing = anyhow::Error::from(std::io::Error::from(ErrorKind::NotFound));
        assert_eq!(exit_code(&full), EXIT_RETRY);
        assert_eq!(exit_code(&missing), EXIT_NEVER);
        assert_eq!(exit_code(&anyhow::anyhow!("bad data")), EXIT_NEVER);
        let wrapped: anyhow::Result<()> = Err(hinted("m", "h")).context("outer");
        assert!(render(&wrapped.expect_err("is an error")).ends_with("hint: h\n"));
    }
}
