//! `poolcast advise`: turns a model and a log into advice on each held job.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;

use super::advice_sources::{AdviceSources, ask_queue, read_queue};
use super::advice_watch::AdviceWatch;
use super::asked_advice::{AdviceQuery, ComputedAdvice};
use super::file_looks::add_looks;
use super::idle_advice::print_idle_advice;
use super::others_jobs::{OthersJobs, none_of_own_words};
use super::page_numbers::{commands_text, keep_numbers, shown_thing};
use super::text::advice::{AdviceView, flag_words, long_text, shell_word, skipped_jobs_words};
use super::text::advice_page::AdvicePage;
use super::text::restart_loops::{LoopLayout, loop_lines};
use super::text::things_page::rows_of;
use super::text::{advice_jobs, answer_check};
use super::{advice_outlets as outlets, node_advice, text};
use htcondor_eventlog as eventlog;
use poolcast_advice::{
    CheckedAnswers, HeldGrouping, JobAdvice, JobSelection, ShownThing, exit_code, has_cause_name,
    name_probes_of_things, read_answers,
};
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::output::{self, LineColour, PageLine};
use poolcast_base::pager;
use poolcast_cli::{AdviceFilterArgs, AdviseArgs, JobOrder};
use poolcast_collect::find_generations;
use poolcast_holds::decision::{HoldAction, answer_rank};

/// Maximum number of logs that a suggested command names.
const MAX_NAMED_LOGS: usize = 3;

/// Reads the logs, judges the held jobs and prints the advice. For a single job, the exit code
/// encodes its advice.
pub fn run(args: &AdviseArgs) -> Result<u8> {
    if let Some(node) = &args.dag {
        node_advice::write_node_advice(args, node, args.now.unwrap_or_else(now_ms))?;
        return Ok(EXIT_DONE);
    }
    let stdin_uses = usize::from(args.queue.as_deref() == Some("-"))
        + usize::from(args.logs.iter().any(|log| is_stdin(log)))
        + args.history.iter().filter(|named| is_stdin(named)).count();
    ensure!(
        stdin_uses <= 1,
        hinted(
            "standard input can be only one of the log, the queue and the history",
            "write the others to files"
        )
    );
    let sources = AdviceSources::find(args)?;
    if args.check {
        return check(args, &sources);
    }
    if let Some(interval_s) = args.watch {
        return watch(args, interval_s, sources);
    }
    if args.idle {
        print_idle_advice(args, &sources, args.now.unwrap_or_else(now_ms))?;
        return Ok(EXIT_DONE);
    }
    answer(args, &sources)
}

/// Judges the held jobs, prints the advice, records it, and sends it to where the options say.
fn answer(args: &AdviseArgs, sources: &AdviceSources) -> Result<u8> {
    let now_ms = args.now.unwrap_or_else(now_ms);
    let shown = match args.thing {
        Some(number) => {
            let (dir, call) = (sources.state_dir(), repeat_command(args));
            Some(shown_thing(
                dir.as_deref(),
                number,
                call.as_deref(),
                now_ms,
            )?)
        }
        None => None,
    };
    let asked = ask(args, sources, &sources.selections)?;
    let view = view_of(args, sources, &asked, shown.as_ref());
    if let Some(shown) = shown.filter(|shown| view.chosen.len() < shown.jobs()) {
        note_missing_jobs(&view, &shown)?;
    }
    let skipped = asked.agreement.and_then(|agreement| agreement.skipped);
    if let Some(skipped) = skipped.filter(|_| args.ids) {
        output::note(&format!("note: {}", skipped_jobs_words(skipped)));
    }
    let is_one_job = is_one_job(sources);
    print_view(args, sources, &view, is_one_job && !view.chosen.is_empty())?;
    if args.at.is_none() {
        asked.record(sources, &view.chosen, now_ms);
    }
    outlets::send_all(args, sources, &view)?;
    Ok(if is_one_job || args.exit_code {
        exit_code(&view.chosen)
    } else {
        EXIT_DONE
    })
}

