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
use serde_json::{Value, json};

use super::best_files::BestFiles;
use super::http_sender::{HttpSender, SendError, SendLimits};
use super::sender_clock::SenderClock;
use super::sent_note::SentNote;
use super::sent_summary::SentSummary;
use super::source::TrackedSource;
use super::sweep_control::SweepControl;
use super::tracked_run::{TrackedOutcome, TrackedRun};
use super::wandb_agents::WandbAgents;
use super::wandb_client::{WandbClient, is_deleted};
use super::wandb_files::upload_files;
use super::wandb_requests::{stream_part, sweep_state, upsert_run};
use super::wandb_settings::{WandbSettings, variable};
use super::wandb_sweep::find_or_create_sweep;
use poolcast_config::Tracker;
use poolcast_base::escape;

/// How often a run that goes on is heard of where it has nothing to say. W&B takes it for dead after
/// five minutes.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(240);

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
    client: WandbClient,
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
        let notes = std::mem::take(&mut settings.warnings);
        let client = WandbClient::new(settings, http);
        let to = client.address();
        WandbSender {
            client,
            sweep: None,
            note: SentNote::read(dir, Tracker::Wandb, &to),
            runs: HashMap::new(),
            control: SweepControl::default(),
            agents: None,
            summary: SentSummary {
                to,
                notes,
                ..SentSummary::default()
            },
        }
    }

    /// What requests go by.
    pub(super) fn http(&mut self) -> &mut HttpSender {
        &mut self.client.http
    }

    /// Sends what the server lacks of the runs of `source` as they are now. Returns whether all have
    /// ended and were sent to their end.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain where the server does not take it.
    pub(super) fn send_all(&mut self, source: &TrackedSource) -> Result<bool> {
        self.summary.running = 0;
        let sent = self.send_runs(source);
        self.sum_up();
        let (ended, running) = (self.summary.ended, self.summary.running);
        self.client.http.count_runs(ended, running);
        self.note.write(&mut self.summary);
        sent
    }

    fn send_runs(&mut self, source: &TrackedSource) -> Result<bool> {
        if !self.set_sweep(source)? {
            // A DAG without samples has no runs: now, or ever, where it has failed.
            return source.visit_runs(|_| Ok(()));
        }
        self.control.begin_pass(source);
        self.ask_for_state()?;
        let ended: BTreeSet<usize> = self.note.ended_trials().collect();
        let is_over = source.visit_runs_beside(&ended, |run| self.send_run(&run))?;
        self.summary.ended = self.note.ended_trials().count();
        self.ask_for_points(source)?;
        Ok(is_over)
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
        let stepped = agents.step(&mut self.client, &queue, &ended);
        self.agents = Some(agents);
        stepped
    }

    /// Asks now and then whether the sweep is paused or stopped on its page. A server that does not
    /// know the question has no such page.
    fn ask_for_state(&mut self) -> Result<(), SendError> {
        let now = self.client.http.now();
        let Some(sweep) = self.sweep.clone().filter(|_| self.control.is_due(now)) else {
            return Ok(());
        };
        let question = sweep_state(self.client.place(), &sweep);
        let answer = self.client.ask_if_known(&question)?.unwrap_or_default();
        let state = answer["data"]["project"]["sweep"]["state"].as_str();
        let failed = self.control.hear_state(now, state);
        failed
            .into_iter()
            .for_each(|note| self.summary.add_note(note));
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
        self.make_sweep_known(&space, &mark)?;
        Ok(true)
    }

    /// Makes the sweep of this `space` known to the server, which `mark` tells from all others.
    fn make_sweep_known(&mut self, space: &Value, mark: &str) -> Result<()> {
        if let Some(known) = self.note.sweep(mark) {
            self.sweep = Some(known.to_owned());
            return Ok(());
        }
        let found = find_or_create_sweep(&mut self.client, space, mark)?;
        self.note.set_sweep(mark, &found);
        self.note.write(&mut self.summary);
        self.sweep = Some(found);
        Ok(())
    }

    /// Sends what the server lacks of `run`.
    fn send_run(&mut self, run: &TrackedRun) -> Result<()> {
        if run.outcome == TrackedOutcome::Running {
            self.summary.running += 1;
        }
        if self.note.has_ended(&run.run_id) {
            return Ok(());
        }
        let mut sent = match self.runs.get(&run.run_id) {
            Some(known) => known.clone(),
            None => match self.begin_run(run)? {
                Some(begun) => {
                    self.summary.runs += 1;
                    begun
                }
                None => return Ok(()),
            },
        };
        if sent.is_deleted || sent.has_ended {
            return Ok(());
        }

        self.stream_run(run, &mut sent)?;
        if run.outcome.exit_code().is_some() {
            sent.has_ended = true;
            self.note.add_ended(&run.run_id, run.trial().unwrap_or(0));
        }
        self.runs.insert(run.run_id.clone(), sent);
        if self.note.is_due() {
            self.note.write(&mut self.summary);
        }
        Ok(())
    }

    /// Makes `run` known to the server, and learns how much of it the server has. `None` for one that
    /// somebody has deleted there.
    fn begin_run(&mut self, run: &TrackedRun) -> Result<Option<SentRun>> {
        let body = upsert_run(self.client.place(), self.sweep.as_deref(), run);
        let answer = match self.client.ask(&body, true) {
            Ok(answer) => answer,
            Err(SendError::Refused { said, .. }) if is_deleted(&said) => {
                let name = escape::value(&run.name).into_owned();
                self.summary.add_note(format!(
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
            return Err(self.client.unexpected(&answer).into());
        }
        self.client.learn_names(&bucket["project"]);
        let lines = bucket["historyLineCount"].as_u64().unwrap_or(0);
        let known = run.epochs.len();
        if lines > known as u64 {
            let name = escape::value(&run.name).into_owned();
            self.summary.add_note(format!(
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
            let now = self.client.http.now();
            let is_due = sent
                .heard_at
                .is_none_or(|heard_at| now >= heard_at + HEARTBEAT_EVERY);
            if is_due {
                self.post_stream(run, &json!({}))?;
                sent.heard_at = Some(self.client.http.now());
            }
            return Ok(());
        }

        loop {
            let part = stream_part(run, sent.known_epochs);
            self.post_stream(run, &part.body)?;
            self.summary.epochs += part.known_epochs.saturating_sub(sent.known_epochs);
            sent.known_epochs = part.known_epochs;
            sent.heard_at = Some(self.client.http.now());
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
        // The answer has the names of the entity and the project.
        if !self.client.has_names() && self.begin_run(&best.run)?.is_none() {
            return Ok(());
        }
        match upload_files(&mut self.client, best) {
            Ok(()) => {
                self.summary.files += best.files.len();
                self.note.set_files(&best.run.run_id, digest);
                self.note.write(&mut self.summary);
            }
            Err(SendError::Refused { status, said, .. }) => self.summary.add_note(format!(
                "the report and the best model were not sent: the answer is {status}: {said}"
            )),
            Err(error) => return Err(error.into()),
        }
        self.sum_up();
        Ok(())
    }

    fn post_stream(&mut self, run: &TrackedRun, body: &Value) -> Result<(), SendError> {
        let answer = self.client.post_stream(&run.run_id, body)?;
        let failed = self.control.hear_answer(run, &answer);
        failed
            .into_iter()
            .for_each(|note| self.summary.add_note(note));
        Ok(())
    }

    /// Takes over into the summary what the client knows.
    fn sum_up(&mut self) {
        self.summary.requests = self.client.http.requests();
        self.summary.to = self.client.address();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::process::Command;
    use std::sync::atomic::Ordering;
    use std::sync::{Mutex, PoisonError};

    use rustix::process::{
        DumpableBehavior, Resource, Rlimit, dumpable_behavior, getrlimit, setrlimit,
    };
    use serde_json::Map;

    use super::super::tracked_run::TrackedEpoch;
    use super::super::tracker_key::TrackerKey;
    use super::super::wandb_requests::WandbProject;
    use super::super::wandb_server::{Fault, ServedState, WandbServer};
    use super::*;
    use poolcast_config::Config;
    use poolcast_queue::{HandOut, Queue, QueueSettings};

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
        sender.make_sweep_known(&json!({"name": "sweep", "method": "random"}), MARK)?;
        for run in runs {
            sender.send_run(run)?;
        }
        sender.note.write(&mut sender.summary);
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
        assert!(patient.client.http.requests() < 90, "and not more often");
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

    #[test]
    fn names_of_any_kind_are_sent_whole_and_shown_escaped() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        let name = format!("</script>\u{202e}\u{1b}[31m\n{}", "x".repeat(10_000));
        let named = |trial: usize| TrackedRun {
            name: name.clone(),
            group: Some(name.clone()),
            tags: vec![name.clone()],
            config: Map::from_iter([(name.clone(), json!(name))]),
            ..run(trial, 1, TrackedOutcome::Finished)
        };
        server.delete("0000000000000002");
        let mut sender = sender(&server, notes.path());
        sender
            .make_sweep_known(&json!({"name": name}), MARK)
            .expect("made");
        for trial in [1, 2] {
            sender.send_run(&named(trial)).expect("sent");
        }
        let state = server.state();
        let sent = &state.runs["0000000000000001"];
        assert_eq!(
            (&sent.display_name, &sent.group),
            (&json!(name), &json!(name))
        );
        assert_eq!(sent.config[&name]["value"], json!(name));
        let note = &sender.summary.notes[0];
        assert!(note.contains("was deleted on W&B"), "{note}");
        assert!(!note.contains(['\u{202e}', '\u{1b}', '\n']), "{note}");
    }

    #[test]
    fn notes_that_cannot_be_written_are_a_note_and_all_is_sent() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        let mut sender = sender(&server, notes.path());
        // As on a full disk, no file can be made.
        drop(notes);
        send(&mut sender, &runs()).expect("sent");
        assert_eq!(server.state().runs.len(), 3);
        let [note] = &sender.summary.notes[..] else {
            panic!("{:?}", sender.summary.notes)
        };
        assert!(note.starts_with("what was sent could not be noted: "));
    }

    /// In the environment of the child of the next test.
    const CHILD: &str = "TEST_SENDER_PANICS";

    #[test]
    fn a_sender_that_panics_says_and_leaves_no_key() {
        if std::env::var_os(CHILD).is_some() {
            panic_with_the_key();
        }
        let dir = tempfile::tempdir().expect("made");
        let name = "tracking::wandb_sender::tests::a_sender_that_panics_says_and_leaves_no_key";
        let output = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "--nocapture", name])
            .current_dir(dir.path())
            .env(CHILD, "yes")
            .env("WANDB_API_KEY", KEY)
            .env("WANDB_BASE_URL", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1")
            .env("RUST_BACKTRACE", "full")
            .output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(101), "{output:?}");

        let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert_eq!(said[1].matches("nobody waits").count(), 2, "{output:?}");
        assert!(said[0].contains("stack backtrace") || said[1].contains("stack backtrace"));
        assert!(said[0].contains("TRACE"), "{output:?}");
        let left = fs_err::read_dir(dir.path()).expect("listed");
        assert_eq!(left.count(), 0, "a core file, or another");
        for text in said {
            assert!(
                !text.contains("canary") && !text.contains("Y2FuYXJ5"),
                "{text}"
            );
        }
    }

    /// Sends to a server that is not there, with the key of the environment, and panics where the sender
    /// would wait: in a thread, and then in the test.
    fn panic_with_the_key() {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .init();
        let most = getrlimit(Resource::Core).maximum;
        let unlimited = Rlimit {
            current: most,
            maximum: most,
        };
        setrlimit(Resource::Core, unlimited).expect("set");

        let in_thread = std::thread::spawn(send_without_waiting).join();
        let panic = in_thread.expect_err("it panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"nobody waits"));
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        let behaviour = dumpable_behavior().expect("known");
        assert_eq!(behaviour, DumpableBehavior::NotDumpable);
        send_without_waiting();
    }

    fn send_without_waiting() {
        let config = Config::load(None, &BTreeMap::new()).expect("a configuration");
        let mut settings = WandbSettings::new(&config, variable).expect("settings");
        let key = settings.key(variable).expect("a key");
        let clock = SenderClock::of(|| Duration::ZERO, |_| panic!("nobody waits"));
        let limits = SendLimits::default();
        let http = HttpSender::new("the server", Some(key), clock, limits, Arc::default());
        let mut sender = WandbSender::with(Path::new("."), settings, http.expect("a client"));
        let _ = send(&mut sender, &runs());
    }
}
