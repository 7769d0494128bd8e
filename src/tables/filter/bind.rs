//! Binds the tree of a filter to the columns of a table, and evaluates it for each row.

use std::cmp::Ordering;

use anyhow::{Result, bail};

use super::parse::{ComparisonOperator, FilterNode, FilterOperand};
use crate::metadata::{MetadataColumn, MetadataTable};
use poolcast_base::error::hinted;

/// A filter bound to columns. It only compares values of the same kind.
pub(super) enum BoundFilter<'a> {
    Or(Vec<BoundFilter<'a>>),
    And(Vec<BoundFilter<'a>>),
    Not(Box<BoundFilter<'a>>),
    Compare(BoundOperand<'a>, ComparisonOperator, BoundOperand<'a>),
    In(BoundOperand<'a>, Vec<BoundOperand<'a>>),
    IsMissing(BoundOperand<'a>),
    Is(BoundOperand<'a>),
}

/// Operand of a comparison: a value, or the value of a column in the row.
#[derive(Clone, Copy)]
pub(super) enum BoundOperand<'a> {
    Column(&'a MetadataColumn),
    Value(OperandValue<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum OperandValue<'a> {
    Number(f64),
    Text(&'a str),
    Bool(bool),
}

/// Kind of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandKind {
    Number,
    Text,
    Bool,
}

impl OperandKind {
    /// Returns the kind in words, for a message.
    fn describe(self) -> &'static str {
        match self {
            OperandKind::Number => "a number",
            OperandKind::Text => "a text",
            OperandKind::Bool => "a Boolean",
        }
    }
}

/// Binds the filter `node` to the columns of `metadata`.
///
/// # Errors
/// Fails if a column does not exist, or if values of different kinds are compared.
pub(super) fn bind_filter<'a>(
    node: &'a FilterNode,
    metadata: &'a MetadataTable,
) -> Result<BoundFilter<'a>> {
    Ok(match node {
        FilterNode::Or(nodes) => BoundFilter::Or(bind_all(nodes, metadata)?),
        FilterNode::And(nodes) => BoundFilter::And(bind_all(nodes, metadata)?),
        FilterNode::Not(node) => BoundFilter::Not(Box::new(bind_filter(node, metadata)?)),
        FilterNode::IsMissing(operand) => BoundFilter::IsMissing(bind_operand(operand, metadata)?),
        FilterNode::Is(operand) => bind_truth(operand, metadata)?,
        FilterNode::Compare(left, operator, right) => {
            bind_comparison(left, *operator, right, metadata)?
        }
        FilterNode::In(operand, values) => bind_list(operand, values, metadata)?,
    })
}

fn bind_all<'a>(
    nodes: &'a [FilterNode],
    metadata: &'a MetadataTable,
) -> Result<Vec<BoundFilter<'a>>> {
    nodes
        .iter()
        .map(|node| bind_filter(node, metadata))
        .collect()
}

/// Binds an operand without a comparison, which must be true or false.
fn bind_truth<'a>(
    operand: &'a FilterOperand,
    metadata: &'a MetadataTable,
) -> Result<BoundFilter<'a>> {
    let bound = bind_operand(operand, metadata)?;
    if bound.kind() != OperandKind::Bool && !bound.is_empty() {
        bail!(hinted(
            format!(
                "{} is {}, expected true or false",
                describe_operand(operand),
                bound.kind().describe()
            ),
            "compare it with a value, as in `age >= 18` or `flag == 1`"
        ));
    }
    Ok(BoundFilter::Is(bound))
}

fn bind_comparison<'a>(
    left: &'a FilterOperand,
    operator: ComparisonOperator,
    right: &'a FilterOperand,
    metadata: &'a MetadataTable,
) -> Result<BoundFilter<'a>> {
    let bound_left = bind_operand(left, metadata)?;
    let bound_right = bind_operand(right, metadata)?;
    check_same_kind((left, bound_left), (right, bound_right))?;

    // Truth values have no order, so only `==` and `!=` can compare them.
    let is_equality = matches!(
        operator,
        ComparisonOperator::Equal | ComparisonOperator::Unequal
    );
    if !is_equality && bound_left.kind() == OperandKind::Bool {
        bail!(
            "{} is a Boolean, which only `==` and `!=` can compare",
            describe_operand(left)
        );
    }
    Ok(BoundFilter::Compare(bound_left, operator, bound_right))
}

fn bind_list<'a>(
    operand: &'a FilterOperand,
    values: &'a [FilterOperand],
    metadata: &'a MetadataTable,
) -> Result<BoundFilter<'a>> {
    let left = bind_operand(operand, metadata)?;
    let mut bound_values = Vec::with_capacity(values.len());
    for value in values {
        let right = bind_operand(value, metadata)?;
        check_same_kind((operand, left), (value, right))?;
        bound_values.push(right);
    }
    Ok(BoundFilter::In(left, bound_values))
}

