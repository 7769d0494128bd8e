//! `poolcast explain`: says what a hold reason means, without a job.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Read as _;

use anyhow::{Result, ensure};
use serde::Serialize;

use htcondor_holdreasons::rules::Party;
use htcondor_holdreasons::{ReasonFacts, explain, read_reason};
use poolcast_advice::{ListedReason, listed_reasons};
use poolcast_base::error::{EXIT_DONE, hinted};
use poolcast_base::output;
use poolcast_cli::ExplainArgs;
use poolcast_holds::decision::{HoldAction, answer_words, code_meaning};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 2;

/// Maximum size of a list of reasons on standard input, in bytes.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Document that `--json` prints.
#[derive(Serialize)]
struct ExplainDocument<'a> {
    /// The reasons, the one of the most jobs first. Reasons that differ in numbers and machines
    /// alone are one.
    reasons: &'a [ExplainedReason],
}

/// A hold reason, with what it means.
#[derive(Serialize)]
struct ExplainedReason {
    /// Number of jobs that the list names for it.
    jobs: u64,
    /// The hold code, if it is known.
    code: Option<i32>,
    /// The hold subcode, if it is known.
    subcode: Option<i32>,
    /// Facts that the reason states.
    facts: ReasonFacts,
    #[serde(flatten)]
    answer: ReasonAnswer,
}

/// What a reason means, and what to do.
#[derive(Serialize)]
struct ReasonAnswer {
    /// Meaning of the reason.
    meaning: String,
    /// The action, as in the advice.
    action: HoldAction,
    /// The party at fault.
    fault: Option<Party>,
    /// Words for the repair.
    mend: String,
    /// Attributes of the job that may have the wrong value, the likeliest first.
    attributes: Vec<&'static str>,
    /// Words for a look at the cause, if one can check it.
    look: Option<String>,
}

/// Prints what each reason means, what to do, and what can be looked at.
pub fn run(args: &ExplainArgs) -> Result<u8> {
    let text = match &args.reason {
        Some(reason) if reason != "-" => reason.clone(),
        _ => read_input()?,
    };
    ensure!(
        !text.trim().is_empty(),
        hinted(
            "there is no reason to explain",
            "name it in quotation marks, or pipe it: condor_q -af HoldReason JOB | poolcast explain"
        )
    );
    let given = args.code.map(|code| (code, args.subcode.unwrap_or(0)));
    let listed = listed_reasons(&text)
        .map_err(|what| hinted("there is no hold reason in this text", what))?;
    let reasons = explained(listed, given);
    if args.output.json {
        let reasons = &reasons;
        output::print_json(SCHEMA_VERSION, &ExplainDocument { reasons })?;
    } else if let [one] = &reasons[..]
        && one.jobs == 1
    {
        output::print(&three_lines(&one.answer))?;
    } else {
        let paragraphs: Vec<String> = reasons.iter().map(paragraph).collect();
        output::print(&paragraphs.join("\n"))?;
    }
    Ok(EXIT_DONE)
}

/// Explains `listed` reasons, the one of most jobs first. Reasons that differ in numbers and machines alone are
/// explained once. The codes in `given` count where the list has none.
fn explained(listed: Vec<ListedReason>, given: Option<(i32, i32)>) -> Vec<ExplainedReason> {
    let mut places = HashMap::new();
    let mut all: Vec<ExplainedReason> = Vec::new();
    for ListedReason {
        reason,
        codes,
        jobs,
    } in listed
    {
        let codes = codes.or(given);
        let facts = read_reason(&reason, codes);
        let key = (codes, facts.kind, facts.shown_name().map(str::to_owned));
        let place = *places.entry(key).or_insert_with(|| {
            all.push(ExplainedReason {
                jobs: 0,
                code: codes.map(|(code, _)| code),
                subcode: codes.map(|(_, subcode)| subcode),
                answer: ReasonAnswer::new(&facts, codes),
                facts,
            });
            all.len() - 1
        });
        all[place].jobs += jobs;
    }
    all.sort_by_key(|one| Reverse(one.jobs));
    all
}

fn read_input() -> Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MAX_INPUT_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl ReasonAnswer {
    /// Answers by the facts, or else by the code.
    fn new(facts: &ReasonFacts, codes: Option<(i32, i32)>) -> ReasonAnswer {
        let explained = explain(facts);
        let mend = match (explained.mend, codes) {
            (Some(mend), _) if facts.is_by_code => format!("by the code alone: {mend}"),
            (Some(mend), _) => mend,
            (None, None) => "the text says too little".to_owned(),
            (None, Some((code, subcode))) => format!(
                "the text says too little, and the code only this: {}",
                code_meaning(code, subcode)
            ),
        };
        ReasonAnswer {
            meaning: explained.meaning,
            action: explained.action.map_or(HoldAction::None, Into::into),
            fault: explained.fault,
            mend,
            attributes: explained.attributes,
            look: explained.look,
        }
    }
}

/// Formats what is said about one of several reasons.
fn paragraph(reason: &ExplainedReason) -> String {
    let jobs = match reason.jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{} jobs", output::with_commas(jobs)),
    };
    let codes = match (reason.code, reason.subcode) {
        (Some(code), Some(subcode)) => format!(", hold code {code}/{subcode}"),
        _ => String::new(),
    };
    format!("{jobs}{codes}\n{}", three_lines(&reason.answer))
}

/// Formats the meaning, the advice with the party at fault, and the checks that a look can make.
fn three_lines(answer: &ReasonAnswer) -> String {
    let attributes = match &answer.attributes[..] {
        [] => String::new(),
        names => format!("; attributes: {}", names.join(", ")),
    };
    let fault = answer.fault.map_or(String::new(), |fault| {
        format!(" (fault: {}{attributes})", fault_words(fault))
    });
    let look = answer
        .look
        .as_deref()
        .unwrap_or("the job's log, and its ad: condor_q -l JOB");
    format!(
        "means: {}\ndo:    {}: {}{fault}\nlook:  {look}\n",
        answer.meaning,
        answer_words(answer.action, None),
        answer.mend
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
