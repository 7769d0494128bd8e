//! Grows one decision tree from binned columns and rows with the derivatives of their loss.

use std::ops::Range;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::bins::{BinnedColumn, MAX_BINS};
use super::histogram::{ColumnHistogram, FilledBin, NodeHistogram};
use super::sampled_rows::{GradientSum, RowBins, SampledRow};
use super::split::{ColumnSplit, SplitRule, SplitSearch};
use super::tree::{DecisionTree, SplitQuestion};

/// Settings for growing a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrowSettings {
    /// Maximum number of splits between the root and a leaf.
    pub(crate) max_depth: usize,
    /// Rule that rates splits and leaves.
    pub(crate) rule: SplitRule,
    /// Factor of the leaf values.
    pub(crate) learning_rate: f64,
}

/// Columns that a split chooses from.
#[derive(Debug)]
pub(crate) enum SplitColumns<'a> {
    /// The columns at these indices, at every node.
    Fixed(&'a [usize]),
    /// Some of all columns, drawn again for every node.
    Drawn(&'a mut DrawnColumns),
}

/// Boundary at which a drawn column is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SplitPosition {
    /// Boundary with the largest gain.
    Best,
    /// Random boundary between two bins.
    Drawn,
}

/// Random choice of columns for one node after another.
#[derive(Debug)]
pub(crate) struct DrawnColumns {
    count: usize,
    place: SplitPosition,
    /// Indices of all columns, in an order that draws change.
    places: Vec<usize>,
    /// Columns that have only one value among the rows of the node, as was found at it or at the
    /// nodes above it, in this order.
    constant: Vec<usize>,
    /// For each column, true if it is among `constant`, `[f]`.
    is_constant: Vec<bool>,
    generator: ChaCha8Rng,
}

impl DrawnColumns {
    /// Draws `count` of `f` columns for every node. If each of these has only one value, it draws
    /// more, as scikit-learn does.
    pub(crate) fn new(
        count: usize,
        place: SplitPosition,
        f: usize,
        generator: ChaCha8Rng,
    ) -> DrawnColumns {
        DrawnColumns {
            count,
            place,
            places: (0..f).collect(),
            constant: Vec::new(),
            is_constant: vec![false; f],
            generator,
        }
    }

    /// Draws a column that was not drawn yet, and returns its index. `drawn` columns were drawn
    /// before.
    fn draw(&mut self, drawn: usize) -> usize {
        let other = self.generator.random_range(drawn..self.places.len());
        self.places.swap(drawn, other);
        self.places[drawn]
    }

    /// Notes that a column has only one value among the rows of this node.
    fn add_constant(&mut self, column: usize) {
        self.constant.push(column);
        self.is_constant[column] = true;
    }

    /// Forgets the constant columns but for the first `count`, which were found at the nodes above.
    fn keep_constants(&mut self, count: usize) {
        for column in self.constant.drain(count..) {
            self.is_constant[column] = false;
        }
    }

    /// Splits a column. A random boundary needs no histogram.
    fn split(
        &mut self,
        search: &SplitSearch<'_>,
        node: RowBins<'_>,
        sums: &mut ColumnSums,
    ) -> Option<ColumnSplit> {
        match self.place {
            SplitPosition::Best => sums.best_split(search, node),
            SplitPosition::Drawn => {
                let draw_last = |bins| self.generator.random_range(bins);
                search.drawn_split(node, draw_last)
            }
        }
    }
}

/// Sums of one column, reused for all columns and nodes.
#[derive(Debug)]
struct ColumnSums {
    histogram: ColumnHistogram,
    filled: Vec<FilledBin>,
}

impl ColumnSums {
    /// Returns the best split of rows in these bins.
    fn best_split(&mut self, search: &SplitSearch<'_>, node: RowBins<'_>) -> Option<ColumnSplit> {
        self.histogram.list_filled(node, &mut self.filled);
        search.best_split(&self.filled, usize::from(node.missing_bin))
    }
}

