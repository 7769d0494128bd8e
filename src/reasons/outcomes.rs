//! Reads how an operation ended: from its number, or else from its words.

use super::facts::{Number, Outcome};
use super::scan::{Scan, leading_number};

/// Words of outcomes, in lower case; the first that the text has counts. Words of faults that pass come
/// before faults that stay, because the former explain the latter.
#[rustfmt::skip]
const WORDS: &[(Outcome, &[&str])] = &[
    (Outcome::Unresolved, &[
        "could not resolve", "no such host", "name or service not known", "name resolution", "unknown host",
        "nodename nor servname", "host not found", "cannot resolve", "unresolvable",
    ]),
    (Outcome::Busy, RATE_WORDS),
    (Outcome::Busy, &[
        "toomanyrequests", "throttled", "temporarily unable",
        "resource temporarily unavailable", "try again", "device or resource busy", "text file busy",
        "too many open files", "slowdown", "being used by another process", "requestlimitexceeded", "max_jobs",
        "too many jobs", "queue is full", "is still alive", "submit limit", "job limit", "would exceed", "maximum number of jobs",
        "exceeds the queue limit", "limitexceeded", "countexceeded", "quota '",
    ]),
    (Outcome::TimedOut, &[
        "timed out", "transfer.timedout", "timeout", "time out", "deadline exceeded", "no progress",
        "lack of progress", "too slow", "operation expired",
    ]),
    (Outcome::MountLost, &[
        "stale file handle", "stale nfs", "transport endpoint", "input/output error", "remote i/o error",
        "failed to retrieve path", "host is down",
    ]),
    (Outcome::BadCertificate, &[
        "ssl certificate", "x509:", "failed to verify certificate", "certificate verify", "tls handshake",
        "ssl connect",
    ]),
    (Outcome::Disconnected, &[
        "connection refused", "refused the connection", "connection reset", "unreachable", "no route to host", "failed to connect",
        "couldn't connect", "could not connect", "cannot connect", "connection setup", "broken pipe",
        "unexpected eof", ": eof", "empty reply", "recv failure", "send failure", "not closed cleanly",
        "transfer closed with", "connection closed", "disconnected", "connection to the server failed",
        "error connecting", "communication error", "connecting to the job manager failed", "network problem",
        "network error", "network failure", "network is down",
        "data transfer to the server failed", "lost connection", "connection lost", "contact.connectionreset",
        "contact.connectionsetup",
    ]),
    (Outcome::Unavailable, &[
        "unavailable", "internal server error", "bad gateway", "insufficientinstancecapacity", "unresponsive",
        "redirects followed", "submission is not allowed", "submission disabled", "not accepting",
        "does not accept", "is draining", "queue is closed", "shutting down", "not alive", "node fail",
        "unreachable node", "redirect limit", "resource_pool_exhausted", "enough resources available", "no caches",
    ]),
    (Outcome::Corrupt, &[
        "checksum mismatch", "does not match expected size", "size mismatch", "checksum does not match",
        "corrupt", "image format not recognized",
    ]),
    (Outcome::Quota, &["quota exceeded", "disk quota", "over quota", "exceeds quota", "exceeded quota"]),
    (Outcome::Full, &["no space left", "disk full", "is full", "out of space", "insufficient storage", "not enough space", "not enough disk"]),
    (Outcome::ReadOnly, &["read-only file system"]),
    (Outcome::Exists, &["already exists", "file exists", "already in use", "conflict"]),
    (Outcome::Denied, &[
        "permission denied", "access denied", "access is denied", "access to the resource is denied",
        "unauthorized", "forbidden", "not permitted", "not authorized", "not allowed", "failed to authenticate",
        "authentication failed", "authentication operation failed", "authorization failed",
        "pull access denied", "not readable", "refuses", "auth failed", "no authentication protocol",
        "accessdenied", "signaturedoesnotmatch", "invalidaccesskeyid", "logon failure", "password is incorrect",
        "not able to validate", "authorization operation failed", "login incorrect", "unauthorizedoperation",
        "authfailure", "' permission for '", "no write permission", "have permission", "insufficient_scope", "insufficient authentication", "insufficient permission", "bad uid",
        "authentication required", "no basic auth", "lacks the scope", ": denied",
    ]),
    (Outcome::Expired, &["expired", "about to expire", "no longer valid"]),
    (Outcome::WrongKind, &[
        "is a directory", "not a directory", "levels of symbolic", "symlinks to directories", "is a collection",
        "file name too long", "filename too long", "a file is expected",
    ]),
    (Outcome::WrongFormat, &[
        "exec format error", "not compatible with this machine", "no matching manifest",
        "not a valid win32 application", "bad interpreter", "', cannot run on '",
    ]),
    (Outcome::TooLarge, &["argument list too long", "too large", "bytes exceeded"]),
    (Outcome::NoMemory, &["cannot allocate memory", "out of memory", "out-of-memory", "oom killed"]),
    (Outcome::Absent, &[
        "no such file", "not found", "does not exist", "doesn't exist", "cannot be found", "no namespace found", "could not be found",
        "cannot find", "no such", "manifest unknown", "name unknown", "unable to find", "not registered", "no servers found", "is missing", "missing or not",
        "was not discovered", "not defined", "are not available", "not specified", "nosuchkey", "nosuchbucket",
        "disappear", "no longer exist", "missing from", "specification.filenotfound", "no servers are available to read",
        "notfound:",
    ]),
    (Outcome::Invalid, &[
        "not supported", "unsupported", "invalid", "malformed", "cannot parse", "could not parse", "could not be parsed",
        "illegal", "disabled", "unrecognized", "resulted in a cycle", "resulted in a url",
    ]),
];

