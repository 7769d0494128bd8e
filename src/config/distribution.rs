//! A distribution of W&B's sweeps: its quantile function, the inverse of that function, and the
//! values of a grid.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condition::{Condition, is_same};
use super::distribution_form::{DistributionForm, RealDistribution};
use super::distribution_schema::read_distribution;

/// The distribution that a sweep draws a parameter from. All distributions of W&B's sweeps exist,
/// under W&B's names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct Distribution {
    written: Map<String, Value>,
    form: DistributionForm,
    /// Indices of distinct listed values: the values that a grid uses.
    distinct: Vec<usize>,
    condition: Option<Condition>,
}

/// The lowest and the highest quantile that is drawn. At 0 and 1, some distributions have no value.
const UNIT_BOUNDS: [f64; 2] = [1e-12, 1.0 - 1e-12];

impl Distribution {
    /// The condition under which the parameter is drawn; `None` if it always is.
    pub fn condition(&self) -> Option<&Condition> {
        self.condition.as_ref()
    }

    /// Returns the value at the quantile `unit`, computed as W&B's engine does.
    fn quantile(&self, unit: f64) -> Value {
        match &self.form {
            DistributionForm::Values {
                values,
                shares: None,
            } => values[bin_of_quantile(unit, values.len() as f64) as usize].clone(),
            DistributionForm::Values {
                values,
                shares: Some(shares),
            } => {
                let at = shares.iter().position(|share| unit < *share);
                values[at.unwrap_or(values.len() - 1)].clone()
            }
            DistributionForm::IntUniform { min, max } => min
                .saturating_add(bin_of_quantile(unit, (max - min) as f64 + 1.0) as i64)
                .into(),
            DistributionForm::Real { base, exp, q } => {
                let real = if *exp {
                    base.quantile(unit).exp()
                } else {
                    base.quantile(unit)
                };
                q.map_or(real.into(), |q| {
                    q.multiple((real / q.size).round_ties_even())
                })
            }
        }
    }

    /// Returns the value for a trial at the quantile `unit`, from 0 to 1. A rounded value is never
    /// outside of the bounds, as it can be for W&B: it is then the nearest multiple of `q` between
    /// them. In the same way, a logarithmic distribution is never rounded down to 0 (a batch of no
    /// samples).
    pub fn draw(&self, unit: f64) -> Value {
        let unit = unit.clamp(UNIT_BOUNDS[0], UNIT_BOUNDS[1]);
        let value = self.quantile(unit);
        match (&self.form, value.as_f64()) {
            (
                DistributionForm::Real {
                    base,
                    exp,
                    q: Some(q),
                },
                Some(rounded),
            ) => {
                let [low, high] = q.multiples_within(*base, *exp);
                let times = (rounded / q.size).round();
                if (low..=high).contains(&times) {
                    return value;
                }
                q.multiple(times.max(low).min(high))
            }
            _ => value,
        }
    }

    /// Returns the range of quantiles at which `value` is drawn; `None` if it is never drawn.
    pub fn unit_range(&self, value: &Value) -> Option<[f64; 2]> {
        match &self.form {
            DistributionForm::Values { values, shares } => {
                let at = values.iter().position(|known| is_same(known, value))?;
                let share = |at: usize| match (at, shares) {
                    (0, _) => 0.0,
                    (_, Some(shares)) => shares[at - 1],
                    (_, None) => at as f64 / values.len() as f64,
                };
                Some([share(at), share(at + 1)])
            }
            DistributionForm::IntUniform { min, max } => {
                let at = value.as_f64()? - *min as f64;
                let count = (max - min) as f64 + 1.0;
                let range = [at / count, (at + 1.0) / count];
                (0.0..count).contains(&at).then_some(range)
            }
            DistributionForm::Real { base, exp, q } => {
                let share = |value: f64| base.share(if *exp { value.max(0.0).ln() } else { value });
                let value = value.as_f64()?;
                let Some(q) = q else {
                    return Some([share(value); 2]);
                };
                // A rounded value stands for all values within half of `q`, and the first and the last
                // one for all values beyond them.
                let [low, high] = q.multiples_within(*base, *exp);
                let times = (value / q.size).round();
                let half = q.size / 2.0;
                Some([
                    if times <= low {
                        0.0
                    } else {
                        share(value - half)
                    },
                    if times >= high {
                        1.0
                    } else {
                        share(value + half)
                    },
                ])
            }
        }
    }