/// A tree, and the gains of its splits.
#[derive(Debug)]
pub(crate) struct GrownTree {
    /// Decision tree.
    pub(crate) tree: DecisionTree,
    /// Total gain of the splits at each column, `[f]`.
    pub(crate) gains: Vec<f64>,
}

/// Grows a tree on `rows`, whose bins are in `columns` `[f]`. A level of the tree takes time linear
/// in the number of rows.
pub(crate) fn grow_tree(
    settings: &GrowSettings,
    columns: &[BinnedColumn],
    choice: SplitColumns<'_>,
    rows: Vec<SampledRow>,
) -> GrownTree {
    let mut grower = TreeGrower {
        settings,
        columns,
        choice,
        set_aside: rows.clone(),
        rows,
        row_bins: Vec::new(),
        sums: ColumnSums {
            histogram: ColumnHistogram::new(),
            filled: Vec::with_capacity(MAX_BINS),
        },
        tree: DecisionTree::new(),
        gains: vec![0.0; columns.len()],
    };
    let mut pending = vec![grower.root()];
    while let Some(node) = pending.pop() {
        match grower.find_split(&node) {
            Some(split) => pending.extend(grower.split_node(node, &split)),
            None => grower.make_leaf(&node),
        }
    }
    GrownTree {
        tree: grower.tree,
        gains: grower.gains,
    }
}

/// A node that may still be split.
struct PendingNode {
    /// Index of the node in the tree.
    place: usize,
    /// Number of splits that lead to the node.
    depth: usize,
    /// Range of the node's rows in [`TreeGrower::rows`].
    rows: Range<usize>,
    /// Sum of the derivatives of its rows.
    sum: GradientSum,
    /// Sums over fixed columns. `None` for drawn columns, and for a node with so few rows that
    /// summing them for each column costs less.
    histogram: Option<NodeHistogram>,
    /// Number of drawn columns that were found to be constant at the nodes above.
    constants: usize,
}

/// Best split of a node.
struct NodeSplit {
    column: usize,
    split: ColumnSplit,
}

/// State of a tree that grows.
struct TreeGrower<'a> {
    settings: &'a GrowSettings,
    /// All columns, `[f]`.
    columns: &'a [BinnedColumn],
    choice: SplitColumns<'a>,
    /// Rows, node by node. The rows of a node keep the order of the table.
    rows: Vec<SampledRow>,
    /// Buffer as long as `rows`, for [`TreeGrower::part_rows`].
    set_aside: Vec<SampledRow>,
    /// Memory of [`RowBins`].
    row_bins: Vec<u8>,
    sums: ColumnSums,
    tree: DecisionTree,
    gains: Vec<f64>,
}

