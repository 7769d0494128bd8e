//! The text of a filter → its words and signs, each with its place.

use anyhow::{Result, bail};

use crate::error::hinted;

/// A word or a sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name, or one of `and`, `or`, `not`, `in`, `is`, `true`, `false`, `missing`.
    Word(String),
    /// A name within backticks.
    Name(String),
    Number(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// Two characters before one of them.
const SIGNS: [&str; 11] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ","];

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) | Token::Name(word) => write!(f, "`{word}`"),
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Text(text) => write!(f, "`'{text}'`"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// The tokens of `text` with the number of the character that each begins at, from 1; the last one is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text[..text.len() - rest.len()].chars().count() + 1;
        let Some(first) = rest.chars().next() else {
            tokens.push((at, Token::End));
            return Ok(tokens);
        };
        let (token, len) = token(rest, first, at)?;
        tokens.push((at, token));
        rest = &rest[len..];
    }
}

/// The token that `rest` begins with, and how many bytes it has.
fn token(rest: &str, first: char, at: usize) -> Result<(Token, usize)> {
    if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        return Ok((Token::Sign(sign), sign.len()));
    }
    let until = |ends: fn(char) -> bool| rest.find(ends).unwrap_or(rest.len());
    match first {
        '\'' | '"' | '`' => {
            let Some(len) = rest[1..].find(first) else {
                bail!("character {at}: the text after {first} has no end")
            };
            let text = rest[1..=len].to_owned();
            Ok((
                if first == '`' {
                    Token::Name(text)
                } else {
                    Token::Text(text)
                },
                len + 2,
            ))
        }
        '0'..='9' | '-' | '+' | '.' => {
            let mut last = ' ';
            let ends = |c: char| {
                let is_exponent_sign = matches!(c, '-' | '+') && matches!(last, ' ' | 'e' | 'E');
                last = c;
                !(c.is_ascii_alphanumeric() || c == '.' || is_exponent_sign)
            };
            let len = rest.find(ends).unwrap_or(rest.len());
            match rest[..len].parse() {
                Ok(number) => Ok((Token::Number(number), len)),
                Err(_) => bail!("character {at}: `{}` is not a number", &rest[..len]),
            }
        }
        c if c.is_alphabetic() || c == '_' => {
            let len = until(|c| !(c.is_alphanumeric() || matches!(c, '_' | '.')));
            Ok((Token::Word(rest[..len].to_owned()), len))
        }
        other => {
            let hint = match other {
                '=' => "compare with `==`",
                '&' => "write `and`",
                '|' => "write `or`",
                '!' | '~' => "write `not`",
                _ => "put names with other characters between backticks, and texts between quotes",
            };
            bail!(hinted(
                format!("character {at}: `{other}` means nothing here"),
                hint
            ))
        }
    }
}
