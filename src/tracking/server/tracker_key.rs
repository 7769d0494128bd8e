//! Finds a tracker's key in the environment or netrc. The key never appears in a message, a file or
//! a command line.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use serde_json::Value;

use poolcast_base::error::hinted;
use poolcast_base::{escape, files};
use poolcast_sweep::config::Tracker;

/// Size limit of a netrc file, in bytes.
const MAX_NETRC_BYTES: u64 = 1 << 20;

/// Minimum length of a secret that is redacted in documents, in bytes. A shorter one may be a part of
/// an id by chance.
const MIN_SECRET_BYTES: usize = 12;

/// Text in place of a secret.
const REDACTED: &str = "[key]";

/// The value of the header `Authorization`. It has no `Debug`, so no message can contain it.
pub(crate) struct TrackerKey {
    authorization: HeaderValue,
    /// Texts that reveal the key: as sent in the header, and as known to the user.
    secrets: Vec<String>,
}

impl TrackerKey {
    /// Makes the key for basic authentication as `user`.
    ///
    /// # Errors
    /// Fails if a header cannot hold the key; the message does not repeat it.
    pub(crate) fn basic(user: &str, password: &str) -> Result<TrackerKey> {
        let text = STANDARD.encode(format!("{user}:{password}"));
        TrackerKey::new("Basic", text, Some(password))
    }

    /// Makes the key for bearer authentication.
    ///
    /// # Errors
    /// Like [`TrackerKey::basic`].
    pub(crate) fn bearer(token: &str) -> Result<TrackerKey> {
        TrackerKey::new("Bearer", token.trim().to_owned(), None)
    }

    fn new(scheme: &str, sent: String, password: Option<&str>) -> Result<TrackerKey> {
        let value = HeaderValue::from_str(&format!("{scheme} {sent}"));
        let mut value = value.ok().context("the key cannot be sent in a header")?;
        value.set_sensitive(true);
        forbid_core_dumps();

        let mut secrets = vec![sent];
        secrets.extend(password.map(str::to_owned));
        secrets.retain(|secret| !secret.is_empty());
        Ok(TrackerKey {
            authorization: value,
            secrets,
        })
    }

    /// The value of the header `Authorization`.
    pub(crate) fn authorization(&self) -> HeaderValue {
        self.authorization.clone()
    }

    /// Replaces the key in a server's message.
    pub(super) fn redact(&self, message: &str) -> String {
        let mut redacted = message.to_owned();
        for secret in &self.secrets {
            redacted = redacted.replace(secret, REDACTED);
        }
        redacted
    }

