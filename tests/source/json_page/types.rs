//! The types of the program as serde writes them, read from the sources.

use std::collections::HashMap;

use syn::{Attribute, Expr, Fields, Item, ItemEnum, Lit, Meta, Type, Variant};

use crate::serde_attributes::SerdeAttributes;

/// Types that are not written as their fields say, with the type of their JSON. A type of the sources
/// has its crate before its name.
const WRITTEN_AS: [(&str, &str); 11] = [
    ("Path", "string"),
    ("PathBuf", "string"),
    ("String", "string"),
    ("Value", "any"),
    ("str", "string"),
    ("advice::HeldCommand", "string"),
    ("advice::JobCommand", "string"),
    ("advice::JobId", "string"),
    ("base::NumberedText", "string"),
    ("base::SharedText", "string"),
    ("config::StateEvent", "string or integer"),
];

/// Types of the sources whose form is not for readers of the documents.
const WITHOUT_FORM: [&str; 2] = ["eventlog::ResumePoint", "sweep::Config"];

/// The type of a value in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `any`, or a type of JSON without parts.
    Word(&'static str),
    Null(Box<Kind>),
    Array(Box<Kind>),
    Map(Box<Kind>),
    Or(Vec<Kind>),
    /// An object with the fields of a struct, or of all variants of an enum.
    Object(TypeId),
    /// One of the words for the variants of an enum.
    Words(TypeId),
}

/// A type of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeId {
    /// Index of the type among all.
    index: usize,
    /// True for the words of an enum that also has fields: of its tag, or of its variants without
    /// fields.
    pub(crate) is_tag: bool,
}

/// A key of an object.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// True if the key may be missing.
    pub(crate) is_optional: bool,
    /// True if the keys of the object are keys of the object around it.
    pub(crate) is_flat: bool,
    pub(crate) doc: String,
}

/// A variant of an enum without fields.
pub(crate) struct Word {
    pub(crate) name: String,
    pub(crate) doc: String,
}

/// A struct, an enum or a type alias of the sources.
struct TypeItem {
    name: String,
    file: usize,
    item: Item,
}

/// All types of the sources.
#[derive(Default)]
pub(crate) struct Types {
    /// Paths of the files.
    files: Vec<String>,
    items: Vec<TypeItem>,
    /// Indices in `items`, by name.
    by_name: HashMap<String, Vec<usize>>,
}

impl Types {
    pub(crate) fn read(sources: &[(String, String)]) -> Types {
        let mut types = Types::default();
        for (file, (path, text)) in sources.iter().enumerate() {
            types.files.push(path.clone());
            for item in syn::parse_file(text).expect("Rust").items {
                types.add(file, item);
            }
        }
        types
    }

    fn add(&mut self, file: usize, item: Item) {
        let name = match &item {
            Item::Struct(item) => item.ident.to_string(),
            Item::Enum(item) => item.ident.to_string(),
            Item::Type(item) => item.ident.to_string(),
            Item::Macro(item) => {
                // A macro that declares an enum has it as its only argument.
                if let Ok(item) = item.mac.parse_body() {
                    self.add(file, Item::Enum(item));
                }
                return;
            }
            _ => return,
        };
        self.by_name
            .entry(name.clone())
            .or_default()
            .push(self.items.len());
        self.items.push(TypeItem { name, file, item });
    }

    fn file(&self, path: &str) -> usize {
        let found = self.files.iter().position(|file| file == path);
        found.unwrap_or_else(|| panic!("there is no source {path}"))
    }

    /// Returns the keys of `body` in the file `path`: of a type, or of the fields in braces.
    pub(crate) fn body(&self, path: &str, body: &str) -> Vec<Field> {
        if body.starts_with('{') {
            let fields = Fields::Named(syn::parse_str(body).expect("fields"));
            return self.struct_fields(&fields, &SerdeAttributes::default(), self.file(path));
        }
        match self.body_type(path, body) {
            Some(of) => self.fields(of),
            None => panic!("{body} is not an object"),
        }
    }

