//! Dropout: what a training leaves out of a batch at random.

use rand::Rng as _;

use poolcast_base::seed;
use poolcast_models::TrainingRecipe;

/// What is left out of one batch. It depends on nothing but these numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchNoise {
    pub(crate) recipe: TrainingRecipe,
    /// Hidden units of a sample that may be left out.
    pub(crate) units: usize,
    pub(crate) seed: u64,
    /// Index of the network, epoch, and index of the batch in it.
    pub(crate) place: [i64; 3],
}

impl BatchNoise {
    /// Removes a share of the tokens from `mask`.
    pub(crate) fn drop_tokens(&self, mask: &mut [f32]) {
        let mut generator = seed::generator(self.seed, "token dropout", &self.place);
        let share = self.recipe.token_dropout as f32;
        for is_token in mask {
            if generator.random::<f32>() < share {
                *is_token = 0.0;
            }
        }
    }

    /// Returns the factors of the hidden units of `b` samples: 0 for one that is left out. Their
    /// mean is 1.
    pub(crate) fn kept_units(&self, b: usize) -> Vec<f32> {
        let mut generator = seed::generator(self.seed, "dropout", &self.place);
        let share = self.recipe.dropout as f32;
        let factor = 1.0 / (1.0 - share);
        let mut draw = || generator.random::<f32>() >= share;
        (0..b * self.units)
            .map(|_| if draw() { factor } else { 0.0 })
            .collect()
    }
}
