//! Finds columns by name, and checks that the names of rows are unique.

use std::collections::HashSet;

use anyhow::{Result, bail};

use poolcast_base::error::hinted;
use poolcast_config::nearest;

/// Maximum number of columns that a message lists.
const MAX_LISTED_NAMES: usize = 20;

/// Returns the index of the column `name`.
///
/// # Errors
/// Fails if there is no such column; the message has the nearest name, or the names of the columns.
pub(super) fn find_column(names: &[String], name: &str) -> Result<usize> {
    if let Some(place) = names.iter().position(|known| known == name) {
        return Ok(place);
    }

    let hint = match nearest(name, names.iter().map(String::as_str)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => {
            let listed: Vec<String> = names
                .iter()
                .take(MAX_LISTED_NAMES)
                .map(|name| format!("`{name}`"))
                .collect();
            let more = if names.len() > listed.len() {
                ", ..."
            } else {
                ""
            };
            format!("the columns are {}{more}", listed.join(", "))
        }
    };
    bail!(hinted(format!("there is no column `{name}`"), hint))
}

/// Fails if two rows have the same name. `index` has the names of the rows, from the column
/// `column`.
pub(super) fn check_unique_index(index: &[String], column: &str) -> Result<()> {
    let mut known = HashSet::new();
    for name in index {
        if !known.insert(name) {
            bail!("duplicate `{column}` `{name}`: the index must be unique");
        }
    }
    Ok(())
}
