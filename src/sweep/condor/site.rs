//! Reads the submit commands that every job gets at a site.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::syntax::site_lines;
use poolcast_base::error::hinted;

/// The known sites, with their files.
const SITES: [(&str, &str); 3] = [
    ("ospool", include_str!("../../../condor/site-ospool.sub")),
    ("chtc", include_str!("../../../condor/site-chtc.sub")),
    ("pool", include_str!("../../../condor/site-pool.sub")),
];

/// The submit commands of the known site `named`, or of the file with this path.
///
/// # Errors
/// Fails for a file that does not exist, and for commands that a site cannot set.
pub(super) fn read_site(named: &Path) -> Result<String> {
    let known = SITES.iter().find(|(name, _)| Path::new(name) == named);
    let place = format!("`{}`", named.display());
    if let Some((_, text)) = known {
        return site_lines(&place, text);
    }
    let names = SITES.map(|(name, _)| format!("`{name}`")).join(", ");
    let text = fs_err::read_to_string(named).context(hinted(
        format!("cannot read the site file {place}"),
        format!("name a known site ({names}), or a file of submit commands that every job gets"),
    ))?;
    site_lines(&place, &text)
}
