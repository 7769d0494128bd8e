//! A file of rows, CSV or Parquet → its cells, a row at a time.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};

use crate::error::hinted;

/// What stands in one place of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    /// Nothing.
    Missing,
    Number(f64),
    Bool(bool),
    Text(&'a str),
    /// As a CSV file has it: its column decides whether it is a number.
    Written(&'a str),
}

/// What a CSV file says in place of a value that is missing: the words that pandas takes for one, but for the odd ones.
const MISSING: [&str; 9] = [
    "", "NA", "N/A", "NaN", "nan", "<NA>", "None", "null", "NULL",
];

/// Reads the table `path`, told apart by content: `head` gets the names of its columns, `row` each row with its place for
/// messages: `line 7` of a CSV file, `row 6` of a Parquet file.
///
/// # Errors
/// Fails on a file that is neither, a column without a name, two of the same name, and rows of another length.
pub(super) fn read<S>(
    path: &Path,
    head: impl FnOnce(&[String]) -> Result<S>,
    row: impl FnMut(&mut S, &str, &[Cell<'_>]) -> Result<()>,
) -> Result<S> {
    let read = if is_parquet(path)? {
        parquet(path, head, row)
    } else {
        csv(path, head, row)
    };
    read.with_context(|| format!("cannot use the table `{}`", path.display()))
}

fn is_parquet(path: &Path) -> Result<bool> {
    let hint = "name a CSV or Parquet file in `data.features` and `data.metadata`";
    let open = fs_err::File::open(path).context(hinted("a table is missing", hint));
    let mut magic = Vec::new();
    open?.take(4).read_to_end(&mut magic)?;
    Ok(magic == b"PAR1")
}

fn csv<S>(
    path: &Path,
    head: impl FnOnce(&[String]) -> Result<S>,
    mut row: impl FnMut(&mut S, &str, &[Cell<'_>]) -> Result<()>,
) -> Result<S> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(fs_err::File::open(path)?);
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    check(&names)?;
    let mut table = head(&names)?;
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        let cells: Vec<Cell<'_>> = record.iter().map(written).collect();
        row(&mut table, &format!("line {line}"), &cells)?;
    }
    Ok(table)
}

fn written(text: &str) -> Cell<'_> {
    if MISSING.contains(&text) {
        Cell::Missing
    } else {
        Cell::Written(text)
    }
}

fn parquet<S>(
    path: &Path,
    head: impl FnOnce(&[String]) -> Result<S>,
    mut row: impl FnMut(&mut S, &str, &[Cell<'_>]) -> Result<()>,
) -> Result<S> {
    let reader = SerializedFileReader::new(fs_err::File::open(path)?.into_parts().0)?;
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<String> = schema
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    check(&names)?;
    let mut table = head(&names)?;
    for (number, read) in (1..).zip(reader.get_row_iter(None)?) {
        let read: Row = read.with_context(|| format!("row {number}"))?;
        let cells: Result<Vec<Cell<'_>>> = read
            .get_column_iter()
            .map(|(name, field)| {
                cell(field).with_context(|| format!("column `{name}`, row {number}"))
            })
            .collect();
        row(&mut table, &format!("row {number}"), &cells?)?;
    }
    Ok(table)
}

fn cell(field: &Field) -> Result<Cell<'_>> {
    let number = |value: f64| {
        if value.is_nan() {
            Cell::Missing
        } else {
            Cell::Number(value)
        }
    };
    Ok(match field {
        Field::Null => Cell::Missing,
        Field::Bool(value) => Cell::Bool(*value),
        Field::Byte(value) => number((*value).into()),
        Field::Short(value) => number((*value).into()),
        Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => {
            number((*value).into())
        }
        Field::Long(value)
        | Field::TimeMicros(value)
        | Field::TimestampMillis(value)
        | Field::TimestampMicros(value) => number(*value as f64),
        Field::UByte(value) => number((*value).into()),
        Field::UShort(value) => number((*value).into()),
        Field::UInt(value) => number((*value).into()),
        Field::ULong(value) => number(*value as f64),
        Field::Float16(value) => number(value.to_f64()),
        Field::Float(value) => number((*value).into()),
        Field::Double(value) => number(*value),
        Field::Str(value) => Cell::Text(value),
        other => anyhow::bail!("`{other}` is neither a number, a truth value nor a text"),
    })
}

fn check(names: &[String]) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        ensure!(
            !name.is_empty(),
            hinted(
                format!("column {} has no name", at + 1),
                "name every column in its first row"
            )
        );
        ensure!(
            !names[..at].contains(name),
            "two columns are called `{name}`"
        );
    }
    ensure!(
        names.len() > 1,
        "it has {} columns, and a table an index and others",
        names.len()
    );
    Ok(())
}