    /// Returns `value` in the form in which it is drawn, such as 1.0 for 1; `None` if it is never drawn.
    pub fn accept(&self, value: &Value) -> Option<Value> {
        let number = value.as_f64();
        match &self.form {
            DistributionForm::Values { values, .. } => {
                values.iter().find(|known| is_same(known, value)).cloned()
            }
            DistributionForm::IntUniform { min, max } => {
                let number = number.filter(|number| number.fract() == 0.0)?;
                let is_within = (*min as f64..=*max as f64).contains(&number);
                is_within.then(|| (number as i64).into())
            }
            DistributionForm::Real { base, exp, q } => {
                let number = number?;
                if !base.contains(if *exp { number.ln() } else { number }) {
                    return None;
                }
                let Some(q) = q else {
                    return Some(number.into());
                };
                let [low, high] = q.multiples_within(*base, *exp);
                let times = (number / q.size).round();
                let is_multiple = (times * q.size - number).abs() <= 1e-9 * q.size;
                (is_multiple && (low..=high).contains(&times)).then(|| q.multiple(times))
            }
        }
    }

    /// Returns the number of values of a categorical distribution, which have no order or distance;
    /// `None` for numbers on a scale.
    pub fn categories(&self) -> Option<usize> {
        match &self.form {
            DistributionForm::Values { values, .. } => Some(values.len()),
            _ => None,
        }
    }

    /// Returns true if the logarithm of its values has a uniform or a normal distribution.
    pub fn is_logarithmic(&self) -> bool {
        matches!(self.form, DistributionForm::Real { exp: true, .. })
    }

    /// Returns the number of values in a grid; `None` if a grid over the distribution is not
    /// possible.
    pub fn grid_len(&self) -> Option<u64> {
        match &self.form {
            DistributionForm::Values { shares: None, .. } => Some(self.distinct.len() as u64),
            DistributionForm::IntUniform { min, max } => max.abs_diff(*min).checked_add(1),
            DistributionForm::Real {
                base: RealDistribution::Uniform { min, max },
                exp: false,
                q: Some(q),
            } => Some(((max - min) / q.size).ceil() as u64),
            _ => None,
        }
    }

    /// Returns the grid value at the index `at`, which must be less than
    /// [`Distribution::grid_len`]. A quantized distribution counts from `min` in steps of `q` and
    /// excludes `max`.
    pub fn grid_value(&self, at: u64) -> Value {
        match &self.form {
            DistributionForm::Values { values, .. } => values[self.distinct[at as usize]].clone(),
            DistributionForm::IntUniform { min, .. } => min.saturating_add_unsigned(at).into(),
            DistributionForm::Real {
                base: RealDistribution::Uniform { min, .. },
                q: Some(q),
                ..
            } => {
                let value = min + at as f64 * q.size;
                if q.is_whole && value.fract() == 0.0 {
                    (value as i64).into()
                } else {
                    value.into()
                }
            }
            DistributionForm::Real { .. } => Value::Null,
        }
    }

    /// Returns at least one example of each type of value: all listed values, else the median.
    pub fn examples(&self) -> Vec<Value> {
        match &self.form {
            DistributionForm::Values { values, .. } => values.clone(),
            _ => vec![self.quantile(0.5)],
        }
    }
}

