"""The crates that are linked into the program, for its bill of materials and for their licences."""

import os
import subprocess

TARGET = "x86_64-unknown-linux-gnu"
OPTIONS = ["--locked", "--features", os.environ.get("FEATURES", "")]


def printed(*command):
    """Runs a command; returns its stdout."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked_crates():
    """Returns {(name, version): licence} of the linked crates, and the set of those of this workspace. Crates that only build others, such
    as macros, are not linked. FEATURES are Cargo's features."""
    licences, own = {}, set()
    edges = ["--edges", "normal,no-proc-macro", "--target", TARGET, "--prefix", "none", "--no-dedupe"]
    for line in printed("cargo", "tree", *OPTIONS, "--package", "poolcast", *edges, "--format", "{p}\t{l}").splitlines():
        title, licence = line.split("\t")
        name, version, *place = title.split()
        crate = name, version.removeprefix("v")
        licences[crate] = licence
        if place:
            own.add(crate)
    return licences, own


def package_version(package):
    """Returns the version and the architecture of a Debian package."""
    return printed("dpkg-query", "--show", "--showformat", "${Version} ${Architecture}", package).split()
