//! Shortens a hold reason to the words that identify its cause: the file or the host, and the
//! error.

use super::addresses::{server_of, without_secrets};
use poolcast_base::output::columns_of;

/// Returns the words of `reason` that identify the cause. `reason` must be a single line.
pub(super) fn cause_words(reason: &str) -> String {
    let reason = without_secrets(reason);
    if let Some(words) = transfer_client_words(&reason).or_else(|| http_status_words(&reason)) {
        return words;
    }
    let mut rest = reason.as_str();
    // The innermost message names the cause; the ones around it only describe the transfer.
    for begin in ["Details: ", "first failure: "] {
        rest = rest.split_once(begin).map_or(rest, |(_, after)| after);
    }
    rest = after_execution_point(rest);

    for (before_file, after_file) in [
        ("reading from file ", ": (errno "),
        ("writing to file ", ": (errno "),
    ] {
        if let Some(words) = file_words(rest, before_file, after_file) {
            return words;
        }
    }
    if let Some(program) = quoted_after(rest, "Failed to execute '") {
        return format!("cannot execute {program}");
    }
    if let Some(policy) = rest.strip_prefix("The job attribute ") {
        return policy.replacen(" expression", "", 1);
    }
    rest.to_owned()
}

/// Returns the text between the prefix `before` and the next quotation mark.
fn quoted_after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let (quoted, _) = text.strip_prefix(before)?.split_once('\'')?;
    Some(quoted)
}

/// Removes the first words of `Error from slot1_2@host: memory usage exceeded`.
fn after_execution_point(reason: &str) -> &str {
    match reason
        .strip_prefix("Error from ")
        .and_then(|rest| rest.split_once(": "))
    {
        Some((place, rest)) if !place.contains(' ') => rest,
        _ => reason,
    }
}

/// Shortens an error message of the Pelican transfer client to the kind of error and the address.
fn transfer_client_words(reason: &str) -> Option<String> {
    let (before, address) = split_at_address(reason)?;
    let (kind, _) = before.split_once(" Error: ").and_then(|(begin, rest)| {
        // The message begins with `Pelican Client Error`, and the kind of error comes after it.
        let begin = rest.split_once(" Error: ").map_or(begin, |(kind, _)| kind);
        begin.rsplit_once(' ').map(|(_, kind)| (kind, ()))
    })?;
    let kind = kind.rsplit_once('.').map_or(kind, |(_, kind)| kind);

    // For a missing file the file is the cause; for other errors the origin is, which has many
    // files.
    let place = match kind {
        "FileNotFound" => address,
        _ => server_of(address),
    };
    Some(format!("{kind}: {place}"))
}

/// Shortens a message of curl's transfer plug-in to the HTTP status and what it is about: the host for a
/// fault of a server, or else the address. Words, such as the reason phrases of RFC 9110, tell causes
/// apart where their numbers do not count.
fn http_status_words(reason: &str) -> Option<String> {
    let (before, address) = split_at_address(reason)?;
    let (_, status) = before.split_once("The requested URL returned error: ")?;
    let status = status.strip_suffix(" ( ")?;
    let phrase = match status {
        "401" => "Unauthorized",
        "403" => "Forbidden",
        "404" => "Not Found",
        "410" => "Gone",
        "408" | "429" | "500" | "502" | "503" | "504" => {
            return Some(format!("{status} from {}", server_of(address)));
        }
        _ => return None,
    };
    Some(format!("{status} {phrase}: {address}"))
}

/// Returns what a transfer plug-in says before it names the address, and the address.
fn split_at_address(reason: &str) -> Option<(&str, &str)> {
    let (before, after) = reason.split_once("URL file = ")?;
    let address = after.split([' ', ')']).next()?;
    Some((before, address))
}

/// Returns `FILE is missing` for `reading from file FILE: (errno 2) No such file or directory`.
fn file_words(text: &str, before_file: &str, after_file: &str) -> Option<String> {
    let (_, rest) = text.split_once(before_file)?;
    let (file, rest) = rest.split_once(after_file)?;
    let (_, error) = rest.split_once(") ")?;
    let file = without_sandbox(file);
    Some(match error.trim_end_matches('.') {
        "No such file or directory" => format!("{file} is missing"),
        error => format!("{file}: {error}"),
    })
}

/// Strips the sandbox directory from a path, because its name differs in each run.
fn without_sandbox(path: &str) -> &str {
    match path
        .split_once("/execute/dir_")
        .and_then(|(_, rest)| rest.split_once('/'))
    {
        Some((_, in_sandbox)) => in_sandbox.strip_prefix("scratch/").unwrap_or(in_sandbox),
        None => path,
    }
}

/// Shortens `words` to at most `most` columns if possible: paths lose leading names until the
/// text fits.
pub fn fitting_cause(words: &str, most: usize) -> String {
    let fits = |text: &str| columns_of(text) <= most;
    if fits(words) {
        return words.to_owned();
    }
    let mut shown = words.to_owned();
    for names in [2, 1] {
        shown = words
            .split(' ')
            .map(|word| last_names(word, names))
            .collect::<Vec<_>>()
            .join(" ");
        if fits(&shown) {
            break;
        }
    }
    shown
}

/// Returns the last `names` components of a path, with `...` for the others.
fn last_names(word: &str, names: usize) -> String {
    let parts: Vec<&str> = word.split('/').collect();
    let is_path = word.starts_with('/') || word.contains("://");
    if !is_path || parts.len() <= names + 1 {
        return word.to_owned();
    }
    format!(".../{}", parts[parts.len() - names..].join("/"))
}

