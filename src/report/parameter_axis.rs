//! Axes of hyper-parameters. The scale of an axis follows the distribution that the sweep draws
//! from.

use std::collections::BTreeMap;

use serde_json::Value;

use super::inputs::ReportInputs;
use super::reported_trial::ReportedTrial;
use super::scale::Scale;
use super::words;
use poolcast_config::{Distribution, Parameter};
use poolcast_sweep::config::Config;
use poolcast_sweep::search::SearchSpace;
use poolcast_sweep::{ParameterNames, parameters_by_kind, plain_value};

/// Maximum number of listed values that are shown as words. More words share "others"; more numbers
/// get a numeric scale.
const MAX_WORDS: usize = 12;

/// A hyper-parameter that differs between trials.
#[derive(Debug, Clone)]
pub(super) struct ParameterAxis {
    /// Its name.
    pub(super) name: String,
    /// Layout of its values.
    pub(super) scale: Scale,
    /// The value of each trial on the scale; `None` for a trial without this hyper-parameter.
    pub(super) values: Vec<Option<f64>>,
}

impl ParameterAxis {
    /// The position of each trial, from 0 to 1; NaN for a trial without a value.
    pub(super) fn positions(&self) -> Vec<f64> {
        let position = |value: &Option<f64>| {
            let known = value.and_then(|value| self.scale.position(value));
            known.unwrap_or(f64::NAN)
        };
        self.values.iter().map(position).collect()
    }
}

/// Makes the axes of the hyper-parameters that differ between `trials`, by name. The kind
/// comes first if it differs.
pub(super) fn parameter_axes(
    inputs: &ReportInputs,
    trials: &[&ReportedTrial],
) -> Vec<ParameterAxis> {
    let distributions = drawn_distributions(&inputs.config, &inputs.parameter_names);
    let mut names: Vec<&str> = Vec::new();
    for trial in trials {
        names.extend(trial.parameters.keys().map(String::as_str));
    }
    names.sort_unstable();
    names.dedup();

    let mut axes = Vec::new();
    // Trials of pipelines have no hyper-parameter `model`, so the kind takes its place.
    if !inputs.is_over_waits() {
        let kind = |trial: &&ReportedTrial| Some(Value::from(trial.kind.clone()));
        let kinds = trials.iter().map(kind).collect();
        axes.extend(parameter_axis("pipeline", kinds, None));
    }
    for name in names {
        let value = |trial: &&ReportedTrial| trial.parameters.get(name).cloned();
        let values = trials.iter().map(value).collect();
        axes.extend(parameter_axis(name, values, distributions.get(name)));
    }
    axes
}

/// Returns the distributions from which the sweep draws its hyper-parameters, by their `names`.
fn drawn_distributions(config: &Config, names: &ParameterNames) -> BTreeMap<String, Distribution> {
    let mut drawn = BTreeMap::new();
    for (name, distribution) in SearchSpace::from_config(config).parameters() {
        drawn.insert(name.clone(), distribution.clone());
    }
    for (kind, name, parameter) in parameters_by_kind(config) {
        if let Parameter::Drawn(distribution) = parameter {
            drawn.insert(names.name(kind, &name), distribution.clone());
        }
    }
    drawn
}

/// Makes the axis of `values`; `None` if all values are equal.
fn parameter_axis(
    name: &str,
    values: Vec<Option<Value>>,
    distribution: Option<&Distribution>,
) -> Option<ParameterAxis> {
    let mut distinct: Vec<Value> = Vec::new();
    for value in values.iter().flatten() {
        // One more distinct value than the maximum is enough to choose a numeric scale.
        if distinct.len() <= MAX_WORDS && !distinct.contains(value) {
            distinct.push(value.clone());
        }
    }
    if distinct.len() < 2 {
        return None;
    }

    let is_listed = distribution.is_some_and(|known| known.categories().is_some());
    let has_words = values.iter().flatten().any(|value| !value.is_number());
    let (scale, values) = if has_words || is_listed && distinct.len() <= MAX_WORDS {
        word_axis(&values)
    } else {
        let is_logarithmic = distribution.is_some_and(Distribution::is_logarithmic);
        number_axis(&values, is_logarithmic)
    };
    Some(ParameterAxis {
        name: words::shown(name),
        scale,
        values,
    })
}

