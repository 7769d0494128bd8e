//! The `poolcast` program: parses arguments, calls the library, turns the outcome into an exit code.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use poolcast::cli::Cli;
use poolcast::{cmd, error, output};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let code =
        listen(&cli).and_then(|()| cmd::threads::settle(cli.threads)).and_then(|threads| cmd::run(cli.verb, threads));
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) if error::is_broken_pipe(&error) => ExitCode::from(error::EXIT_DONE),
        Err(error) => {
            output::error(error::render(&error).trim_end());
            ExitCode::from(error::exit_code(&error))
        }
    }
}

/// Sends diagnostics to stderr, as far as the flags want them, else as far as `POOLCAST_LOG` says, else warnings and notes.
fn listen(cli: &Cli) -> Result<()> {
    let filter = match cli.verbose {
        0 if cli.quiet => "error".into(),
        0 => filter_of_environment()?,
        1 => "warn,poolcast=info".into(),
        _ => "warn,poolcast=debug".into(),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .init();
    Ok(())
}

fn filter_of_environment() -> Result<EnvFilter> {
    let text = std::env::var("POOLCAST_LOG").unwrap_or_else(|_| "warn".to_owned());
    EnvFilter::try_new(&text).context(error::hinted(
        format!("cannot use POOLCAST_LOG=`{text}`"),
        "it takes error, warn, info or debug, also for a part: POOLCAST_LOG=warn,poolcast::sweep=debug",
    ))
}
