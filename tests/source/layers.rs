//! Checks the imports within each crate: modules import only modules above them, no two files import
//! each other, directly or by way of others, and no verb imports another verb.
//!
//! Cargo itself forbids that two crates depend on each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use source_checks::{read_files, repository, rust_files};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, UseTree, Visibility};

/// The path of a module or an item within its crate, without the word `crate`.
type Name = Vec<String>;

/// Folders of `src` whose `lib.rs` lists modules in the order in which they may import each other.
const ORDERED_CRATES: [&str; 2] = ["base", "holds"];

/// A source file as the compiler sees it, without tests.
struct SourceFile {
    /// Path within the crate's folder.
    path: String,
    module: Name,
    /// Names used by the code, as paths from the top of the crate.
    named: Vec<Name>,
    /// Items of other files that this file re-exports, by their name here.
    reexports: BTreeMap<String, Name>,
    /// Every identifier that the code mentions outside of its imports.
    mentioned: BTreeSet<String>,
}

/// The files of one crate.
struct SourceCrate {
    name: String,
    files: Vec<SourceFile>,
}

/// `config/mod.rs` and `config.rs` are the module `config`, `config/sweep.rs` is `config::sweep`, and
/// `lib.rs` is the top of the crate.
fn module_of(path: &str) -> Name {
    let stem = path.strip_suffix(".rs").expect("a Rust file");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if stem == "lib" {
        return Name::new();
    }
    stem.split('/').map(str::to_owned).collect()
}

/// Collects the names that a file uses.
struct NameCollector<'a> {
    file: &'a mut SourceFile,
    /// All modules of the crate.
    modules: &'a BTreeSet<Name>,
    /// The current module: the file's own, or one within the file.
    module: Name,
}

impl NameCollector<'_> {
    /// `segments` as a path from the top of the crate; `None` for a name of another crate.
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
            // A module names its own children without a prefix.
            child => {
                let module = [&base[..], &[child.to_owned()]].concat();
                if !self.modules.contains(&module) {
                    return None;
                }
            }
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
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        self.add_use(&[], &item.tree, is_reexport);
    }

    // `pub(in crate::cmd)` limits who may see an item. It uses nothing.
    fn visit_visibility(&mut self, _visibility: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.file.mentioned.insert(segments[0].clone());
        if segments.len() > 1 {
            self.file.named.extend(self.absolute(&segments));
        }
        visit::visit_path(self, path);
    }
}

/// Reads the files `paths` of the crate in `dir`.
fn read_crate(name: &str, dir: &Path, paths: &[PathBuf]) -> SourceCrate {
    let relative = |path: &PathBuf| {
        let inside = path.strip_prefix(dir).expect("a path in the crate");
        inside.to_string_lossy().into_owned()
    };
    let modules: BTreeSet<Name> = paths
        .iter()
        .map(|path| module_of(&relative(path)))
        .collect();
    let mut files = Vec::new();
    for path in paths {
        let text = fs_err::read_to_string(path).expect("a readable file");
        let path = relative(path);
        let module = module_of(&path);
        let mut file = SourceFile {
            path,
            module: module.clone(),
            named: Vec::new(),
            reexports: BTreeMap::new(),
            mentioned: BTreeSet::new(),
        };
        let syntax = syn::parse_file(&text).expect("Rust");
        let mut collector = NameCollector {
            file: &mut file,
            modules: &modules,
            module,
        };
        collector.visit_file(&syntax);

        // A re-export that the file itself uses is an import, too.
        let used = |name: &&String| file.mentioned.contains(*name);
        let imports: Vec<String> = file.reexports.keys().filter(used).cloned().collect();
        for name in imports {
            file.named.push(file.reexports[&name].clone());
        }
        files.push(file);
    }
    SourceCrate {
        name: name.to_owned(),
        files,
    }
}

/// The crates of the workspace, read once for all tests: each folder of `src`, and the program, which has the rest.
static CRATES: LazyLock<Vec<SourceCrate>> = LazyLock::new(read_crates);

fn read_crates() -> Vec<SourceCrate> {
    let src = repository().join("src");
    let mut crates = Vec::new();
    for entry in fs_err::read_dir(&src).expect("a readable directory") {
        let dir = entry.expect("a readable entry").path();
        if dir.join("lib.rs").exists() {
            let name = dir
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            crates.push(read_crate(&name, &dir, &rust_files(&dir)));
        }
    }
    let mut program = vec![src.join("lib.rs")];
    program.extend(rust_files(&src.join("cmd")));
    crates.push(read_crate("poolcast", &src, &program));
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    crates
}

impl SourceCrate {
    /// The file that defines `name`, through all re-exports.
    fn defining_file(&self, name: &[String]) -> Option<usize> {
        let file_of = |module: &[String]| self.files.iter().position(|file| file.module == module);
        let file = (0..=name.len()).rev().find_map(|n| file_of(&name[..n]))?;
        let rest = &name[self.files[file].module.len()..];
        match rest
            .first()
            .and_then(|name| self.files[file].reexports.get(name))
        {
            Some(target) if target != name => self.defining_file(target),
            _ => Some(file),
        }
    }

