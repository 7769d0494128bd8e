//! Writes the tables of docs/json.md from the types that are serialized and the doc comments of their
//! fields, and compares them with the page.
//!
//! `INSTA_UPDATE=always` writes the page, as it does for snapshots. The text around the tables is
//! written by hand. Before the table of a document, a comment names a file, the constant in it with the
//! version of the document, and its type, or its fields: `<!-- src/cmd/parse.rs SCHEMA_VERSION:
//! StoreSummary -->`.

mod serde_attributes;
mod types;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_attributes::words_of;
use source_checks::{read_files, repository, rust_files};
use types::{Field, Kind, TypeId, Types};

/// Heading of the tables that other tables refer to.
const SHARED_HEADING: &str = "## Objects and words";

const HEAD_OF_KEYS: &str = "| key | type | meaning |\n| --- | --- | --- |\n";

const HEAD_OF_WORDS: &str = "| value | meaning |\n| --- | --- |\n";

/// Maximum number of words in the meaning of a key. More words have a table of their own.
const MAX_WORDS_IN_ROW: usize = 8;

/// A document: what a comment of the page says about it.
struct Document {
    heading: String,
    version: String,
    file: String,
    body: String,
}

impl Document {
    /// Reads a section of the page, which begins with its heading; `None` for one that is written by hand.
    fn of_section(section: &str, sources: &[(String, String)]) -> Option<Document> {
        let (heading, rest) = section.split_once('\n')?;
        let (_, rest) = rest.split_once("<!-- ")?;
        let (comment, _) = rest.split_once(" -->")?;
        let (place, body) = comment.split_once(": ")?;
        let (file, constant) = place.split_once(' ')?;

        let (_, text) = sources.iter().find(|(path, _)| path == file).expect(file);
        let (_, value) = text
            .split_once(&format!("const {constant}: u32 = "))
            .expect(place);
        let (version, _) = value.split_once(';')?;
        let [heading, version, file, body] = [heading, version, file, body].map(str::to_owned);
        Some(Document {
            heading,
            version,
            file,
            body,
        })
    }
}

/// The tables of the page.
struct Tables {
    types: Types,
    /// Headings of the types that are documents, and of the types that have a table of their own.
    headings: Vec<(TypeId, String)>,
    /// Fields without documentation.
    undocumented: BTreeSet<String>,
}

impl Tables {
    fn new(types: Types, documents: &[Document]) -> Tables {
        let headings = documents.iter().filter_map(|document| {
            let of = types.body_type(&document.file, &document.body)?;
            Some((of, document.heading.clone()))
        });
        let headings = headings.collect();
        let mut tables = Tables {
            types,
            headings,
            undocumented: BTreeSet::new(),
        };

        let mut uses = Vec::new();
        for document in documents {
            let body = tables.types.body(&document.file, &document.body);
            tables.count_uses(&body, &mut uses);
        }
        for (of, count) in uses {
            let is_shared = match tables.types.words(of) {
                None => count > 1 && tables.heading(of).is_none(),
                Some(words) => {
                    let is_documented = words.iter().any(|word| !word.doc.is_empty());
                    is_documented && (count > 1 || words.len() > MAX_WORDS_IN_ROW)
                }
            };
            if is_shared {
                let words = words_of(tables.types.name(of)).join(" ");
                let mut heading = words[..1].to_uppercase() + &words[1..];
                let is_known =
                    |heading: &str| tables.headings.iter().any(|(_, known)| known == heading);
                // The words of a tag, where the object around it has a table, too.
                if of.is_tag && is_known(&heading) {
                    heading.push_str(" words");
                }
                assert!(
                    !is_known(&heading),
                    "two types have the heading {heading}: rename one"
                );
                tables.headings.push((of, heading));
            }
        }
        tables
    }

    /// Counts the places that refer to each type, in the order of the page.
    fn count_uses(&self, fields: &[Field], uses: &mut Vec<(TypeId, usize)>) {
        for (of, _) in fields.iter().flat_map(|field| parts(&field.kind, "")) {
            if let Some((_, count)) = uses.iter_mut().find(|(known, _)| *known == of) {
                *count += 1;
                continue;
            }
            uses.push((of, 1));
            if self.types.words(of).is_none() && self.heading(of).is_none() {
                self.count_uses(&self.types.fields(of), uses);
            }
        }
    }

