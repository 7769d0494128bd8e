//! Tables in shards: the name of a column, its type and how a row says it stand in one place, for
//! writing, reading and checking.

/// Defines a table of columns of equal length: a struct of vectors, which is filled from rows and
/// written to a shard, and a struct of slices, which is found in a mapped shard. A column has the
/// name of its field.
///
/// ```text
/// column_table! {
///     /// Points as they are written.
///     struct PointColumns from |point: &Point|;
///     /// Points as they are read.
///     struct Points<'a>;
///
///     /// Metres to the east.
///     x: f64 = point.x,
/// }
/// ```
#[macro_export]
macro_rules! column_table {
    (
        $(#[$vectors_doc:meta])*
        $vectors_vis:vis struct $Vectors:ident from |$row:ident: &$Row:ty|;
        $(#[$slices_doc:meta])*
        $slices_vis:vis struct $Slices:ident<'a>;

        $(
            $(#[$column_doc:meta])*
            $column:ident: $Element:ty = $value:expr,
        )+
    ) => {
        $(#[$vectors_doc])*
        #[derive(Debug, Default)]
        $vectors_vis struct $Vectors {
            $( $column: Vec<$Element>, )+
        }

        #[allow(dead_code, reason = "not every table needs each of these")]
        impl $Vectors {
            /// Columns without rows, with room for so many.
            $vectors_vis fn with_capacity(rows: usize) -> Self {
                $Vectors { $( $column: Vec::with_capacity(rows), )+ }
            }

            /// Forgets all rows, but keeps the memory.
            $vectors_vis fn clear(&mut self) {
                $( self.$column.clear(); )+
            }

            /// Adds `rows`, one column after another.
            $vectors_vis fn extend(&mut self, rows: &[$Row]) {
                $( self.$column.extend(rows.iter().map(|$row: &$Row| $value)); )+
            }

            /// The columns with their names, to be laid out in a shard.
            $vectors_vis fn named(&self) -> Vec<(String, $crate::shard::ShardColumn<'_>)> {
                vec![$(
                    (
                        stringify!($column).to_owned(),
                        $crate::shard::ShardColumn::vector(&self.$column),
                    ),
                )+]
            }
        }

        $(#[$slices_doc])*
        #[derive(Debug, Clone, Copy)]
        $slices_vis struct $Slices<'a> {
            $( $(#[$column_doc])* $slices_vis $column: &'a [$Element], )+
        }

        #[allow(dead_code, reason = "not every table needs each of these")]
        impl<'a> $Slices<'a> {
            /// Finds the columns in `shard`.
            ///
            /// # Errors
            /// Fails when a column is missing or of another type.
            pub(super) fn from_shard(shard: &'a $crate::shard::Shard) -> anyhow::Result<Self> {
                Ok($Slices { $( $column: shard.column(stringify!($column))?, )+ })
            }

            /// Whether every column has so many rows.
            pub(super) fn have_length(&self, rows: usize) -> bool {
                $( self.$column.len() == rows )&&+
            }

            /// The rows in `range`.
            #[inline]
            $slices_vis fn slice(&self, range: std::ops::Range<usize>) -> Self {
                $Slices { $( $column: &self.$column[range.clone()], )+ }
            }
        }
    };
}
