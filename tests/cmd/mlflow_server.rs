//! A fake MLflow tracking server. It accepts and stores the requests of a sender.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::wandb_server::{Request, read_request, write_answer};

/// Path prefix of the interface.
const API: &str = "/api/2.0/mlflow/";

/// Path prefix of uploaded files.
const ARTIFACTS: &str = "/api/2.0/mlflow-artifacts/artifacts/7/";

/// A run as stored by the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServedMlflowRun {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) params: BTreeMap<String, String>,
    /// Measured values: the name, the step and the value.
    pub(crate) metrics: Vec<(String, u64, Value)>,
    /// What the run learned from.
    pub(crate) dataset: Option<Value>,
    /// Uploaded files, by name.
    pub(crate) files: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct MlflowState {
    experiment: Option<String>,
    runs: Vec<ServedMlflowRun>,
    requests: Vec<Request>,
}

/// The running server. It ends with the process of the test.
pub(crate) struct MlflowServer {
    pub(crate) base_url: String,
    state: Arc<Mutex<MlflowState>>,
}

impl MlflowServer {
    pub(crate) fn begin() -> MlflowServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let server = MlflowServer {
            base_url: format!("http://{address}"),
            state: Arc::default(),
        };
        let state = Arc::clone(&server.state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(&stream, &state);
            }
        });
        server
    }

    pub(crate) fn experiment(&self) -> Option<String> {
        self.state().experiment.clone()
    }

    pub(crate) fn runs(&self) -> Vec<ServedMlflowRun> {
        self.state().runs.clone()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, MlflowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: &TcpStream, state: &Mutex<MlflowState>) {
    let Some(request) = read_request(stream) else {
        return;
    };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.requests.push(request.clone());
    let answer = state.answer(&request).to_string();
    write_answer(stream, 200, &[], &answer, answer.len());
}

impl MlflowState {
    fn answer(&mut self, request: &Request) -> Value {
        let body = &request.body;
        if let Some(place) = request.path.strip_prefix(ARTIFACTS) {
            let parts: Vec<&str> = place.split('/').collect();
            let [run, "artifacts", name] = parts[..] else {
                panic!("{place}");
            };
            let at: usize = run.parse().expect("an id");
            self.runs[at]
                .files
                .insert(name.to_owned(), request.text.clone());
            return json!({});
        }
        match request.path.strip_prefix(API).expect("its interface") {
            "experiments/search" => {
                let known = self.experiment.iter();
                let known = known.filter(|name| body["filter"] == format!("name = '{name}'"));
                let found =
                    known.map(|_| json!({"experiment_id": "7", "lifecycle_stage": "active"}));
                json!({"experiments": found.collect::<Vec<Value>>()})
            }
            "experiments/create" => {
                self.experiment = body["name"].as_str().map(str::to_owned);
                json!({"experiment_id": "7"})
            }
            "runs/search" => self.search_runs(body),
            "runs/create" => {
                self.runs.push(ServedMlflowRun {
                    name: body["run_name"].as_str().expect("a name").to_owned(),
                    status: "RUNNING".to_owned(),
                    tags: texts(&body["tags"]),
                    ..ServedMlflowRun::default()
                });
                json!({"run": self.run_json(self.runs.len() - 1)})
            }
            "runs/log-batch" => self.add_batch(body),
            "runs/log-inputs" => {
                let dataset = body["datasets"][0]["dataset"].clone();
                self.run_of(body).dataset = Some(dataset);
                json!({})
            }
            "runs/update" => {
                let status = body["status"].as_str().expect("a status").to_owned();
                self.run_of(body).status = status;
                json!({})
            }
            other => panic!("{other}"),
        }
    }

    fn run_of(&mut self, body: &Value) -> &mut ServedMlflowRun {
        let at: usize = body["run_id"]
            .as_str()
            .and_then(|id| id.parse().ok())
            .expect("an id");
        &mut self.runs[at]
    }

    fn search_runs(&self, body: &Value) -> Value {
        let filter = body["filter"].as_str().expect("a filter");
        let mut found = Vec::new();
        for (at, run) in self.runs.iter().enumerate() {
            if filter.ends_with(&format!("= '{}'", run.tags["poolcast.run_id"])) {
                found.push(self.run_json(at));
            }
        }
        json!({ "runs": found })
    }

    fn add_batch(&mut self, body: &Value) -> Value {
        let (tags, params) = (texts(&body["tags"]), texts(&body["params"]));
        let run = self.run_of(body);
        run.tags.extend(tags);
        run.params.extend(params);
        for metric in body["metrics"].as_array().expect("a list") {
            let name = metric["key"].as_str().expect("a name").to_owned();
            let step = metric["step"].as_u64().expect("a step");
            run.metrics.push((name, step, metric["value"].clone()));
        }
        json!({})
    }

    fn run_json(&self, at: usize) -> Value {
        let run = &self.runs[at];
        let mut last_steps = BTreeMap::new();
        for (name, step, _) in &run.metrics {
            last_steps.insert(name, step);
        }
        let metrics = last_steps
            .iter()
            .map(|(key, step)| json!({"key": key, "step": step}));
        let names = |texts: &BTreeMap<String, String>| -> Vec<Value> {
            texts.keys().map(|key| json!({ "key": key })).collect()
        };
        json!({
            "info": {
                "run_id": at.to_string(), "status": run.status, "lifecycle_stage": "active",
                "artifact_uri": format!("mlflow-artifacts:/7/{at}/artifacts"),
            },
            "inputs": {"dataset_inputs": Vec::from_iter(&run.dataset)},
            "data": {
                "metrics": metrics.collect::<Vec<Value>>(),
                "params": names(&run.params),
                "tags": names(&run.tags),
            },
        })
    }
}

fn texts(list: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for pair in list.as_array().expect("a list") {
        let text = |key: &str| pair[key].as_str().expect("a text").to_owned();
        found.insert(text("key"), text("value"));
    }
    found
}
