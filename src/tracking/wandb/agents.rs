//! Turns the points of a sweep on W&B into trials here. Each worker gets one W&B agent, which
//! receives one point at a time. Workers need no network, because a file brings them the points.
//!
//! Each point is requested once. Before the request, the sender writes to a file that an agent is
//! asking; after the answer, it writes the point. If the answer was lost, it asks the server for
//! runs that were handed out but not begun.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::client::{WandbClient, unusable};
use super::judged_metric::check_judged_metric;
use super::requests::{agent_heartbeat, create_agent, pending_runs};
use crate::server::{SendError, parse_answer};
use poolcast_queue::{Dispatch, Queue};
use poolcast_sweep::{GivenPoint, GivenPoints, PointAgent, is_usable_id, is_usable_run_id};

/// Interval between heartbeats of an agent whose run goes on.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(60);

/// Time for which a run must stay handed out but not begun, before it counts as the one whose
/// answer was lost. Other agents of the sweep begin their runs sooner.
const DOUBT_TIME: Duration = Duration::from_secs(60);

/// Maximum number of agents of one sweep.
const MAX_AGENTS: usize = 1000;

/// The agents of one sweep.
#[derive(Debug)]
pub(super) struct WandbAgents {
    dir: PathBuf,
    sweep: String,
    /// Maximum number of points to request.
    max_points: usize,
    /// Time of the last heartbeat, by agent id.
    heard: HashMap<String, Duration>,
    /// Time since when a request is without an answer, and the runs that were not begun then.
    doubt: Option<(Duration, BTreeSet<String>)>,
    /// True once it was checked that poolcast's runs have the sweep's metric.
    is_metric_known: bool,
}

impl WandbAgents {
    /// Makes the agents of the sweep `sweep`. The sweep folder `dir` tries at most `max_points`
    /// points.
    pub(super) fn new(dir: PathBuf, sweep: String, max_points: usize) -> WandbAgents {
        WandbAgents {
            dir,
            sweep,
            max_points,
            heard: HashMap::new(),
            doubt: None,
            is_metric_known: false,
        }
    }

    /// Requests points for idle workers of `queue`, and sends heartbeats for the unfinished runs.
    /// `ended` are runs whose end was sent to the server.
    ///
    /// # Errors
    /// Fails if the server rejects a request, supplies a point that poolcast cannot try, or
    /// optimizes a metric that poolcast's runs lack.
    pub(super) fn step(
        &mut self,
        client: &mut WandbClient,
        queue: &Queue,
        ended: &BTreeSet<String>,
    ) -> Result<()> {
        let mut given = GivenPoints::read(&self.dir)?;
        // Check before the first point: later points are of the same sweep.
        if !self.is_metric_known && given.points.is_empty() {
            check_judged_metric(client, &self.sweep)?;
            self.is_metric_known = true;
        }
        let before = given.clone();
        for agent in &mut given.agents {
            agent.run_ids.retain(|run_id| !ended.contains(run_id));
        }
        self.recover_lost_points(&mut given, client)?;
        let workers = queue.workers_at_work().min(MAX_AGENTS);
        if !self.is_enough(&given) && queue.hand_out() == Dispatch::Open {
            self.add_agents(&mut given, workers, client)?;
        }
        if given != before {
            given.write(&self.dir)?;
        }

        for at in 0..given.agents.len() {
            if given.agents[at].is_asking {
                continue;
            }
            if !given.agents[at].run_ids.is_empty() {
                self.send_heartbeat(&mut given, at, queue, client)?;
            } else if self.can_request_point(&given, queue, workers) {
                self.request_point(&mut given, at, queue, client)?;
            }
        }
        Ok(())
    }

    /// Returns true if no more points are needed.
    fn is_enough(&self, given: &GivenPoints) -> bool {
        given.is_complete || given.points.len() >= self.max_points
    }

    fn can_request_point(&self, given: &GivenPoints, queue: &Queue, workers: usize) -> bool {
        let unfinished: usize = given.agents.iter().map(|agent| agent.run_ids.len()).sum();
        let asking = given.agents.iter().filter(|agent| agent.is_asking).count();
        let has_room =
            unfinished + asking < workers && given.points.len() + asking < self.max_points;
        has_room && !given.is_complete && queue.hand_out() == Dispatch::Open
    }

