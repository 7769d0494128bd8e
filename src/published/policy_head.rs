//! A policy head on a frozen base model: it turns the gaps that the base expects into a decision.
//!
//! It is learned by policy gradient (REINFORCE, Williams 1992), as published: an episode is a
//! window, and the reward is given at its end.

use std::ops::ControlFlow;

use anyhow::{Result, ensure};
use rand::Rng as _;
use serde::{Deserialize, Serialize};

use poolcast_base::stats::{gap_cost_h, mean, sigmoid};
use poolcast_models::AlignedFloats;
use poolcast_models::optim::{Adam, AdamSettings, TrainingStopped};

/// Number of epochs, with one training step each. It exceeds the published 60, because epochs are
/// cheap without a simulator.
const EPOCHS: usize = 600;

/// Episodes per epoch. This constant and the next three are the published settings.
const EPISODES_PER_EPOCH: usize = 32;
const LEARNING_RATE: f64 = 1e-2;
/// Discount of a reward per step.
const DISCOUNT: f64 = 0.99;
const ENTROPY_WEIGHT: f64 = 0.1;
/// Reward per hour of cost. A reward is a negative cost in minutes.
const REWARD_PER_COST_HOUR: f64 = -60.0;

/// The length of the parameter vector is rounded up to a multiple of this.
const LANES: usize = 8;

/// A linear layer from `k` expected gaps, in hours, to the logits of waiting and of submitting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyHead {
    /// Weights `[2, k]`.
    weights: Vec<f32>,
    /// Biases `[2]`.
    biases: Vec<f32>,
}

/// Input and outcome of a window, one row per decision time.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadEpisode {
    /// Gaps that the base expects after a submission, in hours, `[rows][k]`.
    pub expected_h: Vec<Vec<f64>>,
    /// Actual gaps after a submission, in hours, `[rows]`.
    pub gaps_h: Vec<f64>,
}

/// An epoch of the training of a head.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadEpoch {
    /// Mean cost of the drawn decisions, in hours.
    pub drawn_cost_h: f64,
    /// Mean cost of the decisions of the head after the epoch, in hours.
    pub cost_h: f64,
    /// True if no earlier epoch had a cost as low.
    pub is_best: bool,
}

/// A decision that was drawn at one decision time.
struct HeadDecision<'a> {
    expected_h: &'a [f64],
    /// Probability of submitting.
    submits: f64,
    has_submitted: bool,
    /// Reward of the episode, discounted to this decision, above the mean reward.
    advantage: f64,
}

impl PolicyHead {
    /// Creates a head of `k` inputs that gives both actions the same probability.
    fn new(k: usize) -> PolicyHead {
        PolicyHead {
            weights: vec![0.0; 2 * k],
            biases: vec![0.0; 2],
        }
    }

