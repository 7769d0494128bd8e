//! Server, project and key for W&B, from the environment, netrc and the configuration.

use anyhow::{Context as _, Result, ensure};

use super::requests::WandbProject;
use crate::server::{
    TrackerKey, host_of, loose_mode_warning, missing_tls_warning, netrc_login, netrc_path,
};
use poolcast_base::error::hinted;
use poolcast_base::escape;
use poolcast_sweep::config::Config;

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
    /// The project on the server.
    pub(super) place: WandbProject,
    /// Warnings about the settings, for the user.
    pub(super) warnings: Vec<String>,
}

impl WandbSettings {
    /// Reads the settings from `config`. Environment variables, which `variable` looks up, take
    /// precedence.
    ///
    /// # Errors
    /// Fails for a URL or a project name that W&B rejects.
    pub(crate) fn new(
        config: &Config,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<WandbSettings> {
        let named = variable("WANDB_BASE_URL").or_else(|| config.wandb.base_url.clone());
        let base_url = named.unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
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

    /// Finds the key for the server: `WANDB_API_KEY`, else the key in netrc.
    ///
    /// # Errors
    /// Fails if there is no key, or if a header cannot hold it.
    pub(crate) fn key(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<TrackerKey> {
        if let Some(key) = variable("WANDB_API_KEY") {
            return TrackerKey::basic("api", key.trim());
        }
        let path = netrc_path(&variable);
        let mut found = None;
        if let Some(path) = &path {
            found = netrc_login(path, &self.host);
            if found.is_none() && self.host == NEWER_HOST {
                found = netrc_login(path, DEFAULT_HOST);
            }
            if found.is_some() {
                self.warnings.extend(loose_mode_warning(path));
            }
        }
        let key = found.context(hinted(
            format!("there is no key for W&B at {}", escape::value(&self.host)),
            format!(
                "set WANDB_API_KEY, or write `machine {} login user password KEY` into ~/.netrc",
                self.host
            ),
        ))?;
        TrackerKey::basic("api", &key.password)
    }
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
        WandbSettings::new(&config, |name| Some((*known.get(name)?).to_owned()))
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
}
