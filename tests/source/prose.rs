//! Checks that comments are plain English: the share of comment blocks that open with a relative or
//! interrogative word, and the frequency of words that technical English does not use.

use source_checks::{read_files, repository, rust_files};

/// Words that must not open a comment block, because a noun phrase or a verb is expected there.
const OPENERS: [&str; 12] = [
    "What", "How", "Whether", "Who", "Where", "Which", "Those", "Of", "That", "Whoever", "So",
    "Why",
];

/// Expressions that have a plainer equivalent.
const ARCHAISMS: [&str; 21] = [
    "anew",
    "hears of",
    "came of",
    "comes to",
    "came to",
    "come to",
    "so many",
    "So many",
    "whoever",
    "Whoever",
    "is none of",
    "no number",
    "as far as",
    "told",
    "tells",
    "is asked",
    "had become",
    "of which",
    "those of",
    "that of",
    "moment of asking",
];

/// Limit for the share of comment blocks that open with one of [`OPENERS`], in percent.
const MAX_OPENERS_PERCENT: f64 = 1.0;

/// Limit for [`ARCHAISMS`] per 10,000 words of comments.
const MAX_ARCHAISMS_PER_10000: f64 = 2.0;

/// Counts over the comments of some files.
#[derive(Debug, Default, PartialEq)]
struct ProseCounts {
    blocks: usize,
    openers: usize,
    words: usize,
    archaisms: usize,
}

impl ProseCounts {
    /// Adds the comments of one file. A block is a run of lines that are comments.
    fn add_file(&mut self, text: &str) {
        let mut is_inside = false;
        for line in text.lines() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_inside = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']);
            let mut words = comment.split_whitespace().peekable();
            if let Some(first) = words.peek().filter(|_| !is_inside) {
                let first = first.trim_matches(|c: char| !c.is_alphanumeric());
                self.blocks += 1;
                self.openers += usize::from(OPENERS.contains(&first));
            }

            let count = |expression: &&str| count_from_word_start(comment, expression);
            self.archaisms += ARCHAISMS.iter().map(count).sum::<usize>();
            self.words += words.count();
            is_inside = true;
        }
    }

    fn openers_percent(&self) -> f64 {
        100.0 * self.openers as f64 / self.blocks as f64
    }

    fn archaisms_per_10000(&self) -> f64 {
        10_000.0 * self.archaisms as f64 / self.words as f64
    }
}

/// Returns how often `expression` occurs in `comment`, not counting the ends of longer words.
fn count_from_word_start(comment: &str, expression: &str) -> usize {
    let found = comment.match_indices(expression);
    found
        .filter(|(at, _)| !comment[..*at].ends_with(char::is_alphabetic))
        .count()
}

#[test]
fn comments_are_plain_english() {
    for dir in ["src", "tests", "benches"] {
        let mut counts = ProseCounts::default();
        for (path, text) in read_files(&rust_files(&repository().join(dir))) {
            // The lists above are not prose.
            if !path.ends_with("source/prose.rs") {
                counts.add_file(&text);
            }
        }
        assert!(
            counts.blocks > 20,
            "only {} comments in {dir}",
            counts.blocks
        );
        assert!(
            counts.openers_percent() <= MAX_OPENERS_PERCENT
                && counts.archaisms_per_10000() <= MAX_ARCHAISMS_PER_10000,
            "{dir}: {:.1} % of the comments open with a relative word, {:.1} archaisms in 10,000 words",
            counts.openers_percent(),
            counts.archaisms_per_10000()
        );
    }
}

#[test]
fn a_riddle_is_counted() {
    let mut counts = ProseCounts::default();
    counts.add_file("/// What came of it.\nfn f() {}\n/// The outcome.\n/// Of which, none.\n");
    let expected = ProseCounts {
        blocks: 2,
        openers: 1,
        words: 9,
        archaisms: 1,
    };
    assert_eq!(counts, expected);
}
