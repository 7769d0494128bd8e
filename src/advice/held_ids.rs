//! Names a subset of the held jobs in a command that people may paste later: by a constraint that
//! is false for every other held job, and for a named job that has left its hold.

use std::collections::HashMap;

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

/// The held jobs of one access point.
#[derive(Debug)]
pub(super) struct HeldIds {
    /// The jobs, sorted by id.
    jobs: Vec<HeldId>,
    /// Indices of the jobs that a constraint on a hold code and subcode selects. A 0 selects all
    /// codes or subcodes.
    selected: HashMap<(i32, i32), Vec<u32>>,
}

impl HeldIds {
    /// Sorts `jobs` by id and by hold code.
    pub(super) fn new(mut jobs: Vec<HeldId>) -> HeldIds {
        jobs.sort_unstable();
        let mut selected: HashMap<(i32, i32), Vec<u32>> = HashMap::new();
        for job in &jobs {
            selected.entry(job.codes()).or_default();
        }
        for (index, job) in (0..).zip(&jobs) {
            let (code, subcode) = job.codes();
            let mut selectors = vec![(code, subcode), (code, 0), (0, subcode), (0, 0)];
            selectors.sort_unstable();
            selectors.dedup();
            for selector in selectors {
                // Constraints are only built for codes that a held job has.
                if let Some(indices) = selected.get_mut(&selector) {
                    indices.push(index);
                }
            }
        }
        HeldIds { jobs, selected }
    }

    /// Counts the held jobs of a cluster.
    fn count_in_cluster(&self, cluster: i32) -> usize {
        let begin = self.jobs.partition_point(|job| job.cluster < cluster);
        let end = self.jobs.partition_point(|job| job.cluster <= cluster);
        end - begin
    }
}

impl HeldId {
    fn codes(&self) -> (i32, i32) {
        (self.hold_code, self.hold_subcode)
    }
}

/// Maximum number of ids in a command; for more, the constraint names ranges.
pub(super) const MAX_IDS: usize = 6;

/// Maximum difference between the timestamps of a hold in the log and in the queue, s.
const CLOCK_SLACK_S: i64 = 2;

/// Jobs for one call of a program by `xargs`. Their ids must fit into one argument of 128 KiB.
const JOBS_PER_CALL: usize = 1000;

/// Builds the command `program JOBS arguments`, which affects only the `members` that are still in the
/// same hold. Returns `None` if there are no members, or if one of their hold times is
/// unknown. All members must have the same hold code and subcode, and be sorted.
pub(super) fn command(
    program: &str,
    held: &HeldIds,
    members: &[HeldId],
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
/// list is too long. `members` must be sorted.
pub(super) fn id_list(held: &HeldIds, members: &[HeldId]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for jobs in members.chunk_by(|a, b| a.cluster == b.cluster) {
        let cluster = jobs[0].cluster;
        if jobs.len() > 1 && jobs.len() == held.count_in_cluster(cluster) {
            names.push(cluster.to_string());
        } else {
            names.extend(jobs.iter().map(|job| format!("{cluster}.{}", job.proc)));
        }
        if names.len() > MAX_IDS {
            return None;
        }
    }
    Some(names)
}

/// Builds a ClassAd expression that is true for `members`, but false for the rest of `held` and for
/// later holds. Returns `None` if there are no members, or if one of their hold times is unknown.
fn constraint(held: &HeldIds, members: &[HeldId]) -> Option<String> {
    if members.iter().any(|job| job.since_s <= 0) {
        return None;
    }
    let latest_s = members.iter().map(|job| job.since_s).max()?;
    let jobs = match members {
        [only] => return Some(job_constraint(only.cluster, only.proc, only.since_s)),
        few if few.len() <= MAX_IDS => {
            let ids: Vec<String> = few
                .iter()
                .map(|job| format!("{}.{}", job.cluster, job.proc))
                .collect();
            is_one_of(&ids.join(" "))
        }
        many => ranges_with_code(held, many, latest_s),
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
pub(super) fn is_one_of(ids: &str) -> String {
    format!("stringListMember(strcat(ClusterId,\".\",ProcId),\"{ids}\")")
}

/// Builds an expression from the hold code of `members`, and from ranges of their ids.
fn ranges_with_code(held: &HeldIds, members: &[HeldId], latest_s: i64) -> String {
    let (code, subcode) = members[0].codes();
    let mut terms = Vec::new();
    if code != 0 {
        terms.push(format!("HoldReasonCode=={code}"));
    }
    // The queue may omit a subcode of 0.
    if subcode != 0 {
        terms.push(format!("HoldReasonSubCode=={subcode}"));
    }

    let candidates = Candidates {
        held,
        selected: held
            .selected
            .get(&(code, subcode))
            .map_or(&[], Vec::as_slice),
        // Clocks may differ, so a job held shortly after the guard's time may match.
        latest_s: latest_s + 2 * CLOCK_SLACK_S,
    };
    let ranges = candidates.member_ranges(members);
    match &ranges[..] {
        [only] => terms.push(only.clone()),
        _ => terms.push(format!("({})", ranges.join(" || "))),
    }
    terms.join(" && ")
}

/// The held jobs that match a hold code and a time, and that need to be excluded by id unless they
/// are members.
struct Candidates<'a> {
    held: &'a HeldIds,
    /// Indices of the jobs with the hold code.
    selected: &'a [u32],
    /// Time of the last hold that matches, epoch s.
    latest_s: i64,
}

impl Candidates<'_> {
    /// Builds one expression for each run of consecutive members among the candidates.
    fn member_ranges(&self, members: &[HeldId]) -> Vec<String> {
        let mut ranges = Vec::new();
        let mut rest = members;
        while let Some(first) = rest.first() {
            let begin = self.selected.partition_point(|&at| self.job(at) < first);
            let (run, is_followed) = self.split_run(rest, &self.selected[begin..]);
            let is_preceded = self.end_with_cluster(&self.selected[..begin], first.cluster);
            let last = run.last().unwrap_or(first);
            let shared_clusters = [
                is_preceded.then_some(first.cluster),
                is_followed.then_some(last.cluster),
            ];
            add_run(run, shared_clusters, &mut ranges);
            rest = &rest[run.len()..];
        }
        ranges
    }

    /// Returns the members that both `members` and the candidates in `selected` begin with, and true
    /// if the next candidate belongs to the cluster of the last of them.
    fn split_run<'m>(&self, members: &'m [HeldId], selected: &[u32]) -> (&'m [HeldId], bool) {
        let mut run = 1;
        for job in selected.iter().skip(1).map(|&at| self.job(at)) {
            let is_of_last_cluster = job.cluster == members[run - 1].cluster;
            match members.get(run) {
                Some(next) if next == job => run += 1,
                _ if self.matches(job) => return (&members[..run], is_of_last_cluster),
                None if !is_of_last_cluster => break,
                _ => {}
            }
        }
        (&members[..run], false)
    }

    /// Returns true if the candidates in `selected` end with one of `cluster`.
    fn end_with_cluster(&self, selected: &[u32], cluster: i32) -> bool {
        let jobs = selected.iter().rev().map(|&at| self.job(at));
        let mut of_cluster = jobs.take_while(|job| job.cluster == cluster);
        of_cluster.any(|job| self.matches(job))
    }

    fn job(&self, index: u32) -> &HeldId {
        #[cfg(test)]
        tests::EXAMINED_JOBS.set(tests::EXAMINED_JOBS.get() + 1);
        &self.held.jobs[index as usize]
    }

    fn matches(&self, job: &HeldId) -> bool {
        job.since_s <= self.latest_s
    }
}

