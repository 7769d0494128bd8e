//! `poolcast report`: one page on a run or a sweep, and the same as JSON.

use std::sync::LazyLock;
use std::time::Duration;

use crate::place::Place;
use crate::run::SMALL;

/// A place where `small.yaml` was run to its end in `out`.
static FINISHED: LazyLock<Place> = LazyLock::new(|| {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    place.stdout("run small.yaml");
    place
});

/// What stands in a file of `place`.
fn text(place: &Place, name: &str) -> String {
    fs_err::read_to_string(place.path(name)).expect("read")
}

#[test]
fn a_run_leaves_a_page_that_needs_nothing_else() {
    let page = text(&FINISHED, "out/report.html");
    for part in ["held", "best", "evaluation", "sweep", "data", "provenance"] {
        assert!(
            page.contains(&format!("<section id=\"{part}\"")),
            "no {part}"
        );
    }
    assert!(page.contains("default-src 'none'"));
    let page = page
        .split("<script>")
        .next()
        .expect("what stands before it");
    let loads = ["src=", "href=\"http", "url(", "@import", "NaN", "inf "];
    for word in loads {
        assert!(!page.contains(word), "`{word}` is in the page");
    }
    assert!(page.contains("condor_release "), "there is nothing to type");

    let figures = page.matches("<figure ").count();
    assert!(figures >= 12, "{figures} figures");
    assert_eq!(page.matches("<desc ").count(), figures);
    assert_eq!(page.matches("<summary>The numbers of").count(), figures);
}

#[test]
fn the_same_input_makes_the_same_page_wherever_it_is_made() {
    for (name, variables) in [
        ("a.html", [("TZ", "Asia/Tokyo"), ("LC_ALL", "de_DE.UTF-8")]),
        ("b.html", [("TZ", "UTC"), ("RAYON_NUM_THREADS", "3")]),
    ] {
        let mut command = FINISHED.command(&format!("report out -o {name}"));
        let output = command.envs(variables).output().expect("it starts");
        assert!(output.status.success());
        assert_eq!(text(&FINISHED, name), text(&FINISHED, "out/report.html"));
    }
}

#[test]
fn the_page_and_the_json_document_have_the_same_rows() {
    let report = FINISHED.json("report out --json");
    let page = text(&FINISHED, "out/report.html");
    let mut rows = 0;
    let mut tables = 0;
    for part in report["parts"].as_array().expect("parts") {
        for block in part["blocks"].as_array().expect("blocks") {
            let table = match block["kind"].as_str() {
                Some("table") => block,
                Some("figure") => &block["table"],
                _ => continue,
            };
            tables += 1;
            rows += table["rows"].as_array().expect("rows").len();
        }
    }
    assert_eq!(page.matches("<table").count(), tables);
    // Each table has a row of names, too.
    assert_eq!(page.matches("<tr>").count(), rows + tables);
}

/// The scores of the curves are those that `evaluate` has.
#[test]
fn the_area_below_the_curve_is_that_of_the_scores() {
    let report = FINISHED.json("report out --json");
    let parts = report["parts"].as_array().expect("parts");
    let blocks = parts
        .iter()
        .flat_map(|part| part["blocks"].as_array().expect("blocks"));
    let roc = blocks
        .clone()
        .find(|block| block["id"] == "roc")
        .expect("a curve");
    let scores = blocks
        .clone()
        .find(|block| block["title"] == "Scores on holds that the model has not seen")
        .expect("scores");

    let mut area = 0.0;
    let points = roc["table"]["rows"].as_array().expect("points");
    let number = |cell: &serde_json::Value| cell.as_f64().expect("a number");
    for pair in points.windows(2) {
        let width = number(&pair[1][0]) - number(&pair[0][0]);
        area += width * (number(&pair[0][1]) + number(&pair[1][1])) / 2.0;
    }
    let is_area = |row: &&serde_json::Value| {
        row[0]
            .as_str()
            .is_some_and(|name| name.starts_with("ROC-AUC"))
    };
    let rows = scores["rows"].as_array().expect("rows");
    let scored = number(&rows.iter().find(is_area).expect("a row")[1]);
    // A curve of many points is drawn with fewer.
    assert!((area - scored).abs() < 0.01, "{area} beside {scored}");
}

#[test]
fn an_anonymous_page_names_nobody() {
    FINISHED.stdout("report out --anonymous -o nobody.html");
    let page = text(&FINISHED, "nobody.html");
    for word in [
        "localhost",
        "tester",
        "EventLog",
        "1148.1",
        "condor_release",
        "out.txt",
        "small",
    ] {
        assert!(!page.contains(word), "`{word}` is in the page");
    }
    assert!(page.contains("8 held jobs"), "the counts stay");
}

#[test]
fn a_single_run_has_a_page_that_says_what_is_missing() {
    let place = Place::with_run();
    place.stdout("report run -o run.html");
    let page = text(&place, "run.html");
    assert!(page.contains("Loss of the best network by epoch"));
    assert!(page.contains("poolcast evaluate run TENSORS"));
    assert!(page.contains("poolcast advise run --log LOG"));
    assert!(page.contains("rate by hold code"), "it was evaluated");
}

#[test]
fn what_is_no_result_is_refused() {
    let place = Place::new();
    fs_err::create_dir(place.path("empty")).expect("made");
    insta::assert_snapshot!(place.run("report empty"), @r"
    exit 2
    error: `empty` is neither a run nor a sweep nor a DAG

    hint: name the directory that `poolcast run`, `sweep init`, `dag` or `train` wrote
    ");
}

/// A name or an error from outside is shown, and is no markup.
#[test]
fn hostile_names_and_errors_are_only_shown() {
    let place = Place::with_log();
    let sweep = r#"wandb: {sweep: {name: "</title></script><script>alert(1)</script>\u202e"}}"#;
    place.write("hostile.yaml", format!("{SMALL}{sweep}\n"));
    place.stdout("sweep init hostile.yaml");
    place.stdout("report out");
    let begun = text(&place, "out/report.html");
    assert!(begun.contains("No trial has ended yet"));

    place.stdout("sweep run out");
    let rows = text(&place, "out/results.jsonl");
    let long = format!("<img src=x>\u{202e}{}", "x".repeat(10_000));
    let error = serde_json::to_string(&long).expect("JSON");
    let rows = rows.replacen("\"error\":null", &format!("\"error\":{error}"), 1);
    place.write("out/results.jsonl", rows);
    place.stdout("report out");
    let ended = text(&place, "out/report.html");
    assert!(ended.contains("&lt;img src=x&gt;"), "the error is shown");
    assert!(!ended.contains(&"x".repeat(400)), "it is cut");

    for page in [begun, ended] {
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(!page.contains("<img"));
        assert!(
            !page.contains('\u{202e}'),
            "what turns the direction of text is left"
        );
    }
}

#[test]
fn a_watched_page_is_read_anew_until_all_is_over() {
    let place = Place::with_log();
    place.write("small.yaml", SMALL);
    place.stdout("sweep init small.yaml");
    let mut watching = place
        .command("-q report out --watch")
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let path = place.path("out/report.html");
    for _ in 0..600 {
        if path.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(text(&place, "out/report.html").contains("<body data-reload=\"10\">"));

    place.stdout("sweep run out");
    assert!(watching.wait().expect("it ends").success());
    assert!(text(&place, "out/report.html").contains("<body>"));
}
