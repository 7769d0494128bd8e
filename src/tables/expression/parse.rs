//! The tokens of a filter → the tree of what it asks.

use anyhow::{Result, bail, ensure};

use super::token::{Token, tokens};

/// How deep parentheses and `not` may be nested: what reads them calls itself.
const DEEPEST: usize = 100;

/// A part of a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Or(Vec<Node>),
    And(Vec<Node>),
    Not(Box<Node>),
    Compare(Operand, Comparison, Operand),
    In(Operand, Vec<Operand>),
    IsMissing(Operand),
    /// A truth value by itself.
    Is(Operand),
}

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    Column(String),
    Number(f64),
    Text(String),
    Bool(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Node> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
    };
    let root = parser.or()?;
    match parser.peek() {
        Token::End => Ok(root),
        _ => parser.expected("`and`, `or` or the end"),
    }
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    /// The next token; after the end there is the end again.
    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, wanted: &Token) -> bool {
        let is_it = self.peek() == wanted;
        if is_it {
            self.take();
        }
        is_it
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(&Token::Word(word.to_owned()))
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let (at, found) = &self.tokens[self.next];
        bail!("character {at}: expected {what}, found {found}")
    }

    fn or(&mut self) -> Result<Node> {
        let mut parts = vec![self.and()?];
        while self.takes_word("or") {
            parts.push(self.and()?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Node::Or(parts)
        })
    }

    fn and(&mut self) -> Result<Node> {
        let mut parts = vec![self.not()?];
        while self.takes_word("and") {
            parts.push(self.not()?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Node::And(parts)
        })
    }

    fn not(&mut self) -> Result<Node> {
        self.depth += 1;
        ensure!(
            self.depth <= DEEPEST,
            "character {}: nested deeper than {DEEPEST}",
            self.tokens[self.next].0
        );
        let node = if self.takes_word("not") {
            Node::Not(Box::new(self.not()?))
        } else if self.takes(&Token::Sign("(")) {
            let inner = self.or()?;
            if !self.takes(&Token::Sign(")")) {
                return self.expected("`)`");
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node> {
        let left = self.operand()?;
        if self.takes_word("is") {
            let negated = self.takes_word("not");
            if !self.takes_word("missing") {
                return self.expected("`missing`");
            }
            return Ok(negate(Node::IsMissing(left), negated));
        }
        if self.takes_word("in") {
            return Ok(Node::In(left, self.list()?));
        }
        if self.takes_word("not") {
            return if self.takes_word("in") {
                Ok(negate(Node::In(left, self.list()?), true))
            } else {
                self.expected("`in`")
            };
        }
        let Some(comparison) = self.sign() else {
            return Ok(Node::Is(left));
        };
        Ok(Node::Compare(left, comparison, self.operand()?))
    }

    fn sign(&mut self) -> Option<Comparison> {
        let Token::Sign(sign) = self.peek() else {
            return None;
        };
        let comparison = match *sign {
            "==" => Comparison::Equal,
            "!=" => Comparison::Unequal,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.take();
        Some(comparison)
    }

    fn list(&mut self) -> Result<Vec<Operand>> {
        if !self.takes(&Token::Sign("[")) {
            return self.expected("a list such as `['a', 'b']`");
        }
        let mut values = vec![self.value()?];
        while self.takes(&Token::Sign(",")) {
            values.push(self.value()?);
        }
        if self.takes(&Token::Sign("]")) {
            Ok(values)
        } else {
            self.expected("`,` or `]`")
        }
    }

    fn value(&mut self) -> Result<Operand> {
        match self.operand()? {
            Operand::Column(_) => {
                self.next -= 1;
                self.expected("a number, a text between quotes, `true` or `false`")
            }
            value => Ok(value),
        }
    }

    fn operand(&mut self) -> Result<Operand> {
        let operand = match self.peek().clone() {
            Token::Number(number) => Operand::Number(number),
            Token::Text(text) => Operand::Text(text),
            Token::Name(name) => Operand::Column(name),
            Token::Word(word) => match word.as_str() {
                "true" | "false" => Operand::Bool(word == "true"),
                "and" | "or" | "not" | "in" | "is" | "missing" => {
                    return self.expected("a column or a value");
                }
                _ => Operand::Column(word),
            },
            Token::Sign(_) | Token::End => return self.expected("a column or a value"),
        };
        self.take();
        Ok(operand)
    }
}

fn negate(node: Node, negated: bool) -> Node {
    if negated {
        Node::Not(Box::new(node))
    } else {
        node
    }
}
