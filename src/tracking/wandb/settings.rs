//! Server, project and key for W&B, from the environment, netrc and the configuration.

use anyhow::{Context as _, Result, ensure};

use super::requests::WandbProject;
use crate::server::{
    TrackerKey, host_of, loose_mode_warning, missing_tls_warning, netrc_login, netrc_path,
    untrusted_server,
};
use poolcast_base::error::hinted;
use poolcast_base::escape;
use poolcast_sweep::config::{Config, Tracker};

/// URL of W&B, unless `WANDB_BASE_URL` names another server.
const DEFAULT_BASE_URL: &str = "https://api.wandb.ai";

/// Host whose netrc key is valid for all of W&B's own servers.
const DEFAULT_HOST: &str = "api.wandb.ai";

/// A newer host name of W&B's own server.
const NEWER_HOST: &str = "api.forge.coreweave.com";

/// Maximum length of a project name, in characters.
const MAX_PROJECT_CHARACTERS: usize = 128;

/// Destination of the runs.
#[derive(Debug, Clone)]
pub(crate) struct WandbSettings {
    /// The server's URL, without a trailing slash.
    pub(super) base_url: String,
    /// The server's host, with its port if that is named.
    pub(super) host: String,
    /// True if the configuration alone names the server, and it is not W&B's own. It may come from
    /// a stranger, so the server gets only the key that netrc has for its host.
    pub(super) is_untrusted: bool,
    /// The project on the server.
    pub(super) place: WandbProject,
    /// Warnings about the settings, for the user.
    pub(super) warnings: Vec<String>,
}

