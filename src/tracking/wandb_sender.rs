//! The runs of a directory → W&B: what the server lacks of them, and nothing twice.
//!
//! The server is asked how many lines it has of a run before any is sent, so that it does not matter
//! who sent the earlier ones, or whether an answer was lost. A finished run takes two requests.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::best_files::BestFiles;
use super::http_sender::{FileUpload, HttpSender, JsonRequest, SendError, SendLimits};
use super::sender_clock::SenderClock;
use super::sent_note::SentNote;
use super::source::TrackedSource;
use super::sweep_control::SweepControl;
use super::tracked_run::{TrackedOutcome, TrackedRun};
use super::wandb_agents::WandbAgents;
use super::wandb_requests::{
    create_run_files, files_are_there, find_sweeps, stream_part, stream_path, sweep_state,
    upsert_run, upsert_sweep,
};
use super::wandb_settings::{WandbSettings, variable};
use crate::config::Tracker;
use crate::escape;

/// How often a run that goes on is heard of where it has nothing to say. W&B takes it for dead after
/// five minutes.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(240);

/// What W&B says of the id of a run that somebody has deleted.
const DELETED: &str = "previously created and deleted";

/// What a sender has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SentSummary {
    /// Where the runs are.
    pub to: String,
    /// Requests, each try counted.
    pub requests: u64,
    /// Runs of which something was sent.
    pub runs: usize,
    /// Epochs that were sent.
    pub epochs: usize,
    /// Runs that have ended and were sent to their end, now or earlier.
    pub ended: usize,
    /// Runs that go on.
    pub running: usize,
    /// Files that were sent with the best run.
    pub files: usize,
    /// What people should know.
    pub notes: Vec<String>,
}

/// What is known of a run that was sent by this sender.
#[derive(Debug, Clone, Default)]
struct SentRun {
    /// How many epochs the server has.
    known_epochs: usize,
    /// When the server heard of it last from this sender; `None` before that, whoever was there before.
    heard_at: Option<Duration>,
    has_ended: bool,
    /// Somebody has deleted it on the server.
    is_deleted: bool,
}

/// Sends runs to one project of W&B.
pub(super) struct WandbSender {
    http: HttpSender,
    settings: WandbSettings,
    /// What the server calls the entity and the project.
    answered: Option<(String, String)>,
    sweep: Option<String>,
    note: SentNote,
    runs: HashMap<String, SentRun>,
    control: SweepControl,
    /// Those of a sweep whose points come from the server.
    agents: Option<WandbAgents>,
    /// What it has done so far.
    pub(super) summary: SentSummary,
}

impl WandbSender {
    /// For the runs of `source`, to where the environment and the configuration say.
    ///
    /// # Errors
    /// Fails without a key, and for names that W&B does not take.
    pub(super) fn new(
        source: &TrackedSource,
        clock: SenderClock,
        limits: SendLimits,
        stop: Arc<AtomicBool>,
    ) -> Result<WandbSender> {
        let mut settings = WandbSettings::new(source.config(), variable)?;
        let key = settings.key(variable)?;
        let mut http = HttpSender::new(&settings.host, Some(key), clock, limits, stop)?;
        http.keep_state(source.dir(), Tracker::Wandb);
        Ok(WandbSender::with(source.dir(), settings, http))
    }

    /// For the runs in `dir`, to where `settings` say, by `http`.
    fn with(dir: &Path, mut settings: WandbSettings, http: HttpSender) -> WandbSender {
        let place = &settings.place;
        let entity = place.entity.as_deref().unwrap_or("-");
        let to = format!("{}/{entity}/{}", settings.base_url, place.project);
        let warnings = std::mem::take(&mut settings.warnings);
        WandbSender {
            http,
            answered: None,
            sweep: None,
            note: SentNote::read(dir, Tracker::Wandb, &to),
            runs: HashMap::new(),
            control: SweepControl::default(),
            agents: None,
            summary: SentSummary {
                to,
                notes: warnings,
                ..SentSummary::default()
            },
            settings,
        }
    }

    /// What requests go by.
    pub(super) fn http(&mut self) -> &mut HttpSender {
        &mut self.http
    }

