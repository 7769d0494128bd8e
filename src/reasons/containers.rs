//! Reads that a container could not be started: an image, a program in it, or the software that runs it.

use super::facts::{Operation, Outcome, ReasonFacts, Side, Thing};
use super::input::ReasonInput;
use super::outcomes::read_outcome;
use super::scan::{Scan, leading_word, without_paths};

/// Words of faults of the software that runs containers, and not of an image.
#[rustfmt::skip]
const CONTAINER_SOFTWARE: &[&str] = &[
    "docker daemon", "cpus are not available", "container name", "mount config", "bind source", "shim task",
    "cgroup", "unable to launch container", "cannot start container", "no space left",
    "failed to create scratch", "oci runtime", "device information", "nvidia", "custom device", "device driver",
    "user namespace", "no such container", "docker: command not found", "while mounting", "failed to mount", "setuid",
    "kernel", "squashfuse", "unsquashfs", "fuse device", "loop device",
];

/// Words of faults of containers.
#[rustfmt::skip]
const CONTAINERS: &[&str] = &[
    "pull image", "oci runtime", "response from daemon", "running docker job", "singularity test",
    "apptainer test", "container test", "docker:", "launch container", "start container", "image architecture",
    "invalid reference format", "docker daemon", "executable file not found in", "manifest unknown",
    "pull access denied", "pull rate limit", "unable to find image", "conveyor failed", "register layer",
    "starting container process", "image targets",
];

/// Words of the pull of an image from a registry.
#[rustfmt::skip]
const PULL_WORDS: &[&str] = &[
    "manifest", "toomanyrequests", "rate limit", "registry", "repository", "unauthorized", "pulling", "insufficient_scope",
    "initializing source", "conveyor failed", "http status", "net/http", "awaiting headers", "get _", "head _",
];

/// Words before the name of an image that was pulled.
const PULLED_NAMES: &[&str] = &[
    "pull image ",
    "manifest for ",
    "access denied for ",
    "unable to find image ",
    "docker://",
];

/// Words of credentials by which images are pulled.
const IMAGE_CREDENTIALS: &[&str] = &["docker_pat", "docker cred", "docker pat"];

/// Reads that a container could not be started.
pub(super) fn read_container(input: &ReasonInput<'_>) -> Option<ReasonFacts> {
    let scan = &input.scan;
    if scan.has_any(IMAGE_CREDENTIALS) {
        return Some(
            ReasonFacts::of(Thing::Credential, Operation::Pull, Outcome::Absent)
                .on(Side::AccessPoint),
        );
    }
    if !scan.has_any(CONTAINERS) {
        return None;
    }

    let is_image = |name: &&str| !name.starts_with("linux/");
    let named = |words: &&str| scan.after(words).and_then(leading_word).filter(is_image);
    let pulled = PULLED_NAMES.iter().find_map(named);
    // Words in the name of an image mean nothing.
    let said = pulled.map(|image| scan.text.replace(image, "_"));
    let words = without_paths(said.as_deref().unwrap_or(scan.text));
    let words = Scan::new(&words);
    let (mut outcome, number) = read_outcome(&words);
    let program = scan.name_after("exec: ").filter(|_| {
        matches!(
            outcome,
            Outcome::Absent | Outcome::Denied | Outcome::WrongFormat
        )
    });
    if scan.has("invalid image name") {
        outcome = Outcome::Invalid;
    }
    let (thing, operation) =
        failed_part(scan, &words, outcome, program.is_some(), pulled.is_some());
    if scan.has("requested cpus") {
        outcome = Outcome::Busy;
    }
    let name = program
        .or(pulled)
        .or_else(|| image_name(scan).filter(|_| thing == Thing::Image));
    Some(
        ReasonFacts::of(thing, operation, outcome)
            .on(Side::ExecutionPoint)
            .numbered(number)
            .named(name),
    )
}

/// Returns what of a container failed, and when: the program in it, its image, or the software that starts it. The
/// `words` of the reason are without names, and the `outcome` is read from them.
fn failed_part(
    scan: &Scan<'_>,
    words: &Scan<'_>,
    outcome: Outcome,
    names_program: bool,
    names_pulled: bool,
) -> (Thing, Operation) {
    if names_program || scan.has("executable file not found in") {
        (Thing::Program, Operation::Start)
    } else if outcome == Outcome::Invalid && scan.has("image name") {
        (Thing::Image, Operation::Start)
    } else if words.has_any(CONTAINER_SOFTWARE) {
        (Thing::ContainerSoftware, Operation::Start)
    } else if names_pulled || words.has_any(PULL_WORDS) {
        (Thing::Image, Operation::Pull)
    } else if outcome.passes() && words.has("docker") {
        (Thing::ContainerSoftware, Operation::Start)
    } else {
        (Thing::Image, Operation::Start)
    }
}

/// Returns the name of an image that was not pulled.
fn image_name<'a>(scan: &'a Scan<'_>) -> Option<&'a str> {
    scan.after("image name: ")
        .or_else(|| scan.after("image "))
        .and_then(leading_word)
        .filter(|word| word.contains(['/', ':', '.']))
        .or_else(|| scan.name_after("open image "))
}
