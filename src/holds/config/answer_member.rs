//! The models that may answer about held jobs, in the section `advice`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::network_settings::NetworkSettings;
use poolcast_config::{DEFAULT, yaml};
use poolcast_models::find_architecture;
use poolcast_pipelines::{HyperParameters, check_hyper_parameters};

/// Key of a member that a sweep has found.
const BEST_OF: &str = "best_of";

/// Maximum number of members. Each one learns at every moment of a rehearsal.
const MAX_MEMBERS: usize = 8;

/// A model that may answer about held jobs, written as one key with its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Value>", into = "BTreeMap<String, Value>")]
pub enum AnswerMember {
    /// A pipeline.
    Pipeline {
        /// Its name.
        name: String,
        /// Its hyper-parameters; the others have their defaults.
        parameters: HyperParameters,
    },
    /// A network.
    Network {
        /// The name of its architecture.
        name: String,
        /// Hyper-parameters of the network and of its samples; the others are those of the configuration.
        parameters: HyperParameters,
    },
    /// The best model of the sweep, or the model of the trial, in this directory.
    BestOf(PathBuf),
    /// A network with all of its settings. A configuration has none.
    Resolved(Box<NetworkSettings>),
}

impl AnswerMember {
    /// Returns the name of the pipeline or of the network, or the key of a directory.
    pub(crate) fn name(&self) -> &str {
        match self {
            AnswerMember::Pipeline { name, .. } | AnswerMember::Network { name, .. } => name,
            AnswerMember::BestOf(_) => BEST_OF,
            AnswerMember::Resolved(network) => network.name(),
        }
    }
}

impl TryFrom<BTreeMap<String, Value>> for AnswerMember {
    type Error = anyhow::Error;

    fn try_from(keys: BTreeMap<String, Value>) -> Result<AnswerMember> {
        ensure!(
            keys.len() == 1,
            "a member of the answers has one key: a pipeline, a network, or `{BEST_OF}`"
        );
        let first = keys.into_iter().next();
        let (name, value) = first.context("a member of the answers has a key")?;
        if name == BEST_OF {
            let dir = serde_json::from_value(value).context("`best_of` is a directory")?;
            return Ok(AnswerMember::BestOf(dir));
        }
        let parameters: Option<HyperParameters> = serde_json::from_value(value)
            .with_context(|| format!("`{name}` has hyper-parameters by name, or none: {{}}"))?;
        let parameters = parameters.unwrap_or_default();
        Ok(if find_architecture(&name).is_ok() {
            AnswerMember::Network { name, parameters }
        } else {
            AnswerMember::Pipeline { name, parameters }
        })
    }
}

impl From<AnswerMember> for BTreeMap<String, Value> {
    fn from(member: AnswerMember) -> BTreeMap<String, Value> {
        let (name, value) = match member {
            AnswerMember::Pipeline { name, parameters }
            | AnswerMember::Network { name, parameters } => (name, json!(parameters)),
            AnswerMember::BestOf(dir) => (BEST_OF.to_owned(), json!(dir)),
            AnswerMember::Resolved(network) => (network.name().to_owned(), json!(network)),
        };
        BTreeMap::from([(name, value)])
    }
}

/// Rejects lists without a member or with too many, and hyper-parameters that the pipeline does not have.
pub(super) fn check_members(members: &[AnswerMember]) -> Result<()> {
    ensure!(
        (1..=MAX_MEMBERS).contains(&members.len()),
        "`advice.members` has {} entries, and may have 1 to {MAX_MEMBERS}",
        members.len()
    );
    for member in members {
        if let AnswerMember::Pipeline { name, parameters } = member {
            check_hyper_parameters(name, parameters).context("cannot use `advice.members`")?;
        }
    }
    Ok(())
}

/// Returns the default of `advice.members`.
///
/// # Errors
/// Fails if the default configuration is not valid.
pub fn default_members() -> Result<Vec<AnswerMember>> {
    #[derive(Deserialize)]
    struct DefaultMembers {
        advice: Members,
    }
    #[derive(Deserialize)]
    struct Members {
        members: Vec<AnswerMember>,
    }
    Ok(yaml::read::<DefaultMembers>(DEFAULT)?.advice.members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::error::render;

    fn read(text: &str) -> Result<Vec<AnswerMember>> {
        let members: Vec<AnswerMember> = yaml::read(text)?;
        check_members(&members)?;
        Ok(members)
    }

    #[test]
    fn members_are_models_or_directories() {
        let members = read("[et: {n_estimators: 9}, ridge: , lstm: {m: 2}, best_of: out/a]");
        let members = members.expect("members");
        let none = HyperParameters::new();
        let ridge = AnswerMember::Pipeline {
            name: "ridge".to_owned(),
            parameters: none,
        };
        assert_eq!(members[1], ridge);
        assert!(matches!(members[2], AnswerMember::Network { .. }));
        assert_eq!(members[3], AnswerMember::BestOf("out/a".into()));

        let text = serde_json::to_string(&members).expect("written");
        let again: Vec<AnswerMember> = serde_json::from_str(&text).expect("read");
        assert_eq!(again, members);
        assert_eq!(default_members().expect("the default").len(), 1);
    }

    #[test]
    fn wrong_members_are_rejected_with_a_reason() {
        for (text, reason) in [
            ("[]", "may have 1 to 8"),
            (
                "[et: {}, et: {}, et: {}, et: {}, et: {}, et: {}, et: {}, et: {}, et: {}]",
                "has 9",
            ),
            ("[forest: {}]", "there is no pipeline `forest`"),
            ("[et: {trees: 9}]", "no hyper-parameter `trees`"),
            ("[et: {n_estimators: 0}]", "cannot be 0"),
            ("[et: 9]", "hyper-parameters by name"),
            ("[best_of: {}]", "is a directory"),
            ("[{et: {}, xgb: {}}]", "has one key"),
            ("[{}]", "has one key"),
            ("[et]", "expected"),
        ] {
            let text = render(&read(text).expect_err("is rejected"));
            assert!(text.contains(reason), "{text}");
        }
    }
}