/// Words of limits on the number of requests.
const RATE_WORDS: &[&str] = &[
    "ratelimitexceeded",
    "rate limit",
    "too many requests",
    "slow down",
];

/// Reads how the operation ended that `scan` is about.
pub(super) fn read_outcome(scan: &Scan<'_>) -> (Outcome, Option<Number>) {
    let number = read_number(scan);
    // Some services answer 403 to too many requests.
    if scan.has_any(RATE_WORDS) {
        return (Outcome::Busy, number);
    }
    let by_number = number.map_or(Outcome::Unknown, of_number);
    if by_number != Outcome::Unknown && by_number != Outcome::Failed {
        return (by_number, number);
    }
    match of_words(scan) {
        Outcome::Unknown => (by_number, number),
        by_words => (by_words, number),
    }
}

/// Reads the outcome from words alone.
pub(super) fn of_words(scan: &Scan<'_>) -> Outcome {
    let found = WORDS.iter().find(|(_, phrases)| scan.has_any(phrases));
    found.map_or(Outcome::Unknown, |(outcome, _)| *outcome)
}

/// Reads the number with which the operation ended: the status of HTTP, the Unix error, the signal, or
/// else the exit code.
pub(super) fn read_number(scan: &Scan<'_>) -> Option<Number> {
    let number_after = |words: &[&str]| {
        let mut found = words
            .iter()
            .filter_map(|word| leading_number(scan.after(word)?));
        found.find_map(|number| i32::try_from(number).ok())
    };
    if let Some(status) = read_http_status(scan) {
        return Some(Number::Http(status));
    }
    if let Some(errno) = number_after(&["errno", ", error "]) {
        return Some(Number::Errno(errno));
    }
    let named = || SIGNALS.iter().find(|(_, name, _)| scan.has(name));
    if let Some(signal) = number_after(&["signal "]).or_else(|| Some(named()?.0)) {
        return Some(Number::Signal(signal));
    }
    let exit = [
        "exit code",
        "exitcode",
        "exit status",
        "exit (",
        "exit(",
        "exited with code",
        "exited with status",
        "reported status",
        "ended with status",
        "with status",
        "non-zero",
        "returned ",
    ];
    number_after(&exit).map(Number::Exit)
}

/// Signals that end programs, by number: the name in lower case, and what it says.
const SIGNALS: &[(i32, &str, &str)] = &[
    (4, "sigill", "an instruction that this CPU lacks"),
    (6, "sigabrt", "the program aborted"),
    (7, "sigbus", "memory or a mapped file is gone"),
    (8, "sigfpe", "an arithmetic error"),
    (9, "sigkill", "often too little memory"),
    (11, "sigsegv", "the program crashed"),
    (15, "sigterm", "often a time limit"),
    (24, "sigxcpu", "the limit of CPU time"),
    (25, "sigxfsz", "a file too large"),
];

