//! Divides the jobs of a store into shards, so that jobs that are added later change few of them.

use std::path::PathBuf;

use anyhow::Result;

use super::job_row::{AdRow, InputRow, SameIdRows, StoredId};
use super::same_id_jobs::{drop_duplicates, split_at_submissions, submit_time_ms};
use super::shard_columns::ShardColumns;
use super::store_summary::ListedEventShard;

/// Where shards end. A shard ends after a job whose id ends shards, once it has enough events.
/// Otherwise each shard would change whenever an earlier one gets another event.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardSizes {
    /// Minimum number of events of each shard but the last one.
    pub(super) min_events: usize,
    /// Number of events with which a shard ends after any job. Larger shards would touch more
    /// memory for the first time, which costs more than parsing their content.
    pub(super) max_events: usize,
    /// One in this many ids ends shards.
    pub(super) ids_per_end: u64,
}

/// The sizes of the shards of every store: a part of the format.
pub(super) const SHARD_SIZES: ShardSizes = ShardSizes {
    min_events: 1 << 17,
    max_events: 1 << 18,
    ids_per_end: 1 << 10,
};

impl ShardSizes {
    /// Returns true if a shard with `events` events ends after the jobs with the id `last`.
    fn ends_after(self, last: StoredId, events: usize) -> bool {
        events >= self.max_events
            || events >= self.min_events && spread_bits(last).is_multiple_of(self.ids_per_end)
    }

    /// Memory to reserve for a shard of a store with `events` events.
    fn capacity(self, events: usize) -> usize {
        events.min(self.max_events + self.max_events / 64)
    }
}

/// Mixes the bits of an id, as in SplitMix64.
fn spread_bits(id: StoredId) -> u64 {
    let key = id.sort_key();
    let mut bits = (key as u64) ^ ((key >> 64) as u64).rotate_left(32);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A shard that is complete.
pub(super) enum NextShard<'a> {
    /// Jobs to write. The receiver leaves empty columns in their place.
    New(&'a mut ShardColumns),
    /// A shard of an earlier store that stays as it is.
    Kept(KeptShard),
}

/// A shard of an earlier store.
#[derive(Debug)]
pub(super) struct KeptShard {
    pub(super) path: PathBuf,
    pub(super) listed: ListedEventShard,
}

/// Takes a complete shard.
pub(super) type TakeShard<'a> = dyn FnMut(NextShard<'_>) -> Result<()> + 'a;

/// What a sequence of shards has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SequenceCounts {
    pub(super) jobs: usize,
    /// Dropped duplicates of events.
    pub(super) doubles: u64,
    shards: usize,
}

/// The shards of a store under construction, in order.
pub(super) struct ShardSequence<'a, 'b> {
    sizes: ShardSizes,
    columns: ShardColumns,
    take_shard: &'a mut TakeShard<'b>,
    counts: SequenceCounts,
}

impl<'a, 'b> ShardSequence<'a, 'b> {
    /// Begins the shards of a store with `events` events or more.
    pub(super) fn new(
        sizes: ShardSizes,
        events: usize,
        take_shard: &'a mut TakeShard<'b>,
    ) -> ShardSequence<'a, 'b> {
        ShardSequence {
            sizes,
            columns: ShardColumns::with_capacity(sizes.capacity(events)),
            take_shard,
            counts: SequenceCounts::default(),
        }
    }

    /// Adds the jobs of the next id, whose rows are in order of pushing.
    pub(super) fn push(&mut self, same_id: &mut SameIdRows) -> Result<()> {
        let Some(id) = same_id.id() else {
            return Ok(());
        };
        same_id.sort_by_time();
        self.counts.doubles += drop_duplicates(&mut same_id.events);

        let ads = SameIdAds::new(&same_id.ads);
        for job in split_at_submissions(&same_id.events) {
            self.counts.jobs += 1;
            let submit_ms = submit_time_ms(job);
            let ad = ads.of_job(submit_ms);
            let inputs = inputs_of(&same_id.inputs, ad);
            self.columns.push_job(job, submit_ms, ad, inputs);
        }

        if self.sizes.ends_after(id, self.columns.event_count()) {
            self.end_shard()?;
        }
        Ok(())
    }

    /// Returns true if the next job begins a shard.
    pub(super) fn is_between_shards(&self) -> bool {
        self.columns.job_count() == 0
    }

