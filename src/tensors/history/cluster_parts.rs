//! Divides the jobs of a store into blocks that keep each cluster whole.

use poolcast_events::StoredJobs;

/// Jobs per block. One parallel task reads a block. A block has more jobs if its last cluster
/// goes on.
pub(crate) const JOBS_PER_BLOCK: usize = 4096;

/// Returns the indices at which to cut the jobs into blocks of about `at_once` jobs, without
/// dividing a cluster. Jobs are sorted by access point and cluster, so the jobs of a cluster are
/// neighbors.
pub(crate) fn cuts_between_clusters(jobs: &StoredJobs<'_>, at_once: usize) -> Vec<usize> {
    let begins_cluster =
        |&index: &usize| index == 0 || jobs.cluster(index) != jobs.cluster(index - 1);

    let mut cuts = Vec::new();
    for from in (0..jobs.len()).step_by(at_once) {
        let cut = (from..jobs.len()).find(begins_cluster);
        cuts.push(cut.unwrap_or(jobs.len()));
    }
    cuts.push(jobs.len());
    // A cluster with more jobs than a block produces several equal cuts at its end.
    cuts.dedup();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::JobEvent;
    use test_stores::store_of;

    #[test]
    fn cuts_do_not_divide_clusters() {
        let event = |(cluster, proc)| JobEvent {
            cluster,
            proc,
            ..JobEvent::default()
        };
        let ids = [
            (1, 0),
            (2, 0),
            (2, 1),
            (2, 2),
            (2, 3),
            (3, 0),
            (4, 0),
            (4, 1),
        ];
        let store = store_of(&ids.map(event));
        assert_eq!(cuts_between_clusters(&store.jobs(), 1), [0, 1, 5, 6, 8]);
        assert_eq!(cuts_between_clusters(&store.jobs(), 3), [0, 5, 6, 8]);
        assert_eq!(cuts_between_clusters(&store.jobs(), 100), [0, 8]);
    }
}
