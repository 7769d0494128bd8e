//! Finds a tracker's key in the environment or netrc. The key never appears in a message, a file or
//! a command line.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use poolcast_base::{escape, files};

/// Size limit of a netrc file, in bytes.
const MAX_NETRC_BYTES: u64 = 1 << 20;

/// The value of the header `Authorization`. It has no `Debug`, so no message can contain it.
pub(crate) struct TrackerKey(HeaderValue);

impl TrackerKey {
    /// Makes the key for basic authentication as `user`.
    ///
    /// # Errors
    /// Fails if a header cannot hold the key; the message does not repeat it.
    pub(crate) fn basic(user: &str, password: &str) -> Result<TrackerKey> {
        let text = STANDARD.encode(format!("{user}:{password}"));
        TrackerKey::from_header_text(&format!("Basic {text}"))
    }

    /// Makes the key for bearer authentication.
    ///
    /// # Errors
    /// Like [`TrackerKey::basic`].
    pub(crate) fn bearer(token: &str) -> Result<TrackerKey> {
        TrackerKey::from_header_text(&format!("Bearer {}", token.trim()))
    }

    fn from_header_text(text: &str) -> Result<TrackerKey> {
        let value = HeaderValue::from_str(text);
        let mut value = value.ok().context("the key cannot be sent in a header")?;
        value.set_sensitive(true);
        forbid_core_dumps();
        Ok(TrackerKey(value))
    }

    /// The value of the header `Authorization`.
    pub(crate) fn authorization(&self) -> HeaderValue {
        self.0.clone()
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
}

/// Returns the entry for `host` in the netrc at `path`.
pub(crate) fn netrc_login(path: &Path, host: &str) -> Option<NetrcLogin> {
    let text = files::read_regular(path, MAX_NETRC_BYTES).ok()?;
    find_login(&String::from_utf8_lossy(&text), host)
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

/// Finds the entry for `host` in the `text` of a netrc. An entry `default` matches every host.
fn find_login(text: &str, host: &str) -> Option<NetrcLogin> {
    let mut is_wanted = false;
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

    let mut login = None;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word {
            "machine" => (is_wanted, login) = (words.next() == Some(host), None),
            "default" => (is_wanted, login) = (true, None),
            "login" => login = words.next().map(strip_quotes),
            "password" => {
                let password = words.next()?;
                if is_wanted {
                    let password = strip_quotes(password);
                    return Some(NetrcLogin { login, password });
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
            let found = find_login(text, host)?;
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
