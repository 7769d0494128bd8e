//! Reads a user's configuration file, merges it with the other layers, and explains errors in it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use figment::Figment;
use figment::error::Kind;
use figment::providers::{Env, Serialized};
use figment::value::Value;
use serde::de::DeserializeOwned;

use super::defaults::DEFAULT;
use super::nearest::nearest;
use super::secrets::{PREFIX, reject_environment_secrets, rejected_secret, secret};
use super::yaml;
use poolcast_base::error::hinted;

/// The keys of one layer of the configuration, with their values.
pub use figment::value::Dict;

/// Merges the defaults, then `layers`, then the environment, then `flags` (paths of keys and their
/// values), and reads the keys of `T` from the result. A later layer overrides an earlier one.
/// `place` names the origin of the layers in messages.
///
/// # Errors
/// Fails for a key that `T` rejects, and names the nearest known one. Also fails for a value of the
/// wrong type, and for an environment variable that would hold a secret.
pub fn merge<T: DeserializeOwned>(
    layers: &[Dict],
    place: &str,
    flags: &BTreeMap<&str, serde_json::Value>,
) -> Result<T> {
    let mut figment = Figment::from(Serialized::defaults(yaml::read::<Dict>(DEFAULT)?));
    for layer in layers {
        figment = figment.merge(Serialized::defaults(layer));
    }
    reject_environment_secrets()?;
    // These variables control the program's behaviour and are not configuration keys.
    let others = [
        "log",
        "pager",
        "owner_salt",
        "owner_salt_file",
        "file_mode",
        // The program of a trial has these, and may run this program.
        "trial",
        "trial_dir",
        "parameters",
        "report",
        // A job of a chain has these.
        "link",
        "predecessor",
    ];
    figment = figment.merge(Env::prefixed(PREFIX).ignore(&others).split("__"));
    for (key, value) in flags {
        figment = figment.merge(Serialized::default(key, value));
    }
    // figment reads a plain value in one way, where `extract` compiles six readers of each struct.
    let merged = figment
        .find_value("")
        .map_err(|error| explain(&error, place))?;
    merged.deserialize().map_err(|error| explain(&error, place))
}

/// Reads the text of a configuration file, up to one byte beyond the maximum size of a YAML
/// document. The YAML reader rejects longer files.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn read_file(file: &Path) -> Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    // The file may also be a pipe.
    let opened = fs_err::File::open(file);
    let read = opened.and_then(|opened| opened.take(yaml::MAX_BYTES + 1).read_to_string(&mut text));
    let hint = match &read {
        Err(error) if error.kind() == ErrorKind::InvalidData => "save it as UTF-8",
        _ => "`poolcast config` prints one to start from",
    };
    read.context(hinted(
        format!("cannot read the configuration `{}`", file.display()),
        hint,
    ))?;
    Ok(text)
}

/// Parses the text of a configuration into its keys; an empty text has none. Rejects keys that
/// would hold a secret.
///
/// # Errors
/// Fails for such a key, and for text that is not YAML.
pub fn read_dict(text: &str) -> Result<Dict> {
    let dict = yaml::read::<Option<Dict>>(text)?.unwrap_or_default();
    if let Some(key) = secret(&dict, "") {
        return Err(rejected_secret(&format!("`{key}`"), "remove it").into());
    }
    reject_older_form(&dict)?;
    Ok(dict)
}

/// Rejects the form of the first published files, which had values beside the search space for runs
/// without W&B.
fn reject_older_form(dict: &Dict) -> Result<()> {
    const OLDER: &str = "parameters_default";
    let sections = ["preprocessing", "training"];
    let found = |section: &&str| {
        dict.get(*section)
            .and_then(Value::as_dict)
            .and_then(|dict| dict.get(OLDER))
    };
    let Some(section) = sections
        .into_iter()
        .find(|section| found(section).is_some())
    else {
        return Ok(());
    };
    bail!(hinted(
        format!("`{section}.{OLDER}` is a key of an older version of the published file"),
        format!(
            "to try the search space, remove `{OLDER}`, and write `runs: 50` and `epochs: 25` at the top; for one training \
             with these values, write them as `{section}: {{parameters: {{...}}}}` in place of the distributions"
        )
    ))
}

/// Keys from other forms of the configuration file, with a hint for each.
const OTHER_KEYS: [(&str, &str); 4] = [
    (
        "wandb.sweep_preprocessing_runs",
        "write the number of trials of a sweep as `runs: 50`, at the top level",
    ),
    (
        "wandb.sweep_training_runs",
        "write the number of trials of a sweep as `runs: 50`, at the top level",
    ),
    (
        "training.parameters.epochs",
        "write the maximum number of epochs as `epochs: 25`, at the top level",
    ),
    (
        "io",
        "remove it: `out: DIR` names the output directory, and models are called model.safetensors",
    ),
];

fn explain(error: &figment::Error, place: &str) -> anyhow::Error {
    let key = error.path.join(".");
    match &error.kind {
        Kind::UnknownField(found, known) => {
            let nearest = nearest(found, known.iter().copied());
            let above =
                &error.path[..error.path.len() - usize::from(error.path.last() == Some(found))];
            let full = above
                .iter()
                .chain([found])
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(".");
            let other = OTHER_KEYS.iter().find(|(key, _)| *key == full);
            let hint = match nearest {
                _ if other.is_some() => other.map_or("", |(_, hint)| hint).to_owned(),
                Some(name) => format!("did you mean `{name}`? `poolcast config` prints every key"),
                None => "`poolcast config` prints every key".to_owned(),
            };
            hinted(format!("{place} has an unknown key `{full}`"), hint).into()
        }
        Kind::UnknownVariant(found, known) => {
            let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
            hinted(
                format!(
                    "{place}: `{key}` must be {}, got `{found}`",
                    known.join(" or ")
                ),
                "`poolcast config` explains every key",
            )
            .into()
        }
        _ if key.is_empty() => hinted(
            format!("{place}: {}", error.kind),
            "`poolcast config` prints every key",
        )
        .into(),
        _ => hinted(
            format!("{place}: `{key}`: {}", error.kind),
            "`poolcast config` explains every key",
        )
        .into(),
    }
}