    /// Returns the number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.weights.len() + self.biases.len()
    }

    /// Checks that the head fits on a base with `k` outputs.
    ///
    /// # Errors
    /// Fails if the number of weights or biases is wrong.
    pub fn check(&self, k: usize) -> Result<()> {
        ensure!(
            self.weights.len() == 2 * k && self.biases.len() == 2,
            "the head has {} weights for {k} inputs",
            self.weights.len()
        );
        Ok(())
    }

    /// Returns true if submitting is the more probable action for these expected gaps, in hours.
    pub fn submits(&self, expected_h: &[f64]) -> bool {
        self.submission_probability(expected_h) > 0.5
    }

    fn submission_probability(&self, expected_h: &[f64]) -> f64 {
        let k = expected_h.len();
        let logit = |action: usize| {
            let weights = &self.weights[action * k..][..k];
            let products = weights.iter().zip(expected_h);
            let sum: f64 = products.map(|(weight, x)| f64::from(*weight) * x).sum();
            sum + f64::from(self.biases[action])
        };
        sigmoid(logit(1) - logit(0))
    }

    /// Returns the mean cost of `episodes`, in hours.
    fn cost_h(&self, episodes: &[HeadEpisode], cost_ratio: f64) -> f64 {
        let mut costs_h = Vec::with_capacity(episodes.len());
        for episode in episodes {
            let last = episode.gaps_h.len() - 1;
            let chosen = (0..last).find(|row| self.submits(&episode.expected_h[*row]));
            costs_h.push(gap_cost_h(
                cost_ratio,
                episode.gaps_h[chosen.unwrap_or(last)],
            ));
        }
        mean(&costs_h)
    }

    /// Plays an episode with random actions. Returns the decisions and the reward.
    fn play<'a>(
        &self,
        episode: &'a HeadEpisode,
        cost_ratio: f64,
        random: &mut impl rand::Rng,
    ) -> (Vec<HeadDecision<'a>>, f64) {
        let last = episode.gaps_h.len() - 1;
        let mut decisions = Vec::new();
        let mut chosen = last;
        for (row, expected_h) in episode.expected_h[..last].iter().enumerate() {
            let submits = self.submission_probability(expected_h);
            let has_submitted = random.random::<f64>() < submits;
            decisions.push(HeadDecision {
                expected_h,
                submits,
                has_submitted,
                advantage: 0.0,
            });
            // A submission ends the episode. Without one, the last row counts.
            if has_submitted {
                chosen = row;
                break;
            }
        }
        let reward = REWARD_PER_COST_HOUR * gap_cost_h(cost_ratio, episode.gaps_h[chosen]);
        (decisions, reward)
    }

    /// Updates the parameters by the gradient of the loss over `decisions`.
    fn step(&mut self, decisions: &[HeadDecision<'_>], adam: &mut Adam) {
        let k = self.weights.len() / 2;
        let mut gradient = AlignedFloats::zeros(adam.first.len());
        let share = 1.0 / decisions.len().max(1) as f64;
        for decision in decisions {
            let slope = (share * decision.slope()) as f32;
            for (place, x) in decision.expected_h.iter().enumerate() {
                gradient[place] -= slope * *x as f32;
                gradient[k + place] += slope * *x as f32;
            }
            gradient[2 * k] -= slope;
            gradient[2 * k + 1] += slope;
        }

        // The optimiser needs all parameters in one padded vector.
        let mut parameters = AlignedFloats::zeros(adam.first.len());
        parameters[..2 * k].copy_from_slice(&self.weights);
        parameters[2 * k..2 * k + 2].copy_from_slice(&self.biases);
        let settings = AdamSettings {
            learning_rate: LEARNING_RATE,
            weight_decay: 0.0,
            clip_grad_norm: 0.0,
        };
        adam.step(&mut parameters, &gradient, &settings);
        self.weights.copy_from_slice(&parameters[..2 * k]);
        self.biases.copy_from_slice(&parameters[2 * k..2 * k + 2]);
    }
}

impl HeadDecision<'_> {
    /// Returns the derivative of the loss by the logit of submitting. The derivative by the logit
    /// of waiting is its negative.
    fn slope(&self) -> f64 {
        let taken = if self.has_submitted { 1.0 } else { 0.0 };
        let reward_slope = -self.advantage * (taken - self.submits);
        // The derivative of a coin's entropy by its logit is -p (1 - p) ln(p / (1 - p)).
        let spread = self.submits * (1.0 - self.submits);
        let odds = self.submits.max(1e-12) / (1.0 - self.submits).max(1e-12);
        reward_slope + ENTROPY_WEIGHT * spread * odds.ln()
    }
}

/// Learns a head from `episodes`. Keeps the epoch whose decisions cost least on the same episodes.
/// `listener` receives the number of each epoch, from 1, and the number of all.
///
/// # Errors
/// Fails with [`TrainingStopped`] when `listener` stops the training.
pub fn learn_head(
    episodes: &[HeadEpisode],
    cost_ratio: f64,
    seed: u64,
    listener: &dyn Fn(usize, usize) -> ControlFlow<()>,
) -> Result<(PolicyHead, Vec<HeadEpoch>)> {
    let k = episodes
        .first()
        .map_or(0, |episode| episode.expected_h[0].len());
    let mut head = PolicyHead::new(k);
    let mut adam = Adam::new(head.parameter_count().next_multiple_of(LANES));
    let mut best = head.clone();
    let mut best_cost_h = f64::INFINITY;
    let mut history = Vec::with_capacity(EPOCHS);

    for number in 1..=EPOCHS {
        let reward = learn_epoch(&mut head, &mut adam, episodes, cost_ratio, (seed, number));
        let cost_h = head.cost_h(episodes, cost_ratio);
        let is_best = cost_h < best_cost_h;
        if is_best {
            best_cost_h = cost_h;
            best = head.clone();
        }
        history.push(HeadEpoch {
            drawn_cost_h: reward / REWARD_PER_COST_HOUR,
            cost_h,
            is_best,
        });
        if listener(number, EPOCHS).is_break() {
            let stopped = TrainingStopped {
                epoch: number,
                batch: 1,
                batches: 1,
            };
            return Err(stopped.into());
        }
    }
    Ok((best, history))
}