impl WandbSettings {
    /// Reads the settings from `config`. Environment variables, which `variable` looks up, take
    /// precedence, and so does `server`, the URL of the command line.
    ///
    /// # Errors
    /// Fails for a URL or a project name that W&B rejects.
    pub(crate) fn new(
        config: &Config,
        server: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<WandbSettings> {
        let named = server.map(str::to_owned);
        let named = named.or_else(|| variable("WANDB_BASE_URL"));
        let is_from_config = named.is_none();
        let base_url = named
            .or_else(|| config.wandb.base_url.clone())
            .unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
        let base_url = base_url.trim_end_matches('/').to_owned();
        let host = host_of(&base_url).with_context(|| {
            let shown = escape::value(&base_url);
            hinted(
                format!("`{shown}` is not a server URL"),
                "set WANDB_BASE_URL to a URL without a user, for example https://api.wandb.ai",
            )
        })?;
        // A sweep that supplies the points determines its own project and entity.
        let given = config.wandb.sweep.given();
        let given_project = given.map(|given| given.project.to_owned());
        let given_entity = given.map(|given| given.entity.to_owned());
        let project = given_project
            .or_else(|| variable("WANDB_PROJECT"))
            .or_else(|| config.wandb.project.clone());
        let project = project.unwrap_or_else(|| "poolcast".to_owned());
        check_project(&project)?;

        let warnings = Vec::from_iter(missing_tls_warning(&base_url, &host));
        Ok(WandbSettings {
            is_untrusted: is_from_config && !is_own_server(&base_url, &host),
            base_url,
            host,
            place: WandbProject {
                entity: given_entity
                    .or_else(|| variable("WANDB_ENTITY"))
                    .or_else(|| config.wandb.entity.clone()),
                project,
            },
            warnings,
        })
    }

    /// Finds the key for the server: `WANDB_API_KEY`, else the key in netrc. A server that the
    /// configuration alone names gets only the key that netrc has for its host.
    ///
    /// # Errors
    /// Fails if there is no key for the server, or if a header cannot hold it.
    pub(crate) fn key(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<TrackerKey> {
        let of_environment = variable("WANDB_API_KEY");
        if let Some(key) = of_environment.as_ref().filter(|_| !self.is_untrusted) {
            return TrackerKey::basic("api", key.trim());
        }

        let mut hosts = vec![self.host.as_str()];
        if self.host == NEWER_HOST {
            hosts.push(DEFAULT_HOST);
        }
        let path = netrc_path(&variable);
        let found = path.as_ref().and_then(|path| netrc_login(path, &hosts));
        let has_default = found.as_ref().is_some_and(|found| found.is_default);
        let found = found.filter(|found| !(self.is_untrusted && found.is_default));
        let Some(found) = found else {
            let has_key = of_environment.is_some() || has_default;
            return Err(self.without_key(has_key));
        };
        self.warnings
            .extend(path.as_deref().and_then(loose_mode_warning));
        TrackerKey::basic("api", &found.password)
    }

    /// Makes the error for a server without a key. `has_key` is true if there is one that is not
    /// for this server.
    fn without_key(&self, has_key: bool) -> anyhow::Error {
        let host = &self.host;
        if self.is_untrusted && has_key {
            return untrusted_server(Tracker::Wandb, host);
        }
        let netrc = format!("write `machine {host} login user password KEY` into ~/.netrc");
        let hint = if self.is_untrusted {
            netrc
        } else {
            format!("set WANDB_API_KEY, or {netrc}")
        };
        hinted(format!("there is no key for W&B at {host}"), hint).into()
    }
}

/// Returns true if `base_url` is an address of W&B's own servers, with TLS.
fn is_own_server(base_url: &str, host: &str) -> bool {
    let is_encrypted = base_url.to_ascii_lowercase().starts_with("https:");
    is_encrypted && [DEFAULT_HOST, NEWER_HOST].contains(&host)
}

fn check_project(project: &str) -> Result<()> {
    let is_valid = !project.is_empty()
        && project.chars().count() <= MAX_PROJECT_CHARACTERS
        && !project.contains(['/', '\\', '#', '?', '%', ':']);
    ensure!(
        is_valid,
        hinted(
            format!("`{}` is not a project name of W&B", escape::value(project)),
            "set `wandb.project` or WANDB_PROJECT to at most 128 characters, without / \\ # ? % :"
        )
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<WandbSettings> {
        let config = Config::load(None, &BTreeMap::new()).expect("a configuration");
        let known: BTreeMap<&str, &str> = variables.iter().copied().collect();
        WandbSettings::new(&config, None, |name| Some((*known.get(name)?).to_owned()))
    }

    /// The settings of a configuration that names the server.
    fn configured(base_url: &str, server: Option<&str>) -> Result<WandbSettings> {
        let flags = BTreeMap::from([("wandb.base_url", base_url.into())]);
        let config = Config::load(None, &flags).expect("a configuration");
        WandbSettings::new(&config, server, |_| None)
    }

    #[test]
    fn environment_selects_server_and_project() {
        let usual = settings(&[]).expect("settings");
        assert_eq!(usual.host, "api.wandb.ai");
        assert_eq!(usual.place.project, "poolcast");
        assert!(usual.place.entity.is_none() && usual.warnings.is_empty());

        let named = settings(&[
            ("WANDB_BASE_URL", "http://127.0.0.1:8080/"),
            ("WANDB_ENTITY", "team"),
            ("WANDB_PROJECT", "held"),
        ])
        .expect("settings");
        assert_eq!(named.base_url, "http://127.0.0.1:8080");
        assert_eq!(named.host, "127.0.0.1:8080");
        assert_eq!(named.place.entity.as_deref(), Some("team"));
        assert_eq!(named.place.project, "held");
        assert!(named.warnings.is_empty());

        let open = settings(&[("WANDB_BASE_URL", "http://example.org")]).expect("settings");
        assert_eq!(open.warnings.len(), 1);
        for url in ["example.org", "file:///etc", "http://"] {
            assert!(settings(&[("WANDB_BASE_URL", url)]).is_err(), "{url}");
        }
        for project in ["a/b", "a:b", &"x".repeat(129)] {
            assert!(
                settings(&[("WANDB_PROJECT", project)]).is_err(),
                "{project}"
            );
        }
    }

    #[test]
    fn key_is_found_in_netrc_for_known_hosts_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let netrc = dir.path().join("netrc");
        fs_err::write(&netrc, "machine api.wandb.ai login user password of-netrc")
            .expect("written");
        fs_err::set_permissions(&netrc, std::fs::Permissions::from_mode(0o644)).expect("set");
        let of_netrc = |name: &str| {
            let path = netrc.to_string_lossy().into_owned();
            (name == "NETRC").then_some(path)
        };
        let mut found = settings(&[]).expect("settings");
        assert!(found.key(of_netrc).is_ok());
        assert_eq!(found.warnings.len(), 1, "its mode is loose");
        assert!(!found.warnings[0].contains("of-netrc"));

        let mut newer = settings(&[("WANDB_BASE_URL", "https://api.forge.coreweave.com")]);
        assert!(newer.as_mut().expect("settings").key(of_netrc).is_ok());
        let mut other = settings(&[("WANDB_BASE_URL", "https://example.org")]).expect("settings");
        let Err(error) = other.key(of_netrc) else {
            panic!("there is no key")
        };
        assert!(error.to_string().contains("example.org"), "{error}");
    }

    #[test]
    fn server_of_the_configuration_gets_only_its_own_key() {
        let of_environment = |name: &str| (name == "WANDB_API_KEY").then(|| "canary".to_owned());
        let refusal = |base_url: &str| {
            let mut found = configured(base_url, None).expect("settings");
            found
                .key(of_environment)
                .err()
                .map(|error| error.to_string())
        };
        let refused = refusal("https://a.example:8080").expect("refused");
        assert!(
            refused.contains("not sent to a.example:8080") && !refused.contains("canary"),
            "{refused}"
        );
        for own in ["https://api.wandb.ai", "HTTPS://API.WANDB.AI/"] {
            assert_eq!(refusal(own), None);
        }
        for lookalike in [
            "http://api.wandb.ai",
            "https://api.wandb.ai:444",
            "https://api.wandb.ai.example",
        ] {
            assert!(refusal(lookalike).is_some(), "{lookalike}");
        }

        // The user names the server.
        let url = "https://a.example";
        let mut named = configured(url, Some(url)).expect("settings");
        assert!(named.key(of_environment).is_ok());
        let mut named = settings(&[("WANDB_BASE_URL", url)]).expect("settings");
        assert!(named.key(of_environment).is_ok());

        let dir = tempfile::tempdir().expect("a directory");
        let netrc = dir.path().join("netrc");
        let key_with = |text: &str| {
            fs_err::write(&netrc, text).expect("written");
            let path = netrc.to_string_lossy().into_owned();
            let of_netrc = |name: &str| (name == "NETRC").then(|| path.clone());
            configured(url, None).expect("settings").key(of_netrc)
        };
        assert!(key_with("machine a.example login user password canary").is_ok());
        for other in [
            "default login user password canary",
            "machine b.example password canary",
        ] {
            assert!(key_with(other).is_err(), "{other}");
        }
    }
}
