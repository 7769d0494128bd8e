//! The tree of a filter and a table → what it says of each row.

use std::cmp::Ordering;

use anyhow::{Result, bail};

use super::parse::{Comparison, Node, Operand};
use crate::error::hinted;
use crate::tables::columns::{MetadataColumn, MetadataTable};

/// A filter whose columns are found and whose comparisons are of like with like.
pub(super) enum Bound<'a> {
    Or(Vec<Bound<'a>>),
    And(Vec<Bound<'a>>),
    Not(Box<Bound<'a>>),
    Compare(Side<'a>, Comparison, Side<'a>),
    In(Side<'a>, Vec<Side<'a>>),
    IsMissing(Side<'a>),
    Is(Side<'a>),
}

/// What is compared: a value, or a column's in the row.
#[derive(Clone, Copy)]
pub(super) enum Side<'a> {
    Column(&'a MetadataColumn),
    Value(Value<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Value<'a> {
    Number(f64),
    Text(&'a str),
    Bool(bool),
}

pub(super) fn bind<'a>(node: &'a Node, columns: &'a MetadataTable) -> Result<Bound<'a>> {
    let all = |nodes: &'a [Node]| {
        nodes
            .iter()
            .map(|node| bind(node, columns))
            .collect::<Result<Vec<_>>>()
    };
    Ok(match node {
        Node::Or(nodes) => Bound::Or(all(nodes)?),
        Node::And(nodes) => Bound::And(all(nodes)?),
        Node::Not(node) => Bound::Not(Box::new(bind(node, columns)?)),
        Node::IsMissing(operand) => Bound::IsMissing(side(operand, columns)?),
        Node::Is(operand) => {
            let side = side(operand, columns)?;
            if side.kind() != "a truth value" && !side.is_empty() {
                let message = format!(
                    "{} is {}, and not true or false",
                    name(operand),
                    side.kind()
                );
                bail!(hinted(
                    message,
                    "compare it with something, as in `age >= 18` or `flag == 1`"
                ));
            }
            Bound::Is(side)
        }
        Node::Compare(left, comparison, right) => {
            let sides = (side(left, columns)?, side(right, columns)?);
            check(left, sides.0, right, sides.1)?;
            let is_order = !matches!(comparison, Comparison::Equal | Comparison::Unequal);
            if is_order && sides.0.kind() == "a truth value" {
                bail!(
                    "{} is a truth value, which is neither less nor greater than another",
                    name(left)
                );
            }
            Bound::Compare(sides.0, *comparison, sides.1)
        }
        Node::In(operand, values) => {
            let left = side(operand, columns)?;
            let values = values.iter().map(|value| {
                let right = side(value, columns)?;
                check(operand, left, value, right).map(|()| right)
            });
            Bound::In(left, values.collect::<Result<_>>()?)
        }
    })
}

fn side<'a>(operand: &'a Operand, columns: &'a MetadataTable) -> Result<Side<'a>> {
    Ok(match operand {
        Operand::Column(name) => Side::Column(columns.column(name)?),
        Operand::Number(number) => Side::Value(Value::Number(*number)),
        Operand::Text(text) => Side::Value(Value::Text(text)),
        Operand::Bool(value) => Side::Value(Value::Bool(*value)),
    })
}

fn check(left: &Operand, a: Side<'_>, right: &Operand, b: Side<'_>) -> Result<()> {
    if a.kind() != b.kind() && !a.is_empty() && !b.is_empty() {
        bail!(
            "{} is {}, and {} is {}",
            name(left),
            a.kind(),
            name(right),
            b.kind()
        );
    }
    Ok(())
}

fn name(operand: &Operand) -> String {
    match operand {
        Operand::Column(name) => format!("`{name}`"),
        Operand::Number(number) => number.to_string(),
        Operand::Text(text) => format!("'{text}'"),
        Operand::Bool(value) => value.to_string(),
    }
}

impl<'a> Side<'a> {
    fn kind(self) -> &'static str {
        match self {
            Side::Column(MetadataColumn::Numbers(_)) | Side::Value(Value::Number(_)) => "a number",
            Side::Column(MetadataColumn::Texts(_)) | Side::Value(Value::Text(_)) => "a text",
            Side::Column(MetadataColumn::Bools(_)) | Side::Value(Value::Bool(_)) => "a truth value",
        }
    }

    /// Whether nothing is known of it: a column without any value is of every kind.
    fn is_empty(self) -> bool {
        match self {
            Side::Column(MetadataColumn::Numbers(values)) => {
                values.iter().all(|value| value.is_nan())
            }
            _ => false,
        }
    }

    fn at(self, row: usize) -> Option<Value<'a>> {
        match self {
            Side::Value(value) => Some(value),
            Side::Column(MetadataColumn::Numbers(values)) => Some(values[row])
                .filter(|value| !value.is_nan())
                .map(Value::Number),
            Side::Column(MetadataColumn::Texts(values)) => values[row].as_deref().map(Value::Text),
            Side::Column(MetadataColumn::Bools(values)) => values[row].map(Value::Bool),
        }
    }
}

impl Bound<'_> {
    /// Whether it is true in `row`; `None` where that is unknown.
    pub(super) fn at(&self, row: usize) -> Option<bool> {
        match self {
            Bound::Or(parts) => any(parts.iter().map(|part| part.at(row))),
            Bound::And(parts) => {
                any(parts.iter().map(|part| Some(!part.at(row)?))).map(|value| !value)
            }
            Bound::Not(part) => part.at(row).map(|value| !value),
            Bound::IsMissing(side) => Some(side.at(row).is_none()),
            Bound::Is(side) => side.at(row).map(|value| value == Value::Bool(true)),
            Bound::Compare(left, comparison, right) => {
                let order = left.at(row)?.partial_cmp(&right.at(row)?)?;
                Some(match comparison {
                    Comparison::Equal => order == Ordering::Equal,
                    Comparison::Unequal => order != Ordering::Equal,
                    Comparison::Less => order == Ordering::Less,
                    Comparison::LessOrEqual => order != Ordering::Greater,
                    Comparison::Greater => order == Ordering::Greater,
                    Comparison::GreaterOrEqual => order != Ordering::Less,
                })
            }
            Bound::In(side, values) => {
                let value = side.at(row)?;
                Some(values.iter().any(|other| other.at(row) == Some(value)))
            }
        }
    }
}

/// True if one is, else unknown if one is, else false.
fn any(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
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
