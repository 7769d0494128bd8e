//! `poolcast site`: shows and writes the files of a service for all users of an access point.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::{escape, output};
use poolcast_cli::{SiteInitArgs, SiteStep};
use poolcast_site::service::{FileState, ServiceKind, ServicePlan, SiteFile, plan_service};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Document that `--json` prints.
#[derive(Serialize)]
struct InitDocument<'a> {
    /// True if the files were written.
    is_written: bool,
    /// The files of the service.
    files: Vec<FileDocument<'a>>,
    /// Commands that start the service.
    next: &'a [String],
}

#[derive(Serialize)]
struct FileDocument<'a> {
    #[serde(flatten)]
    file: &'a SiteFile,
    /// State of the file before this call.
    state: FileState,
}

/// Runs one step.
pub fn run(step: &SiteStep) -> Result<u8> {
    match step {
        SiteStep::Init(args) => init(args),
    }
}

/// Shows the files, and writes them if that is wanted.
fn init(args: &SiteInitArgs) -> Result<u8> {
    let kind = match args.schedd_cron {
        true => ServiceKind::ScheddCron,
        false => ServiceKind::Systemd,
    };
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("cannot find this program")?,
    };
    let plan = plan_service(kind, &program, args.log.as_deref())?;
    let states: Vec<FileState> = plan
        .files
        .iter()
        .map(|file| file.state(&args.out))
        .collect();
    let is_json = args.output.json;
    if !is_json {
        output::print_file(&shown_files(&plan, &states, &args.out))?;
    }

    let is_wanted = args.yes || (!is_json && confirm(&args.out)?);
    if is_wanted {
        write(&plan, &states, args)?;
    }
    if is_json {
        let files = plan.files.iter().zip(&states);
        let document = InitDocument {
            is_written: is_wanted,
            files: files
                .map(|(file, &state)| FileDocument { file, state })
                .collect(),
            next: &plan.next,
        };
        output::print_json(SCHEMA_VERSION, &document)?;
    } else if is_wanted {
        output::print_file(&next_words(&plan, &args.out))?;
    } else {
        output::note("nothing was written: `--yes` writes these files");
    }
    Ok(EXIT_DONE)
}

/// The files with their content, as they are to be written below `root`.
fn shown_files(plan: &ServicePlan, states: &[FileState], root: &Path) -> String {
    let mut text = String::new();
    for (file, state) in plan.files.iter().zip(states) {
        let state = match state {
            FileState::New => "new",
            FileState::Same => "as it is",
            FileState::Other => "exists with another content",
        };
        let path = escape::path(&file.below(root));
        text.push_str(&format!("== {path} ({state}, mode {:04o})\n", file.mode));
        text.push_str(&file.text);
        text.push('\n');
    }
    text
}

/// Asks on a terminal whether the files are to be written; returns false without a terminal.
fn confirm(root: &Path) -> Result<bool> {
    let mut stdin = std::io::stdin().lock();
    if !stdin.is_terminal() || !output::is_live() {
        return Ok(false);
    }
    let root = escape::path(root);
    output::write(&format!("Write these files below {root}? [y/N] "))?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes the files that are new or to be replaced.
fn write(plan: &ServicePlan, states: &[FileState], args: &SiteInitArgs) -> Result<()> {
    let other = states.iter().position(|state| *state == FileState::Other);
    if let Some(other) = other.filter(|_| !args.replace.overwrite) {
        let path = plan.files[other].below(&args.out);
        return Err(hinted(
            format!("`{}` exists with another content", path.display()),
            "compare it with the text above, and move it away",
        )
        .into());
    }
    for (file, state) in plan.files.iter().zip(states) {
        if *state != FileState::Same {
            file.write(&args.out)?;
        }
    }
    Ok(())
}

/// The commands that start the service.
fn next_words(plan: &ServicePlan, root: &Path) -> String {
    let count = output::counted(plan.files.len(), "file");
    let mut text = format!(
        "{count} below {}. As root, on the access point:\n",
        escape::path(root)
    );
    for command in &plan.next {
        text.push_str(&format!("    {command}\n"));
    }
    text
}
