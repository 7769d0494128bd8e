//! The machine on which most jobs of a cause failed, and the change of their requirements that avoids it.

use std::collections::BTreeMap;

use super::command_names::{is_plain_name, program_at};
use super::held_ids::{HeldCommand, HeldId};
use super::job_advice::JobAdvice;

/// Minimum number of jobs whose machine is known.
const MIN_JOBS: usize = 3;

/// Maximum number of jobs whose reasons are read.
const MAX_JOBS: usize = 1000;

/// The machine that the reasons of most jobs of a cause name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonMachine {
    /// Its name.
    pub name: String,
    /// Jobs that failed there.
    pub jobs: usize,
    /// Jobs whose machine is known.
    pub of: usize,
    /// Command that lets the jobs avoid it; `None` unless jobs ran on others, too, and they are of one cluster,
    /// whose requirements they share.
    pub avoid: Option<HeldCommand>,
}

impl CommonMachine {
    /// Finds the machine of more than half of the jobs; `None` if there is none, or if too few are known.
    /// `named` are the jobs that commands name.
    pub(super) fn find(jobs: &[&JobAdvice], named: &[HeldId]) -> Option<CommonMachine> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let reasons = jobs
            .iter()
            .take(MAX_JOBS)
            .filter_map(|one| one.reason.as_ref());
        for machine in reasons.filter_map(|reason| machine_in(&reason.to_string())) {
            *counts.entry(machine).or_default() += 1;
        }
        let of = counts.values().sum();
        let (name, jobs) = counts.into_iter().max_by_key(|(_, jobs)| *jobs)?;
        (of >= MIN_JOBS && 2 * jobs > of).then(|| CommonMachine {
            // The only machine that is known may be the only one that there is.
            avoid: (jobs < of).then(|| avoid(&name, named)).flatten(),
            name,
            jobs,
            of,
        })
    }

    /// Says how many of the jobs failed there.
    pub fn words(&self) -> String {
        format!("{} of {} on {}", self.jobs, self.of, self.name)
    }
}

/// Returns the machine of the slot that a reason names, such as `slot1_2@cn030.example`.
fn machine_in(reason: &str) -> Option<String> {
    let mut words = reason.split_whitespace();
    let slot = words.find(|word| word.starts_with("slot") && word.contains('@'))?;
    let (_, machine) = slot
        .trim_end_matches([':', ',', '.', ';'])
        .rsplit_once('@')?;
    is_plain_name(machine).then(|| machine.to_owned())
}

/// Returns the command that adds to the requirements of `jobs` that they do not run on `machine`.
fn avoid(machine: &str, jobs: &[HeldId]) -> Option<HeldCommand> {
    let HeldId { cluster, proc, .. } = *jobs.first()?;
    if jobs.iter().any(|job| job.cluster != cluster) {
        return None;
    }
    let ask = program_at("condor_q", jobs[0].schedd.as_deref())?;
    let arguments = format!(
        r#" Requirements "($({ask} {cluster}.{proc} -af:r Requirements)) && Machine =!= \"{machine}\"""#
    );
    HeldCommand::new("condor_qedit", jobs, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the advice on jobs whose programs are missing on these machines.
    fn held_on(machines: &[&str]) -> Vec<JobAdvice> {
        let one = |machine: &&str| JobAdvice {
            reason: Some(
                format!("Error from slot1_2@{machine}: Failed to execute '/opt/x'")
                    .as_str()
                    .into(),
            ),
            ..JobAdvice::of_test_job()
        };
        machines.iter().map(one).collect()
    }

    fn found(machines: &[&str]) -> Option<CommonMachine> {
        let jobs = held_on(machines);
        let jobs: Vec<&JobAdvice> = jobs.iter().collect();
        let named: Vec<HeldId> = jobs.iter().map(|one| one.held_id()).collect();
        CommonMachine::find(&jobs, &named)
    }

    #[test]
    fn machine_of_most_jobs_is_named_and_can_be_avoided() {
        let on = found(&["cn030", "glidein_1_2@cn030", "cn031", "cn030"]).expect("a machine");
        assert_eq!(on.words(), "3 of 4 on cn030");
        let command = on.avoid.expect("one cluster").to_string();
        let edit =
            r#"' Requirements "($(condor_q 12.0 -af:r Requirements)) && Machine =!= \"cn030\"""#;
        assert!(command.ends_with(edit), "{command}");
        assert!(command.starts_with("condor_qedit -constraint 'JobStatus==5 && "));
        let only = found(&["cn030", "cn030", "cn030"]).expect("a machine");
        assert_eq!(
            (only.words().as_str(), only.avoid),
            ("3 of 3 on cn030", None)
        );
    }

    #[test]
    fn few_jobs_and_different_machines_are_not_named() {
        assert_eq!(found(&["cn030", "cn030"]), None);
        assert_eq!(found(&["cn030", "cn031", "cn030", "cn031"]), None);
        assert_eq!(found(&["$(id)", "$(id)", "$(id)"]), None);
    }
}
