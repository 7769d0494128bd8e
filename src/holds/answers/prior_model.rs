//! The model that answers for logs without an outcome: it has learned from the prior alone, and ships
//! with the program, because learning takes most of the time of such advice.
//!
//! `ci/build/prior` makes the file, together with the prior.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::answer_model::AnswerModel;
use super::prior::{COMPRESSION_LEVEL, Prior};
use crate::config::default_members;

/// The model of this program: a compressed JSON document.
const EMBEDDED: &[u8] = include_bytes!("prior_model.json.zst");

/// Seed of the model. Answers from the prior alone are the same under any seed and with any members of a configuration.
const SEED: u64 = 1;

/// A model that learned from a prior alone.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct PriorModel {
    /// The marks of the sites that contributed to the prior.
    origins: Vec<String>,
    model: AnswerModel,
}

impl PriorModel {
    /// Learns from `prior` alone.
    ///
    /// # Errors
    /// Fails if the prior has no rows.
    pub fn learn(prior: &Prior) -> Result<PriorModel> {
        let model = AnswerModel::learn_prior(prior, &default_members()?, SEED)?;
        Ok(PriorModel {
            origins: prior.origins(),
            model: model.context("the prior has no rows")?,
        })
    }

    /// Returns the model that ships with the program.
    ///
    /// # Errors
    /// Fails if it has other columns than this program computes.
    pub(super) fn embedded() -> Result<&'static PriorModel> {
        static MODEL: LazyLock<Result<PriorModel>> =
            LazyLock::new(|| PriorModel::from_bytes(EMBEDDED));
        MODEL
            .as_ref()
            .map_err(|error| anyhow!("cannot read the model of the program's prior: {error:#}"))
    }

    /// Returns the model for the logs of a site with the mark `origin`, unless the prior has rows of
    /// that site.
    pub(super) fn beside(&self, origin: &str) -> Option<&AnswerModel> {
        let is_own = self
            .origins
            .iter()
            .any(|own| !own.is_empty() && own == origin);
        (!is_own).then_some(&self.model)
    }

    /// Returns the content of the model's file. Equal rows give equal bytes.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let json = serde_json::to_vec(self)?;
        zstd::bulk::compress(&json, COMPRESSION_LEVEL).context("cannot compress the model")
    }

    fn from_bytes(bytes: &[u8]) -> Result<PriorModel> {
        let json = zstd::stream::decode_all(bytes)?;
        let found: PriorModel = serde_json::from_slice(&json)?;
        ensure!(
            found.model.has_current_columns(),
            "its columns are not those that this program computes; make it again with ci/build/prior"
        );
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_of_the_program_learned_from_its_prior() {
        let prior = Prior::embedded().expect("a prior");
        let learned = PriorModel::learn(prior).expect("learned");
        let embedded = PriorModel::embedded().expect("a model");
        assert_eq!(&learned, embedded, "run ci/build/prior");
        assert!(embedded.model.tells_causes_apart());
        assert!(EMBEDDED.len() < 1_000_000);
    }

    #[test]
    fn site_that_contributed_is_answered_by_no_model_of_its_own_rows() {
        let model = PriorModel::embedded().expect("a model").model.clone();
        let origins = vec![String::new(), "site".to_owned()];
        let found = PriorModel { origins, model };
        assert!(found.beside("other").is_some() && found.beside("").is_some());
        assert!(found.beside("site").is_none());
    }
}
