//! Tells the program what `--version` says: the commit, the target and the features that it is
//! built of.
#![allow(clippy::print_stdout, reason = "Cargo reads it")]

use std::env;
use std::path::Path;
use std::process::Command;

/// What decides how the program behaves. A commit does not name it where one of these is changed.
const SOURCES: [&str; 6] = [
    "build.rs",
    "Cargo.toml",
    "Cargo.lock",
    "src",
    "config",
    "condor",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BUILD_COMMIT");
    println!("cargo::rustc-env=BUILD_COMMIT={}", commit());
    println!("cargo::rustc-env=BUILD_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=BUILD_FEATURES={}", features());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// The commit: `BUILD_COMMIT` where there is no repository, such as in a container, else what git
/// says.
///
/// A development build does not ask git, or every commit would build the program anew.
fn commit() -> String {
    let given = variable("BUILD_COMMIT");
    if !given.is_empty() {
        return given;
    }
    if variable("PROFILE") != "release" {
        return "unknown (a development build)".to_owned();
    }
    committed().unwrap_or_else(|| "unknown (built outside a git repository)".to_owned())
}

/// What git says of the sources. A tarball of them may lie in the repository of something else,
/// whose commit is not theirs.
fn committed() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = Path::new(&variable("CARGO_MANIFEST_DIR"))
        .canonicalize()
        .ok()?;
    if Path::new(&top).canonicalize().ok()? != here {
        return None;
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in SOURCES.into_iter().chain([&log[..]]) {
        println!("cargo::rerun-if-changed={path}");
    }
    let status = git(&[&["status", "--porcelain", "--"][..], &SOURCES].concat())?;
    Some(if status.is_empty() {
        commit
    } else {
        format!("{commit}, modified")
    })
}

/// What a git command prints; nothing where it fails.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The features, and whether the C library is in the program.
fn features() -> String {
    let cuda = env::var_os("CARGO_FEATURE_CUDA").map(|_| "cuda");
    let linked_statically = variable("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    let features: Vec<&str> = cuda
        .into_iter()
        .chain(linked_statically.then_some("static"))
        .collect();
    if features.is_empty() {
        "none".to_owned()
    } else {
        features.join(", ")
    }
}
