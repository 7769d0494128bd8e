//! Checks that every doc comment is on the item that it is about.
//!
//! rustc and clippy already find doc comments before an empty line
//! (`clippy::empty_line_after_doc_comments`) and doc comments on items without documentation
//! (`unused_doc_comments`). Neither finds an item that was put between a doc comment and its item, nor
//! an item that was removed from below its doc comment.

use std::path::Path;

use source_checks::{read_files, repository, rust_files};

/// Width limit of a comment, in columns.
const COMMENT_COLUMNS: usize = 100;

/// All sources: their paths relative to the repository, and their text.
fn read_sources() -> Vec<(String, String)> {
    let dirs = ["src", "tests", "benches"];
    let files = dirs.map(|dir| rust_files(&repository().join(dir)));
    read_files(&files.concat())
}

/// The text of a doc comment on this line.
fn doc_text(line: &str) -> Option<&str> {
    let comment = line.trim_start();
    let text = comment
        .strip_prefix("///")
        .or(comment.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Returns true if this line of a doc comment does not continue a paragraph.
fn begins_block(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['-', '*', '#', '|', '>', '['])
        || text.starts_with(|first: char| first.is_ascii_digit())
}

/// The numbers of doc comment lines that end with a sentence although the next word would have fit.
///
/// Paragraphs are filled, so at such a line one doc comment follows another that has lost its item.
fn unfilled_lines(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut is_code = false;
    let mut unfilled = Vec::new();
    for (number, pair) in lines.windows(2).enumerate() {
        let Some(doc) = doc_text(pair[0]) else {
            is_code = false;
            continue;
        };
        is_code ^= doc.starts_with("```");
        let Some(next) = doc_text(pair[1]).filter(|next| !begins_block(next)) else {
            continue;
        };
        let Some(word) = next.split_whitespace().next() else {
            continue;
        };
        let fits = pair[0].chars().count() + 1 + word.chars().count() <= COMMENT_COLUMNS;
        if fits && !is_code && doc.ends_with('.') && !doc.starts_with('#') {
            unfilled.push(number + 1);
        }
    }
    unfilled
}

/// The line numbers of private imports with a doc comment. Such a comment belongs to an item that was
/// moved away.
fn documented_imports(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut documented = Vec::new();
    for (number, pair) in lines.windows(2).enumerate() {
        if pair[0].trim_start().starts_with("///") && pair[1].trim_start().starts_with("use ") {
            documented.push(number + 2);
        }
    }
    documented
}

/// The line numbers where an example in doc comments begins.
fn examples(text: &str) -> Vec<usize> {
    let mut is_code = false;
    let mut begins = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(language) = doc_text(line).and_then(|doc| doc.strip_prefix("```")) else {
            continue;
        };
        is_code = !is_code;
        if is_code && language != "text" {
            begins.push(number);
        }
    }
    begins
}

/// The places, as `path:line`, of everything that `find` finds in the sources.
fn found_places(find: fn(&str) -> Vec<usize>) -> String {
    let sources = read_sources();
    assert!(sources.len() > 200, "only {} files are seen", sources.len());

    let mut places = Vec::new();
    for (path, text) in sources {
        for line in find(&text) {
            places.push(format!("{path}:{line}"));
        }
    }
    places.join("\n")
}

#[test]
fn no_doc_comment_follows_another() {
    let places = found_places(unfilled_lines);
    assert_eq!(
        places, "",
        "two doc comments, or a paragraph that is not filled to {COMMENT_COLUMNS} columns"
    );
}

#[test]
fn no_private_import_has_a_doc_comment() {
    assert_eq!(found_places(documented_imports), "");
}

/// Most crates have no examples, and their manifests spare `cargo test` the search for them.
#[test]
fn examples_are_in_crates_that_run_them() {
    let manifest_of = |path: &str| {
        let mut dirs = Path::new(path).ancestors().skip(1);
        let manifests = |dir: &Path| repository().join(dir).join("Cargo.toml");
        dirs.find_map(|dir| fs_err::read_to_string(manifests(dir)).ok())
            .expect("a manifest")
    };
    let examples: Vec<(String, usize)> = read_sources()
        .into_iter()
        .filter(|(path, _)| path.starts_with("src/"))
        .filter_map(|(path, text)| Some((path, *examples(&text).first()?)))
        .collect();
    assert!(!examples.is_empty());
    for (path, line) in examples {
        let is_run = !manifest_of(&path).contains("doctest = false");
        assert!(is_run, "{path}:{line} is an example that nothing runs");
    }
}

/// This once happened: an item was put between a doc comment and its item.
#[test]
fn a_doc_comment_without_its_item_is_found() {
    let merged = "/// Never 0, which stands for an unknown owner.\n\
        /// Whether something is missing between two generations.\n\
        fn lacks(one: &Generation, next: &Generation) -> bool {\n";
    assert_eq!(unfilled_lines(merged), [1]);

    let before_an_import = "/// Never 0, which stands for an unknown owner.\nuse std::fs;\n";
    assert_eq!(documented_imports(before_an_import), [2]);
}

#[test]
fn paragraphs_lists_and_code_are_whole_doc_comments() {
    let whole = "\
/// The hash of an owner, by the salt of the user who parses the log, as sixty-four bits of its digest.
/// Never 0.
///
/// 0 stands for an unknown owner.
/// - The salt is read once.
/// - It is the user's.
///
/// ```
/// one.
/// two
/// ```
fn owner_hash(salt: &str, owner: &str) -> u64 {
";
    assert_eq!(unfilled_lines(whole), [0; 0]);
}
