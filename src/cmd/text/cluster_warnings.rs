//! What a simulated cluster left out, or had too much of.

use poolcast_base::output;

/// Jobs that ran at the beginning on more nodes than there are, and jobs that no cluster was large
/// enough for.
pub(super) fn cluster_warnings(excess_nodes: u32, too_large: usize) -> String {
    let mut text = String::new();
    if excess_nodes > 0 {
        let nodes = output::counted(excess_nodes as usize, "node");
        text.push_str(&format!(
            "warning: the jobs that ran at the beginning have {nodes} more than there are\n"
        ));
    }
    if too_large > 0 {
        let jobs = output::counted(too_large, "job");
        text.push_str(&format!(
            "warning: {jobs} left out that need more nodes than there ever are\n"
        ));
    }
    text
}

/// Windows in which a chained job never starts.
pub(super) fn windows_left_out(never_started: usize) -> String {
    if never_started == 0 {
        return String::new();
    }
    let windows = output::counted(never_started, "window");
    format!("{windows} left out, where a chained job never starts\n")
}
