//! State codes of a sample: one byte per frame and job, the state after the job's last event at or
//! before the frame.

use super::frames::Frames;
use crate::shards::TensorSettings;
use htcondor_eventlog::{FILE_TRANSFER, HELD};
use poolcast_config::{StateEvent, Vocabulary};
use poolcast_events::JobHistory;
use poolcast_models::EMPTY_CELL;

/// Marker of an event that changes no state.
const IGNORED: u8 = 254;
/// Temporary cell value: the state of the previous frame.
const UNCHANGED: u8 = 253;
/// Marker of an event whose number alone does not determine the state.
const UNDETERMINED: u8 = 252;
/// The cell of an event number above 47. Each number from 0 to 47 has its own state.
const OTHER: u8 = 48;
/// Number of states for hold codes: one for each of the codes 0 to 49, and one for all others.
const HOLD_CODE_STATES: u8 = 51;

impl TensorSettings {
    /// Returns `e`, the number of states.
    ///
    /// These are the listed states, if there is a list. Otherwise they are the event numbers 0 to
    /// 47 of the current HTCondor and one state for all others. With `hold-codes` there are also
    /// the hold codes 0 to 49 and one state for all others.
    pub fn e(&self) -> usize {
        let events = self
            .states
            .0
            .as_ref()
            .map_or(usize::from(OTHER) + 1, Vec::len);
        let holds = if self.vocabulary == Vocabulary::HoldCodes {
            usize::from(HOLD_CODE_STATES)
        } else {
            0
        };
        events + holds
    }
}

/// Maps events to states.
#[derive(Debug)]
pub(crate) struct StateEncoder {
    /// States by event number; numbers above 255 use the last element.
    by_number: [u8; 256],
    /// The states of event 040 for input and for output, if they are separate states.
    transfers: [u8; 2],
    /// The state of hold code 0.
    holds: u8,
}

impl StateEncoder {
    /// Builds the states of `settings`.
    pub(crate) fn new(settings: &TensorSettings) -> StateEncoder {
        let listed = settings.states.0.as_deref();
        let place = |event: StateEvent| {
            let at = listed.and_then(|listed| listed.iter().position(|known| *known == event));
            at.map_or(IGNORED, |at| at as u8)
        };
        let state = |number: usize| match (u16::try_from(number), listed) {
            (Ok(number), _) if settings.ignore_events.contains(&number) => IGNORED,
            (_, None) => u8::try_from(number).unwrap_or(OTHER).min(OTHER),
            // The last element stands for all numbers from 255 on, which HTCondor does not use
            // today.
            (number, Some(_)) => number.map_or(IGNORED, |number| place(StateEvent::Number(number))),
        };
        let mut by_number: [u8; 256] = std::array::from_fn(state);

        let transfers = [StateEvent::InputTransfer, StateEvent::OutputTransfer].map(place);
        let is_ignored = settings.ignore_events.contains(&FILE_TRANSFER);
        if transfers != [IGNORED; 2] && !is_ignored {
            by_number[usize::from(FILE_TRANSFER)] = UNDETERMINED;
        }
        let held = &mut by_number[usize::from(HELD)];
        if settings.vocabulary == Vocabulary::HoldCodes && *held != IGNORED {
            *held = UNDETERMINED;
        }
        let holds = listed.map_or(OTHER + 1, |listed| listed.len() as u8);
        StateEncoder {
            by_number,
            transfers,
            holds,
        }
    }

    #[inline]
    fn state_after(&self, history: &JobHistory<'_>, at: usize) -> u8 {
        let number = history.number[at];
        let state = self.by_number[usize::from(number.min(255))];
        if state != UNDETERMINED {
            return state;
        }
        if number == HELD {
            let code = u8::try_from(history.hold_code[at]).unwrap_or(u8::MAX);
            return self.holds + code.min(HOLD_CODE_STATES - 1);
        }
        match history.value[at] {
            1..=3 => self.transfers[0],
            4..=6 => self.transfers[1],
            _ => IGNORED,
        }
    }

