//! Tests of `--help` of every verb, and of the errors for invalid calls.

use crate::place::{Outcome, Place};

/// Returns the verbs that `--help` lists.
fn verbs(place: &Place) -> Vec<String> {
    let help = place.stdout("--help");
    let (_, groups) = help.split_once("Held jobs:\n").expect("a list");
    let (groups, _) = groups.split_once("\nOptions:\n").expect("its end");
    let names = groups
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| {
        line.split_ascii_whitespace()
            .next()
            .expect("a name")
            .to_owned()
    });
    names.collect()
}

#[test]
fn every_verb_explains_itself() {
    let place = Place::new();
    insta::assert_snapshot!("poolcast", place.stdout("--help"));
    for verb in verbs(&place) {
        let help = place.stdout(&format!("{verb} --help"));
        assert!(
            help.contains(&format!("Example: poolcast {verb}")),
            "{verb} shows no example"
        );
        insta::assert_snapshot!(verb.clone(), help);
    }
    for step in [
        "init", "manage", "work", "run", "status", "best", "evaluate", "trials", "conclude",
        "cleanup",
    ] {
        let help = place.stdout(&format!("sweep {step} --help"));
        assert!(
            help.contains(&format!("Example: poolcast sweep {step}")),
            "sweep {step} shows no example"
        );
        insta::assert_snapshot!(format!("sweep-{step}"), help);
    }
    for step in [
        "trace", "replay", "samples", "train", "validate", "advise", "check", "start", "score",
        "chain", "link",
    ] {
        let help = place.stdout(&format!("provision {step} --help"));
        assert!(help.contains(&format!("Example: poolcast provision {step}")));
        insta::assert_snapshot!(format!("provision-{step}"), help);
    }
    let help = place.stdout("site init --help");
    assert!(help.contains("Example: poolcast site init"));
    insta::assert_snapshot!("site-init", help);
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
fn closed_pipe_is_no_error() {
    let place = Place::new();
    let mut command = place.command("config");
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn version_lists_commit_target_and_features() {
    let place = Place::new();
    let number = format!("poolcast {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(place.stdout("-V"), number);
    let version = place.stdout("--version");
    assert!(version.starts_with(&number), "{version}");
    let features = if cfg!(feature = "cuda") {
        "cuda"
    } else {
        "none"
    };
    let about: Vec<&str> = version.lines().skip(1).collect();
    assert!(about[0].starts_with("commit: "), "{version}");
    assert!(
        about[1].starts_with("target: ") && about[1].contains(std::env::consts::ARCH),
        "{version}"
    );
    assert!(
        about[2].starts_with(&format!("features: {features}")),
        "{version}"
    );
}

/// Bash itself runs the completion script.
#[test]
fn bash_completes_verbs_steps_and_options() {
    let place = Place::new();
    place.write("completions", place.stdout("completions bash"));
    let ask = r#"source completions; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _poolcast poolcast "${@: -1}" "${@: -2:1}"
        echo "${COMPREPLY[@]}""#;
    for (words, completed) in [
        (&["poolcast", "pa"][..], "parse"),
        (&["poolcast", "sweep", "cl"], "cleanup"),
        (&["poolcast", "parse", "--st"], "--strict --stats"),
        (&["poolcast", "tensors", "--split", "ti"], "time"),
    ] {
        let mut bash = std::process::Command::new("bash");
        let bash = bash
            .current_dir(place.path(""))
            .args(["-euc", ask, "-"])
            .args(words)
            .output()
            .expect("bash starts");
        let found = String::from_utf8(bash.stdout).expect("text");
        assert_eq!(
            found.trim_end(),
            completed,
            "{words:?}\n{}",
            String::from_utf8_lossy(&bash.stderr)
        );
    }
}

#[test]
fn every_shell_has_its_completions() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.stdout(&format!("completions {shell}"));
        let missing = verbs(&place)
            .into_iter()
            .find(|verb| !script.contains(verb.as_str()));
        assert_eq!(missing, None, "{shell}");
    }
    assert_eq!(place.run("completions tcsh").code, Some(2));
}

#[test]
fn every_verb_has_a_manual_page() {
    let place = Place::new();
    place.stdout("man -o pages");
    place.stdout("man -o again");
    let pages = place.files("pages");
    assert_eq!(pages, place.files("again"), "the same bytes each time");
    for verb in verbs(&place) {
        let page = String::from_utf8(pages[&format!("poolcast-{verb}.1")].clone()).expect("text");
        assert!(page.contains(&format!(".TH poolcast-{verb} 1 ")), "{page}");
        assert!(
            page.contains(&format!("Example: poolcast {verb}")),
            "{page}"
        );
    }
    for page in ["poolcast.1", "poolcast-sweep-init.1"] {
        assert!(pages.contains_key(page), "no {page}");
    }
    assert!(!pages.contains_key("poolcast-help.1"));
}

#[test]
fn quiet_leaves_errors_only() {
    let place = Place::with_log();
    place.stdout("parse EventLog.xz -o events");
    // The log has nothing new, which is a note. A missing log is an error.
    for (flag, variable, is_said) in [
        ("", "", true),
        ("-q", "", false),
        ("--quiet", "info", false),
        ("", "error", false),
        ("-v", "error", true),
    ] {
        let mut command = place.command(&format!("{flag} parse EventLog.xz -o events"));
        let command = if variable.is_empty() {
            &mut command
        } else {
            command.env("POOLCAST_LOG", variable)
        };
        let outcome = Outcome::of(command.output().expect("the program starts"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert_eq!(
            outcome.stderr.contains("nothing new in the logs"),
            is_said,
            "{flag} {variable}\n{outcome}"
        );
        assert!(is_said || outcome.stderr.is_empty(), "{outcome}");
    }
    assert!(
        place
            .run("-q parse absent -o other")
            .stderr
            .starts_with("error: ")
    );
    insta::assert_snapshot!(place.run("-q -v config"), @"
    exit 2
    error: the argument '--quiet' cannot be used with '--verbose...'

    Usage: poolcast --quiet <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn verbose_is_as_the_variable() {
    let place = Place::new();
    let asked = place.run("-vv --threads 2 config").stderr;
    assert!(asked.contains("2 threads"), "{asked}");
    let by_variable = place
        .command("--threads 2 config")
        .env("POOLCAST_LOG", "debug")
        .output()
        .expect("it starts");
    assert_eq!(Outcome::of(by_variable).stderr, asked);
    assert_eq!(place.run("-v --threads 2 config").stderr, "");
    let wrong = place
        .command("config")
        .env("POOLCAST_LOG", "a=b=c")
        .output()
        .expect("it starts");
    insta::assert_snapshot!(Outcome::of(wrong), @r#"
    exit 2
    error: cannot use POOLCAST_LOG=`a=b=c`
      caused by: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5

    hint: expected error, warn, info or debug, also per crate: POOLCAST_LOG=warn,poolcast_sweep=debug
    "#);
}