impl TreeGrower<'_> {
    /// Returns the root node, which has all rows.
    fn root(&self) -> PendingNode {
        let rows = 0..self.rows.len();
        let histogram = if self.is_worth_summing(&rows, 0) {
            self.sum_rows(&rows)
        } else {
            None
        };
        PendingNode {
            place: 0,
            depth: 0,
            sum: GradientSum::of_rows(&self.rows),
            rows,
            histogram,
            constants: 0,
        }
    }

    /// Returns true if sums for every bin of every column cost a node less than sums of its rows
    /// alone.
    fn is_worth_summing(&self, rows: &Range<usize>, depth: usize) -> bool {
        rows.len() >= MAX_BINS && depth < self.settings.max_depth
    }

    /// Returns the histogram of `rows` over fixed columns, or `None` if columns are drawn.
    fn sum_rows(&self, rows: &Range<usize>) -> Option<NodeHistogram> {
        match &self.choice {
            SplitColumns::Fixed(places) => {
                let rows = &self.rows[rows.clone()];
                Some(NodeHistogram::new(self.columns, places, rows))
            }
            SplitColumns::Drawn(_) => None,
        }
    }

    /// Turns a node into a leaf.
    fn make_leaf(&mut self, node: &PendingNode) {
        let value = self.settings.rule.leaf_value(node.sum);
        self.tree
            .set_leaf(node.place, self.settings.learning_rate * value);
    }

    /// Finds the best split of a node; returns `None` if the node must be a leaf.
    fn find_split(&mut self, node: &PendingNode) -> Option<NodeSplit> {
        let rule = &self.settings.rule;
        let rows = &self.rows[node.rows.clone()];
        let is_uniform = rows.iter().all(|row| row.agrees_with(rows[0]));
        if node.depth >= self.settings.max_depth || is_uniform || !rule.could_split(node.sum) {
            return None;
        }

        let search = SplitSearch::new(rule, node.sum);
        match &mut self.choice {
            SplitColumns::Fixed(places) => {
                let mut best = None;
                for (at, column) in places.iter().copied().enumerate() {
                    let binned = &self.columns[column];
                    let split = if let Some(histogram) = &node.histogram {
                        let filled = &mut self.sums.filled;
                        histogram.list_filled(at, filled);
                        search.best_split(filled, binned.missing_bin())
                    } else {
                        let bins = RowBins::new(binned, rows, &mut self.row_bins);
                        self.sums.best_split(&search, bins)
                    };
                    keep_best_split(&mut best, column, split);
                }
                best
            }
            SplitColumns::Drawn(drawn) => {
                // The subtree that was grown last found columns that are constant only there.
                drawn.keep_constants(node.constants);
                let mut best = None;
                let mut has_choice = false;
                for at in 0..self.columns.len() {
                    // As in scikit-learn, draw more columns while each has only one value.
                    if at >= drawn.count && has_choice {
                        break;
                    }
                    let column = drawn.draw(at);
                    if drawn.is_constant[column] {
                        continue;
                    }
                    let bins = RowBins::new(&self.columns[column], rows, &mut self.row_bins);
                    if bins.are_same() {
                        drawn.add_constant(column);
                        continue;
                    }
                    has_choice = true;
                    let split = drawn.split(&search, bins, &mut self.sums);
                    keep_best_split(&mut best, column, split);
                }
                best
            }
        }
    }

    /// Splits a node in two. The smaller child comes last, so that it is grown first. The number of
    /// waiting histograms is then at most the number of times that the rows can be halved.
    fn split_node(&mut self, node: PendingNode, found: &NodeSplit) -> [PendingNode; 2] {
        let NodeSplit { column, split } = found;
        // Rounding can make the gain of a useless split slightly negative.
        self.gains[*column] += split.gain.max(0.0);
        let question = SplitQuestion {
            column: *column,
            below: self.columns[*column].bound_between(split.bins.last, split.bins.next),
            missing_first: split.missing_first,
        };
        let place = self.tree.split(node.place, question);
        let middle = node.rows.start + self.part_rows(node.rows.clone(), found);

        let constants = match &self.choice {
            SplitColumns::Fixed(_) => 0,
            SplitColumns::Drawn(drawn) => drawn.constant.len(),
        };
        let child = |place: usize, rows: Range<usize>, sum: GradientSum| PendingNode {
            place,
            depth: node.depth + 1,
            rows,
            sum,
            histogram: None,
            constants,
        };
        let first = child(place, node.rows.start..middle, split.first);
        let second = child(
            place + 1,
            middle..node.rows.end,
            node.sum.minus(split.first),
        );
        let mut children = if first.rows.len() < second.rows.len() {
            [second, first]
        } else {
            [first, second]
        };
        if let Some(histogram) = node.histogram {
            self.sum_children(histogram, &mut children);
        }
        children
    }

    /// Computes the histograms of two children from the histogram of their node. It sums only the
    /// rows of the smaller child, and subtracts them for the larger one.
    fn sum_children(&self, mut histogram: NodeHistogram, children: &mut [PendingNode; 2]) {
        let [larger, smaller] = children;
        if !self.is_worth_summing(&larger.rows, larger.depth) {
            return;
        }
        if let Some(of_smaller) = self.sum_rows(&smaller.rows) {
            histogram.subtract(&of_smaller);
            smaller.histogram = Some(of_smaller);
            larger.histogram = Some(histogram);
        }
    }

    /// Moves the rows of a node that go first before the others; returns their number.
    fn part_rows(&mut self, rows: Range<usize>, found: &NodeSplit) -> usize {
        let NodeSplit { column, split } = found;
        let binned = &self.columns[*column];
        let row_bins = binned.row_bins();
        let rows = &mut self.rows[rows];
        let set_aside = &mut self.set_aside[..rows.len()];

        // The loop has no branch that depends on a row, because the processor could not predict it.
        let mut first = 0;
        for at in 0..rows.len() {
            let row = rows[at];
            let bin = row.bin(row_bins);
            let is_missing = usize::from(bin) == binned.missing_bin();
            let goes_first = if is_missing {
                split.missing_first
            } else {
                bin <= split.bins.last
            };
            rows[first] = row;
            set_aside[at - first] = row;
            first += usize::from(goes_first);
        }
        let second = rows.len() - first;
        rows[first..].copy_from_slice(&set_aside[..second]);
        first
    }
}