    /// Pairs of an importing and an imported file, by index.
    fn import_edges(&self) -> BTreeSet<(usize, usize)> {
        let mut edges = BTreeSet::new();
        for (importing, file) in self.files.iter().enumerate() {
            for name in &file.named {
                let imported = self.defining_file(name);
                edges.extend(
                    imported
                        .filter(|&imported| imported != importing)
                        .map(|imported| (importing, imported)),
                );
            }
        }
        edges
    }
}

/// Returns true if imports lead from the file `from` to the file `to`.
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
    let crates = &*CRATES;
    assert!(crates.len() > 10, "only {} crates were found", crates.len());
    let mut edge_count = 0;
    for source_crate in crates {
        let edges = source_crate.import_edges();
        edge_count += edges.len();
        let path = |file: usize| &source_crate.files[file].path;
        let in_circles = edges.iter().filter(|edge| reaches(&edges, edge.1, edge.0));
        let named: Vec<String> = in_circles
            .map(|&(from, to)| format!("{} -> {}", path(from), path(to)))
            .collect();
        let name = &source_crate.name;
        assert!(
            named.is_empty(),
            "in a circle in {name}:\n{}",
            named.join("\n")
        );
    }
    assert!(edge_count > 1000, "only {edge_count} imports were found");
}

/// The modules that `lib.rs` of the crate in `folder` declares, in its order.
fn module_order(folder: &str) -> Vec<String> {
    let path = repository().join("src").join(folder).join("lib.rs");
    let lib = fs_err::read_to_string(path).expect("a readable file");
    let declared = lib
        .lines()
        .filter_map(|line| line.strip_suffix(';'))
        .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod ")));
    declared.map(str::to_owned).collect()
}

#[test]
fn modules_import_only_modules_above_them() {
    for source_crate in &*CRATES {
        if !ORDERED_CRATES.contains(&&*source_crate.name) {
            continue;
        }
        let order = module_order(&source_crate.name);
        let rank = |file: &SourceFile| order.iter().position(|module| *module == file.module[0]);
        for (importing, imported) in source_crate.import_edges() {
            let (importing, imported) = (
                &source_crate.files[importing],
                &source_crate.files[imported],
            );
            if importing.module.is_empty() {
                continue;
            }
            assert!(
                rank(importing) >= rank(imported),
                "`{}` imports `{}`, which is not above it in lib.rs of {}",
                importing.path,
                imported.path,
                source_crate.name
            );
        }
    }
}

/// The verbs of `src/cmd/mod.rs`. Each is a public module there, and a file or a folder.
fn verb_names() -> Vec<String> {
    let path = repository().join("src/cmd/mod.rs");
    let text = fs_err::read_to_string(path).expect("a readable file");
    let public = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    public.map(str::to_owned).collect()
}

#[test]
fn no_verb_imports_another() {
    let program = CRATES.iter().find(|found| found.name == "poolcast");
    let program = program.expect("the program");
    let verbs = verb_names();
    assert!(verbs.len() > 10, "only {} verbs were found", verbs.len());
    let verb_of = |file: &SourceFile| {
        let name = file.module.get(1).filter(|_| file.module[0] == "cmd")?;
        verbs.iter().find(|verb| *verb == name).cloned()
    };

    for (importing, imported) in program.import_edges() {
        let (importing, imported) = (&program.files[importing], &program.files[imported]);
        let (Some(verb), Some(other)) = (verb_of(importing), verb_of(imported)) else {
            continue;
        };
        assert_eq!(
            verb, other,
            "`{}` imports `{}`, which belongs to another verb",
            importing.path, imported.path
        );
    }
}

/// Cargo needs the manifest of each member, also for the layer with the dependencies alone.
#[test]
fn containerfile_copies_each_manifest() {
    let read = |name: &str| fs_err::read_to_string(repository().join(name)).expect("readable");
    let (manifest, containerfile) = (read("Cargo.toml"), read("Containerfile"));
    let quoted = manifest.split('"').skip(1).step_by(2);
    let folders: BTreeSet<&str> = quoted
        .filter(|text| text.starts_with("src/") || text.starts_with("tests/"))
        .filter(|text| !text.ends_with(".rs"))
        .collect();
    assert!(folders.len() > 10, "only {folders:?} were found");
    for folder in folders {
        let copied = format!("COPY {folder}/Cargo.toml {folder}/\n");
        assert!(containerfile.contains(&copied), "missing: {copied}");
    }
}

/// `ci/build/dependencies` leaves out everything from the first list of tables on.
#[test]
fn layer_of_dependencies_has_all_of_them_and_the_profiles() {
    let manifest = fs_err::read_to_string(repository().join("Cargo.toml")).expect("readable");
    let (_, left_out) = manifest.split_once("\n[[").expect("a list of tables");
    let table = left_out
        .lines()
        .find(|line| line.starts_with('[') && !line.starts_with("[["));
    assert_eq!(table, None, "must stand before the first `[[`");
}

/// Users paste commands from error messages in haste.
#[test]
fn no_message_suggests_a_command_that_destroys() {
    for (path, text) in read_files(&rust_files(&repository().join("src"))) {
        for (line, number) in text.lines().zip(1..) {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for words in ["--overwrite", "rm -", "submit_dag -f"] {
                let place = format!("{path}:{number}");
                assert!(!line.contains(words), "{place}: {words}");
            }
        }
    }
}
