//! The experiment trackers, and which of them a configuration enables.

use std::fmt;

use anyhow::{Result, ensure};

use super::configuration::Config;
use poolcast_base::error::hinted;

/// An experiment tracker to which runs are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracker {
    /// Weights & Biases.
    Wandb,
    /// An MLflow tracking server.
    Mlflow,
}

impl Tracker {
    /// Name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Tracker::Wandb => "wandb",
            Tracker::Mlflow => "mlflow",
        }
    }
}

impl fmt::Display for Tracker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Tracker::Wandb => "W&B",
            Tracker::Mlflow => "MLflow",
        })
    }
}

impl Config {
    /// Returns the trackers to which runs are sent while they are in progress.
    pub fn enabled_trackers(&self) -> Vec<Tracker> {
        let all = [
            // If W&B provides the points, the results must be sent back to it.
            (
                self.wandb.enable || self.wandb.sweep.id.is_some(),
                Tracker::Wandb,
            ),
            (self.mlflow.enable, Tracker::Mlflow),
        ];
        let enabled = all.into_iter().filter(|(is_enabled, _)| *is_enabled);
        enabled.map(|(_, tracker)| tracker).collect()
    }

    /// Rejects addresses of trackers that contain a user name or a password.
    pub(super) fn check_tracker_addresses(&self) -> Result<()> {
        let addresses = [
            ("wandb.base_url", &self.wandb.base_url),
            ("mlflow.tracking_uri", &self.mlflow.tracking_uri),
        ];
        for (key, address) in addresses {
            let has_user = address.as_ref().is_some_and(|text| text.contains('@'));
            ensure!(
                !has_user,
                hinted(
                    format!(
                        "`{key}` contains a user name; configurations are copied beside artefacts"
                    ),
                    "write only the server; put the key into the environment or ~/.netrc"
                )
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn enabled_trackers_are_listed() {
        let of = |flags: &[(&'static str, serde_json::Value)]| {
            let flags = BTreeMap::from_iter(flags.iter().cloned());
            let config = Config::load(None, &flags).expect("a configuration");
            config.enabled_trackers()
        };
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[("mlflow.enable", json!(true))]), [Tracker::Mlflow]);
        let both = of(&[
            ("mlflow.enable", json!(true)),
            ("wandb.enable", json!(true)),
        ]);
        assert_eq!(both, [Tracker::Wandb, Tracker::Mlflow]);
    }

    #[test]
    fn addresses_with_passwords_are_rejected_and_not_repeated() {
        for key in ["wandb.base_url", "mlflow.tracking_uri"] {
            let flags = BTreeMap::from([(key, json!("https://me:canary@example.org"))]);
            let error = format!("{:#}", Config::load(None, &flags).expect_err(key));
            assert!(error.contains(key) && !error.contains("canary"), "{error}");
        }
    }
}
