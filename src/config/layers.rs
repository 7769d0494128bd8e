//! Reads a user's configuration file, and explains errors in it.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use figment::error::Kind;
use figment::value::{Dict, Value};

use super::nearest::nearest;
use super::secrets::{rejected_secret, secret};
use super::yaml;
use poolcast_base::error::hinted;

/// Reads the text of a configuration file, up to one byte beyond the maximum size of a YAML
/// document. The YAML reader rejects longer files.
pub(super) fn read_file(file: &Path) -> Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    // The file may also be a pipe.
    let opened = fs_err::File::open(file);
    opened
        .and_then(|opened| opened.take(yaml::MAX_BYTES + 1).read_to_string(&mut text))
        .context(hinted(
            format!("cannot read the configuration `{}`", file.display()),
            "`poolcast config > FILE` writes one to start from",
        ))?;
    Ok(text)
}

/// Parses the text of a configuration into its keys; an empty text has none. Rejects keys that
/// would hold a secret.
pub(super) fn read_dict(text: &str) -> Result<Dict> {
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
        format!("`{section}.{OLDER}` is of an older form of the published file"),
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
        "write how many trials a sweep makes as `runs: 50`, at the top",
    ),
    (
        "wandb.sweep_training_runs",
        "write how many trials a sweep makes as `runs: 50`, at the top",
    ),
    (
        "training.parameters.epochs",
        "write the most epochs as `epochs: 25`, at the top",
    ),
    (
        "io",
        "leave it out: `out: DIR` says where everything is left, and models are called model.safetensors",
    ),
];

pub(super) fn explain(error: &figment::Error, place: &str) -> anyhow::Error {
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