    fn heading(&self, of: TypeId) -> Option<&str> {
        let mut headings = self.headings.iter();
        headings
            .find(|(known, _)| *known == of)
            .map(|(_, heading)| heading.as_str())
    }

    /// Returns a link to the table of a type, if it has one.
    fn link(&self, of: TypeId) -> Option<String> {
        let heading = self.heading(of)?;
        let verb = heading
            .strip_prefix("`poolcast ")
            .and_then(|rest| rest.split_once(" --json"));
        let text = verb.map_or_else(|| heading.to_lowercase(), |(verb, _)| verb.to_owned());
        let is_kept = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == ' ';
        let anchor: String = heading.to_lowercase().chars().filter(is_kept).collect();
        Some(format!("[{text}](#{})", anchor.replace(' ', "-")))
    }

    /// Returns a kind as the page has it.
    fn kind_text(&self, kind: &Kind) -> String {
        match kind {
            Kind::Word(word) => (*word).to_owned(),
            Kind::Null(inner) => match self.kind_text(inner) {
                text if text == "any" => text,
                text if text.starts_with('[') || text.contains(' ') => format!("null or {text}"),
                text => format!("{text} or null"),
            },
            Kind::Array(inner) => format!("array of {}", self.kind_text(inner)),
            Kind::Map(inner) => format!("map of {}", self.kind_text(inner)),
            Kind::Or(kinds) => {
                let texts: Vec<String> = kinds.iter().map(|kind| self.kind_text(kind)).collect();
                texts.join(" or ")
            }
            Kind::Object(of) => self.link(*of).unwrap_or_else(|| "object".to_owned()),
            Kind::Words(of) => self.link(*of).unwrap_or_else(|| "string".to_owned()),
        }
    }

    /// Appends the rows of `fields`, which are keys of the object at `path`, to `table`.
    fn add_rows(&mut self, fields: &[Field], path: &str, is_optional: bool, table: &mut String) {
        for field in fields {
            let is_optional = is_optional || field.is_optional;
            let optional = if is_optional { "optional " } else { "" };
            let kind = self.kind_text(&field.kind);
            let objects = parts(&field.kind, "").into_iter();
            let objects = objects.filter(|(of, _)| self.types.words(*of).is_none());
            let inner: Vec<_> = objects
                .filter(|(of, _)| self.heading(*of).is_none())
                .collect();

            if field.is_flat {
                if let [(of, _)] = inner[..] {
                    self.add_rows(&self.types.fields(of), path, is_optional, table);
                } else {
                    let object = path.trim_end_matches('.');
                    let docs = parts(&field.kind, "")
                        .into_iter()
                        .map(|(of, _)| self.types.doc(of));
                    let meaning = for_readers(&docs.collect::<String>());
                    writeln!(table, "| `{object}...` | {optional}{kind} | {meaning} |")
                        .expect("text");
                }
                continue;
            }

            let key = format!("{path}{}", field.name);
            if field.doc.is_empty() {
                self.undocumented.insert(key.clone());
            }
            let meaning = field_text(field) + &self.words_text(&field.kind);
            writeln!(table, "| `{key}` | {optional}{kind} | {meaning} |").expect("text");
            for (of, below) in inner {
                self.add_rows(
                    &self.types.fields(of),
                    &format!("{key}{below}."),
                    false,
                    table,
                );
            }
        }
    }

    /// Returns the words that a value of `kind` may be, unless they have a table of their own.
    fn words_text(&self, kind: &Kind) -> String {
        let mut text = String::new();
        for (of, _) in parts(kind, "") {
            if let Some(words) = self.types.words(of)
                && self.heading(of).is_none()
            {
                let words = words.iter().map(|word| match for_readers(&word.doc) {
                    doc if doc.is_empty() => format!("`{}`", word.name),
                    doc => format!("`{}` ({})", word.name, doc.trim_end_matches('.')),
                });
                let words: Vec<String> = words.collect();
                write!(text, " One of {}.", words.join(", ")).expect("text");
            }
        }
        text
    }

    fn document_table(&mut self, document: &Document) -> String {
        let version = &document.version;
        let mut table = format!("{HEAD_OF_KEYS}| `schema_version` | integer | {version} |\n");
        let body = self.types.body(&document.file, &document.body);
        self.add_rows(&body, "", false, &mut table);
        table
    }

