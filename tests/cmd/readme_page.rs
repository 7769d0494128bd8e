//! Draws docs/page.svg, the page of a simulated pool that README shows, and compares it with the file. `INSTA_UPDATE=always` writes it,
//! as it does for snapshots.

use std::fmt::Write as _;
use std::process::Command;

use crate::place::Place;

/// Call for the page, without the log's name.
const CALL: &str = "advise --log pool.log --now 2026-01-12T00:10:00Z";

/// Columns of the terminal.
const COLUMNS: usize = 96;

/// Size of a character, in pixels.
const WIDTH: f64 = 8.0;
const HEIGHT: f64 = 18.0;

/// Space around the text, in pixels.
const MARGIN: f64 = 16.0;

/// Colours of the words of answers. Each has a contrast of more than 7 on the background.
const COLOURS: [(&str, &str); 5] = [
    ("RELEASE", "#7ee787"),
    ("TRY", "#79c0ff"),
    ("FIX", "#ffb757"),
    ("LATER", "#d2a8ff"),
    ("LEAVE", "#c9d1d9"),
];

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Draws one line, with the words of answers in their colours.
fn drawn_line(line: &str, number: usize) -> String {
    let y = MARGIN + HEIGHT * (number as f64 + 0.75);
    let mut text = escaped(line);
    for (word, colour) in COLOURS {
        text = text.replace(
            word,
            &format!("<tspan fill=\"{colour}\" font-weight=\"bold\">{word}</tspan>"),
        );
    }
    format!("<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">{text}</text>\n")
}

fn drawn(page: &str) -> String {
    let lines: Vec<&str> = page.trim_end().lines().collect();
    let width = 2.0 * MARGIN + WIDTH * COLUMNS as f64;
    let height = 2.0 * MARGIN + HEIGHT * lines.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"The page about the held jobs of a simulated pool\" font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', \
         monospace\" font-size=\"13\" fill=\"#e6edf3\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        svg.push_str(&drawn_line(line, number));
    }
    let _ = writeln!(svg, "</svg>");
    svg
}

#[test]
fn readme_shows_the_page_of_a_simulated_pool() {
    let place = Place::new();
    place.stdout("simulate -o pool.log --truth truth --jobs 8000 --seed 41");
    let output = Command::new(env!("CARGO_BIN_EXE_poolcast"))
        .args(CALL.split(' '))
        .current_dir(place.path(""))
        .env_clear()
        .env("COLUMNS", COLUMNS.to_string())
        .output();
    let page = String::from_utf8(output.expect("it starts").stdout).expect("UTF-8");
    assert!(page.contains(" held jobs: "), "{page}");

    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/page.svg");
    let svg = drawn(&page);
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        fs_err::write(&path, &svg).expect("written");
    }
    let shown = fs_err::read_to_string(&path).expect("read");
    assert!(
        svg == shown,
        "docs/page.svg is another page: call with INSTA_UPDATE=always\n{page}"
    );
}
