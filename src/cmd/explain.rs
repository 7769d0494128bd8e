//! `poolcast explain`: says what a hold reason means, without a job.

use std::io::Read as _;

use anyhow::{Result, ensure};
use serde::Serialize;

use htcondor_holdreasons::rules::{Action, Party};
use htcondor_holdreasons::{Explanation, ReasonFacts, explain, read_reason};
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::output;
use poolcast_cli::ExplainArgs;
use poolcast_holds::decision::{HoldAction, answer_words, code_meaning};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Maximum size of a reason on standard input, in bytes.
const MAX_REASON_BYTES: u64 = 1 << 20;

/// Document that `--json` prints.
#[derive(Serialize)]
struct ExplainDocument<'a> {
    facts: &'a ReasonFacts,
    meaning: &'a str,
    action: HoldAction,
    fault: Option<Party>,
    mend: &'a str,
    attributes: &'a [&'a str],
    look: Option<&'a str>,
}

/// Prints what the reason means, what to do, and what can be looked at.
pub fn run(args: &ExplainArgs) -> Result<u8> {
    let reason = match &args.reason {
        Some(reason) if reason != "-" => reason.clone(),
        _ => read_input()?,
    };
    ensure!(
        !reason.trim().is_empty(),
        hinted(
            "there is no reason to explain",
            "name it in quotation marks, or pipe it: condor_q -af HoldReason JOB | poolcast explain"
        )
    );
    let codes = args.code.map(|code| (code, args.subcode.unwrap_or(0)));
    let facts = read_reason(&reason, codes);
    let explanation = explain(&facts);
    let (action, mend) = answer(&facts, &explanation, codes);
    if args.output.json {
        let document = ExplainDocument {
            facts: &facts,
            meaning: &explanation.meaning,
            action,
            fault: explanation.fault,
            mend: &mend,
            attributes: explanation.attributes,
            look: explanation.look.as_deref(),
        };
        output::print_json(SCHEMA_VERSION, &document)?;
    } else {
        output::print(&three_lines(&explanation, action, &mend))?;
    }
    Ok(EXIT_DONE)
}

fn read_input() -> Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MAX_REASON_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the action and what mends it: by the facts, or else by the code.
fn answer(
    facts: &ReasonFacts,
    explanation: &Explanation,
    codes: Option<(i32, i32)>,
) -> (HoldAction, String) {
    let action = match explanation.action {
        Some(Action::Fix) => HoldAction::Fix,
        Some(Action::Later) => HoldAction::Later,
        Some(Action::TryOne) => HoldAction::Probe,
        Some(Action::Leave) => HoldAction::Leave,
        None => HoldAction::None,
    };
    let mend = match (&explanation.mend, codes) {
        (Some(mend), _) if facts.is_by_code => format!("by the code alone: {mend}"),
        (Some(mend), _) => mend.clone(),
        (None, None) => "the text says too little".to_owned(),
        (None, Some((code, subcode))) => format!(
            "the text says too little, and the code only this: {}",
            code_meaning(code, subcode)
        ),
    };
    (action, mend)
}

/// Formats the meaning, the advice with the party at fault, and the checks that a look can make.
fn three_lines(explanation: &Explanation, action: HoldAction, mend: &str) -> String {
    let attributes = match explanation.attributes {
        [] => String::new(),
        names => format!("; attributes: {}", names.join(", ")),
    };
    let fault = explanation.fault.map_or(String::new(), |fault| {
        format!(" (fault: {}{attributes})", fault_words(fault))
    });
    let look = explanation
        .look
        .as_deref()
        .unwrap_or("the job's log, and its ad: condor_q -l JOB");
    format!(
        "means: {}\ndo:    {}: {mend}{fault}\nlook:  {look}\n",
        explanation.meaning,
        answer_words(action, None)
    )
}

fn fault_words(fault: Party) -> &'static str {
    match fault {
        Party::User => "the user",
        Party::Machine => "the machine",
        Party::Site => "the site",
        Party::Server => "a server or a network",
        Party::UserOrMachine => "the user or the machine",
        Party::Nobody => "nobody",
    }
}
