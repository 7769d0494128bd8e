//! Searches a text without regard to case, and cuts names out of it.

/// A text, and the same in lower case. Offsets in both are equal.
#[derive(Debug, Clone)]
pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    lower: String,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Scan<'a> {
        Scan {
            text,
            lower: text.to_ascii_lowercase(),
        }
    }

    /// The text in lower case.
    pub(super) fn lower(&self) -> &str {
        &self.lower
    }

    /// Returns true if the text contains `words`, which are in lower case.
    pub(super) fn has(&self, words: &str) -> bool {
        self.lower.contains(words)
    }

    pub(super) fn has_any(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|words| self.has(words))
    }

    /// Returns true if the text is one of `phrases`, but for what is no letter at its ends.
    pub(super) fn is_one_of(&self, phrases: &[&str]) -> bool {
        let words = self.lower.trim_matches(|c: char| !c.is_ascii_alphabetic());
        phrases.contains(&words)
    }

    /// Returns true if a word of the text begins with one of `words`. An underscore ends a word, as in
    /// `request_cpus`.
    pub(super) fn has_word(&self, words: &[&str]) -> bool {
        let begins_word =
            |at: usize| !self.lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        words.iter().any(|word| {
            self.lower
                .match_indices(word)
                .any(|(at, _)| begins_word(at))
        })
    }

    /// Returns the text after the first `words`, which are in lower case.
    pub(super) fn after(&self, words: &str) -> Option<&'a str> {
        let at = self.lower.find(words)?;
        self.text.get(at + words.len()..)
    }

    /// Returns the text after the last `words`.
    pub(super) fn after_last(&self, words: &str) -> Option<&'a str> {
        let at = self.lower.rfind(words)?;
        self.text.get(at + words.len()..)
    }

    /// Returns the name after the first `words`: in quotation marks, or up to the end of the path.
    pub(super) fn name_after(&self, words: &str) -> Option<&'a str> {
        leading_name(self.after(words)?)
    }
}

/// Ends of a path or an address that has no quotation marks. A colon alone ends none, because of drives
/// and ports.
const NAME_ENDS: [&str; 9] = [
    ": (",
    " (",
    "; ",
    ": ",
    "' ",
    "\" ",
    ", error",
    ", ignoring",
    " failed:",
];

/// Returns the name that `text` begins with; `None` if there is none.
pub(super) fn leading_name(text: &str) -> Option<&str> {
    let text = text.trim_start();
    for quote in ['\'', '"', '('] {
        if let Some(rest) = text.strip_prefix(quote) {
            let end = if quote == '(' { ')' } else { quote };
            return rest.split(end).next().filter(|name| !name.is_empty());
        }
    }
    let ends = NAME_ENDS.iter().filter_map(|end| text.find(end));
    let end = ends.min().unwrap_or(text.len());
    let name = text.get(..end)?.trim_end_matches(['.', '!', ':', ' ', ',']);
    (!name.is_empty()).then_some(name)
}

/// Returns the first word of `text`, without quotation marks and stops around it.
pub(super) fn leading_word(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    let word = word.trim_matches(['\'', '"', '.', ',', ';', ':', '(', ')', '{', '}']);
    (!word.is_empty()).then_some(word)
}

/// Returns the whole number that `text` begins with, after blanks and at most one sign such as `=`.
pub(super) fn leading_number(text: &str) -> Option<i64> {
    let text = text.trim_start_matches([' ', '=', ':', '(', '#']);
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// Returns the address of a URL in `text`; `None` if there is none.
pub(super) fn first_url(text: &str) -> Option<&str> {
    // A proxy is named beside the address that was asked for.
    let proxies = ["http_proxy=http", "https_proxy=http"];
    let is_of_proxy = |at: usize| proxies.iter().any(|proxy| text[..at].ends_with(proxy));
    let mut places = text.match_indices("://").map(|(at, _)| at);
    let at = places.find(|at| !is_of_proxy(*at))?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let begin = text[..at].rfind(|c| !is_scheme(c)).map_or(0, |last| {
        last + text[last..].chars().next().map_or(1, char::len_utf8)
    });
    let rest = &text[begin..];
    let end = rest
        .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '|' | '>'))
        .unwrap_or(rest.len());
    let url = rest[..end].trim_end_matches(['.', ',', ';', ':']);
    (begin < at && url.len() > at - begin + 3).then_some(url)
}

/// Returns true if `path` lies in the directory that a job has on a machine.
pub(super) fn is_in_sandbox(path: &str) -> bool {
    let path = path.replace('\\', "/");
    let has_run_directory = path.split('/').any(|part| {
        part.strip_prefix("dir_")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    has_run_directory
        || path.contains("/glide_")
        || path.contains("/.osgvo")
        || path.ends_with("_condor_stdout")
        || path.ends_with("_condor_stderr")
        || path.ends_with("condor_exec.exe")
}

/// Returns `path` without the directory that the job has on a machine, whose name differs in each run.
pub(super) fn path_in_sandbox(path: &str) -> &str {
    let Some((_, rest)) = path.split_once("/dir_") else {
        return path;
    };
    match rest.split_once('/') {
        Some((run, name)) if run.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() => {
            name.strip_prefix("scratch/").unwrap_or(name)
        }
        _ => path,
    }
}

/// Returns true if `path` is of a file system that machines mount or have installed.
pub(super) fn is_installed(path: &str) -> bool {
    [
        "/cvmfs/", "/usr/", "/opt/", "/bin/", "/sbin/", "/lib/", "/lib64/",
    ]
    .iter()
    .any(|top| path.starts_with(top))
}

/// Returns `text` with `_` in place of paths and addresses, whose words mean nothing.
pub(super) fn without_paths(text: &str) -> String {
    let is_path = |word: &str| {
        let word = word.trim_start_matches(['\'', '"', '(', '<', '[']);
        word.starts_with(['/', '<'])
            || word.starts_with("./")
            || word.contains("://")
            || word.contains('\\')
            || word.matches('/').count() > 1
    };
    let mut kept = String::with_capacity(text.len());
    for word in text.split_inclusive(' ') {
        let blank = if word.ends_with(' ') { " " } else { "" };
        let bare = word.trim_end();
        if is_path(bare) {
            let stops = bare.len() - bare.trim_end_matches([':', ';', ',', ')']).len();
            kept.push('_');
            kept.push_str(&bare[bare.len() - stops..]);
            kept.push_str(blank);
        } else {
            kept.push_str(word);
        }
    }
    kept
}
