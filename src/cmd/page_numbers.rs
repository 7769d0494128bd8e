//! The numbers of the things on the last page: keeps them, and finds the jobs that a number names.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::text::advice::AdviceView;
use super::text::advice_page::AdvicePage;
use poolcast_advice::{CommandMoment, LastPage, ShownThing, ThingCommand, thing_commands};
use poolcast_base::error::hinted;
use poolcast_base::{escape, output};
use poolcast_holds::decision::HoldAction;

/// Keeps the numbers of `page`, shown at `now_ms`, in `dir`. A failure, as in the run of another user, only causes a
/// note.
pub(super) fn keep_numbers(
    dir: &Path,
    page: &AdvicePage<'_, '_>,
    view: &AdviceView<'_>,
    now_ms: i64,
) {
    let things = page.numbered_things();
    let Some(call) = view.call.as_ref().filter(|_| !things.is_empty()) else {
        return;
    };
    let kept = LastPage::new(things, call, view.basis.asked_ms, now_ms).keep(dir);
    if let Err(error) = kept {
        output::note(&format!(
            "note: the numbers of this page are not kept for `--thing`: {error:#}"
        ));
    }
}

/// Returns the thing with `number` on the last page of `call`, whose numbers are kept in `dir`.
///
/// # Errors
/// Fails if the number is not known, or not any more, or if the call cannot be repeated.
pub(super) fn shown_thing(
    dir: Option<&Path>,
    number: usize,
    call: Option<&str>,
    now_ms: i64,
) -> Result<ShownThing> {
    let call = call.with_context(|| {
        hinted(
            "`--thing` needs input that can be read again",
            "write standard input to a file, and leave out `--at`",
        )
    })?;
    let dir = dir.with_context(|| {
        hinted(
            "no directory is known that keeps the numbers of a page",
            "set HOME or XDG_STATE_HOME",
        )
    })?;
    LastPage::thing(dir, number, call, now_ms)
}

/// The commands on the jobs of `view`, for a shell. Those to type later are comments.
pub(super) fn commands_text(view: &AdviceView<'_>) -> String {
    let commands = thing_commands(&view.chosen);
    let mut text = String::new();
    for command in &commands {
        let mark = match command.moment {
            CommandMoment::Now => "",
            CommandMoment::Fixed | CommandMoment::Later => "# ",
        };
        text.push_str(&format!(
            "# {}\n{mark}{}\n",
            command_words(command),
            command.command
        ));
    }
    if commands.is_empty() {
        text.push_str("# no command helps these jobs now\n");
    }
    escape::lines(&text).into_owned()
}

fn command_words(command: &ThingCommand) -> String {
    let jobs = output::counted(command.jobs, "job");
    let when = match (command.action, command.moment) {
        (HoldAction::Probe, _) => "to try, then ask again",
        (HoldAction::Remove, _) => "to remove",
        (_, CommandMoment::Now) => "now",
        (_, CommandMoment::Fixed) => "once the fault is fixed",
        (_, CommandMoment::Later) => "once the fault has passed",
    };
    format!("{jobs} {when}:")
}
