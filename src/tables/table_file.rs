//! Reads the cells of a CSV or Parquet file, row by row.

use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};

use poolcast_base::error::hinted;

use super::parquet_pages::LimitedPages;

/// A cell of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TableCell<'a> {
    /// Missing value.
    Missing,
    Number(f64),
    Bool(bool),
    Text(&'a str),
    /// Text of a CSV file. Its column decides if it is a number.
    Written(&'a str),
}

/// Words for a missing value in a CSV file: pandas' words, without the rare ones.
const MISSING_WORDS: [&str; 9] = [
    "", "NA", "N/A", "NaN", "nan", "<NA>", "None", "null", "NULL",
];

/// Maximum number of rows in a Parquet file, per byte. A file of tables with an index and numbers has
/// far fewer, but a damaged one may claim any number.
const MAX_ROWS_PER_BYTE: u64 = 100;

/// First bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// Reads the table `path`, whose content decides the format. `begin` gets the names of the columns,
/// and creates the value that rows are added to. `add_row` gets each row with its position for
/// messages: `line 7` of a CSV file, `row 6` of a Parquet file.
///
/// # Errors
/// Fails for another format, a column without a name, two columns with the same name, and rows of
/// different lengths.
pub(super) fn read_table<T>(
    path: &Path,
    begin: impl FnOnce(&[String]) -> Result<T>,
    add_row: impl FnMut(&mut T, &str, &[TableCell<'_>]) -> Result<()>,
) -> Result<T> {
    let read = if is_parquet(path)? {
        without_panics(|| read_parquet(path, begin, add_row))
    } else {
        read_csv(path, begin, add_row)
    };
    read.with_context(|| format!("cannot use the table `{}`", path.display()))
}

/// Calls `read`. The Parquet decoder panics on some damaged files, and its panic becomes an error.
fn without_panics<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    let read = catch_unwind(AssertUnwindSafe(read));
    read.unwrap_or_else(|_| bail!("the Parquet file is damaged"))
}

fn is_parquet(path: &Path) -> Result<bool> {
    let file = fs_err::File::open(path).context(hinted(
        "cannot open the file",
        "name a CSV or Parquet file in `data.features` and `data.metadata`",
    ))?;
    let mut magic = Vec::new();
    file.take(PARQUET_MAGIC.len() as u64)
        .read_to_end(&mut magic)?;
    Ok(magic == PARQUET_MAGIC)
}

fn read_csv<T>(
    path: &Path,
    begin: impl FnOnce(&[String]) -> Result<T>,
    mut add_row: impl FnMut(&mut T, &str, &[TableCell<'_>]) -> Result<()>,
) -> Result<T> {
    // The buffer is large enough for the first line of a table with thousands of columns.
    let mut input = BufReader::with_capacity(1 << 20, fs_err::File::open(path)?);
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .delimiter(separator(input.fill_buf()?))
        .from_reader(input);
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    check_column_names(&names)?;

    let mut table = begin(&names)?;
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        let cells: Vec<TableCell<'_>> = record.iter().map(csv_cell).collect();
        add_row(&mut table, &format!("line {line}"), &cells)?;
    }
    Ok(table)
}

/// Returns the byte that separates the columns of a text table that begins with `header`: a comma, or a tab
/// or a semicolon if the first line has no comma.
fn separator(header: &[u8]) -> u8 {
    let line = header.split(|byte| *byte == b'\n').next();
    let has = |byte: &u8| line.is_some_and(|line| line.contains(byte));
    [b',', b'\t', b';'].into_iter().find(has).unwrap_or(b',')
}

fn csv_cell(text: &str) -> TableCell<'_> {
    if MISSING_WORDS.contains(&text) {
        TableCell::Missing
    } else {
        TableCell::Written(text)
    }
}

fn read_parquet<T>(
    path: &Path,
    begin: impl FnOnce(&[String]) -> Result<T>,
    mut add_row: impl FnMut(&mut T, &str, &[TableCell<'_>]) -> Result<()>,
) -> Result<T> {
    let file = fs_err::File::open(path)?;
    let bytes = file.metadata()?.len();
    let reader = SerializedFileReader::new(LimitedPages(file.into_parts().0))?;
    check_row_count(reader.metadata().row_groups(), bytes)?;
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<String> = schema
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    check_column_names(&names)?;

    let mut table = begin(&names)?;
    for (number, read) in (1..).zip(reader.get_row_iter(None)?) {
        let row: Row = read.with_context(|| format!("row {number}"))?;
        let mut cells = Vec::with_capacity(names.len());
        for (name, field) in row.get_column_iter() {
            let cell = parquet_cell(field);
            cells.push(cell.with_context(|| format!("column `{name}`, row {number}"))?);
        }
        add_row(&mut table, &format!("row {number}"), &cells)?;
    }
    Ok(table)
}

/// Fails if the file of this size claims more rows than a table can have in it.
fn check_row_count(groups: &[RowGroupMetaData], bytes: u64) -> Result<()> {
    let counts = groups.iter().map(|group| group.num_rows().cast_unsigned());
    let rows = counts.fold(0, u64::saturating_add);
    ensure!(
        rows <= bytes.saturating_mul(MAX_ROWS_PER_BYTE),
        "it claims {rows} rows in {bytes} bytes, so it is damaged"
    );
    Ok(())
}

fn parquet_cell(field: &Field) -> Result<TableCell<'_>> {
    Ok(match field {
        Field::Null => TableCell::Missing,
        Field::Bool(value) => TableCell::Bool(*value),
        Field::Byte(value) => number_cell((*value).into()),
        Field::Short(value) => number_cell((*value).into()),
        Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => {
            number_cell((*value).into())
        }
        Field::Long(value)
        | Field::TimeMicros(value)
        | Field::TimestampMillis(value)
        | Field::TimestampMicros(value) => number_cell(*value as f64),
        Field::UByte(value) => number_cell((*value).into()),
        Field::UShort(value) => number_cell((*value).into()),
        Field::UInt(value) => number_cell((*value).into()),
        Field::ULong(value) => number_cell(*value as f64),
        Field::Float16(value) => number_cell(value.to_f64()),
        Field::Float(value) => number_cell((*value).into()),
        Field::Double(value) => number_cell(*value),
        Field::Str(value) => TableCell::Text(value),
        other => bail!("`{other}` is not a number, a Boolean or a text"),
    })
}

/// Returns a number as a cell. NaN becomes missing, because pandas writes missing numbers as NaN.
fn number_cell<'a>(value: f64) -> TableCell<'a> {
    if value.is_nan() {
        TableCell::Missing
    } else {
        TableCell::Number(value)
    }
}

fn check_column_names(names: &[String]) -> Result<()> {
    for (at, name) in names.iter().enumerate() {
        ensure!(
            !name.is_empty(),
            hinted(
                format!("column {} has no name", at + 1),
                "name every column in its first row"
            )
        );
        ensure!(!names[..at].contains(name), "duplicate column `{name}`");
    }
    ensure!(
        names.len() > 1,
        "it has {} columns, expected an index and at least one other",
        names.len()
    );
    Ok(())
}

/// Parses `true` and `false`, and the ways in which Python and R write them.
pub(super) fn parse_truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_shows_the_separator() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("table.csv");
        let columns = |text: &str| {
            fs_err::write(&path, text).expect("written");
            let begin = |names: &[String]| Ok(names.to_vec());
            read_csv(&path, begin, |_, _, _| Ok(())).expect("read")
        };
        for text in ["a,b\n1,2\n", "a\tb\n1\t2\n", "a;b\n1;2\n"] {
            assert_eq!(columns(text), ["a", "b"]);
        }
        // A comma in a later line is a decimal sign.
        assert_eq!(columns("a;b\n1,5;2\n"), ["a", "b"]);
    }
}
