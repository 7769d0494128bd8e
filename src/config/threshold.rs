//! The setting `training.threshold`: the rule by which a probability becomes a prediction of
//! success.

use anyhow::{Result, ensure};
use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::range::check_range;
use poolcast_base::error::hinted;

/// The probability from which on success is predicted: a fixed number, or the best threshold on the
/// validation samples by some criterion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// A fixed probability.
    At(f64),
    /// The threshold with the highest accuracy.
    Accuracy,
    /// The threshold with the highest F-measure.
    FMeasure,
    /// The threshold with the lowest total cost of wrong predictions.
    Cost {
        /// Cost of releasing a job that then fails.
        wrong_release: f64,
        /// Cost of removing a job that would have succeeded.
        wrong_removal: f64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    wrong_release: f64,
    wrong_removal: f64,
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Threshold::At(probability) => serializer.serialize_f64(probability),
            Threshold::Accuracy => serializer.serialize_str("accuracy"),
            Threshold::FMeasure => serializer.serialize_str("f_measure"),
            Threshold::Cost {
                wrong_release,
                wrong_removal,
            } => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(
                    "cost",
                    &Cost {
                        wrong_release,
                        wrong_removal,
                    },
                )?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Threshold, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if let Some(cost) = value.get("cost") {
            let Cost {
                wrong_release,
                wrong_removal,
            } = Cost::deserialize(cost).map_err(D::Error::custom)?;
            return Ok(Threshold::Cost {
                wrong_release,
                wrong_removal,
            });
        }
        match (value.as_f64(), value.as_str()) {
            (Some(probability), _) => Ok(Threshold::At(probability)),
            (_, Some("accuracy")) => Ok(Threshold::Accuracy),
            (_, Some("f_measure")) => Ok(Threshold::FMeasure),
            _ => Err(D::Error::custom(format!(
                "expected a number, accuracy, f_measure or `{{cost: {{wrong_release: 1, wrong_removal: 5}}}}`, got {value}"
            ))),
        }
    }
}

impl Threshold {
    /// Rejects a number that is not a probability, and costs that are both 0.
    pub fn check(&self) -> Result<()> {
        match *self {
            Threshold::At(probability) => check_range("training.threshold", probability, 0.0..=1.0),
            Threshold::Accuracy | Threshold::FMeasure => Ok(()),
            Threshold::Cost {
                wrong_release,
                wrong_removal,
            } => {
                check_range(
                    "training.threshold.cost.wrong_release",
                    wrong_release,
                    0.0..=1e9,
                )?;
                check_range(
                    "training.threshold.cost.wrong_removal",
                    wrong_removal,
                    0.0..=1e9,
                )?;
                ensure!(
                    wrong_release + wrong_removal > 0.0,
                    hinted(
                        "`training.threshold.cost` is 0 for both",
                        "`poolcast config` explains every key"
                    )
                );
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_round_trip_through_json() {
        for text in [
            "0.25",
            "\"accuracy\"",
            "\"f_measure\"",
            r#"{"cost":{"wrong_release":1.0,"wrong_removal":5.0}}"#,
        ] {
            let threshold: Threshold = serde_json::from_str(text).expect("read");
            threshold.check().expect("sound");
            assert_eq!(serde_json::to_string(&threshold).expect("written"), text);
        }
        for text in [
            "\"precision\"",
            "null",
            "{}",
            r#"{"cost": {"wrong_release": 1}}"#,
            r#"{"cost": 5}"#,
        ] {
            assert!(serde_json::from_str::<Threshold>(text).is_err(), "{text}");
        }
        for threshold in [
            Threshold::At(1.5),
            Threshold::Cost {
                wrong_release: 0.0,
                wrong_removal: 0.0,
            },
        ] {
            assert!(threshold.check().is_err());
        }
    }
}
