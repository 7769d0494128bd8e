//! The setting `states`: the events that count as states of a job.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, ensure};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use poolcast_base::error::hinted;

/// An event that is a state of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateEvent {
    /// The event with this number.
    Number(u16),
    /// Event 040, if it is about a job's input files.
    InputTransfer,
    /// Event 040, if it is about a job's output files.
    OutputTransfer,
}

const INPUT: &str = "input-transfer";
const OUTPUT: &str = "output-transfer";

impl fmt::Display for StateEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateEvent::Number(number) => number.fmt(f),
            StateEvent::InputTransfer => f.write_str(INPUT),
            StateEvent::OutputTransfer => f.write_str(OUTPUT),
        }
    }
}

impl FromStr for StateEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<StateEvent, String> {
        match text.trim() {
            INPUT => Ok(StateEvent::InputTransfer),
            OUTPUT => Ok(StateEvent::OutputTransfer),
            number => number
                .parse()
                .map(StateEvent::Number)
                .map_err(|_| unknown_state(text)),
        }
    }
}

fn unknown_state(written: impl fmt::Display) -> String {
    format!("expected the number of an event, {INPUT} or {OUTPUT}, got {written}")
}

impl Serialize for StateEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            StateEvent::Number(number) => serializer.serialize_u16(*number),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for StateEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StateEvent, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        // Flags and the environment give integers, but a distribution may give 12.0.
        let number = value
            .as_f64()
            .filter(|number| number.fract() == 0.0 && (0.0..=65_535.0).contains(number));
        match (number, value.as_str()) {
            (Some(number), _) => Ok(StateEvent::Number(number as u16)),
            (None, Some(text)) => text.parse().map_err(D::Error::custom),
            (None, None) => Err(D::Error::custom(unknown_state(value))),
        }
    }
}

/// The events that count as states; `None` means that every event number is a state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateEvents(pub Option<Vec<StateEvent>>);

/// Maximum number of listed states.
const MAX_STATES: usize = 150;

impl StateEvents {
    /// Rejects a list that is empty, repeats an event, or contains an event in `ignored`.
    pub fn check(&self, ignored: &[u16]) -> Result<()> {
        let Some(listed) = &self.0 else { return Ok(()) };
        let hint = "list event numbers, as in `states: [0, 1, 4, 5, 9, 12, 13, input-transfer, output-transfer]`";
        ensure!(!listed.is_empty(), hinted("`states` lists no event", hint));
        ensure!(
            listed.len() <= MAX_STATES,
            hinted(
                format!("`states` lists more than {MAX_STATES} events"),
                hint
            )
        );
        for (at, event) in listed.iter().enumerate() {
            ensure!(
                !listed[..at].contains(event),
                hinted(format!("`states` lists {event} twice"), hint)
            );
            let is_ignored =
                matches!(event, StateEvent::Number(number) if ignored.contains(number));
            ensure!(
                !is_ignored,
                hinted(
                    format!("`states` lists {event}, which `preprocessing.ignore_events` ignores"),
                    "remove it from one of the two"
                )
            );
        }
        let is_part = |event: &StateEvent| {
            matches!(
                event,
                StateEvent::InputTransfer | StateEvent::OutputTransfer
            )
        };
        ensure!(
            !(listed.contains(&StateEvent::Number(40)) && listed.iter().any(is_part)),
            hinted(
                format!("`states` lists 40 beside {INPUT} or {OUTPUT}, which are parts of it"),
                hint
            )
        );
        Ok(())
    }
}

impl fmt::Display for StateEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self
            .0
            .iter()
            .flatten()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        f.write_str(&listed.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip_through_json() {
        let states: StateEvents =
            serde_json::from_str("[0, 12.0, \"input-transfer\", \"13\"]").expect("read");
        let listed = [
            StateEvent::Number(0),
            StateEvent::Number(12),
            StateEvent::InputTransfer,
            StateEvent::Number(13),
        ];
        assert_eq!(states.0.as_deref(), Some(&listed[..]));
        assert_eq!(states.to_string(), "0,12,input-transfer,13");
        assert_eq!(
            serde_json::to_string(&states).expect("written"),
            "[0,12,\"input-transfer\",13]"
        );
        assert_eq!(
            serde_json::from_str::<StateEvents>("null").expect("read"),
            StateEvents(None)
        );
        for text in ["[-1]", "[1.5]", "[\"transfer\"]", "[70000]", "5", "[null]"] {
            assert!(serde_json::from_str::<StateEvents>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn contradictory_state_lists_are_rejected() {
        let refused = |text: &str| {
            let states: StateEvents = serde_json::from_str(text).expect("read");
            states.check(&[28]).expect_err(text).to_string()
        };
        assert!(refused("[]").contains("no event") && refused("[1, 1]").contains("1 twice"));
        assert!(refused("[28]").contains("ignore_events"));
        assert!(refused("[40, \"output-transfer\"]").contains("parts of it"));
        StateEvents(None).check(&[28]).expect("all");
    }
}
