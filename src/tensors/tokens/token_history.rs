//! The history of a store by what its holds share, and the tokens of a hold at any time.

use rayon::prelude::*;

use super::keys::{SharedKeys, SharedKind, shared_keys};
use super::outcome_state::{DatedState, OutcomeState, hold_states};
use super::reason_words::ReasonWords;
use super::token_choice::{BundleKey, TokenBundle, TokenChoice};
use super::token_rows::{QuestionRow, TokenRows};
use crate::cycles::{QueriedHold, hold_cycles};
use crate::history::{
    GroupedList, HoldLengths, KeyGroups, NO_GROUP, execution_host_before, last_start,
};
use half::f16;
use htcondor_eventlog::{EXECUTE, ExecutionHost, HELD, TERMINATED};
use poolcast_base::parallel::map_items;
use poolcast_config::LabelKind;
use poolcast_events::{EventStore, StoredJob};
use poolcast_models::{QUESTION_FEATURES, TOKEN_CODES, TOKEN_FEATURES, TOKENS};

/// Kinds by which tokens are chosen, with the maximum number of tokens of each. What shares none of
/// these says little, so there may be fewer tokens than fit.
const QUOTAS: [(SharedKind, usize); 9] = [
    (SharedKind::Job, 6),
    (SharedKind::File, 12),
    (SharedKind::Origin, 8),
    (SharedKind::Reason, 10),
    (SharedKind::Cluster, 12),
    (SharedKind::Batch, 8),
    (SharedKind::Owner, 8),
    (SharedKind::Host, 6),
    (SharedKind::Subcode, 6),
];

/// Share of a quota for decided outcomes.
const DECIDED_SHARE: f64 = 0.75;

/// Maximum number of changes that are looked at for one kind and question.
const MAX_STEPS: usize = 512;

/// Length of a step in time within which equal things are one token, in scales.
const STEP_SCALES: f64 = 0.125;

/// A hold, or the first run of a job without an earlier hold.
#[derive(Debug, Clone, Copy)]
struct TokenItem {
    job: u32,
    /// Number of earlier holds of the job.
    earlier_holds: u32,
    /// Time of the hold; `None` for a first run.
    hold_ms: Option<i64>,
    release_ms: Option<i64>,
    /// Duration of the run that ended with the item.
    run_ms: Option<i64>,
    /// Hash of code and subcode; 0 for a first run.
    code: u8,
    /// Row of the reason in [`ReasonWords`].
    reason: u16,
}

/// A change of an item's state.
#[derive(Debug, Clone, Copy)]
struct ItemChange {
    at_ms: i64,
    /// Time of the item's next change; `i64::MAX` if there is none.
    until_ms: i64,
    item: u32,
    state: OutcomeState,
}

/// The items of some jobs, with their keys and states.
#[derive(Debug, Default)]
struct FoundItems {
    items: Vec<TokenItem>,
    keys: Vec<SharedKeys>,
    changes: Vec<ItemChange>,
    /// Time of each release, and duration of the released hold.
    lengths_ms: Vec<(i64, i64)>,
}

/// The changes of the items of one kind, by key: indices of changes, in order of time.
#[derive(Debug)]
struct KindIndex {
    kind: SharedKind,
    quota: usize,
    decided: GroupedList<u32>,
    open: GroupedList<u32>,
}

/// The times at which holds began and ended, by key.
#[derive(Debug)]
struct HeldIndex {
    kind: SharedKind,
    began: GroupedList<i64>,
    ended: GroupedList<i64>,
}

/// The history of a store, for the tokens of any hold at any time.
#[derive(Debug)]
pub struct TokenHistory<'a> {
    store: &'a EventStore,
    items: Vec<TokenItem>,
    /// The group of each item for each kind; [`NO_GROUP`] where the log does not say.
    groups: Vec<[u32; SharedKind::COUNT]>,
    /// All changes, in order of time.
    changes: Vec<ItemChange>,
    kinds: Vec<KindIndex>,
    held: [HeldIndex; 2],
    lengths: HoldLengths,
    words: ReasonWords,
}