/// Says how many jobs of a page are not held any more.
///
/// # Errors
/// Fails if none is.
fn note_missing_jobs(view: &AdviceView<'_>, shown: &ShownThing) -> Result<()> {
    let jobs = output::counted(shown.jobs(), "job");
    ensure!(
        !view.chosen.is_empty(),
        hinted(
            format!("none of the {jobs} of this number is held any more"),
            "ask again without `--thing`"
        )
    );
    let missing = output::with_commas((shown.jobs() - view.chosen.len()) as u64);
    output::note(&format!(
        "note: {missing} of the {jobs} of this number are not held any more"
    ));
    Ok(())
}

/// Reads the logs and the queue, and judges the held jobs. Each of `selections` must be held.
fn ask(
    args: &AdviseArgs,
    sources: &AdviceSources,
    selections: &[JobSelection],
) -> Result<ComputedAdvice> {
    let is_queue_here = sources.is_queue_here(args.queue.as_deref());
    let queue = match &args.queue {
        Some(named) => Some(read_queue(named)?),
        None if is_queue_here && args.at.is_none() => ask_queue(sources.is_about_all_users),
        None => None,
    };
    let is_of_this_user = args.queue.is_none() && queue.is_some() && !sources.is_about_all_users;
    let now_ms = args.now.unwrap_or_else(now_ms);
    let question = AdviceQuery {
        is_of_this_user,
        year: args.year,
        at_ms: args.at,
        now_ms,
        is_queue_of_now: is_queue_here && queue.is_some(),
        queue,
        selections,
    };
    let mut computed = ComputedAdvice::from_sources(sources, question)?;
    let caveat = add_looks(args, is_queue_here, now_ms, &mut computed.all);
    computed.basis.caveats.extend(caveat);
    name_probes_of_things(&mut computed.all);
    if is_of_this_user && computed.all.is_empty() {
        computed.none_of_own = none_of_own_words();
    }
    Ok(computed)
}

/// The view of the jobs that the options select, and that the `shown` thing has.
fn view_of<'a>(
    args: &AdviseArgs,
    sources: &AdviceSources,
    asked: &'a ComputedAdvice,
    shown: Option<&ShownThing>,
) -> AdviceView<'a> {
    let selections = &sources.selections;
    let mut chosen: Vec<&JobAdvice> = asked
        .all
        .iter()
        .filter(|one| is_selected(selections, one) && passes(args, !selections.is_empty(), one))
        .filter(|one| shown.is_none_or(|shown| shown.has(one)))
        .collect();
    sort_jobs(&mut chosen, args.sort);
    AdviceView {
        chosen,
        now_ms: Some(args.now.unwrap_or_else(now_ms)),
        shows_ages: output::is_live(),
        call: repeat_command(args).map(|call| call + &thing_option(args)),
        shows_all: args.shows_all,
        grouping: args.by,
        sort: args.sort,
        opened: args.thing,
        queue: asked.agreement,
        earlier: asked.earlier.as_ref(),
        ended: &asked.ended,
        loops: if selects_all(args, sources) {
            &asked.loops
        } else {
            &[]
        },
        better: better_advice(args, sources),
        none_of_own: asked.none_of_own.as_deref(),
        ..AdviceView::new(&asked.basis, &asked.all)
    }
}

/// Returns true if no option leaves out a job.
fn selects_all(args: &AdviseArgs, sources: &AdviceSources) -> bool {
    sources.selections.is_empty()
        && filter_options(args).is_empty()
        && args.filter.causes.is_empty()
}

