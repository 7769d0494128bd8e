//! Holds the line of ARCHITECTURE.md: a module imports only modules above it in `src/lib.rs`, no
//! two files import each other, directly or by way of others, and no verb imports another verb.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, UseTree, Visibility};

/// The path of a module or an item within the crate, without the word `crate`.
type Name = Vec<String>;

/// A source file as the compiler sees it, tests left out.
struct SourceFile {
    /// Its path within `src`.
    path: String,
    module: Name,
    /// What its code names, as paths from the top of the crate.
    named: Vec<Name>,
    /// What others may import from it though it stands elsewhere: by its name here.
    reexports: BTreeMap<String, Name>,
}

fn source_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn source_paths(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs_err::read_dir(dir).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            paths.extend(source_paths(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    paths.sort();
    paths
}

/// `config/mod.rs` and `config.rs` are the module `config`, `config/sweep.rs` is `config::sweep`.
fn module_of(path: &str) -> Name {
    let stem = path.strip_suffix(".rs").expect("a Rust file");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    stem.split('/').map(str::to_owned).collect()
}

/// Collects what a file names.
struct NameCollector<'a> {
    file: &'a mut SourceFile,
    /// The module at this place: that of the file, or one within it.
    module: Name,
}

impl NameCollector<'_> {
    /// `segments` from the top of the crate; `None` for what is of another crate.
    fn absolute(&self, segments: &[String]) -> Option<Name> {
        let mut base = self.module.clone();
        let mut rest = segments;
        match segments.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            // A module's own children are named without a prefix.
            child if source_exists(&base, child) => {}
            _ => return None,
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn add_use(&mut self, prefix: &[String], tree: &UseTree, is_reexport: bool) {
        let with = |segment: &str| [prefix, &[segment.to_owned()]].concat();
        match tree {
            UseTree::Path(path) => {
                self.add_use(&with(&path.ident.to_string()), &path.tree, is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(prefix, tree, is_reexport);
                }
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.add_import(&with(&name), name, is_reexport);
            }
            UseTree::Rename(rename) => {
                let segments = with(&rename.ident.to_string());
                self.add_import(&segments, rename.rename.to_string(), is_reexport);
            }
            UseTree::Glob(_) => self.add_import(prefix, "*".to_owned(), is_reexport),
        }
    }

    fn add_import(&mut self, segments: &[String], name: String, is_reexport: bool) {
        let Some(absolute) = self.absolute(segments) else {
            return;
        };
        if is_reexport {
            self.file.reexports.insert(name, absolute);
        } else {
            self.file.named.push(absolute);
        }
    }
}

/// Whether `child` is a file of the module `parent`.
fn source_exists(parent: &[String], child: &str) -> bool {
    let dir = parent.iter().fold(source_dir(), |dir, part| dir.join(part));
    dir.join(format!("{child}.rs")).exists() || dir.join(child).join("mod.rs").exists()
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|condition| condition == "test")
    })
}

impl<'ast> Visit<'ast> for NameCollector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // What the face of a folder hands on is imported by whoever takes it from there.
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        self.add_use(&[], &item.tree, is_reexport);
    }

    // `pub(in crate::cmd)` says who may see, not what is used.
    fn visit_visibility(&mut self, _visibility: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if segments.len() > 1 {
            self.file.named.extend(self.absolute(&segments));
        }
        visit::visit_path(self, path);
    }
}

fn read_sources() -> Vec<SourceFile> {
    let dir = source_dir();
    let mut files = Vec::new();
    for path in source_paths(&dir) {
        let text = fs_err::read_to_string(&path).expect("read");
        let inside = path.strip_prefix(&dir).expect("inside").to_string_lossy();
        if ["lib.rs", "main.rs"].contains(&&*inside) {
            continue;
        }
        let module = module_of(&inside);
        let mut file = SourceFile {
            path: inside.clone().into_owned(),
            module: module.clone(),
            named: Vec::new(),
            reexports: BTreeMap::new(),
        };
        let syntax = syn::parse_file(&text).expect("Rust");
        let mut collector = NameCollector {
            file: &mut file,
            module,
        };
        collector.visit_file(&syntax);
        files.push(file);
    }
    files
}

