//! A fake W&B server. It accepts and stores the requests of a sender like W&B does, and injects
//! faults where a test wants them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// Path prefix of the addresses for file uploads.
const STORAGE: &str = "/storage/";

/// A fault to inject into one request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The server closes the connection before the request has any effect.
    Reset,
    /// The request has its effect, but the server closes the connection without an answer.
    LostAnswer,
    /// The request has its effect, but the answer breaks off.
    HalfAnswer,
    /// Another server answers, and the request has no effect.
    Html,
    /// The server answers with this status, headers and body, and the request has no effect.
    Status(u16, &'static [(&'static str, &'static str)], &'static str),
}

/// A request as received.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) text: String,
    pub(crate) body: Value,
}

/// A run as stored by the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ServedRun {
    pub(crate) display_name: Value,
    pub(crate) group: Value,
    pub(crate) sweep: Value,
    pub(crate) tags: Value,
    pub(crate) config: Value,
    pub(crate) history: BTreeMap<u64, String>,
    pub(crate) system: BTreeMap<u64, String>,
    pub(crate) summary: Option<String>,
    pub(crate) exit_code: Option<i64>,
    /// Uploaded files, by name.
    pub(crate) files: BTreeMap<String, String>,
}

/// The runs and sweeps that the server stores.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ServedState {
    pub(crate) runs: BTreeMap<String, ServedRun>,
    /// Configurations of sweeps, by id.
    pub(crate) sweeps: BTreeMap<String, Value>,
}

#[derive(Default)]
struct Shared {
    state: ServedState,
    requests: Vec<Request>,
    faults: BTreeMap<usize, Fault>,
    deleted: BTreeSet<String>,
    added_lines: u64,
    /// Runs whose pages show that a user pressed Stop.
    stopped: BTreeSet<String>,
    sweep_state: &'static str,
    sweep_metric: &'static str,
    /// Points that are not handed out yet, in the format of the server.
    points: Vec<Value>,
    /// Runs that were handed out, but that no worker has begun.
    pending: BTreeMap<String, Value>,
    agents: usize,
}

/// The running server. It ends with the process of the test.
pub(crate) struct WandbServer {
    pub(crate) base_url: String,
    shared: Arc<Mutex<Shared>>,
    /// While this is true, the server answers no request.
    pub(crate) is_down: Arc<AtomicBool>,
}

impl WandbServer {
    pub(crate) fn begin() -> WandbServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let server = WandbServer {
            base_url: format!("http://{address}"),
            shared: Arc::default(),
            is_down: Arc::default(),
        };
        let (shared, is_down) = (Arc::clone(&server.shared), Arc::clone(&server.is_down));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_down.load(Ordering::Relaxed) {
                    continue;
                }
                let shared = Arc::clone(&shared);
                // A client may disconnect in the middle of a request.
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        server
    }

    pub(crate) fn state(&self) -> ServedState {
        self.shared().state.clone()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared().requests.clone()
    }

    /// Injects `fault` into the request with this number, counted from 0.
    pub(crate) fn add_fault(&self, request: usize, fault: Fault) {
        self.shared().faults.insert(request, fault);
    }

    /// Makes the server treat the run with this id as deleted by a user.
    pub(crate) fn delete(&self, run_id: &str) {
        self.shared().deleted.insert(run_id.to_owned());
    }

    /// Makes the server treat the run with this id as stopped by a user.
    pub(crate) fn stop(&self, run_id: &str) {
        self.shared().stopped.insert(run_id.to_owned());
    }

    /// Makes the server hand out these points to agents, and then make the agents exit.
    pub(crate) fn give_points(&self, points: Vec<Value>) {
        self.shared().points = points;
    }

    /// Sets the state of every sweep.
    pub(crate) fn set_sweep_state(&self, state: &'static str) {
        self.shared().sweep_state = state;
    }

    /// Sets the metric by which every sweep judges runs.
    pub(crate) fn set_sweep_metric(&self, metric: &'static str) {
        self.shared().sweep_metric = metric;
    }

    /// Makes the server report `added` more lines of each run than it has.
    pub(crate) fn lie_about_lines(&self, added: u64) {
        self.shared().added_lines = added;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: TcpStream, shared: &Mutex<Shared>) {
    let Some(request) = read_request(&stream) else {
        return;
    };
    let (answer, fault) = {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let number = shared.requests.len();
        shared.requests.push(request.clone());
        let fault = shared.faults.remove(&number);
        let has_effect = !matches!(fault, Some(Fault::Reset | Fault::Html | Fault::Status(..)));
        let answer = if has_effect {
            shared.answer(&request)
        } else {
            (200, Value::Null)
        };
        (answer, fault)
    };

    let text = answer.1.to_string();
    match fault {
        Some(Fault::Reset | Fault::LostAnswer) => {}
        Some(Fault::HalfAnswer) => write_answer(&stream, 200, &[], &text, text.len() + 9),
        Some(Fault::Html) => {
            let page = "<html>Sign in to the network</html>";
            write_answer(&stream, 200, &[], page, page.len());
        }
        Some(Fault::Status(status, headers, body)) => {
            write_answer(&stream, status, headers, body, body.len());
        }
        None => write_answer(&stream, answer.0, &[], &text, text.len()),
    }
}