/// Adds the expressions for one run of members: the end of a first cluster, whole clusters, and the
/// beginning of a last cluster. The `shared_clusters` also have other candidates.
fn add_run(run: &[HeldId], shared_clusters: [Option<i32>; 2], ranges: &mut Vec<String>) {
    let mut whole: Option<(i32, i32)> = None;
    for jobs in run.chunk_by(|a, b| a.cluster == b.cluster) {
        let (cluster, procs) = (jobs[0].cluster, [jobs[0].proc, jobs[jobs.len() - 1].proc]);
        // A cluster that also has other jobs needs a range of procs.
        if shared_clusters.contains(&Some(cluster)) {
            add_clusters(whole.take(), ranges);
            ranges.push(proc_range(cluster, procs[0], procs[1]));
        } else {
            let first = whole.map_or(cluster, |(first, _)| first);
            whole = Some((first, cluster));
        }
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
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    thread_local! {
        /// Number of times that this thread examined a held job.
        pub(crate) static EXAMINED_JOBS: std::cell::Cell<usize> =
            const { std::cell::Cell::new(0) };
    }

    fn held(cluster: i32, proc: i32) -> HeldId {
        HeldId {
            cluster,
            proc,
            hold_code: 13,
            hold_subcode: 2,
            since_s: 100,
        }
    }

    fn ids(jobs: &[HeldId]) -> HeldIds {
        HeldIds::new(jobs.to_vec())
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
        let some = [all[0], all[1], all[3], all[4]];
        let named = id_list(&ids(&all), &some).expect("few");
        assert_eq!(named, ["12.0", "12.1", "13"]);
        let many: Vec<HeldId> = (0..20).map(|proc| held(7, proc)).collect();
        assert_eq!(id_list(&ids(&many), &many).expect("one"), ["7"]);
        assert_eq!(id_list(&ids(&many), &many[1..]), None);
    }

    #[test]
    fn every_command_is_limited_to_the_present_holds() {
        let all = [held(12, 0), held(12, 1), held(13, 0)];
        let guard = "-constraint 'JobStatus==5 && EnteredCurrentStatus<=102 && ";
        assert_eq!(
            command("condor_rm", &ids(&all), &all[1..2], "").expect("one"),
            format!("condor_rm {guard}ClusterId==12 && ProcId==1'")
        );
        let few = command("condor_qedit", &ids(&all), &all, " RequestCpus 2");
        assert_eq!(
            few.as_deref(),
            Some(&*format!(
                "condor_qedit {guard}stringListMember(strcat(ClusterId,\".\",ProcId),\"12.0 12.1 13.0\")' RequestCpus 2"
            ))
        );
        let many: Vec<HeldId> = (0..20).map(|proc| held(7, proc)).collect();
        let all_of_cluster = command("condor_release", &ids(&many), &many, "");
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
        assert_eq!(command("condor_rm", &ids(&both), &both, ""), None);
        assert_eq!(command("condor_rm", &ids(&both), &[], ""), None);
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
        let said = |jobs: &[HeldId]| ranges_with_code(&ids(&all), jobs, 100);
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
                let held = ids(&all);
                let ranges = ranges_with_code(&held, &chosen, latest_s);
                let by_ranges = format!("{} && {ranges}", hold_guard(latest_s));
                for expression in [constraint(&held, &chosen).expect("some"), by_ranges] {
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
