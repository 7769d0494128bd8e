//! Adds the next trials to a sweep's queue, depending on the results so far.

use anyhow::Result;

use crate::config::{Config, TrialSource};
use crate::outcomes::earlier_trials;
use crate::plan::GivenPoints;
use crate::plan::Proposal;
use crate::plan::SweepFolder;
use crate::plan::schedule;
use poolcast_queue::{ChunkEntry, ChunkState, Queue, WorkItem};
use poolcast_tensors::TensorSettings;

/// The default priority of items.
const DEFAULT_PRIORITY: u8 = 100;

/// Adds items to the queue of a sweep, call by call, and seals it after the last items. `prepare`
/// receives the sample settings of the trials, and must make their tensors.
pub(crate) struct QueueFiller<'a, P> {
    sweep: &'a SweepFolder,
    prepare: P,
    /// The proposals so far, by number.
    proposals: Vec<Proposal>,
    /// The chunk of each proposal that has ended.
    ended: Vec<Option<ChunkEntry>>,
    /// The number of ended proposals at the last look that found nothing to propose.
    exhausted_at: Option<usize>,
}

impl<'a, P: Fn(&[TensorSettings]) -> Result<()>> QueueFiller<'a, P> {
    pub(crate) fn new(sweep: &'a SweepFolder, prepare: P) -> QueueFiller<'a, P> {
        QueueFiller {
            sweep,
            prepare,
            proposals: Vec::new(),
            ended: Vec::new(),
            exhausted_at: None,
        }
    }

    /// Adds the items that may begin now.
    pub(crate) fn fill(&mut self, queue: &Queue) -> Result<()> {
        let config = &self.sweep.config;
        if config.wandb.sweep.id.is_some() {
            return self.add_given(queue);
        }
        if self.proposals.is_empty() {
            self.add_known(queue)?;
        }
        if config.wandb.sweep.proposes_trials() {
            return self.propose(queue);
        }
        queue.seal(self.sweep.trials()?.count())
    }

    /// Adds the trials that do not depend on results. A repeated call adds nothing twice.
    fn add_known(&self, queue: &Queue) -> Result<()> {
        let trials = self.sweep.trials()?;
        let chunks = trials.known_chunks();
        let items = chunks.iter().flat_map(|chunk| chunk.items());
        self.prepare_samples(items.map(|item| trials.draw(item.trial)))?;
        queue.add_chunks(0, DEFAULT_PRIORITY, &chunks)
    }

    /// Proposes items for free workers. Seals the queue once no more can follow.
    fn propose(&mut self, queue: &Queue) -> Result<()> {
        let free = self.free_slots(queue)?;
        let ended: Vec<ChunkEntry> = self.ended.iter().flatten().cloned().collect();
        if free == 0 || self.exhausted_at == Some(ended.len()) {
            return Ok(());
        }

        let trials = self.sweep.trials()?;
        let results = earlier_trials(self.sweep, queue, &ended)?;
        let next = schedule::next_proposals(trials, &self.proposals, &results, free)?;
        self.prepare_samples(next.iter().map(|one| Ok(trials.network_config(&one.point))))?;
        if next.is_empty() {
            self.exhausted_at = Some(ended.len());
        }
        for proposal in next {
            // The later ones assume that this one runs.
            if !queue.propose(self.proposals.len(), proposal.item, &proposal)? {
                return Ok(());
            }
            self.proposals.push(proposal);
            self.ended.push(None);
        }

        if schedule::is_complete(trials, &self.proposals, ended.len()) {
            let others = trials.count() - trials.network_count();
            queue.seal(self.proposals.len() + others)?;
        }
        Ok(())
    }

    /// Reads the state of all proposals. Returns the number of items to propose.
    fn free_slots(&mut self, queue: &Queue) -> Result<usize> {
        // Another manager may have added some.
        while let Some(proposal) = queue.proposal(self.proposals.len())? {
            self.proposals.push(proposal);
            self.ended.push(None);
        }

        let mut waiting = 0;
        let mut running = 0;
        let known = self.proposals.iter().zip(&mut self.ended);
        for (number, (proposal, ended)) in known.enumerate() {
            if ended.is_some() {
                continue;
            }
            match queue.proposal_entry(number, proposal.item)? {
                Some(entry) if entry.has_ended() => *ended = Some(entry),
                Some(entry) if entry.state == ChunkState::Ready => waiting += 1,
                // A file that changes its name is most likely being claimed.
                _ => running += 1,
            }
        }

        if self.sweep.config.wandb.sweep.deterministic {
            return Ok(usize::from(waiting + running == 0));
        }
        let workers = queue.workers_at_work();
        Ok(schedule::free_slots(workers, running, waiting))
    }

    /// Adds the trials whose points were given since the last call. Seals the queue if no more
    /// points will follow.
    fn add_given(&self, queue: &Queue) -> Result<()> {
        let sweep = self.sweep;
        let given = GivenPoints::read(&sweep.dir)?;
        let known = given.points.len().min(sweep.plan.trials);
        let added = queue.added_chunks()?;
        if added < known {
            let trials = added + 1..=known;
            self.prepare_samples(trials.map(|trial| sweep.trial_config(trial, None)))?;
        }
        let budget = sweep.config.epochs;
        for trial in added + 1..=known {
            // One call per trial, so that a repeated call adds nothing twice.
            queue.add_chunks(
                trial - 1,
                DEFAULT_PRIORITY,
                &[WorkItem { trial, budget }.into()],
            )?;
        }
        if given.has_every_point() || known == sweep.plan.trials {
            queue.seal(known)?;
        }
        Ok(())
    }

    /// Makes the tensors of the trials with these configurations. Only samples of logs are prepared
    /// here: tables are joined and wait samples are copied before the sweep begins.
    fn prepare_samples(&self, written: impl Iterator<Item = Result<Config>>) -> Result<()> {
        if self.sweep.config.trial_source() != TrialSource::Logs {
            return Ok(());
        }
        let mut samples = Vec::new();
        for written in written {
            // An invalid trial is skipped here. The worker that claims it finds the error, and only
            // this trial fails.
            samples.extend(written?.tensor_settings().ok());
        }
        (self.prepare)(&samples)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::plan::{EndedTrial, SweepPlan, TrialRow, queue_dir};
    use poolcast_queue::QueueSettings;

    const TRIALS: usize = 14;
    const TRIES: u32 = 2;

    /// The searches whose trials are proposed.
    const SEARCHES: [&str; 4] = [
        r#"{"method": "bayes"}"#,
        r#"{"method": "bayes", "deterministic": true, "trials_per_round": 3}"#,
        r#"{"method": "bayes", "early_terminate": {"type": "asha", "min_iter": 1, "eta": 2}}"#,
        r#"{"method": "random", "early_terminate": {"type": "hyperband", "min_iter": 1}}"#,
    ];

    /// What happens next. The numbers choose an item.
    #[derive(Debug, Clone, Copy)]
    enum Act {
        /// A manager fills the queue, while another one does the same if this is true.
        Fill(bool),
        /// A new manager takes over.
        Restart,
        Claim(usize),
        End(usize, u8),
        /// A worker dies.
        Die(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = (0..9_u8, 0..100_usize, any::<u8>()).prop_map(|(kind, at, value)| match kind {
            0..3 => Act::Fill(value % 2 == 0),
            3 => Act::Restart,
            4..6 => Act::Claim(at),
            6..8 => Act::End(at, value),
            _ => Act::Die(at),
        });
        proptest::collection::vec(act, 0..120)
    }

    fn sweep_in(dir: &tempfile::TempDir, search: &str) -> SweepFolder {
        let mut flags = BTreeMap::from([
            ("runs", json!(TRIALS)),
            ("epochs", json!(4)),
            (
                "training.parameters.learning_rate",
                json!({"min": 0.0, "max": 1.0}),
            ),
        ]);
        let keys: BTreeMap<String, serde_json::Value> = serde_json::from_str(search).expect("JSON");
        for (key, value) in keys {
            flags.insert(
                Box::leak(format!("wandb.sweep.{key}").into_boxed_str()),
                value,
            );
        }
        let config = Config::load(None, &flags).expect("a configuration");
        let plan = SweepPlan {
            trials: TRIALS,
            source_key: String::new(),
            numbers: None,
        };
        SweepFolder::new(dir.path(), config, plan)
    }

    /// The workers of a queue: they change its files as the processes do.
    struct Workers<'a> {
        sweep: &'a SweepFolder,
        queue: &'a Queue,
        claims: Cell<usize>,
    }

    impl Workers<'_> {
        /// The chunks in one state, the `at`th of them.
        fn choose(&self, at: usize, is_ready: bool) -> Option<ChunkEntry> {
            let mut entries = self.queue.chunk_entries().expect("listed");
            entries.retain(|one| !one.has_ended() && (one.state == ChunkState::Ready) == is_ready);
            entries.sort_by_key(|one| one.chunk);
            (!entries.is_empty()).then(|| entries[at % entries.len()].clone())
        }

        fn change(&self, from: &ChunkEntry, to: &ChunkEntry) {
            let items = queue_dir(&self.sweep.dir).join("items");
            for segment in fs_err::read_dir(items).expect("listed") {
                let path = segment.expect("an entry").path();
                if path.join(from.file_name()).exists() {
                    let target = path.join(to.file_name());
                    fs_err::rename(path.join(from.file_name()), target).expect("renamed");
                }
            }
        }

        fn claim(&self, at: usize) {
            if let Some(entry) = self.choose(at, true) {
                self.claims.set(self.claims.get() + 1);
                let worker = format!("w{}", self.claims.get());
                self.change(&entry, &entry.with_state(ChunkState::Leased(worker)));
            }
        }

        fn end(&self, at: usize, value: u8) {
            let Some(entry) = self.choose(at, false) else {
                return;
            };
            let worker = entry.state.worker().expect("leased").to_owned();
            let item = entry.next_item();
            let proposal = Proposal::find(self.queue, item).expect("proposed");
            let config = self.sweep.trial_config(item.trial, Some(&proposal));
            let mut row = TrialRow::begin(&entry, &worker, &config.expect("a configuration"));
            row.unseen = proposal.unseen;
            row.value = Some(f64::from(value));
            row.values = vec![row.value; item.budget];

            let line = json!({"item": item, "ended": 0, "attempt": entry.attempt, "result": row});
            let results = queue_dir(&self.sweep.dir).join("results");
            fs_err::write(results.join(format!("{worker}.jsonl")), format!("{line}\n"))
                .expect("written");
            self.change(&entry, &entry.with_state(ChunkState::Done(worker)));
        }

        fn die(&self, at: usize) {
            let Some(entry) = self.choose(at, false) else {
                return;
            };
            let next = if entry.attempt < TRIES {
                ChunkEntry {
                    attempt: entry.attempt + 1,
                    ..entry.with_state(ChunkState::Ready)
                }
            } else {
                let worker = entry.state.worker().expect("leased").to_owned();
                ChunkEntry {
                    ended: 1,
                    given_up: 1,
                    ..entry.with_state(ChunkState::Done(worker))
                }
            };
            self.change(&entry, &next);
        }
    }

    /// Fills the queue and works on it until all trials have ended.
    fn finish(filler: &RefCell<impl FnMut()>, workers: &Workers<'_>) {
        for step in 0..20 * TRIALS {
            filler.borrow_mut()();
            workers.claim(step);
            workers.end(step, step as u8);
            let sealed = workers.queue.sealed_trials().expect("read");
            if sealed.is_some()
                && workers.choose(0, true).is_none()
                && workers.choose(0, false).is_none()
            {
                return;
            }
        }
        panic!("it does not end");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        /// Trials end in any order, workers die, and managers are replaced or work at the same time.
        #[test]
        fn trials_are_neither_lost_nor_doubled_and_can_be_drawn_again(
            search in 0..SEARCHES.len(),
            acts in acts(),
        ) {
            let dir = tempfile::tempdir().expect("a directory");
            let sweep = sweep_in(&dir, SEARCHES[search]);
            let settings = QueueSettings { tries: TRIES, ..QueueSettings::default() };
            let queue = Queue::create(&queue_dir(dir.path()), settings).expect("made");
            let workers = Workers { sweep: &sweep, queue: &queue, claims: Cell::new(0) };

            let is_race = Cell::new(false);
            let other = RefCell::new(QueueFiller::new(&sweep, |_: &[TensorSettings]| Ok(())));
            let prepare = |_: &[TensorSettings]| match is_race.replace(false) {
                true => other.borrow_mut().fill(&queue),
                false => Ok(()),
            };
            let filler = RefCell::new(QueueFiller::new(&sweep, prepare));
            let fill = || {
                if queue.sealed_trials().expect("read").is_none() {
                    filler.borrow_mut().fill(&queue).expect("filled");
                }
            };
            for act in acts {
                match act {
                    Act::Fill(race) => {
                        is_race.set(race);
                        fill();
                    }
                    Act::Restart => {
                        filler.replace(QueueFiller::new(&sweep, prepare));
                    }
                    Act::Claim(at) => workers.claim(at),
                    Act::End(at, value) => workers.end(at, value),
                    Act::Die(at) => workers.die(at),
                }
            }
            finish(&RefCell::new(fill), &workers);

            let entries = queue.chunk_entries().expect("listed");
            let items: BTreeSet<WorkItem> = entries.iter().map(|one| one.next_item()).collect();
            prop_assert_eq!(items.len(), entries.len(), "no item twice");
            prop_assert_eq!(queue.sealed_trials().expect("read"), Some(items.len()));
            let first = items.iter().map(|item| item.budget).min();
            let begun = items.iter().filter(|item| Some(item.budget) == first);
            let begun: Vec<usize> = begun.map(|item| item.trial).collect();
            prop_assert_eq!(begun, (1..=TRIALS).collect::<Vec<_>>());
            let results = earlier_trials(&sweep, &queue, &entries).expect("read");
            let ended: BTreeSet<WorkItem> = results.iter().map(|one| one.item()).collect();
            prop_assert_eq!(ended, items.clone());

            let mut rows: BTreeMap<WorkItem, EndedTrial> =
                queue.results(&entries).expect("read").into_iter().collect();
            for item in entries.iter().flat_map(ChunkEntry::given_up_items) {
                let row = crate::outcomes::quarantined_row(&sweep, &queue, item).expect("a row");
                rows.insert(item, row.result);
            }
            let rows: Vec<EndedTrial> = rows
                .into_values()
                .filter(|row| Some(row.budget) == first)
                .collect();
            let trials = sweep.trials().expect("trials");
            for row in &rows {
                let again = schedule::propose_again(trials, &rows, row.trial).expect("drawn");
                let proposal = Proposal::find(&queue, row.item()).expect("proposed");
                prop_assert_eq!(&row.unseen, &proposal.unseen);
                prop_assert_eq!(again, proposal);
            }
        }
    }
}