    /// Returns the type that `body` names in the file `path`.
    pub(crate) fn body_type(&self, path: &str, body: &str) -> Option<TypeId> {
        match self.kind(&syn::parse_str(body).ok()?, self.file(path)) {
            Kind::Object(of) => Some(of),
            _ => None,
        }
    }

    /// Returns the type that `name` is in `file`: of the file, or the only one of its crate, or the only
    /// one of all.
    fn find(&self, name: &str, file: usize) -> usize {
        let named = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let file_of = |index: usize| self.items[index].file;
        let crate_of_file = |file: usize| crate_of(&self.files[file]);
        let own = named.iter().filter(|&&index| file_of(index) == file);
        let of_crate = named
            .iter()
            .filter(|&&index| crate_of_file(file_of(index)) == crate_of_file(file));
        for found in [
            own.collect(),
            of_crate.collect(),
            named.iter().collect::<Vec<_>>(),
        ] {
            match found[..] {
                [] => {}
                [only] => return *only,
                _ => panic!("{name} in {} may be several types", self.files[file]),
            }
        }
        panic!("no JSON is known for {name} in {}", self.files[file]);
    }

    /// Returns the kind of `written`, a type in `file`.
    fn kind(&self, written: &Type, file: usize) -> Kind {
        let kind = |written: &Type| self.kind(written, file);
        match written {
            Type::Reference(reference) => kind(&reference.elem),
            Type::Slice(slice) => Kind::Array(kind(&slice.elem).into()),
            Type::Array(array) => Kind::Array(kind(&array.elem).into()),
            Type::Tuple(tuple) => Kind::Array(either(tuple.elems.iter().map(kind)).into()),
            Type::Path(path) => self.named_kind(path.path.segments.last().expect("a name"), file),
            _ => panic!("no JSON is known for a type in {}", self.files[file]),
        }
    }

    /// Returns the kind of a type of the standard library, or of the sources.
    fn named_kind(&self, segment: &syn::PathSegment, file: usize) -> Kind {
        let name = segment.ident.to_string();
        let argument = || {
            let last = last_argument(segment).unwrap_or_else(|| panic!("{name} has no argument"));
            self.kind(last, file)
        };
        match name.as_str() {
            "bool" => Kind::Word("boolean"),
            "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => Kind::Word("integer"),
            "f32" | "f64" => Kind::Word("number"),
            "Option" => Kind::Null(argument().into()),
            "Vec" | "BTreeSet" => Kind::Array(argument().into()),
            "BTreeMap" | "HashMap" | "Map" => Kind::Map(argument().into()),
            // A document within another one has no version.
            "Box" | "Arc" | "Cow" | "JsonDocument" => argument(),
            // A parameter of a generic type.
            "S" => Kind::Word("any"),
            other => match written_as(other) {
                Some(word) => Kind::Word(word),
                None => self.item_kind(self.find(other, file)),
            },
        }
    }

    /// Returns the kind of a type of the sources.
    fn item_kind(&self, index: usize) -> Kind {
        let TypeItem { name, file, item } = &self.items[index];
        let name = format!("{}::{name}", crate_of(&self.files[*file]));
        if let Some(word) = written_as(&name) {
            return Kind::Word(word);
        }
        if WITHOUT_FORM.contains(&name.as_str()) {
            return Kind::Word("any");
        }
        let kind = |written: &Type| self.kind(written, *file);
        let of = TypeId {
            index,
            is_tag: false,
        };
        match item {
            Item::Type(item) => kind(&item.ty),
            Item::Enum(item) => self.enum_kind(item, *file, of),
            Item::Struct(item) => match &item.fields {
                Fields::Unnamed(fields) if fields.unnamed.len() == 1 => kind(&fields.unnamed[0].ty),
                Fields::Unnamed(fields) => {
                    Kind::Array(either(fields.unnamed.iter().map(|field| kind(&field.ty))).into())
                }
                fields if SerdeAttributes::read(&item.attrs).is_transparent => {
                    kind(&fields.iter().next().expect("a field").ty)
                }
                _ => Kind::Object(of),
            },
            _ => unreachable!("only types are kept"),
        }
    }

