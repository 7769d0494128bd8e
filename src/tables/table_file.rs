//! Reads the cells of a CSV or Parquet file, row by row.

use std::io::{BufRead as _, BufReader, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};

use htcondor_eventlog::decompress;
use poolcast_base::error::hinted;
use poolcast_base::output::counted;

use super::parquet_pages::LimitedPages;

/// A cell of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TableCell<'a> {
    /// Missing value.
    Missing,
    Number(f64),
    Bool(bool),
    Text(&'a str),
    /// Time, in microseconds of the epoch, and its number in the file.
    Time(i64, f64),
    /// Text of a CSV file. Its column decides if it is a number.
    Written(&'a str),
}

/// Words for a missing value in a CSV file: pandas' words, without the rare ones.
const MISSING_WORDS: [&str; 14] = [
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "NaN", "nan", "-NaN", "-nan", "<NA>", "None", "null",
    "NULL",
];

/// Maximum number of rows in a Parquet file, per byte. A file of tables with an index and numbers has
/// far fewer, but a damaged one may claim any number.
const MAX_ROWS_PER_BYTE: u64 = 100;

/// Microseconds per day.
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// First bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// First bytes of a ZIP archive, such as a workbook.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

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
    let read = is_parquet(path).and_then(|is_parquet| match is_parquet {
        true => without_panics(|| read_parquet(path, begin, add_row)),
        false => read_csv(path, begin, add_row),
    });
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
    ensure!(
        magic != ZIP_MAGIC,
        hinted("it is a workbook or a ZIP archive", "export it as CSV")
    );
    Ok(magic == PARQUET_MAGIC)
}

fn read_csv<T>(
    path: &Path,
    begin: impl FnOnce(&[String]) -> Result<T>,
    mut add_row: impl FnMut(&mut T, &str, &[TableCell<'_>]) -> Result<()>,
) -> Result<T> {
    let plain = decompress(fs_err::File::open(path)?, |_| {})?;
    let plain = plain.map_or(Box::new(std::io::empty()) as _, |plain| plain.reader);
    // The buffer is large enough for the first line of a table with thousands of columns.
    let mut input = BufReader::with_capacity(1 << 20, plain);
    let separator = separator(input.fill_buf()?);
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .delimiter(separator)
        .from_reader(input);
    let headers = reader.headers().context(hinted(
        "the first line cannot be read",
        "write the table as CSV in UTF-8, plain or compressed with gzip, xz or zstd, or as Parquet",
    ))?;
    let names: Vec<String> = headers.iter().map(str::to_owned).collect();
    check_column_names(&names)?;

    let mut table = begin(&names)?;
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        if separator != b',' && record.iter().any(has_decimal_comma) {
            let with_point = |field: &str| match has_decimal_comma(field) {
                true => field.replace(',', "."),
                false => field.to_owned(),
            };
            record = record.iter().map(with_point).collect();
        }
        let cells: Vec<TableCell<'_>> = record.iter().map(csv_cell).collect();
        add_row(&mut table, &format!("line {line}"), &cells)?;
    }
    Ok(table)
}

/// Returns true if `field` is a number whose decimal sign is a comma.
fn has_decimal_comma(field: &str) -> bool {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = field.strip_prefix(['-', '+']).unwrap_or(field);
    let parts = unsigned.split_once(',');
    parts.is_some_and(|(whole, rest)| !rest.is_empty() && is_number(whole) && is_number(rest))
}

/// Returns the byte that separates the columns of a text table that begins with `header`: a comma, or a tab,
/// a semicolon or a bar if the first line has no comma.
fn separator(header: &[u8]) -> u8 {
    let line = header.split(|byte| *byte == b'\n').next();
    let has = |byte: &u8| line.is_some_and(|line| line.contains(byte));
    [b',', b'\t', b';', b'|']
        .into_iter()
        .find(has)
        .unwrap_or(b',')
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
        let row: Row = read
            .map_err(explain_compression)
            .with_context(|| format!("row {number}"))?;
        let mut cells = Vec::with_capacity(names.len());
        for (name, field) in row.get_column_iter() {
            let cell = parquet_cell(field);
            cells.push(cell.with_context(|| format!("column `{name}`, row {number}"))?);
        }
        add_row(&mut table, &format!("row {number}"), &cells)?;
    }
    Ok(table)
}

