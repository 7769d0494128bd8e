//! The names of a table's columns and rows: where a column is, and whether rows can be told apart.

use std::collections::HashSet;

use anyhow::{Result, bail};

use poolcast_config::nearest;
use poolcast_base::error::hinted;

/// How many columns a message lists.
const LISTED: usize = 20;

/// The place of the column `name`.
///
/// # Errors
/// Fails where there is none, and names the nearest or what there is.
pub(super) fn find_column(names: &[String], name: &str) -> Result<usize> {
    if let Some(place) = names.iter().position(|known| known == name) {
        return Ok(place);
    }

    let hint = match nearest(name, names.iter().map(String::as_str)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => {
            let listed: Vec<String> = names
                .iter()
                .take(LISTED)
                .map(|name| format!("`{name}`"))
                .collect();
            let more = if names.len() > listed.len() {
                ", ..."
            } else {
                ""
            };
            format!("there are {}{more}", listed.join(", "))
        }
    };
    bail!(hinted(format!("there is no column `{name}`"), hint))
}

/// Fails where two rows have the same name in the index, the column `column`.
pub(super) fn check_unique_index(index: &[String], column: &str) -> Result<()> {
    let mut known = HashSet::new();
    for name in index {
        if !known.insert(name) {
            bail!("two rows have the `{column}` `{name}`: rows are told apart by it");
        }
    }
    Ok(())
}
