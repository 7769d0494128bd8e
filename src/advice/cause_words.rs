//! Shortens a hold reason to the words that identify its cause: the file or the host, and the
//! error.

use super::addresses::server_of;
use htcondor_holdreasons::{Number, Operation, Outcome, ReasonFacts, ReasonKind, Thing};
use poolcast_base::output::columns_of;

/// Returns the words of `facts` that identify the cause: what failed, and how, or else the innermost message.
pub(super) fn cause_words(facts: &ReasonFacts) -> String {
    let named = facts.shown_name().filter(|_| !facts.is_by_code);
    let words = named.and_then(|name| words_of(facts.kind, facts.number, name));
    words.unwrap_or_else(|| policy_words(&facts.message))
}

/// Returns words for a thing with a name that failed; `None` if the message itself says more.
fn words_of(kind: ReasonKind, number: Option<Number>, name: &str) -> Option<String> {
    let is_started = matches!(kind.operation, Operation::Execute | Operation::Start);
    let words = match (kind.thing, kind.outcome) {
        (_, Outcome::Unknown | Outcome::Exceeded | Outcome::Intended) => return None,
        (Thing::Object, outcome) if outcome.passes() => {
            // Of a server that fails, the server is the cause, which has many files.
            let how = match number {
                Some(Number::Http(status)) => format!("HTTP {status}"),
                _ => outcome.words().to_owned(),
            };
            format!("{}: {how}", server_of(name))
        }
        (Thing::Program | Thing::InstalledProgram | Thing::SharedProgram, _) if is_started => {
            format!("cannot execute {name}")
        }
        (
            Thing::File | Thing::SandboxFile | Thing::Object | Thing::Image | Thing::StandardInput,
            Outcome::Absent,
        ) => format!("{name} is missing"),
        (
            Thing::File
            | Thing::SandboxFile
            | Thing::Object
            | Thing::Image
            | Thing::Interpreter
            | Thing::StandardInput
            | Thing::StandardOutput
            | Thing::UserLog
            | Thing::WorkingDirectory,
            outcome,
        ) => format!("{name}: {}", outcome.words()),
        _ => return None,
    };
    Some(words)
}

/// Shortens the message of a policy to the attribute and its expression.
fn policy_words(message: &str) -> String {
    match message.strip_prefix("The job attribute ") {
        Some(policy) => policy.replacen(" expression", "", 1),
        None => message.to_owned(),
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
    use htcondor_holdreasons::read_reason;

    use super::super::addresses::without_secrets;
    use super::*;

    fn words(reason: &str, codes: (i32, i32)) -> String {
        cause_words(&read_reason(&without_secrets(reason), Some(codes)))
    }

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
        assert_eq!(words(output, (12, 2)), "out.txt is missing");
        let input = "Details: reading from file /project/of/a/large/climate/site.dat: (errno 2) No such file or directory";
        assert_eq!(
            words(input, (13, 2)),
            "/project/of/a/large/climate/site.dat is missing"
        );
        assert_eq!(
            words(
                "Error from slot1_13@e2042.glacier.example: memory usage exceeded request_memory",
                (34, 102)
            ),
            "memory usage exceeded request_memory"
        );
        assert_eq!(
            words(
                "Error from slot1@e: Failed to execute '/usr/bin/singularity': (errno=2: 'No such')",
                (6, 2)
            ),
            "cannot execute /usr/bin/singularity"
        );
        assert_eq!(
            words(
                "Transfer output files failure at access point ap9 while receiving files from execution point slot1@e. Details: \
                 writing to file /home/ada/out.dat: (errno 122) Disk quota exceeded",
                (12, 122)
            ),
            "/home/ada/out.dat: quota exceeded"
        );
        assert_eq!(words("", (0, 0)), "");
    }

    #[test]
    fn paths_lose_names_until_they_fit() {
        let path = "/project/of/climate/site.dat is missing";
        let shown = [40, 31, 30, 5].map(|most| fitting_cause(path, most));
        assert_eq!(
            shown,
            [
                path,
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
            words(&reason("Transfer.TimedOut"), (13, 256)),
            "osdf:///facility/data: timed out"
        );
        assert_eq!(
            words(&reason("Specification.FileNotFound"), (13, 256)),
            "osdf:///facility/data/x.tar is missing"
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
        let missing = words(&reason("404"), (13, 256));
        assert_eq!(missing, "http://localhost:8000/in/ref2.fa is missing");
        assert_eq!(fitting_cause(&missing, 33), ".../in/ref2.fa is missing");
        assert_eq!(words(&reason("503"), (13, 256)), "localhost:8000: HTTP 503");
        let unknown = words(&reason("418"), (13, 256));
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
        let forbidden = words(&reason("1f2e"), (13, 256));
        assert_eq!(
            forbidden,
            "https://bucket.s3.example/in/ref.fa: permission denied"
        );
        assert_eq!(words(&reason("99ab"), (13, 256)), forbidden);
    }

    #[test]
    fn causes_do_not_depend_on_numbers() {
        assert_eq!(without_numbers("out_012.dat: 3 of 4"), "out_#.dat: # of #");
    }
}