/// Makes an axis of words: numbers in ascending order, then words alphabetically. The rarest ones
/// beyond the maximum share "others".
fn word_axis(values: &[Option<Value>]) -> (Scale, Vec<Option<f64>>) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values.iter().flatten() {
        *counts.entry(plain_value(value)).or_default() += 1;
    }
    let mut names: Vec<(String, usize)> = counts.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let has_others = names.len() > MAX_WORDS;
    if has_others {
        names.truncate(MAX_WORDS - 1);
    }

    let mut names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    names.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        (a_number, b_number) => b_number.is_ok().cmp(&a_number.is_ok()).then(a.cmp(b)),
    });

    let mut indices = Vec::new();
    for value in values {
        indices.push(value.as_ref().map(|value| {
            let name = plain_value(value);
            let index = names.iter().position(|known| *known == name);
            index.unwrap_or(names.len()) as f64
        }));
    }
    let mut shown: Vec<String> = names.iter().map(|name| words::shown(name)).collect();
    if has_others {
        shown.push("others".to_owned());
    }
    (Scale::Words(shown), indices)
}

/// Makes a numeric axis. It is logarithmic if the distribution is and all values are positive.
fn number_axis(values: &[Option<Value>], is_logarithmic: bool) -> (Scale, Vec<Option<f64>>) {
    let mut numbers = Vec::new();
    for value in values {
        let number = value.as_ref().and_then(Value::as_f64);
        numbers.push(number.filter(|number| number.is_finite()));
    }
    let known = || numbers.iter().copied().flatten();
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let scale = if is_logarithmic && low > 0.0 && high > low {
        Scale::Logarithmic { low, high }
    } else {
        Scale::around(known())
    };
    (scale, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn axis(values: &Value, distribution: Option<Value>) -> Option<ParameterAxis> {
        let listed = values.as_array().expect("values").clone();
        let values = listed
            .into_iter()
            .map(|value| Some(value).filter(|value| !value.is_null()));
        let read = distribution.map(|written| serde_json::from_value(written).expect("read"));
        parameter_axis("name", values.collect(), read.as_ref())
    }

    #[test]
    fn scales_follow_the_search_space() {
        let drawn = json!({"distribution": "log_uniform_values", "min": 1e-4, "max": 0.1});
        let rates = axis(&json!([0.0001, 0.1, null, 0.01]), Some(drawn)).expect("they differ");
        assert!(matches!(rates.scale, Scale::Logarithmic { .. }));
        assert!((rates.positions()[3] - 2.0 / 3.0).abs() < 1e-9);
        assert!(rates.positions()[2].is_nan());

        let listed = json!({"values": [64, 8, 16]});
        let sizes = axis(&json!([64, 8, 16, 8]), Some(listed)).expect("they differ");
        let names = ["8", "16", "64"].map(str::to_owned).to_vec();
        assert_eq!(sizes.scale, Scale::Words(names));
        assert_eq!(sizes.values, [Some(2.0), Some(0.0), Some(1.0), Some(0.0)]);

        let plain = axis(&json!([1.5, 3.0]), None).expect("they differ");
        assert!(matches!(plain.scale, Scale::Linear { .. }));
        assert!(axis(&json!([2, 2, null]), None).is_none(), "all are equal");
    }

    #[test]
    fn rare_words_share_others_and_are_escaped() {
        let many: Vec<String> = (0..100)
            .map(|word| format!("word-{word}\u{202e}"))
            .collect();
        let axis = axis(&json!(many), None).expect("they differ");
        let Scale::Words(names) = &axis.scale else {
            panic!("the scale has no words")
        };
        assert_eq!(names.len(), MAX_WORDS);
        assert_eq!(names[MAX_WORDS - 1], "others");
        assert!(names.iter().all(|name| !name.contains('\u{202e}')));
        assert!(
            axis.positions()
                .iter()
                .all(|position| (0.0..=1.0).contains(position))
        );
    }
}
