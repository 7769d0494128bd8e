//! Parses a distribution into its form, and rejects what W&B's schema rejects.

use serde_json::{Map, Value};

use super::distribution_form::{DistributionForm, Quantum, RealDistribution};
use super::nearest::nearest;

/// Known distributions, with the keys that each accepts.
pub(super) const KNOWN: [(&str, &[&str]); 15] = [
    ("constant", &["value"]),
    ("categorical", &["values"]),
    ("categorical_w_probabilities", &["values", "probabilities"]),
    ("int_uniform", &["min", "max"]),
    ("uniform", &["min", "max"]),
    ("q_uniform", &["min", "max", "q"]),
    ("log_uniform_values", &["min", "max"]),
    ("q_log_uniform_values", &["min", "max", "q"]),
    ("inv_log_uniform_values", &["min", "max"]),
    ("normal", &["mu", "sigma"]),
    ("q_normal", &["mu", "sigma", "q"]),
    ("log_normal", &["mu", "sigma"]),
    ("q_log_normal", &["mu", "sigma", "q"]),
    ("beta", &["a", "b"]),
    ("q_beta", &["a", "b", "q"]),
];

/// Names of distributions that W&B no longer accepts. Their bounds are exponents.
const DEPRECATED: [&str; 3] = ["log_uniform", "q_log_uniform", "inv_log_uniform"];

/// Parses the form of a distribution. Fails if W&B's schema rejects it.
pub(super) fn read_distribution(written: &Map<String, Value>) -> Result<DistributionForm, String> {
    DistributionKeys::from_written(written)?.distribution_form()
}

/// The keys of one distribution, as the user wrote them.
struct DistributionKeys<'a> {
    name: &'a str,
    written: &'a Map<String, Value>,
}

impl<'a> DistributionKeys<'a> {
    /// Finds the distribution that the keys describe.
    ///
    /// # Errors
    /// Fails for an unknown distribution, and for a key that the distribution does not accept.
    fn from_written(written: &'a Map<String, Value>) -> Result<DistributionKeys<'a>, String> {
        let name = match written.get("distribution") {
            None => guess_distribution(written),
            Some(name) => name
                .as_str()
                .ok_or_else(|| format!("`distribution` must be a name, got {name}"))?,
        };
        let (_, keys) = KNOWN
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| unknown_distribution(name, written))?;
        let foreign = written
            .keys()
            .find(|key| *key != "distribution" && !keys.contains(&key.as_str()));
        match foreign {
            Some(key) => Err(format!(
                "`{name}` takes {}, not `{key}`",
                keys.join(" and ")
            )),
            None => Ok(DistributionKeys { name, written }),
        }
    }

    fn distribution_form(&self) -> Result<DistributionForm, String> {
        match self.name {
            "constant" => {
                let value = self
                    .written
                    .get("value")
                    .ok_or("`constant` needs a value")?;
                Ok(DistributionForm::Values {
                    values: vec![value.clone()],
                    shares: None,
                })
            }
            "categorical" => Ok(DistributionForm::Values {
                values: self.list_at("values")?,
                shares: None,
            }),
            "categorical_w_probabilities" => self.categorical_with_probabilities(),
            "int_uniform" => self.integer_range(),
            name => match name.strip_prefix("q_") {
                Some(name) => self.real_form(name, Some(self.rounding_unit()?)),
                None => self.real_form(name, None),
            },
        }
    }

    fn real_form(&self, name: &str, q: Option<Quantum>) -> Result<DistributionForm, String> {
        let exp = name.contains("log_");
        if let Some(q) = &q
            && self.written.contains_key("min")
        {
            self.check_multiples(q)?;
        }
        let base = match name {
            "normal" | "log_normal" => self.normal_distribution()?,
            "beta" => self.beta_distribution()?,
            "log_uniform_values" | "inv_log_uniform_values" => self.log_uniform()?,
            _ => {
                let (min, max) = self.bounds()?;
                RealDistribution::Uniform { min, max }
            }
        };
        Ok(DistributionForm::Real { base, exp, q })
    }

    fn categorical_with_probabilities(&self) -> Result<DistributionForm, String> {
        let values = self.list_at("values")?;
        let given = self.list_at("probabilities")?;
        let probabilities: Vec<f64> = given
            .iter()
            .filter_map(Value::as_f64)
            .filter(|probability| *probability >= 0.0)
            .collect();
        if probabilities.len() != values.len() || given.len() != values.len() {
            return Err(format!(
                "`probabilities` needs a number of at least 0 for each of the {}",
                poolcast_base::output::counted(values.len(), "value")
            ));
        }
        let mut shares: Vec<f64> = probabilities
            .iter()
            .scan(0.0, |sum, probability| {
                *sum += probability;
                Some(*sum)
            })
            .collect();
        let sum = shares.last().copied().unwrap_or(0.0);
        if (sum - 1.0).abs() >= 1e-8 {
            return Err(format!("`probabilities` must sum to 1, got {sum}"));
        }
        // The sum can be a little more or less than 1, but no value is drawn beyond the quantile 1.
        for share in &mut shares {
            *share = share.min(1.0);
        }
        shares[values.len() - 1] = 1.0;
        Ok(DistributionForm::Values {
            values,
            shares: Some(shares),
        })
    }

