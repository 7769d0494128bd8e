//! Shows the progress of a simulation of windows on stderr.

use anyhow::Result;

use poolcast_base::output;

/// Runs `simulate` with a progress bar, and returns its result. `simulate` gets a callback, which
/// it calls with the number of all windows first, and with `None` for each finished window. `done`
/// names the work on a window, such as "compared".
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
