//! What a job requests and holds, as listed by `squeue --json`.

use serde::Deserialize;
use serde_json::Value;

use super::node_resources::{GresCount, Tres, number, parse_gres, parse_tres, text};

/// Maximum number of tasks, and of CPUs, of a job.
const MAX_TASKS: i64 = 1 << 20;

/// The share of a job in a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AllocatedNode {
    pub(super) name: String,
    /// Number of CPUs, or of cores.
    pub(super) cpus: i64,
    pub(super) counts_cores: bool,
    pub(super) memory_mb: i64,
}

/// The request of a job, and its shares if it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobResources {
    /// The whole request.
    pub(super) requested: Tres,
    /// The shares of the job, if it runs.
    pub(super) allocated: Option<Tres>,
    pub(super) tasks: i64,
    /// Maximum number of tasks on a node, if requested.
    pub(super) tasks_per_node: Option<i64>,
    pub(super) min_cpus_per_node: i64,
    /// Maximum number of nodes; `None` if the job may use any number. Slurm drops it when the job starts.
    pub(super) max_nodes: Option<i64>,
    pub(super) memory_per_node_mb: Option<i64>,
    pub(super) memory_per_cpu_mb: Option<i64>,
    /// True if the memory is requested for each GPU.
    pub(super) has_memory_per_gres: bool,
    pub(super) gres_per_node: Vec<GresCount>,
    pub(super) gres_per_task: Vec<GresCount>,
    pub(super) gres_per_job: Vec<GresCount>,
    pub(super) threads_per_core: Option<i64>,
    /// The expression over features of nodes, such as `a100&ib`.
    pub(super) features: String,
    pub(super) required_nodes: String,
    pub(super) excluded_nodes: String,
    pub(super) reservation: String,
    /// True if the job accepts no other job on its nodes.
    pub(super) is_exclusive: bool,
    /// A part of the request that this program cannot simulate.
    pub(super) unknown: Option<&'static str>,
    /// The shares of the job in each of its nodes, if listed.
    pub(super) held_nodes: Vec<AllocatedNode>,
    /// The generic resources that the job holds, by node.
    pub(super) held_gres: Vec<Vec<GresCount>>,
}

/// The fields of a job in JSON. Fields in an unknown form count as missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceValues {
    tasks: Value,
    tasks_per_node: Value,
    minimum_cpus_per_node: Value,
    max_nodes: Value,
    memory_per_node: Value,
    memory_per_cpu: Value,
    memory_per_tres: Value,
    threads_per_core: Value,
    tres_per_node: Value,
    tres_per_task: Value,
    tres_per_job: Value,
    tres_per_socket: Value,
    tres_req_str: Value,
    tres_alloc_str: Value,
    gres_detail: Value,
    features: Value,
    required_nodes: Value,
    excluded_nodes: Value,
    resv_name: Value,
    shared: Value,
    exclusive: Value,
    job_resources: Value,
}

impl ResourceValues {
    /// Returns what the job requests and holds, if this is listed.
    pub(super) fn resources(&self) -> Option<JobResources> {
        let requested = parse_tres(&text(&self.tres_req_str))?;
        let positive = |value: &Value| number(value).filter(|number| *number > 0);
        let tasks = positive(&self.tasks).unwrap_or(1);
        let is_large = tasks > MAX_TASKS || requested.cpus > MAX_TASKS;
        let sharing = [text(&self.shared), text(&self.exclusive)];
        let sharing = sharing.iter().flat_map(|words| words.split(','));
        let sharing: Vec<&str> = sharing.collect();
        let unknown = if is_large {
            Some("the number of tasks")
        } else if !text(&self.tres_per_socket).is_empty() {
            Some("the resources for each socket")
        } else if ["user", "mcs", "topo"]
            .iter()
            .any(|word| sharing.contains(word))
        {
            Some("`--exclusive` for a user")
        } else {
            None
        };
        Some(JobResources {
            allocated: parse_tres(&text(&self.tres_alloc_str)),
            tasks,
            tasks_per_node: positive(&self.tasks_per_node),
            min_cpus_per_node: number(&self.minimum_cpus_per_node).unwrap_or(0),
            max_nodes: positive(&self.max_nodes),
            memory_per_node_mb: number(&self.memory_per_node),
            memory_per_cpu_mb: positive(&self.memory_per_cpu),
            has_memory_per_gres: !text(&self.memory_per_tres).is_empty(),
            gres_per_node: parse_gres(&text(&self.tres_per_node))?,
            gres_per_task: parse_gres(&text(&self.tres_per_task))?,
            gres_per_job: parse_gres(&text(&self.tres_per_job))?,
            threads_per_core: positive(&self.threads_per_core),
            features: text(&self.features),
            required_nodes: text(&self.required_nodes),
            excluded_nodes: text(&self.excluded_nodes),
            reservation: text(&self.resv_name),
            is_exclusive: sharing.contains(&"none") || sharing.contains(&"true"),
            unknown,
            held_nodes: held_nodes(&self.job_resources).unwrap_or_default(),
            held_gres: held_gres(&self.gres_detail),
            requested,
        })
    }
}

