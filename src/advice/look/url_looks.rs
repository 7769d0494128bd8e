//! Looks at the addresses of input files that could not be transferred, by the answers of their
//! servers.

use std::collections::{HashMap, HashSet};

use super::job_look::{JobLook, LookState};
use super::looks::{LookPlan, add_looks};
use crate::addresses::{server_of, without_secrets};
use crate::job_advice::{AdviceGround, JobAdvice};
use htcondor_holdreasons::ReasonKind;
use poolcast_holds::answers::NamedFault;
use poolcast_holds::decision::{AnswerFirmness, HoldAction};

/// Maximum number of addresses that are asked for.
const MAX_ADDRESSES: usize = 20;

/// The server that redirects to the origins and caches of `osdf` addresses (its federation's
/// `director_endpoint`).
const OSDF_DIRECTOR: &str = "https://osdf-director.osg-htc.org";

/// The answer of a server about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlAnswer {
    /// Nothing was asked, or the answer says nothing about the file.
    Unknown,
    /// The file can be read.
    Found,
    /// The server has no such file.
    NotFound,
    /// The server cannot be reached, fails, or has not answered in time.
    NoAnswer,
}

/// A question to a server: does it have a file?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlQuestion {
    /// An `http` or `https` address.
    pub address: String,
    /// True if the address may be in a private network, or on this machine, because a job of this user
    /// in the queue of this access point names it. A log may be anyone's, and could make this machine
    /// ask servers that only it can reach.
    pub may_be_private: bool,
}

/// A URL that a job of this user names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedUrl<'a> {
    pub(super) url: &'a str,
    /// True if the queue of this access point has the job.
    pub(super) is_of_queue: bool,
}

/// The answers of servers about the files at some URLs.
#[derive(Debug, Default)]
pub(super) struct UrlAnswers<'a> {
    by_url: HashMap<&'a str, UrlAnswer>,
    /// Servers that did not answer for some file.
    silent: HashSet<&'a str>,
}

impl<'a> UrlAnswers<'a> {
    /// Lets `ask` ask for at most [`MAX_ADDRESSES`] of `urls`, for each once, and for one of each server
    /// first. `ask` returns an answer for each question.
    pub(super) fn get(
        urls: &[NamedUrl<'a>],
        ask: impl FnOnce(&[UrlQuestion]) -> Vec<UrlAnswer>,
    ) -> UrlAnswers<'a> {
        let asked = first_of_each_server(urls.iter().map(|named| named.url));
        if asked.is_empty() {
            return UrlAnswers::default();
        }
        let of_queue = urls.iter().filter(|named| named.is_of_queue);
        let of_queue: HashSet<&str> = of_queue.map(|named| named.url).collect();
        let question = |url: &&str| {
            Some(UrlQuestion {
                address: address_of(url)?,
                may_be_private: of_queue.contains(url),
            })
        };
        let questions: Vec<UrlQuestion> = asked.iter().filter_map(question).collect();
        let by_url: HashMap<&str, UrlAnswer> = asked.into_iter().zip(ask(&questions)).collect();
        let silent = (by_url.iter())
            .filter(|(_, answer)| **answer == UrlAnswer::NoAnswer)
            .map(|(url, _)| server_of(url))
            .collect();
        UrlAnswers { by_url, silent }
    }

    /// Returns the answer about `url`. A server that does not answer for one file does not for others.
    pub(super) fn of(&self, url: &str) -> UrlAnswer {
        match self.by_url.get(url) {
            Some(answer) => *answer,
            None if self.silent.contains(server_of(url)) => UrlAnswer::NoAnswer,
            None => UrlAnswer::Unknown,
        }
    }

    /// The number of files that servers have answered for, or not in time.
    pub(super) fn count(&self) -> usize {
        let is_known = |answer: &&UrlAnswer| **answer != UrlAnswer::Unknown;
        self.by_url.values().filter(is_known).count()
    }
}

/// An address that a hold names.
struct FailedUrl<'a> {
    job: usize,
    url: &'a str,
    /// True if the server had no such file.
    was_not_found: bool,
}

