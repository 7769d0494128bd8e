//! Parses the address of a tracker's server, and warns of addresses without TLS.

/// Returns the host in `base_url`, with its port if that is named. Returns `None` if `base_url` is
/// not an `http` or `https` address, contains a user, or has a host that is not safe in a command.
pub(crate) fn host_of(base_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(base_url).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    if !["http", "https"].contains(&url.scheme()) || !is_plain {
        return None;
    }
    let host = url.host_str().filter(|host| is_plain_host(host))?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

/// Returns true if `host` has only the characters of names and addresses, so that a shell does not
/// interpret it.
fn is_plain_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    host.bytes().all(is_plain)
}

/// Returns `host` without its port.
pub(crate) fn without_port(host: &str) -> &str {
    let Some((name, port)) = host.rsplit_once(':') else {
        return host;
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { name } else { host }
}

/// Returns a warning if a key would be sent to the server at `base_url` without TLS.
pub(crate) fn missing_tls_warning(base_url: &str, host: &str) -> Option<String> {
    let is_open = base_url.starts_with("http:") && !is_loopback_host(host);
    let shown = poolcast_base::escape::value(base_url);
    is_open.then(|| format!("`{shown}` has no TLS: others can read the key"))
}

/// Returns true if `host` is this machine, so that nothing crosses a network.
fn is_loopback_host(host: &str) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].contains(&without_port(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_extracted_from_valid_addresses_only() {
        assert_eq!(host_of("https://a.org/b").as_deref(), Some("a.org"));
        assert_eq!(host_of("http://[::1]:80/").as_deref(), Some("[::1]"));
        assert_eq!(host_of("http://a:5000").as_deref(), Some("a:5000"));
        for address in [
            "a.org",
            "file:///a",
            "https://me:x@a.org",
            "http://",
            "http://$(id).a.org",
        ] {
            assert_eq!(host_of(address), None, "{address}");
        }
        assert_eq!(without_port("a.org:80"), "a.org");
        assert_eq!(without_port("[::1]"), "[::1]");
    }

    #[test]
    fn address_without_tls_has_a_warning() {
        assert!(missing_tls_warning("http://a.org", "a.org").is_some());
        assert!(missing_tls_warning("https://a.org", "a.org").is_none());
        assert!(missing_tls_warning("http://[::1]:80", "[::1]:80").is_none());
    }
}