/// Adds a hint to the error of a compression that is not read.
fn explain_compression(error: ParquetError) -> anyhow::Error {
    if error.to_string().contains("Disabled feature") {
        let hint = "write the file with the compression snappy, gzip or zstd";
        return hinted(error.to_string(), hint).into();
    }
    error.into()
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
        Field::Int(value) | Field::TimeMillis(value) => number_cell((*value).into()),
        Field::Long(value) | Field::TimeMicros(value) => number_cell(*value as f64),
        Field::Date(days) => TableCell::Time(i64::from(*days) * MICROS_PER_DAY, f64::from(*days)),
        Field::TimestampMillis(time) => TableCell::Time(time.saturating_mul(1000), *time as f64),
        Field::TimestampMicros(time) => TableCell::Time(*time, *time as f64),
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

/// Formats `micros` of the epoch like pandas: `2024-01-31`, or `2024-01-31 06:00:00`. Texts in this form
/// are in the order of time.
pub(super) fn time_text(micros: i64) -> Option<String> {
    let form = match micros % MICROS_PER_DAY {
        0 => "%Y-%m-%d",
        _ => "%Y-%m-%d %H:%M:%S%.f",
    };
    let time = jiff::Timestamp::from_microsecond(micros).ok()?;
    Some(time.strftime(form).to_string())
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
                "name every column in the first line; pandas writes its index without a name unless `index=False`"
            )
        );
        ensure!(
            !names[..at].contains(name),
            hinted(
                format!("duplicate column `{name}`"),
                "rename one of the two; the first line of a table has the names of its columns"
            )
        );
    }
    ensure!(
        names.len() > 1,
        hinted(
            format!(
                "it has {}, expected an index and at least one other",
                counted(names.len(), "column")
            ),
            "separate the columns by commas, semicolons, tabs or bars; their names are the first line"
        )
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
        for text in ["a,b\n1,2\n", "a\tb\n1\t2\n", "a;b\n1;2\n", "a|b\n1|2\n"] {
            assert_eq!(columns(text), ["a", "b"]);
        }
        // A comma in a later line is a decimal sign.
        assert_eq!(columns("a;b\n1,5;2\n"), ["a", "b"]);
    }

    #[test]
    fn compressed_tables_are_read() {
        // "a|b" and "1|2" on two lines, by gzip.
        let bytes = [
            31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 172, 73, 226, 50, 172, 49, 226, 2, 0, 124, 192,
            254, 69, 8, 0, 0, 0,
        ];
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("table.csv.gz");
        fs_err::write(&path, bytes).expect("written");
        let begin = |names: &[String]| Ok(names.to_vec());
        let names = read_table(&path, begin, |_, _, _| Ok(())).expect("read");
        assert_eq!(names, ["a", "b"]);

        fs_err::write(&path, ZIP_MAGIC).expect("written");
        let refused = read_table(&path, |_| Ok(()), |(), _, _| Ok(())).expect_err("rejected");
        assert!(format!("{refused:#}").contains("ZIP archive"));
    }

    #[test]
    fn times_are_texts_in_the_order_of_time() {
        let texts = [0, 3_600_000_000, 3_600_500_000, MICROS_PER_DAY].map(time_text);
        let wanted = [
            "1970-01-01",
            "1970-01-01 01:00:00",
            "1970-01-01 01:00:00.5",
            "1970-01-02",
        ];
        assert_eq!(texts.map(Option::unwrap_or_default), wanted);
        assert!(wanted.is_sorted());
    }

    #[test]
    fn decimal_commas_are_points_between_other_separators() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("table.csv");
        let cells = |text: &str| {
            fs_err::write(&path, text).expect("written");
            let mut written = Vec::new();
            let add = |(): &mut (), _: &str, cells: &[TableCell<'_>]| {
                written.extend(cells.iter().map(|cell| match cell {
                    TableCell::Written(text) => (*text).to_owned(),
                    other => format!("{other:?}"),
                }));
                Ok(())
            };
            read_csv(&path, |_| Ok(()), add).expect("read");
            written
        };
        assert_eq!(
            cells("a;b;c\n1,5;-,5;2.5\n1,2,3;x,1;#N/A\n"),
            ["1.5", "-.5", "2.5", "1,2,3", "x,1", "Missing"]
        );
        assert_eq!(cells("a,b\n\"1,5\",2\n"), ["1,5", "2"]);
    }
}
