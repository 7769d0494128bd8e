//! Keys that would hold a secret are refused: configurations are copied beside artefacts, and
//! travel with jobs.

use anyhow::Result;
use figment::value::Dict;

use poolcast_base::error::{HintedError, hinted};
use poolcast_base::program::SECRET_WORDS;

/// The beginning of the names of environment variables that are keys.
pub(super) const PREFIX: &str = "POOLCAST_";

/// The path of a key that holds a secret. Configurations travel with jobs.
pub(super) fn secret(dict: &Dict, above: &str) -> Option<String> {
    dict.iter().find_map(|(key, value)| {
        let path = format!("{above}{key}");
        // The names below are the user's own.
        if path == "data.splits" {
            return None;
        }
        let below = || {
            value
                .as_dict()
                .and_then(|dict| secret(dict, &format!("{path}.")))
        };
        if is_secret(key) {
            Some(path.clone())
        } else {
            below()
        }
    })
}

fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase().replace('-', "_");
    SECRET_WORDS.iter().any(|word| {
        key.strip_suffix(word)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    })
}

pub(super) fn refused_secret(what: &str, remedy: &str) -> HintedError {
    hinted(
        format!(
            "{what} holds a secret; configurations are copied beside artefacts and travel with jobs"
        ),
        format!("{remedy}, and set the environment variable `WANDB_API_KEY` or use netrc"),
    )
}

pub(super) fn refuse_secrets_of_environment() -> Result<()> {
    for (name, _) in std::env::vars_os() {
        let Some(key) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        if key.split("__").any(is_secret) {
            return Err(refused_secret(
                &format!("the environment variable `{PREFIX}{key}`"),
                "unset it",
            )
            .into());
        }
    }
    Ok(())
}