impl<'a> TokenHistory<'a> {
    /// Indexes the holds and first runs of `store`.
    pub fn new(store: &'a EventStore) -> TokenHistory<'a> {
        let words = ReasonWords::new(store);
        let FoundItems {
            items,
            keys,
            mut changes,
            mut lengths_ms,
        } = FoundItems::in_store(store, &words);
        lengths_ms.par_sort_unstable();
        changes.par_sort_unstable_by_key(|change| {
            (change.at_ms, change.item, change.until_ms, change.state)
        });

        let groups = groups_by_kind(&keys);
        let change_lists = ChangeLists::new(&changes);
        let kinds = map_items(&QUOTAS, |&(kind, quota)| {
            KindIndex::new(kind, quota, &groups, &change_lists)
        });
        let held = [SharedKind::Cluster, SharedKind::Reason]
            .map(|kind| HeldIndex::new(kind, &groups, &changes));
        TokenHistory {
            store,
            kinds,
            held,
            lengths: HoldLengths::new(lengths_ms),
            groups: groups.of_items(items.len()),
            items,
            changes,
            words,
        }
    }

    /// Returns the tokens of `asked`, each hold at its prediction time.
    pub fn rows(&self, asked: &[QueriedHold]) -> TokenRows {
        let mut rows = TokenRows::default();
        self.write_rows(asked, &mut rows);
        rows
    }

    /// Like [`TokenHistory::rows`], in the memory of `rows`.
    pub(crate) fn write_rows(&self, asked: &[QueriedHold], rows: &mut TokenRows) {
        rows.resize(asked.len());
        rows.words.clear();
        rows.words.extend(self.words.table());
        let mut questions: Vec<QuestionRow<'_>> = rows.questions_mut().collect();
        questions
            .par_iter_mut()
            .zip(asked)
            .with_min_len(16)
            .for_each_init(TokenChoice::default, |choice, (row, asked)| {
                self.write_question(asked, choice, row);
            });
    }

    fn write_question(
        &self,
        asked: &QueriedHold,
        choice: &mut TokenChoice,
        row: &mut QuestionRow<'_>,
    ) {
        let Some(own) = self.find(asked) else {
            return;
        };
        let question = Question {
            history: self,
            own,
            asked_ms: asked.asked_ms,
            scale_ms: f64::from(self.lengths.shrunk_mean_ms(asked.asked_ms)),
            known: self
                .changes
                .partition_point(|change| change.at_ms <= asked.asked_ms) as u32,
        };
        question.choose(choice);
        question.write(choice, row);
    }

    /// Returns the index of a hold's item.
    fn find(&self, asked: &QueriedHold) -> Option<u32> {
        let first = self.items.partition_point(|item| item.job < asked.job);
        let of_job = self.items[first..]
            .iter()
            .take_while(|item| item.job == asked.job);
        let is_asked = |item: &TokenItem| {
            item.hold_ms.is_some() && item.earlier_holds == asked.cycle.earlier_holds
        };
        let at = of_job.into_iter().position(is_asked)?;
        u32::try_from(first + at).ok()
    }
}

impl FoundItems {
    fn in_store(store: &EventStore, words: &ReasonWords) -> FoundItems {
        let jobs = store.jobs();
        let parts = jobs.map_ranges(|range| {
            let mut found = FoundItems::default();
            for index in range {
                let numbers = jobs.numbers(index);
                if let Some(first) =
                    (numbers.iter()).position(|number| matches!(*number, HELD | TERMINATED))
                {
                    let job = jobs.get(index);
                    if numbers[first] == TERMINATED {
                        found.add_first_run(index as u32, &job, first);
                    }
                    found.add_holds(store, words, index as u32, &job);
                }
            }
            found
        });

        let mut all = FoundItems::default();
        for mut part in parts {
            let first = all.items.len() as u32;
            all.items.append(&mut part.items);
            all.keys.append(&mut part.keys);
            all.lengths_ms.append(&mut part.lengths_ms);
            all.changes
                .extend(part.changes.into_iter().map(|change| ItemChange {
                    item: change.item + first,
                    ..change
                }));
        }
        all
    }

    fn add_first_run(&mut self, index: u32, job: &StoredJob<'_>, end: usize) {
        let history = &job.history;
        let start = (history.number[..end].iter()).rposition(|&number| number == EXECUTE);
        let place = start.map_or(ExecutionHost::default(), |start| job.execution_place(start));
        let item = TokenItem {
            job: index,
            earlier_holds: 0,
            hold_ms: None,
            release_ms: None,
            run_ms: start.map(|start| history.time_ms[end] - history.time_ms[start]),
            code: 0,
            reason: 0,
        };
        let state = OutcomeState::of_first_run(history, end);
        let keys = shared_keys(index, job, None, place);
        self.add(item, keys, &[(history.time_ms[end], state)]);
    }

