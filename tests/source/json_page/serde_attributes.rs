//! The attributes `#[serde(...)]` of a type, a variant or a field.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Token, Type};

/// What decides the form of a value in JSON.
#[derive(Default)]
pub(crate) struct SerdeAttributes {
    name: Option<String>,
    rename_all: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) content: Option<String>,
    pub(crate) skip_if: Option<String>,
    pub(crate) into: Option<Type>,
    pub(crate) is_flat: bool,
    pub(crate) is_skipped: bool,
    pub(crate) is_transparent: bool,
    pub(crate) is_untagged: bool,
}

impl SerdeAttributes {
    pub(crate) fn read(attributes: &[Attribute]) -> SerdeAttributes {
        let mut serde = SerdeAttributes::default();
        for attribute in attributes {
            if attribute.path().is_ident("serde") {
                let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
                for meta in attribute.parse_args_with(parser).expect("attributes") {
                    serde.add(&meta);
                }
            }
        }
        serde
    }

    fn add(&mut self, meta: &Meta) {
        let value = match meta {
            Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text),
                _ => None,
            },
            _ => None,
        };
        let text = value.map(LitStr::value);
        let word = meta.path().require_ident().expect("a word").to_string();
        match word.as_str() {
            "rename" => self.name = text,
            "rename_all" => self.rename_all = text,
            "tag" => self.tag = text,
            "content" => self.content = text,
            "skip_serializing_if" => self.skip_if = text,
            "into" => self.into = value.map(|value| value.parse().expect("a type")),
            "flatten" => self.is_flat = true,
            "skip" | "skip_serializing" => self.is_skipped = true,
            "transparent" => self.is_transparent = true,
            "untagged" => self.is_untagged = true,
            _ => {}
        }
    }

    /// Returns the key of the field with these attributes, in a type with the attributes `of_item`.
    pub(crate) fn field_name(&self, field: &syn::Field, of_item: &SerdeAttributes) -> String {
        let name = field
            .ident
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let name = name.trim_start_matches("r#");
        self.name
            .clone()
            .unwrap_or_else(|| match of_item.rename_all.as_deref() {
                Some("kebab-case") => name.replace('_', "-"),
                _ => name.to_owned(),
            })
    }

    /// Returns the word for the variant with these attributes, in an enum with the attributes `of_item`.
    pub(crate) fn variant_name(&self, variant: &syn::Variant, of_item: &SerdeAttributes) -> String {
        let name = variant.ident.to_string();
        self.name
            .clone()
            .unwrap_or_else(|| match of_item.rename_all.as_deref() {
                Some("kebab-case") => words_of(&name).join("-"),
                Some("snake_case") => words_of(&name).join("_"),
                Some("lowercase") => name.to_lowercase(),
                _ => name,
            })
    }
}

/// The words of a name in camel case, in lower case.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in name.chars() {
        if c.is_uppercase() || words.is_empty() {
            words.push(String::new());
        }
        words.last_mut().expect("a word").extend(c.to_lowercase());
    }
    words
}
