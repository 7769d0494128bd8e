//! Reads what stands around the innermost message: who speaks, on which side, and in which direction
//! files were sent.

use super::facts::{Direction, Side, Speaker};

/// The text around a message, and the text that is left.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'a> {
    pub(super) speaker: Speaker,
    pub(super) direction: Option<Direction>,
    pub(super) side: Side,
    pub(super) machine: Option<&'a str>,
    /// The text without the head.
    pub(super) rest: &'a str,
}

/// Reads the heads of `text`: each may contain another.
pub(super) fn read_head(text: &str) -> Head<'_> {
    let mut head = Head {
        rest: text,
        ..Head::default()
    };
    loop {
        head.rest = head.rest.trim_start_matches([' ', '|', ':']);
        let is_read = read_preface(&mut head)
            || read_slot(&mut head)
            || read_transfer_head(&mut head)
            || read_word(&mut head, "Failed to transfer files: ", Speaker::Starter)
            || read_word(&mut head, "Pelican Client Error", Speaker::Plugin);
        if !is_read {
            return head;
        }
    }
}

fn read_word(head: &mut Head<'_>, words: &str, speaker: Speaker) -> bool {
    let begin = head.rest.get(..words.len());
    if !begin.is_some_and(|begin| begin.eq_ignore_ascii_case(words)) {
        return false;
    }
    head.rest = &head.rest[words.len()..];
    head.speaker = speaker;
    true
}

/// Longest preface, in bytes.
const MAX_PREFACE: usize = 60;

/// Reads words of other programs around a copied reason: `ClusterId 7 with HoldReason: `.
fn read_preface(head: &mut Head<'_>) -> bool {
    let end = ["Reason: ", "reason: ", "Reason = "]
        .iter()
        .filter_map(|words| Some(head.rest.find(words)? + words.len()))
        .min();
    let Some(end) = end.filter(|end| *end <= MAX_PREFACE) else {
        return false;
    };
    let preface = head.rest[..end].to_ascii_lowercase();
    let is_preface = preface.contains("hold") || preface.contains("held");
    if is_preface {
        head.rest = &head.rest[end..];
    }
    is_preface
}

/// Reads `Error from SLOT: `, which a starter's message begins with.
fn read_slot<'a>(head: &mut Head<'a>) -> bool {
    let found = head
        .rest
        .strip_prefix("Error from ")
        .map(|rest| rest.strip_prefix("starter on ").unwrap_or(rest))
        .and_then(|rest| rest.split_once(':'))
        .filter(|(slot, _)| !slot.contains(' '));
    let Some((slot, rest)) = found else {
        return false;
    };
    head.rest = rest;
    // A plug-in that quotes its own program: `Error from stashcp: `.
    if head.speaker == Speaker::Plugin && !slot.contains(['@', '.']) && !slot.starts_with("slot") {
        return true;
    }
    let daemon = match slot {
        "shadow" => Some(Speaker::Shadow),
        "schedd" => Some(Speaker::Schedd),
        _ => None,
    };
    if let Some(daemon) = daemon {
        head.speaker = daemon;
        return true;
    }
    head.speaker = Speaker::Starter;
    if !matches!(slot, "slot" | "starter") {
        head.machine = head.machine.or(Some(slot));
    }
    if head.side == Side::Unknown {
        head.side = Side::ExecutionPoint;
    }
    true
}

/// Reads `Transfer input files failure at access point AP while sending files to execution point EP.
/// Details: ` and its like.
fn read_transfer_head<'a>(head: &mut Head<'a>) -> bool {
    const FAILURE: &str = " files failure at ";
    let Some(rest) = head.rest.strip_prefix("Transfer ") else {
        return false;
    };
    let Some((kind, rest)) = rest.split_once(FAILURE).filter(|(kind, _)| kind.len() < 40) else {
        return false;
    };
    let (place, details) = rest.split_once("Details: ").unwrap_or((rest, ""));
    head.direction = Some(if kind.ends_with("output") {
        Direction::Output
    } else {
        Direction::Input
    });
    let is_at_execution_point = place
        .trim_start_matches("the ")
        .starts_with("execution point");
    head.side = if is_at_execution_point {
        Side::ExecutionPoint
    } else {
        Side::AccessPoint
    };
    head.speaker = match (place.contains(" using protocol "), is_at_execution_point) {
        (true, _) => Speaker::Plugin,
        (false, true) => Speaker::Starter,
        (false, false) => Speaker::Shadow,
    };
    head.machine = place
        .split_once("execution point ")
        .and_then(|(_, slot)| slot.split_whitespace().next())
        .map(|slot| slot.trim_end_matches('.'))
        .or(head.machine);
    head.rest = details;
    true
}

/// Words of one daemon of a transfer: `STARTER at 10.0.0.1 failed to send file(s) to <10.0.0.2:9618>: ...`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clause<'a> {
    pub(super) side: Side,
    pub(super) direction: Direction,
    /// Its words beyond the fact that it failed.
    pub(super) details: &'a str,
}

