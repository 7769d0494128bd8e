//! Further facts of some events: the place of a run, its resource usage, the reason of a hold, and
//! the names of a submission. Only this module packs them into words.

use htcondor_holdreasons::ReasonKind;

use super::event_number::{EVICTED, EXECUTE, HELD, NODE_TERMINATED, SUBMIT, TERMINATED};

/// Number of words of the largest facts.
const WORDS: usize = 6;

/// Facts of one event, whose meaning depends on the event number. All words are 0 if there are no
/// facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventFacts([u32; WORDS]);

/// Names of a submission, as hashes; 0 if not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SubmissionNames {
    /// `JobBatchName`.
    pub batch: u32,
    /// `DAGNodeName` without its numbers, so that nodes of one kind have the same hash.
    pub dag_node: u32,
}

/// Place of a run, as hashes; 0 if not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ExecutionHost {
    /// Machine, or its substitute in the name of the slot.
    pub host: u32,
    /// Slot of the machine.
    pub slot: u32,
}

/// Resource usage of a job's last run, as stated in events 004 and 005; `None` if not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RunUsage {
    /// `TimeExecute`: run time of the program, in seconds.
    pub execute_s: Option<u32>,
    /// `TimeSlotBusy`: time in the slot including transfers, in seconds.
    pub busy_s: Option<u32>,
    /// `Run Bytes Sent By Job`, KiB, rounded up.
    pub sent_kib: Option<u32>,
    /// `Run Bytes Received By Job`, KiB, rounded up.
    pub received_kib: Option<u32>,
    /// Usage of `Memory (MB)`.
    pub memory_mb: Option<u32>,
    /// Usage of `Disk (KB)`.
    pub disk_kib: Option<u32>,
}

/// Facts from the reason of a hold, besides its codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HoldFacts {
    /// Hash of the reason without the parts that vary from job to job; 0 if there is no reason.
    pub reason: u32,
    /// Place of the run that the reason names, if it names one.
    pub place: ExecutionHost,
    /// Hash of the file or URL that the reason names, in full; 0 if it names none.
    pub file: u32,
    /// Hash of the origin of that URL, or of the upper directories of that file; 0 if there is
    /// none.
    pub origin: u32,
    /// Exit code of the job's program, if a policy of the job states it in the reason. Larger ones than
    /// 510, which only Windows has, count as 510.
    pub exit_code: Option<u32>,
    /// What the reason states, without names and numbers.
    pub kind: ReasonKind,
}

impl EventFacts {
    /// Packs the facts of event 000.
    pub fn from_submission(names: SubmissionNames) -> EventFacts {
        EventFacts([names.batch, names.dag_node, 0, 0, 0, 0])
    }

    /// Packs the facts of event 001.
    pub fn from_execution(place: ExecutionHost) -> EventFacts {
        EventFacts([place.host, place.slot, 0, 0, 0, 0])
    }

    /// Packs the facts of event 004 or 005.
    pub fn from_run(usage: RunUsage) -> EventFacts {
        EventFacts([
            pack_measured(usage.execute_s),
            pack_measured(usage.busy_s),
            pack_measured(usage.sent_kib),
            pack_measured(usage.received_kib),
            pack_measured(usage.memory_mb),
            pack_measured(usage.disk_kib),
        ])
    }

    /// Packs the facts of event 012.
    pub fn from_hold(hold: HoldFacts) -> EventFacts {
        let HoldFacts {
            reason,
            place,
            file,
            origin,
            exit_code,
            kind,
        } = hold;
        EventFacts([
            reason,
            place.host,
            place.slot,
            file,
            origin,
            pack_end(exit_code, kind),
        ])
    }

    /// Returns the names of the submission; all 0 unless `number` is event 000.
    pub fn submission_names(&self, number: u16) -> SubmissionNames {
        match (number, self.0) {
            (SUBMIT, [batch, dag_node, ..]) => SubmissionNames { batch, dag_node },
            _ => SubmissionNames::default(),
        }
    }