    /// Sends what the server lacks of the runs of `source` as they are now. Returns whether all have
    /// ended and were sent to their end.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain where the server does not take it.
    pub(super) fn send_all(&mut self, source: &TrackedSource) -> Result<bool> {
        self.summary.running = 0;
        let sent = self.send_runs(source);
        self.summary.requests = self.http.requests();
        self.http
            .count_runs(self.summary.ended, self.summary.running);
        self.write_note();
        sent
    }

    fn send_runs(&mut self, source: &TrackedSource) -> Result<bool> {
        let has_all = self.set_sweep(source)?;
        if !has_all {
            return Ok(false);
        }
        self.control.begin_pass(source);
        self.ask_for_state()?;
        let ended: BTreeSet<usize> = self.note.ended_trials().collect();
        let mut are_all_known = true;
        let is_over = source.visit_runs_beside(&ended, |run| {
            are_all_known &= self.send_run(&run)?;
            Ok(())
        })?;
        self.summary.ended = self.note.ended_trials().count();
        self.ask_for_points(source)?;
        Ok(is_over && are_all_known)
    }

    /// Asks for the points of a sweep that gives them, as many as workers have nothing to do.
    fn ask_for_points(&mut self, source: &TrackedSource) -> Result<()> {
        let (Some(given), Some(queue)) = (source.given_points()?, source.queue()) else {
            return Ok(());
        };
        let mut agents = match (self.agents.take(), &self.sweep) {
            (Some(agents), _) => agents,
            (None, Some(sweep)) => WandbAgents::new(
                source.dir().to_owned(),
                self.settings.place.clone(),
                sweep.clone(),
                source.most_trials()?,
            ),
            (None, None) => return Ok(()),
        };
        let mut ended = BTreeSet::new();
        for run_id in given.agents.iter().flat_map(|agent| &agent.run_ids) {
            let is_deleted = self.runs.get(run_id).is_some_and(|run| run.is_deleted);
            if is_deleted || self.note.has_ended(run_id) {
                ended.insert(run_id.clone());
            }
        }
        let now = self.http.now();
        let stepped = agents.step(&queue, now, &ended, &mut |body, is_repeatable| {
            self.ask_for(body, is_repeatable)
        });
        self.agents = Some(agents);
        stepped
    }

    /// Asks now and then whether the sweep is paused or stopped on its page. A server that does not
    /// know the question has no such page.
    fn ask_for_state(&mut self) -> Result<(), SendError> {
        let now = self.http.now();
        let Some(sweep) = self.sweep.clone().filter(|_| self.control.is_due(now)) else {
            return Ok(());
        };
        let body = sweep_state(&self.settings.place, &sweep);
        let answer = match self.post("/graphql", &body, true) {
            Err(SendError::Refused {
                status: 400 | 404 | 422,
                ..
            }) => Value::Null,
            answered => answered?,
        };
        let state = answer["data"]["project"]["sweep"]["state"].as_str();
        let failed = self.control.hear_state(now, state);
        failed.into_iter().for_each(|note| self.add_note(note));
        Ok(())
    }

    /// Makes the sweep of `source` known to the server, if it is one. False before there is one.
    fn set_sweep(&mut self, source: &TrackedSource) -> Result<bool> {
        if self.sweep.is_some() {
            return Ok(true);
        }
        let Some(space) = source.sweep_space() else {
            return Ok(true);
        };
        if let Some(named) = source.config().wandb.known_sweep() {
            self.sweep = Some(named.to_owned());
            return Ok(true);
        }
        let Some(mark) = source.sweep_mark() else {
            return Ok(false);
        };
        self.find_or_create_sweep(&space, &mark)?;
        Ok(true)
    }

    /// Makes the sweep of this `space` known to the server, which `mark` tells from all others.
    fn find_or_create_sweep(&mut self, space: &Value, mark: &str) -> Result<()> {
        if let Some(known) = self.note.sweep(mark) {
            self.sweep = Some(known.to_owned());
            return Ok(());
        }
        let found = match self.find_sweep(mark)? {
            Some(found) => found,
            None => self.create_sweep(space, mark)?,
        };
        self.note.set_sweep(mark, &found);
        self.write_note();
        self.sweep = Some(found);
        Ok(())
    }

