//! Detects that standard output was closed before the program started, as by `>&-`.
//!
//! Rust's runtime opens `/dev/null` for a closed descriptor before `main`, so that output would be
//! lost without an error. A constructor runs before the runtime does.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns true if standard output was closed when the process started. Always false on systems
/// without `/proc`.
pub(crate) fn was_stdout_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// Closes the replacement of a closed standard output when another program takes over this process,
/// so that it, too, finds standard output closed.
pub(crate) fn close_replacement_on_exec() -> std::io::Result<()> {
    if was_stdout_closed() {
        rustix::io::fcntl_setfd(std::io::stdout(), rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(())
}

ctor::declarative::ctor! {
    // The attribute requires the word, because code before `main` must not rely on the runtime. This
    // function only calls the kernel and sets a flag: it cannot panic, and starts no thread.
    #[ctor(unsafe)]
    fn note_closed_stdout() {
        let exists = |path: &str| std::fs::symlink_metadata(path).is_ok();
        let is_closed = exists("/proc/self/fd") && !exists("/proc/self/fd/1");
        WAS_CLOSED.store(is_closed, Ordering::Relaxed);
    }
}
