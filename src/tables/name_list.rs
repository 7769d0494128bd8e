//! Names of rows or columns → a list for a message.

use poolcast_base::output::counted;

/// How many names a message lists.
const LISTED: usize = 5;

/// Some of `names`, each quoted, and how many others there are.
pub(super) fn list_names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let quoted: Vec<String> = names.take(LISTED).map(|name| format!("`{name}`")).collect();
    let mut text = quoted.join(", ");
    if count > LISTED {
        text.push_str(&format!(" and {}", counted(count - LISTED, "other")));
    }
    text
}
