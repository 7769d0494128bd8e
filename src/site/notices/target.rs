//! The address that notices go to. It comes from the command line alone, never from a log or a job.

use std::fmt;
use std::str::FromStr;

/// Maximum length of an address, in bytes.
const MAX_BYTES: usize = 2000;

/// A recipient of notices.
#[derive(Clone, PartialEq, Eq)]
pub enum NoticeTarget {
    /// A mail address.
    Mail(String),
    /// An `http` or `https` address. Its path may be a secret.
    Web(String),
}

impl FromStr for NoticeTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<NoticeTarget, String> {
        let is_visible =
            text.len() <= MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
        if let Some(address) = text.strip_prefix("mailto:") {
            return match is_mail_address(address) {
                true => Ok(NoticeTarget::Mail(address.to_owned())),
                false => Err("write one plain address, such as mailto:ada@example.org".to_owned()),
            };
        }
        let is_web = ["http://", "https://"].into_iter().any(|scheme| {
            text.strip_prefix(scheme)
                .is_some_and(|rest| !rest.is_empty())
        });
        if is_web && is_visible {
            return Ok(NoticeTarget::Web(text.to_owned()));
        }
        Err("write mailto:ADDRESS, or an address that begins with https:// or http://".to_owned())
    }
}

/// Returns true for a name or an address without any character that a mail header or a shell would
/// interpret.
fn is_mail_address(address: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-@".contains(&byte);
    (1..=MAX_BYTES).contains(&address.len())
        && !address.starts_with('-')
        && address.bytes().all(is_plain)
        && address.matches('@').count() <= 1
        && !address.starts_with('@')
        && !address.ends_with('@')
}

impl NoticeTarget {
    /// The whole address, which identifies the target.
    pub fn address(&self) -> &str {
        match self {
            NoticeTarget::Mail(address) | NoticeTarget::Web(address) => address,
        }
    }
}

impl fmt::Display for NoticeTarget {
    /// Names the target without the path of a web address, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoticeTarget::Mail(address) => write!(f, "mailto:{address}"),
            NoticeTarget::Web(address) => {
                let rest = address.split_once("://").map_or("", |(_, rest)| rest);
                let host = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
                let host = host.rsplit('@').next().unwrap_or_default();
                f.write_str(host)
            }
        }
    }
}

impl fmt::Debug for NoticeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_could_inject_headers_or_options_are_rejected() {
        for address in [
            "mailto:ada@example.org",
            "mailto:root",
            "mailto:a.b+c@x-y.org",
        ] {
            assert!(address.parse::<NoticeTarget>().is_ok(), "{address}");
        }
        for address in [
            "mailto:",
            "mailto:a@b\nBcc: eve@x",
            "mailto:a@b?subject=x",
            "mailto:a@b,c@d",
            "mailto:-oQ/tmp@x",
            "mailto:|sh",
            "mailto:a@b@c",
            "mailto:<a@b>",
            "ada@example.org",
            "file:///etc/passwd",
            "https://",
            "https://a b",
            "https://a\nb",
        ] {
            assert!(address.parse::<NoticeTarget>().is_err(), "{address}");
        }
    }

    #[test]
    fn path_of_a_web_address_is_not_shown() {
        for address in [
            "https://hooks.example.org/T0/secret?x",
            "https://hooks.example.org\\T0\\secret",
        ] {
            let target: NoticeTarget = address.parse().expect("valid");
            assert_eq!(target.to_string(), "hooks.example.org");
            assert_eq!(format!("{target:?}"), "hooks.example.org");
        }
    }
}