    /// The sweep that an earlier sender has made. A server that cannot be asked so has none.
    fn find_sweep(&mut self, mark: &str) -> Result<Option<String>> {
        let mut cursor: Option<String> = None;
        loop {
            let body = find_sweeps(&self.settings.place, cursor.as_deref());
            // A server that does not know the question, or the project, has no sweep in it.
            let answer = match self.post("/graphql", &body, true) {
                Err(SendError::Refused {
                    status: 400 | 404 | 422,
                    ..
                }) => return Ok(None),
                answered => answered?,
            };
            let sweeps = &answer["data"]["project"]["sweeps"];
            for edge in sweeps["edges"].as_array().into_iter().flatten() {
                let node = &edge["node"];
                let says = |key: &str| node[key].as_str().is_some_and(|text| text.contains(mark));
                if says("description") || says("config") {
                    return Ok(node["name"].as_str().map(str::to_owned));
                }
            }
            let page = &sweeps["pageInfo"];
            let next = page["endCursor"].as_str().map(str::to_owned);
            if page["hasNextPage"] != json!(true) || next.is_none() || next == cursor {
                return Ok(None);
            }
            cursor = next;
        }
    }

    /// Makes a sweep. Where the answer was lost, it may be there: so each try looks first.
    fn create_sweep(&mut self, space: &Value, mark: &str) -> Result<String> {
        let mut space = space.clone();
        space["description"] = json!(mark);
        let body = upsert_sweep(&self.settings.place, &space, mark);
        let answer = loop {
            match self.ask_for(&body, false) {
                Err(SendError::InDoubt) => {
                    if let Some(found) = self.find_sweep(mark)? {
                        return Ok(found);
                    }
                }
                answered => break answered?,
            }
        };
        let sweep = &answer["data"]["upsertSweep"]["sweep"];
        self.learn_names(&sweep["project"]);
        match sweep["name"].as_str() {
            Some(name) => Ok(name.to_owned()),
            None => Err(self.unexpected(&answer).into()),
        }
    }

    /// Sends what the server lacks of `run`. Returns whether it knows all of it now.
    fn send_run(&mut self, run: &TrackedRun) -> Result<bool> {
        if run.outcome == TrackedOutcome::Running {
            self.summary.running += 1;
        }
        if self.note.has_ended(&run.run_id) {
            return Ok(true);
        }
        let mut sent = match self.runs.get(&run.run_id) {
            Some(known) => known.clone(),
            None => match self.begin_run(run)? {
                Some(begun) => {
                    self.summary.runs += 1;
                    begun
                }
                None => return Ok(true),
            },
        };
        if sent.is_deleted || sent.has_ended {
            return Ok(true);
        }

        self.stream_run(run, &mut sent)?;
        if run.outcome.exit_code().is_some() {
            sent.has_ended = true;
            self.note.add_ended(&run.run_id, run.trial().unwrap_or(0));
        }
        self.runs.insert(run.run_id.clone(), sent);
        if self.note.is_due() {
            self.write_note();
        }
        Ok(true)
    }