impl LookPlan {
    /// Lets `ask` ask servers for the input files that could not be transferred to jobs of this user and
    /// of this access point, and gives those jobs the answer that follows. `ask` returns an answer for
    /// each question. Jobs of others are left out: they could name any server.
    pub fn look_at_urls(
        &self,
        advice: &mut [JobAdvice],
        ask: impl FnOnce(&[UrlQuestion]) -> Vec<UrlAnswer>,
    ) {
        let reasons: Vec<Option<String>> = advice.iter().map(|one| self.own_reason(one)).collect();
        let failed: Vec<FailedUrl<'_>> = (reasons.iter().enumerate())
            .filter_map(|(job, reason)| {
                failed_url(job, reason.as_deref()?, advice[job].hold.stated)
            })
            .collect();
        let named = failed.iter().map(|one| NamedUrl {
            url: one.url,
            is_of_queue: self.is_of_queue() && advice[one.job].job.queue.is_some(),
        });
        let answers = UrlAnswers::get(&named.collect::<Vec<_>>(), ask);
        let looks = failed.iter().filter_map(|one| {
            let look = url_look(one, answers.of(one.url), &advice[one.job], self.now_ms)?;
            Some((one.job, look))
        });
        let looks: Vec<(usize, JobLook)> = looks.collect();
        add_looks(advice, looks);
    }

    /// Returns the reason of a hold for input files, if the job is this user's and of this access point,
    /// and if no look at a file has decided.
    fn own_reason(&self, one: &JobAdvice) -> Option<String> {
        let is_own = self.is_own(one.job.owner.as_deref()) && self.has_files_of(&one.job.ap);
        let is_open = one.hold.stated.is_input_transfer() && one.verdict.look.is_none();
        let reason = one.hold.reason.as_ref().filter(|_| is_own && is_open)?;
        Some(reason.to_string())
    }
}

/// Returns the address in `... server returned 404 Not Found ( URL file = https://HOST/FILE )|`, a reason that
/// states `stated`.
fn failed_url(job: usize, reason: &str, stated: ReasonKind) -> Option<FailedUrl<'_>> {
    let (_, after) = reason.split_once("URL file = ")?;
    let url = after.split([' ', ')', '|']).next()?;
    is_askable(url).then_some(FailedUrl {
        job,
        url,
        was_not_found: NamedFault::of_kind(stated) == NamedFault::Missing,
    })
}

/// Returns true if a server can be asked for `url`.
pub(crate) fn is_askable(url: &str) -> bool {
    address_of(url).is_some()
}

/// Returns the address to ask for `url`; `None` if it has another scheme.
fn address_of(url: &str) -> Option<String> {
    if let Some(path) = url.strip_prefix("osdf://") {
        return Some(format!("{OSDF_DIRECTOR}/{}", path.trim_start_matches('/')));
    }
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    is_web.then(|| url.to_owned())
}

/// Returns up to [`MAX_ADDRESSES`] different ones of `urls`: one of each server first.
fn first_of_each_server<'a>(urls: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let (mut seen, mut servers) = (HashSet::new(), HashSet::new());
    let (mut first, others): (Vec<&str>, Vec<&str>) = urls
        .filter(|url| seen.insert(*url))
        .partition(|url| servers.insert(server_of(url)));
    first.extend(others);
    first.truncate(MAX_ADDRESSES);
    first
}

/// Returns what `answer` shows about a held job; `None` if it shows nothing.
fn url_look(
    failed: &FailedUrl<'_>,
    answer: UrlAnswer,
    advice: &JobAdvice,
    looked_ms: i64,
) -> Option<JobLook> {
    use AnswerFirmness::{Firm, Probable};
    use HoldAction::{Fix, Later, Release};
    let was_not_found = failed.was_not_found;
    let (state, decided) = match answer {
        UrlAnswer::Unknown => return None,
        UrlAnswer::NotFound if was_not_found => (LookState::Missing, Some((Fix, Firm))),
        UrlAnswer::NotFound => (LookState::Missing, Some((Fix, Probable))),
        UrlAnswer::Found => (LookState::Reachable, Some((Release, Probable))),
        // The server fails now, but its return does not help a file that it lacked.
        UrlAnswer::NoAnswer if was_not_found => (LookState::NoAnswer, None),
        UrlAnswer::NoAnswer => (LookState::NoAnswer, Some((Later, Probable))),
    };
    let is_kept = |action| learned_answer_stays(action, advice);
    let decides = decided.filter(|(action, _)| !is_kept(*action));
    let url = without_secrets(failed.url);
    Some(JobLook::of_url(url.into(), state, decides, looked_ms))
}

