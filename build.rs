//! Sets the build facts that `--version` prints: the commit, the target and the features of the
//! build.
#![allow(clippy::print_stdout, reason = "Cargo reads it")]

use std::env;
use std::path::Path;
use std::process::Command;

/// Paths of the sources that determine the program's behaviour. A commit with changes in one of
/// these is reported as modified.
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

/// Returns the commit: `BUILD_COMMIT` if it is set (for builds without a repository, such as in a
/// container), else the commit that git reports.
///
/// A development build does not ask git, because every commit would then rebuild the program.
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

/// Returns the commit of the sources, marked if they are modified; `None` outside a repository. A
/// source tarball may be unpacked in the repository of another project. Its commit is not the
/// commit of the sources, so the top directory is compared first.
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

/// Runs a git command and returns its trimmed output; `None` if it fails.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Lists the optional features of the build, and `static` if the C library is linked statically.
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
