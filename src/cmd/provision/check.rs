//! `poolcast provision check`: examines what can be known of a Slurm before a chain.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::live_sources::{LivePast, now_s};
use crate::cmd::logs::user_salt;
use crate::cmd::own_logs::user_name;
use crate::cmd::text;
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::finding::Finding;
use poolcast_base::output;
use poolcast_cli::ProvisionCheckArgs;
use poolcast_slurm::live::{
    ClusterCheck, ClusterListing, NO_ADVICE_CODE, NoAdviceReason, SlurmFault, StartJournal,
    query_nodes, query_queue, query_settings, query_version,
};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Document that `--json` prints.
#[derive(Serialize)]
struct CheckDocument<'a> {
    /// True if waits can be forecast.
    can_forecast: bool,
    /// The findings, in the order of the examination.
    findings: &'a [Finding],
}

/// Prints the findings. The exit code says whether waits can be forecast.
pub(super) fn run(args: &ProvisionCheckArgs) -> Result<u8> {
    let mut findings = Vec::new();
    let can_forecast = match examine(args, &mut findings) {
        Err(error) if error.is::<SlurmFault>() => {
            let todo = "run this where `sbatch` is, and once Slurm answers";
            findings.push(Finding::bad("slurm", error.to_string(), todo));
            false
        }
        examined => examined?,
    };
    if args.json {
        let document = CheckDocument {
            can_forecast,
            findings: &findings,
        };
        output::print_json(SCHEMA_VERSION, &document)?;
    } else {
        output::print_page(&text::findings::page(&findings, output::page_width()))?;
    }
    Ok(if can_forecast {
        EXIT_DONE
    } else {
        NO_ADVICE_CODE
    })
}

/// Adds what Slurm's programs say to `findings`. Returns true if waits can be forecast.
fn examine(args: &ProvisionCheckArgs, findings: &mut Vec<Finding>) -> Result<bool> {
    let version = query_version()?;
    findings.push(Finding::fact("slurm", format!("the programs of {version}")));
    let (queue, settings) = (query_queue()?, query_settings()?);
    let nodes = query_nodes(Some(&settings))?;
    let partition = args.partition.as_deref().or(settings.default_partition());
    let partition = partition.context(hinted(
        "there is no default partition",
        "name the partition of your jobs: `--partition NAME`",
    ))?;
    if nodes.hosts_in_partition(partition).is_none() {
        let known: Vec<&str> = nodes.partitions().collect();
        let message = format!("Slurm has no partition `{partition}`");
        let hint = format!("use one of: {}", known.join(", "));
        return Err(hinted(message, hint).into());
    }

    let salt = user_salt()?;
    let past = LivePast::find(None, true, &salt, &StartJournal::default())?;
    if !args.json {
        past.note_missing();
    }
    let now_s = now_s(&queue, false);
    let cluster = ClusterListing {
        queue: &queue,
        nodes: Some(&nodes),
        settings: Some(&settings),
    };
    let check = ClusterCheck {
        cluster,
        settings: &settings,
        partition,
        past: &past.past,
        user: &user_name()?,
        now_s,
    };
    findings.extend(check.findings());
    let obstacle = cluster.find_obstacle(partition, now_s);
    findings.push(match &obstacle {
        None => Finding::good("forecast", "waits can be forecast"),
        Some(reason) => {
            let words = text::submission::no_advice_words(reason);
            let todo = match reason {
                NoAdviceReason::UnheardNodes(_) => "run this again in a minute",
                _ => "poolcast provision chain SCRIPT --links N: each link depends on the end of the one before",
            };
            Finding::bad("forecast", words, todo)
        }
    });
    Ok(obstacle.is_none())
}
