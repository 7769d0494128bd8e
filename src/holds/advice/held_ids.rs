//! Names a subset of the held jobs in a command that people may paste later: by a constraint that
//! is false for every other held job, and for a named job that has left its hold.

use std::collections::{BTreeMap, HashSet};

/// A job that is held now, with the attributes of its hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct HeldId {
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) hold_code: i32,
    pub(super) hold_subcode: i32,
    /// Time of the hold, epoch s; 0 if it is unknown.
    pub(super) since_s: i64,
}

/// Maximum number of ids in a command; for more, the constraint names ranges.
const MAX_IDS: usize = 6;

/// Maximum difference between the timestamps of a hold in the log and in the queue, s.
const CLOCK_SLACK_S: i64 = 2;

/// Jobs for one call of a program by `xargs`. Their ids must fit into one argument of 128 KiB.
const JOBS_PER_CALL: usize = 1000;

/// Builds the command `program JOBS arguments`, which affects only the `members` that are still in the
/// same hold. Returns `None` if there are no members, or if one of their hold times is
/// unknown. All members must have the same hold code and subcode.
pub(super) fn command(
    program: &str,
    held: &[HeldId],
    members: &HashSet<HeldId>,
    arguments: &str,
) -> Option<String> {
    let constraint = constraint(held, members)?;
    Some(format!("{program} -constraint '{constraint}'{arguments}"))
}

/// Rewrites `command`, which [`command`] built, so that it gets the ids from the output of `call`.
/// `last_held_s` is the time of the last hold of its jobs, epoch s.
pub(super) fn command_with_ids_of(call: &str, command: &str, last_held_s: i64) -> Option<String> {
    let (program, rest) = command.split_once(" -constraint '")?;
    let (_, arguments) = rest.rsplit_once('\'')?;
    let constraint = format!("{} && {}", hold_guard(last_held_s), is_one_of("$*"));
    let quoted = constraint.replace('"', "\\\"");
    Some(format!(
        "{call} | xargs -n {JOBS_PER_CALL} sh -c '{program} -constraint \"{quoted}\"{arguments}' -"
    ))
}

/// Lists the ids of `members`, such as `12.0 12.1 13`, for programs that change nothing. A cluster
/// with several held jobs is named as a whole if all of them are members. Returns `None` if the
/// list is too long.
pub(super) fn id_list(held: &[HeldId], members: &HashSet<HeldId>) -> Option<Vec<String>> {
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
        if procs.len() == all && all > 1 {
            names.push(cluster.to_string());
            continue;
        }
        procs.sort_unstable();
        names.extend(procs.iter().map(|proc| format!("{cluster}.{proc}")));
        if names.len() > MAX_IDS {
            return None;
        }
    }
    Some(names)
}

/// Builds a ClassAd expression that is true for `members`, but false for the rest of `held` and for
/// later holds. Returns `None` if there are no members, or if one of their hold times is unknown.
fn constraint(held: &[HeldId], members: &HashSet<HeldId>) -> Option<String> {
    let mut ids: Vec<HeldId> = members.iter().copied().collect();
    ids.sort_unstable();
    if ids.is_empty() || ids.iter().any(|job| job.since_s <= 0) {
        return None;
    }
    let latest_s = ids.iter().map(|job| job.since_s).max()?;
    let jobs = match &ids[..] {
        [only] => return Some(job_constraint(only.cluster, only.proc, only.since_s)),
        few if few.len() <= MAX_IDS => {
            let ids: Vec<String> = few
                .iter()
                .map(|job| format!("{}.{}", job.cluster, job.proc))
                .collect();
            is_one_of(&ids.join(" "))
        }
        many => ranges_with_code(held, members, many[0], latest_s),
    };
    Some(format!("{} && {jobs}", hold_guard(latest_s)))
}

/// Builds an expression that is true for one job, but false for its later holds.
pub(super) fn job_constraint(cluster: i32, proc: i32, since_s: i64) -> String {
    let job = proc_range(cluster, proc, proc);
    format!("{} && {job}", hold_guard(since_s))
}

/// Builds an expression that is true for jobs that have been held since `latest_s` or before. A job
/// that was released since, and is held again, has a later time.
fn hold_guard(latest_s: i64) -> String {
    format!(
        "JobStatus==5 && EnteredCurrentStatus<={}",
        latest_s + CLOCK_SLACK_S
    )
}

/// Builds an expression that is true for jobs whose ids are in `ids`, separated by blanks.
fn is_one_of(ids: &str) -> String {
    format!("stringListMember(strcat(ClusterId,\".\",ProcId),\"{ids}\")")
}