fn bind_operand<'a>(
    operand: &'a FilterOperand,
    metadata: &'a MetadataTable,
) -> Result<BoundOperand<'a>> {
    Ok(match operand {
        FilterOperand::Column(name) => BoundOperand::Column(metadata.column(name)?),
        FilterOperand::Number(number) => BoundOperand::Value(OperandValue::Number(*number)),
        FilterOperand::Text(text) => BoundOperand::Value(OperandValue::Text(text)),
        FilterOperand::Bool(value) => BoundOperand::Value(OperandValue::Bool(*value)),
    })
}

/// Fails if two operands cannot be compared. Each operand is given as written and as bound.
fn check_same_kind(
    (left, bound_left): (&FilterOperand, BoundOperand<'_>),
    (right, bound_right): (&FilterOperand, BoundOperand<'_>),
) -> Result<()> {
    let is_same = bound_left.kind() == bound_right.kind();
    if !is_same && !bound_left.is_empty() && !bound_right.is_empty() {
        bail!(
            "cannot compare {}, {}, with {}, {}",
            describe_operand(left),
            bound_left.kind().describe(),
            describe_operand(right),
            bound_right.kind().describe()
        );
    }
    Ok(())
}

/// Returns an operand as written, for a message.
fn describe_operand(operand: &FilterOperand) -> String {
    match operand {
        FilterOperand::Column(name) => format!("`{name}`"),
        FilterOperand::Number(number) => number.to_string(),
        FilterOperand::Text(text) => format!("'{text}'"),
        FilterOperand::Bool(value) => value.to_string(),
    }
}

impl<'a> BoundOperand<'a> {
    fn kind(self) -> OperandKind {
        match self {
            BoundOperand::Column(MetadataColumn::Numbers(_))
            | BoundOperand::Value(OperandValue::Number(_)) => OperandKind::Number,
            BoundOperand::Column(MetadataColumn::Texts(_))
            | BoundOperand::Value(OperandValue::Text(_)) => OperandKind::Text,
            BoundOperand::Column(MetadataColumn::Bools(_))
            | BoundOperand::Value(OperandValue::Bool(_)) => OperandKind::Bool,
        }
    }

    /// Returns true for a column without any value, which can be compared with every kind. Such a
    /// column was read as numbers.
    fn is_empty(self) -> bool {
        match self {
            BoundOperand::Column(MetadataColumn::Numbers(values)) => {
                values.iter().all(|value| value.is_nan())
            }
            _ => false,
        }
    }

    /// Returns the value in `row`, or `None` if it is missing.
    fn value_at(self, row: usize) -> Option<OperandValue<'a>> {
        match self {
            BoundOperand::Value(value) => Some(value),
            BoundOperand::Column(MetadataColumn::Numbers(values)) => {
                let number = values[row];
                (!number.is_nan()).then_some(OperandValue::Number(number))
            }
            BoundOperand::Column(MetadataColumn::Texts(values)) => {
                values[row].as_deref().map(OperandValue::Text)
            }
            BoundOperand::Column(MetadataColumn::Bools(values)) => {
                values[row].map(OperandValue::Bool)
            }
        }
    }
}

impl BoundFilter<'_> {
    /// Returns the truth value in `row`, or `None` if it is unknown.
    pub(super) fn truth_at(&self, row: usize) -> Option<bool> {
        match self {
            BoundFilter::Or(parts) => any_true(parts.iter().map(|part| part.truth_at(row))),
            // `and` is true unless a part is false.
            BoundFilter::And(parts) => {
                let is_false = parts.iter().map(|part| Some(!part.truth_at(row)?));
                any_true(is_false).map(|value| !value)
            }
            BoundFilter::Not(part) => part.truth_at(row).map(|value| !value),
            BoundFilter::IsMissing(operand) => Some(operand.value_at(row).is_none()),
            BoundFilter::Is(operand) => {
                let value = operand.value_at(row)?;
                Some(value == OperandValue::Bool(true))
            }
            BoundFilter::Compare(left, operator, right) => {
                let order = left.value_at(row)?.partial_cmp(&right.value_at(row)?)?;
                Some(operator.holds(order))
            }
            BoundFilter::In(operand, values) => {
                let value = operand.value_at(row)?;
                Some(
                    values
                        .iter()
                        .any(|other| other.value_at(row) == Some(value)),
                )
            }
        }
    }
}

impl ComparisonOperator {
    fn holds(self, order: Ordering) -> bool {
        match self {
            ComparisonOperator::Equal => order == Ordering::Equal,
            ComparisonOperator::Unequal => order != Ordering::Equal,
            ComparisonOperator::Less => order == Ordering::Less,
            ComparisonOperator::LessOrEqual => order != Ordering::Greater,
            ComparisonOperator::Greater => order == Ordering::Greater,
            ComparisonOperator::GreaterOrEqual => order != Ordering::Less,
        }
    }
}

/// Returns true if a value is true; otherwise unknown if a value is unknown; otherwise false.
fn any_true(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_unknown = false;
    for value in values {
        match value {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_unknown = true,
        }
    }
    (!is_unknown).then_some(false)
}