    /// Returns the place of the job. Event 001 states the place of the run that begins, and event
    /// 012 the place of the previous run.
    pub fn execution_place(&self, number: u16) -> ExecutionHost {
        match (number, self.0) {
            (EXECUTE, [host, slot, ..]) => ExecutionHost { host, slot },
            (HELD, _) => self.hold(number).place,
            _ => ExecutionHost::default(),
        }
    }

    /// Returns the resource usage of the run that event `number` ends.
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

    /// Returns the facts of a hold; all empty unless `number` is event 012.
    pub fn hold(&self, number: u16) -> HoldFacts {
        match (number, self.0) {
            (HELD, [reason, host, slot, file, origin, end]) => HoldFacts {
                reason,
                place: ExecutionHost { host, slot },
                file,
                origin,
                exit_code: unpack_measured(end & MAX_EXIT_WORD),
                kind: ReasonKind::from_packed(end >> EXIT_CODE_BITS),
            },
            _ => HoldFacts::default(),
        }
    }

    /// Returns the facts of event `number` after `change` is applied to each hash except 0.
    pub fn with_hashes(mut self, number: u16, mut change: impl FnMut(u32) -> u32) -> EventFacts {
        let hashes = match number {
            SUBMIT | EXECUTE => 2,
            HELD => 5,
            _ => 0,
        };
        for hash in &mut self.0[..hashes] {
            if *hash != 0 {
                *hash = change(*hash);
            }
        }
        self
    }

    /// Returns the words up to the last one that is not 0.
    pub fn words(&self) -> &[u32] {
        let length = self.0.iter().rposition(|&word| word != 0);
        &self.0[..length.map_or(0, |last| last + 1)]
    }

    /// Creates facts from `count` words, which `fill` writes in the format of
    /// [`EventFacts::words`].
    pub fn from_words(count: usize, fill: impl FnOnce(&mut [u32])) -> EventFacts {
        let mut words = [0; WORDS];
        fill(&mut words[..count.min(WORDS)]);
        EventFacts(words)
    }

    /// Returns true if there are no facts.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }
}

/// Bits of the exit code in the word that it shares with the kind of the reason.
const EXIT_CODE_BITS: u32 = u32::BITS - ReasonKind::PACKED_BITS;
/// The largest packed exit code.
const MAX_EXIT_WORD: u32 = (1 << EXIT_CODE_BITS) - 1;

/// Packs how the program ended, and what the reason states.
fn pack_end(exit_code: Option<u32>, kind: ReasonKind) -> u32 {
    kind.packed() << EXIT_CODE_BITS | pack_measured(exit_code).min(MAX_EXIT_WORD)
}

/// Returns true if event `number` ends a run and states its usage.
pub fn ends_run(number: u16) -> bool {
    matches!(number, EVICTED | TERMINATED | NODE_TERMINATED)
}

/// Packs a measured number as one more than its value, because 0 means `None`.
fn pack_measured(measured: Option<u32>) -> u32 {
    measured.map_or(0, |number| number.saturating_add(1))
}

fn unpack_measured(word: u32) -> Option<u32> {
    word.checked_sub(1)
}

/// Returns the unsalted hash of `name`. It is never 0, because 0 means an unknown name.
pub(super) fn name_hash(name: &[u8]) -> u32 {
    (twox_hash::XxHash3_64::oneshot(name) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_holdreasons::kind_of_code;

    #[test]
    fn facts_of_holds_are_unpacked_as_they_were_packed() {
        for (exit_code, unpacked) in [
            (None, None),
            (Some(0), Some(0)),
            (Some(255), Some(255)),
            (Some(0xc000_0005), Some(510)),
        ] {
            let hold = HoldFacts {
                reason: 7,
                exit_code,
                kind: kind_of_code(13, 2),
                ..HoldFacts::default()
            };
            let expected = HoldFacts {
                exit_code: unpacked,
                ..hold
            };
            assert_eq!(EventFacts::from_hold(hold).hold(HELD), expected);
        }
    }
}
