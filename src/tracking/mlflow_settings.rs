//! The environment and a configuration → where MLflow is, and the key for it.

use anyhow::{Context as _, Result};

use super::tracker_key::TrackerKey;
use super::wandb_settings::is_own_machine;
use crate::config::Config;
use crate::error::hinted;
use crate::escape;

/// Where runs go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MlflowSettings {
    /// The server's address, without a slash at its end.
    pub(super) base_url: String,
    /// Its host, and its port if that is named.
    pub(super) host: String,
    /// The experiment there.
    pub(super) experiment: String,
}

impl MlflowSettings {
    /// Those of `config`, before which counts what `variable` says of the environment.
    ///
    /// # Errors
    /// Fails where no server is named.
    pub(super) fn new(
        config: &Config,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<MlflowSettings> {
        let named = variable("MLFLOW_TRACKING_URI").context(hinted(
            "no MLflow server is named",
            "set MLFLOW_TRACKING_URI, such as https://mlflow.example.org",
        ))?;
        let base_url = named.trim_end_matches('/').to_owned();
        let host = host_of(&base_url).with_context(|| {
            hinted(
                format!("`{}` is no address of a server", escape::value(&named)),
                "set MLFLOW_TRACKING_URI to one of http or https without a user in it, as poolcast writes no mlruns",
            )
        })?;

        let experiment =
            variable("MLFLOW_EXPERIMENT_NAME").or_else(|| config.wandb.project.clone());
        Ok(MlflowSettings {
            base_url,
            host,
            experiment: experiment.unwrap_or_else(|| "poolcast".to_owned()),
        })
    }

    /// The address of what follows `/api/2.0/mlflow/` in it.
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}/api/2.0/mlflow/{path}", self.base_url)
    }

    /// What is to be said of a server that a key would be sent to in the open.
    pub(super) fn warning(&self, has_key: bool) -> Option<String> {
        let is_open = self.base_url.starts_with("http:") && !is_own_machine(&self.host);
        let shown = escape::value(&self.base_url);
        (has_key && is_open).then(|| format!("`{shown}` has no TLS: others can read the key"))
    }

    /// The key for the server, where the environment has one: a user with a password, else a token,
    /// as MLflow's own client takes them.
    ///
    /// # Errors
    /// Fails for a key that no header can hold.
    pub(super) fn key(variable: impl Fn(&str) -> Option<String>) -> Result<Option<TrackerKey>> {
        let user = variable("MLFLOW_TRACKING_USERNAME");
        if let Some((user, password)) = user.zip(variable("MLFLOW_TRACKING_PASSWORD")) {
            return TrackerKey::basic(&user, &password).map(Some);
        }
        let token = variable("MLFLOW_TRACKING_TOKEN");
        token.map(|token| TrackerKey::bearer(&token)).transpose()
    }
}

fn host_of(base_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(base_url).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    if !["http", "https"].contains(&url.scheme()) || !is_plain {
        return None;
    }
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<MlflowSettings> {
        let config = Config::load(None, &BTreeMap::new()).expect("a configuration");
        let known: BTreeMap<&str, &str> = variables.iter().copied().collect();
        MlflowSettings::new(&config, |name| Some((*known.get(name)?).to_owned()))
    }

    #[test]
    fn the_environment_names_server_and_experiment() {
        let found = settings(&[("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000/")]);
        let found = found.expect("settings");
        assert_eq!(found.base_url, "http://127.0.0.1:5000");
        assert_eq!(found.host, "127.0.0.1:5000");
        assert_eq!(found.experiment, "poolcast");
        assert_eq!(
            found.address("runs/get"),
            "http://127.0.0.1:5000/api/2.0/mlflow/runs/get"
        );

        let named = settings(&[
            ("MLFLOW_TRACKING_URI", "https://example.org/mlflow"),
            ("MLFLOW_EXPERIMENT_NAME", "held jobs"),
        ]);
        let named = named.expect("settings");
        assert_eq!(named.base_url, "https://example.org/mlflow");
        assert_eq!(
            (named.host.as_str(), named.experiment.as_str()),
            ("example.org", "held jobs")
        );
    }

    #[test]
    fn what_is_no_server_is_refused() {
        assert!(settings(&[]).is_err());
        for address in [
            "mlruns",
            "sqlite:///m.db",
            "file:///mlruns",
            "databricks",
            "http://a:b@c",
        ] {
            let error = settings(&[("MLFLOW_TRACKING_URI", address)]).expect_err(address);
            assert!(
                error.to_string().contains("no address of a server"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_user_with_a_password_comes_before_a_token() {
        let of = |names: &'static [&'static str]| {
            let variable = move |name: &str| names.contains(&name).then(|| "x".to_owned());
            let key = MlflowSettings::key(variable).expect("a key");
            key.map(|key| key.authorization().to_str().expect("a text").to_owned())
        };
        const ALL: [&str; 3] = [
            "MLFLOW_TRACKING_USERNAME",
            "MLFLOW_TRACKING_PASSWORD",
            "MLFLOW_TRACKING_TOKEN",
        ];
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["MLFLOW_TRACKING_USERNAME"]), None);
        assert_eq!(of(&["MLFLOW_TRACKING_TOKEN"]).as_deref(), Some("Bearer x"));
        assert!(of(&ALL).expect("a key").starts_with("Basic "));
    }
}
