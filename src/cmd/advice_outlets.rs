//! Other places than the terminal that advice goes to: metrics, an HTML page, pages of owners, the queue, and
//! notices.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::advice_sources::AdviceSources;
use super::text::advice::{AdviceView, SCHEMA_VERSION};
use super::text::mailed_page::mailed_page;
use poolcast_advice::{CauseGroup, JobAdvice, cause_groups};
use poolcast_base::error::hinted;
use poolcast_base::files;
use poolcast_base::output::{self, JsonDocument};
use poolcast_cli::AdviseArgs;
use poolcast_report::{self as report, HeldJobs};
use poolcast_site::metrics::AdviceMetrics;
use poolcast_site::notices::{MailedPage, NoticeTarget, TakenState, send_mail};
use poolcast_site::pages::{OwnerPage, OwnerPages};
use poolcast_site::queue_marks::mark_held_jobs;
use poolcast_tracking::post_document;

/// Sends the advice in `view` to all places that the options name. A failure of one place does not
/// keep it from the others.
///
/// # Errors
/// Fails with the first failure.
pub(super) fn send_all(
    args: &AdviseArgs,
    sources: &AdviceSources,
    view: &AdviceView<'_>,
) -> Result<()> {
    let mut outcome = Ok(());
    if let Some(file) = &args.prometheus {
        outcome = outcome.and(write_metrics(file, view));
    }
    if let Some(file) = &args.html {
        outcome = outcome.and(write_html(file, view));
    }
    if let Some(dir) = &args.pages {
        outcome = outcome.and(write_pages(dir, view));
    }
    if args.qedit {
        outcome = outcome.and(mark_queue(args, sources, view));
    }
    if args.notify.is_empty() {
        return outcome;
    }
    let dir = notice_dir(sources)?;
    let groups = cause_groups(&view.chosen);
    let call = view.call.as_deref().unwrap_or_default();
    let page = mailed_page(view);
    for target in &args.notify {
        let notified = notify(&dir, target, call, &groups, &page, view.basis.asked_ms);
        outcome = outcome.and(notified.with_context(|| format!("cannot notify {target}")));
    }
    outcome
}

fn write_metrics(file: &Path, view: &AdviceView<'_>) -> Result<()> {
    let metrics = AdviceMetrics {
        basis: view.basis,
        all: view.all,
        earlier: view.earlier,
        now_ms: view.now_ms.unwrap_or(view.basis.asked_ms),
    };
    metrics
        .write(file)
        .with_context(|| format!("cannot write the metrics to `{}`", file.display()))
}

/// Writes the shown jobs as one HTML page.
fn write_html(file: &Path, view: &AdviceView<'_>) -> Result<()> {
    let held = HeldJobs {
        basis: view.basis.clone(),
        advice: view.chosen.iter().copied().cloned().collect(),
    };
    let page = report::page(&report::held_report(&held));
    files::write_atomic(file, page.as_bytes())
        .with_context(|| format!("cannot write the page to `{}`", file.display()))
}

/// Writes the answers to the jobs in the queue. Ids of jobs are unique within one access point alone,
/// so the answers must be about this queue.
fn mark_queue(args: &AdviseArgs, sources: &AdviceSources, view: &AdviceView<'_>) -> Result<()> {
    let is_of_one = view.basis.access_points.len() <= 1;
    ensure!(
        is_of_one && sources.is_queue_here(args.queue.as_deref()),
        hinted(
            "`--qedit` is for the queue of this access point",
            "name the logs of this access point alone, and `--queue now`"
        )
    );
    mark_held_jobs(view.all).context("cannot write the answers to the queue")?;
    Ok(())
}

/// Writes the advice of each owner among the shown jobs to a file.
fn write_pages(dir: &Path, view: &AdviceView<'_>) -> Result<()> {
    let pages = OwnerPages::open(dir)?;
    let mut by_owner: BTreeMap<&str, Vec<&JobAdvice>> = BTreeMap::new();
    for one in &view.chosen {
        if let Some(owner) = &one.job.owner {
            by_owner.entry(owner).or_default().push(one);
        }
    }
    let views: Vec<(&str, AdviceView<'_>)> = (by_owner.into_iter())
        .map(|(owner, chosen)| (owner, view.of_jobs(chosen)))
        .collect();
    let documents: Vec<_> = (views.iter())
        .map(|(owner, view)| {
            let body = view.document();
            let document = JsonDocument {
                schema_version: SCHEMA_VERSION,
                body,
            };
            OwnerPage { owner, document }
        })
        .collect();
    let skipped = pages.write(&documents)?;
    if skipped > 0 {
        let owners = output::counted(skipped, "owner");
        output::note(&format!(
            "note: {owners} with a name that cannot be a file name: no page"
        ));
    }
    Ok(())
}

/// The directory in which the state of notices is kept.
fn notice_dir(sources: &AdviceSources) -> Result<PathBuf> {
    sources.state_dir().with_context(|| {
        hinted(
            "no directory is known that remembers which causes were sent",
            "set HOME or XDG_STATE_HOME",
        )
    })
}

/// Sends the new ones of `groups` to `target`, by mail with the `page` about all held jobs. The target is only
/// remembered to know of them once that has succeeded.
fn notify(
    dir: &Path,
    target: &NoticeTarget,
    call: &str,
    groups: &[CauseGroup<'_>],
    page: &MailedPage,
    asked_ms: i64,
) -> Result<()> {
    let state = TakenState::take(dir, target, call)?;
    if let Some(notice) = state.notice(groups, asked_ms) {
        match target {
            NoticeTarget::Mail(address) => send_mail(address, &notice, page)?,
            NoticeTarget::Web(url) => post_document(url, &notice.document()?)?,
        }
    }
    state.keep(groups, asked_ms)
}
