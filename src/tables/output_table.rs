//! Tables of results, written as CSV, JSON or Parquet.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Cells of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputCells {
    /// Texts.
    Texts(Vec<String>),
    /// Numbers.
    Floats(Vec<f64>),
    /// Whole numbers.
    Integers(Vec<i64>),
}

/// Columns of the same length, each with its name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutputTable {
    /// Columns, in the order of the output.
    pub columns: Vec<(String, OutputCells)>,
}

impl OutputCells {
    fn len(&self) -> usize {
        match self {
            OutputCells::Texts(cells) => cells.len(),
            OutputCells::Floats(cells) => cells.len(),
            OutputCells::Integers(cells) => cells.len(),
        }
    }

    /// Returns a cell as text. A number is written so that reading it back gives the same bits.
    fn text_at(&self, row: usize) -> String {
        match self {
            OutputCells::Texts(cells) => cells[row].clone(),
            OutputCells::Floats(cells) => cells[row].to_string(),
            OutputCells::Integers(cells) => cells[row].to_string(),
        }
    }

    fn json_at(&self, row: usize) -> serde_json::Value {
        match self {
            OutputCells::Texts(cells) => cells[row].clone().into(),
            OutputCells::Floats(cells) => cells[row].into(),
            OutputCells::Integers(cells) => cells[row].into(),
        }
    }

    /// Returns the Parquet field of the column.
    fn parquet_field(&self, name: &str) -> Result<Arc<Type>> {
        let (physical, logical) = match self {
            OutputCells::Texts(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            OutputCells::Floats(_) => (PhysicalType::DOUBLE, None),
            OutputCells::Integers(_) => (PhysicalType::INT64, None),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    }

    /// Writes all cells to a column of a Parquet file.
    fn write_parquet(&self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            OutputCells::Texts(cells) => {
                let cells: Vec<ByteArray> = cells.iter().map(|cell| cell.as_str().into()).collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&cells, None, None)?;
            }
            OutputCells::Floats(cells) => {
                column
                    .typed::<DoubleType>()
                    .write_batch(cells, None, None)?;
            }
            OutputCells::Integers(cells) => {
                column.typed::<Int64Type>().write_batch(cells, None, None)?;
            }
        }
        Ok(())
    }
}

impl OutputTable {
    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.columns.first().map_or(0, |(_, cells)| cells.len())
    }

    /// Returns the rows as CSV, with the names of the columns first.
    pub fn to_csv(&self) -> Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|(name, _)| name))?;
        for row in 0..self.row_count() {
            writer.write_record(self.columns.iter().map(|(_, cells)| cells.text_at(row)))?;
        }
        String::from_utf8(writer.into_inner()?).context("names and cells are texts")
    }

    /// Returns the rows as JSON, one object per row.
    pub fn to_json(&self) -> Vec<serde_json::Value> {
        let mut rows = Vec::with_capacity(self.row_count());
        for row in 0..self.row_count() {
            let mut object = serde_json::Map::new();
            for (name, cells) in &self.columns {
                object.insert(name.clone(), cells.json_at(row));
            }
            rows.push(serde_json::Value::Object(object));
        }
        rows
    }

    /// Writes the file `path`: Parquet if its name ends in `.parquet`, otherwise CSV.
    pub fn write(&self, path: &Path) -> Result<()> {
        let is_parquet = path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        let bytes = if is_parquet {
            self.to_parquet()?
        } else {
            self.to_csv()?.into_bytes()
        };
        poolcast_base::files::write_atomic(path, &bytes)
    }

    fn to_parquet(&self) -> Result<Vec<u8>> {
        let mut fields = Vec::with_capacity(self.columns.len());
        for (name, cells) in &self.columns {
            fields.push(cells.parquet_field(name)?);
        }
        let schema = Type::group_type_builder("schema")
            .with_fields(fields)
            .build()?;
        let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .build();

        let mut writer =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        let mut rows = writer.next_row_group()?;
        for (_, cells) in &self.columns {
            let mut column = rows.next_column()?.context("a column for each field")?;
            cells.write_parquet(&mut column)?;
            column.close()?;
        }
        rows.close()?;
        Ok(writer.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_file::{TableCell, read_table};

    fn small_table() -> OutputTable {
        let columns = [
            (
                "id",
                OutputCells::Texts(["a,1", "say \"no\""].map(str::to_owned).to_vec()),
            ),
            ("p", OutputCells::Floats(vec![0.1, 1.0 / 3.0])),
            ("code", OutputCells::Integers(vec![-1, 1 << 53])),
        ];
        OutputTable {
            columns: columns
                .map(|(name, cells)| (name.to_owned(), cells))
                .to_vec(),
        }
    }

    #[test]
    fn rows_are_read_back_to_the_bit() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["sheet.csv", "sheet.parquet", "SHEET.PARQUET"] {
            let path = dir.path().join(name);
            small_table().write(&path).expect("written");
            let head = |names: &[String]| {
                assert_eq!(names, ["id", "p", "code"]);
                Ok(Vec::new())
            };
            let found = read_table(&path, head, |rows: &mut Vec<String>, _, cells| {
                let word = |cell: &TableCell<'_>| match cell {
                    TableCell::Number(number) => number.to_string(),
                    TableCell::Text(text) | TableCell::Written(text) => (*text).to_owned(),
                    other => format!("{other:?}"),
                };
                rows.push(cells.iter().map(word).collect::<Vec<_>>().join(" | "));
                Ok(())
            });
            let wanted = [
                "a,1 | 0.1 | -1",
                "say \"no\" | 0.3333333333333333 | 9007199254740992",
            ];
            assert_eq!(found.expect("read"), wanted, "{name}");
        }
        assert_eq!(
            small_table().to_json()[1],
            serde_json::json!({"id": "say \"no\"", "p": 1.0 / 3.0, "code": 1u64 << 53})
        );
    }

    #[test]
    fn files_that_claim_more_rows_than_bytes_can_hold_are_rejected() {
        let rows = 500_000;
        let repeated = OutputTable {
            columns: vec![
                ("id".to_owned(), OutputCells::Integers(vec![7; rows])),
                ("p".to_owned(), OutputCells::Floats(vec![0.5; rows])),
            ],
        };
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("sheet.parquet");
        repeated.write(&path).expect("written");
        let error = read_table(&path, |_| Ok(()), |(), _, _| Ok(())).expect_err("rejected");
        let text = format!("{error:#}");
        assert!(text.contains("it claims 500000 rows in"), "{text}");
    }

    /// The fuzzer found these files. Their decoder would reserve 270 MB, and 5 GB.
    #[test]
    fn parquet_files_with_huge_claims_are_rejected() {
        for (file, reason) in [
            ("huge-page", "a page has no header"),
            ("huge-dictionary", "a dictionary claims 671088616 values"),
        ] {
            let path = format!("../../tests/fuzz/corpus/parquet/{file}.parquet");
            let error = read_table(path.as_ref(), |_| Ok(()), |(), _, _| Ok(()));
            let text = format!("{:#}", error.expect_err("rejected"));
            assert!(text.contains(reason), "{text}");
        }
    }

    /// The decoder panics on this file, which the fuzzer found.
    #[test]
    fn damaged_parquet_files_are_rejected() {
        let path = Path::new("../../tests/fuzz/corpus/parquet/short-page.parquet");
        let error = read_table(path, |_| Ok(()), |(), _, _| Ok(())).expect_err("rejected");
        let text = format!("{error:#}");
        assert!(text.contains("the Parquet file is damaged"), "{text}");
    }
}
