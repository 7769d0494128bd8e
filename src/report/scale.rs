//! Scales of axes: convert values to positions between 0 and 1, and choose tick values.

/// Layout of the values of an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Linear between two values.
    Linear {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// Logarithmic between two positive values.
    Logarithmic {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// Linear time, epoch ms.
    Time {
        /// The earliest time.
        low: f64,
        /// The latest time.
        high: f64,
    },
    /// Words at equal distances. A value is the index of its word.
    Words(Vec<String>),
}

/// A tick on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleTick {
    /// Position, from 0 to 1.
    pub position: f64,
    /// Text of the label.
    pub label: String,
}

/// Maximum number of ticks on an axis of numbers.
const MAX_TICKS: usize = 6;

const HOUR_MS: f64 = 3_600_000.0;

impl Scale {
    /// Makes a linear scale from the smallest to the largest of `values`, with a margin. Without
    /// finite values it is about 0 to 1.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = finite_range(values).unwrap_or((0.0, 1.0));
        if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            return Scale::Linear {
                low: low - room,
                high: high + room,
            };
        }
        let room = (high - low) * 0.04;
        Scale::Linear {
            low: low - room,
            high: high + room,
        }
    }

    /// A linear scale from 0 to 1.
    pub(super) fn share() -> Scale {
        Scale::Linear {
            low: 0.0,
            high: 1.0,
        }
    }

    /// Makes a linear scale from 0 to the largest of `values`, with a margin.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Scale {
        let high = finite_range(values).map_or(1.0, |(_, high)| high);
        let high = if high > 0.0 { high * 1.05 } else { 1.0 };
        Scale::Linear { low: 0.0, high }
    }

    /// Makes a time scale from the earliest to the latest of `values`, epoch ms.
    pub(super) fn time(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = finite_range(values).unwrap_or((0.0, 1.0));
        let high = if high > low { high } else { low + 1000.0 };
        Scale::Time { low, high }
    }

    /// Returns the position of `value`, from 0 to 1; `None` if it is not finite. Values outside the
    /// scale get the position of its nearer end.
    pub fn position(&self, value: f64) -> Option<f64> {
        let position = match self {
            Scale::Linear { low, high } | Scale::Time { low, high } => (value - low) / (high - low),
            Scale::Logarithmic { low, high } => (value / low).ln() / (high / low).ln(),
            Scale::Words(words) => (value + 0.5) / words.len().max(1) as f64,
        };
        position.is_finite().then(|| position.clamp(0.0, 1.0))
    }

    /// Returns the value at a `position`, from 0 to 1.
    pub fn value_at(&self, position: f64) -> f64 {
        match self {
            Scale::Linear { low, high } | Scale::Time { low, high } => {
                low + position * (high - low)
            }
            Scale::Logarithmic { low, high } => low * (high / low).powf(position),
            Scale::Words(words) => position * words.len() as f64 - 0.5,
        }
    }

    /// The ticks along the axis, from its lower end.
    pub fn ticks(&self) -> Vec<ScaleTick> {
        match self {
            Scale::Linear { low, high } => self.number_ticks(&round_values(*low, *high)),
            Scale::Logarithmic { low, high } => self.number_ticks(&powers_between(*low, *high)),
            Scale::Time { low, high } => self.time_ticks(*low, *high),
            Scale::Words(words) => self.word_ticks(words),
        }
    }

    fn number_ticks(&self, values: &[f64]) -> Vec<ScaleTick> {
        let mut ticks = Vec::new();
        for &value in values {
            if let Some(position) = self.position(value) {
                let label = short_number(value);
                ticks.push(ScaleTick { position, label });
            }
        }
        ticks
    }

    fn time_ticks(&self, low: f64, high: f64) -> Vec<ScaleTick> {
        let form = if high - low < 36.0 * HOUR_MS {
            "%H:%M"
        } else {
            "%m-%d"
        };
        let mut ticks: Vec<ScaleTick> = Vec::new();
        for value in round_times(low, high) {
            let moment = jiff::Timestamp::from_millisecond(value as i64);
            let (Some(position), Ok(moment)) = (self.position(value), moment) else {
                continue;
            };
            let label = moment.strftime(form).to_string();
            ticks.push(ScaleTick { position, label });
        }
        ticks
    }

    fn word_ticks(&self, words: &[String]) -> Vec<ScaleTick> {
        let mut ticks = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if let Some(position) = self.position(at as f64) {
                let label = word.clone();
                ticks.push(ScaleTick { position, label });
            }
        }
        ticks
    }
}

