//! URLs in hold reasons, as pages show them: without secrets, and by their origin.

use htcondor_eventlog::file_origin;

/// Separates the scheme of a URL from the rest.
const SCHEME_END: &str = "://";

/// Returns `text` without the users, passwords and queries of the URLs in it. The query of a URL that
/// was signed for one job opens its file to everybody who reads the page.
pub(super) fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme) = rest.find(SCHEME_END) {
        let (before, address) = rest.split_at(scheme + SCHEME_END.len());
        let end = address.find(ends_address).unwrap_or(address.len());
        let (address, after) = address.split_at(end);
        shown.push_str(before);
        shown.push_str(without_query(without_user(address)));
        rest = after;
    }
    shown + rest
}

/// Returns the host of `url`; the first directories of its path if it has no host. Faults of a server
/// are learned for the same part of a URL.
pub(super) fn server_of(url: &str) -> &str {
    let origin = file_origin(url);
    match origin.split_once(SCHEME_END) {
        Some((_, host)) if !host.starts_with('/') => without_user(host),
        _ => origin,
    }
}

fn ends_address(after: char) -> bool {
    after.is_whitespace() || matches!(after, ')' | '|' | '\'' | '"' | '<' | '>')
}

/// Returns `address`, which begins with a host or with its user, without the user.
fn without_user(address: &str) -> &str {
    let host_end = address.find(['/', '?']).unwrap_or(address.len());
    match address[..host_end].rfind('@') {
        Some(at) => &address[at + 1..],
        None => address,
    }
}

fn without_query(address: &str) -> &str {
    address.split_once('?').map_or(address, |(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_queries_of_urls_are_not_shown() {
        for (text, shown) in [
            (
                "https://ada:secret@fs1.example.edu/a.dat?token=secret",
                "https://fs1.example.edu/a.dat",
            ),
            (
                "Details: https://a.example/x?sig=1,2 ( URL file = https://u@a.example/x?sig=1 )|",
                "Details: https://a.example/x ( URL file = https://a.example/x )|",
            ),
            (
                "osdf:///ospool/ap40/me@home.dat",
                "osdf:///ospool/ap40/me@home.dat",
            ),
            ("/home/ada/really?", "/home/ada/really?"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }

    #[test]
    fn servers_are_hosts_or_the_first_directories() {
        for (url, server) in [
            ("https://fs1.example.edu/in/a.dat", "fs1.example.edu"),
            (
                "https://ada:secret@fs1.example.edu:8443/a?b",
                "fs1.example.edu:8443",
            ),
            ("osdf:///ospool/ap40/data/a", "osdf:///ospool/ap40"),
            ("/home/ada/in/a.dat", "/home/ada/in"),
            ("", ""),
        ] {
            assert_eq!(server_of(url), server);
        }
    }
}
