//! Two rows → how alike they are, and a cache of one row against all.

use serde::{Deserialize, Serialize};

use super::matrix::dot;

/// Bytes that a [`Cache`] may take: as many as scikit-learn's by default.
const BUDGET: usize = 200 << 20;

/// The likeness of two rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kernel {
    /// Their product.
    Linear,
    /// `exp(-gamma * distance²)`.
    Rbf {
        /// Above 0.
        gamma: f64,
    },
}

impl Kernel {
    /// The likeness of two rows `[f]`.
    pub(super) fn of(self, a: &[f64], b: &[f64]) -> f64 {
        self.by_products(dot(a, b), dot(a, a), dot(b, b))
    }

    /// As [`Kernel::of`], from the product of both rows and that of each with itself.
    fn by_products(self, ab: f64, aa: f64, bb: f64) -> f64 {
        match self {
            Kernel::Linear => ab,
            // Rounding makes the distance of equal rows a little less than 0.
            Kernel::Rbf { gamma } => (-gamma * (aa + bb - 2.0 * ab).max(0.0)).exp(),
        }
    }
}

/// Rows `[n, f]` and the likeness of some to all, the latest asked for: what does not fit is found anew.
pub(super) struct Cache<'a> {
    kernel: Kernel,
    rows: &'a [f64],
    f: usize,
    /// The product of each row with itself, `[n]`.
    squares: Vec<f64>,
    /// `[n]`, each `[n]` once asked for.
    known: Vec<Option<Box<[f32]>>>,
    /// When each was last asked for, `[n]`.
    asked: Vec<u64>,
    clock: u64,
    /// How many more fit.
    room: usize,
}

impl<'a> Cache<'a> {
    /// An empty cache over `rows` `[n, f]`.
    pub(super) fn new(kernel: Kernel, rows: &'a [f64], f: usize) -> Cache<'a> {
        let n = rows.len() / f;
        let squares = rows.chunks_exact(f).map(|row| dot(row, row)).collect();
        // Two at least: a step looks at two rows at once.
        let room = (BUDGET / (4 * n).max(1)).max(2);
        Cache {
            kernel,
            rows,
            f,
            squares,
            known: vec![None; n],
            asked: vec![0; n],
            clock: 0,
            room,
        }
    }

    /// The likeness of row `i` to itself.
    pub(super) fn own(&self, i: usize) -> f64 {
        self.kernel
            .by_products(self.squares[i], self.squares[i], self.squares[i])
    }

    /// The likeness of row `i` to every row, `[n]`.
    pub(super) fn row(&mut self, i: usize) -> &[f32] {
        self.clock += 1;
        self.asked[i] = self.clock;
        if self.known[i].is_none() {
            self.make_room();
            self.known[i] = Some(self.find(i));
        }
        self.known[i].as_deref().unwrap_or_default()
    }

    /// The likeness to rows `i` and `j`.
    pub(super) fn rows(&mut self, i: usize, j: usize) -> (&[f32], &[f32]) {
        self.row(i);
        self.row(j);
        (
            self.known[i].as_deref().unwrap_or_default(),
            self.known[j].as_deref().unwrap_or_default(),
        )
    }

    /// Forgets the row asked for longest ago, when there is no room for another.
    fn make_room(&mut self) {
        if self.room > 0 {
            self.room -= 1;
            return;
        }
        let held = (0..self.known.len()).filter(|i| self.known[*i].is_some());
        if let Some(oldest) = held.min_by_key(|i| self.asked[*i]) {
            self.known[oldest] = None;
        }
    }

    fn find(&self, i: usize) -> Box<[f32]> {
        let own = &self.rows[i * self.f..][..self.f];
        let likeness = |(row, square): (&[f64], &f64)| {
            self.kernel
                .by_products(dot(own, row), self.squares[i], *square) as f32
        };
        self.rows
            .chunks_exact(self.f)
            .zip(&self.squares)
            .map(likeness)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_gives_the_same_rows() {
        let rows: Vec<f64> = (0..12).map(|at| f64::from(at * at % 7)).collect();
        for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 0.1 }] {
            let mut cache = Cache::new(kernel, &rows, 2);
            cache.room = 2;
            for (i, j) in [(0, 1), (1, 2), (5, 0), (0, 5), (3, 3), (4, 5), (1, 0)] {
                let (of_i, of_j) = cache.rows(i, j);
                let direct =
                    |i: usize, k: usize| kernel.of(&rows[2 * i..][..2], &rows[2 * k..][..2]) as f32;
                assert!(
                    (0..6).all(|k| of_i[k] == direct(i, k) && of_j[k] == direct(j, k)),
                    "{i} {j}"
                );
                assert!(cache.known.iter().flatten().count() <= 2);
            }
        }
    }
}
