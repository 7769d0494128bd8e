//! What the code and the subcode of a hold say where the text says nothing. Source: the table of
//! `HoldReasonCode` in HTCondor's manual.

use super::facts::{Operation, Outcome, ReasonKind, Side, Speaker, Thing};
use super::outcomes::of_errno;

/// Returns what a hold with this code and subcode is about, if nothing else is known.
pub fn kind_of_code(code: i32, subcode: i32) -> ReasonKind {
    let (speaker, side, thing, operation) = cause_of_code(code, subcode);
    ReasonKind {
        speaker,
        side,
        thing,
        operation,
        outcome: outcome_of_code(code, subcode, thing),
    }
}

/// Returns who speaks, and what failed where.
fn cause_of_code(code: i32, subcode: i32) -> (Speaker, Side, Thing, Operation) {
    const ANYWHERE: Side = Side::Unknown;
    let (speaker, side, thing, operation) = match (code, subcode) {
        (1 | 15, _) => (Speaker::Person, ANYWHERE, Thing::Decision, Operation::Hold),
        (16, _) => (Speaker::Person, ANYWHERE, Thing::Spool, Operation::Hold),
        (3, _) => (
            Speaker::JobPolicy,
            ANYWHERE,
            Thing::Unknown,
            Operation::Unknown,
        ),
        (26, _) => (
            Speaker::SitePolicy,
            ANYWHERE,
            Thing::Unknown,
            Operation::Unknown,
        ),
        (5, _) => (
            Speaker::JobPolicy,
            ANYWHERE,
            Thing::Expression,
            Operation::Evaluate,
        ),
        (27, _) => (
            Speaker::SitePolicy,
            ANYWHERE,
            Thing::Expression,
            Operation::Evaluate,
        ),
        (4, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::Credential,
            Operation::Unknown,
        ),
        (6, _) => (
            Speaker::Starter,
            Side::ExecutionPoint,
            Thing::Program,
            Operation::Execute,
        ),
        (7 | 9, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::StandardOutput,
            Operation::Open,
        ),
        (8 | 10, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::StandardInput,
            Operation::Open,
        ),
        (12, 122) => (
            Speaker::Unknown,
            Side::AccessPoint,
            Thing::File,
            Operation::Write,
        ),
        (13, 2) => (
            Speaker::Unknown,
            Side::AccessPoint,
            Thing::File,
            Operation::Read,
        ),
        (14, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::WorkingDirectory,
            Operation::Open,
        ),
        (19, _) => (
            Speaker::Hook,
            Side::ExecutionPoint,
            Thing::Hook,
            Operation::Execute,
        ),
        (20 | 25, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::Schedule,
            Operation::Unknown,
        ),
        (21 | 34, 101) => (Speaker::SitePolicy, ANYWHERE, Thing::Cpus, Operation::Use),
        (21 | 34, 102) => (Speaker::SitePolicy, ANYWHERE, Thing::Memory, Operation::Use),
        (21 | 34, 104) => (Speaker::SitePolicy, ANYWHERE, Thing::Disk, Operation::Use),
        (22, _) => (
            Speaker::Shadow,
            Side::AccessPoint,
            Thing::UserLog,
            Operation::Open,
        ),
        (32 | 33, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::TransferSize,
            Operation::Use,
        ),
        (35 | 45, _) => (Speaker::Unknown, ANYWHERE, Thing::Image, Operation::Unknown),
        (36, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::Checkpoint,
            Operation::Unknown,
        ),
        (43 | 44, _) => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::Script,
            Operation::Execute,
        ),
        (46 | 47, _) => (Speaker::Unknown, ANYWHERE, Thing::Time, Operation::Use),
        (48, _) => (
            Speaker::Hook,
            Side::AccessPoint,
            Thing::Hook,
            Operation::Execute,
        ),
        _ => (
            Speaker::Unknown,
            ANYWHERE,
            Thing::Unknown,
            Operation::Unknown,
        ),
    };
    (speaker, side, thing, operation)
}

/// Returns how it ended. The subcode is a Unix error where files and programs are used.
fn outcome_of_code(code: i32, subcode: i32, thing: Thing) -> Outcome {
    match thing {
        Thing::Decision | Thing::Spool => Outcome::Intended,
        Thing::Expression => Outcome::Undefined,
        Thing::Memory | Thing::Disk | Thing::Cpus | Thing::Time | Thing::TransferSize => {
            Outcome::Exceeded
        }
        Thing::Schedule => Outcome::Invalid,
        _ if may_have_errno(code, subcode) => of_errno(subcode),
        _ => Outcome::Unknown,
    }
}

/// Returns true if the subcode may be a Unix error.
pub(super) fn may_have_errno(code: i32, subcode: i32) -> bool {
    matches!(code, 6..=10 | 12..=14 | 22) && (1..256).contains(&subcode)
}
