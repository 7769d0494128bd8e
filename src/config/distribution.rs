//! A distribution in W&B's words → the value at each quantile, the quantile of each value, and the
//! values of a grid.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::distribution_form::{DistributionForm, RealDistribution};
use super::distribution_schema::read_distribution;

/// What a sweep draws a parameter from, as W&B's sweeps define it: any of their distributions, by
/// their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct Distribution {
    written: Map<String, Value>,
    form: DistributionForm,
    /// Of listed values the places of those that a grid takes: each value once.
    distinct: Vec<usize>,
}

/// The first and the last quantile that is drawn: at 0 and 1 some distributions have no value.
const DRAWN: [f64; 2] = [1e-12, 1.0 - 1e-12];

impl Distribution {
    /// The value below which a share `unit` of the distribution lies, as W&B's engine computes it.
    fn quantile(&self, unit: f64) -> Value {
        match &self.form {
            DistributionForm::Values {
                values,
                shares: None,
            } => values[place_of_quantile(unit, values.len() as f64) as usize].clone(),
            DistributionForm::Values {
                values,
                shares: Some(shares),
            } => {
                let at = shares.iter().position(|share| unit < *share);
                values[at.unwrap_or(values.len() - 1)].clone()
            }
            DistributionForm::IntUniform { min, max } => min
                .saturating_add(place_of_quantile(unit, (max - min) as f64 + 1.0) as i64)
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

    /// What a trial gets at `unit`, which is in 0..1: the quantile. Where W&B would round a
    /// logarithmic distribution down to 0, which is outside of it (a batch of no samples), this is
    /// the least positive multiple of `q`.
    pub fn draw(&self, unit: f64) -> Value {
        let value = self.quantile(unit.clamp(DRAWN[0], DRAWN[1]));
        match self.form {
            DistributionForm::Real {
                exp: true,
                q: Some(q),
                ..
            } if value.as_f64() == Some(0.0) => q.multiple(1.0),
            _ => value,
        }
    }

    /// The middle of the quantiles at which `value` is drawn; `None` for what is never drawn.
    pub fn unit(&self, value: &Value) -> Option<f64> {
        match &self.form {
            DistributionForm::Values { values, shares } => {
                let at = values.iter().position(|known| is_same(known, value))?;
                let share = |at: usize| {
                    shares
                        .as_ref()
                        .map_or(at as f64 / values.len() as f64, |shares| shares[at - 1])
                };
                Some((share(at + 1) + if at == 0 { 0.0 } else { share(at) }) / 2.0)
            }
            DistributionForm::IntUniform { min, max } => {
                let at = value.as_f64()? - *min as f64;
                let count = (max - min) as f64 + 1.0;
                (0.0..count).contains(&at).then_some((at + 0.5) / count)
            }
            DistributionForm::Real { base, exp, q } => {
                let share = |value: f64| base.share(if *exp { value.max(0.0).ln() } else { value });
                let (value, half) = (value.as_f64()?, q.map_or(0.0, |q| q.size / 2.0));
                Some((share(value - half) + share(value + half)) / 2.0)
            }
        }
    }

    /// How many values there are without order or distance; `None` where values are numbers on a
    /// scale.
    pub fn categories(&self) -> Option<usize> {
        match &self.form {
            DistributionForm::Values { values, .. } => Some(values.len()),
            _ => None,
        }
    }

    /// Whether its values are spread evenly by their logarithm, or normally.
    pub fn is_logarithmic(&self) -> bool {
        matches!(self.form, DistributionForm::Real { exp: true, .. })
    }

    /// How many values a grid takes; `None` where it cannot.
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

    /// The value of a grid at `at`, which is below its length. A quantised one counts from `min`
    /// on, `max` excluded.
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

    /// The values of which each kind that can be drawn has one: all of those listed, else a number.
    pub(super) fn examples(&self) -> Vec<Value> {
        match &self.form {
            DistributionForm::Values { values, .. } => values.clone(),
            _ => vec![self.quantile(0.5)],
        }
    }
}

/// The place of each value once: 3.0 is 3.
fn distinct_places(values: &[Value]) -> Vec<usize> {
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

/// Which of `count` equal parts the quantile `unit` falls into, a bound into the part below it.
fn place_of_quantile(unit: f64, count: f64) -> f64 {
    let part = (unit * count).ceil().clamp(1.0, count);
    if part > 1.0 && (part - 1.0) / count >= unit {
        part - 2.0
    } else {
        part - 1.0
    }
}

/// Equal, as W&B compares: 3.0 is 3.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| Some(a) == b.as_f64())
}

impl From<Distribution> for Map<String, Value> {
    fn from(distribution: Distribution) -> Map<String, Value> {
        distribution.written
    }
}

impl TryFrom<Map<String, Value>> for Distribution {
    type Error = String;

    fn try_from(written: Map<String, Value>) -> Result<Distribution, String> {
        let form = read_distribution(&written)?;
        let distinct = if let DistributionForm::Values { values, .. } = &form {
            distinct_places(values)
        } else {
            Vec::new()
        };
        let distribution = Distribution {
            written,
            form,
            distinct,
        };
        let is_number = |unit| {
            !matches!(&distribution.form, DistributionForm::Real { .. })
                || distribution.quantile(unit).is_number()
        };
        match DRAWN.into_iter().all(is_number) {
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

    /// What W&B's own engine answers.
    fn vectors() -> Value {
        serde_json::from_str(include_str!("../../tests/data/wandb/sweeps_vectors.json"))
            .expect("JSON")
    }

    fn read(written: &Value) -> Result<Distribution, String> {
        Distribution::try_from(written.as_object().expect("an object").clone())
    }

    /// The distribution `written`; where it is refused as deprecated, the one that the message
    /// names instead.
    fn read_as_told(written: &Value) -> Distribution {
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
    fn quantiles_are_those_of_wandb() {
        let vectors = vectors();
        let units: Vec<f64> = serde_json::from_value(vectors["x"].clone()).expect("numbers");
        let cases = vectors["ppf"].as_object().expect("cases");
        assert_eq!(cases.len(), 19);
        for (name, case) in cases {
            let distribution = read_as_told(&case["config"]);
            // The ends are not: there W&B gives values outside of the distribution, and none is
            // ever drawn.
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
    fn the_quantile_of_a_value_is_where_it_is_drawn() {
        for (name, case) in vectors()["ppf"].as_object().expect("cases") {
            let distribution = read_as_told(&case["config"]);
            for unit in [0.05, 0.3, 0.55, 0.8, 0.97] {
                let value = distribution.quantile(unit);
                let middle = distribution.unit(&value).expect("it is drawn");
                assert!(
                    is_near(&distribution.quantile(middle), &value),
                    "{name}: {value} at {unit} is not at {middle}"
                );
            }
        }
        let words = read(&json!({"values": ["a", true, null, 3]})).expect("read");
        assert_eq!(
            (words.unit(&json!("a")), words.unit(&json!(3.0))),
            (Some(0.125), Some(0.875))
        );
        assert_eq!(
            (words.unit(&json!("b")), words.quantile(0.6)),
            (None, Value::Null)
        );
    }

    #[test]
    fn a_batch_of_no_samples_is_never_drawn() {
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
    fn every_value_is_a_number() {
        assert!(
            read(&json!({"distribution": "log_normal", "mu": 1e9}))
                .expect_err("refused")
                .contains("too large")
        );
    }

    #[test]
    fn grids_hold_each_value_once() {
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
        /// Whatever is written, it is refused, or drawn from without a panic, to the same values
        /// after a copy.
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
                prop_assert!(distribution.unit(&value).is_none_or(|unit| (0.0..=1.0).contains(&unit)));
                let again: Distribution = serde_json::from_value(json!(distribution)).expect("read");
                prop_assert_eq!(again.draw(unit), value);
            }
        }
    }
}