    fn add_holds(
        &mut self,
        store: &EventStore,
        words: &ReasonWords,
        index: u32,
        job: &StoredJob<'_>,
    ) {
        let history = &job.history;
        let gaps = store.gaps(job.ap);
        for cycle in hold_cycles(*history, LabelKind::Next, gaps) {
            let hold_ms = history.time_ms[cycle.hold];
            let release = cycle.end.filter(|_| cycle.is_released(history));
            let release_ms = release.map(|release| history.time_ms[release].max(hold_ms));
            self.lengths_ms
                .extend(release_ms.map(|release_ms| (release_ms, release_ms - hold_ms)));
            let item = TokenItem {
                job: index,
                earlier_holds: cycle.earlier_holds,
                hold_ms: Some(hold_ms),
                release_ms,
                run_ms: last_start(history, cycle.hold)
                    .map(|start| hold_ms - history.time_ms[start]),
                code: code_hash(
                    history.hold_code[cycle.hold],
                    history.hold_subcode[cycle.hold],
                ),
                reason: words.row(job, cycle.hold),
            };
            let place = execution_host_before(job, cycle.hold);
            let keys = shared_keys(index, job, Some(cycle.hold), place);
            self.add(item, keys, &hold_states(job, &cycle, gaps));
        }
    }

    fn add(&mut self, item: TokenItem, keys: SharedKeys, states: &[DatedState]) {
        let index = self.items.len() as u32;
        let next_ms = states.iter().skip(1).map(|&(next_ms, _)| next_ms);
        for (&(at_ms, state), until_ms) in states.iter().zip(next_ms.chain([i64::MAX])) {
            self.changes.push(ItemChange {
                at_ms,
                until_ms,
                item: index,
                state,
            });
        }
        self.items.push(item);
        self.keys.push(keys);
    }
}

/// Returns a hash of code and subcode from 1 to 31.
fn code_hash(code: i32, subcode: i32) -> u8 {
    let both = u64::from(code.cast_unsigned()) << 32 | u64::from(subcode.cast_unsigned());
    let mixed = both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    1 + (mixed % (TOKEN_CODES as u64 - 1)) as u8
}

/// The groups of the items, by kind.
struct KindGroups(Vec<(usize, Vec<u32>)>);

/// Numbers the keys of each kind.
fn groups_by_kind(keys: &[SharedKeys]) -> KindGroups {
    KindGroups(map_items(&SharedKind::ALL, |&kind| {
        let keys = keys.iter().map(|keys| keys[kind as usize]);
        let (groups, group_of) = KeyGroups::from_keys(keys);
        (groups.count(), group_of)
    }))
}

impl KindGroups {
    /// The number of groups of `kind`, and the group of each item.
    fn of(&self, kind: SharedKind) -> (usize, &[u32]) {
        let (count, group_of) = &self.0[kind as usize];
        (*count, group_of)
    }

    /// Returns the groups of each item, in the order of the kinds.
    fn of_items(&self, items: usize) -> Vec<[u32; SharedKind::COUNT]> {
        (0..items)
            .map(|item| SharedKind::ALL.map(|kind| self.0[kind as usize].1[item]))
            .collect()
    }
}

/// The changes to decided and to open states, each with its item, in order of time.
struct ChangeLists {
    decided: Vec<(u32, u32)>,
    open: Vec<(u32, u32)>,
}

impl ChangeLists {
    fn new(changes: &[ItemChange]) -> ChangeLists {
        let indexed = (0..).zip(changes);
        let listed = indexed.map(|(index, change)| ((index, change.item), change.state));
        let (decided, open): (Vec<_>, Vec<_>) = listed.partition(|(_, state)| state.is_decided());
        let without_state = |list: Vec<((u32, u32), OutcomeState)>| {
            list.into_iter().map(|(listed, _)| listed).collect()
        };
        ChangeLists {
            decided: without_state(decided),
            open: without_state(open),
        }
    }
}

impl KindIndex {
    fn new(
        kind: SharedKind,
        quota: usize,
        groups: &KindGroups,
        changes: &ChangeLists,
    ) -> KindIndex {
        let (count, group_of) = groups.of(kind);
        KindIndex {
            kind,
            quota,
            decided: GroupedList::new(count, group_of, &changes.decided),
            open: GroupedList::new(count, group_of, &changes.open),
        }
    }
}

impl HeldIndex {
    fn new(kind: SharedKind, groups: &KindGroups, changes: &[ItemChange]) -> HeldIndex {
        let (count, group_of) = groups.of(kind);
        let holds = || {
            let is_hold = |change: &&ItemChange| change.state == OutcomeState::Held;
            changes.iter().filter(is_hold)
        };
        let began: Vec<(i64, u32)> = holds().map(|hold| (hold.at_ms, hold.item)).collect();
        let ended: Vec<(i64, u32)> = holds().map(|hold| (hold.until_ms, hold.item)).collect();
        HeldIndex {
            kind,
            began: GroupedList::new(count, group_of, &began),
            ended: GroupedList::new(count, group_of, &ended),
        }
    }

