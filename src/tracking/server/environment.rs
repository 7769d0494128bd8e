//! Reads the environment variables that name trackers and their keys.

/// Returns the value of an environment variable; `None` if it is unset or empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