/// Returns the index of the first occurrence of each value. 3.0 equals 3.
fn distinct_indices(values: &[Value]) -> Vec<usize> {
    let mut known = BTreeSet::new();
    let name = |value: &Value| {
        value
            .as_f64()
            .map_or(value.to_string(), |number| number.to_string())
    };
    (0..values.len())
        .filter(|at| known.insert(name(&values[*at])))
        .collect()
}

/// Divides 0 to 1 into `count` bins of equal width, and returns the index of the bin that contains
/// the quantile `unit`. A bin edge belongs to the bin below it.
fn bin_of_quantile(unit: f64, count: f64) -> f64 {
    let part = (unit * count).ceil().clamp(1.0, count);
    if part > 1.0 && (part - 1.0) / count >= unit {
        part - 2.0
    } else {
        part - 1.0
    }
}

impl From<Distribution> for Map<String, Value> {
    fn from(distribution: Distribution) -> Map<String, Value> {
        distribution.written
    }
}

impl TryFrom<Map<String, Value>> for Distribution {
    type Error = String;

    fn try_from(mut written: Map<String, Value>) -> Result<Distribution, String> {
        let when = written.remove("when");
        let form = read_distribution(&written)?;
        let condition = when.as_ref().map(Condition::from_written).transpose()?;
        written.extend(when.map(|when| ("when".to_owned(), when)));
        let distinct = if let DistributionForm::Values { values, .. } = &form {
            distinct_indices(values)
        } else {
            Vec::new()
        };
        let distribution = Distribution {
            written,
            form,
            distinct,
            condition,
        };
        // Extreme parameters can overflow to infinity, which JSON cannot represent.
        let is_number = |unit| {
            !matches!(&distribution.form, DistributionForm::Real { .. })
                || distribution.quantile(unit).is_number()
        };
        match UNIT_BOUNDS.into_iter().all(is_number) {
            true => Ok(distribution),
            false => Err("its values are too large to be numbers".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Reference results, computed by W&B's own engine.
    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../tests/data/wandb/sweeps_vectors.json"))
            .expect("JSON")
    }

    fn read(written: &Value) -> Result<Distribution, String> {
        Distribution::try_from(written.as_object().expect("an object").clone())
    }

    /// Reads the distribution `written`. If it is rejected as deprecated, reads the alternative in
    /// the message.
    fn read_or_alternative(written: &Value) -> Distribution {
        read(written).unwrap_or_else(|refusal| {
            let instead = refusal
                .split("write `")
                .nth(1)
                .and_then(|rest| rest.strip_suffix('`'));
            read(&crate::yaml::read(instead.expect("an alternative")).expect("YAML"))
                .expect("it is taken")
        })
    }

    fn is_near(a: &Value, b: &Value) -> bool {
        match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-10 * b.abs().max(1e-3),
            _ => a == b,
        }
    }

    #[test]
    fn quantiles_match_wandb() {
        let vectors = vectors();
        let units: Vec<f64> = serde_json::from_value(vectors["x"].clone()).expect("numbers");
        let cases = vectors["ppf"].as_object().expect("cases");
        assert_eq!(cases.len(), 19);
        for (name, case) in cases {
            let distribution = read_or_alternative(&case["config"]);
            // Skip both ends: there, W&B gives values outside of the distribution, and this program
            // draws none.
            for (at, unit) in units
                .iter()
                .enumerate()
                .filter(|(_, unit)| (1e-9..1.0 - 1e-9).contains(*unit))
            {
                let (found, wanted) = (distribution.quantile(*unit), &case["values"][at]);
                assert!(
                    is_near(&found, wanted),
                    "{name} at {unit}: {found}, and not {wanted}"
                );
                assert!(
                    !wanted.is_i64() || found.is_i64(),
                    "{name} at {unit}: {found} is not whole"
                );
            }
        }
    }

    #[test]
    fn unit_range_is_the_inverse_of_draw() {
        for (name, case) in vectors()["ppf"].as_object().expect("cases") {
            let distribution = read_or_alternative(&case["config"]);
            for unit in [0.05, 0.3, 0.55, 0.8, 0.97] {
                let value = distribution.draw(unit);
                let middle = middle_unit(&distribution, &value).expect("it is drawn");
                assert!(
                    is_near(&distribution.draw(middle), &value),
                    "{name}: {value} at {unit} is not at {middle}"
                );
            }
        }
        let words = read(&json!({"values": ["a", true, null, 3]})).expect("read");
        assert_eq!(
            (
                middle_unit(&words, &json!("a")),
                middle_unit(&words, &json!(3.0))
            ),
            (Some(0.125), Some(0.875))
        );
        assert_eq!(
            (middle_unit(&words, &json!("b")), words.quantile(0.6)),
            (None, Value::Null)
        );
    }

    #[test]
    fn probabilities_that_almost_sum_to_1_share_all_quantiles() {
        for probabilities in [[4e-10, 1.0], [0.25, 0.75 - 4e-10], [1.0, 4e-10]] {
            let written = json!({"values": ["a", "b"], "probabilities": probabilities});
            let distribution = read(&written).expect("read");
            let range = |value: &str| distribution.unit_range(&json!(value)).expect("drawn");
            assert_eq!([range("a")[0], range("b")[1]], [0.0, 1.0]);
            assert_eq!(range("a")[1], range("b")[0]);
        }
    }

    fn middle_unit(distribution: &Distribution, value: &Value) -> Option<f64> {
        let [low, high] = distribution.unit_range(value)?;
        Some((low + high) / 2.0)
    }

    #[test]
    fn rounded_draws_stay_within_their_bounds() {
        let draws = |written: Value| {
            let distribution = read(&written).expect("read");
            [0.0, 0.01, 0.5, 0.99, 1.0].map(|unit| distribution.draw(unit))
        };
        assert_eq!(
            draws(json!({"distribution": "q_uniform", "min": 1, "max": 10, "q": 4})),
            [4, 4, 4, 8, 8].map(|draw| json!(draw))
        );
        assert_eq!(
            draws(json!({"distribution": "q_log_uniform_values", "min": 32, "max": 250, "q": 8})),
            [32, 32, 88, 248, 248].map(|draw| json!(draw))
        );
        let refused = json!({"distribution": "q_log_uniform_values", "min": 1e-5, "max": 3e-3});
        insta::assert_snapshot!(read(&refused).expect_err("refused"), @"`q` is 1, and larger than the range from min to max, 0.00001 to 0.003");
        let lowest = json!({"distribution": "q_uniform", "min": 1, "max": 10, "q": 4});
        let lowest = read(&lowest).expect("read").unit_range(&json!(4));
        assert_eq!(lowest, Some([0.0, 5.0 / 9.0]));
    }

    #[test]
    fn only_drawn_values_are_accepted() {
        for (written, good, bad) in [
            (
                json!({"min": 1, "max": 3}),
                vec![json!(1), json!(3)],
                vec![json!(0), json!(1.5), json!("1")],
            ),
            (
                json!({"min": 0.0, "max": 1.0}),
                vec![json!(0.0), json!(1.0)],
                vec![json!(-0.1), json!(null)],
            ),
            (
                json!({"distribution": "log_uniform_values", "min": 0.01, "max": 10}),
                vec![json!(0.01), json!(10.0)],
                vec![json!(0.009), json!(-1), json!(0)],
            ),
            (
                json!({"distribution": "q_uniform", "min": 1, "max": 10, "q": 4}),
                vec![json!(4), json!(8)],
                vec![json!(0), json!(5), json!(12)],
            ),
            (
                json!({"distribution": "q_beta", "q": 0.25}),
                vec![json!(0.0), json!(0.75)],
                vec![json!(1.25), json!(0.3)],
            ),
            (
                json!({"distribution": "log_normal"}),
                vec![json!(1e-9)],
                vec![json!(0.0), json!(-2)],
            ),
            (
                json!({"values": ["a", 3, [1]]}),
                vec![json!("a"), json!([1])],
                vec![json!(4)],
            ),
        ] {
            let distribution = read(&written).expect("read");
            for value in good {
                assert_eq!(distribution.accept(&value), Some(value), "{written}");
            }
            for value in bad {
                assert_eq!(distribution.accept(&value), None, "{written}: {value}");
            }
        }
        let rate = read(&json!({"min": 0.0, "max": 1.0})).expect("read");
        assert_eq!(rate.accept(&json!(1)), Some(json!(1.0)));
    }

    #[test]
    fn quantized_log_distributions_never_draw_zero() {
        let sizes =
            read(&json!({"distribution": "q_log_uniform_values", "q": 8, "min": 1, "max": 256}))
                .expect("read");
        assert_eq!(
            (sizes.quantile(0.1), sizes.draw(0.1), sizes.draw(0.5)),
            (json!(0), json!(8), json!(16))
        );
        let shares = read(&json!({"distribution": "q_uniform", "q": 8, "min": 0, "max": 256}))
            .expect("read");
        assert_eq!(shares.draw(0.001), json!(0));
    }

    #[test]
    fn conditions_are_read_and_written() {
        let written = json!({"values": [1, 2], "when": {"kind": ["a", 3]}});
        let distribution = read(&written).expect("read");
        assert_eq!(json!(distribution), written);
        let condition = distribution.condition().expect("a condition");
        assert_eq!(condition.parameter, "kind");
        let held = [json!("a"), json!(3.0), json!("b")].map(|value| condition.holds(&value));
        assert_eq!(held, [true, true, false]);
        for when in [
            json!({}),
            json!("a"),
            json!({"a": 1, "b": 2}),
            json!({"a": []}),
        ] {
            let refused = read(&json!({"values": [1], "when": when}));
            assert!(refused.expect_err("refused").contains("`when`"), "{when}");
        }
    }

    #[test]
    fn distributions_that_overflow_are_rejected() {
        assert!(
            read(&json!({"distribution": "log_normal", "mu": 1e9}))
                .expect_err("refused")
                .contains("too large")
        );
    }

    #[test]
    fn grids_contain_each_value_once() {
        let values = |written: Value| {
            let distribution = read(&written).expect("read");
            distribution.grid_len().map(|len| {
                (0..len)
                    .map(|at| distribution.grid_value(at))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            values(json!({"values": [3, 3.0, "3", 4]})),
            Some(vec![json!(3), json!("3"), json!(4)])
        );
        assert_eq!(
            values(json!({"min": -1, "max": 1})),
            Some(vec![json!(-1), json!(0), json!(1)])
        );
        let halves = json!({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.5});
        assert_eq!(
            values(halves),
            Some(vec![json!(0.0), json!(0.5)]),
            "without the largest, as W&B"
        );
        assert_eq!(values(json!({"min": 0.0, "max": 1})), None);
        assert_eq!(
            values(json!({"values": [1, 2], "probabilities": [0.5, 0.5]})),
            None
        );
    }

    proptest! {
        /// Any input is either rejected or can be drawn from without a panic, and yields the same
        /// values after a round trip through JSON.
        #[test]
        fn nothing_panics(at in 0..super::super::distribution_schema::KNOWN.len(), numbers in prop::array::uniform4(any::<f64>()), unit in 0.0..=1.0f64) {
            let (name, keys) = super::super::distribution_schema::KNOWN[at];
            let mut written = json!({"distribution": name});
            for (key, number) in keys.iter().zip(numbers) {
                written[key] = if key.ends_with('s') { json!([number, 1]) } else { json!(number) };
            }
            if let Ok(distribution) = read(&written) {
                let value = distribution.draw(unit);
                prop_assert!(value.is_number());
                prop_assert!(distribution.unit_range(&value).is_none_or(|[low, high]| 0.0 <= low && low <= high && high <= 1.0));
                let again: Distribution = serde_json::from_value(json!(distribution)).expect("read");
                prop_assert_eq!(again.draw(unit), value);
            }
        }
    }
}
