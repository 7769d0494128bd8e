//! Names a subset of the held jobs in a command: by ids if they are few, or else by a constraint
//! that no other held job matches.

use std::collections::{BTreeMap, HashSet};

/// A job that is held now, with the attributes of its hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct HeldId {
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) hold_code: i32,
    pub(super) hold_subcode: i32,
    /// Time of the hold, epoch s.
    pub(super) since_s: i64,
}

/// Maximum number of ids in a command; for more, the command gets a constraint.
const MAX_NAMES: usize = 6;

/// Maximum difference between the timestamps of a hold in the log and in the queue, s.
const CLOCK_SLACK_S: i64 = 2;

/// Lists the ids of `members`, such as `12.0 12.1 13`. If `may_name_clusters`, a cluster with
/// several held jobs is named as a whole if all of them are members. Returns `None` if the list is
/// too long.
pub(super) fn id_list(
    held: &[HeldId],
    members: &HashSet<HeldId>,
    may_name_clusters: bool,
) -> Option<Vec<String>> {
    let mut clusters: BTreeMap<i32, (usize, Vec<i32>)> = BTreeMap::new();
    for job in held {
        let (all, member_procs) = clusters.entry(job.cluster).or_default();
        *all += 1;
        if members.contains(job) {
            member_procs.push(job.proc);
        }
    }

    let mut names = Vec::new();
    for (cluster, (all, mut procs)) in clusters {
        if may_name_clusters && procs.len() == all && all > 1 {
            names.push(cluster.to_string());
            continue;
        }
        procs.sort_unstable();
        names.extend(procs.iter().map(|proc| format!("{cluster}.{proc}")));
        if names.len() > MAX_NAMES {
            return None;
        }
    }
    Some(names)
}

/// Builds a ClassAd expression that is true for `members`, but false for the rest of `held` and for
/// later holds. All members must have the same hold code and subcode.
pub(super) fn constraint(held: &[HeldId], members: &HashSet<HeldId>) -> String {
    let mut terms = vec!["JobStatus==5".to_owned()];
    let Some(first) = members.iter().next().copied() else {
        return "false".to_owned();
    };
    if first.hold_code != 0 {
        terms.push(format!("HoldReasonCode=={}", first.hold_code));
    }
    // The queue may omit a subcode of 0.
    if first.hold_subcode != 0 {
        terms.push(format!("HoldReasonSubCode=={}", first.hold_subcode));
    }
    let latest_s = members.iter().map(|job| job.since_s).max().unwrap_or(0);
    let until_s = latest_s + CLOCK_SLACK_S;
    terms.push(format!("EnteredCurrentStatus<={until_s}"));

    // Only jobs that match the terms so far need to be excluded by id. Clocks may differ, so a job
    // held shortly after `until_s` may match.
    let may_match = |job: &HeldId| {
        (first.hold_code == 0 || job.hold_code == first.hold_code)
            && (first.hold_subcode == 0 || job.hold_subcode == first.hold_subcode)
            && job.since_s <= until_s + CLOCK_SLACK_S
    };
    let mut candidates: Vec<HeldId> = held.iter().copied().filter(may_match).collect();
    candidates.sort_unstable_by_key(|job| (job.cluster, job.proc));
    let ranges = member_ranges(&candidates, members);
    match &ranges[..] {
        [only] => terms.push(only.clone()),
        _ => terms.push(format!("({})", ranges.join(" || "))),
    }
    terms.join(" && ")
}

/// Builds one expression for each run of consecutive members in `candidates`, which are sorted by
/// id.
fn member_ranges(candidates: &[HeldId], members: &HashSet<HeldId>) -> Vec<String> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < candidates.len() {
        let run = candidates[at..]
            .iter()
            .take_while(|job| members.contains(job))
            .count();
        if run == 0 {
            at += 1;
            continue;
        }
        add_run(candidates, at..at + run, &mut ranges);
        at += run;
    }
    ranges
}

/// Adds the expressions for one run of members in `candidates`: the end of a first cluster, whole
/// clusters, and the beginning of a last cluster.
fn add_run(candidates: &[HeldId], run: std::ops::Range<usize>, ranges: &mut Vec<String>) {
    let cluster_of = |at: usize| candidates[at].cluster;
    let mut whole: Option<(i32, i32)> = None;
    let mut at = run.start;
    while at < run.end {
        let cluster = cluster_of(at);
        let end = (at..run.end)
            .find(|&next| cluster_of(next) != cluster)
            .unwrap_or(run.end);
        let begins_before = at > 0 && cluster_of(at - 1) == cluster;
        let goes_on = end < candidates.len() && cluster_of(end) == cluster;
        // A cluster that also has other jobs needs a range of procs.
        if begins_before || goes_on {
            add_clusters(whole.take(), ranges);
            ranges.push(proc_range(
                cluster,
                candidates[at].proc,
                candidates[end - 1].proc,
            ));
        } else {
            let first = whole.map_or(cluster, |(first, _)| first);
            whole = Some((first, cluster));
        }
        at = end;
    }
    add_clusters(whole, ranges);
}

