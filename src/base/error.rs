//! Errors at the edge: exit codes, hints, and how a chain of causes is printed.

use std::io::ErrorKind;

use crate::escape;

/// Done.
pub const EXIT_DONE: u8 = 0;
/// Failed, worth a retry: I/O, a lost node.
pub const EXIT_RETRY: u8 = 1;
/// Will never work: usage, bad data, wrong version. DAGMan's `UNLESS-EXIT` takes this one value.
pub const EXIT_NEVER: u8 = 2;

/// Checkpointed: run me again, as HTCondor does where the job's `checkpoint_exit_code` is this.
pub const EXIT_CHECKPOINTED: u8 = 85;

/// An error that knows what the user can type next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct HintedError {
    message: String,
    hint: String,
    is_early: bool,
}

/// An error with a hint: `hint` is a command or an option to type.
///
/// It serves as a root error and, through [`anyhow::Error::context`], on top of a cause.
pub fn hinted(message: impl Into<String>, hint: impl Into<String>) -> HintedError {
    HintedError {
        message: message.into(),
        hint: hint.into(),
        is_early: false,
    }
}

/// As [`hinted`], where the same call will succeed once others have done their work.
pub fn too_early(message: impl Into<String>, hint: impl Into<String>) -> HintedError {
    HintedError {
        is_early: true,
        ..hinted(message, hint)
    }
}

/// The exit code for `error`: [`EXIT_RETRY`] where an operating system error in its chain can pass,
/// or it is too early, else [`EXIT_NEVER`].
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error
        .downcast_ref::<HintedError>()
        .is_some_and(|hinted| hinted.is_early)
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

/// Whether `error` only says that the reader of our output went away (`poolcast ... | head`).
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == ErrorKind::BrokenPipe)
}

/// The text a user sees: the error, its causes below, the hint after a blank line. Each is one
/// line, whatever names and values it holds.
pub fn render(error: &anyhow::Error) -> String {
    let mut text = format!("error: {}\n", escape::value(&error.to_string()));
    let mut last = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Wrapped operating system errors repeat themselves as their own source.
        if !last.contains(&cause) {
            text.push_str(&format!("  caused by: {}\n", escape::value(&cause)));
        }
        last = cause;
    }
    // The hint of the root cause is the most specific; those of contexts are found by the second
    // way alone.
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
    fn passing_faults_are_worth_a_retry() {
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