/// Replaces the best split so far by a split at a column, if it gains more.
fn keep_best_split(best: &mut Option<NodeSplit>, column: usize, split: Option<ColumnSplit>) {
    let Some(split) = split else {
        return;
    };
    if best
        .as_ref()
        .is_none_or(|best| split.gain > best.split.gain)
    {
        *best = Some(NodeSplit { column, split });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solvers::matrix::ColumnMatrix;
    use crate::trees::bins::bin_columns;
    use crate::trees::sampled_rows::DerivativeUnits;

    const UNITS: DerivativeUnits = DerivativeUnits {
        gradient: 1.0,
        hessian: 1.0,
    };

    /// Random rows with squared loss.
    struct RandomRows {
        x: ColumnMatrix,
        truth: Vec<f64>,
    }

    impl RandomRows {
        /// Creates rows of three columns of whole numbers up to 40. The second column has missing
        /// values.
        fn new(n: usize) -> RandomRows {
            let mut generator = poolcast_base::seed::generator(1, "grown rows", &[]);
            let mut values: Vec<f64> = (0..3 * n)
                .map(|_| f64::from(generator.random_range(0..=40)))
                .collect();
            for value in values[n..2 * n].iter_mut().step_by(7) {
                *value = f64::NAN;
            }

            let x = ColumnMatrix { n, f: 3, values };
            let mut truth = Vec::new();
            for row in 0..n {
                let known = x.column(1)[row];
                let slope = if known.is_nan() { 20.0 } else { known };
                truth.push((x.column(0)[row] + slope * generator.random_range(0.5..1.0)).round());
            }
            RandomRows { x, truth }
        }

        fn sampled(&self) -> Vec<SampledRow> {
            let truth = self.truth.iter().enumerate();
            truth
                .map(|(row, truth)| SampledRow::new(row, -truth, 1.0, UNITS))
                .collect()
        }

        fn grow(&self, settings: &GrowSettings, choice: SplitColumns<'_>) -> GrownTree {
            grow_tree(settings, &bin_columns(&self.x), choice, self.sampled())
        }

        /// Returns the prediction of the tree for each row.
        fn scores(&self, tree: &DecisionTree) -> Vec<f64> {
            let value = |row: usize| move |column: usize| self.x.column(column)[row];
            (0..self.x.n)
                .map(|row| tree.score_row(value(row)))
                .collect()
        }

        /// Returns the sum of squares around `scores`.
        fn squares_left(&self, scores: &[f64]) -> f64 {
            let pairs = self.truth.iter().zip(scores);
            pairs.map(|(truth, score)| (truth - score).powi(2)).sum()
        }

        /// Returns the sum of squares around the means of the two sides.
        fn squares_of_sides(&self, goes_first: impl Fn(usize) -> bool) -> f64 {
            let mut sums = [0.0; 2];
            let mut counts = [0.0; 2];
            for (row, truth) in self.truth.iter().enumerate() {
                let side = usize::from(!goes_first(row));
                sums[side] += truth;
                counts[side] += 1.0;
            }
            let mean = |row: usize| {
                let side = usize::from(!goes_first(row));
                sums[side] / counts[side]
            };
            let scores: Vec<f64> = (0..self.truth.len()).map(mean).collect();
            self.squares_left(&scores)
        }
    }

    fn settings(max_depth: usize, min_child_weight: f64) -> GrowSettings {
        GrowSettings {
            max_depth,
            rule: SplitRule {
                reg_lambda: 0.0,
                reg_alpha: 0.0,
                min_gain: -1.0,
                min_child_weight,
                units: UNITS,
            },
            learning_rate: 1.0,
        }
    }

    const ALL_COLUMNS: SplitColumns<'_> = SplitColumns::Fixed(&[0, 1, 2]);

    fn draw_one() -> DrawnColumns {
        DrawnColumns::new(
            1,
            SplitPosition::Best,
            3,
            poolcast_base::seed::generator(1, "drawn columns", &[]),
        )
    }

    #[test]
    fn best_split_minimises_the_squares() {
        for n in [100, 700] {
            let rows = RandomRows::new(n);
            let grown = rows.grow(&settings(1, 0.0), ALL_COLUMNS);
            let ours = rows.squares_left(&rows.scores(&grown.tree));

            let mut least = f64::INFINITY;
            for column in 0..3 {
                let values = rows.x.column(column);
                for below in 1..=41 {
                    for missing_first in [false, true] {
                        let squares = rows.squares_of_sides(|row| {
                            let value = values[row];
                            value < f64::from(below) || value.is_nan() && missing_first
                        });
                        least = least.min(squares);
                    }
                }
            }
            assert!(
                (ours - least).abs() < 1e-6 * least,
                "{n}: {ours}, and {least}"
            );

            let mean = rows.truth.iter().sum::<f64>() / n as f64;
            let gained = rows.squares_left(&vec![mean; n]) - ours;
            let said: f64 = grown.gains.iter().sum();
            assert!(
                (gained - said).abs() < 1e-6 * said,
                "{n}: {gained}, and {said}"
            );
        }
    }

    #[test]
    fn leaves_are_means_of_enough_rows() {
        let rows = RandomRows::new(1_000);
        for choice in [ALL_COLUMNS, SplitColumns::Drawn(&mut draw_one())] {
            let scores = rows.scores(&rows.grow(&settings(64, 30.0), choice).tree);
            let mut leaves: std::collections::BTreeMap<u64, Vec<f64>> = Default::default();
            for (score, truth) in scores.iter().zip(&rows.truth) {
                leaves.entry(score.to_bits()).or_default().push(*truth);
            }
            assert!(leaves.len() > 8);
            for (score, truth) in leaves {
                let mean = truth.iter().sum::<f64>() / truth.len() as f64;
                assert!(truth.len() >= 30 && (mean - f64::from_bits(score)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn unlimited_tree_fits_every_row() {
        let mut rows = RandomRows::new(2_000);
        for row in 0..2_000 {
            rows.x.values[row] = (row % 50) as f64;
            rows.x.values[4_000 + row] = (row / 50) as f64;
        }
        for choice in [ALL_COLUMNS, SplitColumns::Drawn(&mut draw_one())] {
            let grown = rows.grow(&settings(usize::MAX, 0.0), choice);
            let left = rows.squares_left(&rows.scores(&grown.tree));
            assert!(left < 1e-6, "{left}");
        }
    }

    #[test]
    fn constant_columns_are_redrawn() {
        let mut rows = RandomRows::new(50);
        rows.x.values[..100].fill(1.0);
        let grown = rows.grow(&settings(1, 0.0), SplitColumns::Drawn(&mut draw_one()));
        assert!(grown.gains[2] > 0.0, "{:?}", grown.gains);
    }
}
