//! Sends what W&B lacks of the runs of a directory, and nothing twice.
//!
//! The sender first asks the server for its number of lines of a run. So earlier senders and lost
//! answers do no harm. A finished run takes two requests.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::agents::WandbAgents;
use super::client::{WandbClient, is_deleted};
use super::files::upload_files;
use super::requests::{stream_part, sweep_state, upsert_run};
use super::settings::WandbSettings;
use super::sweep::find_or_create_sweep;
use super::sweep_control::SweepControl;
use crate::runs::{BestFiles, TrackedOutcome, TrackedRun, TrackedSource};
use crate::server::{
    HttpSender, SendError, SendLimits, SenderClock, SentNote, SentSummary, variable,
};
use poolcast_base::escape;
use poolcast_sweep::config::Tracker;

/// Interval between heartbeats of a run without new epochs. W&B regards a run as dead after five
/// minutes without one.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(240);

/// The state of a run in this sender.
#[derive(Debug, Clone, Default)]
struct SentRun {
    /// Epochs on the server.
    known_epochs: usize,
    /// Time of this sender's last message about the run; `None` before the first one.
    last_message_at: Option<Duration>,
    has_ended: bool,
    /// True if a user has deleted the run on the server.
    is_deleted: bool,
}

/// Sends runs to one project of W&B.
pub(crate) struct WandbSender {
    client: WandbClient,
    sweep: Option<String>,
    note: SentNote,
    runs: HashMap<String, SentRun>,
    control: SweepControl,
    /// Agents of a sweep whose points come from the server.
    agents: Option<WandbAgents>,
    /// Summary of all that was sent so far.
    pub(crate) summary: SentSummary,
}

impl WandbSender {
    /// Makes a sender for the runs of `source` to the server and project of the environment and the
    /// configuration. `server` is the URL of the command line, which takes precedence.
    ///
    /// # Errors
    /// Fails without a key, or for names that W&B rejects.
    pub(crate) fn new(
        source: &TrackedSource,
        server: Option<&str>,
        clock: SenderClock,
        limits: SendLimits,
        stop: Arc<AtomicBool>,
    ) -> Result<WandbSender> {
        let mut settings = WandbSettings::new(source.config(), server, variable)?;
        let key = settings.key(variable)?;
        let mut http = HttpSender::new(&settings.host, Some(key), clock, limits, stop)?;
        http.enable_state_file(source.dir(), Tracker::Wandb);
        Ok(WandbSender::with(source.dir(), settings, http))
    }

    /// Makes a sender for the runs in `dir` to the project of `settings`, by `http`.
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

    /// The HTTP sender behind all requests.
    pub(crate) fn http(&mut self) -> &mut HttpSender {
        &mut self.client.http
    }

    /// Sends what the server lacks of the current runs of `source`. Returns true if all runs have
    /// ended and were sent completely.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain if the server rejects a request or does not answer.
    pub(crate) fn send_all(&mut self, source: &TrackedSource) -> Result<bool> {
        self.summary.running = 0;
        let sent = self.send_runs(source);
        self.update_summary();
        let (ended, running) = (self.summary.ended, self.summary.running);
        self.client.http.count_runs(ended, running);
        self.note.write(&mut self.summary);
        sent
    }

    fn send_runs(&mut self, source: &TrackedSource) -> Result<bool> {
        if !self.set_sweep(source)? {
            // A DAG without samples has no runs yet. If it has failed, it never will.
            return source.visit_runs(|_| Ok(()));
        }
        self.control.begin_pass(source);
        self.query_sweep_state()?;
        let ended: BTreeSet<usize> = self.note.ended_trials().collect();
        let is_over = source.visit_runs_except(&ended, |run| self.send_run(&run))?;
        self.summary.ended = self.note.ended_trials().count();
        self.request_points(source)?;
        Ok(is_over)
    }

