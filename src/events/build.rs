//! Logs → columns: events grouped by job, jobs told apart also where a cluster number was used again.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use super::store::{Columns, Source, Store, Summary};
use crate::eventlog::{ABORTED, Ad, Event, Log, SUBMIT, TERMINATED};

/// Where an event belongs, in sorting order: access point, cluster, proc; then time; then place in the logs.
type Place = (u32, i32, i32, i64, u64);

/// Puts the events of `logs` together by job. Events of no job (negative cluster or proc) are left out; they stay in the
/// counts by number. Owners are kept only as a hash of `salt` and name.
pub fn build(logs: Vec<Log>, sources: Vec<Source>, salt: &str) -> Store {
    let mut aps: Vec<String> = logs.iter().map(|log| log.ap.clone()).collect();
    aps.sort();
    aps.dedup();
    let summary = summarise(&logs, aps.clone(), sources);
    let mut placed: Vec<(Place, Event)> = Vec::with_capacity(logs.iter().map(|log| log.events.len()).sum());
    let mut ads = HashMap::new();
    let mut sequence = 0;
    for log in logs {
        let ap = aps.binary_search(&log.ap).expect("every log's access point is listed") as u32;
        ads.extend(log.ads.into_iter().map(|ad| ((ap, ad.cluster, ad.proc), ad)));
        let own = log.events.into_iter().filter(|event| event.cluster >= 0 && event.proc >= 0);
        placed.extend(own.map(|event| {
            sequence += 1;
            ((ap, event.cluster, event.proc, event.time_ms, sequence), event)
        }));
    }
    placed.par_sort_unstable_by_key(|(place, _)| *place);
    Store::in_memory(columns(&placed, &ads, salt), summary)
}

fn summarise(logs: &[Log], aps: Vec<String>, sources: Vec<Source>) -> Summary {
    let mut events_by_number = BTreeMap::new();
    let mut anomalies = BTreeMap::new();
    for log in logs {
        log.records_by_number.iter().for_each(|(number, n)| *events_by_number.entry(*number).or_default() += n);
        log.anomalies.iter().for_each(|(anomaly, n)| *anomalies.entry(*anomaly).or_default() += n);
    }
    Summary {
        sources,
        aps,
        events_by_number,
        anomalies,
        begin_ms: logs.iter().flat_map(|log| log.events.iter().map(|event| event.time_ms)).min().unwrap_or(0),
        end_ms: logs.iter().filter_map(|log| log.end_ms).max().unwrap_or(0),
        ..Summary::default()
    }
}

fn columns(placed: &[(Place, Event)], ads: &HashMap<(u32, i32, i32), Ad>, salt: &str) -> Columns {
    let mut columns = Columns::default();
    for same_id in placed.chunk_by(|(a, _), (b, _)| (a.0, a.1, a.2) == (b.0, b.1, b.2)) {
        let ((ap, cluster, proc, ..), _) = same_id[0];
        let owner = ads.get(&(ap, cluster, proc)).and_then(|ad| ad.owner.as_deref());
        let owner = owner.map_or(0, |name| owner_hash(salt, name));
        for job in lives(same_id) {
            let submit = job.iter().find(|(_, event)| event.number == SUBMIT).unwrap_or(&job[0]);
            columns.push_job(ap, cluster, proc, submit.1.time_ms, owner);
            job.iter().for_each(|(_, event)| columns.push_event(event));
        }
    }
    columns
}

/// One id can name several jobs in turn, after a job queue was wiped: a submission after an end begins a new one.
fn lives(same_id: &[(Place, Event)]) -> Vec<&[(Place, Event)]> {
    let mut lives = Vec::new();
    let (mut start, mut ended) = (0, false);
    for (i, (_, event)) in same_id.iter().enumerate() {
        if ended && event.number == SUBMIT {
            lives.push(&same_id[start..i]);
            (start, ended) = (i, false);
        }
        ended |= matches!(event.number, TERMINATED | ABORTED);
    }
    lives.push(&same_id[start..]);
    lives
}

/// Never 0, which stands for an unknown owner.
fn owner_hash(salt: &str, owner: &str) -> u64 {
    let digest = Sha256::new().chain_update(salt).chain_update([0]).chain_update(owner).finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(events: &[(i32, i64, u16)]) -> Log {
        let event =
            |&(cluster, time_ms, number): &(i32, i64, u16)| Event { cluster, time_ms, number, ..Event::default() };
        Log { ap: "ap".into(), events: events.iter().map(event).collect(), end_ms: Some(99), ..Log::default() }
    }

    #[test]
    fn histories_are_in_time_order_across_logs() {
        let store = build(vec![log(&[(1, 30, 5), (2, 7, 0)]), log(&[(1, 10, 0), (1, 20, 1), (-1, 5, 8)])], vec![], "");
        assert_eq!(store.jobs(), 2);
        let job = store.job(0);
        assert_eq!((job.cluster, job.submit_ms, job.history.number), (1, 10, &[0u16, 1, 5][..]));
    }

    #[test]
    fn a_number_used_again_is_another_job() {
        let events = [(1, 10, 0), (1, 20, 5), (1, 21, 12), (1, 22, 13), (1, 23, 5), (1, 500, 0), (1, 510, 12)];
        let store = build(vec![log(&events)], vec![], "");
        assert_eq!(store.jobs(), 2, "a hold after an end is the same job, a submission is another");
        assert_eq!((store.job(1).submit_ms, store.job(1).history.number), (500, &[0u16, 12][..]));
    }

    #[test]
    fn owners_are_salted() {
        assert_ne!(owner_hash("a", "ada"), owner_hash("b", "ada"));
        assert_eq!(owner_hash("a", "ada"), owner_hash("a", "ada"));
    }
}
