//! The key `when` of a distribution: the condition under which a search draws the parameter.

use serde_json::Value;

/// A condition on the value of another parameter. Where it does not hold, a trial does not have the
/// parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Name of the other parameter.
    pub parameter: String,
    /// Its values for which the condition holds.
    pub values: Vec<Value>,
}

impl Condition {
    /// Reads the condition from `written`: the name of a parameter, with a value or a list of values.
    ///
    /// # Errors
    /// Fails for anything else.
    pub(super) fn from_written(written: &Value) -> Result<Condition, String> {
        let mut keys = written.as_object().into_iter().flatten();
        let (Some((parameter, value)), None) = (keys.next(), keys.next()) else {
            return Err(
                "`when` needs one other parameter and its value, such as `when: {optimizer: sgd}`"
                    .to_owned(),
            );
        };
        let values = match value {
            Value::Array(values) => values.clone(),
            value => vec![value.clone()],
        };
        match values.is_empty() {
            true => Err(format!("`when` names no value of `{parameter}`")),
            false => Ok(Condition {
                parameter: parameter.clone(),
                values,
            }),
        }
    }

    /// Returns true if the condition holds where the other parameter is `value`.
    pub fn holds(&self, value: &Value) -> bool {
        self.values.iter().any(|known| is_same(known, value))
    }
}

/// Returns true if the values are equal in W&B's comparison: 3.0 equals 3.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| Some(a) == b.as_f64())
}
