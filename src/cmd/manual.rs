//! `completions` and `man`: generates shell completions and manual pages from the command line
//! definition.

use anyhow::Result;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use poolcast_base::error::EXIT_DONE;
use poolcast_base::escape;
use poolcast_base::files;
use poolcast_base::output;
use poolcast_cli::{Cli, CompletionsArgs, ManArgs};

/// Prints the completion script for the shell.
pub(super) fn completions(args: &CompletionsArgs) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "poolcast", &mut script);
    output::print_file(&String::from_utf8(script)?)?;
    Ok(EXIT_DONE)
}

/// Writes a page for the program, and one for each verb and step.
pub(super) fn pages(args: &ManArgs) -> Result<u8> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();

    let mut pages = Vec::new();
    render_page(&program, &mut pages)?;

    fs_err::create_dir_all(&args.out)?;
    for (name, page) in &pages {
        files::write_atomic(&args.out.join(name), page)?;
    }

    let dir = escape::path(&args.out);
    output::print(&format!(
        "{} in `{dir}`; read one with: man -l {dir}/poolcast.1\n",
        output::counted(pages.len(), "page")
    ))?;
    Ok(EXIT_DONE)
}

/// Adds the pages of `command` and of all its subcommands, with their file names.
fn render_page(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let page = Man::new(command.clone()).source(concat!("poolcast ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));

    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .try_for_each(|below| render_page(below, pages))
}