    /// Requests points for idle workers, if the sweep's points come from the server.
    fn request_points(&mut self, source: &TrackedSource) -> Result<()> {
        let (Some(given), Some(queue)) = (source.given_points()?, source.queue()) else {
            return Ok(());
        };
        let mut agents = match (self.agents.take(), &self.sweep) {
            (Some(agents), _) => agents,
            (None, Some(sweep)) => {
                WandbAgents::new(source.dir().to_owned(), sweep.clone(), source.max_trials()?)
            }
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

    /// Asks at intervals if a user has paused or stopped the sweep on its page. A server that does
    /// not support the query has no such page.
    fn query_sweep_state(&mut self) -> Result<(), SendError> {
        let now = self.client.http.now();
        let Some(sweep) = self.sweep.clone().filter(|_| self.control.is_due(now)) else {
            return Ok(());
        };
        let question = sweep_state(self.client.place(), &sweep);
        let answer = self
            .client
            .query_if_supported(&question)?
            .unwrap_or_default();
        let state = answer["data"]["project"]["sweep"]["state"].as_str();
        let failed = self.control.pass_on_state(now, state);
        failed
            .into_iter()
            .for_each(|note| self.summary.add_note(note));
        Ok(())
    }

    /// Finds or creates the sweep of `source` on the server; a single run needs none. Returns false
    /// if the sweep cannot be identified yet.
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
        self.find_or_make_sweep(&space, &mark)?;
        Ok(true)
    }

    /// Finds or creates the sweep of this `space` on the server. `mark` identifies it.
    fn find_or_make_sweep(&mut self, space: &Value, mark: &str) -> Result<()> {
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

    /// Creates or finds `run` on the server, and learns its number of epochs there. Returns `None`
    /// if a user has deleted it there.
    fn begin_run(&mut self, run: &TrackedRun) -> Result<Option<SentRun>> {
        let body = upsert_run(self.client.place(), self.sweep.as_deref(), run);
        let answer = match self.client.ask(&body, true) {
            Ok(answer) => answer,
            Err(SendError::Refused { message, .. }) if is_deleted(&message) => {
                let name = escape::value(&run.name).into_owned();
                self.summary.add_note(format!(
                    "{name} was deleted on W&B, which does not accept its id {} again; undelete it there",
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
        self.client.record_names(&bucket["project"]);
        // Each epoch is one line, so the line count is the number of epochs on the server.
        let lines = bucket["historyLineCount"].as_u64().unwrap_or(0);
        let known = run.epochs.len();
        if lines > known as u64 {
            let name = escape::value(&run.name).into_owned();
            self.summary.add_note(format!(
                "W&B has {lines} lines of {name}, which has {known} here: no lines were added"
            ));
        }
        Ok(Some(SentRun {
            known_epochs: usize::try_from(lines).unwrap_or(usize::MAX).min(known),
            ..SentRun::default()
        }))
    }

    /// Sends the missing epochs, the summary and the outcome of `run`, or a heartbeat if nothing is
    /// new.
    fn stream_run(&mut self, run: &TrackedRun, sent: &mut SentRun) -> Result<(), SendError> {
        let has_news =
            sent.known_epochs < run.epochs.len() || run.outcome != TrackedOutcome::Running;
        if !has_news {
            let now = self.client.http.now();
            let is_due = sent
                .last_message_at
                .is_none_or(|last_message_at| now >= last_message_at + HEARTBEAT_EVERY);
            if is_due {
                self.post_stream(run, &json!({}))?;
                sent.last_message_at = Some(self.client.http.now());
            }
            return Ok(());
        }

        loop {
            let part = stream_part(run, sent.known_epochs);
            self.post_stream(run, &part.body)?;
            self.summary.epochs += part.known_epochs.saturating_sub(sent.known_epochs);
            sent.known_epochs = part.known_epochs;
            sent.last_message_at = Some(self.client.http.now());
            if sent.known_epochs >= run.epochs.len() {
                return Ok(());
            }
        }
    }

    /// Sends the best run's files, unless they were sent before.
    ///
    /// # Errors
    /// Fails with a [`SendError`] in its chain if the server does not answer. A rejection becomes a
    /// note.
    pub(crate) fn send_files(&mut self, best: &BestFiles) -> Result<()> {
        let digest = best.digest();
        if self.note.has_files(&best.run.run_id, &digest) {
            return Ok(());
        }
        // The answer has the server's names of the entity and the project.
        if !self.client.has_names() && self.begin_run(&best.run)?.is_none() {
            return Ok(());
        }
        match upload_files(&mut self.client, best) {
            Ok(()) => {
                self.summary.files += best.files.len();
                self.note.set_files(&best.run.run_id, digest);
                self.note.write(&mut self.summary);
            }
            Err(SendError::Refused {
                status, message, ..
            }) => self.summary.add_note(format!(
                "the report and the best model were not sent: W&B answers {status}: {message}"
            )),
            Err(error) => return Err(error.into()),
        }
        self.update_summary();
        Ok(())
    }

    fn post_stream(&mut self, run: &TrackedRun, body: &Value) -> Result<(), SendError> {
        let answer = self.client.post_stream(&run.run_id, body)?;
        let failed = self.control.record_answer(run, &answer);
        failed
            .into_iter()
            .for_each(|note| self.summary.add_note(note));
        Ok(())
    }

    /// Copies the number of requests and the address from the client to the summary.
    fn update_summary(&mut self) {
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

    use super::super::requests::WandbProject;
    use super::*;
    use crate::runs::TrackedEpoch;
    use crate::server::TrackerKey;
    use crate::wandb_server::{Fault, ServedState, WandbServer};
    use poolcast_queue::{Dispatch, Queue, QueueSettings};
    use poolcast_sweep::config::Config;

    const KEY: &str = "canary0123456789canary0123456789canary01";
    const MARK: &str = "poolcast 0123456789abcdef";

    /// The time that has passed for the sender of a test. Its sleeps advance this time and return
    /// at once.
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
            is_untrusted: false,
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

    /// Makes a sender that waits for a server for up to a day of test time.
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
        sender.find_or_make_sweep(&json!({"name": "sweep", "method": "random"}), MARK)?;
        for run in runs {
            sender.send_run(run)?;
        }
        sender.note.write(&mut sender.summary);
        Ok(())
    }

    /// The server's state after sending without faults, and the number of requests.
    fn state_without_faults() -> (ServedState, usize) {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        send(&mut sender(&server, notes.path()), &runs()).expect("sent");
        (server.state(), server.requests().len())
    }

    #[test]
    fn finished_run_takes_two_requests_and_nothing_is_sent_twice() {
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
        // Without them, the sender asks the server.
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
    fn next_sender_continues_after_death_at_any_request() {
        let (whole, requests) = state_without_faults();
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

                // The next sender may have its notes, or not.
                send(&mut sender(&server, notes.path()), &runs()).expect("sent");
                assert_eq!(server.state(), whole, "died after {died_after}");
                let elsewhere = tempfile::tempdir().expect("made");
                send(&mut sender(&server, elsewhere.path()), &runs()).expect("sent");
                assert_eq!(server.state(), whole, "died after {died_after}");
            }
        }
    }

    #[test]
    fn lost_and_broken_answers_are_retried() {
        const WAIT: &[(&str, &str)] = &[("Retry-After", "3")];
        let (whole, requests) = state_without_faults();
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
            // Every other request fails, and the one between passes.
            for number in 0..requests * 2 {
                server.add_fault(2 * number, fault.clone());
            }
            send(&mut sender(&server, notes.path()), &runs()).expect("sent");
            assert_eq!(server.state(), whole, "{fault:?}");
        }
    }

    #[test]
    fn retry_after_applies_to_the_whole_sender() {
        const WAIT: &[(&str, &str)] = &[("Retry-After", "77")];
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        server.add_fault(3, Fault::Status(429, WAIT, "{}"));
        let time = TestTime::default();
        let mut sender = sender_with(&server, notes.path(), clock(&time, |_| {}), 86_400);
        send(&mut sender, &runs()).expect("sent");
        assert_eq!(passed(&time), Duration::from_secs(77));
    }

    #[test]
    fn sender_recovers_after_an_hour_without_a_server() {
        let (whole, _) = state_without_faults();
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
    fn run_continues_after_the_last_sent_epoch() {
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
    fn page_controls_reach_the_queue() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        let at = notes.path().join("queue");
        let queue = Queue::create(&at, QueueSettings::default()).expect("made");
        let time = TestTime::default();
        let mut sender = sender_with(&server, notes.path(), clock(&time, |_| {}), 60);
        sender.control = SweepControl::of_queue(queue.clone());
        let running = [run(1, 2, TrackedOutcome::Running)];
        send(&mut sender, &running).expect("sent");
        sender.query_sweep_state().expect("asked");
        assert!(!queue.is_asked_to_end(1) && queue.hand_out() == Dispatch::Open);

        server.stop("0000000000000001");
        server.set_sweep_state("PAUSED");
        let before = server.requests().len();
        send(&mut sender, &running).expect("sent");
        sender.query_sweep_state().expect("asked");
        assert_eq!(server.requests().len(), before, "it is not asked so often");
        *time.lock().expect("locked") += Duration::from_secs(241);
        send(&mut sender, &running).expect("sent");
        sender.query_sweep_state().expect("asked");
        assert_eq!(server.requests().len(), before + 2);
        assert!(queue.is_asked_to_end(1) && !queue.is_asked_to_end(2));
        assert_eq!(queue.hand_out(), Dispatch::Paused);

        for (state, asked) in [
            ("RUNNING", Dispatch::Open),
            ("FINISHED", Dispatch::Stopped),
            ("CANCELED", Dispatch::Cancelled),
        ] {
            server.set_sweep_state(state);
            *time.lock().expect("locked") += Duration::from_secs(241);
            sender.query_sweep_state().expect("asked");
            assert_eq!(queue.hand_out(), asked, "{state}");
        }
    }

    #[test]
    fn deleted_run_is_noted_and_other_runs_are_sent() {
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
    fn no_lines_are_sent_if_the_server_claims_more() {
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
    fn rejections_are_not_retried_and_hide_the_key() {
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
                "answers 302: it redirects to another address",
            ),
        ];
        for (fault, message) in refusals {
            let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
            server.add_fault(1, fault);
            let error = send(&mut sender(&server, notes.path()), &runs()).expect_err("refused");
            let shown = format!("{error:#} {error:?}");
            assert!(shown.contains(message), "{shown}");
            assert!(
                !shown.contains("canary") && !shown.contains("Y2FuYXJ5"),
                "{shown}"
            );
            assert_eq!(server.requests().len(), 2);
        }
    }

    #[test]
    fn two_senders_at_once_do_no_harm() {
        let (whole, _) = state_without_faults();
        let server = WandbServer::begin();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let notes = tempfile::tempdir().expect("made");
                    let mut sender = sender(&server, notes.path());
                    // The first sender creates the sweep. Here the test sets its id.
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
    fn hostile_names_are_sent_unchanged_and_shown_escaped() {
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
            .find_or_make_sweep(&json!({"name": name}), MARK)
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
    fn unwritable_cache_is_noted_and_all_runs_are_sent() {
        let (server, notes) = (WandbServer::begin(), tempfile::tempdir().expect("made"));
        let mut sender = sender(&server, notes.path());
        // No file can be created, as on a full disk.
        drop(notes);
        send(&mut sender, &runs()).expect("sent");
        assert_eq!(server.state().runs.len(), 3);
        let [note] = &sender.summary.notes[..] else {
            panic!("{:?}", sender.summary.notes)
        };
        assert!(note.starts_with("cannot record what was sent: "));
    }

    /// Environment variable that marks the child process of the next test.
    const CHILD: &str = "TEST_SENDER_PANICS";

    #[test]
    fn a_sender_that_panics_says_and_leaves_no_key() {
        if std::env::var_os(CHILD).is_some() {
            panic_with_the_key();
        }
        let dir = tempfile::tempdir().expect("made");
        let name = "wandb::sender::tests::a_sender_that_panics_says_and_leaves_no_key";
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

        let printed = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert_eq!(printed[1].matches("nobody waits").count(), 2, "{output:?}");
        assert!(printed[0].contains("stack backtrace") || printed[1].contains("stack backtrace"));
        assert!(printed[0].contains("TRACE"), "{output:?}");
        let left = fs_err::read_dir(dir.path()).expect("listed");
        assert_eq!(left.count(), 0, "a core file, or another");
        for text in printed {
            assert!(
                !text.contains("canary") && !text.contains("Y2FuYXJ5"),
                "{text}"
            );
        }
    }

    /// Sends to a server that does not exist, with the key of the environment, and panics when the
    /// sender would wait: first in a thread, then in the test.
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
        let mut settings = WandbSettings::new(&config, None, variable).expect("settings");
        let key = settings.key(variable).expect("a key");
        let clock = SenderClock::of(|| Duration::ZERO, |_| panic!("nobody waits"));
        let limits = SendLimits::default();
        let http = HttpSender::new("the server", Some(key), clock, limits, Arc::default());
        let mut sender = WandbSender::with(Path::new("."), settings, http.expect("a client"));
        let _ = send(&mut sender, &runs());
    }
}
