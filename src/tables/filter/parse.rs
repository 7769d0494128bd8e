//! Parser of filters: tokens → tree, by recursive descent. `or` binds less than `and`, `and` less
//! than `not`, `not` less than a comparison.

use anyhow::{Result, bail, ensure};

use super::tokens::{FilterToken, PlacedToken, split_tokens};

/// Maximum depth of nested parentheses and `not`. Each level is a recursive call, and the stack
/// must not overflow.
const MAX_DEPTH: usize = 100;

/// A node in the tree of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FilterNode {
    Or(Vec<FilterNode>),
    And(Vec<FilterNode>),
    Not(Box<FilterNode>),
    Compare(FilterOperand, ComparisonOperator, FilterOperand),
    In(FilterOperand, Vec<FilterOperand>),
    IsMissing(FilterOperand),
    /// A truth value without a comparison.
    Is(FilterOperand),
}

/// Operand of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FilterOperand {
    Column(String),
    Number(f64),
    Text(String),
    Bool(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparisonOperator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

struct FilterParser {
    tokens: Vec<PlacedToken>,
    next: usize,
    depth: usize,
}

/// Parses a whole filter.
///
/// # Errors
/// Fails at the first character that does not fit; the message has its number and the expected
/// tokens.
pub(super) fn parse_filter(text: &str) -> Result<FilterNode> {
    let mut parser = FilterParser {
        tokens: split_tokens(text)?,
        next: 0,
        depth: 0,
    };
    let root = parser.parse_or()?;
    match parser.peek() {
        FilterToken::End => Ok(root),
        _ => parser.fail_expecting("`and`, `or` or the end"),
    }
}

impl FilterParser {
    fn peek(&self) -> &FilterToken {
        &self.tokens[self.next].token
    }

    /// Takes the next token. At the end, it returns the end again.
    fn take(&mut self) -> FilterToken {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    /// Takes the next token if it is `wanted`; returns true if it was.
    fn take_if(&mut self, wanted: &FilterToken) -> bool {
        let is_wanted = self.peek() == wanted;
        if is_wanted {
            self.take();
        }
        is_wanted
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.take_if(&FilterToken::Word(word.to_owned()))
    }

    fn fail_expecting<T>(&self, what: &str) -> Result<T> {
        let PlacedToken { at, token: found } = &self.tokens[self.next];
        bail!("character {at}: expected {what}, found {found}")
    }

    fn parse_or(&mut self) -> Result<FilterNode> {
        let mut parts = vec![self.parse_and()?];
        while self.take_word("or") {
            parts.push(self.parse_and()?);
        }
        Ok(join_parts(parts, FilterNode::Or))
    }

    fn parse_and(&mut self) -> Result<FilterNode> {
        let mut parts = vec![self.parse_not()?];
        while self.take_word("and") {
            parts.push(self.parse_not()?);
        }
        Ok(join_parts(parts, FilterNode::And))
    }

    fn parse_not(&mut self) -> Result<FilterNode> {
        self.depth += 1;
        ensure!(
            self.depth <= MAX_DEPTH,
            "character {}: nested deeper than {MAX_DEPTH}",
            self.tokens[self.next].at
        );
        let node = if self.take_word("not") {
            FilterNode::Not(Box::new(self.parse_not()?))
        } else if self.take_if(&FilterToken::Sign("(")) {
            let inner = self.parse_or()?;
            if !self.take_if(&FilterToken::Sign(")")) {
                return self.fail_expecting("`)`");
            }
            inner
        } else {
            self.parse_comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn parse_comparison(&mut self) -> Result<FilterNode> {
        let left = self.parse_operand()?;
        if self.take_word("is") {
            let is_negated = self.take_word("not");
            if !self.take_word("missing") {
                return self.fail_expecting("`missing`");
            }
            let node = FilterNode::IsMissing(left);
            return Ok(if is_negated { negate(node) } else { node });
        }
        if self.take_word("in") {
            return Ok(FilterNode::In(left, self.parse_list()?));
        }
        if self.take_word("not") {
            return if self.take_word("in") {
                Ok(negate(FilterNode::In(left, self.parse_list()?)))
            } else {
                self.fail_expecting("`in`")
            };
        }
        let Some(comparison) = self.take_comparison() else {
            return Ok(FilterNode::Is(left));
        };
        Ok(FilterNode::Compare(left, comparison, self.parse_operand()?))
    }

    fn take_comparison(&mut self) -> Option<ComparisonOperator> {
        let FilterToken::Sign(sign) = self.peek() else {
            return None;
        };
        let comparison = match *sign {
            "==" => ComparisonOperator::Equal,
            "!=" => ComparisonOperator::Unequal,
            "<" => ComparisonOperator::Less,
            "<=" => ComparisonOperator::LessOrEqual,
            ">" => ComparisonOperator::Greater,
            ">=" => ComparisonOperator::GreaterOrEqual,
            _ => return None,
        };
        self.take();
        Some(comparison)
    }

    fn parse_list(&mut self) -> Result<Vec<FilterOperand>> {
        if !self.take_if(&FilterToken::Sign("[")) {
            return self.fail_expecting("a list such as `['a', 'b']`");
        }
        let mut values = vec![self.parse_value()?];
        while self.take_if(&FilterToken::Sign(",")) {
            values.push(self.parse_value()?);
        }
        if self.take_if(&FilterToken::Sign("]")) {
            Ok(values)
        } else {
            self.fail_expecting("`,` or `]`")
        }
    }

    fn parse_value(&mut self) -> Result<FilterOperand> {
        match self.parse_operand()? {
            FilterOperand::Column(_) => {
                // Step back, so that the message names the token that was taken.
                self.next -= 1;
                self.fail_expecting("a number, a text between quotes, `true` or `false`")
            }
            value => Ok(value),
        }
    }

    fn parse_operand(&mut self) -> Result<FilterOperand> {
        let operand = match self.peek().clone() {
            FilterToken::Number(number) => FilterOperand::Number(number),
            FilterToken::Text(text) => FilterOperand::Text(text),
            FilterToken::Name(name) => FilterOperand::Column(name),
            FilterToken::Word(word) => match word.as_str() {
                "true" | "false" => FilterOperand::Bool(word == "true"),
                "and" | "or" | "not" | "in" | "is" | "missing" => {
                    return self.fail_expecting("a column or a value");
                }
                _ => FilterOperand::Column(word),
            },
            FilterToken::Sign(_) | FilterToken::End => {
                return self.fail_expecting("a column or a value");
            }
        };
        self.take();
        Ok(operand)
    }
}

fn negate(node: FilterNode) -> FilterNode {
    FilterNode::Not(Box::new(node))
}

/// Returns a single part as it is, and joins several.
fn join_parts(mut parts: Vec<FilterNode>, join: fn(Vec<FilterNode>) -> FilterNode) -> FilterNode {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        join(parts)
    }
}
