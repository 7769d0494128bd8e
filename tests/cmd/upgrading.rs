//! Tests of docs/upgrading.md: what becomes of results that another version has made.

use std::path::Path;

use crate::docs::{blocks, home, read, type_command};
use crate::place::Place;

/// Gives each JSON document in `dir` that has a format version another one; returns their number.
fn change_versions(dir: &Path) -> usize {
    let mut changed = 0;
    for entry in fs_err::read_dir(dir).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            changed += change_versions(&path);
        } else if path.extension().is_some_and(|end| end == "json") {
            let text = fs_err::read_to_string(&path).expect("read");
            let other = text.replace("\"format_version\": ", "\"format_version\": 99");
            changed += usize::from(other != text);
            fs_err::write(&path, other).expect("written");
        }
    }
    changed
}

/// Runs `command` in the directory of a run, which must succeed; returns its output.
fn typed(home: &Place, command: &str) -> String {
    let outcome = type_command(home, command);
    assert_eq!(outcome.code, Some(0), "{command}\n{outcome}");
    outcome.stdout
}

#[test]
fn run_after_an_upgrade_makes_results_again_and_keeps_the_answers() {
    let page = read("docs/upgrading.md");
    let [commands] = blocks(&page, "sh")[..] else {
        panic!("not one block");
    };
    let home = home();
    typed(&home, "poolcast collect EventLog -o archive");
    let advice = typed(&home, commands);
    let given = || fs_err::read(home.path("out/answers.jsonl")).expect("answers");
    let answers = given();
    assert!(!answers.is_empty());
    assert!(change_versions(&home.path("out")) >= 3);

    let refused = type_command(&home, "poolcast advise");
    assert_eq!(refused.code, Some(2), "{refused}");
    let says = |words: &str| refused.stderr.contains(words);
    assert!(
        says(" format version 99") && says("poolcast run"),
        "{refused}"
    );
    assert_eq!(given(), answers);

    let last_page = |printed: &str| printed.rsplit("held job").next().map(str::to_owned);
    assert_eq!(last_page(&typed(&home, commands)), last_page(&advice));
    assert_eq!(given(), answers, "the same answers are not new");
}

#[test]
fn archive_of_another_version_is_left_as_it_is() {
    let home = home();
    typed(&home, "poolcast collect EventLog -o archive");
    assert_eq!(change_versions(&home.path("archive")), 1);
    let before = home.files("archive");

    let refused = type_command(&home, "poolcast collect EventLog -o archive");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("format version 99"), "{refused}");
    assert_eq!(home.files("archive"), before);
}