fn add_clusters(clusters: Option<(i32, i32)>, ranges: &mut Vec<String>) {
    match clusters {
        Some((first, last)) if first == last => ranges.push(format!("ClusterId=={first}")),
        Some((first, last)) => ranges.push(format!("ClusterId>={first} && ClusterId<={last}")),
        None => {}
    }
}

fn proc_range(cluster: i32, first: i32, last: i32) -> String {
    if first == last {
        format!("ClusterId=={cluster} && ProcId=={first}")
    } else {
        format!("ClusterId=={cluster} && ProcId>={first} && ProcId<={last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn held(cluster: i32, proc: i32) -> HeldId {
        HeldId {
            cluster,
            proc,
            hold_code: 13,
            hold_subcode: 2,
            since_s: 100,
        }
    }

    fn members(jobs: &[HeldId]) -> HashSet<HeldId> {
        jobs.iter().copied().collect()
    }

    #[test]
    fn clusters_are_named_only_if_all_their_held_jobs_are_members() {
        let all = [
            held(12, 0),
            held(12, 1),
            held(12, 2),
            held(13, 0),
            held(13, 4),
        ];
        let some = members(&[all[0], all[1], all[3], all[4]]);
        let named = id_list(&all, &some, true).expect("few");
        assert_eq!(named, ["12.0", "12.1", "13"]);
        let named = id_list(&all, &some, false).expect("few");
        assert_eq!(named, ["12.0", "12.1", "13.0", "13.4"]);
        let many: Vec<HeldId> = (0..20).map(|proc| held(7, proc)).collect();
        assert_eq!(id_list(&many, &members(&many), true).expect("one"), ["7"]);
        assert_eq!(id_list(&many, &members(&many[1..]), true), None);
    }

    #[test]
    fn constraints_name_runs_of_clusters_and_procs() {
        let all = [
            held(1, 0),
            held(2, 0),
            held(2, 1),
            held(3, 0),
            held(4, 0),
            held(4, 1),
            held(4, 2),
        ];
        let said = |jobs: &[HeldId]| constraint(&all, &members(jobs));
        let head = "JobStatus==5 && HoldReasonCode==13 && HoldReasonSubCode==2 && EnteredCurrentStatus<=102 && ";
        assert_eq!(said(&all), format!("{head}ClusterId>=1 && ClusterId<=4"));
        assert_eq!(
            said(&all[4..6]),
            format!("{head}ClusterId==4 && ProcId>=0 && ProcId<=1")
        );
        assert_eq!(
            said(&[all[0], all[2], all[3], all[4], all[6]]),
            format!(
                "{head}(ClusterId==1 || ClusterId==2 && ProcId==1 || ClusterId==3 || ClusterId==4 && ProcId==0 || ClusterId==4 && ProcId==2)"
            )
        );
    }

    /// Evaluates `expression`, which [`constraint`] wrote, for `job`.
    fn is_true(expression: &str, job: HeldId) -> bool {
        let text = expression.replace(['(', ')'], "");
        // The terms before the ranges apply to every range.
        let (head, ranges) = match text.find("ClusterId") {
            Some(at) => text.split_at(at),
            None => (text.as_str(), ""),
        };
        let term = |term: &str| {
            let (name, rest) = term
                .trim()
                .split_at(term.trim().find(['=', '<', '>']).expect("a comparison"));
            let (relation, number) = rest.split_at(2);
            let number: i64 = number.parse().expect("a number");
            let value = match name {
                "JobStatus" => 5,
                "HoldReasonCode" => job.hold_code.into(),
                "HoldReasonSubCode" => job.hold_subcode.into(),
                "EnteredCurrentStatus" => job.since_s,
                "ClusterId" => job.cluster.into(),
                _ => i64::from(job.proc),
            };
            match relation {
                "==" => value == number,
                "<=" => value <= number,
                _ => value >= number,
            }
        };
        let all = |terms: &str| {
            terms
                .split("&&")
                .filter(|part| !part.trim().is_empty())
                .all(term)
        };
        all(head) && ranges.split("||").any(all)
    }

    proptest! {
        #[test]
        fn a_constraint_is_true_for_its_members_alone(
            jobs in prop::collection::btree_map((0..6, 0..6), (prop::sample::select(vec![(13, 2), (13, 0), (1, 0)]), 0i64..20, any::<bool>()), 1..40),
        ) {
            let all: Vec<HeldId> = jobs
                .iter()
                .map(|(&(cluster, proc), &((hold_code, hold_subcode), since_s, _))| HeldId { cluster, proc, hold_code, hold_subcode, since_s })
                .collect();
            for code in [(13, 2), (13, 0)] {
                let chosen: Vec<HeldId> = all
                    .iter()
                    .zip(jobs.values())
                    .filter(|(job, value)| (job.hold_code, job.hold_subcode) == code && value.2)
                    .map(|(job, _)| *job)
                    .collect();
                if chosen.is_empty() {
                    continue;
                }
                let chosen = members(&chosen);
                let expression = constraint(&all, &chosen);
                for &job in &all {
                    prop_assert_eq!(is_true(&expression, job), chosen.contains(&job), "{} {:?}", expression, job);
                }
            }
        }
    }
}