/// Reads the request on `stream`. Returns `None` if it is incomplete.
pub(crate) fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        headers += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let text = String::from_utf8_lossy(&body).into_owned();
    Some(Request {
        body: serde_json::from_str(&text).unwrap_or(Value::Null),
        path,
        headers,
        text,
    })
}

/// Writes an answer whose header declares a body of `length` bytes.
pub(crate) fn write_answer(
    mut stream: &TcpStream,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
    length: usize,
) {
    let mut head = format!(
        "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n"
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
    let _ = stream.flush();
}

impl Shared {
    fn answer(&mut self, request: &Request) -> (u16, Value) {
        let variables = &request.body["variables"];
        match request.body["operationName"].as_str() {
            Some("FindSweeps") => (200, self.known_sweeps()),
            Some("SweepState") => (200, self.sweep_node()),
            Some("SweepConfig") => (200, self.sweep_config()),
            Some("CreateAgent") => (200, self.add_agent()),
            Some("Heartbeat") => (200, self.hear_agent(variables)),
            Some("PendingRuns") => (200, self.pending_runs()),
            Some("UpsertSweep") => (200, self.add_sweep(variables)),
            Some("UpsertBucket") => self.add_run(variables),
            Some("CreateRunFiles") => (200, self.name_addresses(request)),
            _ if request.path.starts_with(STORAGE) => self.add_file(request),
            _ => self.add_lines(request),
        }
    }

    fn name_addresses(&self, request: &Request) -> Value {
        let variables = &request.body["variables"];
        let headers = request.headers.to_lowercase();
        let host = headers.lines().find_map(|line| line.strip_prefix("host:"));
        let run = variables["run"].as_str().expect("a run");
        let mut files = Vec::new();
        for name in variables["files"].as_array().expect("names") {
            let name = name.as_str().expect("a name");
            let url = format!(
                "http://{}{STORAGE}{run}/{name}",
                host.expect("a host").trim()
            );
            files.push(json!({"name": name, "uploadUrl": url}));
        }
        let told = json!({"runID": run, "uploadHeaders": ["X-Stored: yes"], "files": files});
        json!({"data": {"createRunFiles": told}})
    }

    fn add_file(&mut self, request: &Request) -> (u16, Value) {
        let headers = request.headers.to_lowercase();
        assert!(headers.contains("x-stored: yes") && !headers.contains("authorization"));
        let place = request.path.strip_prefix(STORAGE).expect("a place");
        let (run, name) = place.split_once('/').expect("a file");
        let run = self.state.runs.get_mut(run).expect("a run");
        run.files.insert(name.to_owned(), request.text.clone());
        (200, json!({}))
    }

    fn known_sweeps(&self) -> Value {
        let sweeps = self.state.sweeps.iter();
        let node = |(id, config): (&String, &Value)| json!({"node": {"id": id, "name": id, "config": config["config"], "description": config["description"]}});
        let edges: Vec<Value> = sweeps.map(node).collect();
        let page = json!({"endCursor": null, "hasNextPage": false});
        json!({"data": {"project": {"sweeps": {"edges": edges, "pageInfo": page}}}})
    }

    fn add_agent(&mut self) -> Value {
        self.agents += 1;
        json!({"data": {"createAgent": {"agent": {"id": format!("QWdlbnQ6{}==", self.agents)}}}})
    }

    /// Answers the heartbeat of an agent. An agent without a run gets the next point.
    fn hear_agent(&mut self, variables: &Value) -> Value {
        let mut commands = Vec::new();
        if variables["runState"] == "{}" {
            if self.points.is_empty() {
                commands.push(json!({"type": "exit"}));
            } else {
                let args = self.points.remove(0);
                let run_id = format!("given{}", self.points.len());
                self.pending.insert(run_id.clone(), args.clone());
                commands
                    .push(json!({"type": "run", "run_id": run_id, "program": "p", "args": args}));
            }
        }
        let commands = Value::from(commands).to_string();
        json!({"data": {"agentHeartbeat": {"agent": {"id": variables["id"]}, "commands": commands}}})
    }

    fn pending_runs(&self) -> Value {
        let node = |(run_id, args): (&String, &Value)| json!({"node": {"name": run_id, "state": "pending", "config": args.to_string()}});
        let edges: Vec<Value> = self.pending.iter().map(node).collect();
        json!({"data": {"project": {"runs": {"edges": edges}}}})
    }

    fn sweep_node(&self) -> Value {
        let state = match self.sweep_state {
            "" => "RUNNING",
            state => state,
        };
        json!({"data": {"project": {"sweep": {"id": "s", "name": "s", "state": state}}}})
    }

    fn sweep_config(&self) -> Value {
        let metric = match self.sweep_metric {
            "" => "validation_roc_auc",
            metric => metric,
        };
        let config = format!("method: bayes\nmetric:\n  name: {metric}\n  goal: maximize\n");
        json!({"data": {"project": {"sweep": {"id": "s", "name": "s", "config": config}}}})
    }

    fn add_sweep(&mut self, variables: &Value) -> Value {
        let id = format!("swp{:05}", self.state.sweeps.len() + 1);
        self.state.sweeps.insert(id.clone(), variables.clone());
        let project = json!({"id": "p", "name": variables["projectName"], "entity": {"id": "e", "name": "testuser"}});
        json!({"data": {"upsertSweep": {"sweep": {"id": id, "name": id, "project": project}, "configValidationWarnings": []}}})
    }

    fn add_run(&mut self, variables: &Value) -> (u16, Value) {
        let id = variables["name"].as_str().unwrap_or_default().to_owned();
        if self.deleted.contains(&id) {
            let message =
                format!("run {id} was previously created and deleted; try a new run name");
            return (409, json!({"errors": [{"message": message}]}));
        }
        self.pending.remove(&id);
        let run = self.state.runs.entry(id.clone()).or_default();
        run.display_name = variables["displayName"].clone();
        run.group = variables["groupName"].clone();
        run.sweep = variables["sweep"].clone();
        run.tags = variables["tags"].clone();
        let config = variables["config"].as_str().unwrap_or("null");
        run.config = serde_json::from_str(config).expect("a configuration is JSON");
        let lines = run.history.len() as u64 + self.added_lines;
        let project = json!({"id": "p", "name": variables["project"], "entity": {"id": "e", "name": "testuser"}});
        let bucket = json!({"id": id, "name": id, "historyLineCount": lines, "project": project});
        (
            200,
            json!({"data": {"upsertBucket": {"bucket": bucket, "inserted": lines == 0}}}),
        )
    }

    fn add_lines(&mut self, request: &Request) -> (u16, Value) {
        let parts: Vec<&str> = request.path.split('/').collect();
        let ["", "files", "testuser", _, id, "file_stream"] = parts[..] else {
            return (404, json!({"error": "no such path"}));
        };
        let is_stopped = self.stopped.contains(id);
        let run = self.state.runs.entry(id.to_owned()).or_default();
        let files = request.body["files"].as_object();
        for (name, lines) in files.into_iter().flatten() {
            let offset = lines["offset"].as_u64().expect("an offset");
            let all = lines["content"].as_array().expect("lines");
            for (line, at) in all.iter().zip(offset..) {
                let line = line.as_str().expect("a line").to_owned();
                match name.as_str() {
                    "wandb-history.jsonl" => drop(run.history.insert(at, line)),
                    "wandb-events.jsonl" => drop(run.system.insert(at, line)),
                    _ => run.summary = Some(line),
                }
            }
        }
        if request.body["complete"] == json!(true) {
            run.exit_code = request.body["exitcode"].as_i64();
        }
        (
            200,
            json!({"exitcode": run.exit_code, "stopped": is_stopped}),
        )
    }
}