/// Returns true if the learned answer about a job stays beside a server's answer from which `action`
/// follows. Odds are of earlier outcomes, and the server answers now, so this is rare.
fn learned_answer_stays(action: HoldAction, advice: &JobAdvice) -> bool {
    if advice.verdict.ground != AdviceGround::Model {
        return false;
    }
    match action {
        // The answer is the same, and has odds.
        HoldAction::Release | HoldAction::Later if advice.verdict.action == action => true,
        // Where jobs run, a server can be reached although it cannot from here, as jobs show that got
        // past the cause.
        HoldAction::Later => {
            (advice.forecast.state.as_ref()).is_some_and(|state| state.successes_since > 0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::looks::LookScope;
    use super::*;
    use htcondor_holdreasons::read_reason;
    use poolcast_holds::answers::{ThingKind, ThingState};

    fn held(owner: &str, url: &str, error: &str) -> JobAdvice {
        let reason = format!(
            "Transfer input files failure at execution point slot1@e using protocol https. Details: {url}: {error} ( URL file = {url} )|"
        );
        JobAdvice::of_test_job().with(|one| {
            one.hold.stated = read_reason(&reason, Some((13, 256))).kind;
            one.job.owner = Some(owner.into());
            one.hold.reason = Some(reason.as_str().into());
            one.verdict.ground = AdviceGround::Nothing;
            one.verdict.action = HoldAction::None;
        })
    }

    /// Returns the addresses that were asked for, and the answer about each job.
    fn looked(advice: &mut [JobAdvice], answers: &[UrlAnswer]) -> (Vec<String>, Vec<String>) {
        let asked = questions(LookScope::All, advice, answers);
        let answer =
            |one: &JobAdvice| format!("{:?} {:?}", one.verdict.action, one.verdict.firmness);
        let addresses = asked.into_iter().map(|question| question.address);
        (addresses.collect(), advice.iter().map(answer).collect())
    }

    /// Returns the questions of ada's look at `advice`.
    fn questions(
        scope: LookScope,
        advice: &mut [JobAdvice],
        answers: &[UrlAnswer],
    ) -> Vec<UrlQuestion> {
        let mut plan = LookPlan::new(scope, None, 5000);
        plan.user = Some("ada".to_owned());
        let mut asked = Vec::new();
        plan.look_at_urls(advice, |questions| {
            asked = questions.to_vec();
            answers.to_vec()
        });
        asked
    }

    #[test]
    fn only_jobs_of_the_own_queue_may_name_private_addresses() {
        let of_log = || held("ada", "http://10.0.0.1/1", "reset").with(|one| one.job.queue = None);
        let of_queue = || held("ada", "http://10.0.0.2/1", "reset");
        let asked = |scope: LookScope| {
            let asked = questions(scope, &mut [of_log(), of_queue()], &[]);
            let asked = asked.into_iter();
            asked
                .map(|question| question.may_be_private)
                .collect::<Vec<_>>()
        };
        assert_eq!(asked(LookScope::Queue), [false, true]);
        assert_eq!(
            asked(LookScope::All),
            [false, false],
            "a list may be anyone's"
        );
        assert_eq!(asked(LookScope::OfHost("ap".to_owned())), [false, false]);
        let other = LookScope::OfHost("other".to_owned());
        assert_eq!(
            asked(other),
            [] as [bool; 0],
            "the log is of another access point"
        );
    }

    #[test]
    fn another_job_is_tried_if_the_file_of_the_first_is_missing() {
        let probe = |proc: i32, url: &str, is_tried: bool| {
            held("ada", url, "server returned 404 Not Found").with(|one| {
                one.job.id.proc = proc;
                one.verdict.ground = AdviceGround::Model;
                one.verdict.action = HoldAction::Probe;
                one.forecast.probability = Some(0.1 * f64::from(proc));
                one.verdict.probe_cause = Some((0, 7));
                one.verdict.command.take_if(|_| !is_tried);
            })
        };
        let mut advice = [
            probe(3, "https://a.example/lost", true),
            probe(1, "file:/a", false),
            probe(2, "file:/b", false),
        ];
        looked(&mut advice, &[UrlAnswer::NotFound]);
        let action_and_command =
            |one: &JobAdvice| (one.verdict.action, one.verdict.command.is_some());
        assert_eq!(
            advice.each_ref().map(action_and_command),
            [
                (HoldAction::Fix, true),
                (HoldAction::Probe, false),
                (HoldAction::Probe, true),
            ]
        );

        let mut of_two = [
            probe(3, "https://a.example/lost", true),
            probe(2, "file:/b", true),
            probe(1, "file:/a", false),
        ];
        looked(&mut of_two, &[UrlAnswer::NotFound]);
        let commands = of_two.each_ref().map(|one| one.verdict.command.is_some());
        assert_eq!(commands, [true, true, false], "one is still tried");
    }

    #[test]
    fn answers_of_servers_decide_where_nothing_was_learned() {
        let timeout = "no response from origin after 10 s";
        let missing = "server returned 404 Not Found";
        let mut advice = [
            held("ada", "https://a.example/1", timeout),
            held("ada", "https://b.example/1", missing),
            held("ada", "https://c.example/1", timeout),
            held("ada", "https://d.example/1", missing),
            held("ada", "osdf:///ospool/ap40/x", timeout),
            held("ada", "https://e.example/1", missing),
        ];
        use UrlAnswer::{Found, NoAnswer, NotFound};
        let answers = [Found, NotFound, NoAnswer, Found, NotFound, NoAnswer];
        let (asked, found) = looked(&mut advice, &answers);
        assert_eq!(asked[4], "https://osdf-director.osg-htc.org/ospool/ap40/x");
        let expected = [
            "Release Some(Probable)",
            "Fix Some(Firm)",
            "Later Some(Probable)",
            "Release Some(Probable)",
            "Fix Some(Probable)",
            "None Some(Probable)",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn servers_are_asked_about_input_whatever_the_code() {
        let failed = |direction: &str, codes| {
            let reason = format!(
                "Transfer {direction} files failure at execution point slot1@e using protocol https. Details: server returned 404 Not Found ( URL file = https://a.example/1 )|"
            );
            let mut job = held("ada", "https://a.example/1", "reset");
            job.hold.stated = read_reason(&reason, Some(codes)).kind;
            job.hold.reason = Some(reason.as_str().into());
            looked(&mut [job], &[UrlAnswer::NotFound])
        };
        let (asked, answers) = failed("input", (12, 1));
        assert_eq!((asked.len(), answers[0].as_str()), (1, "Fix Some(Firm)"));
        assert_eq!(failed("output", (13, 256)).0, [] as [String; 0]);
    }

    /// Returns a job with learned odds, after whose last failure `successes` jobs got past the cause.
    fn with_odds(action: HoldAction, url: &str, error: &str, successes: usize) -> JobAdvice {
        let state = ThingState {
            kind: ThingKind::Origin,
            last_failure_ms: 0,
            successes_since: successes,
            owners_since: successes.min(1),
            by_hand_of: None,
            success_lower: None,
            reads_since: 0,
        };
        held("ada", url, error).with(|one| {
            one.verdict.ground = AdviceGround::Model;
            one.verdict.action = action;
            one.verdict.firmness = Some(AnswerFirmness::Firm);
            one.forecast.probability = Some(0.05);
            one.forecast.state = Some(state.into());
        })
    }

    #[test]
    fn what_a_server_answers_now_outweighs_odds_that_contradict_it() {
        use HoldAction::{Fix, Later, Probe, Release};
        let refused = "connection refused";
        let mut advice = [
            with_odds(Later, "https://a.example/1", refused, 0),
            with_odds(Probe, "https://b.example/1", refused, 0),
            with_odds(Fix, "https://c.example/1", refused, 3),
            with_odds(Probe, "https://d.example/1", refused, 0),
            with_odds(Release, "https://e.example/1", refused, 0),
            with_odds(Release, "https://f.example/1", refused, 3),
            with_odds(Release, "https://h.example/1", refused, 3),
            with_odds(Later, "https://i.example/1", refused, 0),
        ];
        use UrlAnswer::{Found, NoAnswer, NotFound};
        let answers = [
            Found, Found, Found, NoAnswer, NoAnswer, NoAnswer, NotFound, NoAnswer,
        ];
        let (_, found) = looked(&mut advice, &answers);
        let expected = [
            "Release Some(Probable)",
            "Release Some(Probable)",
            "Release Some(Probable)",
            "Later Some(Probable)",
            "Later Some(Probable)",
            "Release Some(Firm)",
            "Fix Some(Probable)",
            "Later Some(Firm)",
        ];
        assert_eq!(found, expected);
        assert!(advice.iter().all(|one| one.verdict.look.is_some()));
        let has_odds = advice
            .each_ref()
            .map(|one| one.forecast.probability.is_some());
        let keep_odds = [false, false, false, false, false, true, false, true];
        assert_eq!(has_odds, keep_odds);
    }

    #[test]
    fn one_address_of_each_server_is_asked_first_and_jobs_of_others_are_not() {
        let mut advice: Vec<JobAdvice> = (0..30)
            .map(|n| held("ada", &format!("https://a.example/{n}"), "reset"))
            .collect();
        advice.push(held("ada", "https://b.example/0", "reset"));
        advice.push(held("bob", "https://c.example/0", "reset"));
        advice.push(held("ada", "ftp://d.example/0", "reset"));
        let (asked, found) = looked(&mut advice, &[UrlAnswer::NoAnswer; 2]);
        assert_eq!(asked.len(), MAX_ADDRESSES);
        assert_eq!(asked[..2], ["https://a.example/0", "https://b.example/0"]);
        let later = |answer: &&String| *answer == "Later Some(Probable)";
        assert_eq!(found.iter().filter(later).count(), 31);
    }
}
