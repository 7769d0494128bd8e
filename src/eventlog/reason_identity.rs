//! Hashes a hold reason in a normal form, without the parts that vary from job to job and from
//! machine to machine: numbers, slots, addresses and sandboxes. The names of files, directories,
//! URLs and origins stay, and so do the words of errors.

use htcondor_holdreasons::{ReasonKind, read_reason};
use memchr::{memchr, memchr2, memmem, memrchr};

use super::event_facts::{ExecutionHost, HoldFacts, name_hash};
use super::execution_place::parse_slot_name;

/// Hold codes of policies, whose reasons are free text of their authors.
const JOB_POLICY: i32 = 3;
const SYSTEM_POLICY: i32 = 26;

/// Maximum number of digits in a directory name that count as part of the name, if they follow a
/// letter: in `ap40`, but not in `run_0001` or `job1234567`.
const MAX_NAME_DIGITS: usize = 4;

/// Parses `reason`, of a hold with these `codes`: code and subcode. `scratch` is memory for reuse.
pub(super) fn read_hold_reason(
    reason: &[u8],
    codes: (i32, i32),
    scratch: &mut Vec<u8>,
) -> HoldFacts {
    scratch.clear();
    let named = normalise(reason, scratch);
    let is_policy = matches!(codes.0, JOB_POLICY | SYSTEM_POLICY);
    HoldFacts {
        reason: if scratch.is_empty() {
            0
        } else {
            name_hash(scratch)
        },
        place: named.place,
        file: named.file.map_or(0, name_hash),
        origin: named.file.map_or(0, |file| name_hash(origin_of(file))),
        exit_code: if is_policy { exit_code(reason) } else { None },
        kind: reason_kind(reason, codes),
    }
}

/// Reads what `reason` states; nothing for an empty reason.
fn reason_kind(reason: &[u8], codes: (i32, i32)) -> ReasonKind {
    if reason.trim_ascii().is_empty() {
        return ReasonKind::default();
    }
    read_reason(&String::from_utf8_lossy(reason), Some(codes)).kind
}

/// The file that a hold reason names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedFile<'a> {
    /// The URL or the absolute path, in full.
    pub file: &'a str,
    /// The scheme and the host of the URL, its namespace if it has no host, or the upper
    /// directories of the path; may be empty.
    pub origin: &'a str,
}

/// Returns the origin of the URL or absolute path `file`, as in [`NamedFile::origin`].
pub fn file_origin(file: &str) -> &str {
    let origin = origin_of(file.as_bytes());
    file.get(..origin.len()).unwrap_or(file)
}

/// Returns the file that the hold reason `reason` names: the one whose hash is in
/// [`HoldFacts::file`]. Returns `None` if the reason names none.
pub fn named_file(reason: &str) -> Option<NamedFile<'_>> {
    let file = normalise(reason.as_bytes(), &mut Vec::new()).file?;
    // Words are cut at ASCII characters, so they are text again.
    let file = std::str::from_utf8(file).ok()?;
    Some(NamedFile {
        file,
        origin: file_origin(file),
    })
}

/// Parses the exit code in a policy's reason, as in `program ended with status 75`.
fn exit_code(reason: &[u8]) -> Option<u32> {
    const WORDS: [&[u8]; 3] = [b"status ", b"exit code ", b"exit-code "];
    let at = WORDS
        .iter()
        .find_map(|words| Some(memmem::find(reason, words)? + words.len()))?;
    let digits = reason[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let end = at + digits.count();
    std::str::from_utf8(&reason[at..end]).ok()?.parse().ok()
}

/// What a hold reason names.
#[derive(Debug, Clone, Copy, Default)]
struct NamedInReason<'a> {
    /// The first execution point.
    place: ExecutionHost,
    /// The first URL, or else the first absolute path that is not in a sandbox.
    file: Option<&'a [u8]>,
}

impl<'a> NamedInReason<'a> {
    /// Remembers `word` if it is the URL or path that the reason is about.
    fn add_word(&mut self, word: &'a [u8]) {
        let is_url = |word: &[u8]| memmem::find(word, b"://").is_some();
        let is_better = match self.file {
            Some(file) => is_url(word) && !is_url(file),
            None => is_url(word) || word[0] == b'/' && sandbox_end(word).is_none(),
        };
        if is_better {
            self.file = Some(word);
        }
    }
}

