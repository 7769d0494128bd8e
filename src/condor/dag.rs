//! A plan → `pipeline.dag`, in DAGMan's words.

use super::cleanup;
use super::plan::{Plan, Trial};

/// What PRE scripts exit with where there is nothing to do for a node.
const SKIP: u8 = 10;

/// How often DAGMan may write the status of the nodes, in seconds.
const STATUS_EVERY_S: u32 = 30;

/// The text of the DAG. Its paths are relative to its directory, where it is to be submitted.
pub(super) fn text(plan: &Plan) -> String {
    let mut dag = Dag { plan, text: head(plan) };
    dag.parse();
    dag.tensors();
    plan.trials.iter().for_each(|trial| dag.trial(trial));
    dag.best();
    dag.text
}

fn head(plan: &Plan) -> String {
    let trials = plan.trials.len();
    format!(
        "# {trials} trials, written by poolcast {}. In its directory: condor_submit_dag pipeline.dag\n\
         # A trial that fails for good is recorded in trials/, and the others go on: see condor/node.sh.\n\
         NODE_STATUS_FILE pipeline.status {STATUS_EVERY_S}\n\
         MAXJOBS trials {}\n",
        env!("CARGO_PKG_VERSION"),
        plan.config.dag.max_jobs
    )
}

struct Dag<'a> {
    plan: &'a Plan,
    text: String,
}

impl Dag<'_> {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// A node that runs `condor/STEP.sub` with `macros`.
    fn node(&mut self, name: &str, step: &str, macros: &[(&str, &str)]) {
        let all = [("JOB", name), ("image", &self.plan.image)].into_iter().chain(macros.iter().copied());
        let vars = all.map(|(key, value)| format!(" {key}=\"{value}\"")).collect::<String>();
        self.text += &format!("\nJOB {name} condor/{step}.sub\nVARS {name}{vars}\nRETRY {name} 2 UNLESS-EXIT 2\n");
    }

    /// Makes a failure that is final a record in the file `failed`, and a success of the node.
    fn may_fail(&mut self, name: &str, failed: &str) {
        self.line(&format!(
            "SCRIPT POST {name} /bin/sh condor/node.sh ended {failed} logs/{name}.err $JOB $RETURN $RETRY $MAX_RETRIES"
        ));
    }

    /// Skips the node where the script answers its `question` with [`SKIP`].
    fn skip(&mut self, name: &str, question: &str) {
        self.line(&format!("SCRIPT PRE {name} /bin/sh condor/node.sh {question}"));
        self.line(&format!("PRE_SKIP {name} {SKIP}"));
    }

    fn tensors(&mut self) {
        for name in self.plan.tensors.keys() {
            let node = format!("tensors-{name}");
            self.node(&node, "tensors", &[("tensors", name), ("config", &format!("tensors/{name}.yaml"))]);
            self.may_fail(&node, &format!("tensors/{name}.failed"));
            self.line(&format!("PARENT parse CHILD {node}"));
        }
    }

    fn trial(&mut self, trial: &Trial) {
        let failed = format!("trials/trial-{}.failed", trial.padded());
        let mut parent = format!("tensors-{}", trial.tensors);
        for (node, epoch) in train_nodes(self.plan, trial) {
            let options = epoch.map(|epoch| format!("--until-epoch {epoch}")).unwrap_or_default();
            self.trial_node(&node, "train", trial, &[("options", &options)]);
            self.line(&format!("CATEGORY {node} trials"));
            match epoch {
                None | Some(1) => self.skip(&node, &format!("begin tensors/{}.failed {failed}", trial.tensors)),
                Some(_) => self.skip(&node, &format!("epoch {failed} trials/trial-{}/metrics.json", trial.padded())),
            }
            self.may_fail(&node, &failed);
            self.line(&format!("PARENT {parent} CHILD {node}"));
            parent = node;
        }
        let node = format!("evaluate-{}", trial.padded());
        self.trial_node(&node, "evaluate", trial, &[]);
        self.skip(&node, &format!("begin {failed} {failed}"));
        self.may_fail(&node, &failed);
        self.line(&format!("PARENT {parent} CHILD {node}"));
    }

    fn trial_node(&mut self, node: &str, step: &str, trial: &Trial, more: &[(&str, &str)]) {
        let (number, config) = (trial.padded(), trial.config_file());
        let mut macros = vec![("trial", &*number), ("tensors", &*trial.tensors), ("config", &*config)];
        macros.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        self.node(node, step, &macros);
    }

    fn best(&mut self) {
        self.node("best", "best", &[]);
        for trial in &self.plan.trials {
            self.line(&format!("PARENT evaluate-{} CHILD best", trial.padded()));
        }
        // No job: what reports needs no execution point, and must not wait for one.
        self.line("\nFINAL report condor/best.sub NOOP");
        let name = [&*self.plan.config.wandb.sweep.name];
        let tidies = self.plan.config.dag.cleanup.then(|| [&name[..], &cleanup::ENTRIES].concat());
        self.line(&[&[cleanup::SCRIPT][..], &tidies.unwrap_or_default()].concat().join(" "));
    }

    /// The one parse of all logs, which a job finds side by side.
    fn parse(&mut self) {
        let name = |log: &String| log.rsplit('/').next().unwrap_or_default().to_owned();
        let names: Vec<String> = self.plan.logs.iter().map(name).collect();
        let parse = &self.plan.config.parse;
        let ap = parse.ap.iter().map(|ap| format!("--ap {ap}"));
        let options: Vec<String> = ap.chain(parse.year.iter().map(|year| format!("--year {year}"))).collect();
        let (logs, names, options) = (self.plan.logs.join(","), names.join(" "), options.join(" "));
        let macros = [("logs", &*logs), ("names", &*names), ("options", &*options)];
        self.node("parse", "parse", &macros.into_iter().filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>());
    }
}

/// The nodes that train `trial`, in order: one, or one for each epoch.
fn train_nodes(plan: &Plan, trial: &Trial) -> Vec<(String, Option<usize>)> {
    let name = format!("train-{}", trial.padded());
    match plan.config.dag.per_epoch {
        false => vec![(name, None)],
        true => (1..=plan.config.epochs).map(|epoch| (format!("{name}-{epoch:04}"), Some(epoch))).collect(),
    }
}