/// Learns from a random draw of episodes, which follows from seed and epoch. Returns their mean
/// reward.
fn learn_epoch(
    head: &mut PolicyHead,
    adam: &mut Adam,
    episodes: &[HeadEpisode],
    cost_ratio: f64,
    (seed, epoch): (u64, usize),
) -> f64 {
    let mut random = poolcast_base::seed::generator(seed, "policy gradient", &[epoch as i64]);
    let mut played = Vec::with_capacity(EPISODES_PER_EPOCH);
    for _ in 0..EPISODES_PER_EPOCH {
        let episode = &episodes[random.random_range(0..episodes.len())];
        played.push(head.play(episode, cost_ratio, &mut random));
    }

    let rewards: Vec<f64> = played.iter().map(|(_, reward)| *reward).collect();
    // The mean reward is the baseline: it reduces the variance of the gradient.
    let usual = mean(&rewards);
    let mut decisions = Vec::new();
    for (episode_decisions, reward) in played {
        let mut advantage = reward - usual;
        // The reward is given at the end: each step before it is discounted once more.
        for decision in episode_decisions.into_iter().rev() {
            decisions.push(HeadDecision {
                advantage,
                ..decision
            });
            advantage *= DISCOUNT;
        }
    }
    head.step(&decisions, adam);
    usual
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected gaps are 5 hours too small, which a head of a bias and a weight can correct.
    fn episodes() -> Vec<HeadEpisode> {
        let mut random = poolcast_base::seed::generator(2, "episodes", &[]);
        let mut episodes = Vec::new();
        for _ in 0..60 {
            let wait_h: f64 = random.random_range(1.0..8.0);
            let mut gaps_h: Vec<f64> = (0..12).map(|row| wait_h - (22 - 2 * row) as f64).collect();
            let expected_h = gaps_h.iter().map(|gap_h| vec![gap_h - 5.0]).collect();
            gaps_h[11] = wait_h;
            episodes.push(HeadEpisode { expected_h, gaps_h });
        }
        episodes
    }

    #[test]
    fn heads_correct_the_bias_of_their_base() {
        let episodes = episodes();
        let never_stop = |_: usize, _: usize| ControlFlow::Continue(());
        let (head, history) = learn_head(&episodes, 1.0, 1, &never_stop).expect("a head");
        assert_eq!(head.parameter_count(), 4);
        let base = PolicyHead {
            weights: vec![0.0, 1.0],
            biases: vec![0.0, 0.0],
        };
        let [learned_h, base_h] = [&head, &base].map(|head| head.cost_h(&episodes, 1.0));
        assert!(learned_h < 0.7 * base_h, "{learned_h} instead of {base_h}");
        let least = history.iter().map(|epoch| epoch.cost_h);
        assert_eq!(least.fold(f64::INFINITY, f64::min), learned_h);

        let again = learn_head(&episodes, 1.0, 1, &never_stop).expect("a head");
        assert_eq!(again.0, head);
        let stop = |_: usize, _: usize| ControlFlow::Break(());
        let error = learn_head(&episodes, 1.0, 1, &stop).expect_err("stopped");
        assert!(error.downcast_ref::<TrainingStopped>().is_some());
    }

    /// The published sizes: a head on a transformer, and a head on the ten networks of a mixture.
    #[test]
    fn heads_have_the_published_number_of_parameters() {
        assert_eq!(
            [1, 10].map(|k| PolicyHead::new(k).parameter_count()),
            [4, 22]
        );
        assert!(PolicyHead::new(3).check(2).is_err());
    }

    #[test]
    fn slopes_are_derivatives() {
        let loss = |logit: f64, has_submitted: bool, advantage: f64| {
            let p = sigmoid(logit);
            let taken = if has_submitted { p } else { 1.0 - p };
            let entropy = -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
            -advantage * taken.ln() - ENTROPY_WEIGHT * entropy
        };
        for (logit, has_submitted, advantage) in [(0.3f64, true, 2.0), (-1.2, false, -3.0)] {
            let decision = HeadDecision {
                expected_h: &[],
                submits: sigmoid(logit),
                has_submitted,
                advantage,
            };
            let [above, below] = [1e-6, -1e-6].map(|by| loss(logit + by, has_submitted, advantage));
            let slope = (above - below) / 2e-6;
            assert!((slope - decision.slope()).abs() < 1e-6, "{slope}");
        }
    }
}
