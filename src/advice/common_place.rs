//! The machine or the site where most jobs of a cause failed, and the change of their requirements that avoids it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use htcondor_holdreasons::read_reason;

use super::command_names::{is_plain_name, program_at};
use super::held_ids::{HeldCommand, HeldId};
use super::job_advice::JobAdvice;

/// Minimum number of jobs whose place is known.
const MIN_JOBS: usize = 3;

/// Maximum number of jobs whose reasons are read.
const MAX_JOBS: usize = 1000;

/// The attribute of a slot that names its machine.
const MACHINE: &str = "Machine";

/// The machine or the site where most jobs of a cause failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommonPlace {
    /// The attribute of a slot that names it.
    attribute: &'static str,
    name: String,
    /// Jobs that failed there.
    jobs: usize,
    /// Jobs whose place is known.
    of: usize,
    /// Site of the machine, if the log names it.
    site: Option<String>,
    /// Command that lets the jobs avoid it; `None` unless jobs ran elsewhere, too, and they are of one cluster,
    /// whose requirements they share.
    pub avoid: Option<HeldCommand>,
}

impl CommonPlace {
    /// Finds the machine of more than half of the jobs, or else their site; `None` if there is none, or if too
    /// few are known. `named` are the jobs that commands name.
    pub(super) fn find(jobs: &[&JobAdvice], named: &[HeldId]) -> Option<CommonPlace> {
        let jobs = &jobs[..jobs.len().min(MAX_JOBS)];
        let sites = jobs.iter().filter_map(|one| one.job.site.as_ref());
        let sites = sites.map(|site| (site.attribute, site.name.to_string(), None));
        let machines = jobs.iter().filter_map(|one| {
            let site = one.job.site.as_ref();
            let site = site.map(|site| format!("site {}", site.name));
            Some((MACHINE, machine_of(one)?, site))
        });
        most_common(machines, named).or_else(|| most_common(sites, named))
    }

    /// Says how many of the jobs failed there.
    pub fn words(&self) -> String {
        let place = match (self.is_machine(), &self.site) {
            (true, Some(site)) => format!("on {} ({site})", self.name),
            (true, None) => format!("on {}", self.name),
            (false, _) => format!("at site {}", self.name),
        };
        format!("{} of {} {place}", self.jobs, self.of)
    }

    /// Words before the command that avoids it.
    pub fn avoid_words(&self) -> &'static str {
        match self.is_machine() {
            true => "first, to avoid this machine: ",
            false => "first, to avoid this site: ",
        }
    }

    fn is_machine(&self) -> bool {
        self.attribute == MACHINE
    }
}

/// Returns the place of more than half of the jobs that `places` are of: each an attribute, its value and a site.
fn most_common(
    places: impl Iterator<Item = (&'static str, String, Option<String>)>,
    named: &[HeldId],
) -> Option<CommonPlace> {
    let mut counts: BTreeMap<(&str, String), (usize, Option<String>)> = BTreeMap::new();
    for (attribute, name, site) in places {
        let (jobs, known_site) = counts.entry((attribute, name)).or_default();
        *jobs += 1;
        *known_site = known_site.take().or(site);
    }
    let of = counts.values().map(|(jobs, _)| jobs).sum();
    let most = counts.into_iter().max_by_key(|(_, (jobs, _))| *jobs)?;
    let ((attribute, name), (jobs, site)) = most;
    (of >= MIN_JOBS && 2 * jobs > of).then(|| CommonPlace {
        // The only place that is known may be the only one that there is.
        avoid: (jobs < of)
            .then(|| avoid(attribute, &name, named))
            .flatten(),
        attribute,
        name,
        jobs,
        of,
        site,
    })
}

/// Returns the machine of the slot that the reason of `advice` names, such as `slot1_2@cn030.example`.
fn machine_of(advice: &JobAdvice) -> Option<String> {
    let reason = advice.hold.reason.as_ref()?.to_string();
    let codes = (advice.hold.code, advice.hold.subcode);
    let slot = read_reason(&reason, Some(codes)).machine?;
    let machine = slot.rsplit_once('@').map_or(&*slot, |(_, machine)| machine);
    is_plain_name(machine).then(|| machine.to_owned())
}

/// Returns the command that adds to the requirements of `jobs` that `attribute` has another value than `name`.
fn avoid(attribute: &str, name: &str, jobs: &[HeldId]) -> Option<HeldCommand> {
    let HeldId { cluster, proc, .. } = *jobs.first()?;
    // An address is not the name of a machine.
    let is_value = is_plain_name(name) && name.parse::<IpAddr>().is_err();
    if !is_value || jobs.iter().any(|job| job.cluster != cluster) {
        return None;
    }
    let ask = program_at("condor_q", jobs[0].schedd.as_deref())?;
    let arguments = format!(
        r#" Requirements "($({ask} {cluster}.{proc} -af:r Requirements)) && {attribute} =!= \"{name}\"""#
    );
    HeldCommand::new("condor_qedit", jobs, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::job_advice::JobSite;
    use super::*;

    /// Returns the advice on jobs whose programs are missing on these machines.
    fn held_on(machines: &[&str]) -> Vec<JobAdvice> {
        let one = |machine: &&str| {
            JobAdvice::of_test_job().with(|one| {
                let reason = format!("Error from slot1_2@{machine}: Failed to execute '/opt/x'");
                one.hold.reason = Some(reason.as_str().into());
            })
        };
        machines.iter().map(one).collect()
    }

    fn found(machines: &[&str]) -> Option<CommonPlace> {
        place_of(&held_on(machines))
    }

    fn place_of(jobs: &[JobAdvice]) -> Option<CommonPlace> {
        let jobs: Vec<&JobAdvice> = jobs.iter().collect();
        let named: Vec<HeldId> = jobs.iter().map(|one| one.held_id()).collect();
        CommonPlace::find(&jobs, &named)
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
    #[test]
    fn site_of_most_jobs_is_named_if_their_machines_differ() {
        let at = |machines: &[&str], sites: &[&str]| {
            let mut jobs = held_on(machines);
            for (one, site) in jobs.iter_mut().zip(sites) {
                one.job.site = (!site.is_empty()).then(|| JobSite {
                    attribute: "GLIDEIN_Site",
                    name: (*site).into(),
                });
            }
            place_of(&jobs)
        };
        let machine = at(&["a", "a", "a", "b"], &["", "X", "X", "Y"]).expect("a machine");
        assert_eq!(machine.words(), "3 of 4 on a (site X)");
        let site = at(&["a", "b", "c", "d"], &["X", "X", "Y", "X"]).expect("a site");
        assert_eq!(site.words(), "3 of 4 at site X");
        let command = site.avoid.expect("one cluster").to_string();
        assert!(
            command.ends_with(r#" && GLIDEIN_Site =!= \"X\"""#),
            "{command}"
        );
        let odd = at(&["a", "b", "c", "d"], &["X 1", "X 1", "Y", "X 1"]).expect("a site");
        assert_eq!(
            (odd.words().as_str(), odd.avoid),
            ("3 of 4 at site X 1", None)
        );
    }
}
