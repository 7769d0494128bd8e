//! `advise --dag`: writes advice into a file when DAGMan reports that a job of a node is held.

use anyhow::{Result, ensure};

use super::advice_sources::AdviceSources;
use super::asked_advice::{AdviceQuery, ComputedAdvice};
use super::file_looks::add_looks;
use super::text::advice::{AdviceView, long_text, skipped_jobs_words};
use super::text::advice_page::AdvicePage;
use poolcast_advice::{
    JobQueue, QUEUE_ATTRIBUTES, QueueAgreement, advice_text, name_probes_of_things,
};
use poolcast_base::error::hinted;
use poolcast_base::{error, escape, files, output};
use poolcast_cli::AdviseArgs;
use poolcast_sweep::condor;
use poolcast_sweep::condor::DagmanNode;

/// Writes the advice on the held jobs of the node `name` into a file here, replacing the earlier
/// advice. Failures are written there, too, because the node must not fail for them.
///
/// # Errors
/// Fails if DAGMan has not called the program.
pub(super) fn write_node_advice(args: &AdviseArgs, name: &str, now_ms: i64) -> Result<()> {
    let node = DagmanNode::from_script(name)?;
    let text = match query_node_queue(&node) {
        Ok(queue) => text_on_queue(args, &node, queue, now_ms),
        Err(failure) => format!(
            "{}: the queue does not answer\n\n{}",
            title(&node, now_ms),
            error::render(&failure)
        ),
    };

    let file = node.advice_file();
    if let Err(failure) = files::write_atomic(&file, text.as_bytes()) {
        output::error(&error::render(&failure));
        output::error(&text);
    }
    Ok(())
}

/// Reads the held jobs of the node with one call of `condor_q`.
fn query_node_queue(node: &DagmanNode) -> Result<JobQueue> {
    condor::read_held_jobs(QUEUE_ATTRIBUTES, Some(node), |output| {
        JobQueue::read(output)
    })
}

fn title(node: &DagmanNode, now_ms: i64) -> String {
    let time = output::utc_time(now_ms);
    let name = escape::value(&node.name);
    format!("{time}, node {name} of DAGMan {}", node.dagman_cluster)
}

/// The advice on the jobs in `queue`: from the model if there is one, otherwise from rules.
fn text_on_queue(args: &AdviseArgs, node: &DagmanNode, queue: JobQueue, now_ms: i64) -> String {
    let held = queue.held_count();
    if held == 0 && queue.skipped().is_none() {
        return format!("{}: no job of it is held any more\n", title(node, now_ms));
    }
    let title = format!(
        "{}: {}",
        title(node, now_ms),
        output::counted(held, "held job")
    );
    let said = text_by_model(args, queue.clone(), now_ms).unwrap_or_else(|failure| {
        let why = error::render(&failure);
        format!(
            "{}\nThe model was not asked, and only rules answer.\n{why}",
            text_by_rules(args, queue, now_ms)
        )
    });
    format!("{title}\n\n{said}")
}

fn text_by_rules(args: &AdviseArgs, queue: JobQueue, now_ms: i64) -> String {
    let skipped = queue
        .skipped()
        .map(|skipped| skipped_jobs_words(skipped) + "\n");
    let (mut all, _) = queue.correct(Vec::new(), "", now_ms);
    add_looks(args, true, now_ms, &mut all);
    let blocks: Vec<String> = skipped
        .into_iter()
        .chain(all.iter().map(|one| advice_text(one, Some(now_ms))))
        .collect();
    escape::lines(&blocks.join("\n")).into_owned()
}

/// Renders one job in full, or several as a page, like `advise`.
fn text_by_model(args: &AdviseArgs, queue: JobQueue, now_ms: i64) -> Result<String> {
    let sources = AdviceSources::find(args)?;
    ensure!(
        sources.learned.is_some(),
        hinted(
            "there is no run here",
            "name one: poolcast advise RUN; `poolcast learn --log LOG` creates one"
        )
    );
    let question = AdviceQuery {
        year: args.year,
        now_ms,
        queue: Some(queue),
        is_queue_of_now: true,
        ..AdviceQuery::default()
    };
    let mut asked = ComputedAdvice::from_sources(&sources, question)?;
    let caveat = add_looks(args, true, now_ms, &mut asked.all);
    asked.basis.caveats.extend(caveat);
    name_probes_of_things(&mut asked.all);
    let view = AdviceView {
        now_ms: Some(now_ms),
        shows_all: true,
        // The log has held jobs of other nodes, too, so their absence from this queue means
        // nothing.
        queue: asked.agreement.map(|agreement| QueueAgreement {
            not_in_queue: 0,
            ..agreement
        }),
        earlier: asked.earlier.as_ref(),
        ..AdviceView::new(&asked.basis, &asked.all)
    };
    asked.record(&sources, &view.chosen, now_ms);
    if view.chosen.len() != 1 {
        return Ok(output::plain_page(&AdvicePage::new(&view).lines(0)));
    }
    let job = escape::lines(&long_text(&view)).into_owned();
    Ok(format!(
        "{job}\n{}",
        output::plain_page(&view.basis_lines())
    ))
}
