//! Builds expressions that are true for some jobs alone, whatever other jobs the queue has.

/// Cluster and proc of a job.
pub(super) type ClusterProc = (i32, i32);

/// Maximum number of ids in a command that could also name ranges, or lists of ids.
pub(super) const MAX_IDS: usize = 6;

/// Maximum number of ranges of ids in one expression.
const MAX_RANGES: usize = 30;

/// Two ranges, of clusters and of procs. All jobs in both are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IdRange {
    clusters: (i32, i32),
    procs: (i32, i32),
}

/// Returns expressions that are true for parts of `jobs`, and for no other job. `jobs` must be
/// sorted.
pub(super) fn id_expressions(jobs: &[ClusterProc]) -> Vec<String> {
    let ranges = ranges(jobs);
    if ranges.len() > 1 && jobs.len() <= MAX_IDS {
        return vec![is_one_of(&id_list(jobs))];
    }
    ranges.chunks(MAX_RANGES).map(any_of).collect()
}

/// Returns an expression that is true for jobs whose ids are in `ids`, separated by blanks.
pub(super) fn is_one_of(ids: &str) -> String {
    format!("stringListMember(strcat(ClusterId,\".\",ProcId),\"{ids}\")")
}

/// Lists the ids of `jobs`, separated by blanks.
pub(super) fn id_list(jobs: &[ClusterProc]) -> String {
    let ids: Vec<String> = jobs
        .iter()
        .map(|(cluster, proc)| format!("{cluster}.{proc}"))
        .collect();
    ids.join(" ")
}

/// Splits `jobs`, which are sorted, into ranges in which every id is one of them.
fn ranges(jobs: &[ClusterProc]) -> Vec<IdRange> {
    let mut ranges: Vec<IdRange> = Vec::new();
    let follows = |a: &ClusterProc, b: &ClusterProc| a.0 == b.0 && a.1.checked_add(1) == Some(b.1);
    for run in jobs.chunk_by(follows) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let procs = (first.1, last.1);
        match ranges.last_mut() {
            Some(range)
                if range.procs == procs && range.clusters.1.checked_add(1) == Some(first.0) =>
            {
                range.clusters.1 = first.0;
            }
            _ => ranges.push(IdRange {
                clusters: (first.0, first.0),
                procs,
            }),
        }
    }
    ranges
}

fn any_of(ranges: &[IdRange]) -> String {
    let texts: Vec<String> = ranges.iter().map(|range| range.expression()).collect();
    match &texts[..] {
        [only] => only.clone(),
        _ => format!("({})", texts.join(" || ")),
    }
}

impl IdRange {
    fn expression(&self) -> String {
        let within = |name: &str, (first, last): (i32, i32)| {
            if first == last {
                format!("{name}=={first}")
            } else {
                format!("{name}>={first} && {name}<={last}")
            }
        };
        let clusters = within("ClusterId", self.clusters);
        format!("{clusters} && {}", within("ProcId", self.procs))
    }

    #[cfg(test)]
    fn has(&self, (cluster, proc): ClusterProc) -> bool {
        let is_in = |number, (first, last)| (first..=last).contains(&number);
        is_in(cluster, self.clusters) && is_in(proc, self.procs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_ids_are_listed_and_others_are_ranges() {
        assert_eq!(id_expressions(&[(7, 2)]), ["ClusterId==7 && ProcId==2"]);
        assert_eq!(
            id_expressions(&[(7, 2), (8, 0)]),
            ["stringListMember(strcat(ClusterId,\".\",ProcId),\"7.2 8.0\")"]
        );
        let holes: Vec<ClusterProc> = (0..20).filter(|p| *p != 9).map(|p| (7, p)).collect();
        assert_eq!(
            id_expressions(&holes),
            [
                "(ClusterId==7 && ProcId>=0 && ProcId<=8 || ClusterId==7 && ProcId>=10 && ProcId<=19)"
            ]
        );
        let clusters: Vec<ClusterProc> = (1..=400).map(|cluster| (cluster, 0)).collect();
        assert_eq!(
            id_expressions(&clusters),
            ["ClusterId>=1 && ClusterId<=400 && ProcId==0"]
        );
        let scattered: Vec<ClusterProc> = (0..100).map(|number| (2 * number, 0)).collect();
        assert_eq!(id_expressions(&scattered).len(), 4);
    }

    proptest! {
        #[test]
        fn ranges_have_their_members_alone(
            members in prop::collection::btree_set((0..6, 0..6), 1..30),
        ) {
            let jobs: Vec<ClusterProc> = members.into_iter().collect();
            let ranges = ranges(&jobs);
            for number in 0..36 {
                let one = (number / 6, number % 6);
                let holders = ranges.iter().filter(|range| range.has(one)).count();
                prop_assert_eq!(holders, usize::from(jobs.contains(&one)), "{:?}", one);
            }
        }
    }
}
