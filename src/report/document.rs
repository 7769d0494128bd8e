//! The content of a report: parts with text, tables, plots and exact numbers. The HTML page and the
//! JSON document are both made from it.

use serde::Serialize;

use super::drawing::Drawing;

/// Version of the JSON document.
pub const SCHEMA_VERSION: u32 = 1;

/// A report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Title, in one line.
    pub title: String,
    /// Sentences below the title.
    pub about: Vec<String>,
    /// Interval after which the browser reloads the page, in seconds; `None` once all trials have
    /// ended.
    #[serde(skip)]
    pub reload_s: Option<u32>,
    /// Parts in display order. The advice on held jobs comes first.
    pub parts: Vec<ReportPart>,
}

/// A part of a report, with its own heading.
#[derive(Debug, Serialize)]
pub struct ReportPart {
    /// Name in links: `held`, `rehearsal`, `best`, `evaluation`, `sweep`, `data` or `provenance`.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Content, in display order.
    pub blocks: Vec<ReportBlock>,
}

/// A block of content in a part.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReportBlock {
    /// A paragraph.
    Paragraph {
        /// Text of the paragraph.
        text: String,
    },
    /// A highlighted paragraph.
    Notice {
        /// Text of the notice.
        text: String,
    },
    /// A note on missing content.
    Missing(MissingInput),
    /// A table.
    Table(ReportTable),
    /// A plot.
    Figure(Box<Figure>),
    /// The causes of the current holds.
    Causes {
        /// Causes in order of urgency.
        causes: Vec<HeldCause>,
    },
    /// Preformatted lines, such as commands or a file.
    Lines {
        /// Heading of the lines.
        title: String,
        /// The lines.
        text: String,
    },
}

impl ReportBlock {
    /// Makes a paragraph.
    pub(super) fn paragraph(text: impl Into<String>) -> ReportBlock {
        ReportBlock::Paragraph { text: text.into() }
    }

    /// Makes a block of a plot.
    pub(super) fn figure(figure: Figure) -> ReportBlock {
        ReportBlock::Figure(Box::new(figure))
    }
}

/// A note on missing content, and how to make it.
#[derive(Debug, Serialize)]
pub struct MissingInput {
    /// Sentence that says what is missing.
    pub text: String,
    /// Command that makes it, if there is one.
    pub command: Option<String>,
}

/// A plot with an explanation and a table of its numbers.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Name in links.
    pub id: String,
    /// Title, in a few words.
    pub title: String,
    /// Explanation for the reader, in sentences.
    pub see: String,
    /// The drawing. It is not in the JSON document, because the table has its numbers.
    #[serde(skip)]
    pub drawing: Drawing,
    /// Table of the plotted numbers.
    pub table: ReportTable,
}

/// The jobs that are held for one cause.
#[derive(Debug, Serialize)]
pub struct HeldCause {
    /// The advised action, in words.
    pub action: &'static str,
    /// True if the advice is only probable.
    pub is_probable: bool,
    /// True if the advice is only possible.
    pub is_possible: bool,
    /// The hold code and subcode.
    pub code: String,
    /// Meaning of the code.
    pub meaning: String,
    /// Short description of the cause; `None` with `--anonymous`.
    pub cause: Option<String>,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of clusters.
    pub clusters: usize,
    /// Ids of the first jobs; empty with `--anonymous`.
    pub first_jobs: Vec<String>,
    /// Lowest and highest success probability of the jobs if they are released unchanged; `None` if
    /// a rule decides.
    pub odds: Option<(f64, f64)>,
    /// Earlier similar holds: successes, and all holds.
    pub base_rate: Option<(usize, usize)>,
    /// State of the thing that failed, or else why the jobs are not released.
    pub note: Option<String>,
    /// Start of the earliest of these holds, epoch ms.
    pub held_since_ms: i64,
    /// Command to type now; `None` with `--anonymous`.
    pub command: Option<String>,
    /// Command to type once the fault is fixed or has passed.
    pub then: Option<String>,
}

impl HeldCause {
    /// The certainty of the advice, before its action; empty if it is firm.
    pub(crate) fn certainty_words(&self) -> &'static str {
        match (self.is_probable, self.is_possible) {
            (true, _) => "probably ",
            (_, true) => "possibly ",
            _ => "",
        }
    }
}

/// A table.
#[derive(Debug, Serialize)]
pub struct ReportTable {
    /// Caption.
    pub title: String,
    /// Columns of the table.
    pub columns: Vec<TableColumn>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<ReportCell>>,
    /// True if readers can sort the rows.
    #[serde(skip)]
    pub is_sortable: bool,
}

/// A column of a table.
#[derive(Debug, Serialize)]
pub struct TableColumn {
    /// Heading of the column.
    pub name: String,
    /// Digits shown after the decimal point.
    #[serde(skip)]
    pub decimals: usize,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ReportCell {
    /// A text.
    Words(String),
    /// A count.
    Count(u64),
    /// A finite number.
    Number(f64),
    /// No value is known.
    Empty,
}

impl ReportTable {
    /// Makes a table without rows. `columns` are headings with the digits after the decimal point.
    pub(super) fn new(title: impl Into<String>, columns: &[(&str, usize)]) -> ReportTable {
        let mut all = Vec::new();
        for (name, decimals) in columns {
            all.push(TableColumn {
                name: (*name).to_owned(),
                decimals: *decimals,
            });
        }
        ReportTable {
            title: title.into(),
            columns: all,
            rows: Vec::new(),
            is_sortable: false,
        }
    }

    /// Adds a row.
    pub(super) fn push<const N: usize>(&mut self, cells: [ReportCell; N]) {
        self.rows.push(cells.to_vec());
    }
}

impl From<&str> for ReportCell {
    fn from(words: &str) -> ReportCell {
        ReportCell::Words(words.to_owned())
    }
}

impl From<String> for ReportCell {
    fn from(words: String) -> ReportCell {
        ReportCell::Words(words)
    }
}

impl From<usize> for ReportCell {
    fn from(count: usize) -> ReportCell {
        ReportCell::Count(count as u64)
    }
}

impl From<f64> for ReportCell {
    fn from(number: f64) -> ReportCell {
        if number.is_finite() {
            ReportCell::Number(number)
        } else {
            ReportCell::Empty
        }
    }
}

impl<T: Into<ReportCell>> From<Option<T>> for ReportCell {
    fn from(cell: Option<T>) -> ReportCell {
        cell.map_or(ReportCell::Empty, Into::into)
    }
}
