//! The whole command line, whose help lists the verbs in groups.

use clap::{Command, CommandFactory as _};

use super::Cli;
use poolcast_base::output;

/// Maximum width of the help, in columns, and its width in a pipe.
pub(super) const HELP_WIDTH: usize = 100;

/// Width of the column of names.
const NAME_WIDTH: usize = 15;

/// The groups of verbs, in the order of the help, the most used first.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Held jobs",
        &[
            "advise", "explain", "learn", "run", "report", "rehearse", "policy",
        ],
    ),
    ("Event logs", &["collect", "parse", "simulate"]),
    (
        "Models and sweeps",
        &[
            "tensors", "train", "evaluate", "sweep", "dag", "track", "predict",
        ],
    ),
    ("Access points", &["doctor", "site", "publish", "share"]),
    ("Slurm", &["provision"]),
    ("This program", &["config", "completions", "man"]),
];

/// Returns the command line of the program.
pub fn program() -> Command {
    let program = Cli::command();
    let list = verb_list(&program);
    let style = *program.get_styles().get_header();
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n{style}Options:{style:#}\n{{options}}"
    ))
}

/// Lists the verbs of `program` below the headings of their groups.
fn verb_list(program: &Command) -> String {
    let columns = output::terminal_size().map_or(HELP_WIDTH, |(columns, _)| columns);
    let width = columns.clamp(3 * NAME_WIDTH, HELP_WIDTH) - NAME_WIDTH;
    let style = program.get_styles().get_header();
    let mut list = String::new();
    for (heading, verbs) in GROUPS {
        list.push_str(&format!("\n{style}{heading}:{style:#}\n"));
        for verb in verbs {
            let about = program.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let mut name = format!("  {verb}");
            for line in output::wrapped(&about, width) {
                list.push_str(&format!("{name:NAME_WIDTH$}{}\n", line.trim_start()));
                name.clear();
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shown_verb_is_in_one_group() {
        let program = program();
        let shown = program.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut listed = GROUPS.map(|(_, verbs)| verbs).concat();
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(shown, listed);
    }
}