    /// Returns how many jobs with the key of `groups` are held at `time_ms`.
    fn count(&self, groups: &[u32; SharedKind::COUNT], time_ms: i64) -> usize {
        let group = known_group(groups, self.kind);
        let until = |list: &GroupedList<i64>| {
            let times_ms = list.of(group);
            times_ms.partition_point(|&at_ms| at_ms <= time_ms)
        };
        until(&self.began) - until(&self.ended)
    }
}

/// Returns the group of `kind`, if the log says it.
fn known_group(groups: &[u32; SharedKind::COUNT], kind: SharedKind) -> Option<u32> {
    Some(groups[kind as usize]).filter(|&group| group != NO_GROUP)
}

/// A hold at its prediction time.
struct Question<'a> {
    history: &'a TokenHistory<'a>,
    /// Index of the hold's item.
    own: u32,
    asked_ms: i64,
    /// Typical duration of a hold. All times are divided by it.
    scale_ms: f64,
    /// Number of changes by prediction time.
    known: u32,
}

impl Question<'_> {
    fn item(&self, index: u32) -> &TokenItem {
        &self.history.items[index as usize]
    }

    fn groups(&self, index: u32) -> &[u32; SharedKind::COUNT] {
        &self.history.groups[index as usize]
    }

    /// Chooses the tokens, in order of time.
    fn choose(&self, choice: &mut TokenChoice) {
        choice.clear();
        for index in &self.history.kinds {
            let Some(group) = known_group(self.groups(self.own), index.kind) else {
                continue;
            };
            let decided = (DECIDED_SHARE * index.quota as f64).ceil() as usize;
            self.add_newest(index.decided.of(Some(group)), decided, choice);
            self.add_newest(index.open.of(Some(group)), index.quota - decided, choice);
        }
        choice
            .bundles
            .sort_by_key(|bundle| (bundle.since_ms, bundle.item));
    }

    /// Adds at most `quota` new tokens from the newest of `changes`, and everything equal to them.
    fn add_newest(&self, changes: &[u32], quota: usize, choice: &mut TokenChoice) {
        let known = changes.partition_point(|&change| change < self.known);
        let mut left = quota;
        let mut last_step = None;
        for &change in changes[..known].iter().rev().take(MAX_STEPS) {
            let change = self.history.changes[change as usize];
            let is_superseded = change.until_ms <= self.asked_ms;
            if is_superseded || change.item == self.own || choice.has(change.item) {
                continue;
            }
            let step = self.step(change.at_ms);
            let may_begin = left > 0 && !choice.is_full();
            if !may_begin && last_step != Some(step) {
                return;
            }
            if choice.add(
                self.bundle_key(&change, step),
                self.bundle(&change),
                may_begin,
            ) {
                left -= 1;
                last_step = Some(step);
            }
        }
    }

    /// Returns the number of the step in time that contains `time_ms`, counted back from prediction
    /// time.
    fn step(&self, time_ms: i64) -> i64 {
        ((self.asked_ms - time_ms) as f64 / (STEP_SCALES * self.scale_ms)) as i64
    }

    fn bundle_key(&self, change: &ItemChange, step: i64) -> BundleKey {
        let groups = self.groups(change.item);
        let is_own = self.item(change.item).job == self.item(self.own).job;
        BundleKey {
            cluster: groups[SharedKind::Cluster as usize],
            state: change.state,
            reason: groups[SharedKind::Reason as usize],
            step,
            own_item: is_own.then_some(change.item),
        }
    }

    fn bundle(&self, change: &ItemChange) -> TokenBundle {
        let (own, other) = (self.groups(self.own), self.groups(change.item));
        let shares = |kind: SharedKind| {
            let group = known_group(own, kind);
            u32::from(group.is_some_and(|group| group == other[kind as usize]))
        };
        TokenBundle {
            item: change.item,
            state: change.state,
            since_ms: change.at_ms,
            count: 1,
            shared: SharedKind::ALL.map(shares),
        }
    }

    /// Writes the chosen tokens, the newest last.
    fn write(&self, choice: &TokenChoice, row: &mut QuestionRow<'_>) {
        let own = self.item(self.own);
        *row.question_code = own.code;
        *row.question_reason = own.reason;
        row.question.copy_from_slice(&self.question_features());
        let padding = TOKENS - choice.bundles.len();
        for (at, bundle) in (padding..).zip(&choice.bundles) {
            let item = self.item(bundle.item);
            row.mask[at] = 1;
            row.codes[at] = item.code;
            row.reasons[at] = item.reason;
            let features = self.token_features(bundle);
            let written = &mut row.tokens[at * TOKEN_FEATURES..][..TOKEN_FEATURES];
            for (written, number) in written.iter_mut().zip(features) {
                *written = f16::from_f32(number);
            }
        }
    }

    fn token_features(&self, bundle: &TokenBundle) -> [f32; TOKEN_FEATURES] {
        let item = self.item(bundle.item);
        let mut features = [0.0; TOKEN_FEATURES];
        let (shared, rest) = features.split_at_mut(SharedKind::COUNT);
        let (states, numbers) = rest.split_at_mut(OutcomeState::COUNT);
        for (feature, &count) in shared.iter_mut().zip(&bundle.shared) {
            *feature = count as f32 / bundle.count as f32;
        }
        states[bundle.state as usize] = 1.0;
        let released_ms = item.release_ms.filter(|&ms| ms <= self.asked_ms);
        numbers.copy_from_slice(&[
            (bundle.count as f32).ln(),
            self.log_age(bundle.since_ms),
            item.hold_ms.map_or(0.0, |ms| self.log_age(ms)),
            released_ms.map_or(0.0, |ms| self.log_age(ms)),
            item.run_ms.map_or(0.0, |ms| self.log_scaled(ms)),
            (item.earlier_holds as f32).ln_1p(),
        ]);
        features
    }

    fn question_features(&self) -> [f32; QUESTION_FEATURES] {
        let own = self.item(self.own);
        let job = self.history.store.jobs().get(own.job as usize);
        let held = |index: &HeldIndex| index.count(self.groups(self.own), self.asked_ms);
        let [in_cluster, for_reason] = &self.history.held;
        [
            self.log_age(own.hold_ms.unwrap_or(self.asked_ms)),
            own.run_ms.map_or(0.0, |ms| self.log_scaled(ms)),
            f32::from(u8::from(own.run_ms.is_none())),
            (own.earlier_holds as f32).ln_1p(),
            self.log_age(job.submit_ms),
            (held(in_cluster) as f32).ln_1p(),
            (held(for_reason) as f32).ln_1p(),
        ]
    }

    /// The logarithm of the time since `time_ms`, in scales.
    fn log_age(&self, time_ms: i64) -> f32 {
        self.log_scaled(self.asked_ms - time_ms)
    }

    /// The logarithm of a duration, a second more, in scales.
    fn log_scaled(&self, ms: i64) -> f32 {
        ((ms.max(0) + 1000) as f64 / self.scale_ms).ln() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{EventFacts, HoldFacts, JobEvent, RELEASED, SUBMIT};
    use poolcast_models::FIRST_STATE;
    use proptest::prelude::*;
    use test_stores::store_of;

    /// An event of a job: cluster, proc, second, number, and the hash of what a hold names.
    type Event = (i32, i32, i64, u16, u32);

    fn store(events: &[Event]) -> EventStore {
        let event = |&(cluster, proc, s, number, hash): &Event| JobEvent {
            cluster,
            proc,
            time_ms: s * 1000,
            number,
            normal: u8::from(number == TERMINATED),
            hold_code: i32::from(number == HELD) * 13,
            facts: match number {
                HELD => EventFacts::from_hold(HoldFacts {
                    reason: hash,
                    file: hash,
                    place: ExecutionHost {
                        host: hash,
                        slot: hash,
                    },
                    ..HoldFacts::default()
                }),
                _ => EventFacts::default(),
            },
            ..JobEvent::default()
        };
        store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    /// Returns the tokens of the first hold of job `index`, asked at second `asked_s`.
    fn tokens(store: &EventStore, index: u32, asked_s: i64) -> Vec<Vec<f32>> {
        let rows = rows(store, index, asked_s);
        let tokens = rows.tokens.chunks(TOKEN_FEATURES).zip(&rows.mask);
        tokens
            .filter(|(_, is_token)| **is_token == 1)
            .map(|(token, _)| token.iter().map(|number| number.to_f32()).collect())
            .collect()
    }

    fn rows(store: &EventStore, index: u32, asked_s: i64) -> TokenRows {
        let history = store.jobs().history(index as usize);
        let asked = QueriedHold {
            job: index,
            cycle: hold_cycles(history, LabelKind::Next, &[])[0],
            asked_ms: asked_s * 1000,
        };
        TokenHistory::new(store).rows(&[asked])
    }

    fn state(token: &[f32]) -> usize {
        let states = &token[FIRST_STATE..][..OutcomeState::COUNT];
        states
            .iter()
            .position(|&is_state| is_state == 1.0)
            .expect("a state")
    }

    #[test]
    fn tokens_show_what_was_known_in_the_middle_of_a_hold() {
        let mut events = vec![(9, 0, 0, SUBMIT, 0), (9, 0, 100, HELD, 7)];
        for (job, released_s) in [(1, 150), (2, 300)] {
            events.extend([
                (job, 0, 10, EXECUTE, 0),
                (job, 0, 90 + i64::from(job), HELD, 7),
                (job, 0, released_s, RELEASED, 0),
                (job, 0, released_s + 1, EXECUTE, 0),
                (job, 0, released_s + 30, TERMINATED, 0),
            ]);
        }
        let store = store(&events);
        let states = |asked_s| -> Vec<usize> {
            tokens(&store, 2, asked_s)
                .iter()
                .map(|token| state(token))
                .collect()
        };
        let (held, waiting, succeeded) = (0, 2, 5);
        assert_eq!(states(120), [held, held]);
        assert_eq!(states(150), [held, waiting]);
        assert_eq!(states(200), [held, succeeded]);
        assert_eq!(states(400), [succeeded, succeeded]);
        let shared = &tokens(&store, 2, 200)[0][..SharedKind::COUNT];
        assert_eq!(shared, [0., 0., 0., 0., 1., 0., 1., 1., 1., 1., 1.]);
    }

    #[test]
    fn equal_things_are_one_token_with_a_count() {
        let mut events = vec![(9, 0, 0, SUBMIT, 0), (9, 0, 100, HELD, 7)];
        for proc in 0..200 {
            events.extend([(1, proc, 50, HELD, 7), (2, proc, 50, HELD, 8)]);
        }
        let store = store(&events);
        let found = tokens(&store, 400, 110);
        let mut counts: Vec<f32> = found.iter().map(|token| token[23].exp().round()).collect();
        counts.sort_by(f32::total_cmp);
        assert_eq!(counts, [200.0, 200.0]);
    }

    proptest! {
        /// Names are compared and never used as numbers.
        #[test]
        fn only_the_equality_of_hashes_counts(
            events in proptest::collection::vec((1..6i32, 0..4i32, 0..300i64, 0..14u16, 1..5u32), 0..120),
            factor in 3u32..99_999,
        ) {
            let base = [(9, 0, 0, SUBMIT, 0), (9, 0, 100, HELD, 2)];
            let all = [&events[..], &base].concat();
            let renamed: Vec<Event> = all.iter()
                .map(|&(cluster, proc, s, number, hash)| (cluster, proc, s, number, hash * factor))
                .collect();
            let (plain, renamed) = (store(&all), store(&renamed));
            let last = plain.jobs().len() as u32 - 1;
            prop_assert_eq!(rows(&plain, last, 200), rows(&renamed, last, 200));
        }

        /// The tokens of a hold at any time do not depend on anything later.
        #[test]
        fn tokens_ignore_later_events(
            past in proptest::collection::vec((1..6i32, 0..4i32, 0..=150i64, 0..14u16, 1..5u32), 0..120),
            future in proptest::collection::vec((1..99i32, 0..4i32, 151..400i64, 0..14u16, 1..5u32), 0..120),
        ) {
            let base = [(0, 0, 0, SUBMIT, 0), (0, 0, 50, EXECUTE, 0), (0, 0, 100, HELD, 2)];
            let known = [&past[..], &base].concat();
            let later = [&known[..], &future, &[(0, 0, 160, RELEASED, 0), (0, 0, 170, HELD, 2)]].concat();
            let (known, later) = (store(&known), store(&later));
            prop_assert_eq!(rows(&known, 0, 150), rows(&later, 0, 150));
        }
    }
}
