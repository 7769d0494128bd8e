//! Tests of the pager, which shows output that is longer than the terminal.

use crate::place::Place;
use crate::terminal::run_on_terminal;

/// A pager that writes its input to `paged`, and its environment to `environment`.
const KEEPING: &str = "cat >paged; env >environment";

#[test]
fn output_longer_than_the_terminal_is_paged() {
    let place = Place::with_answers();
    let page = "advise run --log EventLog.xz";
    let keeping = [("PAGER", KEEPING), ("WANDB_API_KEY", "secret")];

    let short = run_on_terminal(&place, page, (80, 100), &keeping);
    assert!(short.stdout.contains("8 held jobs"), "{short}");
    assert!(!place.path("paged").exists());

    let long = run_on_terminal(&place, page, (80, 10), &keeping);
    assert_eq!((long.code, &*long.stdout), (Some(0), ""), "{long}");
    let read = |name: &str| fs_err::read_to_string(place.path(name)).expect("read");
    assert_eq!(read("paged"), short.stdout, "colours stay");
    assert!(read("paged").contains("\u{1b}[1m"));
    let environment = read("environment");
    assert!(environment.contains("LESS=FRX\n"), "{environment}");
    assert!(
        !environment.contains("secret") && !environment.contains("POOLCAST_"),
        "{environment}"
    );
    let usual = [("PAGER", KEEPING), ("LESS", "S")];
    run_on_terminal(&place, page, (80, 10), &usual);
    assert!(read("environment").contains("LESS=S\n"), "what users want");

    // Output to a pipe is never paged, and neither is output for programs.
    fs_err::remove_file(place.path("paged")).expect("removed");
    let mut command = place.command(page);
    let piped = command.env("PAGER", KEEPING).output().expect("it starts");
    assert!(!piped.stdout.is_empty() && !place.path("paged").exists());
    for data in ["--json", "--ids --action none"] {
        run_on_terminal(&place, &format!("{page} {data}"), (80, 2), &keeping);
        assert!(!place.path("paged").exists(), "{data}");
    }
}

#[test]
fn pager_can_be_chosen_or_disabled() {
    let place = Place::with_answers();
    let page = "advise run --log EventLog.xz --jobs";
    let shown = |variables: &[(&str, &str)]| run_on_terminal(&place, page, (80, 5), variables);
    let plain = shown(&[("PAGER", "cat")]);
    assert!(plain.stdout.lines().count() > 10, "{plain}");

    assert_eq!(shown(&[("PAGER", "")]).stdout, plain.stdout);
    let dumb = shown(&[("TERM", "dumb"), ("PAGER", "true")]);
    let no_colours = shown(&[("NO_COLOR", "1"), ("PAGER", "cat")]);
    assert_eq!(dumb.stdout, no_colours.stdout);
    let ours = [("POOLCAST_PAGER", "cat"), ("PAGER", "true")];
    assert_eq!(shown(&ours).stdout, plain.stdout);
    let ours = [("POOLCAST_PAGER", "sed s/held/HELD/"), ("PAGER", "cat")];
    assert!(shown(&ours).stdout.contains("8 HELD jobs"));

    // A pager that is missing, or that ends before it has read everything, is no error.
    let missing = shown(&[("PAGER", "no-such-pager -R")]);
    assert_eq!(
        (missing.code, missing.stdout),
        (Some(0), plain.stdout.clone())
    );
    let quits = shown(&[("PAGER", "true")]);
    assert_eq!(
        (quits.code, &*quits.stdout, &*quits.stderr),
        (Some(0), "", "")
    );
    // The exit code is still the one of the advice.
    let asked = run_on_terminal(
        &place,
        "advise run --log EventLog.xz 1161.0",
        (80, 3),
        &[("PAGER", "true")],
    );
    assert_eq!(asked.code, Some(10));
}

#[test]
fn policies_help_and_configurations_are_paged() {
    let place = Place::with_log();
    for call in [
        "policy --log EventLog.xz",
        "config",
        "help advise",
        "sweep run --help",
    ] {
        let paged = run_on_terminal(&place, call, (80, 5), &[("PAGER", "sed s/^/:/")]);
        assert_eq!(paged.code, Some(0), "{paged}");
        let lines = paged.stdout.lines();
        assert!(
            lines.clone().count() > 5 && lines.clone().all(|line| line.starts_with(':')),
            "{call}\n{paged}"
        );
    }
    let version = run_on_terminal(&place, "--version", (80, 2), &[("PAGER", "true")]);
    assert!(version.stdout.starts_with("poolcast "), "{version}");
}