    /// Replaces the key in all texts of a server's `document`.
    pub(super) fn redact_document(&self, document: &mut Value) {
        match document {
            Value::String(text) => {
                for secret in &self.secrets {
                    if secret.len() >= MIN_SECRET_BYTES && text.contains(secret) {
                        *text = text.replace(secret, REDACTED);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_document(item)),
            Value::Object(entries) => {
                let values = entries.values_mut();
                values.for_each(|value| self.redact_document(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Keeps the key out of core files, and stops other processes of the user from reading this
/// process's memory.
fn forbid_core_dumps() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::info!("cannot forbid core dumps: {error}");
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::info!("cannot forbid core dumps: {error}");
    }
}

/// Finds the user's netrc: `NETRC`, else `.netrc` or `_netrc` in `HOME`. `variable` looks up
/// environment variables.
pub(crate) fn netrc_path(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(named) = variable("NETRC") {
        return Some(PathBuf::from(named));
    }
    let home = PathBuf::from(variable("HOME")?);
    let usual = [".netrc", "_netrc"].map(|name| home.join(name));
    usual.into_iter().find(|path| path.is_file())
}

/// A netrc entry for one host. It has no `Debug`, so no message can contain it.
pub(crate) struct NetrcLogin {
    /// The user name, if the entry has one.
    pub(crate) login: Option<String>,
    /// The password or key.
    pub(crate) password: String,
    /// True for the entry `default`, which names no host.
    pub(crate) is_default: bool,
}

/// Returns the entry for the first of `hosts` that the netrc at `path` names, else its entry
/// `default`.
pub(crate) fn netrc_login(path: &Path, hosts: &[&str]) -> Option<NetrcLogin> {
    let text = files::read_regular(path, MAX_NETRC_BYTES).ok()?;
    find_login(&String::from_utf8_lossy(&text), hosts)
}

/// Makes the error for a key of `tracker` that is not sent to `host`, because the configuration
/// alone names that server. Results and their configuration may come from a stranger.
pub(crate) fn untrusted_server(tracker: Tracker, host: &str) -> anyhow::Error {
    let (key, variable) = match tracker {
        Tracker::Wandb => ("wandb.base_url", "WANDB_BASE_URL"),
        Tracker::Mlflow => ("mlflow.tracking_uri", "MLFLOW_TRACKING_URI"),
    };
    hinted(
        format!(
            "the key for {tracker} is not sent to {host}: only `{key}` of the configuration names this server"
        ),
        format!(
            "if you trust it, repeat its address with `poolcast track --server URL` or in {variable}, \
             or write `machine {host} login USER password KEY` into ~/.netrc"
        ),
    )
    .into()
}

/// Returns a warning if users other than the owner may access the netrc at `path`.
pub(crate) fn loose_mode_warning(path: &Path) -> Option<String> {
    let shown = escape::path(path);
    is_open_to_others(path).then(|| format!("others may read `{shown}`: chmod 600 {shown}"))
}

/// Returns true if users other than the owner may access the file at `path`.
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

/// Finds the entry for the first possible one of `hosts` in the `text` of a netrc, else the entry
/// `default`.
fn find_login(text: &str, hosts: &[&str]) -> Option<NetrcLogin> {
    let words = words_without_macros(text);
    let mut named = hosts
        .iter()
        .filter_map(|host| find_entry(&words, Some(*host)));
    named.next().or_else(|| find_entry(&words, None))
}

/// Returns the words in the `text` of a netrc, without comments and macros.
fn words_without_macros(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut is_macro = false;
    for line in text.lines() {
        // An empty line ends a macro.
        is_macro = is_macro && !line.trim().is_empty();
        if is_macro || line.trim_start().starts_with('#') {
            continue;
        }
        is_macro = line.split_whitespace().any(|word| word == "macdef");
        words.extend(line.split_whitespace());
    }
    words
}

/// Finds the entry for `host` in the words of a netrc; `None` stands for the entry `default`.
fn find_entry(words: &[&str], host: Option<&str>) -> Option<NetrcLogin> {
    let (mut is_wanted, mut login) = (false, None);
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "machine" => {
                let name = words.next();
                (is_wanted, login) = (host.is_some() && name == host, None);
            }
            "default" => (is_wanted, login) = (host.is_none(), None),
            "login" => login = words.next().map(strip_quotes),
            "password" => {
                let password = words.next()?;
                if is_wanted {
                    return Some(NetrcLogin {
                        login,
                        password: strip_quotes(password),
                        is_default: host.is_none(),
                    });
                }
            }
            "account" | "macdef" => drop(words.next()),
            _ => {}
        }
    }
    None
}

fn strip_quotes(word: &str) -> String {
    word.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base64_matches_rfc_4648_examples() {
        let expected = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, encoded) in expected {
            assert_eq!(STANDARD.encode(text), encoded);
        }
    }

    #[test]
    fn netrc_macros_comments_and_defaults_are_handled() {
        let text = "# machine api.wandb.ai login user password comment\n\
             machine other.org login me password password\n\
             macdef init\n machine api.wandb.ai password macro\n\n\
             machine api.wandb.ai\n  login user\n  password \"the-key\"\n\
             machine 127.0.0.1:80 login user password local\n\
             default login anonymous password guest\n";
        let login = |text, host| {
            let found = find_login(text, &[host])?;
            Some((found.login.unwrap_or_default(), found.password))
        };
        let found = |host| login(text, host).map(|(_, password)| password);
        assert_eq!(found("api.wandb.ai").as_deref(), Some("the-key"));
        assert_eq!(found("127.0.0.1:80").as_deref(), Some("local"));
        assert_eq!(found("other.org").as_deref(), Some("password"));
        assert_eq!(found("elsewhere").as_deref(), Some("guest"));
        assert_eq!(login("machine a password", "a"), None);
        assert_eq!(login("", "a"), None);
        let pair = |login: &str, password: &str| Some((login.to_owned(), password.to_owned()));
        assert_eq!(login(text, "other.org"), pair("me", "password"));
        let without = "machine b login x\nmachine a password y";
        assert_eq!(login(without, "a"), pair("", "y"));

        let is_default = |hosts: &[&str]| Some(find_login(text, hosts)?.is_default);
        assert_eq!(is_default(&["elsewhere", "other.org"]), Some(false));
        assert_eq!(is_default(&["elsewhere"]), Some(true));
    }

    #[test]
    fn keys_are_redacted_in_messages_and_documents() {
        let key = TrackerKey::basic("api", "canary-key-0123").expect("a key");
        let sent = STANDARD.encode("api:canary-key-0123");
        let message = format!("no user for Basic {sent}, which is canary-key-0123");
        assert_eq!(
            key.redact(&message),
            "no user for Basic [key], which is [key]"
        );
        let mut document = json!({"a": [message, 7], "b": {"c": "canary-key-0123"}});
        key.redact_document(&mut document);
        let expected =
            json!({"a": ["no user for Basic [key], which is [key]", 7], "b": {"c": "[key]"}});
        assert_eq!(document, expected);

        // A short password may be a part of ids.
        let short = TrackerKey::basic("me", "7").expect("a key");
        let mut document = json!({"experiment_id": "17"});
        short.redact_document(&mut document);
        assert_eq!(document, json!({"experiment_id": "17"}));
        assert_eq!(short.redact("not 7"), "not [key]");
        let token = TrackerKey::bearer("token-0123456789").expect("a key");
        assert_eq!(token.redact("Bearer token-0123456789"), "Bearer [key]");
    }

    #[test]
    fn debug_output_of_the_header_hides_the_key() {
        let key = TrackerKey::basic("api", "canary-key").expect("a key");
        let shown = format!("{:?}", key.authorization());
        assert!(
            !shown.contains("Y2FuYXJ5") && !shown.contains("canary"),
            "{shown}"
        );
        assert!(TrackerKey::basic("api", "a\nb").is_ok(), "it is encoded");
    }
}