    /// Returns the section of a type with a table of its own.
    fn shared_section(&mut self, of: TypeId, heading: &str) -> String {
        let mut section = format!(
            "\n### {heading}\n\n{}\n\n",
            for_readers(&self.types.doc(of))
        );
        if let Some(words) = self.types.words(of) {
            section.push_str(HEAD_OF_WORDS);
            for word in words {
                let doc = for_readers(&word.doc);
                writeln!(section, "| `{}` | {doc} |", word.name).expect("text");
            }
        } else {
            section.push_str(HEAD_OF_KEYS);
            self.add_rows(&self.types.fields(of), "", false, &mut section);
        }
        section
    }
}

/// Returns the types that `kind` is made of, each with the path to it: `[]` for the elements of an
/// array, `.*` for the values of a map.
fn parts(kind: &Kind, path: &str) -> Vec<(TypeId, String)> {
    match kind {
        Kind::Word(_) => Vec::new(),
        Kind::Null(inner) => parts(inner, path),
        Kind::Array(inner) => parts(inner, &format!("{path}[]")),
        Kind::Map(inner) => parts(inner, &format!("{path}.*")),
        Kind::Or(kinds) => kinds.iter().flat_map(|kind| parts(kind, path)).collect(),
        Kind::Object(of) | Kind::Words(of) => vec![(*of, path.to_owned())],
    }
}

/// Returns the documentation of a field as the page has it. A key without a value is missing if it is
/// optional, and else `null`.
fn field_text(field: &Field) -> String {
    let text = &field.doc;
    for_readers(&if field.is_optional {
        text.replace("; `None`", "; absent")
            .replace(". `None`", ". Absent")
            .replace("; empty", "; absent")
            .replace(". Empty", ". Absent")
    } else {
        text.replace("; absent", "; `null`")
            .replace(". Absent", ". `null`")
    })
}

/// Returns a doc comment as the page has it: without links to items, and with links to other pages.
fn for_readers(doc: &str) -> String {
    let mut text = doc
        .replace("`None`", "`null`")
        .replace("[`", "`")
        .replace("`]", "`");
    if let Some((before, rest)) = text.split_once("docs/")
        && let Some((page, after)) = rest.split_once(".md")
    {
        text = format!("{before}[{page}.md]({page}.md){after}");
    }
    assert!(
        !text.contains('|'),
        "a cell of a table cannot have the character |: {text}"
    );
    text
}

/// Returns `section` of the page with `table` in place of its table.
fn with_table(section: &str, table: &str) -> String {
    let Some(start) = section.find("\n|") else {
        return format!("{}\n\n{table}", section.trim_end());
    };
    let (before, rest) = section.split_at(start + 1);
    match rest.split_once("\n\n") {
        Some((_, after)) => format!("{before}{table}\n{after}"),
        None => format!("{before}{table}"),
    }
}

#[test]
fn tables_follow_from_the_types() {
    let mut sources = read_files(&rust_files(&repository().join("src")));
    sources.retain(|(_, text)| text.contains("Serialize") || text.contains("SCHEMA_VERSION"));
    for (_, text) in &mut sources {
        text.truncate(text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len()));
    }
    let path = repository().join("docs/json.md");
    let page = fs_err::read_to_string(&path).expect("a page");
    let (by_hand, _) = page.split_once(SHARED_HEADING).expect(SHARED_HEADING);
    let mut sections: Vec<String> = by_hand.split("\n## ").map(str::to_owned).collect();
    let of_section = |section: &String| Document::of_section(section, &sources);
    let documents: Vec<Document> = sections.iter().filter_map(of_section).collect();

    let mut tables = Tables::new(Types::read(&sources), &documents);
    for section in &mut sections {
        if let Some(document) = Document::of_section(section, &sources) {
            *section = with_table(section, &tables.document_table(&document));
        }
    }
    let mut written = sections.join("\n## ") + SHARED_HEADING + "\n";
    for (of, heading) in tables.headings.clone() {
        if !heading.starts_with('`') {
            written += &tables.shared_section(of, &heading);
        }
    }

    let undocumented = &tables.undocumented;
    assert!(
        undocumented.is_empty(),
        "keys without a doc comment: {undocumented:#?}"
    );
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs_err::write(path, written).expect("written");
    } else {
        let hint = "`INSTA_UPDATE=always cargo test -p source-checks --test json_page` writes it";
        assert!(
            page == written,
            "docs/json.md differs from the types: {hint}"
        );
    }
}
