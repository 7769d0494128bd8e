//! Tables of the facts of events in a shard, one per kind of event. Only few events have a row.

use anyhow::{Result, ensure};

use htcondor_eventlog::{
    EXECUTE, EventFacts, ExecutionHost, HELD, HoldFacts, ReasonKind, RunUsage, SUBMIT,
    SubmissionNames, ends_run,
};
use poolcast_base::column_table;
use poolcast_base::shard::{Shard, ShardColumn};

/// Column value of an unknown number.
const UNKNOWN: u32 = u32::MAX;

/// The facts of one event, with the index of the event in its shard.
struct OfEvent<F> {
    event: u32,
    facts: F,
}

column_table! {
    /// Submission names from events 000, to write.
    struct SubmissionColumns from |row: &OfEvent<SubmissionNames>|;

    /// Submission names, to read.
    struct SubmissionRows<'a>;

    submission_event: u32 = row.event,
    submission_batch: u32 = row.facts.batch,
    submission_dag_node: u32 = row.facts.dag_node,
}

column_table! {
    /// Machines and slots of executions that begin with events 001, to write.
    struct ExecutionColumns from |row: &OfEvent<ExecutionHost>|;

    /// Machines and slots of executions, to read.
    struct ExecutionRows<'a>;

    execution_event: u32 = row.event,
    execution_host: u32 = row.facts.host,
    execution_slot: u32 = row.facts.slot,
}

column_table! {
    /// Resource usage of runs, from the events that end them, to write.
    struct RunColumns from |row: &OfEvent<RunUsage>|;

    /// Resource usage of runs, to read.
    struct RunRows<'a>;

    run_event: u32 = row.event,
    run_execute_s: u32 = row.facts.execute_s.unwrap_or(UNKNOWN),
    run_busy_s: u32 = row.facts.busy_s.unwrap_or(UNKNOWN),
    run_sent_kib: u32 = row.facts.sent_kib.unwrap_or(UNKNOWN),
    run_received_kib: u32 = row.facts.received_kib.unwrap_or(UNKNOWN),
    run_memory_mb: u32 = row.facts.memory_mb.unwrap_or(UNKNOWN),
    run_disk_kib: u32 = row.facts.disk_kib.unwrap_or(UNKNOWN),
}

column_table! {
    /// Facts from the reasons of holds, to write.
    struct HoldColumns from |row: &OfEvent<HoldFacts>|;

    /// Facts from the reasons of holds, to read.
    struct HoldRows<'a>;

    hold_event: u32 = row.event,
    hold_reason: u32 = row.facts.reason,
    hold_host: u32 = row.facts.place.host,
    hold_slot: u32 = row.facts.place.slot,
    hold_file: u32 = row.facts.file,
    hold_origin: u32 = row.facts.origin,
    hold_exit_code: u32 = row.facts.exit_code.unwrap_or(UNKNOWN),
    hold_kind: u32 = row.facts.kind.packed(),
}

/// The tables, to write.
#[derive(Debug, Default)]
pub(super) struct FactColumns {
    submissions: SubmissionColumns,
    executions: ExecutionColumns,
    runs: RunColumns,
    holds: HoldColumns,
}

impl FactColumns {
    /// Removes all rows, but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.submissions.clear();
        self.executions.clear();
        self.runs.clear();
        self.holds.clear();
    }

    /// Adds the facts of the event with the number `number` and the index `event`. Events must be
    /// added in the order of their indices.
    #[inline]
    pub(super) fn push(&mut self, event: u32, number: u16, facts: &EventFacts) {
        if facts.is_empty() {
            return;
        }
        match number {
            SUBMIT => self.submissions.extend(&[OfEvent {
                event,
                facts: facts.submission_names(number),
            }]),
            EXECUTE => self.executions.extend(&[OfEvent {
                event,
                facts: facts.execution_place(number),
            }]),
            HELD => self.holds.extend(&[OfEvent {
                event,
                facts: facts.hold(number),
            }]),
            _ => self.runs.extend(&[OfEvent {
                event,
                facts: facts.run_usage(number),
            }]),
        }
    }

    /// Returns the columns of all tables.
    pub(super) fn named(&self) -> Vec<(String, ShardColumn<'_>)> {
        let mut columns = self.submissions.named();
        columns.extend(self.executions.named());
        columns.extend(self.runs.named());
        columns.extend(self.holds.named());
        columns
    }
}