/// Returns the clause of the daemon that failed, in `text`; `None` if it has no clause. The other daemon
/// only repeats that the transfer failed.
pub(super) fn failing_clause(text: &str) -> Option<Clause<'_>> {
    let mut found: Option<Clause<'_>> = None;
    let mut rest = text;
    loop {
        let next = ["; STARTER ", "; SHADOW "]
            .iter()
            .filter_map(|begin| rest.find(begin))
            .min();
        let (piece, after) = match next {
            Some(at) => (&rest[..at], rest.get(at + 2..).unwrap_or("")),
            None => (rest, ""),
        };
        let clause = read_clause(piece);
        let says_more = |clause: &Clause<'_>| clause.details.len() > 3;
        match (clause, found) {
            (Some(clause), None) => found = Some(clause),
            (Some(clause), Some(first)) if says_more(&clause) && !says_more(&first) => {
                found = Some(clause);
            }
            _ => {}
        }
        if next.is_none() {
            return found;
        }
        rest = after;
    }
}

fn read_clause(piece: &str) -> Option<Clause<'_>> {
    let starts = ["STARTER ", "SHADOW "]
        .iter()
        .filter_map(|who| piece.find(who));
    let piece = &piece[starts.min()?..];
    let (side, rest) = match piece.strip_prefix("STARTER ") {
        Some(rest) => (Side::ExecutionPoint, rest),
        None => (Side::AccessPoint, piece.strip_prefix("SHADOW ")?),
    };
    let (_, rest) = rest.split_once("failed ").filter(|(at, _)| at.len() < 80)?;

    let sends = rest.starts_with("to send");
    let direction = match (side, sends) {
        (Side::AccessPoint, true) | (Side::ExecutionPoint, false) => Direction::Input,
        _ => Direction::Output,
    };
    Some(Clause {
        side,
        direction,
        details: clause_details(rest),
    })
}

/// Returns what follows `to send file(s) to <ADDRESS>`, or all that `rest` says if it names a file.
fn clause_details(rest: &str) -> &str {
    for verb in ["to send file(s) to ", "to receive file(s) from "] {
        if let Some(after) = rest.strip_prefix(verb) {
            let end = after.find('>').map_or(0, |at| at + 1);
            return after[end..].trim_start_matches([' ', ':', ';', '|']);
        }
    }
    if let Some(after) = rest.strip_prefix("to receive file ") {
        return after.split_once(": ").map_or(rest, |(_, details)| details);
    }
    rest
}

/// Returns the innermost of nested messages: without those that the daemon ignored, and after the last
/// word that a plug-in's own message follows.
pub(super) fn innermost(text: &str) -> String {
    let is_ignored = |piece: &str| {
        let piece = piece.trim_end_matches(['.', ' ']);
        piece.is_empty() || piece.ends_with(", ignoring") || piece.ends_with("skipping")
    };
    // An expression has operators, and no pieces.
    let separator = if text.contains("' evaluated to ") {
        '\0'
    } else {
        '|'
    };
    let kept: Vec<&str> = text
        .split(separator)
        .map(str::trim)
        .filter(|piece| !is_ignored(piece))
        .collect();
    let kept = kept.join(" | ");
    let kept = kept.split(" (Version: ").next().unwrap_or_default();
    let last = ["| Error: ", ". Error: "]
        .iter()
        .filter_map(|begin| Some((kept.rfind(begin)?, begin.len())))
        .max();
    let message = last.map_or(kept, |(at, length)| &kept[at + length..]);
    let message = message.trim_start_matches("Error: ");
    let message = message
        .strip_prefix("Pelican Client Error: ")
        .unwrap_or(message);
    let message = message.split(" ( URL file =").next().unwrap_or_default();
    message.trim_matches([' ', '|', ':']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_that_says_more_has_failed() {
        let clause = |text| {
            let clause = failing_clause(text).expect("a clause");
            (clause.side, clause.direction, clause.details)
        };
        assert_eq!(
            clause(
                "STARTER at 10.1.1.1 failed to send file(s) to <10.2.2.2:9618?a=b>; SHADOW at 10.2.2.2 failed to write to file /data/x: (errno 13) Permission denied"
            ),
            (
                Side::AccessPoint,
                Direction::Output,
                "to write to file /data/x: (errno 13) Permission denied"
            )
        );
        assert_eq!(
            clause(
                "SHADOW at 10.1.1.1 failed to send file(s) to <10.2.2.2:9618>: error reading from /a/b: (errno 2) No such file or directory; STARTER failed to receive file(s) from <10.1.1.1:9618>"
            ),
            (
                Side::AccessPoint,
                Direction::Input,
                "error reading from /a/b: (errno 2) No such file or directory"
            )
        );
        assert!(failing_clause("no clause at all").is_none());
    }

    #[test]
    fn ignored_pieces_are_no_message() {
        let old = "FILETRANSFER:1:non-zero exit (1) from /usr/libexec/curl_plugin. Error: The requested URL returned error: 404 Not Found|FILETRANSFER:1:Failed to execute /usr/x, ignoring";
        assert_eq!(
            innermost(old),
            "The requested URL returned error: 404 Not Found"
        );
    }
}