    fn enum_kind(&self, item: &ItemEnum, file: usize, of: TypeId) -> Kind {
        let serde = SerdeAttributes::read(&item.attrs);
        if let Some(into) = &serde.into {
            return self.kind(into, file);
        }
        if serde.tag.is_some() {
            return Kind::Object(of);
        }
        either(item.variants.iter().map(|variant| match &variant.fields {
            Fields::Unit if serde.is_untagged => Kind::Word("null"),
            Fields::Unit if item.variants.iter().all(is_unit) => Kind::Words(of),
            Fields::Unit => Kind::Words(TypeId { is_tag: true, ..of }),
            Fields::Unnamed(fields) if serde.is_untagged => {
                match self.kind(&fields.unnamed[0].ty, file) {
                    Kind::Object(_) => Kind::Object(of),
                    kind => kind,
                }
            }
            _ => Kind::Object(of),
        }))
    }

    pub(crate) fn name(&self, of: TypeId) -> &str {
        &self.items[of.index].name
    }

    /// Returns the first paragraph of the documentation of `of`.
    pub(crate) fn doc(&self, of: TypeId) -> String {
        match &self.items[of.index].item {
            Item::Struct(item) => summary(&item.attrs),
            Item::Enum(item) => summary(&item.attrs),
            _ => String::new(),
        }
    }

    /// Returns the words for the variants of an enum; `None` for a type that is written as an object.
    pub(crate) fn words(&self, of: TypeId) -> Option<Vec<Word>> {
        let Item::Enum(item) = &self.items[of.index].item else {
            return None;
        };
        if !of.is_tag && !item.variants.iter().all(is_unit) {
            return None;
        }
        let serde = SerdeAttributes::read(&item.attrs);
        let mut words = Vec::new();
        for variant in &item.variants {
            let own = SerdeAttributes::read(&variant.attrs);
            if !own.is_skipped && (serde.tag.is_some() || is_unit(variant)) {
                let name = own.variant_name(variant, &serde);
                let doc = doc(&variant.attrs);
                words.push(Word { name, doc });
            }
        }
        Some(words)
    }

    /// Returns the keys of an object.
    pub(crate) fn fields(&self, of: TypeId) -> Vec<Field> {
        let TypeItem { file, item, .. } = &self.items[of.index];
        match item {
            Item::Struct(item) => {
                self.struct_fields(&item.fields, &SerdeAttributes::read(&item.attrs), *file)
            }
            Item::Enum(item) => self.enum_fields(item, *file, of),
            _ => unreachable!("an alias has no fields"),
        }
    }

    fn struct_fields(&self, fields: &Fields, of_item: &SerdeAttributes, file: usize) -> Vec<Field> {
        let mut known = Vec::new();
        for field in fields {
            let serde = SerdeAttributes::read(&field.attrs);
            let kind = match &field.ident {
                Some(_) if !serde.is_skipped => self.kind(&field.ty, file),
                _ => continue,
            };
            // Keys whose names are not known here are not documented.
            if serde.is_flat && kind == Kind::Word("any") {
                continue;
            }
            let is_missing = serde.is_flat || serde.skip_if.as_deref() == Some("Option::is_none");
            let (kind, is_option) = match kind {
                Kind::Null(inner) if is_missing => (*inner, true),
                kind => (kind, false),
            };
            known.push(Field {
                name: serde.field_name(field, of_item),
                kind,
                is_optional: is_option || serde.skip_if.is_some(),
                is_flat: serde.is_flat,
                doc: doc(&field.attrs),
            });
        }
        known
    }