/// Says what would give better advice than `sources`; `None` if there is a model.
fn better_advice(args: &AdviseArgs, sources: &AdviceSources) -> Option<String> {
    if sources.learned.is_some() {
        return None;
    }
    let (option, named, other) = match &sources.logs[..] {
        [] if !args.history.is_empty() => ("--history", &args.history, "now"),
        _ => ("--log", &sources.logs, "mine"),
    };
    let words: Option<Vec<String>> = (named.iter())
        .map(|path| {
            path.to_str()
                .filter(|path| !path.starts_with('-'))
                .map(shell_word)
        })
        .collect();
    let words = words.filter(|words| (1..=MAX_NAMED_LOGS).contains(&words.len()));
    let words = words.map_or_else(|| other.to_owned(), |words| words.join(" "));
    Some(format!(
        "for odds of this access point: poolcast learn {option} {words}"
    ))
}

/// Returns true if the user named a single job.
fn is_one_job(sources: &AdviceSources) -> bool {
    matches!(sources.selections[..], [JobSelection::Job(..)])
}

/// Asks every `interval_s` seconds, until none of the selected jobs is held.
fn watch(args: &AdviseArgs, interval_s: u32, first: AdviceSources) -> Result<u8> {
    let is_read_once = |log: &PathBuf| eventlog::is_read_once(log);
    ensure!(
        !reads_list_once(args) && !first.logs.iter().any(is_read_once),
        hinted(
            "cannot watch standard input or a pipe: `--watch` reads its input again and again",
            "name a file, or use `--queue now`"
        )
    );
    let mut first = Some(first);
    let watch = AdviceWatch {
        interval_s,
        has_status: !args.json && output::can_draw(),
        now_ms: &|| args.now.unwrap_or_else(now_ms),
    };
    watch.run(|progress| {
        // A model that was learned meanwhile answers next. Jobs that are not held any more are no
        // error then.
        let (sources, asked) = match first.take() {
            Some(sources) => {
                let asked = ask(args, &sources, &sources.selections)?;
                (sources, asked)
            }
            None => {
                let mut sources = AdviceSources::find(args)?;
                // Rotated generations are named once.
                sources.logs = find_generations(&sources.logs)?;
                let asked = ask(args, &sources, &[])?;
                (sources, asked)
            }
        };
        let view = view_of(args, &sources, &asked, None);
        let Some(news) = progress.news(&view) else {
            return Ok(());
        };
        if args.json {
            output::print_json_line(text::advice::SCHEMA_VERSION, &view.document())?;
        } else {
            let is_one_job = is_one_job(&sources) && !view.chosen.is_empty();
            let page = view_text(args, &sources, &view, is_one_job);
            output::write(&format!("{}{page}\n", output::shown_page(&[news])))?;
        }
        asked.record(&sources, &view.chosen, args.now.unwrap_or_else(now_ms));
        Ok(())
    })
}