    /// Adds a whole shard between two shards.
    pub(super) fn keep(&mut self, shard: KeptShard) -> Result<()> {
        self.counts.jobs += shard.listed.jobs;
        self.counts.shards += 1;
        (self.take_shard)(NextShard::Kept(shard))
    }

    /// Ends the last shard. A store without jobs has one shard, too.
    pub(super) fn finish(mut self) -> Result<SequenceCounts> {
        if self.counts.shards == 0 || !self.is_between_shards() {
            self.end_shard()?;
        }
        Ok(self.counts)
    }

    fn end_shard(&mut self) -> Result<()> {
        self.counts.shards += 1;
        (self.take_shard)(NextShard::New(&mut self.columns))
    }
}

/// Returns the sorted `inputs` of an id that `ad` names.
fn inputs_of<'a>(inputs: &'a [InputRow], ad: Option<&AdRow>) -> &'a [InputRow] {
    let Some(submit_ms) = ad.map(|ad| ad.submit_ms) else {
        return &[];
    };
    let begin = inputs.partition_point(|input| input.submit_ms < submit_ms);
    let end = inputs.partition_point(|input| input.submit_ms <= submit_ms);
    &inputs[begin..end]
}

/// The ads of one id, sorted by the submission times that they state.
struct SameIdAds<'a> {
    ads: &'a [AdRow],
    has_one_owner: bool,
}

impl SameIdAds<'_> {
    fn new(ads: &[AdRow]) -> SameIdAds<'_> {
        let is_of_first = |ad: &AdRow| ad.owner == ads[0].owner;
        SameIdAds {
            ads,
            has_one_owner: ads.iter().all(is_of_first),
        }
    }

    /// Returns the ad of the job submitted at `submit_ms`. Ads without a time apply to any job of
    /// that id, if they agree on the owner.
    fn of_job(&self, submit_ms: i64) -> Option<&AdRow> {
        let nearest = self.nearest(submit_ms)?;
        let is_sure = nearest.submit_ms != 0 || self.has_one_owner;
        is_sure.then_some(nearest)
    }

    /// Returns the first of the ads whose time is closest to `submit_ms`.
    fn nearest(&self, submit_ms: i64) -> Option<&AdRow> {
        let first_from = |time_ms: i64| (self.ads).partition_point(|ad| ad.submit_ms < time_ms);
        let after = first_from(submit_ms);
        let before = after
            .checked_sub(1)
            .map(|last| &self.ads[first_from(self.ads[last].submit_ms)]);

        let candidates = before.into_iter().chain(self.ads.get(after));
        candidates.min_by_key(|ad| ad.submit_ms.abs_diff(submit_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{ResourceRequest, SubmissionNames};

    #[test]
    fn ads_without_a_time_apply_if_owners_agree() {
        let id = StoredId::default();
        let ad = |submit_ms, owner| {
            AdRow::new(
                id,
                submit_ms,
                owner,
                ResourceRequest::default(),
                SubmissionNames::default(),
            )
        };
        let owner = |ads: &[AdRow]| SameIdAds::new(ads).of_job(9000).map(|ad| ad.owner);
        assert_eq!(owner(&[ad(0, 7), ad(0, 7)]), Some(7));
        assert_eq!(owner(&[ad(0, 7), ad(0, 8)]), None);
        assert_eq!(owner(&[ad(0, 7), ad(9000, 8)]), Some(8));
        assert_eq!(owner(&[]), None);
        assert_eq!(
            owner(&[ad(8000, 1), ad(8000, 2), ad(10_000, 3)]),
            Some(1),
            "the first of the nearest"
        );
        assert_eq!(owner(&[ad(i64::MIN, 1), ad(i64::MAX, 2)]), Some(2));
    }

    #[test]
    fn few_ids_end_shards_and_every_shard_ends() {
        let id = |cluster, proc| StoredId {
            ap: 1,
            cluster,
            proc,
        };
        let ends = |id, events| SHARD_SIZES.ends_after(id, events);
        let ids = || (0..1000).flat_map(|cluster| (0..100).map(move |proc| id(cluster, proc)));
        let count = |events| ids().filter(|id| ends(*id, events)).count();
        assert_eq!(count(SHARD_SIZES.min_events - 1), 0);
        let ending = count(SHARD_SIZES.min_events);
        assert!((70..130).contains(&ending), "{ending} of 100,000");
        assert_eq!(count(SHARD_SIZES.max_events), 100_000);
    }
}
