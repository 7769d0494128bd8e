//! Tests of the Python module in the wheel, by the program that it runs.

use std::path::Path;
use std::process::Command;

use crate::place::{Outcome, Place};

/// Runs `code` with the module and the program; `None` without Python.
fn python(place: &Place, code: &str) -> Option<Outcome> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_BIN_EXE_poolcast"));
    let programs = program.parent().expect("a directory").display();
    let output = Command::new("python3")
        .args(["-c", code])
        .current_dir(place.path(""))
        .env("PYTHONPATH", root.join("src/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", format!("{programs}:/usr/bin:/bin"))
        .output();
    output.ok().map(Outcome::of)
}

#[test]
fn answers_and_holds_are_dicts() {
    let place = Place::with_log();
    let code = "import poolcast
log = 'EventLog.xz'
answers = poolcast.advise(log, history=None, all_users=False)
print(len(answers), len(poolcast.holds(log)))
one = poolcast.advise(answers[0]['job'], log=[log])
print([answer['job'] for answer in one] == [answers[0]['job']])
try:
    poolcast.advise('no.log')
except poolcast.PoolcastError as error:
    print(str(error).splitlines()[0])
";
    let Some(outcome) = python(&place, code) else {
        return;
    };
    assert_eq!(
        outcome.stdout,
        "8 2125\nTrue\nerror: `no.log` is neither a job id nor a file or directory\n",
        "{outcome}"
    );
}