/// Replaces each number in `words` with `#`, so that jobs with the same cause have equal words.
pub(super) fn without_numbers(words: &str) -> String {
    let mut common = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '0'..='9' if common.ends_with('#') => {}
            '0'..='9' => common.push('#'),
            _ => common.push(c),
        }
    }
    common
}

/// Returns `words` with `#` for each number that differs in `others`, which has the same words but for its
/// numbers: two missing files do not have the name of one.
pub(super) fn with_shared_numbers(words: &str, others: &str) -> String {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'#';
    let pieces = |text: &str| -> Vec<String> {
        let alike = text
            .as_bytes()
            .chunk_by(|left, right| is_number(left) == is_number(right));
        alike
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
            .collect()
    };
    let pairs = pieces(words).into_iter().zip(pieces(others));
    pairs
        .map(|(piece, other)| {
            if piece == other {
                piece
            } else {
                "#".to_owned()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_are_left_out() {
        let file = |part: u32| format!("404 Not Found: http://fs1/größe/part{part}.dat");
        let shared = with_shared_numbers(&file(17), &file(8));
        assert_eq!(shared, "404 Not Found: http://fs1/größe/part#.dat");
        assert_eq!(with_shared_numbers(&shared, &file(123)), shared);
        assert_eq!(with_shared_numbers(&file(8), &file(8)), file(8));
    }

    #[test]
    fn cause_words_keep_the_file_and_the_error() {
        let output = "Transfer output files failure at execution point slot1_2@localhost while sending files to access point localhost. \
            Details: 1 total failures: first failure: reading from file /var/lib/condor/execute/dir_53015/scratch/out.txt: \
            (errno 2) No such file or directory";
        assert_eq!(cause_words(output), "out.txt is missing");
        let input = "Details: reading from file /project/of/a/large/climate/site.dat: (errno 2) No such file or directory";
        assert_eq!(
            cause_words(input),
            "/project/of/a/large/climate/site.dat is missing"
        );
        assert_eq!(
            cause_words(
                "Error from slot1_13@e2042.glacier.example: memory usage exceeded request_memory"
            ),
            "memory usage exceeded request_memory"
        );
        assert_eq!(
            cause_words(
                "Error from slot1@e: Failed to execute '/usr/bin/singularity': (errno=2: 'No such')"
            ),
            "cannot execute /usr/bin/singularity"
        );
        assert_eq!(cause_words(""), "");
    }

    #[test]
    fn paths_lose_names_until_they_fit() {
        let words = "/project/of/climate/site.dat is missing";
        let shown = [40, 31, 30, 5].map(|most| fitting_cause(words, most));
        assert_eq!(
            shown,
            [
                words,
                ".../climate/site.dat is missing",
                ".../site.dat is missing",
                ".../site.dat is missing",
            ]
        );
        assert_eq!(fitting_cause("no path at all", 3), "no path at all");
        assert_eq!(
            fitting_cause("FileNotFound: osdf:///igwn/lena/x.tar", 30),
            "FileNotFound: .../lena/x.tar"
        );
    }

    #[test]
    fn origin_errors_and_missing_files_are_different_causes() {
        let reason = |error: &str| {
            format!(
                "Transfer input files failure at execution point slot1@e using protocol osdf. Details: Pelican Client Error: Attempt #1: \
                 from osdf-cache.juniper.example:8443: {error} Error: Error code 1: request failed (Version: 7.0; Site: juniper) \
                 ( URL file = osdf:///facility/data/x.tar ) "
            )
        };
        assert_eq!(
            cause_words(&reason("Transfer.TimedOut")),
            "TimedOut: osdf:///facility/data"
        );
        assert_eq!(
            cause_words(&reason("Specification.FileNotFound")),
            "FileNotFound: osdf:///facility/data/x.tar"
        );
    }

    #[test]
    fn http_statuses_are_different_causes() {
        let reason = |status: &str| {
            format!(
                "Transfer input files failure at execution point slot1_2@localhost using protocol http. Details: The requested \
                 URL returned error: {status} ( URL file = http://localhost:8000/in/ref2.fa )"
            )
        };
        let missing = cause_words(&reason("404"));
        assert_eq!(missing, "404 Not Found: http://localhost:8000/in/ref2.fa");
        assert_eq!(fitting_cause(&missing, 33), "404 Not Found: .../in/ref2.fa");
        assert_eq!(cause_words(&reason("503")), "503 from localhost:8000");
        let unknown = cause_words(&reason("418"));
        assert!(
            unknown.starts_with("The requested URL returned error: 418"),
            "{unknown}"
        );
    }

    #[test]
    fn signed_urls_of_a_file_are_one_cause() {
        let reason = |signature: &str| {
            let url = format!("https://bucket.s3.example/in/ref.fa?X-Amz-Signature={signature}");
            format!(
                "Transfer input files failure at execution point slot1_2@e1 using protocol https. Details: The requested \
                 URL returned error: 403 ( URL file = {url} )"
            )
        };
        let forbidden = cause_words(&reason("1f2e"));
        assert_eq!(
            forbidden,
            "403 Forbidden: https://bucket.s3.example/in/ref.fa"
        );
        assert_eq!(cause_words(&reason("99ab")), forbidden);
    }

    #[test]
    fn causes_do_not_depend_on_numbers() {
        assert_eq!(without_numbers("out_012.dat: 3 of 4"), "out_#.dat: # of #");
    }
}
