//! The address of a tracker's server → what it says.

/// The host of the server at `base_url`, and its port if that is named; `None` for what is no address
/// by `http` or `https`, and for one with a user in it.
pub(super) fn host_of(base_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(base_url).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    if !["http", "https"].contains(&url.scheme()) || !is_plain {
        return None;
    }
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

/// `host` without its port.
pub(super) fn without_port(host: &str) -> &str {
    let Some((name, port)) = host.rsplit_once(':') else {
        return host;
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { name } else { host }
}

/// What is to be said of a server at `base_url` that a key would be sent to in the open.
pub(super) fn open_way_warning(base_url: &str, host: &str) -> Option<String> {
    let is_open = base_url.starts_with("http:") && !is_own_machine(host);
    let shown = poolcast_base::escape::value(base_url);
    is_open.then(|| format!("`{shown}` has no TLS: others can read the key"))
}

/// Whether `host` is this machine, to which nothing travels.
fn is_own_machine(host: &str) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].contains(&without_port(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_without_what_else_an_address_says() {
        assert_eq!(host_of("https://a.org/b").as_deref(), Some("a.org"));
        assert_eq!(host_of("http://[::1]:80/").as_deref(), Some("[::1]"));
        assert_eq!(host_of("http://a:5000").as_deref(), Some("a:5000"));
        for address in ["a.org", "file:///a", "https://me:x@a.org", "http://"] {
            assert_eq!(host_of(address), None, "{address}");
        }
        assert_eq!(without_port("a.org:80"), "a.org");
        assert_eq!(without_port("[::1]"), "[::1]");
    }

    #[test]
    fn a_key_is_not_sent_in_the_open_without_a_word() {
        assert!(open_way_warning("http://a.org", "a.org").is_some());
        assert!(open_way_warning("https://a.org", "a.org").is_none());
        assert!(open_way_warning("http://[::1]:80", "[::1]:80").is_none());
    }
}
