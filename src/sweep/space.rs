//! A search space → the configurations of trials: each parameter drawn by W&B's rule for its distribution.

use rand::Rng as _;

use crate::config::{Choice, Config, Distribution, Parameter};

/// The configuration of trial `trial`, counted from 1: every distribution replaced by a number. It depends on the seed,
/// the trial and each parameter's name alone.
pub fn draw(config: &Config, trial: usize) -> Config {
    let mut drawn = config.clone();
    let seed = config.seed;
    for (name, parameter) in parameters(&mut drawn) {
        if let Parameter::Drawn(distribution) = parameter {
            let unit: f64 = crate::seed::generator(seed, name, &[trial as i64]).random();
            *parameter = Parameter::Constant(quantile(distribution, unit));
        }
    }
    let parameters = &mut drawn.preprocessing.parameters;
    choose(&mut parameters.context, "context", seed, trial);
    choose(&mut parameters.vocabulary, "vocabulary", seed, trial);
    choose(&mut drawn.training.parameters.model, "model", seed, trial);
    drawn
}

fn choose<T: Clone>(choice: &mut Choice<T>, name: &str, seed: u64, trial: usize) {
    if let Choice::Drawn { values } = choice {
        let at = crate::seed::generator(seed, name, &[trial as i64]).random_range(0..values.len());
        *choice = Choice::Constant(values[at].clone());
    }
}

fn parameters(config: &mut Config) -> [(&'static str, &mut Parameter); 10] {
    let tensors = &mut config.preprocessing.parameters;
    let model = &mut config.training.parameters;
    [
        ("j", &mut tensors.j),
        ("m", &mut tensors.m),
        ("timeframe_len", &mut tensors.timeframe_len),
        ("lstm_layers", &mut model.lstm_layers),
        ("hidden_size", &mut model.hidden_size),
        ("learning_rate", &mut model.learning_rate),
        ("weight_decay", &mut model.weight_decay),
        ("clip_grad_norm", &mut model.clip_grad_norm),
        ("batch_size", &mut model.batch_size),
        ("pos_weight", &mut model.pos_weight),
    ]
}

/// The value below which a share `unit` of the distribution lies, as W&B's `sweeps` computes it; only that a quantised
/// value never falls below the least positive multiple of `q`, where W&B can give 0 (a batch of no samples).
fn quantile(distribution: &Distribution, unit: f64) -> f64 {
    match distribution {
        Distribution::Values { values } => values[((unit * values.len() as f64) as usize).min(values.len() - 1)],
        Distribution::IntUniform { min, max } => (min + (unit * (max - min + 1.0)).floor()).min(*max),
        Distribution::Uniform { min, max } => min + unit * (max - min),
        Distribution::LogUniformValues { min, max } => log_uniform(*min, *max, unit),
        Distribution::QLogUniformValues { min, max, q } => {
            ((log_uniform(*min, *max, unit) / q).round_ties_even() * q).max(*q)
        }
    }
}

fn log_uniform(min: f64, max: f64, unit: f64) -> f64 {
    (min.ln() + unit * (max.ln() - min.ln())).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Context;
    use std::collections::BTreeMap;

    #[test]
    fn quantiles_follow_the_rules() {
        let ints = Distribution::IntUniform { min: 10.0, max: 12.0 };
        assert_eq!([0.0, 0.34, 0.67, 1.0].map(|u| quantile(&ints, u)), [10.0, 11.0, 12.0, 12.0]);
        let q = Distribution::QLogUniformValues { min: 1.0, max: 256.0, q: 8.0 };
        assert_eq!([0.0, 0.5, 1.0].map(|u| quantile(&q, u)), [8.0, 16.0, 256.0]);
        let values = Distribution::Values { values: vec![1.0, 5.0] };
        assert_eq!([0.0, 0.49, 0.5, 1.0].map(|u| quantile(&values, u)), [1.0, 1.0, 5.0, 5.0]);
        assert!((quantile(&Distribution::LogUniformValues { min: 0.01, max: 1.0 }, 0.5) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn trials_differ_and_repeat() {
        let mut config = Config::load(None, &BTreeMap::new()).expect("defaults");
        config.training.parameters.learning_rate = Parameter::Drawn(Distribution::Uniform { min: 0.0, max: 1.0 });
        let rate = |trial| draw(&config, trial).training.parameters.learning_rate;
        assert_eq!(rate(1), rate(1));
        assert_ne!(rate(1), rate(2));
        assert!(matches!(rate(1), Parameter::Constant(_)), "what is drawn is a number");
        let both = [Context::Uniform, Context::Recent].to_vec();
        config.preprocessing.parameters.context = Choice::Drawn { values: both };
        let context = |trial| draw(&config, trial).preprocessing.parameters.context.constant("context").expect("drawn");
        let drawn: Vec<Context> = (0..20).map(context).collect();
        assert!(drawn.contains(&Context::Uniform) && drawn.contains(&Context::Recent));
        let fixed = |config: &Config| config.training.parameters.batch_size.clone();
        assert_eq!(fixed(&draw(&config, 1)), fixed(&config), "what is a number stays");
    }
}
