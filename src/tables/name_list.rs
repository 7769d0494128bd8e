//! Lists names of rows or columns for a message.

use poolcast_base::output::counted;

/// Maximum number of names that a message lists.
const MAX_LISTED_NAMES: usize = 5;

/// Returns the first of `names`, each quoted, and the number of the others.
pub(super) fn list_names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let quoted: Vec<String> = names
        .take(MAX_LISTED_NAMES)
        .map(|name| format!("`{name}`"))
        .collect();
    let mut text = quoted.join(", ");
    if count > MAX_LISTED_NAMES {
        text.push_str(&format!(
            " and {}",
            counted(count - MAX_LISTED_NAMES, "other")
        ));
    }
    text
}
