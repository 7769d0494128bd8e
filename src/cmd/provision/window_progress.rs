//! How far a simulation of windows is, on stderr.

use anyhow::Result;

use poolcast_base::output;

/// What `simulate` returns. It is given what it has to call with the number of all windows, and once for
/// each that is done. `done` is what has been done to these then, such as "compared".
pub(super) fn with_window_progress<T>(
    done: &str,
    simulate: impl FnOnce(&(dyn Fn(Option<usize>) + Sync)) -> Result<T>,
) -> Result<T> {
    let bar = output::item_bar(0, "windows");
    let progress = |total: Option<usize>| match total {
        Some(total) => bar.set_length(total as u64),
        None => bar.inc(1),
    };
    let far = || {
        let windows = output::counted(bar.position() as usize, "window");
        format!("{windows} {done}")
    };

    let simulated = output::with_progress_notes(far, || simulate(&progress));
    bar.finish_and_clear();
    simulated
}