/// Prints the outcomes of earlier answers.
fn check(args: &AdviseArgs, sources: &AdviceSources) -> Result<u8> {
    let learned = sources.learned.as_ref().with_context(|| {
        hinted(
            "there is no run here, so no earlier answers are known",
            "name one: poolcast advise RUN --check; `poolcast learn --log LOG` creates one",
        )
    })?;
    ensure!(
        sources.selections.is_empty(),
        "`--check` is about all earlier answers, not about one job"
    );
    let given = match learned.ledger_dir() {
        Some(dir) => read_answers(&dir)?,
        None => Vec::new(),
    };
    let store = sources.read_store(args.year, None, None)?.store;
    let check = CheckedAnswers::new(&given, &store).check();
    if args.json {
        output::print_json(answer_check::SCHEMA_VERSION, &check)?;
    } else {
        output::print(&answer_check::summary(&check))?;
    }
    Ok(EXIT_DONE)
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn print_view(
    args: &AdviseArgs,
    sources: &AdviceSources,
    view: &AdviceView<'_>,
    is_one_job: bool,
) -> Result<()> {
    if args.json {
        return output::print_json(text::advice::SCHEMA_VERSION, &view.document());
    }
    if args.ids {
        return output::print_file(&view.ids());
    }
    if args.prints_commands {
        return output::write(&commands_text(view));
    }
    pager::show(&view_text(args, sources, view, is_one_job))
}

/// The text output for people. Keeps the numbers of a page that has them.
fn view_text(
    args: &AdviseArgs,
    sources: &AdviceSources,
    view: &AdviceView<'_>,
    is_one_job: bool,
) -> String {
    if args.lists_jobs {
        return output::shown_page(&advice_jobs::job_lines(view));
    }
    let end_lines = end_lines(args, view);
    // A blank line is above them.
    let end_rows = rows_of(view, &end_lines) + usize::from(!end_lines.is_empty());
    let end = shown_end(end_lines);
    if is_one_job {
        let basis = output::shown_page(&view.basis_lines());
        return long_text(view) + &basis + &end;
    }
    if args.long {
        let mut head = view.head();
        head.push(PageLine::plain(""));
        let outdated = output::shown_page(&view.outdated_lines());
        return output::shown_page(&head) + &long_text(view) + &outdated + &end;
    }
    let page = AdvicePage::new(view);
    let lines = output::shown_page(&page.lines(end_rows));
    if let Some(dir) = sources.state_dir() {
        keep_numbers(&dir, &page, view, args.now.unwrap_or_else(now_ms));
    }
    if page.numbered_things().is_empty() || view.shows_all {
        return lines + &output::shown_page(&page_end_loops(view)) + &end;
    }
    lines + &end
}

/// The lines on jobs that start and are put back again.
fn page_end_loops(view: &AdviceView<'_>) -> Vec<PageLine> {
    let layout = LoopLayout {
        width: view.width,
        shows_all: view.shows_all,
        moment_words: &|ms| {
            let time = view.short_time(ms);
            if view.shows_ages {
                format!("{time} ago")
            } else {
                format!("at {time}")
            }
        },
    };
    let mut lines = loop_lines(view.loops, &layout);
    if !lines.is_empty() {
        lines.insert(0, PageLine::plain(""));
    }
    lines
}

/// The end of the page, below a blank line.
fn shown_end(mut lines: Vec<PageLine>) -> String {
    if !lines.is_empty() {
        lines.insert(0, PageLine::plain(""));
    }
    output::shown_page(&lines)
}

/// The end of the page: who may release the jobs of others, and what would give better advice.
fn end_lines(args: &AdviseArgs, view: &AdviceView<'_>) -> Vec<PageLine> {
    let mut lines = Vec::new();
    // A file may have the queue of another access point.
    let is_here = args.queue.as_deref().is_none_or(|queue| queue == "now");
    if is_here && let Some(others) = OthersJobs::find(&view.chosen, view.call.as_deref()) {
        lines.extend(view.note_lines(&others.words));
        let page = others.page.map(|page| format!("    {page}"));
        lines.extend(page.map(PageLine::plain));
    }
    if let Some(better) = &view.better {
        lines.extend(view.wrapped(LineColour::Dim, better));
    }
    lines
}

fn is_selected(selections: &[JobSelection], advice: &JobAdvice) -> bool {
    let has = |selection: &JobSelection| selection.has(advice.job.id.cluster, advice.job.id.proc);
    selections.is_empty() || selections.iter().any(has)
}

/// Returns true if the options select `advice`.
fn passes(args: &AdviseArgs, names_jobs: bool, advice: &JobAdvice) -> bool {
    let AdviceFilterArgs {
        owners,
        codes,
        clusters,
        actions,
        causes,
    } = &args.filter;
    let is_owner = |name: &String| advice.job.owner.as_deref() == Some(name.as_str());
    let is_code = |wanted: &poolcast_cli::HoldCodeFilter| {
        wanted.code == advice.hold.code
            && wanted
                .subcode
                .is_none_or(|subcode| subcode == advice.hold.subcode)
    };

    // `--ids` feeds `condor_release`, so without an explicit choice it lists only jobs to release.
    let is_chosen = !actions.is_empty() || !causes.is_empty() || names_jobs;
    let is_wanted = !args.ids || is_chosen || advice.verdict.action == HoldAction::Release;
    is_wanted
        && (owners.is_empty() || owners.iter().any(is_owner))
        && (codes.is_empty() || codes.iter().any(is_code))
        && (clusters.is_empty() || clusters.contains(&advice.job.id.cluster))
        && (actions.is_empty() || actions.contains(&advice.verdict.action))
        && (causes.is_empty() || has_cause_name(advice, causes))
}

fn sort_jobs(chosen: &mut [&JobAdvice], order: JobOrder) {
    match order {
        JobOrder::Action => {
            chosen.sort_by_key(|one| answer_rank(one.verdict.action, one.verdict.firmness))
        }
        JobOrder::Id => chosen.sort_by_key(|one| one.job.id),
        JobOrder::Since => chosen.sort_by_key(|one| one.hold.since_ms),
        JobOrder::Odds => chosen.sort_by(|a, b| {
            let odds = |one: &JobAdvice| one.forecast.probability.unwrap_or(-1.0);
            odds(b).total_cmp(&odds(a))
        }),
        JobOrder::Owner => chosen.sort_by(|a, b| a.job.owner.cmp(&b.job.owner)),
        JobOrder::Code => chosen.sort_by_key(|one| (one.hold.code, one.hold.subcode)),
    }
}

/// Returns true if the queue or the history is standard input.
fn reads_list_once(args: &AdviseArgs) -> bool {
    args.queue.as_deref() == Some("-") || args.history.iter().any(|named| is_stdin(named))
}

fn is_stdin(log: &Path) -> bool {
    log.as_os_str() == "-"
}

/// The command that gives the same advice again; `None` if its input cannot be read again, or if it
/// has an explicit prediction time.
fn repeat_command(args: &AdviseArgs) -> Option<String> {
    let is_gone = reads_list_once(args) || args.logs.iter().any(|log| is_stdin(log));
    if args.at.is_some() || is_gone {
        return None;
    }
    let mut call = "poolcast advise".to_owned();
    for named in &args.named {
        call.push_str(&format!(" {}", shell_word(named.to_str()?)));
    }
    for log in &args.logs {
        call.push_str(&flag_words("--log", log.to_str()?));
    }
    if let Some(queue) = &args.queue {
        call.push_str(&flag_words("--queue", queue));
    }
    for history in &args.history {
        call.push_str(&flag_words("--history", history.to_str()?));
    }
    if args.all_users {
        call.push_str(" --all-users");
    }
    let flags = [
        (args.look, " --look"),
        (args.no_look, " --no-look"),
        (args.no_network, " --no-network"),
    ];
    for (is_given, option) in flags {
        call.push_str(if is_given { option } else { "" });
    }
    if let Some(year) = args.year {
        call.push_str(&format!(" --year {year}"));
    }
    call.push_str(&filter_options(args));
    call.push_str(&grouping_option(args.by));
    Some(call)
}

/// The option that groups the rows of the page in the same way again.
fn grouping_option(by: HeldGrouping) -> String {
    let name = by.to_possible_value().filter(|_| by != HeldGrouping::Thing);
    name.map_or_else(String::new, |name| format!(" --by {}", name.get_name()))
}

/// The option that selects the jobs of a thing again.
fn thing_option(args: &AdviseArgs) -> String {
    let option = |number| format!(" --thing {number}");
    args.thing.map_or_else(String::new, option)
}

/// The options that select the same jobs again, except for their causes.
fn filter_options(args: &AdviseArgs) -> String {
    let filter = &args.filter;
    let mut options = String::new();
    for owner in &filter.owners {
        options.push_str(&flag_words("--owner", owner));
    }
    for code in &filter.codes {
        options.push_str(&format!(" --code {}", code.code));
        if let Some(subcode) = code.subcode {
            options.push_str(&format!("/{subcode}"));
        }
    }
    for cluster in &filter.clusters {
        options.push_str(&format!(" --cluster {cluster}"));
    }
    for action in &filter.actions {
        options.push_str(&format!(" --action {}", action.word()));
    }
    options
}