    /// Creates agents on the server until each worker has one.
    fn add_agents(
        &mut self,
        given: &mut GivenPoints,
        workers: usize,
        client: &mut WandbClient,
    ) -> Result<()> {
        let wanted = workers.min(self.max_points);
        while given.agents.len() < wanted {
            // A retry may create one agent too many, which does no harm.
            let wish = create_agent(client.place(), &self.sweep);
            let answer = match client.ask(&wish, true) {
                // The sweep is over or no longer exists.
                Err(SendError::Refused {
                    status: 400 | 404, ..
                }) => {
                    given.is_complete = true;
                    return Ok(());
                }
                answered => answered?,
            };
            let id = answer["data"]["createAgent"]["agent"]["id"].as_str();
            let id = id.filter(|id| is_usable_id(id));
            let id = id.ok_or_else(|| unusable("its answer names no agent"))?;
            given.agents.push(PointAgent {
                id: id.to_owned(),
                run_ids: Vec::new(),
                is_asking: false,
            });
        }
        Ok(())
    }

    /// Sends the heartbeat of the agent with index `at` if it is due, and follows the commands in
    /// the answer.
    fn send_heartbeat(
        &mut self,
        given: &mut GivenPoints,
        at: usize,
        queue: &Queue,
        client: &mut WandbClient,
    ) -> Result<()> {
        let now = client.http.now();
        let agent = &given.agents[at];
        let heard = self.heard.get(&agent.id);
        if heard.is_some_and(|heard| now < *heard + HEARTBEAT_EVERY) {
            return Ok(());
        }
        self.heard.insert(agent.id.clone(), now);
        let body = agent_heartbeat(&agent.id, &agent.run_ids);
        let answer = match client.ask(&body, true) {
            // The server no longer knows the agent. Its points are tried nevertheless.
            Err(SendError::Refused { status: 404, .. }) => return Ok(()),
            answered => answered?,
        };
        let before = given.clone();
        follow_commands(given, at, queue, &answer)?;
        if *given != before {
            given.write(&self.dir)?;
        }
        Ok(())
    }

    /// Requests a point for the idle agent with index `at`.
    fn request_point(
        &mut self,
        given: &mut GivenPoints,
        at: usize,
        queue: &Queue,
        client: &mut WandbClient,
    ) -> Result<()> {
        given.agents[at].is_asking = true;
        given.write(&self.dir)?;
        let id = given.agents[at].id.clone();
        let answer = match client.ask(&agent_heartbeat(&id, &[]), false) {
            Err(SendError::InDoubt) => return Ok(()),
            // The sweep was deleted.
            Err(SendError::Refused { status: 404, .. }) => {
                given.agents[at].is_asking = false;
                given.is_complete = true;
                return given.write(&self.dir);
            }
            answered => answered?,
        };
        self.heard.insert(id, client.http.now());
        given.agents[at].is_asking = false;
        follow_commands(given, at, queue, &answer)?;
        given.write(&self.dir)
    }

    /// Adopts the runs that were handed out in lost answers.
    fn recover_lost_points(
        &mut self,
        given: &mut GivenPoints,
        client: &mut WandbClient,
    ) -> Result<()> {
        if given.agents.iter().all(|agent| !agent.is_asking) {
            self.doubt = None;
            return Ok(());
        }
        let now = client.http.now();
        let is_early = |(since, _): &(Duration, BTreeSet<String>)| now < *since + DOUBT_TIME;
        if self.doubt.as_ref().is_some_and(is_early) {
            return Ok(());
        }

        // A run is adopted only if it was pending in two answers, `DOUBT_TIME` apart. So the runs
        // of other agents are left alone.
        let question = pending_runs(client.place(), &self.sweep);
        let answer = client.ask(&question, true)?;
        let left = unbegun_runs(given, &answer);
        let mut lost: Vec<&String> = left.keys().collect();
        if let Some((_, earlier)) = &self.doubt {
            lost.retain(|run_id| earlier.contains(*run_id));
        } else if !left.is_empty() {
            self.doubt = Some((now, left.keys().cloned().collect()));
            return Ok(());
        }
        let mut lost = lost.into_iter();
        for at in 0..given.agents.len() {
            if given.agents[at].is_asking {
                given.agents[at].is_asking = false;
                if let Some(run_id) = lost.next() {
                    add_point(given, at, run_id, &left[run_id])?;
                }
            }
        }
        self.doubt = None;
        Ok(())
    }
}