    /// Makes `run` known to the server, and learns how much of it the server has. `None` for one that
    /// somebody has deleted there.
    fn begin_run(&mut self, run: &TrackedRun) -> Result<Option<SentRun>> {
        let body = upsert_run(&self.settings.place, self.sweep.as_deref(), run);
        let answer = match self.ask_for(&body, true) {
            Ok(answer) => answer,
            Err(SendError::Refused { said, .. }) if said.contains(DELETED) => {
                let name = escape::value(&run.name).into_owned();
                self.add_note(format!(
                    "{name} was deleted on W&B, which takes no run of its id {} again; undelete it there",
                    run.run_id
                ));
                let deleted = SentRun {
                    is_deleted: true,
                    ..SentRun::default()
                };
                self.runs.insert(run.run_id.clone(), deleted);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };

        let bucket = &answer["data"]["upsertBucket"]["bucket"];
        if !bucket.is_object() {
            return Err(self.unexpected(&answer).into());
        }
        self.learn_names(&bucket["project"]);
        let lines = bucket["historyLineCount"].as_u64().unwrap_or(0);
        let known = run.epochs.len();
        if lines > known as u64 {
            let name = escape::value(&run.name).into_owned();
            self.add_note(format!(
                "W&B has {lines} lines of {name}, which has {known} here: nothing is added to them"
            ));
        }
        Ok(Some(SentRun {
            known_epochs: usize::try_from(lines).unwrap_or(usize::MAX).min(known),
            ..SentRun::default()
        }))
    }

    /// Sends the epochs that the server lacks, the summary, and how the run ended.
    fn stream_run(&mut self, run: &TrackedRun, sent: &mut SentRun) -> Result<(), SendError> {
        let has_news =
            sent.known_epochs < run.epochs.len() || run.outcome != TrackedOutcome::Running;
        if !has_news {
            let now = self.http.now();
            let is_due = sent
                .heard_at
                .is_none_or(|heard_at| now >= heard_at + HEARTBEAT_EVERY);
            if is_due {
                self.post_stream(run, &json!({}))?;
                sent.heard_at = Some(self.http.now());
            }
            return Ok(());
        }

        loop {
            let part = stream_part(run, sent.known_epochs);
            self.post_stream(run, &part.body)?;
            self.summary.epochs += part.known_epochs.saturating_sub(sent.known_epochs);
            sent.known_epochs = part.known_epochs;
            sent.heard_at = Some(self.http.now());
            if sent.known_epochs >= run.epochs.len() {
                return Ok(());
            }
        }
    }

    /// Sends the best run's files, unless they were sent.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain where the server does not answer. What it refuses is a
    /// note.
    pub(super) fn send_files(&mut self, best: &BestFiles) -> Result<()> {
        let digest = best.digest();
        if self.note.has_files(&best.run.run_id, &digest) {
            return Ok(());
        }
        // The answer also has the names of the entity and the project.
        if self.answered.is_none() && self.begin_run(&best.run)?.is_none() {
            return Ok(());
        }
        match self.upload(best) {
            Ok(()) => {
                self.summary.files += best.files.len();
                self.note.set_files(&best.run.run_id, digest);
                self.write_note();
            }
            Err(SendError::Refused { status, said, .. }) => self.add_note(format!(
                "the report and the best model were not sent: the answer is {status}: {said}"
            )),
            Err(error) => return Err(error.into()),
        }
        self.summary.requests = self.http.requests();
        Ok(())
    }

    fn upload(&mut self, best: &BestFiles) -> Result<(), SendError> {
        let names = best.names();
        let (entity, project) = self.entity_and_project();
        let wish = create_run_files(&entity, &project, &best.run.run_id, &names);
        let answer = self.ask_for(&wish, true)?;
        let told = &answer["data"]["createRunFiles"];
        let headers = upload_headers(&told["uploadHeaders"]);
        for file in &best.files {
            let is_this = |told: &&Value| told["name"] == file.name;
            let found = told["files"].as_array().into_iter().flatten().find(is_this);
            let url = found.and_then(|told| told["uploadUrl"].as_str());
            let Some(url) = url else {
                return Err(self.unexpected(&answer));
            };
            self.http.put_file(&FileUpload {
                url,
                headers: &headers,
                bytes: &file.bytes,
                has_key: false,
            })?;
        }
        self.post_stream(&best.run, &files_are_there(&best.run, &names))?;
        Ok(())
    }

    /// What the server calls the entity and the project, as far as it has said so.
    fn entity_and_project(&self) -> (String, String) {
        let place = &self.settings.place;
        self.answered.clone().unwrap_or_else(|| {
            let entity = place.entity.clone().unwrap_or_default();
            (entity, place.project.clone())
        })
    }

    fn post_stream(&mut self, run: &TrackedRun, body: &Value) -> Result<(), SendError> {
        let (entity, project) = self.entity_and_project();
        let path = stream_path(&entity, &project, &run.run_id);
        let answer = self.post(&path, body, true)?;
        let failed = self.control.hear_answer(run, &answer);
        failed.into_iter().for_each(|note| self.add_note(note));
        Ok(())
    }

    /// Asks by GraphQL for a change, again and again if it may be asked for twice.
    fn ask_for(&mut self, body: &Value, is_repeatable: bool) -> Result<Value, SendError> {
        let answer = self.post("/graphql", body, is_repeatable)?;
        let has_errors = answer["errors"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        if has_errors {
            return Err(self.unexpected(&answer));
        }
        Ok(answer)
    }

    fn post(&mut self, path: &str, body: &Value, is_repeatable: bool) -> Result<Value, SendError> {
        let url = format!("{}{path}", self.settings.base_url);
        let text = body.to_string();
        self.http.send(&JsonRequest {
            method: Method::POST,
            url: &url,
            body: Some(text.as_bytes()),
            is_repeatable,
            is_final: is_deleted,
        })
    }

    /// The names that the server has for what was asked by others.
    fn learn_names(&mut self, project: &Value) {
        let entity = project["entity"]["name"].as_str();
        if let (Some(entity), Some(project)) = (entity, project["name"].as_str()) {
            self.summary.to = format!("{}/{entity}/{project}", self.settings.base_url);
            self.answered = Some((entity.to_owned(), project.to_owned()));
        }
    }

    /// The refusal of an answer that is not what it should be.
    fn unexpected(&self, answer: &Value) -> SendError {
        let message = answer["errors"][0]["message"].as_str();
        let said = message.unwrap_or("it is not W&B's answer");
        SendError::Refused {
            server: self.settings.host.clone(),
            status: 200,
            said: crate::output::cut(said, 200),
        }
    }

    fn add_note(&mut self, note: String) {
        if !self.summary.notes.contains(&note) {
            self.summary.notes.push(note);
        }
    }

    fn write_note(&mut self) {
        if let Err(error) = self.note.write() {
            self.add_note(format!("what was sent could not be noted: {error:#}"));
        }
    }
}

/// The headers of an answer, each `NAME:VALUE`.
fn upload_headers(told: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for text in told
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if let Some((name, value)) = text.split_once(':') {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    headers
}

/// Whether a conflict is that of a run that was deleted. Others pass.
fn is_deleted(said: &str) -> bool {
    said.contains(DELETED)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::sync::{Mutex, PoisonError};

    use serde_json::Map;

    use super::super::tracked_run::TrackedEpoch;
    use super::super::tracker_key::TrackerKey;
    use super::super::wandb_requests::WandbProject;
    use super::super::wandb_server::{Fault, ServedState, WandbServer};
    use super::*;
    use crate::queue::{HandOut, Queue, QueueSettings};

    const KEY: &str = "canary0123456789canary0123456789canary01";
    const MARK: &str = "poolcast 0123456789abcdef";

    /// The time that has passed for the sender of a test: it waits for nothing.
    type TestTime = Arc<Mutex<Duration>>;

    fn passed(time: &TestTime) -> Duration {
        *time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(time: &TestTime, each_sleep: impl Fn(Duration) + Send + 'static) -> SenderClock {
        let (now, slept) = (Arc::clone(time), Arc::clone(time));
        SenderClock::of(
            move || passed(&now),
            move |wait| {
                *slept.lock().unwrap_or_else(PoisonError::into_inner) += wait;
                each_sleep(passed(&slept));
            },
        )
    }

    fn sender_with(
        server: &WandbServer,
        notes: &Path,
        clock: SenderClock,
        patience_s: u64,
    ) -> WandbSender {
        let settings = WandbSettings {
            base_url: server.base_url.clone(),
            host: "the server".to_owned(),
            place: WandbProject {
                entity: None,
                project: "held".to_owned(),
            },
            warnings: Vec::new(),
        };
        let limits = SendLimits {
            patience: Some(Duration::from_secs(patience_s)),
            deadline: None,
        };
        let key = TrackerKey::basic("api", KEY).expect("a key");
        let http = HttpSender::new("the server", Some(key), clock, limits, Arc::default());
        WandbSender::with(notes, settings, http.expect("a client"))
    }

    /// A sender that waits for a server for a day, which passes at once.
    fn sender(server: &WandbServer, notes: &Path) -> WandbSender {
        sender_with(server, notes, clock(&TestTime::default(), |_| {}), 86_400)
    }

    fn run(trial: usize, epochs: usize, outcome: TrackedOutcome) -> TrackedRun {
        let epoch = |step: usize| TrackedEpoch {
            step: step as u64,
            ended_s: 1_795_226_500.0 + (100 * trial + step) as f64,
            values: BTreeMap::from([
                ("train_loss".to_owned(), 1.0 / step as f64),
                ("validation_loss".to_owned(), f64::NAN),
            ]),
            system: BTreeMap::from([("cpu_seconds".to_owned(), step as f64)]),
        };
        TrackedRun {
            run_id: format!("{trial:016x}"),
            name: format!("trial-{trial:04}"),
            group: Some("sweep".to_owned()),
            tags: vec!["lstm".to_owned()],
            config: Map::from_iter([("trial".to_owned(), json!(trial))]),
            began_s: 1_795_226_500.0,
            epochs: (1..=epochs).map(epoch).collect(),
            summary: Map::from_iter([("epochs".to_owned(), json!(epochs))]),
            outcome,
        }
    }

    fn runs() -> Vec<TrackedRun> {
        vec![
            run(1, 3, TrackedOutcome::Finished),
            run(2, 2, TrackedOutcome::Failed),
            run(3, 4, TrackedOutcome::Quarantined),
        ]
    }

    fn send(sender: &mut WandbSender, runs: &[TrackedRun]) -> Result<()> {
        sender.find_or_create_sweep(&json!({"name": "sweep", "method": "random"}), MARK)?;
        for run in runs {
            sender.send_run(run)?;
        }
        sender.write_note();
        Ok(())
    }

    /// What a server knows after one undisturbed sending, and how many requests that takes.
    fn undisturbed() -> (ServedState, usize) {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        send(&mut sender(&server, notes.path()), &runs()).expect("sent");
        (server.state(), server.requests().len())
    }

    #[test]
    fn a_finished_run_takes_two_requests_and_nothing_is_sent_twice() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        send(&mut sender(&server, notes.path()), &runs()).expect("sent");
        let requests = server.requests();
        assert_eq!(requests.len(), 2 + 2 * 3, "two of them for the sweep");
        let state = server.state();
        let lines = |run: &str| state.runs[run].history.len();
        assert_eq!(
            [1, 2, 3].map(|run| lines(&format!("{run:016x}"))),
            [3, 2, 4]
        );
        let codes = state.runs.values().map(|run| run.exit_code);
        assert_eq!(codes.collect::<Vec<_>>(), [Some(0), Some(1), Some(137)]);
        let first = &state.runs["0000000000000001"];
        assert_eq!(first.sweep, "swp00001");
        assert_eq!(first.config["_wandb"]["value"]["t"]["12"], "0.31.0");
        assert!(first.history[&0].contains("\"validation_loss\":NaN"));
        assert_eq!(first.system.len(), 3);

        // The notes say that all was sent.
        send(&mut sender(&server, notes.path()), &runs()).expect("sent");
        assert_eq!(server.requests().len(), requests.len());
        // Without them the server is asked.
        let elsewhere = tempfile::tempdir().expect("made");
        send(&mut sender(&server, elsewhere.path()), &runs()).expect("sent");
        assert_eq!(server.state(), state);
        assert_eq!(server.state().sweeps.len(), 1);

        for request in server.requests() {
            assert!(
                request
                    .headers
                    .to_lowercase()
                    .contains("authorization: basic ")
            );
            assert!(!request.text.contains("canary") && !request.path.contains("canary"));
        }
    }

    #[test]
    fn a_sender_that_dies_after_any_request_is_taken_over_by_another() {
        let (whole, requests) = undisturbed();
        for died_after in 0..requests {
            for has_effect in [false, true] {
                let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
                let fault = if has_effect {
                    Fault::LostAnswer
                } else {
                    Fault::Reset
                };
                server.add_fault(died_after, fault);
                let time = TestTime::default();
                let mut dying = sender_with(&server, notes.path(), clock(&time, |_| {}), 0);
                let error = send(&mut dying, &runs()).expect_err("it has no patience");
                assert!(error.is::<SendError>(), "{error:#}");
                drop(dying);

                // Its notes may be there, or not.
                send(&mut sender(&server, notes.path()), &runs()).expect("sent");
                assert_eq!(server.state(), whole, "died after {died_after}");
                let elsewhere = tempfile::tempdir().expect("made");
                send(&mut sender(&server, elsewhere.path()), &runs()).expect("sent");
                assert_eq!(server.state(), whole, "died after {died_after}");
            }
        }
    }

    #[test]
    fn any_answer_that_is_lost_or_wrong_is_asked_for_again() {
        const WAIT: &[(&str, &str)] = &[("Retry-After", "3")];
        let (whole, requests) = undisturbed();
        let faults = [
            Fault::Reset,
            Fault::LostAnswer,
            Fault::HalfAnswer,
            Fault::Html,
            Fault::Status(500, &[], "broken"),
            Fault::Status(429, WAIT, "{\"error\": \"rate limit exceeded\"}"),
            Fault::Status(409, &[], "{\"errors\": [{\"message\": \"a conflict\"}]}"),
        ];
        for fault in faults {
            let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
            // Every other request meets it; between two, one passes.
            for number in 0..requests * 2 {
                server.add_fault(2 * number, fault.clone());
            }
            send(&mut sender(&server, notes.path()), &runs()).expect("sent");
            assert_eq!(server.state(), whole, "{fault:?}");
        }
    }

    #[test]
    fn a_wait_that_the_server_asks_for_holds_for_the_whole_sender() {
        const WAIT: &[(&str, &str)] = &[("Retry-After", "77")];
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        server.add_fault(3, Fault::Status(429, WAIT, "{}"));
        let time = TestTime::default();
        let mut sender = sender_with(&server, notes.path(), clock(&time, |_| {}), 86_400);
        send(&mut sender, &runs()).expect("sent");
        assert_eq!(passed(&time), Duration::from_secs(77));
    }

    #[test]
    fn an_hour_without_a_server_costs_nothing_but_time() {
        let (whole, _) = undisturbed();
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        server.is_down.store(true, Ordering::Relaxed);
        let is_down = Arc::clone(&server.is_down);
        let time = TestTime::default();
        let until_it_is_up = clock(&time, move |now| {
            if now >= Duration::from_secs(3600) {
                is_down.store(false, Ordering::Relaxed);
            }
        });
        let mut patient = sender_with(&server, notes.path(), until_it_is_up, 86_400);
        send(&mut patient, &runs()).expect("sent");
        assert_eq!(server.state(), whole);
        assert!(passed(&time) >= Duration::from_secs(3600));
        assert!(
            passed(&time) < Duration::from_secs(3700),
            "it is tried each minute"
        );
        assert!(patient.http.requests() < 90, "and not more often");
    }

    #[test]
    fn a_run_goes_on_where_it_was_left() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        let time = TestTime::default();
        let mut sender = sender_with(&server, notes.path(), clock(&time, |_| {}), 60);
        for epochs in 1..=3 {
            send(&mut sender, &[run(1, epochs, TrackedOutcome::Running)]).expect("sent");
        }
        let before = server.requests().len();
        send(&mut sender, &[run(1, 3, TrackedOutcome::Running)]).expect("sent");
        assert_eq!(server.requests().len(), before, "there is nothing new");
        *time.lock().expect("locked") += Duration::from_secs(250);
        send(&mut sender, &[run(1, 3, TrackedOutcome::Running)]).expect("sent");
        let heartbeat = server.requests().pop().expect("a request");
        assert_eq!(heartbeat.text, "{}");
        assert_eq!(server.state().runs["0000000000000001"].exit_code, None);

        send(&mut sender, &[run(1, 4, TrackedOutcome::StoppedEarly)]).expect("sent");
        let state = server.state();
        let sent = &state.runs["0000000000000001"];
        assert_eq!((sent.history.len(), sent.exit_code), (4, Some(0)));
        let whole = run(1, 4, TrackedOutcome::StoppedEarly);
        for (line, epoch) in sent.history.values().zip(&whole.epochs) {
            assert!(line.contains(&format!("\"_step\":{}", epoch.step)));
        }
    }

    #[test]
    fn what_is_pressed_on_the_pages_comes_into_the_queue() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        let at = notes.path().join("queue");
        let queue = Queue::create(&at, QueueSettings::default()).expect("made");
        let time = TestTime::default();
        let mut sender = sender_with(&server, notes.path(), clock(&time, |_| {}), 60);
        sender.control = SweepControl::of_queue(queue.clone());
        let goes_on = [run(1, 2, TrackedOutcome::Running)];
        send(&mut sender, &goes_on).expect("sent");
        sender.ask_for_state().expect("asked");
        assert!(!queue.is_asked_to_end(1) && queue.hand_out() == HandOut::Open);

        server.stop("0000000000000001");
        server.set_sweep_state("PAUSED");
        let before = server.requests().len();
        send(&mut sender, &goes_on).expect("sent");
        sender.ask_for_state().expect("asked");
        assert_eq!(server.requests().len(), before, "it is not asked so often");
        *time.lock().expect("locked") += Duration::from_secs(241);
        send(&mut sender, &goes_on).expect("sent");
        sender.ask_for_state().expect("asked");
        assert_eq!(server.requests().len(), before + 2);
        assert!(queue.is_asked_to_end(1) && !queue.is_asked_to_end(2));
        assert_eq!(queue.hand_out(), HandOut::Paused);

        for (state, asked) in [
            ("RUNNING", HandOut::Open),
            ("FINISHED", HandOut::Stopped),
            ("CANCELED", HandOut::Cancelled),
        ] {
            server.set_sweep_state(state);
            *time.lock().expect("locked") += Duration::from_secs(241);
            sender.ask_for_state().expect("asked");
            assert_eq!(queue.hand_out(), asked, "{state}");
        }
    }

    #[test]
    fn a_run_that_was_deleted_is_a_message_and_others_are_sent() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        server.delete("0000000000000002");
        let mut sender = sender(&server, notes.path());
        send(&mut sender, &runs()).expect("sent");
        assert_eq!(server.state().runs.len(), 2);
        assert_eq!(sender.summary.notes.len(), 1);
        assert!(sender.summary.notes[0].starts_with("trial-0002 was deleted on W&B"));
        let before = server.requests().len();
        send(&mut sender, &runs()).expect("sent");
        assert_eq!(server.requests().len(), before, "it is not tried again");
    }

