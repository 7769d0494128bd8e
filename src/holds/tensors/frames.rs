//! Frames: the `m` moments of a sample.

use poolcast_config::WindowPlace;

/// A stretch of time that a sample sees, epoch ms, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SampleWindow {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
}

/// The moments of a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frames {
    first_ms: i64,
    length_ms: i64,
    m: usize,
}

impl Frames {
    /// `window = release` and `hold`: `t_k = t_ask - (m-1-k) * timeframe_len`; `window = life`:
    /// `t_k = t_submit + k * timeframe_len`.
    pub(super) fn new(
        window: WindowPlace,
        asked_ms: i64,
        submit_ms: i64,
        m: usize,
        timeframe_len_s: u32,
    ) -> Frames {
        let length_ms = i64::from(timeframe_len_s) * 1000;
        let first_ms = match window {
            WindowPlace::Release | WindowPlace::Hold => asked_ms - (m as i64 - 1) * length_ms,
            WindowPlace::Life => submit_ms,
        };
        Frames {
            first_ms,
            length_ms,
            m,
        }
    }

    /// How many.
    #[inline]
    pub(super) fn count(self) -> usize {
        self.m
    }

    #[inline]
    pub(super) fn first_ms(self) -> i64 {
        self.first_ms
    }

    /// From the first moment to the last.
    pub(super) fn window(self) -> SampleWindow {
        SampleWindow {
            from_ms: self.first_ms,
            to_ms: self.first_ms + (self.m as i64 - 1) * self.length_ms,
        }
    }

    /// How many frames stand before `time_ms`: the place of the first at or after it, `m` or more
    /// if there is none.
    #[inline]
    pub(super) fn count_before(self, time_ms: i64) -> usize {
        let since_ms = time_ms
            .saturating_sub(self.first_ms)
            .saturating_add(self.length_ms - 1);
        // Exact, as these are whole numbers below 2^53, and faster than to divide them as such;
        // before the first frame it is 0, as a negative number becomes the nearest there is.
        (since_ms as f64 / self.length_ms as f64) as u32 as usize
    }
}