    /// Writes the codes `[m, j]` of a sample: the state of each job at each frame, after the last
    /// of its given events at or before the frame. A cell is [`EMPTY_CELL`] before the job's first
    /// event and in columns without a job.
    pub(crate) fn fill(&self, codes: &mut [u8], jobs: &[JobHistory<'_>], frames: Frames) {
        let j = codes.len() / frames.count();
        codes.fill(UNCHANGED);
        codes[..j].fill(EMPTY_CELL);
        for (column, job) in jobs.iter().enumerate() {
            self.mark_changes(&mut codes[column..], j, job, frames);
        }
        // Fill each unchanged cell from the row above. Whole rows at a time can be vectorized.
        for start in (j..codes.len()).step_by(j) {
            let (above, row) = codes[start - j..].split_at_mut(j);
            for (cell, &state) in row[..j].iter_mut().zip(&*above) {
                *cell = if *cell == UNCHANGED { state } else { *cell };
            }
        }
    }

    /// Writes the states of one job where they change. Its first cell is the first of `codes`; the
    /// next ones follow `row_length` apart.
    fn mark_changes(
        &self,
        codes: &mut [u8],
        row_length: usize,
        job: &JobHistory<'_>,
        frames: Frames,
    ) {
        let first = skippable_events(job.time_ms, frames.first_ms());
        codes[0] = self.state_before(job, first);
        for at in first..job.number.len() {
            let frame = frames.count_before(job.time_ms[at]);
            if frame >= frames.count() {
                return;
            }
            let state = self.state_after(job, at);
            if state != IGNORED {
                codes[frame * row_length] = state;
            }
        }
    }

    /// Returns the state after the first `count` events of `job`.
    fn state_before(&self, job: &JobHistory<'_>, count: usize) -> u8 {
        let mut states = (0..count).rev().map(|at| self.state_after(job, at));
        states.find(|&state| state != IGNORED).unwrap_or(EMPTY_CELL)
    }
}

/// Returns a number of events at the start of the sorted `times_ms` that the caller need not visit
/// one by one, because none is after `until_ms`.
fn skippable_events(times_ms: &[i64], until_ms: i64) -> usize {
    if times_ms.len() <= 32 {
        // Most histories are this short, and each step of a binary search would wait for the
        // previous one.
        return 0;
    }
    times_ms.partition_point(|&time_ms| time_ms <= until_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_config::WindowPosition;
    use proptest::prelude::*;

    fn settings(vocabulary: Vocabulary, states: &str) -> TensorSettings {
        let settings = TensorSettings::of_defaults();
        TensorSettings {
            vocabulary,
            states: serde_json::from_str(states).expect("states"),
            ..settings
        }
    }

    fn codes_of(
        vocabulary: Vocabulary,
        events: (&[i64], &[u16], &[i32]),
        frames: Frames,
    ) -> Vec<u8> {
        codes_of_states(&settings(vocabulary, "null"), events, frames)
    }

    /// Encodes events given as times, numbers and hold codes. The value of an event is its hold
    /// code.
    fn codes_of_states(
        settings: &TensorSettings,
        events: (&[i64], &[u16], &[i32]),
        frames: Frames,
    ) -> Vec<u8> {
        let (time_ms, number, hold_code) = events;
        let (zeros, bytes) = (vec![0; number.len()], vec![0; number.len()]);
        let history = JobHistory {
            time_ms,
            number,
            hold_code,
            hold_subcode: &zeros,
            value: hold_code,
            normal: &bytes,
            text_hash: &vec![0; number.len()],
        };
        let mut codes = vec![77; frames.count()];
        StateEncoder::new(settings).fill(&mut codes, &[history], frames);
        codes
    }

    fn column_of(
        vocabulary: Vocabulary,
        events: &[(i64, u16, i32)],
        visible: usize,
        frames: Frames,
    ) -> Vec<u8> {
        let events = &events[..visible];
        let time_ms: Vec<i64> = events.iter().map(|event| event.0 * 60_000).collect();
        let number: Vec<u16> = events.iter().map(|event| event.1).collect();
        let hold_code: Vec<i32> = events.iter().map(|event| event.2).collect();
        codes_of(vocabulary, (&time_ms, &number, &hold_code), frames)
    }

    fn column(events: &[(i64, u16)], visible: usize, frames: Frames) -> Vec<u8> {
        let events: Vec<_> = events
            .iter()
            .map(|&(minute, number)| (minute, number, 0))
            .collect();
        column_of(Vocabulary::Events, &events, visible, frames)
    }

    proptest! {
        /// Compares the codes with the definition, frame by frame.
        #[test]
        fn frames_show_the_state_after_the_last_event(
            times in proptest::collection::vec((0..900i64, 0..60u16), 1..60),
            first_s in -100..900i64,
            (m, length_s) in (1..40usize, 1..90u32),
        ) {
            let mut events: Vec<(i64, u16)> = times.iter().map(|&(s, number)| (s * 1000, number)).collect();
            events.sort_by_key(|event| event.0);
            let (time_ms, number): (Vec<i64>, Vec<u16>) = events.iter().copied().unzip();
            let frames = Frames::new(WindowPosition::Life, 0, first_s * 1000, m, length_s);
            let expected = |frame: usize| {
                let at_ms = first_s * 1000 + frame as i64 * i64::from(length_s) * 1000;
                let last = events.iter().rev().find(|&&(ms, number)| ms <= at_ms && number != 28);
                last.map_or(EMPTY_CELL, |&(_, number)| u8::try_from(number).unwrap_or(OTHER).min(OTHER))
            };
            let codes = codes_of(Vocabulary::Events, (&time_ms, &number, &vec![0; events.len()]), frames);
            prop_assert_eq!(codes, (0..m).map(expected).collect::<Vec<u8>>());
        }
    }

    /// The published worked example.
    #[test]
    fn published_example_is_reproduced() {
        let events = [(1, 0), (3, 1), (4, 2), (5, 3), (7, 4), (10, 2), (13, 5)];
        let frames = Frames::new(WindowPosition::Life, 0, 60_000, 14, 60);
        assert_eq!(
            column(&events, 7, frames),
            [0, 0, 1, 2, 3, 3, 4, 4, 4, 2, 2, 2, 5, 5]
        );
    }

    #[test]
    fn hold_windows_exclude_events_after_the_hold() {
        // The job is submitted at minute 1, held at 5 and released in the same minute. The release
        // follows the hold, so the sample does not contain it.
        let events = [(1, 0), (3, 1), (3, 28), (5, 12), (5, 13), (6, 5)];
        let frames = Frames::new(WindowPosition::Hold, 300_000, 60_000, 7, 60);
        assert_eq!(frames.window().from_ms, -60_000);
        assert_eq!(frames.window().to_ms, 300_000);
        assert_eq!(
            column(&events, 4, frames),
            [EMPTY_CELL, EMPTY_CELL, 0, 0, 1, 1, 12]
        );
    }

    #[test]
    fn first_frame_ignores_events_without_a_state() {
        let frames = Frames::new(WindowPosition::Life, 0, 240_000, 2, 60);
        assert_eq!(
            column(&[(1, 0), (2, 1), (3, 28), (5, 28)], 4, frames),
            [1, 1]
        );
        assert_eq!(column(&[(3, 28), (5, 1)], 2, frames), [EMPTY_CELL, 1]);
    }

    #[test]
    fn unknown_event_numbers_share_one_state() {
        let frames = Frames::new(WindowPosition::Life, 0, 0, 3, 60);
        assert_eq!(
            column(&[(0, 47), (1, 48), (2, 300)], 3, frames),
            [47, OTHER, OTHER]
        );
        assert_eq!(settings(Vocabulary::Events, "null").e(), 49);
    }

    #[test]
    fn hold_codes_are_separate_states() {
        let frames = Frames::new(WindowPosition::Life, 0, 0, 6, 60);
        let events = [
            (0, 1, 0),
            (1, 12, 0),
            (2, 12, 13),
            (3, 12, 49),
            (4, 12, 50),
            (5, 12, -7),
        ];
        let found = column_of(Vocabulary::HoldCodes, &events, 6, frames);
        assert_eq!(found, [1, 49, 62, 98, 99, 99]);
        assert_eq!(settings(Vocabulary::HoldCodes, "null").e(), 100);
    }

    #[test]
    fn only_listed_events_are_states() {
        let frames = Frames::new(WindowPosition::Life, 0, 0, 7, 60);
        // Submitted, input, executing, image size, output, held for 13, an unknown transfer.
        let events = [
            (0, 0, 0),
            (1, 40, 2),
            (2, 1, 0),
            (3, 6, 0),
            (4, 40, 6),
            (5, 12, 13),
            (6, 40, 0),
        ];
        let codes = |vocabulary, states: &str| {
            let time_ms: Vec<i64> = events.iter().map(|event| event.0 * 60_000).collect();
            let number: Vec<u16> = events.iter().map(|event| event.1).collect();
            let value: Vec<i32> = events.iter().map(|event| event.2).collect();
            codes_of_states(
                &settings(vocabulary, states),
                (&time_ms, &number, &value),
                frames,
            )
        };
        let published = "[0, \"input-transfer\", 1, 12, \"output-transfer\", 5]";
        assert_eq!(codes(Vocabulary::Events, published), [0, 1, 2, 2, 4, 3, 3]);
        assert_eq!(settings(Vocabulary::Events, published).e(), 6);
        assert_eq!(
            codes(Vocabulary::HoldCodes, published),
            [0, 1, 2, 2, 4, 19, 19]
        );
        assert_eq!(settings(Vocabulary::HoldCodes, published).e(), 57);
        assert_eq!(
            codes(Vocabulary::Events, "[40, 1]"),
            [EMPTY_CELL, 0, 1, 1, 0, 0, 0]
        );
        assert_eq!(
            codes(Vocabulary::Events, "[\"output-transfer\"]"),
            [EMPTY_CELL, EMPTY_CELL, EMPTY_CELL, EMPTY_CELL, 0, 0, 0]
        );
        assert_eq!(
            codes(Vocabulary::HoldCodes, "[0]"),
            [0; 7],
            "holds are none of them"
        );
        let most: Vec<u16> = (0..150).collect();
        let most = settings(
            Vocabulary::HoldCodes,
            &serde_json::to_string(&most).expect("JSON"),
        );
        assert!(most.e() <= usize::from(UNDETERMINED));
    }
}