/// Parses what a job holds on each node, in the forms of Slurm 22.05 and of 24.05.
fn held_nodes(job: &Value) -> Option<Vec<AllocatedNode>> {
    let rows = match &job["allocated_nodes"] {
        Value::Array(rows) => rows,
        _ => job["nodes"]["allocation"].as_array()?,
    };
    let mut held = Vec::with_capacity(rows.len());
    for row in rows {
        let name = [&row["nodename"], &row["name"]].into_iter();
        let memory = [&row["memory_allocated"], &row["memory"]["allocated"]].into_iter();
        let cpus = number(&row["cpus"]["count"]);
        held.push(AllocatedNode {
            name: name.filter_map(Value::as_str).next()?.to_owned(),
            cpus: cpus.unwrap_or_else(|| allocated_cores(&row["sockets"])),
            counts_cores: cpus.is_none(),
            memory_mb: memory.filter_map(number).next().unwrap_or(0),
        });
    }
    Some(held)
}

/// Counts the cores in `{"0": {"cores": {"3": "allocated"}}}`.
fn allocated_cores(sockets: &Value) -> i64 {
    let sockets = sockets.as_object().into_iter().flat_map(|map| map.values());
    let cores = sockets.filter_map(|socket| socket["cores"].as_object());
    cores.map(|cores| cores.len() as i64).sum()
}

fn held_gres(detail: &Value) -> Vec<Vec<GresCount>> {
    let rows = detail.as_array().into_iter().flatten();
    rows.map(|row| parse_gres(row.as_str().unwrap_or_default()).unwrap_or_default())
        .collect()
}

impl JobResources {
    /// Returns the range of the number of nodes, for a job that holds `held` nodes if it runs. The
    /// maximum is `None` if the job may use any number.
    pub(super) fn node_range(&self, held: Option<u32>) -> (i64, Option<i64>) {
        let least = self.requested.nodes.clamp(1, MAX_TASKS);
        let most = match held {
            None => self.max_nodes,
            // A job that runs on more nodes than it needs may be spread.
            Some(held) if i64::from(held) > least => None,
            Some(_) => Some(least),
        };
        // GPUs of the whole job would be distributed in an unknown way.
        match self.gres_of_job().is_empty() {
            true => (least, most.map(|most| most.max(least))),
            false => (least, Some(least)),
        }
    }

    /// Returns the number of CPUs for each task. Slurm 22.05 does not list it.
    pub(super) fn cpus_per_task(&self) -> i64 {
        ((self.requested.cpus + self.tasks - 1) / self.tasks).max(1)
    }

    /// Returns the generic resources that are requested for the whole job.
    pub(super) fn gres_of_job(&self) -> &[GresCount] {
        let is_elsewhere = !self.gres_per_node.is_empty() || !self.gres_per_task.is_empty();
        if is_elsewhere {
            return &[];
        }
        match self.gres_per_job.is_empty() {
            true => &self.requested.gres,
            false => &self.gres_per_job,
        }
    }

    /// Returns the options of `sbatch` that request the same, for a job that holds `held` nodes if it
    /// runs.
    pub(super) fn sbatch_options(&self, held: Option<u32>) -> Vec<String> {
        let mut options = vec![
            format!("--ntasks={}", self.tasks),
            format!("--cpus-per-task={}", self.cpus_per_task()),
        ];
        if let (least, Some(most)) = self.node_range(held) {
            options.push(format!("--nodes={least}-{most}"));
        }
        if let Some(tasks) = self.tasks_per_node {
            options.push(format!("--ntasks-per-node={tasks}"));
        }
        match (self.memory_per_cpu_mb, self.memory_per_node_mb) {
            (Some(memory_mb), _) => options.push(format!("--mem-per-cpu={memory_mb}")),
            (None, Some(memory_mb)) => options.push(format!("--mem={memory_mb}")),
            (None, None) if self.has_memory_per_gres => {
                options.push(format!(
                    "--mem={}",
                    self.requested.memory_mb / self.requested.nodes.max(1)
                ));
            }
            (None, None) => {}
        }
        let words = |counts: &[GresCount]| {
            let words = counts.iter().map(|gres| match &gres.kind {
                Some(kind) => format!("{}:{kind}:{}", gres.name, gres.count),
                None => format!("{}:{}", gres.name, gres.count),
            });
            words.collect::<Vec<_>>().join(",")
        };
        if !self.gres_per_node.is_empty() {
            options.push(format!("--gres={}", words(&self.gres_per_node)));
        }
        for (option, counts) in [
            ("gpus-per-task", &self.gres_per_task[..]),
            ("gpus", self.gres_of_job()),
        ] {
            let gpus: Vec<GresCount> = counts
                .iter()
                .filter(|gres| gres.name == "gpu")
                .cloned()
                .collect();
            if !gpus.is_empty() {
                options.push(format!("--{option}={}", words(&gpus).replace("gpu:", "")));
            }
        }
        for (option, value) in [
            ("constraint", &self.features),
            ("nodelist", &self.required_nodes),
            ("exclude", &self.excluded_nodes),
        ] {
            if !value.is_empty() {
                options.push(format!("--{option}={value}"));
            }
        }
        if self.is_exclusive {
            options.push("--exclusive".to_owned());
        }
        options
    }
}