/// The file in which `name` is defined, whatever faces of folders hand it on.
fn defining_file(files: &[SourceFile], name: &[String]) -> Option<usize> {
    let file = (1..=name.len())
        .rev()
        .find_map(|n| files.iter().position(|file| file.module == name[..n]))?;
    let rest = &name[files[file].module.len()..];
    let Some(target) = rest
        .first()
        .and_then(|name| files[file].reexports.get(name))
    else {
        return Some(file);
    };
    if target == name {
        return Some(file);
    }
    defining_file(files, target)
}

/// Which file imports which, by their places in `files`.
fn import_edges(files: &[SourceFile]) -> BTreeSet<(usize, usize)> {
    let mut edges = BTreeSet::new();
    for (importing, file) in files.iter().enumerate() {
        for name in &file.named {
            let imported = defining_file(files, name);
            edges.extend(
                imported
                    .filter(|&imported| imported != importing)
                    .map(|imported| (importing, imported)),
            );
        }
    }
    edges
}

/// The modules in the order of `src/lib.rs`.
fn module_order() -> Vec<String> {
    let lib = fs_err::read_to_string(source_dir().join("lib.rs")).expect("read");
    let declared = lib
        .lines()
        .filter_map(|line| line.strip_suffix(';'))
        .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod ")));
    declared.map(str::to_owned).collect()
}

#[test]
fn modules_import_only_upwards() {
    let files = read_sources();
    let order = module_order();
    let rank = |file: &SourceFile| {
        let rank = order.iter().position(|module| *module == file.module[0]);
        rank.unwrap_or_else(|| panic!("`{}` has no place in src/lib.rs", file.path))
    };

    let edges = import_edges(&files);
    assert!(edges.len() > 300, "only {} imports are seen", edges.len());
    for (importing, imported) in edges {
        let (importing, imported) = (&files[importing], &files[imported]);
        assert!(
            rank(importing) >= rank(imported),
            "`{}` imports `{}`, which does not stand above it in src/lib.rs",
            importing.path,
            imported.path
        );
    }
}

/// Whether `to` is reached from `from` by imports.
fn reaches(edges: &BTreeSet<(usize, usize)>, from: usize, to: usize) -> bool {
    let mut reached = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        for &(_, next) in edges.range((file, 0)..(file + 1, 0)) {
            if reached.insert(next) {
                waiting.push(next);
            }
        }
    }
    reached.contains(&to)
}

#[test]
fn no_files_import_each_other() {
    let files = read_sources();
    let edges = import_edges(&files);
    let in_circles = edges.iter().filter(|edge| reaches(&edges, edge.1, edge.0));
    let named: Vec<String> = in_circles
        .map(|&(from, to)| format!("{} -> {}", files[from].path, files[to].path))
        .collect();
    assert!(named.is_empty(), "in a circle:\n{}", named.join("\n"));
}

/// The verbs of `src/cmd/mod.rs`: each is a public module there, and a file or a folder.
fn verb_names() -> Vec<String> {
    let text = fs_err::read_to_string(source_dir().join("cmd/mod.rs")).expect("read");
    let public = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    public.map(str::to_owned).collect()
}

#[test]
fn no_verb_imports_another() {
    let files = read_sources();
    let verbs = verb_names();
    assert!(verbs.len() > 10, "only {} verbs are seen", verbs.len());
    let verb_of = |file: &SourceFile| {
        let name = file.module.get(1).filter(|_| file.module[0] == "cmd")?;
        verbs.iter().find(|verb| *verb == name).cloned()
    };

    for (importing, imported) in import_edges(&files) {
        let (importing, imported) = (&files[importing], &files[imported]);
        let (Some(verb), Some(other)) = (verb_of(importing), verb_of(imported)) else {
            continue;
        };
        assert_eq!(
            verb, other,
            "`{}` imports `{}`, which is another verb's",
            importing.path, imported.path
        );
    }
}

/// What people are told to type when something is wrong is typed in haste.
#[test]
fn nothing_that_destroys_is_told_to_be_typed() {
    for path in source_paths(&source_dir()) {
        let text = fs_err::read_to_string(&path).expect("read");
        for (line, number) in text.lines().zip(1..) {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for words in ["--overwrite", "rm -", "submit_dag -f"] {
                let place = format!("{}:{number}", path.display());
                assert!(!line.contains(words), "{place}: {words}");
            }
        }
    }
}
