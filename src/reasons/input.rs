//! A hold reason before its parts are read.

use super::codes::direction_of_code;
use super::facts::{Direction, Speaker};
use super::heads::Head;
use super::scan::Scan;

/// A reason, with what was read of it before its parts are.
pub(super) struct ReasonInput<'a> {
    pub(super) head: Head<'a>,
    /// The text without its head.
    pub(super) scan: Scan<'a>,
    pub(super) code: Option<i32>,
    pub(super) subcode: Option<i32>,
}

impl ReasonInput<'_> {
    /// Returns who speaks, by the code if the text does not say it.
    pub(super) fn speaker(&self) -> Speaker {
        match (self.head.speaker, self.code) {
            (_, Some(3 | 5)) => Speaker::JobPolicy,
            (_, Some(21 | 26 | 27)) => Speaker::SitePolicy,
            (Speaker::Unknown, _) if self.scan.has("system_periodic_hold") => Speaker::SitePolicy,
            (Speaker::Unknown, None) if self.scan.has_any(&["periodic_hold", "on_exit_hold"]) => {
                Speaker::JobPolicy
            }
            (Speaker::Unknown, Some(0)) => Speaker::Gridmanager,
            (speaker, _) => speaker,
        }
    }

    /// Returns the direction of the transfer, by the code if the text does not say it.
    pub(super) fn direction(&self) -> Option<Direction> {
        let by_code = self.code.and_then(direction_of_code);
        // Before version 9.12, a code is for what its speaker did, and a starter receives input.
        let is_old = self.head.speaker == Speaker::Starter && self.scan.has("filetransfer:");
        let is_received = by_code == Some(Direction::Output) && is_old;
        let by_speaker = is_received.then_some(Direction::Input);
        let by_text = self.head.direction.or(by_speaker);
        by_text.or_else(|| self.stated_direction()).or(by_code)
    }

    /// Returns the direction that plain words state, such as those of a script that wraps a transfer.
    fn stated_direction(&self) -> Option<Direction> {
        let of_input = ["transfer input", "transferring input", "transfer of input"];
        let of_output = [
            "transfer output",
            "transferring output",
            "transfer of output",
        ];
        if self.scan.has_any(&of_input) {
            Some(Direction::Input)
        } else if self.scan.has_any(&of_output) {
            Some(Direction::Output)
        } else {
            None
        }
    }
}
