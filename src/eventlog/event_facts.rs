//! What few events say beyond their codes: where a job ran, what its run used, why it was held, what
//! its submission is called. Packed into a few words here, and nowhere else.

use super::event_number::{EVICTED, EXECUTE, HELD, NODE_TERMINATED, SUBMIT, TERMINATED};

/// How many words the widest facts take.
const WORDS: usize = 6;

/// The facts of one event. Which there are depends on its number; all words are 0 where there are
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventFacts([u32; WORDS]);

/// What a submission is called, as hashes; 0 where it is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SubmissionNames {
    /// `JobBatchName`.
    pub batch: u32,
    /// `DAGNodeName` without its numbers: nodes of one kind have the same.
    pub dag_node: u32,
}

/// Where a job ran, as hashes; 0 where it is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ExecutionPlace {
    /// The machine, or what stands for it in the name of the slot.
    pub host: u32,
    /// The slot of the machine.
    pub slot: u32,
}

/// What the last run of a job used, as events 004 and 005 say it; `None` where they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RunUsage {
    /// `TimeExecute`: how long the program ran, seconds.
    pub execute_s: Option<u32>,
    /// `TimeSlotBusy`: how long the slot was busy with it, transfers included, seconds.
    pub busy_s: Option<u32>,
    /// `Run Bytes Sent By Job`, KiB, rounded up.
    pub sent_kib: Option<u32>,
    /// `Run Bytes Received By Job`, KiB, rounded up.
    pub received_kib: Option<u32>,
    /// The usage of `Memory (MB)`.
    pub memory_mb: Option<u32>,
    /// The usage of `Disk (KB)`.
    pub disk_kib: Option<u32>,
}

/// What the reason of a hold says, beside its codes and its template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HoldFacts {
    /// A hash of the reason without what varies from job to job; 0 if there is no reason.
    pub reason: u32,
    /// Where the run was that it tells of, if it does.
    pub place: ExecutionPlace,
    /// How the job's program ended, where a policy of the job says so in its reason.
    pub exit_code: Option<u32>,
}

impl EventFacts {
    /// Those of event 000.
    pub fn of_submission(names: SubmissionNames) -> EventFacts {
        EventFacts([names.batch, names.dag_node, 0, 0, 0, 0])
    }

    /// Those of event 001.
    pub fn of_execution(place: ExecutionPlace) -> EventFacts {
        EventFacts([place.host, place.slot, 0, 0, 0, 0])
    }

    /// Those of event 004 or 005.
    pub fn of_run(usage: RunUsage) -> EventFacts {
        EventFacts([
            pack_measured(usage.execute_s),
            pack_measured(usage.busy_s),
            pack_measured(usage.sent_kib),
            pack_measured(usage.received_kib),
            pack_measured(usage.memory_mb),
            pack_measured(usage.disk_kib),
        ])
    }

    /// Those of event 012.
    pub fn of_hold(hold: HoldFacts) -> EventFacts {
        let HoldFacts {
            reason,
            place,
            exit_code,
        } = hold;
        EventFacts([
            reason,
            place.host,
            place.slot,
            pack_measured(exit_code),
            0,
            0,
        ])
    }

    /// What event `number` calls its submission.
    pub fn submission_names(&self, number: u16) -> SubmissionNames {
        match (number, self.0) {
            (SUBMIT, [batch, dag_node, ..]) => SubmissionNames { batch, dag_node },
            _ => SubmissionNames::default(),
        }
    }

    /// Where the job ran, as event `number` says: 001 of the run that begins, 012 of the one before.
    pub fn execution_place(&self, number: u16) -> ExecutionPlace {
        match (number, self.0) {
            (EXECUTE, [host, slot, ..]) => ExecutionPlace { host, slot },
            (HELD, _) => self.hold(number).place,
            _ => ExecutionPlace::default(),
        }
    }

    /// What the run used that event `number` ends.
    pub fn run_usage(&self, number: u16) -> RunUsage {
        if !ends_run(number) {
            return RunUsage::default();
        }
        let [execute, busy, sent, received, memory, disk] = self.0.map(unpack_measured);
        RunUsage {
            execute_s: execute,
            busy_s: busy,
            sent_kib: sent,
            received_kib: received,
            memory_mb: memory,
            disk_kib: disk,
        }
    }

    /// What the hold that is event `number` says.
    pub fn hold(&self, number: u16) -> HoldFacts {
        match (number, self.0) {
            (HELD, [reason, host, slot, exit_code, ..]) => HoldFacts {
                reason,
                place: ExecutionPlace { host, slot },
                exit_code: unpack_measured(exit_code),
            },
            _ => HoldFacts::default(),
        }
    }

    /// The facts of event `number` with each hash in them changed by `change`, but for 0.
    pub fn with_hashes(mut self, number: u16, mut change: impl FnMut(u32) -> u32) -> EventFacts {
        let hashes = match number {
            SUBMIT | EXECUTE => 2,
            HELD => 3,
            _ => 0,
        };
        for hash in &mut self.0[..hashes] {
            if *hash != 0 {
                *hash = change(*hash);
            }
        }
        self
    }

    /// The words up to the last that is not 0.
    pub fn words(&self) -> &[u32] {
        let length = self.0.iter().rposition(|&word| word != 0);
        &self.0[..length.map_or(0, |last| last + 1)]
    }

    /// The facts whose words, as [`EventFacts::words`] gives them, `fill` writes into so many.
    pub fn from_words(count: usize, fill: impl FnOnce(&mut [u32])) -> EventFacts {
        let mut words = [0; WORDS];
        fill(&mut words[..count.min(WORDS)]);
        EventFacts(words)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }
}

/// Whether event `number` ends a run and says what it used.
pub fn ends_run(number: u16) -> bool {
    matches!(number, EVICTED | TERMINATED | NODE_TERMINATED)
}

/// A measured number as a word: one more than it is, as 0 stands for none.
fn pack_measured(measured: Option<u32>) -> u32 {
    measured.map_or(0, |number| number.saturating_add(1))
}

fn unpack_measured(word: u32) -> Option<u32> {
    word.checked_sub(1)
}

/// A hash of `name`, never 0, which stands for a name that is not known. It is not salted.
pub(super) fn name_hash(name: &[u8]) -> u32 {
    (twox_hash::XxHash3_64::oneshot(name) as u32).max(1)
}