/// Maximum number of directories of a path that count as its origin: a mount and what is below it.
const MAX_ORIGIN_DIRECTORIES: usize = 3;

/// Number of directories of a URL without a host that count as its origin, as in
/// `osdf:///ospool/ap40`.
const ORIGIN_DIRECTORIES_OF_URL: usize = 2;

/// Returns the part of a URL or path that many files share: the scheme and the host of a URL, its
/// namespace if it has no host, or the upper directories of a path.
pub(super) fn origin_of(file: &[u8]) -> &[u8] {
    let Some(scheme) = memmem::find(file, b"://") else {
        let directory = &file[..memrchr(b'/', file).unwrap_or(0)];
        return first_directories(directory, MAX_ORIGIN_DIRECTORIES);
    };
    let host = scheme + b"://".len();
    match memchr(b'/', &file[host..]) {
        Some(0) => {
            let path = first_directories(&file[host..], ORIGIN_DIRECTORIES_OF_URL);
            &file[..host + path.len()]
        }
        Some(end) => &file[..host + end],
        None => file,
    }
}

/// Returns the first `count` directories of the absolute path `path`.
fn first_directories(path: &[u8], count: usize) -> &[u8] {
    let mut slashes = memchr::memchr_iter(b'/', path);
    &path[..slashes.nth(count).unwrap_or(path.len())]
}

/// Writes the normalised words of `reason` to `out`, separated by blanks. Returns what they name.
fn normalise<'a>(reason: &'a [u8], out: &mut Vec<u8>) -> NamedInReason<'a> {
    let mut named = NamedInReason::default();
    let mut before: &[u8] = b"";

    // Over time, HTCondor has written line feeds in reasons as blanks or as bars.
    for word in reason.split(|byte| byte.is_ascii_whitespace() || *byte == b'|') {
        let word = trim_punctuation(word);
        if word.is_empty() {
            continue;
        }
        let follows_number = out.ends_with(b" #");
        if follows_number && is_unit(word) {
            continue;
        }

        if !out.is_empty() {
            out.push(b' ');
        }
        let is_slot = memchr(b'@', word).is_some() && memchr(b'/', word).is_none();
        if is_slot || is_execution_point(before, out) {
            if named.place == ExecutionHost::default() {
                named.place = parse_slot_name(word);
            }
            out.push(b'@');
        } else if before == b"Site:" {
            // The site of the execution point, as reported by the client of an origin.
            out.push(b'@');
        } else {
            named.add_word(word);
            normalise_word(word, out);
        }
        before = word;
    }
    named
}

/// Returns true if the next word names the machine of the job. `before` is the previous word.
fn is_execution_point(before: &[u8], out: &[u8]) -> bool {
    before == b"point" && out.ends_with(b"execution point ")
}

/// Writes one word: `#` for an address, a normalised URL or path, or the word with masked numbers.
fn normalise_word(word: &[u8], out: &mut Vec<u8>) {
    if word[0] == b'<' || is_ip6_address(word) || is_host_with_port(word) {
        out.push(b'#');
    } else if let Some(scheme) = memmem::find(word, b"://") {
        let (scheme, rest) = word.split_at(scheme + 3);
        out.extend_from_slice(scheme);
        normalise_url(rest, out);
    } else if memchr(b'/', word).is_some() {
        normalise_path(word, out);
    } else {
        mask_numbers(word, out);
    }
}

/// Writes a URL, without its scheme: the host without a port, and the path without a query.
fn normalise_url(rest: &[u8], out: &mut Vec<u8>) {
    let rest = &rest[..memchr(b'?', rest).unwrap_or(rest.len())];
    let (host, path) = rest.split_at(memchr(b'/', rest).unwrap_or(rest.len()));
    out.extend_from_slice(&host[..memchr(b':', host).unwrap_or(host.len())]);
    if !path.is_empty() {
        normalise_path(path, out);
    }
}

