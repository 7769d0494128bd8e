//! The `poolcast` program: parses the arguments, calls the library, and returns the exit code.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use poolcast::cmd;
use poolcast_base::{error, escape, output, pager, program};
use poolcast_cli::{Cli, program};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Text of `--version`; `-V` prints the number only. `build.rs` sets the variables that Cargo does
/// not set.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("BUILD_COMMIT"),
    "\ntarget: ",
    env!("BUILD_TARGET"),
    "\nfeatures: ",
    env!("BUILD_FEATURES"),
);

/// The tip for `--validate True` and `--validate False`.
const VALIDATE_TIP: &str = "write '--validate' without a value, or omit it";

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        output::error(&format!("error: {}", escape::value(&panic.to_string())));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            output::error(&trace.to_string());
        }
    }));
    program::set_commit(env!("BUILD_COMMIT"));
    let cli = match parse_arguments() {
        Ok(cli) => cli,
        Err(error) => return exit_code_of_usage(error),
    };
    exit_code_of(
        init_logging(&cli)
            .and_then(|()| cmd::threads::set_thread_count(cli.threads))
            .and_then(|threads| cmd::run(cli.verb, threads)),
    )
}

/// Parses the arguments of the process, as `Cli::try_parse` does, but with the long text of
/// `--version`, because `build.rs` sets its variables for this package alone.
fn parse_arguments() -> Result<Cli, clap::Error> {
    let matches = program().long_version(VERSION).try_get_matches()?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program()))
}

/// Returns the exit code for the result of a call, and prints the error if it failed. A closed
/// output pipe counts as success.
fn exit_code_of(code: Result<u8>) -> ExitCode {
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) if error::is_broken_pipe(&error) => ExitCode::from(error::EXIT_DONE),
        Err(error) => {
            output::error(error::render(&error).trim_end());
            ExitCode::from(error::exit_code(&error))
        }
    }
}

/// Initializes logging to stderr. The level comes from the flags, else from `POOLCAST_LOG`, else it
/// is `warn`.
fn init_logging(cli: &Cli) -> Result<()> {
    let filter = match cli.verbose {
        0 if cli.quiet => "error".into(),
        0 => filter_from_env()?,
        1 => "warn,poolcast=info".into(),
        _ => "warn,poolcast=debug".into(),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::DiagnosticsWriter)
        .with_ansi(false)
        .without_time()
        .init();
    Ok(())
}

fn filter_from_env() -> Result<EnvFilter> {
    let text = std::env::var("POOLCAST_LOG").unwrap_or_else(|_| "warn".to_owned());
    EnvFilter::try_new(&text).context(error::hinted(
        format!("cannot use POOLCAST_LOG=`{text}`"),
        "expected error, warn, info or debug, also per crate: POOLCAST_LOG=warn,poolcast_sweep=debug",
    ))
}

/// Prints help or the version. Help that does not fit on the terminal is shown in a pager.
fn print_usage(error: &clap::Error) -> Result<()> {
    if !error.use_stderr() {
        drop(output::stdout()?);
    }
    if error.kind() != ErrorKind::DisplayHelp || !output::is_live() {
        return Ok(error.print()?);
    }
    let text = error.render();
    if output::has_colours() {
        pager::show(&text.ansi().to_string())
    } else {
        pager::show(&text.to_string())
    }
}

/// The tip for a value that the option before it does not take: another one of a list, as in
/// `--pipeline-names a b`, or the one in `--validate True`.
fn value_tip(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(extra)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let typed = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let typed: Vec<String> = typed.collect();
    let place = typed.iter().rposition(|argument| argument == extra);
    let before = place.map_or(&[][..], |place| &typed[..place]);

    match (error.kind(), before) {
        (ErrorKind::UnknownArgument, [.., option, first])
            if ["--pipeline-names", "--split-names"].contains(&option.as_str()) =>
        {
            let first = first.trim_end_matches(',');
            let list = format!("{option} {first},{extra}");
            Some(format!("separate the names with a comma: '{list}'"))
        }
        (ErrorKind::UnknownArgument, [.., option]) if option == "--validate" => {
            Some(VALIDATE_TIP.to_owned())
        }
        (ErrorKind::TooManyValues, _) if extra == "--validate" => Some(VALIDATE_TIP.to_owned()),
        _ => None,
    }
}

/// Handles an error from the argument parser and returns the exit code. Help and the version are
/// printed as clap renders them. Other errors repeat the user's input, so it is escaped.
fn exit_code_of_usage(mut error: clap::Error) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(
        error.kind(),
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion
    ) {
        if let Err(full) = print_usage(&error) {
            return exit_code_of(Err(full.context("cannot write to standard output")));
        }
        return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(error::EXIT_NEVER));
    }
    if let Some(tip) = value_tip(&error) {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    // Escape every part of the context, because it may repeat arguments as the user typed them.
    let typed: Vec<(ContextKind, ContextValue)> = error
        .context()
        .map(|(kind, value)| (kind, value.clone()))
        .collect();
    for (kind, value) in typed {
        let shown = |text: String| escape::value(&text).into_owned();
        match value {
            ContextValue::String(text) => {
                drop(error.insert(kind, ContextValue::String(shown(text))))
            }
            ContextValue::Strings(all) => {
                drop(error.insert(
                    kind,
                    ContextValue::Strings(all.into_iter().map(shown).collect()),
                ));
            }
            ContextValue::StyledStr(text) => drop(error.insert(
                kind,
                ContextValue::StyledStr(shown(text.to_string()).into()),
            )),
            ContextValue::StyledStrs(all) => {
                let all = all
                    .into_iter()
                    .map(|text| shown(text.to_string()).into())
                    .collect();
                drop(error.insert(kind, ContextValue::StyledStrs(all)));
            }
            _ => {}
        }
    }
    let mut text = error.render().to_string();
    // The message of a value parser is not part of the context, so escape it in the rendered text.
    if let Some(cause) = std::error::Error::source(&error).map(ToString::to_string) {
        text = text.replace(&cause, &escape::value(&cause));
    }
    output::error(text.trim_end());
    ExitCode::from(error::EXIT_NEVER)
}
