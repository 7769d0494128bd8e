//! `--help` of every verb, and what a call that cannot be understood gets.

use crate::place::Place;

#[test]
fn every_verb_explains_itself() {
    let place = Place::new();
    insta::assert_snapshot!("poolcast", place.stdout("--help"));
    for verb in
        ["run", "collect", "parse", "tensors", "train", "evaluate", "advise", "simulate", "config", "sweep", "dag"]
    {
        let help = place.stdout(&format!("{verb} --help"));
        assert!(help.contains(&format!("Example: poolcast {verb}")), "{verb} shows no example");
        insta::assert_snapshot!(verb, help);
    }
    for step in ["init", "manage", "work", "run", "status", "best", "cleanup"] {
        let help = place.stdout(&format!("sweep {step} --help"));
        assert!(help.contains(&format!("Example: poolcast sweep {step}")), "sweep {step} shows no example");
        insta::assert_snapshot!(format!("sweep-{step}"), help);
    }
}

#[test]
fn unknown_words_are_usage_errors() {
    let place = Place::new();
    insta::assert_snapshot!(place.run("pars EventLog -o events"), @"
    exit 2
    error: unrecognized subcommand 'pars'

      tip: a similar subcommand exists: 'parse'

    Usage: poolcast [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run("parse EventLog"), @"
    exit 2
    error: the following required arguments were not provided:
      --out <DIR>

    Usage: poolcast parse --out <DIR> <LOG>...

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(place.run("--threads 0 config"), @"
    exit 2
    error: invalid value '0' for '--threads <N>': 0 is not in 1..=65535

    For more information, try '--help'.
    ");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Place::new();
    let mut command = place.command("config");
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