    /// Returns the keys of all variants of an enum. A key of several variants has all of their
    /// documentation.
    fn enum_fields(&self, item: &ItemEnum, file: usize, of: TypeId) -> Vec<Field> {
        let serde = SerdeAttributes::read(&item.attrs);
        let mut known: Vec<Field> = Vec::new();
        if let Some(tag) = &serde.tag {
            let words = Kind::Words(TypeId { is_tag: true, ..of });
            known.push(Field {
                is_optional: false,
                ..own_key(tag, words, summary(&item.attrs))
            });
        }
        for variant in item.variants.iter().filter(|variant| !is_unit(variant)) {
            let word = SerdeAttributes::read(&variant.attrs).variant_name(variant, &serde);
            for mut field in self.variant_fields(variant, &serde, &word, file) {
                if serde.content.is_some() {
                    // The words of the tag say what the content is.
                    field.doc = format!("Which one, for `{word}`.");
                } else if serde.tag.is_some() {
                    field.doc = format!("For `{word}`: {}", field.doc);
                }
                match known.iter_mut().find(|one| one.name == field.name) {
                    Some(same) => {
                        same.doc =
                            format!("{} {}", same.doc, field.doc).replace(". Which one, for", ",")
                    }
                    None => known.push(Field {
                        is_optional: true,
                        ..field
                    }),
                }
            }
        }
        known
    }

    /// Returns the keys of a variant that has fields.
    fn variant_fields(
        &self,
        variant: &Variant,
        serde: &SerdeAttributes,
        word: &str,
        file: usize,
    ) -> Vec<Field> {
        let inner = match &variant.fields {
            Fields::Unnamed(fields) => Some(self.kind(&fields.unnamed[0].ty, file)),
            _ => None,
        };
        let is_merged = serde.is_untagged || serde.tag.is_some() && serde.content.is_none();
        match inner {
            Some(Kind::Object(inner)) if is_merged => self.fields(inner),
            None if is_merged => {
                self.struct_fields(&variant.fields, &SerdeAttributes::default(), file)
            }
            Some(kind) => {
                let key = serde.content.as_deref().unwrap_or(word);
                vec![own_key(key, kind, doc(&variant.attrs))]
            }
            None => panic!("the fields of `{word}` need a struct of their own"),
        }
    }
}

fn own_key(name: &str, kind: Kind, doc: String) -> Field {
    Field {
        name: name.to_owned(),
        kind,
        is_optional: true,
        is_flat: false,
        doc,
    }
}

fn is_unit(variant: &Variant) -> bool {
    matches!(variant.fields, Fields::Unit)
}

fn written_as(name: &str) -> Option<&'static str> {
    let found = WRITTEN_AS.iter().find(|(known, _)| *known == name);
    found.map(|(_, word)| *word)
}

/// Joins kinds, each once.
fn either(kinds: impl Iterator<Item = Kind>) -> Kind {
    let mut different: Vec<Kind> = Vec::new();
    for kind in kinds {
        if !different.contains(&kind) {
            different.push(kind);
        }
    }
    match different.len() {
        1 => different.remove(0),
        _ => Kind::Or(different),
    }
}

fn last_argument(segment: &syn::PathSegment) -> Option<&Type> {
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.last()? {
        syn::GenericArgument::Type(written) => Some(written),
        _ => None,
    }
}

/// Returns the crate that has the file `path`, as the name of its folder.
fn crate_of(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// The text of a doc comment, on one line.
fn doc(attributes: &[Attribute]) -> String {
    doc_lines(attributes).join(" ")
}

/// The first paragraph of a doc comment, on one line.
fn summary(attributes: &[Attribute]) -> String {
    let lines = doc_lines(attributes);
    let end = lines
        .iter()
        .position(String::is_empty)
        .unwrap_or(lines.len());
    lines[..end].join(" ")
}

fn doc_lines(attributes: &[Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(value) = &pair.value
            && let Lit::Str(text) = &value.lit
        {
            lines.push(text.value().trim().to_owned());
        }
    }
    lines
}
