//! What the code and the subcode of a hold say where the text says nothing. Source: the table of
//! `HoldReasonCode` in HTCondor's manual.

use super::facts::{Direction, Operation, Outcome, ReasonKind, Side, Speaker, Thing};
use super::outcomes::of_errno;

/// The lowest subcode of a failed plug-in: HTCondor shifts its exit code left by eight bits.
const PLUGIN_SUBCODES: i32 = 256;

/// Returns what a hold with this code and subcode is about, if nothing else is known.
pub fn kind_of_code(code: i32, subcode: i32) -> ReasonKind {
    let mut rows = CODES.iter();
    let row = rows.find(|(codes, of_subcode, ..)| {
        codes.contains(&code) && of_subcode.is_none_or(|of_subcode| of_subcode == subcode)
    });
    let (speaker, side, thing, operation) = row.map_or_else(
        Default::default,
        |&(_, _, speaker, side, thing, operation)| (speaker, side, thing, operation),
    );
    let direction = direction_of_code(code);
    let is_of_plugin = direction.is_some() && subcode >= PLUGIN_SUBCODES;
    ReasonKind {
        speaker: if is_of_plugin {
            Speaker::Plugin
        } else {
            speaker
        },
        side,
        thing,
        operation,
        outcome: outcome_of_code(code, subcode, thing),
        direction,
    }
}

/// Returns the direction of the transfers that holds with this code are for.
pub(super) fn direction_of_code(code: i32) -> Option<Direction> {
    match code {
        12 => Some(Direction::Output),
        13 => Some(Direction::Input),
        _ => None,
    }
}

/// A row of the table of codes: the codes, the subcode if it counts, who speaks, and what failed where.
type CodeRow = (&'static [i32], Option<i32>, Speaker, Side, Thing, Operation);

const ANYONE: Speaker = Speaker::Unknown;
const ANYWHERE: Side = Side::Unknown;

/// The meanings of codes. The first row that fits counts.
#[rustfmt::skip]
const CODES: &[CodeRow] = &[
    (&[1, 15], None, Speaker::Person, ANYWHERE, Thing::Decision, Operation::Hold),
    (&[16], None, Speaker::Person, ANYWHERE, Thing::Spool, Operation::Hold),
    (&[3], None, Speaker::JobPolicy, ANYWHERE, Thing::Unknown, Operation::Unknown),
    (&[26], None, Speaker::SitePolicy, ANYWHERE, Thing::Unknown, Operation::Unknown),
    (&[5], None, Speaker::JobPolicy, ANYWHERE, Thing::Expression, Operation::Evaluate),
    (&[27], None, Speaker::SitePolicy, ANYWHERE, Thing::Expression, Operation::Evaluate),
    (&[2], None, ANYONE, Side::Server, Thing::RemoteSystem, Operation::Submit),
    (&[4], None, ANYONE, ANYWHERE, Thing::Credential, Operation::Unknown),
    (&[17], None, ANYONE, Side::AccessPoint, Thing::OwnSoftware, Operation::Execute),
    (&[11, 18, 24, 28, 29, 30, 31], None, ANYONE, ANYWHERE, Thing::OwnSoftware, Operation::Unknown),
    (&[6], Some(0), Speaker::Starter, Side::ExecutionPoint, Thing::OwnSoftware, Operation::Start),
    (&[6], None, Speaker::Starter, Side::ExecutionPoint, Thing::Program, Operation::Execute),
    (&[7, 9], None, ANYONE, ANYWHERE, Thing::StandardOutput, Operation::Open),
    (&[8, 10], None, ANYONE, ANYWHERE, Thing::StandardInput, Operation::Open),
    (&[12], Some(122), ANYONE, Side::AccessPoint, Thing::File, Operation::Write),
    (&[13], Some(2), ANYONE, Side::AccessPoint, Thing::File, Operation::Read),
    (&[14], None, ANYONE, ANYWHERE, Thing::WorkingDirectory, Operation::Open),
    (&[19], None, Speaker::Hook, Side::ExecutionPoint, Thing::Hook, Operation::Execute),
    (&[20, 25], None, ANYONE, ANYWHERE, Thing::Schedule, Operation::Unknown),
    (&[21, 34], Some(101), Speaker::SitePolicy, ANYWHERE, Thing::Cpus, Operation::Use),
    (&[21, 34], Some(102), Speaker::SitePolicy, ANYWHERE, Thing::Memory, Operation::Use),
    (&[21, 34], Some(104), Speaker::SitePolicy, ANYWHERE, Thing::Disk, Operation::Use),
    (&[34], None, ANYONE, ANYWHERE, Thing::Resource, Operation::Use),
    (&[22], None, Speaker::Shadow, Side::AccessPoint, Thing::UserLog, Operation::Open),
    (&[23, 49], None, ANYONE, ANYWHERE, Thing::Account, Operation::Unknown),
    (&[32, 33], None, ANYONE, ANYWHERE, Thing::TransferSize, Operation::Use),
    (&[35, 45], None, ANYONE, ANYWHERE, Thing::Image, Operation::Unknown),
    (&[36], None, ANYONE, ANYWHERE, Thing::Checkpoint, Operation::Unknown),
    (&[37], None, ANYONE, Side::Server, Thing::Credential, Operation::Authenticate),
    (&[38], None, ANYONE, Side::Server, Thing::RemoteRequest, Operation::Submit),
    (&[39], None, ANYONE, Side::AccessPoint, Thing::OwnSoftware, Operation::Start),
    (&[40, 41], None, ANYONE, Side::Server, Thing::RemoteSystem, Operation::Submit),
    (&[42], None, ANYONE, Side::Server, Thing::RemoteSystem, Operation::Cancel),
    (&[43, 44], None, ANYONE, ANYWHERE, Thing::Script, Operation::Execute),
    (&[46, 47], None, ANYONE, ANYWHERE, Thing::Time, Operation::Use),
    (&[48], None, Speaker::Hook, Side::AccessPoint, Thing::Hook, Operation::Execute),
];

/// Returns how it ended. The subcode is a Unix error where files and programs are used.
fn outcome_of_code(code: i32, subcode: i32, thing: Thing) -> Outcome {
    match thing {
        Thing::Decision | Thing::Spool => Outcome::Intended,
        Thing::Expression => Outcome::Undefined,
        Thing::Memory | Thing::Disk | Thing::Cpus | Thing::Time | Thing::TransferSize => {
            Outcome::Exceeded
        }
        Thing::Resource => Outcome::Exceeded,
        Thing::Schedule | Thing::RemoteRequest => Outcome::Invalid,
        Thing::OwnSoftware if code == 17 => Outcome::WrongFormat,
        Thing::OwnSoftware if matches!(code, 24 | 39) => Outcome::Absent,
        Thing::OwnSoftware => Outcome::Failed,
        Thing::Account if code == 23 => Outcome::Denied,
        Thing::RemoteSystem if matches!(code, 40 | 41) => Outcome::Unavailable,
        _ if may_have_errno(code, subcode) => of_errno(subcode),
        _ => Outcome::Unknown,
    }
}

/// Returns true if the subcode may be a Unix error.
pub(super) fn may_have_errno(code: i32, subcode: i32) -> bool {
    matches!(code, 6..=10 | 12..=14 | 22) && (1..256).contains(&subcode)
}
