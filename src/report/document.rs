//! What a report says: its parts in order, with every number as it is. The page and the JSON document
//! are two views of it.

use serde::Serialize;

use super::drawing::Drawing;

/// The version of the JSON document.
pub const SCHEMA_VERSION: u32 = 1;

/// A report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What it is about, in a line.
    pub title: String,
    /// What is said below the title, in sentences.
    pub about: Vec<String>,
    /// In how many seconds the page is to be read anew; absent once all is over.
    #[serde(skip)]
    pub reload_s: Option<u32>,
    /// Its parts, the answer first.
    pub parts: Vec<ReportPart>,
}

/// A part of a report, with a heading of its own.
#[derive(Debug, Serialize)]
pub struct ReportPart {
    /// Its name in links.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What is in it, in order.
    pub blocks: Vec<ReportBlock>,
}

/// Something in a part.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReportBlock {
    /// A paragraph.
    Paragraph {
        /// What it says.
        text: String,
    },
    /// A paragraph that is to be seen.
    Notice {
        /// What it says.
        text: String,
    },
    /// What cannot be shown.
    Missing(MissingInput),
    /// A table.
    Table(ReportTable),
    /// A plot.
    Figure(Box<Figure>),
    /// The causes that jobs are held for.
    Causes {
        /// What is to be done first comes first.
        causes: Vec<HeldCause>,
    },
    /// Lines as they are typed or stand in a file.
    Lines {
        /// What they are.
        title: String,
        /// One below another.
        text: String,
    },
}

impl ReportBlock {
    /// A paragraph.
    pub(super) fn paragraph(text: impl Into<String>) -> ReportBlock {
        ReportBlock::Paragraph { text: text.into() }
    }

    /// A plot.
    pub(super) fn figure(figure: Figure) -> ReportBlock {
        ReportBlock::Figure(Box::new(figure))
    }
}

/// What cannot be shown, and what makes that it can.
#[derive(Debug, Serialize)]
pub struct MissingInput {
    /// What is not there, in a sentence.
    pub text: String,
    /// The command that makes it, if one does.
    pub command: Option<String>,
}

/// A plot with what to see in it and its numbers.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Its name in links.
    pub id: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What is to be seen in it, in sentences.
    pub see: String,
    /// How it is drawn; the table has its numbers.
    #[serde(skip)]
    pub drawing: Drawing,
    /// Its numbers.
    pub table: ReportTable,
}

/// Jobs that are held for one cause.
#[derive(Debug, Serialize)]
pub struct HeldCause {
    /// What to do.
    pub action: &'static str,
    /// Whether the answer is only probable.
    pub is_probable: bool,
    /// The hold code and subcode.
    pub code: String,
    /// What the code means.
    pub meaning: String,
    /// The cause in a few words; absent in an anonymous report.
    pub cause: Option<String>,
    /// How many jobs.
    pub jobs: usize,
    /// Of how many clusters.
    pub clusters: usize,
    /// The ids of the first of them; none in an anonymous report.
    pub first_jobs: Vec<String>,
    /// The lowest and the highest probability of success, released unchanged.
    pub odds: Option<(f64, f64)>,
    /// How many like holds were followed by success before, and how many there were.
    pub base_rate: Option<(usize, usize)>,
    /// Since when the first of them is held, epoch ms.
    pub held_since_ms: i64,
    /// What to type now; absent in an anonymous report.
    pub command: Option<String>,
    /// What to type once the fault is mended or has passed.
    pub then: Option<String>,
}

/// A table.
#[derive(Debug, Serialize)]
pub struct ReportTable {
    /// What it has.
    pub title: String,
    /// Its columns.
    pub columns: Vec<TableColumn>,
    /// A cell for each column.
    pub rows: Vec<Vec<ReportCell>>,
    /// Whether readers will want it in another order.
    #[serde(skip)]
    pub is_sortable: bool,
}

/// A column of a table.
#[derive(Debug, Serialize)]
pub struct TableColumn {
    /// What stands above it.
    pub name: String,
    /// Digits after the point that are shown.
    #[serde(skip)]
    pub decimals: usize,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ReportCell {
    /// Words.
    Words(String),
    /// A count.
    Count(u64),
    /// A number, which is finite.
    Number(f64),
    /// Nothing is known.
    Empty,
}

impl ReportTable {
    /// A table without rows. `columns` are names, and how many digits after the point their numbers
    /// have.
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