/// Builds an expression from the hold code of `first`, one of `members`, and from ranges of ids.
fn ranges_with_code(
    held: &[HeldId],
    members: &HashSet<HeldId>,
    first: HeldId,
    latest_s: i64,
) -> String {
    let mut terms = Vec::new();
    if first.hold_code != 0 {
        terms.push(format!("HoldReasonCode=={}", first.hold_code));
    }
    // The queue may omit a subcode of 0.
    if first.hold_subcode != 0 {
        terms.push(format!("HoldReasonSubCode=={}", first.hold_subcode));
    }

    // Only jobs that match the terms so far need to be excluded by id. Clocks may differ, so a job
    // held shortly after the guard's time may match.
    let may_match = |job: &HeldId| {
        (first.hold_code == 0 || job.hold_code == first.hold_code)
            && (first.hold_subcode == 0 || job.hold_subcode == first.hold_subcode)
            && job.since_s <= latest_s + 2 * CLOCK_SLACK_S
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
        let named = id_list(&all, &some).expect("few");
        assert_eq!(named, ["12.0", "12.1", "13"]);
        let many: Vec<HeldId> = (0..20).map(|proc| held(7, proc)).collect();
        assert_eq!(id_list(&many, &members(&many)).expect("one"), ["7"]);
        assert_eq!(id_list(&many, &members(&many[1..])), None);
    }

    #[test]
    fn every_command_is_limited_to_the_present_holds() {
        let all = [held(12, 0), held(12, 1), held(13, 0)];
        let guard = "-constraint 'JobStatus==5 && EnteredCurrentStatus<=102 && ";
        assert_eq!(
            command("condor_rm", &all, &members(&all[1..2]), "").expect("one"),
            format!("condor_rm {guard}ClusterId==12 && ProcId==1'")
        );
        let few = command("condor_qedit", &all, &members(&all), " RequestCpus 2");
        assert_eq!(
            few.as_deref(),
            Some(&*format!(
                "condor_qedit {guard}stringListMember(strcat(ClusterId,\".\",ProcId),\"12.0 12.1 13.0\")' RequestCpus 2"
            ))
        );
        let many: Vec<HeldId> = (0..20).map(|proc| held(7, proc)).collect();
        let all_of_cluster = command("condor_release", &many, &members(&many), "");
        assert_eq!(
            all_of_cluster.as_deref(),
            Some(&*format!(
                "condor_release {guard}HoldReasonCode==13 && HoldReasonSubCode==2 && ClusterId==7'"
            ))
        );
        assert_eq!(
            command_with_ids_of("poolcast advise --ids", &few.expect("a command"), 100).as_deref(),
            Some(
                r#"poolcast advise --ids | xargs -n 1000 sh -c 'condor_qedit -constraint "JobStatus==5 && EnteredCurrentStatus<=102 && stringListMember(strcat(ClusterId,\".\",ProcId),\"$*\")" RequestCpus 2' -"#
            )
        );
    }

    #[test]
    fn holds_of_unknown_time_get_no_command() {
        let unknown = HeldId {
            since_s: 0,
            ..held(12, 0)
        };
        let both = [unknown, held(12, 1)];
        assert_eq!(command("condor_rm", &both, &members(&both), ""), None);
        assert_eq!(command("condor_rm", &both, &HashSet::new(), ""), None);
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
        let said = |jobs: &[HeldId]| ranges_with_code(&all, &members(jobs), jobs[0], 100);
        let head = "HoldReasonCode==13 && HoldReasonSubCode==2 && ";
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
        if let Some((guard, list)) = expression.split_once(" && stringListMember") {
            let ids = list.rsplit('"').nth(1).expect("a list");
            let id = format!("{}.{}", job.cluster, job.proc);
            return is_true(&format!("{guard} && ProcId>=0"), job)
                && ids.split(' ').any(|listed| listed == id);
        }
        let text = expression.replace(['(', ')'], "");
        // The terms before the ranges apply to every range.
        let at = text.find("ClusterId").or(text.find("ProcId"));
        let (head, ranges) = at.map_or((text.as_str(), ""), |at| text.split_at(at));
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
            jobs in prop::collection::btree_map((0..6, 0..6), (prop::sample::select(vec![(13, 2), (13, 0), (1, 0)]), 1i64..20, any::<bool>()), 1..40),
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
                let latest_s = chosen.iter().map(|job| job.since_s).max().expect("some");
                let first = chosen[0];
                let chosen = members(&chosen);
                let ranges = ranges_with_code(&all, &chosen, first, latest_s);
                let by_ranges = format!("{} && {ranges}", hold_guard(latest_s));
                for expression in [constraint(&all, &chosen).expect("some"), by_ranges] {
                    for &job in &all {
                        prop_assert_eq!(is_true(&expression, job), chosen.contains(&job), "{} {:?}", expression, job);
                        let held_again = HeldId { since_s: latest_s + CLOCK_SLACK_S + 1, ..job };
                        prop_assert!(!is_true(&expression, held_again), "{} {:?}", expression, job);
                    }
                }
            }
        }
    }
}
