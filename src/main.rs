//! The `poolcast` program: parses arguments, calls the library, turns the outcome into an exit code.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use poolcast::cli::Cli;
use poolcast::{cmd, error, output};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_env("POOLCAST_LOG");
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| "warn".into()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .init();
    match cmd::threads::settle(cli.threads).and_then(|threads| cmd::run(cli.verb, threads)) {
        Ok(code) => ExitCode::from(code),
        Err(error) if error::is_broken_pipe(&error) => ExitCode::from(error::EXIT_DONE),
        Err(error) => {
            output::note(error::render(&error).trim_end());
            ExitCode::from(error::exit_code(&error))
        }
    }
}