    fn integer_range(&self) -> Result<DistributionForm, String> {
        let (min, max) = self.bounds()?;
        // Larger integers are not exact in double precision. To W&B's schema, 2.0 is an integer, too.
        let whole = |bound: f64| {
            let is_whole = bound.fract() == 0.0 && bound.abs() < (1u64 << 53) as f64;
            is_whole.then_some(bound as i64)
        };
        match (whole(min), whole(max)) {
            (Some(min), Some(max)) => Ok(DistributionForm::IntUniform { min, max }),
            _ => Err(format!(
                "`int_uniform` needs whole numbers as min and max, got {min} and {max}"
            )),
        }
    }

    fn log_uniform(&self) -> Result<RealDistribution, String> {
        let (min, max) = self.bounds()?;
        match min > 0.0 {
            true => Ok(RealDistribution::Uniform {
                min: min.ln(),
                max: max.ln(),
            }),
            false => Err(format!("`{}` needs min > 0, got {min}", self.name)),
        }
    }

    fn normal_distribution(&self) -> Result<RealDistribution, String> {
        let (mu, sigma) = (
            self.number_at("mu", Some(0.0))?,
            self.number_at("sigma", Some(1.0))?,
        );
        if sigma < 0.0 {
            Err(format!("`sigma` must be at least 0, got {sigma}"))
        } else {
            Ok(RealDistribution::Normal { mu, sigma })
        }
    }

    fn beta_distribution(&self) -> Result<RealDistribution, String> {
        let (a, b) = (
            self.number_at("a", Some(1.0))?,
            self.number_at("b", Some(1.0))?,
        );
        let is_known = [a, b].iter().all(|shape| (1e-3..=1e6).contains(shape));
        if is_known {
            Ok(RealDistribution::Beta { a, b })
        } else {
            Err(format!(
                "`a` and `b` must be between 0.001 and 1000000, got {a} and {b}"
            ))
        }
    }

    fn rounding_unit(&self) -> Result<Quantum, String> {
        let size = self.number_at("q", Some(1.0))?;
        let is_whole = self
            .written
            .get("q")
            .is_none_or(|q| q.is_i64() || q.is_u64());
        if size > 0.0 {
            Ok(Quantum { size, is_whole })
        } else {
            Err(format!("`q` must be above 0, got {size}"))
        }
    }

    /// Rejects bounds without a multiple of `q` between them, and bounds that are closer than `q`: all
    /// draws would be outside of them, or equal.
    fn check_multiples(&self, q: &Quantum) -> Result<(), String> {
        let (min, max) = self.bounds()?;
        if q.size > max - min {
            return Err(format!(
                "`q` is {}, and larger than the range from min to max, {min} to {max}",
                q.size
            ));
        }
        if (max / q.size).floor() * q.size >= min {
            return Ok(());
        }
        Err(format!(
            "`q` is {}, and none of its multiples is between min and max, {min} and {max}",
            q.size
        ))
    }

    fn bounds(&self) -> Result<(f64, f64), String> {
        let (min, max) = (self.number_at("min", None)?, self.number_at("max", None)?);
        if min < max {
            Ok((min, max))
        } else {
            Err(format!(
                "`{}` needs min < max, got {min} and {max}",
                self.name
            ))
        }
    }

    fn number_at(&self, key: &str, default: Option<f64>) -> Result<f64, String> {
        match self.written.get(key) {
            None => default.ok_or_else(|| format!("`{}` needs `{key}`", self.name)),
            Some(value) => value.as_f64().ok_or_else(|| {
                let is_quoted = value
                    .as_str()
                    .is_some_and(|text| text.parse::<f64>().is_ok());
                let hint = if is_quoted { "; remove the quotes" } else { "" };
                format!("`{key}` must be a number, got {value}{hint}")
            }),
        }
    }

    fn list_at(&self, key: &str) -> Result<Vec<Value>, String> {
        let list = self
            .written
            .get(key)
            .and_then(Value::as_array)
            .filter(|list| !list.is_empty());
        list.cloned()
            .ok_or_else(|| format!("`{}` needs a list of `{key}`", self.name))
    }
}

/// Returns the name of the intended distribution if the user names none: the first one in W&B's
/// schema that fits.
fn guess_distribution(written: &Map<String, Value>) -> &'static str {
    let is_whole = |key: &str| {
        written
            .get(key)
            .is_some_and(|bound| bound.is_i64() || bound.is_u64())
    };
    if written.contains_key("value") {
        "constant"
    } else if written.contains_key("probabilities") {
        "categorical_w_probabilities"
    } else if written.contains_key("values") {
        "categorical"
    } else if is_whole("min") && is_whole("max") {
        "int_uniform"
    } else {
        "uniform"
    }
}

