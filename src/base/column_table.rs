//! Tables in shards: a macro that defines each column's name, type and value once, for writing,
//! reading and checking.

/// Defines a table of columns of equal length, as two structs. The struct of vectors is filled from
/// rows and written to a shard. The struct of slices reads the columns of a mapped shard. A column
/// has the name of its field.
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
            /// Creates columns without rows, with capacity for `rows` rows.
            $vectors_vis fn with_capacity(rows: usize) -> Self {
                $Vectors { $( $column: Vec::with_capacity(rows), )+ }
            }

            /// Removes all rows, but keeps the allocated memory.
            $vectors_vis fn clear(&mut self) {
                $( self.$column.clear(); )+
            }

            /// Appends `rows`, one column after another.
            $vectors_vis fn extend(&mut self, rows: &[$Row]) {
                $( self.$column.extend(rows.iter().map(|$row: &$Row| $value)); )+
            }

            /// Returns the columns with their names, for the layout of a shard.
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
            /// Fails if a column is missing or of another type.
            pub(super) fn from_shard(shard: &'a $crate::shard::Shard) -> anyhow::Result<Self> {
                Ok($Slices { $( $column: shard.column(stringify!($column))?, )+ })
            }

            /// Returns true if every column has `rows` rows.
            pub(super) fn have_length(&self, rows: usize) -> bool {
                $( self.$column.len() == rows )&&+
            }

            /// Returns the rows in `range`.
            #[inline]
            $slices_vis fn slice(&self, range: std::ops::Range<usize>) -> Self {
                $Slices { $( $column: &self.$column[range.clone()], )+ }
            }
        }
    };
}
