//! Writes the text of `pipeline.dag` for a plan, in DAGMan's language.

use super::layout::{LEFT_BY_DAG, REPORT_SCRIPT};
use super::parts::PlannedPart;
use super::plan::{DagPlan, SampleSource};
use super::shared::archive_name;

/// The exit code of a PRE script if its node has nothing to do.
const SKIP_CODE: u8 = 10;

/// Interval between writes of the nodes' status, in seconds. DAGMan writes it even if nothing has
/// changed, which shows that DAGMan is alive.
const STATUS_INTERVAL_S: u32 = 30;

/// The node that packs the inputs that were made before the first job.
const SHARE_NODE: &str = "share";

/// A directory that a job fetches from elsewhere than the access point.
struct FetchedInput {
    /// The address of the archive that HTCondor fetches for the job.
    address: String,
    /// The option of poolcast that unpacks the archive.
    option: String,
}

/// The text of the DAG. Its paths are relative to its directory, from which it must be submitted.
pub(super) fn dag_text(plan: &DagPlan) -> String {
    let mut dag = DagWriter {
        plan,
        text: dag_head(plan),
    };
    if let SampleSource::Logs(logs) = &plan.source {
        dag.push_parse(logs);
    }
    if plan.shared.is_some() {
        dag.push_share();
    }
    for name in plan.tensors.keys() {
        dag.push_tensors(name);
    }
    for part in &plan.parts {
        dag.push_part(part);
    }
    dag.push_last_nodes();

    dag.text
}

fn dag_head(plan: &DagPlan) -> String {
    format!(
        "# {} in {}, written by poolcast {}. In its directory: condor_submit_dag pipeline.dag\n\
         # Permanent failures are recorded in rows/ and tensors/, and the other jobs continue: see condor/node.sh.\n\
         NODE_STATUS_FILE pipeline.status {STATUS_INTERVAL_S} ALWAYS-UPDATE\n\
         MAXJOBS trials {}\n",
        poolcast_base::output::counted(plan.trials, "trial"),
        poolcast_base::output::counted(plan.parts.len(), "job"),
        env!("CARGO_PKG_VERSION"),
        plan.config.dag.max_jobs
    )
}

/// A DAG's text while it is being written.
struct DagWriter<'a> {
    plan: &'a DagPlan,
    text: String,
}