/// Writes a path without the sandbox, which is a new directory for each run, and without the
/// numbers in the name of the file.
fn normalise_path(path: &[u8], out: &mut Vec<u8>) {
    let path = match sandbox_end(path) {
        Some(end) => {
            out.push(b'~');
            &path[end..]
        }
        None => path,
    };
    let (directories, file) = path.split_at(memrchr(b'/', path).map_or(0, |last| last + 1));
    mask_directory_numbers(directories, out);
    mask_numbers(file, out);
}

/// Returns the offset at which the sandbox ends in `path`: after `.../dir_12345`, or after the
/// `scratch` in it.
fn sandbox_end(path: &[u8]) -> Option<usize> {
    let begin = memmem::find(path, b"/dir_")? + b"/dir_".len();
    let digits = path[begin..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let end = begin + digits.count();
    if end == begin || path.get(end).is_some_and(|&byte| byte != b'/') {
        return None;
    }
    let is_scratch = path[end..].starts_with(b"/scratch");
    Some(if is_scratch {
        end + b"/scratch".len()
    } else {
        end
    })
}

/// Copies directory names, with `#` in place of numbers that are not part of a name.
fn mask_directory_numbers(names: &[u8], out: &mut Vec<u8>) {
    let mut rest = names;
    while let Some(begin) = rest.iter().position(u8::is_ascii_digit) {
        let (letters, from_digit) = rest.split_at(begin);
        out.extend_from_slice(letters);
        let length = from_digit
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, after) = from_digit.split_at(length);

        let follows_letter = letters.last().is_some_and(u8::is_ascii_alphabetic);
        if follows_letter && length <= MAX_NAME_DIGITS {
            out.extend_from_slice(digits);
        } else {
            out.push(b'#');
        }
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// Copies `word` with `#` in place of each number. Signs within a number, as in versions, dates and
/// durations, are part of it. A word of hexadecimal digits is one number.
pub(super) fn mask_numbers(word: &[u8], out: &mut Vec<u8>) {
    if is_hexadecimal(word) {
        out.push(b'#');
        return;
    }
    let mut at = 0;
    while at < word.len() {
        if !word[at].is_ascii_digit() {
            out.push(word[at]);
            at += 1;
            continue;
        }
        out.push(b'#');
        loop {
            while word.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            let is_joined = matches!(word.get(at), Some(b'.' | b':' | b',' | b'+' | b'-' | b'_'))
                && word.get(at + 1).is_some_and(u8::is_ascii_digit);
            if !is_joined {
                break;
            }
            at += 1;
        }
    }
}

/// Returns true if `word` consists of at least 8 hexadecimal digits and dashes, with at least one
/// decimal digit.
fn is_hexadecimal(word: &[u8]) -> bool {
    word.len() >= 8
        && word.iter().any(u8::is_ascii_digit)
        && word
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

/// Returns true if `word` looks like an IPv6 address: it has two colons and otherwise only
/// hexadecimal digits, brackets and `%`.
fn is_ip6_address(word: &[u8]) -> bool {
    let colons = memchr2(b':', b':', word).is_some_and(|first| word[first + 1..].contains(&b':'));
    colons
        && word
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'[' | b']' | b'%'))
}

/// Returns true if `word` is a host and a port, as of the cache that served a file:
/// `osdf-cache.glacier.example:8443`.
fn is_host_with_port(word: &[u8]) -> bool {
    let Some(colon) = memrchr(b':', word) else {
        return false;
    };
    let (host, port) = (&word[..colon], &word[colon + 1..]);
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_named = memchr(b'.', host).is_some() && host.iter().any(u8::is_ascii_alphabetic);
    let is_port = !port.is_empty() && port.iter().all(u8::is_ascii_digit);
    is_named && is_port && host.iter().all(is_host)
}

/// Returns true if `word` is the unit of a size.
fn is_unit(word: &[u8]) -> bool {
    const UNITS: [&[u8]; 14] = [
        b"B",
        b"KB",
        b"MB",
        b"GB",
        b"TB",
        b"KiB",
        b"MiB",
        b"GiB",
        b"TiB",
        b"bytes",
        b"kilobytes",
        b"megabytes",
        b"gigabytes",
        b"terabytes",
    ];
    UNITS.contains(&word)
}

/// Returns `word` without the punctuation around it.
fn trim_punctuation(word: &[u8]) -> &[u8] {
    let is_open = |byte: &u8| matches!(byte, b'(' | b'\'' | b'"' | b'`');
    let is_close = |byte: &u8| matches!(byte, b')' | b'\'' | b'"' | b'`' | b'.' | b',' | b';');
    let begin = word
        .iter()
        .position(|byte| !is_open(byte))
        .unwrap_or(word.len());
    let end = word
        .iter()
        .rposition(|byte| !is_close(byte))
        .map_or(begin, |last| last + 1);
    let word = &word[begin..end.max(begin)];

    // A colon after a name is not part of it, but `Site:` and similar words keep theirs.
    let is_name = memchr2(b'@', b'/', word).is_some();
    match word {
        [name @ .., b'\'' | b'"', b':'] => name,
        [name @ .., b':'] if is_name || is_host_with_port(name) => name,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal_form(reason: &str) -> String {
        let mut out = Vec::new();
        normalise(reason.as_bytes(), &mut out);
        String::from_utf8(out).expect("text")
    }

    fn are_same(reasons: &[&str]) -> bool {
        let forms: Vec<String> = reasons.iter().map(|reason| normal_form(reason)).collect();
        forms.iter().all(|form| *form == forms[0])
    }

    fn missing_input(slot: &str, file: &str) -> String {
        format!(
            "Transfer input files failure at access point localhost while sending files to execution point {slot}. \
             Details: 1 total failures: first failure: reading from file {file}: (errno 2) No such file or directory"
        )
    }

    /// Reasons in `tests/data/gel`.
    #[test]
    fn reasons_differ_by_file_but_not_by_slot() {
        let typo = missing_input("slot1_13@localhost", "/home/tester/gel/in/typo.dat");
        let site = missing_input("slot1_13@localhost", "/home/tester/gel/in/site.dat");
        assert_ne!(normal_form(&typo), normal_form(&site));
        let elsewhere = missing_input("slot1_2@node7.example", "/home/tester/gel/in/typo.dat");
        assert!(are_same(&[&typo, &elsewhere]));
        assert_eq!(
            normal_form(&typo),
            "Transfer input files failure at access point localhost while sending files to execution point @ Details: # \
             total failures: first failure: reading from file /home/tester/gel/in/typo.dat errno # No such file or \
             directory"
        );

        let output = |slot: &str, sandbox: &str| {
            format!(
                "Transfer output files failure at execution point {slot} while sending files to access point localhost. \
                 Details: 1 total failures: first failure: reading from file {sandbox}/scratch/out.txt: (errno 2) No \
                 such file or directory"
            )
        };
        let here = output("slot1_11@localhost", "/var/lib/condor/execute/dir_427");
        let there = output("slot2@b.example", "/scratch/glide_Ab3xQ/execute/dir_31");
        assert!(are_same(&[&here, &there]));
        assert!(normal_form(&here).contains("file ~/out.txt errno"));
    }

    /// Reasons from a pool with ten kinds of faults, and from clients of the OSPool.
    #[test]
    fn reasons_differ_by_origin_and_error() {
        let plugin = |slot: &str, url: &str, error: &str| {
            format!(
                "Transfer input files failure at execution point {slot} using protocol osdf. Details: {url}: {error} ( URL \
                 file = {url} )|"
            )
        };
        let seed = plugin(
            "slot2@c0-22.nord@ap7",
            "osdf:///ospool/ap40/data/gomez/seed36.dat",
            "server returned 503 Service Unavailable",
        );
        let others = [
            plugin(
                "slot5@gp-9.tigres@ap7",
                "osdf:///ospool/ap40/data/gomez/seed28.dat",
                "server returned 503 Service Unavailable",
            ),
            plugin(
                "slot2@c0-22.nord@ap7",
                "osdf:///ospool/ap20/data/gomez/seed36.dat",
                "server returned 503 Service Unavailable",
            ),
            plugin(
                "slot2@c0-22.nord@ap7",
                "https://s3.genomes-open.org/ref/chr3.fa",
                "server returned 503 Service Unavailable",
            ),
            plugin(
                "slot2@c0-22.nord@ap7",
                "https://s4.genomes-open.org:8443/ref/chr3.fa?token=a",
                "server returned 503 Service Unavailable",
            ),
            plugin(
                "slot2@c0-22.nord@ap7",
                "osdf:///ospool/ap40/data/gomez/seed36.dat",
                "connection reset by peer while transferring",
            ),
        ];
        assert!(are_same(&[&seed, &others[0]]));
        for (at, other) in others.iter().enumerate().skip(1) {
            let alike = others.iter().filter(|one| are_same(&[one, other])).count();
            assert!(alike == 1 && !are_same(&[&seed, other]), "{at}: {other}");
        }

        let pelican = |slot: &str, site: &str, part: u32| {
            format!(
                "Transfer input files failure at execution point {slot} using protocol osdf. Details: Pelican Client Error: \
                 Attempt #{part}: from cache: Contact.ConnectionSetup Error: Error code 3005: connection refused (Version: \
                 7.{part}.0; Site: {site}) ( URL file = osdf:///ospool/ap40/chen00/run76/part{part}.tar.gz \
                 )||FILETRANSFER:1:non-zero exit (1) from /usr/libexec/condor/stash_plugin. |"
            )
        };
        let glacier = pelican("slot1_52@e2014.glacier.example", "glacier", 2);
        assert!(are_same(&[
            &glacier,
            &pelican("slot1_4@e1.mesa.example", "mesa", 17)
        ]));
        assert!(!are_same(&[&glacier, &glacier.replace("run76", "run77")]));
        let cached = |host: &str| {
            format!("Error: from osdf-cache.{host}.example:8443: Transfer.TimedOut Error: code 3")
        };
        assert!(are_same(&[&cached("mesa"), &cached("glacier")]));
        assert!(!are_same(&[
            &cached("mesa"),
            &cached("mesa").replace("TimedOut", "Refused")
        ]));
    }

    /// Reasons from simulated pools.
    #[test]
    fn reasons_differ_by_directory_but_not_by_file_number() {
        let part = |directory: &str, part: u32| {
            missing_input(
                "slot1_22@e2049.ember.example",
                &format!("/home/ada00/{directory}/in/part{part}.dat"),
            )
        };
        assert!(are_same(&[&part("run74", 17), &part("run74", 18)]));
        assert!(!are_same(&[&part("run74", 17), &part("run75", 17)]));
        assert!(are_same(&[&part("0017", 1), &part("0018", 1)]), "numbered");
        assert!(are_same(&[&part("job_17", 1), &part("job_18", 1)]));
        assert!(are_same(&[&part("job12345", 1), &part("job67890", 1)]));

        let memory = |slot: &str, mb: &str| {
            format!(
                "Error from {slot}: Job has gone over cgroup memory limit of {mb}. Last measured usage: {mb}.  Consider \
                 resubmitting with a higher request_memory."
            )
        };
        assert!(are_same(&[
            &memory("slot1_35@e2021.krill.example", "1024 megabytes"),
            &memory("slot1_3@e2.mesa.example", "16 GB"),
        ]));
        assert!(are_same(&[
            "The job exceeded allowed execute duration of 20:00:00",
            "The job exceeded allowed execute duration of 1+00:18:00",
        ]));
        assert!(!are_same(&[
            "The job exceeded allowed execute duration of 20:00:00",
            "The job exceeded allowed job duration of 20:00:00",
        ]));
        assert!(are_same(&[
            "Error from slot1_1@a.example: Failed to execute '/home/u/run8/run.sh': (errno=2: 'No such file or directory')",
            "Error from slot9@b.example: Failed to execute '/home/u/run8/run.sh': (errno=2: 'No such file or directory')",
        ]));
    }

    #[test]
    fn file_and_origin_are_found_in_a_reason() {
        let is = |reason: &str, file: &str, origin: &str| {
            let expected = Some(NamedFile { file, origin });
            assert_eq!(named_file(reason), expected, "{reason}");
            let facts = read_hold_reason(reason.as_bytes(), (13, 2), &mut Vec::new());
            let hashes = [file, origin].map(|name| name_hash(name.as_bytes()));
            assert_eq!([facts.file, facts.origin], hashes, "{reason}");
        };
        let url = "osdf:///ospool/ap40/data/gomez/seed36.dat";
        is(
            &format!(
                "Transfer input files failure at execution point slot2@c0-22.nord@ap7 using protocol osdf. Details: {url}: server returned 503 Service Unavailable ( URL file = {url} )|"
            ),
            url,
            "osdf:///ospool/ap40",
        );
        let url = "https://s3.genomes-open.org/ref/chr3.fa";
        is(
            &format!("Details: {url}: server returned 404 Not Found"),
            url,
            "https://s3.genomes-open.org",
        );
        is(
            &missing_input("slot1_13@localhost", "/ospool/shared/gwave/v1/ref.db"),
            "/ospool/shared/gwave/v1/ref.db",
            "/ospool/shared/gwave",
        );
        is(
            &missing_input("slot1_13@localhost", "/home/amara/in/deck_7.inp"),
            "/home/amara/in/deck_7.inp",
            "/home/amara/in",
        );
        is(
            "Cannot access initial working directory /scratch",
            "/scratch",
            "",
        );
        let sandbox = "Details: 1 total failures: first failure: reading from file /var/lib/condor/execute/dir_427/scratch/out.txt: (errno 2) No such file or directory";
        assert_eq!(named_file(sandbox), None);
        assert_eq!(named_file("Job used 300 MB of memory"), None);
        let path = "/home/ada/mesür/deck.inp";
        is(&missing_input("slot1@e", path), path, "/home/ada/mesür");
    }

    #[test]
    fn variants_of_a_reason_share_a_normal_form() {
        assert!(are_same(&[
            "first line\n\tsecond",
            "first line|second",
            " first  line\r\n second."
        ]));
        assert!(are_same(&[
            "SHADOW at 10.0.0.1 failed to send file(s) to <10.0.0.2:3977>: error",
            "SHADOW at fd00::2 failed to send file(s) to <[fd00::9]:15679>: error",
        ]));
        assert!(are_same(&[
            "container 3f2a9c01-77bd-4e02-9f00-2b1c4d5e6f70 is gone",
            "container 00000000-0000-4e02-ffff-2b1c4d5e6f71 is gone",
        ]));
        assert!(!are_same(&[
            "via condor_hold (by user ada)",
            "via condor_hold (by user bob)"
        ]));
    }

    #[test]
    fn place_and_exit_code_are_parsed_from_reasons() {
        let read =
            |reason: &str, code| read_hold_reason(reason.as_bytes(), (code, 0), &mut Vec::new());
        let typo = missing_input("slot1_13@node7.example", "/home/tester/gel/in/typo.dat");
        assert_eq!(
            read(&typo, 13).place,
            parse_slot_name(b"slot1_13@node7.example")
        );
        let memory = "Error from slot1_35@e2021.krill.example: Job has gone over memory limit";
        assert_eq!(
            read(memory, 34).place,
            parse_slot_name(b"slot1_35@e2021.krill.example")
        );
        assert_eq!(
            read("via condor_hold (by user ada)", 1).place,
            ExecutionHost::default()
        );

        assert_eq!(read("program ended with status 75", 3).exit_code, Some(75));
        assert_eq!(read("failed: exit code 2.", 3).exit_code, Some(2));
        assert_eq!(read("the status was bad", 3).exit_code, None);
        assert_eq!(read("(HTTP status 404)", 13).exit_code, None);
        assert_eq!(read("", 3), HoldFacts::default());
        let punctuation = read(" \t|. ", 3);
        assert_eq!((punctuation.reason, punctuation.file), (0, 0));
    }

    proptest! {
        /// Reasons that differ in numbers are equal, and no reason causes a failure.
        #[test]
        fn reasons_that_differ_in_numbers_share_a_normal_form(words in ".{0,60}", a in 0..99_999u32, b in 0..99_999u32) {
            let with = |number: u32| normal_form(&format!("{words} file part{number}.dat of {number} MB"));
            prop_assert_eq!(with(a), with(b));
        }

        #[test]
        fn arbitrary_reasons_never_panic(reason in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_hold_reason(&reason, (3, 0), &mut Vec::new());
        }
    }
}
