//! Server, experiment and key for MLflow, from the environment, netrc and the configuration.

use anyhow::{Context as _, Result, ensure};

use crate::server::{
    TrackerKey, host_of, loose_mode_warning, missing_tls_warning, netrc_login, netrc_path,
    untrusted_server, without_port,
};
use poolcast_base::error::hinted;
use poolcast_base::escape;
use poolcast_sweep::config::{Config, Tracker};

/// Destination of the runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MlflowSettings {
    /// The server's URL, without a trailing slash.
    pub(super) base_url: String,
    /// The server's host, with its port if that is named.
    pub(super) host: String,
    /// True if the configuration alone names the server. It may come from a stranger, so the server
    /// gets only the key that netrc has for its host.
    pub(super) is_untrusted: bool,
    /// Name of the experiment on the server.
    pub(super) experiment: String,
    /// Warnings about the settings, for the user.
    pub(super) warnings: Vec<String>,
}

impl MlflowSettings {
    /// Reads the settings from `config`. Environment variables, which `variable` looks up, take
    /// precedence, and so does `server`, the URL of the command line.
    ///
    /// # Errors
    /// Fails if no server is named, or if its URL is not `http` or `https` or contains a user.
    pub(crate) fn new(
        config: &Config,
        server: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<MlflowSettings> {
        let named = server.map(str::to_owned);
        let named = named.or_else(|| variable("MLFLOW_TRACKING_URI"));
        let is_untrusted = named.is_none();
        let named = named.or_else(|| config.mlflow.tracking_uri.clone());
        let named = named.context(hinted(
            "no MLflow server is configured",
            "set MLFLOW_TRACKING_URI or `mlflow.tracking_uri`, for example to https://mlflow.example.org",
        ))?;
        let base_url = named.trim_end_matches('/').to_owned();
        let host = host_of(&base_url).with_context(|| {
            hinted(
                format!("`{}` is not a server URL", escape::value(&named)),
                "set MLFLOW_TRACKING_URI to an http or https URL without a user; poolcast does not write to mlruns",
            )
        })?;

        let experiment = variable("MLFLOW_EXPERIMENT_NAME")
            .or_else(|| config.mlflow.experiment.clone())
            .or_else(|| config.wandb.project.clone());
        Ok(MlflowSettings {
            base_url,
            host,
            is_untrusted,
            experiment: experiment.unwrap_or_else(|| "poolcast".to_owned()),
            warnings: Vec::new(),
        })
    }

    /// Returns the URL of the REST call `path`, which follows `/api/2.0/mlflow/`.
    pub(super) fn address(&self, path: &str) -> String {
        format!("{}/api/2.0/mlflow/{path}", self.base_url)
    }

    /// Returns the URL of the file `name` of a run whose files are at `path`.
    pub(super) fn file_address(&self, path: &str, name: &str) -> String {
        let base_url = &self.base_url;
        format!("{base_url}/api/2.0/mlflow-artifacts/artifacts/{path}/{name}")
    }

    /// Finds the key for the server like MLflow's own client: a user with a password or a token in
    /// the environment, else the login in netrc. Returns `None` if there is no key. A server that
    /// the configuration alone names gets only the key that netrc has for its host.
    ///
    /// # Errors
    /// Fails for a key that no header can hold, and if there are only keys that are not for this
    /// server.
    pub(crate) fn key(
        &mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TrackerKey>> {
        let key = self.find_key(variable)?;
        if key.is_some() {
            self.warnings
                .extend(missing_tls_warning(&self.base_url, &self.host));
        }
        Ok(key)
    }

    fn find_key(
        &mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TrackerKey>> {
        let of_environment = environment_key(&variable)?;
        let path = netrc_path(&variable);
        // MLflow's Python client looks a host up without its port.
        let hosts = [self.host.as_str(), without_port(&self.host)];
        let of_netrc = path.as_ref().and_then(|path| netrc_login(path, &hosts));
        if self.is_untrusted {
            let has_default = of_netrc.as_ref().is_some_and(|found| found.is_default);
            let is_for_host = of_netrc.is_some() && !has_default;
            ensure!(
                is_for_host || (of_environment.is_none() && !has_default),
                untrusted_server(Tracker::Mlflow, &self.host)
            );
        } else if of_environment.is_some() {
            return Ok(of_environment);
        }

        let Some(found) = of_netrc else {
            return Ok(None);
        };
        self.warnings
            .extend(path.as_deref().and_then(loose_mode_warning));
        TrackerKey::basic(&found.login.unwrap_or_default(), &found.password).map(Some)
    }
}

/// Reads the key in the environment: a user with a password, else a token.
fn environment_key(variable: impl Fn(&str) -> Option<String>) -> Result<Option<TrackerKey>> {
    let user = variable("MLFLOW_TRACKING_USERNAME");
    if let Some((user, password)) = user.zip(variable("MLFLOW_TRACKING_PASSWORD")) {
        return TrackerKey::basic(&user, &password).map(Some);
    }
    let token = variable("MLFLOW_TRACKING_TOKEN");
    token.map(|token| TrackerKey::bearer(&token)).transpose()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<MlflowSettings> {
        let config = Config::load(None, &BTreeMap::new()).expect("a configuration");
        let known: BTreeMap<&str, &str> = variables.iter().copied().collect();
        MlflowSettings::new(&config, None, |name| Some((*known.get(name)?).to_owned()))
    }

    #[test]
    fn environment_selects_server_and_experiment() {
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
    fn invalid_server_addresses_are_rejected() {
        assert!(settings(&[]).is_err());
        for address in [
            "mlruns",
            "sqlite:///m.db",
            "file:///mlruns",
            "databricks",
            "http://a:b@c",
        ] {
            let error = settings(&[("MLFLOW_TRACKING_URI", address)]).expect_err(address);
            assert!(error.to_string().contains("is not a server URL"), "{error}");
        }
    }

    #[test]
    fn password_takes_precedence_over_token() {
        let of = |names: &'static [&'static str]| {
            let variable = move |name: &str| names.contains(&name).then(|| "x".to_owned());
            let mut settings =
                settings(&[("MLFLOW_TRACKING_URI", "http://a.org")]).expect("settings");
            let key = settings.key(variable).expect("a key");
            assert_eq!(settings.warnings.len(), usize::from(key.is_some()));
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

    #[test]
    fn netrc_login_matches_host_with_or_without_port() {
        let dir = tempfile::tempdir().expect("a directory");
        let netrc = dir.path().join("netrc");
        fs_err::write(&netrc, "machine a.org login me password of-netrc").expect("written");
        let of_netrc = |name: &str| {
            let path = netrc.to_string_lossy().into_owned();
            (name == "NETRC").then_some(path)
        };
        let key = |address: &str| {
            let mut found = settings(&[("MLFLOW_TRACKING_URI", address)]).expect("settings");
            let key = found.key(of_netrc).expect("a key");
            key.map(|key| key.authorization().to_str().expect("a text").to_owned())
        };
        let expected = TrackerKey::basic("me", "of-netrc").expect("a key");
        let expected = expected
            .authorization()
            .to_str()
            .expect("a text")
            .to_owned();
        assert_eq!(key("https://a.org").as_ref(), Some(&expected));
        assert_eq!(key("https://a.org:5000").as_ref(), Some(&expected));
        assert_eq!(key("https://b.org"), None);
    }

    #[test]
    fn server_of_the_configuration_gets_only_its_own_key() {
        let url = "https://a.example:5000";
        let flags = BTreeMap::from([("mlflow.tracking_uri", url.into())]);
        let config = Config::load(None, &flags).expect("a configuration");
        let dir = tempfile::tempdir().expect("a directory");
        let netrc = dir.path().join("netrc");
        let key = |server: Option<&str>, netrc_text: &str, has_token: bool| {
            fs_err::write(&netrc, netrc_text).expect("written");
            let variable = |name: &str| match name {
                "NETRC" => Some(netrc.to_string_lossy().into_owned()),
                "MLFLOW_TRACKING_TOKEN" => has_token.then(|| "canary".to_owned()),
                _ => None,
            };
            let mut found = MlflowSettings::new(&config, server, variable).expect("settings");
            let key = found.key(variable)?;
            let shown = key.map(|key| key.authorization().to_str().expect("a text").to_owned());
            anyhow::Ok(shown)
        };
        let refused = key(None, "", true).expect_err("refused").to_string();
        assert!(
            refused.contains("not sent to a.example:5000") && !refused.contains("canary"),
            "{refused}"
        );
        let default = "default login me password canary";
        assert!(key(None, default, false).is_err());
        assert_eq!(key(None, "", false).expect("no key"), None);

        let own = "machine a.example login me password own-key\ndefault login me password canary";
        let expected = TrackerKey::basic("me", "own-key").expect("a key");
        let expected = expected.authorization();
        let sent = key(None, own, true).expect("a key").expect("a key");
        assert_eq!(sent, expected.to_str().expect("a text"));
        let confirmed = key(Some(url), own, true).expect("a key");
        assert_eq!(confirmed.as_deref(), Some("Bearer canary"));
    }
}
