//! Compares the names of hosts.

/// Returns true if both are names of one host, with or without its domain.
pub(super) fn is_same_host(host: &str, other: &str) -> bool {
    let (short, other_short) = (first_label(host), first_label(other));
    let are_full = host.contains('.') && other.contains('.');
    if are_full {
        host.eq_ignore_ascii_case(other)
    } else {
        !short.is_empty() && short.eq_ignore_ascii_case(other_short)
    }
}

fn first_label(host: &str) -> &str {
    host.split('.').next().unwrap_or(host)
}