fn unknown_distribution(name: &str, written: &Map<String, Value>) -> String {
    if DEPRECATED.contains(&name) {
        return deprecated_distribution(name, written);
    }
    let names = KNOWN.map(|(known, _)| known);
    let meant = nearest(name, names.into_iter());
    let nearest = meant.map_or(String::new(), |nearest| {
        format!(", did you mean `{nearest}`?")
    });
    format!(
        "unknown distribution `{name}`{nearest}; expected one of {}",
        names.join(", ")
    )
}

/// Returns an error that names the replacement: the same distribution with its bounds as values.
fn deprecated_distribution(name: &str, written: &Map<String, Value>) -> String {
    let bound = |key: &str| written.get(key).and_then(Value::as_f64).unwrap_or_default();
    let (min, max) = match name.starts_with("inv") {
        true => (-bound("max"), -bound("min")),
        false => (bound("min"), bound("max")),
    };
    let q = written
        .get("q")
        .map_or(String::new(), |q| format!(", q: {q}"));
    let (min, max) = (min.exp(), max.exp());
    let instead = format!("{{distribution: {name}_values, min: {min:?}, max: {max:?}{q}}}");
    format!("`{name}`, whose bounds are exponents, is no longer accepted; write `{instead}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn smallest_integer_is_rejected_without_overflow() {
        let written = json!({"distribution": "int_uniform", "min": i64::MIN, "max": 3});
        assert!(read_distribution(written.as_object().expect("an object")).is_err());
    }

    /// As in public sweep files: `min: 2.` and `max: 8.`.
    #[test]
    fn whole_numbers_may_have_a_point() {
        let read = |written: Value| read_distribution(written.as_object().expect("an object"));
        let named = read(json!({"distribution": "int_uniform", "min": 2.0, "max": 8.0}));
        assert_eq!(named, read(json!({"min": 2, "max": 8})));
        assert_ne!(named, read(json!({"min": 2.0, "max": 8.0})));
    }

    #[test]
    fn invalid_distributions_are_rejected() {
        let refusal = |written: Value| {
            read_distribution(written.as_object().expect("an object")).expect_err("must be refused")
        };
        insta::assert_snapshot!(
            [
                refusal(json!({"min": 2, "max": 1})),
                refusal(json!({"min": 1, "max": 2, "step": 1})),
                refusal(json!({"min": "1e-3", "max": 1.0})),
                refusal(json!({"distribution": "int_uniform", "min": 1, "max": 2.5})),
                refusal(json!({"distribution": "log_uniform_values", "min": 0, "max": 2.5})),
                refusal(json!({"distribution": "inv_log_uniform", "min": 0, "max": 1})),
                refusal(json!({"distribution": "q_log_uniform", "min": 0, "max": 1, "q": 2})),
                refusal(json!({"distribution": "q_unifrom", "min": 0, "max": 1})),
                refusal(json!({"distribution": "q_normal", "q": 0})),
                refusal(json!({"distribution": "normal", "sigma": -1})),
                refusal(json!({"distribution": "beta", "a": 0})),
                    refusal(json!({"distribution": "categorical", "values": [1, 2], "probabilities": [0.5, 0.5]})),
                refusal(json!({"values": [1, 2], "probabilities": [0.5, 0.4]})),
                refusal(json!({"values": [1, 2], "probabilities": [1]})),
                refusal(json!({"values": []})),
                refusal(json!({"distribution": 5})),
                refusal(json!({})),
            ]
            .join("\n"), @r#"
        `int_uniform` needs min < max, got 2 and 1
        `int_uniform` takes min and max, not `step`
        `min` must be a number, got "1e-3"; remove the quotes
        `int_uniform` needs whole numbers as min and max, got 1 and 2.5
        `log_uniform_values` needs min > 0, got 0
        `inv_log_uniform`, whose bounds are exponents, is no longer accepted; write `{distribution: inv_log_uniform_values, min: 0.36787944117144233, max: 1.0}`
        `q_log_uniform`, whose bounds are exponents, is no longer accepted; write `{distribution: q_log_uniform_values, min: 1.0, max: 2.718281828459045, q: 2}`
        unknown distribution `q_unifrom`, did you mean `q_uniform`?; expected one of constant, categorical, categorical_w_probabilities, int_uniform, uniform, q_uniform, log_uniform_values, q_log_uniform_values, inv_log_uniform_values, normal, q_normal, log_normal, q_log_normal, beta, q_beta
        `q` must be above 0, got 0
        `sigma` must be at least 0, got -1
        `a` and `b` must be between 0.001 and 1000000, got 0 and 1
        `categorical` takes values, not `probabilities`
        `probabilities` must sum to 1, got 0.9
        `probabilities` needs a number of at least 0 for each of the 2 values
        `categorical` needs a list of `values`
        `distribution` must be a name, got 5
        `uniform` needs `min`
        "#);
    }
}
