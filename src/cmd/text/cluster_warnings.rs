//! Warnings about a simulated cluster: jobs that it skipped, and nodes that it lacks.

use poolcast_base::output;

/// Warns about nodes missing for the jobs that ran at the beginning, and about jobs that were too
/// large for the cluster at all times.
pub(super) fn cluster_warnings(excess_nodes: u32, too_large: usize) -> String {
    let mut text = String::new();
    if excess_nodes > 0 {
        let nodes = output::counted(excess_nodes as usize, "node");
        text.push_str(&format!(
            "warning: the jobs that ran at the beginning use {nodes} more than the cluster has\n"
        ));
    }
    if too_large > 0 {
        let jobs = output::counted(too_large, "job");
        text.push_str(&format!(
            "warning: skipped {jobs} that need more nodes than the cluster ever has\n"
        ));
    }
    text
}

/// The number of windows dropped because the chained job never starts in them.
pub(super) fn dropped_windows_note(never_started: usize) -> String {
    if never_started == 0 {
        return String::new();
    }
    let windows = output::counted(never_started, "window");
    format!("skipped {windows} in which a chained job never starts\n")
}
