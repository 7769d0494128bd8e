//! Frames: the `m` times at which a sample shows the states of its jobs.

use poolcast_config::WindowPosition;

/// The time range of a sample, in epoch ms, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleWindow {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

/// The frames of a sample: `m` times at equal distances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frames {
    first_ms: i64,
    length_ms: i64,
    m: usize,
}

impl Frames {
    /// Places the frames. With `window = release` and `hold`, `t_k = t_ask - (m-1-k) *
    /// timeframe_len`, where `t_ask` is the prediction time. With `window = life`, `t_k = t_submit
    /// + k * timeframe_len`.
    pub(crate) fn new(
        window: WindowPosition,
        asked_ms: i64,
        submit_ms: i64,
        m: usize,
        timeframe_len_s: u32,
    ) -> Frames {
        let length_ms = i64::from(timeframe_len_s) * 1000;
        let first_ms = match window {
            WindowPosition::Release | WindowPosition::Hold => asked_ms - (m as i64 - 1) * length_ms,
            WindowPosition::Life => submit_ms,
        };
        Frames {
            first_ms,
            length_ms,
            m,
        }
    }

    /// The number of frames.
    #[inline]
    pub(crate) fn count(self) -> usize {
        self.m
    }

    #[inline]
    pub(crate) fn first_ms(self) -> i64 {
        self.first_ms
    }

    /// The time range from the first frame to the last.
    pub(crate) fn window(self) -> SampleWindow {
        SampleWindow {
            from_ms: self.first_ms,
            to_ms: self.first_ms + (self.m as i64 - 1) * self.length_ms,
        }
    }

    /// Returns the number of frames before `time_ms`, which is the index of the first frame at or
    /// after it. Returns `m` or more if there is no such frame.
    #[inline]
    pub(crate) fn count_before(self, time_ms: i64) -> usize {
        let since_ms = time_ms
            .saturating_sub(self.first_ms)
            .saturating_add(self.length_ms - 1);
        // The quotient is exact, as both are whole numbers below 2^53, and faster than an integer
        // division. Before the first frame the result is 0, because the cast of a negative number
        // saturates.
        (since_ms as f64 / self.length_ms as f64) as u32 as usize
    }
}
