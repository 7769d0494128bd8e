//! Rejects configuration keys that would hold a secret, because configurations are copied beside
//! artefacts and sent with jobs.

use anyhow::Result;
use figment::value::Dict;

use poolcast_base::error::{HintedError, hinted};
use poolcast_base::program::SECRET_WORDS;

/// Prefix of environment variables that set configuration keys.
pub(super) const PREFIX: &str = "POOLCAST_";

/// Returns the path of the first key that would hold a secret; `above` is the prefix of the path.
pub(super) fn secret(dict: &Dict, above: &str) -> Option<String> {
    dict.iter().find_map(|(key, value)| {
        let path = format!("{above}{key}");
        // The keys in this section are names that the user chose for splits.
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

pub(super) fn rejected_secret(what: &str, remedy: &str) -> HintedError {
    hinted(
        format!(
            "{what} holds a secret; configurations are copied next to results and sent with jobs"
        ),
        format!("{remedy}, and set the environment variable `WANDB_API_KEY` or use netrc"),
    )
}

pub(super) fn reject_environment_secrets() -> Result<()> {
    for (name, _) in std::env::vars_os() {
        let Some(key) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        if key.split("__").any(is_secret) {
            return Err(rejected_secret(
                &format!("the environment variable `{PREFIX}{key}`"),
                "unset it",
            )
            .into());
        }
    }
    Ok(())
}