/// The tables, to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct FactRows<'a> {
    submissions: SubmissionRows<'a>,
    executions: ExecutionRows<'a>,
    runs: RunRows<'a>,
    holds: HoldRows<'a>,
}

impl<'a> FactRows<'a> {
    /// Maps the tables of `shard`.
    ///
    /// # Errors
    /// Fails if a column is missing or has another type.
    pub(super) fn from_shard(shard: &'a Shard) -> Result<FactRows<'a>> {
        Ok(FactRows {
            submissions: SubmissionRows::from_shard(shard)?,
            executions: ExecutionRows::from_shard(shard)?,
            runs: RunRows::from_shard(shard)?,
            holds: HoldRows::from_shard(shard)?,
        })
    }

    /// Checks everything that [`FactRows::of_event`] relies on.
    pub(super) fn check(&self) -> Result<()> {
        let FactRows {
            submissions,
            executions,
            runs,
            holds,
        } = self;
        let have_lengths = submissions.have_length(submissions.submission_event.len())
            && executions.have_length(executions.execution_event.len())
            && runs.have_length(runs.run_event.len())
            && holds.have_length(holds.hold_event.len());
        ensure!(have_lengths, "its tables of facts have different lengths");

        let mut events = [
            submissions.submission_event,
            executions.execution_event,
            runs.run_event,
            holds.hold_event,
        ]
        .into_iter();
        ensure!(
            events.all(|events| events.is_sorted()),
            "its facts are out of order"
        );
        Ok(())
    }

    /// Returns the facts of the event with the number `number` and the index `event`.
    #[inline]
    pub(super) fn of_event(&self, event: u32, number: u16) -> EventFacts {
        match number {
            SUBMIT => EventFacts::from_submission(self.submission(event)),
            EXECUTE => EventFacts::from_execution(self.execution(event)),
            HELD => EventFacts::from_hold(self.hold(event)),
            _ if ends_run(number) => EventFacts::from_run(self.run(event)),
            _ => EventFacts::default(),
        }
    }

    #[inline]
    fn submission(&self, event: u32) -> SubmissionNames {
        let rows = &self.submissions;
        match rows.submission_event.binary_search(&event) {
            Ok(at) => SubmissionNames {
                batch: rows.submission_batch[at],
                dag_node: rows.submission_dag_node[at],
            },
            Err(_) => SubmissionNames::default(),
        }
    }

    #[inline]
    fn execution(&self, event: u32) -> ExecutionHost {
        let rows = &self.executions;
        match rows.execution_event.binary_search(&event) {
            Ok(at) => ExecutionHost {
                host: rows.execution_host[at],
                slot: rows.execution_slot[at],
            },
            Err(_) => ExecutionHost::default(),
        }
    }

    #[inline]
    fn run(&self, event: u32) -> RunUsage {
        let rows = &self.runs;
        match rows.run_event.binary_search(&event) {
            Ok(at) => RunUsage {
                execute_s: known(rows.run_execute_s[at]),
                busy_s: known(rows.run_busy_s[at]),
                sent_kib: known(rows.run_sent_kib[at]),
                received_kib: known(rows.run_received_kib[at]),
                memory_mb: known(rows.run_memory_mb[at]),
                disk_kib: known(rows.run_disk_kib[at]),
            },
            Err(_) => RunUsage::default(),
        }
    }

    #[inline]
    fn hold(&self, event: u32) -> HoldFacts {
        let rows = &self.holds;
        match rows.hold_event.binary_search(&event) {
            Ok(at) => HoldFacts {
                reason: rows.hold_reason[at],
                place: ExecutionHost {
                    host: rows.hold_host[at],
                    slot: rows.hold_slot[at],
                },
                file: rows.hold_file[at],
                origin: rows.hold_origin[at],
                exit_code: known(rows.hold_exit_code[at]),
                kind: ReasonKind::from_packed(rows.hold_kind[at]),
            },
            Err(_) => HoldFacts::default(),
        }
    }
}

#[inline]
fn known(number: u32) -> Option<u32> {
    (number != UNKNOWN).then_some(number)
}
