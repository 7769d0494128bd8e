//! Makes the submit files of a plan: the templates of `condor/`, with the site's commands and the
//! configuration's commands inserted before `queue`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use super::layout::SCRIPT_FILE;
use super::plan::DagPlan;
use super::shared::SharedDirectory;
use super::syntax::{command_lines, retry_line};
use crate::config::SubmitCommands;

/// The steps with their submit files.
const STEPS: [(&str, &str); 5] = [
    ("parse", include_str!("../../../condor/parse.sub")),
    ("tensors", include_str!("../../../condor/tensors.sub")),
    ("trials", include_str!("../../../condor/trials.sub")),
    ("best", include_str!("../../../condor/best.sub")),
    ("evaluate", include_str!("../../../condor/evaluate.sub")),
];

/// The script that DAGMan runs on the access point before and after jobs.
const SCRIPT: &str = include_str!("../../../condor/node.sh");

/// All files in `condor/` of a DAG's directory, by path.
///
/// # Errors
/// Fails for submit commands that users cannot set.
pub(super) fn submit_files(plan: &DagPlan) -> Result<BTreeMap<String, String>> {
    let submit = &plan.config.dag.submit;
    let commands = [
        &submit.parse,
        &submit.tensors,
        &submit.trials,
        &submit.best,
        &submit.evaluate,
    ];
    let mut files = BTreeMap::from([(SCRIPT_FILE.to_owned(), SCRIPT.to_owned())]);
    for ((step, template), commands) in STEPS.iter().zip(commands) {
        files.insert(
            format!("condor/{step}.sub"),
            submit_file(step, template, &plan.site, commands)?,
        );
    }
    files.extend(plan.shared.iter().map(SharedDirectory::location_file));
    Ok(files)
}

fn submit_file(
    step: &str,
    template: &str,
    site: &str,
    commands: &SubmitCommands,
) -> Result<String> {
    let (head, queue) = template
        .rsplit_once("\nqueue")
        .with_context(|| format!("condor/{step}.sub has no `queue` command"))?;
    let mut added = String::new();
    if !site.is_empty() {
        added += &format!("\n# The site\n{site}");
    }
    if !commands.is_empty() {
        added += &format!("\n# `dag.submit.{step}` of the configuration\n");
        added += &command_lines(&format!("`dag.submit.{step}`"), commands)?;
    }
    let retry = retry_line(&added);
    Ok(format!("{head}{added}{retry}\nqueue{queue}"))
}