    #[test]
    fn a_server_that_says_it_has_more_lines_gets_no_more() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        server.lie_about_lines(7);
        let mut sender = sender(&server, notes.path());
        send(&mut sender, &runs()).expect("sent");
        assert_eq!(sender.summary.notes.len(), 3);
        for run in server.state().runs.values() {
            assert!(run.history.is_empty() && run.summary.is_some() && run.exit_code.is_some());
        }
    }

    #[test]
    fn what_is_refused_is_not_tried_again_and_no_message_has_the_key() {
        const AWAY: &[(&str, &str)] = &[("Location", "http://127.0.0.1:9/elsewhere")];
        let refusals = [
            (
                Fault::Status(401, &[], "{\"error\": \"bad key\"}"),
                "answers 401: bad key",
            ),
            (
                Fault::Status(404, &[], "no such project"),
                "answers 404: no such project",
            ),
            (
                Fault::Status(302, AWAY, ""),
                "answers 302: it names another address",
            ),
        ];
        for (fault, said) in refusals {
            let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
            server.add_fault(1, fault);
            let error = send(&mut sender(&server, notes.path()), &runs()).expect_err("refused");
            let shown = format!("{error:#} {error:?}");
            assert!(shown.contains(said), "{shown}");
            assert!(
                !shown.contains("canary") && !shown.contains("Y2FuYXJ5"),
                "{shown}"
            );
            assert_eq!(server.requests().len(), 2);
        }
    }

    #[test]
    fn two_senders_at_once_leave_what_one_leaves() {
        let (whole, _) = undisturbed();
        let server = WandbServer::begin();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let notes = tempfile::tempdir().expect("made");
                    let mut sender = sender(&server, notes.path());
                    // The sweep is made by whoever is first: here the test says which.
                    sender.sweep = Some("swp00001".to_owned());
                    for run in &runs() {
                        sender.send_run(run).expect("sent");
                    }
                });
            }
        });
        assert_eq!(server.state().runs, whole.runs);
    }
}