/// Follows the commands in the server's `answer` to the agent with index `at`.
fn follow_commands(
    given: &mut GivenPoints,
    at: usize,
    queue: &Queue,
    answer: &Value,
) -> Result<()> {
    let written = answer["data"]["agentHeartbeat"]["commands"].as_str();
    let commands = parse_answer(written.unwrap_or("[]").as_bytes());
    let Some(Value::Array(commands)) = commands else {
        return Err(unusable("its commands to an agent are not JSON").into());
    };
    for command in commands {
        let run_id = command["run_id"].as_str().unwrap_or_default();
        match command["type"].as_str() {
            Some("run" | "resume") => add_point(given, at, run_id, &command["args"])?,
            Some("stop") => {
                if let Some(trial) = given.trial_of(run_id) {
                    queue.ask_to_end(trial)?;
                }
            }
            Some("exit") => {
                given.is_complete = true;
                for run_id in &given.agents[at].run_ids {
                    if let Some(trial) = given.trial_of(run_id) {
                        queue.ask_to_end(trial)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the runs in `answer` that were not begun and are not in `given`: configurations by run
/// id.
fn unbegun_runs(given: &GivenPoints, answer: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let edges = answer["data"]["project"]["runs"]["edges"].as_array();
    for edge in edges.into_iter().flatten() {
        let node = &edge["node"];
        let (Some(run_id), Some("pending")) = (node["name"].as_str(), node["state"].as_str())
        else {
            continue;
        };
        let config = node["config"].as_str();
        if let Some(config) = config.and_then(|config| parse_answer(config.as_bytes()))
            && given.trial_of(run_id).is_none()
        {
            found.insert(run_id.to_owned(), config);
        }
    }
    found
}

/// Adds the point `args` of the run `run_id` to the agent with index `at`, unless it was added
/// before.
fn add_point(given: &mut GivenPoints, at: usize, run_id: &str, args: &Value) -> Result<()> {
    // The server may hand out a run again, for example after a lost answer.
    if given.trial_of(run_id).is_some() {
        return Ok(());
    }
    if !is_usable_run_id(run_id) {
        return Err(unusable("it assigns a run without a name").into());
    }
    let mut parameters = BTreeMap::new();
    for (name, value) in args.as_object().into_iter().flatten() {
        // Left by the client of an earlier attempt.
        if name != "_wandb" {
            parameters.insert(name.clone(), value["value"].clone());
        }
    }
    let point = GivenPoint {
        run_id: run_id.to_owned(),
        parameters,
    };
    if let Err(error) = point.check() {
        return Err(unusable(&format!(
            "it supplies a point that cannot be tried: {error:#}"
        ))
        .into());
    }
    given.points.push(point);
    given.agents[at].run_ids.push(run_id.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::super::requests::WandbProject;
    use super::super::settings::WandbSettings;
    use super::*;
    use crate::server::{HttpSender, SendLimits, SenderClock};
    use crate::wandb_server::{Fault, WandbServer};
    use poolcast_queue::QueueSettings;

    fn agents(dir: &Path, max_points: usize) -> WandbAgents {
        WandbAgents::new(dir.to_owned(), "swp1".to_owned(), max_points)
    }

    /// A client with a clock that the test sets.
    struct TestClient {
        client: WandbClient,
        now: Arc<Mutex<Duration>>,
    }

    fn client(server: &WandbServer) -> TestClient {
        let now = Arc::new(Mutex::new(Duration::ZERO));
        let (known, slept) = (Arc::clone(&now), Arc::clone(&now));
        let clock = SenderClock::of(
            move || *known.lock().expect("locked"),
            move |wait| *slept.lock().expect("locked") += wait,
        );
        let limits = SendLimits::default();
        let http = HttpSender::new(&server.base_url, None, clock, limits, Arc::default());
        let settings = WandbSettings {
            base_url: server.base_url.clone(),
            host: "the server".to_owned(),
            is_untrusted: false,
            place: WandbProject {
                entity: Some("team".to_owned()),
                project: "held".to_owned(),
            },
            warnings: Vec::new(),
        };
        TestClient {
            client: WandbClient::new(settings, http.expect("a client")),
            now,
        }
    }

    impl TestClient {
        /// Runs `agents.step` at `now_s`. An error would end the sender.
        fn step(
            &mut self,
            agents: &mut WandbAgents,
            queue: &Queue,
            now_s: u64,
            ended: &[&str],
        ) -> Result<()> {
            *self.now.lock().expect("locked") = Duration::from_secs(now_s);
            let ended = ended.iter().map(|run_id| (*run_id).to_owned()).collect();
            agents.step(&mut self.client, queue, &ended)
        }
    }

    fn points(count: usize) -> Vec<Value> {
        let sizes = 1..=count;
        sizes
            .map(|size| json!({"hidden_size": {"value": size}, "_wandb": {"value": {}}}))
            .collect()
    }

    /// Makes a queue in `dir` with two workers.
    fn queue(dir: &Path) -> Queue {
        let queue = Queue::create(&dir.join("queue"), QueueSettings::default()).expect("made");
        queue.add_test_workers(2);
        queue
    }

    /// Reads the given sizes in order, and the ids of their runs.
    fn given(dir: &Path) -> (Vec<u64>, Vec<String>) {
        let given = GivenPoints::read(dir).expect("read");
        let sizes = given
            .points
            .iter()
            .map(|point| point.parameters["hidden_size"].as_u64());
        let runs = given.points.iter().map(|point| point.run_id.clone());
        (sizes.flatten().collect(), runs.collect())
    }

    #[test]
    fn each_worker_gets_one_point_at_a_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let (server, queue) = (WandbServer::begin(), queue(dir.path()));
        server.give_points(points(4));
        let mut client = client(&server);
        let mut agents = agents(dir.path(), 9);
        client.step(&mut agents, &queue, 0, &[]).expect("asked");
        client.step(&mut agents, &queue, 5, &[]).expect("asked");
        assert_eq!(given(dir.path()).0, [1, 2]);
        let asked = server.requests().len();
        client.step(&mut agents, &queue, 10, &[]).expect("asked");
        assert_eq!(server.requests().len(), asked, "nobody waits");

        // Another sender continues from there, and a paused sweep gives no points.
        let mut agents = self::agents(dir.path(), 9);
        queue.request_dispatch(Dispatch::Paused).expect("said");
        client
            .step(&mut agents, &queue, 15, &["given3"])
            .expect("asked");
        assert_eq!(given(dir.path()).0, [1, 2]);
        queue.request_dispatch(Dispatch::Open).expect("said");
        client
            .step(&mut agents, &queue, 20, &["given3"])
            .expect("asked");
        assert_eq!(given(dir.path()).0, [1, 2, 3]);
        let all = ["given3", "given2", "given1"];
        client.step(&mut agents, &queue, 25, &all).expect("asked");
        client
            .step(&mut agents, &queue, 30, &["given0"])
            .expect("asked");
        assert_eq!(given(dir.path()).0, [1, 2, 3, 4]);
        assert!(GivenPoints::read(dir.path()).expect("read").is_complete);
    }

    #[test]
    fn point_in_a_lost_answer_is_tried_once() {
        // Request 0 reads the sweep, 1 and 2 create two agents, and 3 asks for the first point.
        for (request, fault) in [
            (3, Fault::LostAnswer),
            (3, Fault::Reset),
            (4, Fault::LostAnswer),
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            let (server, queue) = (WandbServer::begin(), queue(dir.path()));
            server.give_points(points(2));
            server.add_fault(request, fault.clone());
            let mut client = client(&server);
            // Each sender dies, and the next one continues.
            for now_s in [0, 5, 10, 80, 85, 90] {
                let mut agents = agents(dir.path(), 9);
                for later_s in [0, 61, 122] {
                    let now_s = now_s + later_s;
                    client.step(&mut agents, &queue, now_s, &[]).expect("asked");
                }
            }
            let (mut sizes, mut runs) = given(dir.path());
            sizes.sort_unstable();
            runs.sort();
            assert_eq!(
                (sizes, runs),
                (vec![1, 2], vec!["given0".to_owned(), "given1".to_owned()]),
                "{fault:?}"
            );
        }
    }

    #[test]
    fn invalid_point_is_rejected_with_its_parameter() {
        let dir = tempfile::tempdir().expect("a directory");
        let (server, queue) = (WandbServer::begin(), queue(dir.path()));
        server.give_points(vec![json!({"optimizer": {"value": "sgd"}})]);
        let mut agents = agents(dir.path(), 9);
        let refused = client(&server).step(&mut agents, &queue, 0, &[]);
        let refused = refused.expect_err("refused").to_string();
        assert!(
            refused.contains("`optimizer` is not a hyper-parameter"),
            "{refused}"
        );
    }

    #[test]
    fn no_point_is_requested_from_a_sweep_with_an_unknown_metric() {
        let dir = tempfile::tempdir().expect("a directory");
        let (server, queue) = (WandbServer::begin(), queue(dir.path()));
        server.give_points(points(2));
        server.set_sweep_metric("val_loss");
        let mut agents = agents(dir.path(), 9);
        let refused = client(&server).step(&mut agents, &queue, 0, &[]);
        let refused = refused.expect_err("refused").to_string();
        assert!(refused.contains("optimizes `val_loss`"), "{refused}");
        assert_eq!(server.requests().len(), 1, "no agent asks");
    }
}
