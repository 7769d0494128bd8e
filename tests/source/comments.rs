//! Doc comments stand on the item that they are about.
//!
//! What rustc and clippy find is left to them: doc comments that an empty line follows
//! (`clippy::empty_line_after_doc_comments`), and those on what has no documentation
//! (`unused_doc_comments`). An item that is put between a doc comment and its item, or taken away
//! from below one, leaves none of these.

use std::path::{Path, PathBuf};

/// How wide a comment is at most.
const COMMENT_COLUMNS: usize = 100;

fn source_paths(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs_err::read_dir(dir).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            paths.extend(source_paths(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
}

/// All sources: their paths from the top of the repository, and their text.
fn read_sources() -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for dir in ["src", "tests", "benches"] {
        for path in source_paths(&top.join(dir)) {
            let text = fs_err::read_to_string(&path).expect("read");
            let inside = path.strip_prefix(top).expect("inside").to_string_lossy();
            sources.push((inside.into_owned(), text));
        }
    }
    sources
}

/// What a line says as part of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let comment = line.trim_start();
    let text = comment
        .strip_prefix("///")
        .or(comment.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Whether a line of a doc comment begins something else than the next line of a paragraph.
fn begins_block(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['-', '*', '#', '|', '>', '['])
        || text.starts_with(|first: char| first.is_ascii_digit())
}

/// The lines of doc comments that end with a sentence, and could have held the next word, too: by
/// their numbers.
///
/// Paragraphs are filled. So this is where one doc comment follows another, which has lost its
/// item.
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

/// The private imports that have a doc comment, by the numbers of their lines. It is that of the
/// item that stood there before.
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

/// Where `find` finds something in any source.
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

/// As it once happened: an item was put between a doc comment and its item.
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