impl DagWriter<'_> {
    fn push_line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Adds a node that runs `condor/STEP.sub` with `macros`.
    fn push_job(&mut self, name: &str, step: &str, macros: &[(&str, &str)]) {
        let mut vars = format!("VARS {name}");
        for (key, value) in [&[("JOB", name), ("image", &self.plan.image)], macros].concat() {
            if !value.is_empty() {
                vars += &format!(" {key}=\"{value}\"");
            }
        }

        self.push_line(&format!("\nJOB {name} condor/{step}.sub"));
        self.push_line(&vars);
        self.push_line(&format!("RETRY {name} 2 UNLESS-EXIT 2"));
    }

    /// Turns a final failure into a record in the file `failed`, and into a success of the node.
    /// Before that, the script moves the files that the job `left` of a part to their final path.
    /// Tensors that it left are packed for the jobs that share them.
    fn record_failure(&mut self, name: &str, failed: &str, left: &str) {
        let words =
            format!("ended {failed} logs/{name}.err $JOB $RETURN $RETRY $MAX_RETRIES {left}");
        self.push_line(format!("SCRIPT POST {name} /bin/sh condor/node.sh {words}").trim_end());
    }

    /// Skips the node if the script answers its `question` with [`SKIP_CODE`].
    fn push_skip(&mut self, name: &str, question: &str) {
        self.push_line(&format!(
            "SCRIPT PRE {name} /bin/sh condor/node.sh {question}"
        ));
        self.push_line(&format!("PRE_SKIP {name} {SKIP_CODE}"));
    }

    /// Adds the node that packs the inputs made before the first job, for the jobs that fetch them.
    /// It runs a script, and no job.
    fn push_share(&mut self) {
        let input = self.plan.source.dir();
        self.push_line(&format!("\nJOB {SHARE_NODE} condor/best.sub NOOP"));
        self.push_line(&format!("RETRY {SHARE_NODE} 2"));
        self.push_line(&format!(
            "SCRIPT PRE {SHARE_NODE} /bin/sh condor/node.sh share {input} logs/{SHARE_NODE}.err"
        ));
        if matches!(self.plan.source, SampleSource::Logs(_)) {
            self.push_line(&format!("PARENT parse CHILD {SHARE_NODE}"));
        }
    }

    /// Adds the node that makes the tensors `name`.
    fn push_tensors(&mut self, name: &str) {
        let node = format!("tensors-{name}");
        let config = format!("tensors/{name}.yaml");
        let mut macros = vec![("tensors", name), ("config", config.as_str())];
        let mut left = String::new();
        let events = self.fetched_input(self.plan.source.dir());
        if let Some(events) = &events {
            macros.push(("inputs", &events.address));
            macros.push(("options", &events.option));
            left = format!("tensors/{name}");
        }

        self.push_job(&node, "tensors", &macros);
        self.record_failure(&node, &format!("tensors/{name}.failed"), &left);
        if self.plan.shared.is_some() {
            self.push_line(&format!("PARENT {SHARE_NODE} CHILD {node}"));
        } else if matches!(self.plan.source, SampleSource::Logs(_)) {
            self.push_line(&format!("PARENT parse CHILD {node}"));
        }
    }

    /// The archive of the directory `input` for jobs; `None` if inputs are not shared.
    fn fetched_input(&self, input: &str) -> Option<FetchedInput> {
        let shared = self.plan.shared.as_ref()?;
        Some(FetchedInput {
            address: shared.address_of(input),
            option: format!("--unpack {}", archive_name(input)),
        })
    }

    /// Adds the nodes that run the trials of `part`, each the parent of the next.
    fn push_part(&mut self, part: &PlannedPart) {
        let name = &part.name;
        let trials = part.ranges();
        let failed = format!("rows/{name}.failed");

        // The trials' data comes from the access point, or as an archive from its address.
        let learned_from = match &part.tensors {
            Some(name) => format!("tensors/{name}"),
            None => self.plan.source.dir().to_owned(),
        };
        let fetched = self.fetched_input(&learned_from);
        let mut inputs = fetched
            .as_ref()
            .map_or(learned_from, |fetched| fetched.address.clone());
        if part.tensors.is_some() {
            inputs = format!("events/manifest.json,{inputs}");
        }

        let mut parent = match &part.tensors {
            Some(name) => Some(format!("tensors-{name}")),
            None => fetched.as_ref().map(|_| SHARE_NODE.to_owned()),
        };
        for (node, epoch) in self.nodes_of_part(part) {
            let until_epoch = epoch.map(|epoch| format!("--until-epoch {epoch}"));
            let unpack = fetched.as_ref().map(|fetched| fetched.option.clone());
            let options = Vec::from_iter(until_epoch.into_iter().chain(unpack)).join(" ");
            self.push_job(
                &node,
                "trials",
                &[
                    ("part", name),
                    ("trials", &trials),
                    ("inputs", &inputs),
                    ("options", &options),
                ],
            );
            self.push_line(&format!("CATEGORY {node} trials"));

            match (&part.tensors, epoch) {
                (_, Some(2..)) => {
                    self.push_skip(&node, &format!("epoch {failed} rows/{name}.jsonl"))
                }
                (Some(tensors), _) => {
                    self.push_skip(&node, &format!("begin tensors/{tensors}.failed {failed}"))
                }
                (None, _) => {}
            }
            self.record_failure(&node, &failed, &format!("parts/{name}"));
            if let Some(parent) = parent.replace(node.clone()) {
                self.push_line(&format!("PARENT {parent} CHILD {node}"));
            }
        }
    }

    /// The nodes that run the trials of `part`, in order: one node, or one for each epoch.
    fn nodes_of_part(&self, part: &PlannedPart) -> Vec<(String, Option<usize>)> {
        if !self.plan.config.dag.per_epoch {
            return vec![(part.name.clone(), None)];
        }
        (1..=self.plan.config.epochs)
            .map(|epoch| (format!("{}-{epoch:04}", part.name), Some(epoch)))
            .collect()
    }

    /// Adds the nodes that choose among all trials, score the chosen ones, and write the report.
    fn push_last_nodes(&mut self) {
        self.push_job("best", "best", &[("source", self.plan.source.dir())]);
        self.push_line("SCRIPT POST best /bin/sh condor/node.sh take $RETURN best");
        for part in &self.plan.parts {
            if let Some((last, _)) = self.nodes_of_part(part).pop() {
                self.push_line(&format!("PARENT {last} CHILD best"));
            }
        }

        self.push_job("evaluate", "evaluate", &[]);
        self.push_line("SCRIPT PRE evaluate /bin/sh condor/node.sh chosen");
        self.push_line("SCRIPT POST evaluate /bin/sh condor/node.sh take $RETURN evaluated");
        self.push_line("PARENT best CHILD evaluate");

        // The report is not a job: it needs no execution point, and must not wait for one.
        self.push_line("\nFINAL report condor/best.sub NOOP");
        let mut words = vec![REPORT_SCRIPT];
        if self.plan.config.dag.cleanup {
            words.push(&self.plan.config.wandb.sweep.name);
            words.extend(LEFT_BY_DAG);
        }
        self.push_line(&words.join(" "));
    }

    /// Adds the node that parses all logs. Its job finds them in one directory.
    fn push_parse(&mut self, logs: &[String]) {
        let names: Vec<&str> = logs
            .iter()
            .map(|log| log.rsplit('/').next().unwrap_or_default())
            .collect();
        let mut options = Vec::new();
        if let Some(ap) = &self.plan.config.parse.ap {
            options.push(format!("--ap {ap}"));
        }
        if let Some(year) = &self.plan.config.parse.year {
            options.push(format!("--year {year}"));
        }

        self.push_job(
            "parse",
            "parse",
            &[
                ("logs", &logs.join(",")),
                ("names", &names.join(" ")),
                ("options", &options.join(" ")),
            ],
        );
    }
}
