//! Holds the line of ARCHITECTURE.md: a module imports only from modules above it.

use std::path::{Path, PathBuf};

/// The modules in the order of `src/lib.rs`; `cli` stands with the verbs, which may import everything.
const ORDER: [&str; 26] = [
    "escape",
    "error",
    "output",
    "process",
    "temporary",
    "files",
    "archive",
    "config",
    "seed",
    "shard",
    "column_table",
    "manifest",
    "salt",
    "eventlog",
    "events",
    "tensors",
    "tables",
    "pipelines",
    "models",
    "training",
    "queue",
    "search",
    "sweep",
    "condor",
    "advice",
    "simulate",
];

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(dir)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|known| *known == module)
}

/// The modules that a line of code names as `crate::module`.
fn imports(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or("");
    let after = code.split("crate::").skip(1);
    let words = after.flat_map(|rest| {
        let group = rest
            .strip_prefix('{')
            .and_then(|rest| rest.split('}').next());
        group
            .unwrap_or(rest)
            .split(',')
            .map(str::trim)
            .map(str::to_owned)
            .take(if group.is_some() { 99 } else { 1 })
            .collect::<Vec<_>>()
    });
    words
        .map(|word| {
            word.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or("")
                .to_owned()
        })
        .collect()
}

#[test]
fn modules_import_only_upwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut edges = 0;
    for path in sources(&src) {
        let inside = path
            .strip_prefix(&src)
            .expect("inside")
            .to_string_lossy()
            .into_owned();
        let module = inside.split(['/', '.']).next().expect("a name").to_owned();
        let Some(own) = rank(&module) else {
            assert!(
                ["main", "lib", "cli", "cmd"].contains(&module.as_str()),
                "`{module}` has no place in the order"
            );
            continue;
        };
        for (number, line) in fs_err::read_to_string(&path)
            .expect("read")
            .lines()
            .enumerate()
        {
            for imported in imports(line)
                .into_iter()
                .filter(|imported| *imported != module)
            {
                let other = rank(&imported);
                let place = format!("{inside}:{}: `{module}` imports `{imported}`", number + 1);
                assert!(
                    other.is_some_and(|other| other < own),
                    "{place}, which does not stand above it"
                );
                edges += 1;
            }
        }
    }
    assert!(edges > 30, "the search for imports found only {edges}");
}

/// What people are told to type when something is wrong is typed in haste.
#[test]
fn nothing_that_destroys_is_told_to_be_typed() {
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = fs_err::read_to_string(&path).expect("read");
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            for words in ["--overwrite", "rm -", "submit_dag -f"] {
                assert!(
                    !line.contains(words),
                    "{}:{}: {words}",
                    path.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn the_order_is_that_of_the_library() {
    let lib = fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"))
        .expect("read");
    let declared: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .filter(|m| rank(m).is_some())
        .collect();
    assert_eq!(declared, ORDER);
}