/// Returns the name of a signal in lower case, and what it says; `None` if it says nothing.
pub(super) fn signal_meaning(signal: i32) -> Option<(&'static str, &'static str)> {
    let row = SIGNALS.iter().find(|(number, ..)| *number == signal)?;
    Some((row.1, row.2))
}

/// Reads a status of HTTP, as curl, Pelican and Python's libraries write it.
fn read_http_status(scan: &Scan<'_>) -> Option<i32> {
    for words in [
        "returned error: ",
        "http status",
        "status code",
        "response code",
        "http code",
        "http error",
        "http/1.1",
        "http ",
        "http response",
        "server returned ",
        "returned http ",
        "failed with status",
    ] {
        let status = scan.after(words).and_then(leading_number).filter(is_status);
        if let Some(status) = status {
            return i32::try_from(status).ok();
        }
    }
    let before = |words: &str| {
        let (before, _) = scan.lower().split_once(words)?;
        before
            .split_whitespace()
            .next_back()?
            .parse()
            .ok()
            .filter(is_status)
    };
    let named = before(" client error").or_else(|| before(" server error"));
    // Pelican writes `ADDRESS: 404: No namespace found`.
    let between = || {
        let pieces = scan.text.split(": ").skip(1);
        pieces
            .filter_map(|piece| piece.parse().ok())
            .find(is_status)
    };
    let status: i64 = named.or_else(between)?;
    i32::try_from(status).ok()
}

fn is_status(number: &i64) -> bool {
    (300..600).contains(number)
}

/// Returns the outcome that a number means; `Failed` for an error without a meaning here.
pub(super) fn of_number(number: Number) -> Outcome {
    match number {
        Number::Errno(errno) => of_errno(errno),
        Number::Http(status) => of_http(status),
        Number::Signal(_) => Outcome::Died,
        Number::Exit(0) => Outcome::Unknown,
        Number::Exit(_) => Outcome::Failed,
    }
}

/// Returns the outcome that a Unix error means.
pub(super) fn of_errno(errno: i32) -> Outcome {
    match errno {
        0 => Outcome::Unknown,
        2 => Outcome::Absent,
        1 | 13 => Outcome::Denied,
        17 => Outcome::Exists,
        20 | 21 | 36 | 40 => Outcome::WrongKind,
        22 => Outcome::Invalid,
        28 => Outcome::Full,
        122 => Outcome::Quota,
        30 => Outcome::ReadOnly,
        5 | 103 | 107 | 108 | 112 | 116 | 121 => Outcome::MountLost,
        62 | 110 => Outcome::TimedOut,
        32 | 101 | 104 | 111 | 113 => Outcome::Disconnected,
        4 | 11 | 16 | 23 | 24 | 26 => Outcome::Busy,
        126..=129 => Outcome::Expired,
        8 => Outcome::WrongFormat,
        7 | 27 => Outcome::TooLarge,
        12 | 666_670 => Outcome::NoMemory,
        _ => Outcome::Failed,
    }
}

fn of_http(status: i32) -> Outcome {
    match status {
        404 | 410 | 301 | 302 => Outcome::Absent,
        401 | 403 | 407 => Outcome::Denied,
        409 | 412 => Outcome::Exists,
        408 | 504 | 524 => Outcome::TimedOut,
        423 | 425 | 429 => Outcome::Busy,
        507 => Outcome::Full,
        413 | 414 => Outcome::TooLarge,
        400 | 405 | 411 | 415 | 416 | 501 => Outcome::Invalid,
        500..=599 => Outcome::Unavailable,
        _ => Outcome::Failed,
    }
}

/// Returns the outcome that an exit code of curl means, for plug-ins that pass it on.
pub(super) fn of_curl_exit(code: i32) -> Outcome {
    match code {
        1 | 3 | 37 => Outcome::Invalid,
        6 => Outcome::Unresolved,
        7 | 18 | 52 | 55 | 56 | 92 => Outcome::Disconnected,
        28 | 42 => Outcome::TimedOut,
        35 | 60 | 77 => Outcome::BadCertificate,
        47 => Outcome::Unavailable,
        67 => Outcome::Denied,
        78 => Outcome::Absent,
        _ => Outcome::Failed,
    }
}
