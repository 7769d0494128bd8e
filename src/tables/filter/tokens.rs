//! Tokenizer of filters: splits a text into words, values and signs, each with its position.

use anyhow::{Result, bail};

use poolcast_base::error::hinted;

/// A token: a word, a value, a sign or the end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FilterToken {
    /// A name, or one of `and`, `or`, `not`, `in`, `is`, `true`, `false`, `missing`.
    Word(String),
    /// A name between backticks.
    Name(String),
    Number(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// All signs. Signs of two characters come first, as otherwise their first character would match
/// alone.
const SIGNS: [&str; 11] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ","];

impl std::fmt::Display for FilterToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FilterToken::Word(word) | FilterToken::Name(word) => write!(f, "`{word}`"),
            FilterToken::Number(number) => write!(f, "`{number}`"),
            FilterToken::Text(text) => write!(f, "`'{text}'`"),
            FilterToken::Sign(sign) => write!(f, "`{sign}`"),
            FilterToken::End => f.write_str("the end"),
        }
    }
}

/// A token and its position.
pub(super) struct PlacedToken {
    /// Number of the token's first character, counted from 1.
    pub(super) at: usize,
    pub(super) token: FilterToken,
}

/// Splits `text` into tokens. The last one is the end.
pub(super) fn split_tokens(text: &str) -> Result<Vec<PlacedToken>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text[..text.len() - rest.len()].chars().count() + 1;
        let Some(first) = rest.chars().next() else {
            tokens.push(PlacedToken {
                at,
                token: FilterToken::End,
            });
            return Ok(tokens);
        };

        let (token, len) = next_token(rest, first, at)?;
        tokens.push(PlacedToken { at, token });
        rest = &rest[len..];
    }
}

/// Returns the token that `rest` begins with, and its length in bytes. `first` is its first
/// character, and `at` is the number of this character.
fn next_token(rest: &str, first: char, at: usize) -> Result<(FilterToken, usize)> {
    if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        return Ok((FilterToken::Sign(sign), sign.len()));
    }
    match first {
        '\'' | '"' | '`' => quoted_token(rest, first, at),
        '0'..='9' | '-' | '+' | '.' => number_token(rest, at),
        c if c.is_alphabetic() || c == '_' => {
            let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'));
            let len = rest.find(is_end).unwrap_or(rest.len());
            Ok((FilterToken::Word(rest[..len].to_owned()), len))
        }
        other => Err(unknown_character(other, at)),
    }
}

/// Returns the text between quotes, or the name between backticks, and its length in bytes.
fn quoted_token(rest: &str, quote: char, at: usize) -> Result<(FilterToken, usize)> {
    let Some(len) = rest[1..].find(quote) else {
        bail!("character {at}: the text after {quote} is not closed")
    };
    let text = rest[1..=len].to_owned();
    let token = if quote == '`' {
        FilterToken::Name(text)
    } else {
        FilterToken::Text(text)
    };
    Ok((token, len + 2))
}

fn number_token(rest: &str, at: usize) -> Result<(FilterToken, usize)> {
    // A sign belongs to the number if it comes first or begins an exponent.
    let mut last = ' ';
    let is_end = |c: char| {
        let is_sign = matches!(c, '-' | '+') && matches!(last, ' ' | 'e' | 'E');
        last = c;
        !(c.is_ascii_alphanumeric() || c == '.' || is_sign)
    };
    let len = rest.find(is_end).unwrap_or(rest.len());
    match rest[..len].parse() {
        Ok(number) => Ok((FilterToken::Number(number), len)),
        Err(_) => bail!("character {at}: `{}` is not a number", &rest[..len]),
    }
}

fn unknown_character(character: char, at: usize) -> anyhow::Error {
    let hint = match character {
        '=' => "compare with `==`",
        '&' => "write `and`",
        '|' => "write `or`",
        '!' | '~' => "write `not`",
        _ => "put names with other characters between backticks, and texts between quotes",
    };
    let message = format!("character {at}: `{character}` is not allowed here");
    hinted(message, hint).into()
}
