//! `poolcast doctor`: examines what advice needs on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use super::own_logs::user_name;
use super::results_here::find_results_here;
use super::text;
use poolcast_base::error::{EXIT_DONE, EXIT_RETRY};
use poolcast_base::finding::{Finding, FindingState};
use poolcast_base::output;
use poolcast_cli::DoctorArgs;
use poolcast_site::doctor::Examination;
use poolcast_sweep::config::Config;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Archives that the documentation names: in the directory of a user, and of a site's service.
const ARCHIVES: [&str; 2] = ["archive", "/var/lib/poolcast/archive"];

/// Document that `--json` prints.
#[derive(Serialize)]
struct DoctorDocument<'a> {
    /// True if nothing is to be done.
    is_good: bool,
    /// The findings, in the order of the examination.
    findings: &'a [Finding],
}

/// Prints the findings. The exit code says whether something is to be done.
pub fn run(args: &DoctorArgs) -> Result<u8> {
    let config = Config::load_built_in(&BTreeMap::new())?;
    let now_ms = args
        .now
        .unwrap_or_else(|| jiff::Timestamp::now().as_millisecond());
    let findings = Examination {
        run: find_results_here(),
        site_model: config.advice.site_model,
        archives: ARCHIVES.map(PathBuf::from).to_vec(),
        user: user_name().ok(),
        now_ms,
    }
    .findings();

    let is_good = findings.iter().all(|one| one.state != FindingState::Bad);
    if args.output.json {
        let document = DoctorDocument {
            is_good,
            findings: &findings,
        };
        output::print_json(SCHEMA_VERSION, &document)?;
    } else {
        output::print_page(&text::findings::page(&findings, output::page_width()))?;
    }
    Ok(if is_good { EXIT_DONE } else { EXIT_RETRY })
}
