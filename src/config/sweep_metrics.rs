//! The metrics of a sweep: one, or a list of them.

use std::fmt;
use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::metric::Metric;

/// The metrics of a sweep. The first one ranks trials. With several, the trials that no other trial beats in
/// all of them are the Pareto front.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepMetrics {
    first: Metric,
    others: Vec<Metric>,
}

impl SweepMetrics {
    /// The metric that ranks trials.
    pub fn first(&self) -> &Metric {
        &self.first
    }

    /// The further metrics.
    pub fn others(&self) -> &[Metric] {
        &self.others
    }

    /// All metrics, the one that ranks trials first.
    pub fn all(&self) -> impl Iterator<Item = &Metric> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl Deref for SweepMetrics {
    type Target = Metric;

    fn deref(&self) -> &Metric {
        &self.first
    }
}

impl Serialize for SweepMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.others.is_empty() {
            true => self.first.serialize(serializer),
            false => serializer.collect_seq(self.all()),
        }
    }
}

/// Implemented by hand, so that an error names the key within the metric.
impl<'de> Deserialize<'de> for SweepMetrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SweepMetrics, D::Error> {
        struct MetricsVisitor;

        impl<'de> Visitor<'de> for MetricsVisitor {
            type Value = SweepMetrics;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a metric (`name`, `goal`) or a list of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SweepMetrics, A::Error> {
                Ok(SweepMetrics {
                    first: Metric::deserialize(MapAccessDeserializer::new(map))?,
                    others: Vec::new(),
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<SweepMetrics, A::Error> {
                let mut all = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                if all.is_empty() {
                    return Err(A::Error::custom(
                        "a sweep needs a metric, but the list is empty",
                    ));
                }
                Ok(SweepMetrics {
                    first: all.remove(0),
                    others: all,
                })
            }
        }

        deserializer.deserialize_any(MetricsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn one_metric_and_lists_round_trip() {
        let loss = json!({"name": "validation_loss", "goal": "minimize"});
        let area = json!({"name": "validation_roc_auc", "goal": "maximize"});
        let read = |written: &Value| serde_json::from_value::<SweepMetrics>(written.clone());
        for written in [loss.clone(), json!([loss, area])] {
            assert_eq!(json!(read(&written).expect("read")), written);
        }
        assert_eq!(json!(read(&json!([loss])).expect("read")), loss);
        assert!(read(&json!([])).is_err() && read(&json!("loss")).is_err());
    }
}