/// Returns the smallest and the largest finite number in `values`.
fn finite_range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut ends: Option<(f64, f64)> = None;
    for value in values.filter(|value| value.is_finite()) {
        let (low, high) = ends.unwrap_or((value, value));
        ends = Some((low.min(value), high.max(value)));
    }
    ends
}

/// Returns tick values from `low` to `high`, at a distance of 1, 2 or 5 times a power of ten.
fn round_values(low: f64, high: f64) -> Vec<f64> {
    let span = high - low;
    if span <= 0.0 || !span.is_finite() {
        return Vec::new();
    }
    let power = 10f64.powf((span / MAX_TICKS as f64).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let fits = |step: &&f64| span / **step <= MAX_TICKS as f64;
    let step = steps.iter().find(fits).copied().unwrap_or(span);

    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|times| times as f64 * step).collect()
}

/// Returns tick values from `low` to `high`: powers of ten. If there is at most one, twice and five
/// times the powers are added; if these are too few, the result is `low` and `high`.
fn powers_between(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().ceil() as i32;
    let last = high.log10().floor() as i32;
    if last > first {
        let step = (last - first) / MAX_TICKS as i32 + 1;
        let powers = (first..=last).step_by(step as usize);
        return powers.map(|power| 10f64.powi(power)).collect();
    }

    let mut values = Vec::new();
    for power in first - 1..=last {
        let times = [1.0, 2.0, 5.0].map(|times| times * 10f64.powi(power));
        values.extend(
            times
                .into_iter()
                .filter(|value| (low..=high).contains(value)),
        );
    }
    if values.len() < 2 {
        return vec![low, high];
    }
    values
}

/// Returns tick times from `low` to `high`, at round distances such as an hour or a day.
fn round_times(low: f64, high: f64) -> Vec<f64> {
    const STEPS_S: [f64; 15] = [
        60.0,
        300.0,
        600.0,
        1800.0,
        3600.0,
        7200.0,
        21_600.0,
        43_200.0,
        86_400.0,
        172_800.0,
        604_800.0,
        1_209_600.0,
        2_592_000.0,
        7_776_000.0,
        31_536_000.0,
    ];
    let span = high - low;
    let fits = |step: &&f64| span / (**step * 1000.0) <= 5.0;
    let Some(step_s) = STEPS_S.iter().find(fits) else {
        return vec![low, high];
    };
    let step = step_s * 1000.0;
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    if last < first {
        return vec![low];
    }
    (first..=last).map(|times| times as f64 * step).collect()
}

/// Formats a number briefly: three significant digits, or all integer digits if these are more.
/// Numbers below 1e-4 and from 1e6 on are in scientific notation.
pub(super) fn short_number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.0e}");
    }
    let decimals = if size >= 1000.0 {
        0
    } else {
        (3 - size.log10().floor() as i32 - 1).max(0) as usize
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            labels(&Scale::share()),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        let powers = Scale::Logarithmic {
            low: 0.0005,
            high: 0.2,
        };
        assert_eq!(labels(&powers), ["0.001", "0.01", "0.1"]);
        let decade = Scale::Logarithmic {
            low: 0.15,
            high: 3.0,
        };
        assert_eq!(labels(&decade), ["0.2", "0.5", "1", "2"]);
        let narrow = Scale::Logarithmic {
            low: 0.3,
            high: 0.4,
        };
        assert_eq!(labels(&narrow), ["0.3", "0.4"]);
        let day = Scale::Time {
            low: 0.0,
            high: 86_400_000.0,
        };
        assert_eq!(labels(&day), ["00:00", "06:00", "12:00", "18:00", "00:00"]);
    }

    #[test]
    fn values_that_are_not_finite_have_no_position() {
        assert_eq!(Scale::share().position(f64::NAN), None);
        assert_eq!(Scale::share().position(f64::INFINITY), None);
        assert_eq!(Scale::share().position(2.0), Some(1.0));
        let equal = Scale::around([3.0, 3.0, f64::NAN].into_iter());
        assert_eq!(equal.position(3.0), Some(0.5));
        let huge = Scale::around([f64::MIN, f64::MAX].into_iter());
        assert!(huge.ticks().len() <= 20);
    }

    #[test]
    fn numbers_have_few_characters() {
        let shown = [0.0, 0.05, 1.0, 1234.0, 1e9, -0.25, 64.0, 0.00005].map(short_number);
        assert_eq!(
            shown,
            ["0", "0.05", "1", "1234", "1e9", "-0.25", "64", "5e-5"]
        );
    }
}
