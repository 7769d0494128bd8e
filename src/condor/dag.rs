//! A plan → `pipeline.dag`, in DAGMan's words.

use super::cleanup;
use super::parts::Part;
use super::plan::{Plan, Source};
use super::shared::archive_name;

/// What PRE scripts exit with where there is nothing to do for a node.
const SKIP: u8 = 10;

/// How often DAGMan writes the status of the nodes, in seconds, also where nothing has changed: so it is seen that it lives.
const STATUS_EVERY_S: u32 = 30;

/// The node that packs what was made before the first job.
const SHARE: &str = "share";

/// How a job gets a directory that it does not get from the access point.
struct Fetched {
    /// The archive that HTCondor fetches for it.
    address: String,
    /// The option of poolcast's that unpacks it.
    option: String,
}

/// The text of the DAG. Its paths are relative to its directory, where it is to be submitted.
pub(super) fn text(plan: &Plan) -> String {
    let mut dag = Dag {
        plan,
        text: head(plan),
    };
    if let Source::Logs(logs) = &plan.source {
        dag.parse(logs);
    }
    if plan.shared.is_some() {
        dag.share();
    }
    plan.tensors.keys().for_each(|name| dag.tensors(name));
    plan.parts.iter().for_each(|part| dag.part(part));
    dag.best();
    dag.text
}

fn head(plan: &Plan) -> String {
    format!(
        "# {} in {}, written by poolcast {}. In its directory: condor_submit_dag pipeline.dag\n\
         # What fails for good is recorded in rows/ and tensors/, and the others go on: see condor/node.sh.\n\
         NODE_STATUS_FILE pipeline.status {STATUS_EVERY_S} ALWAYS-UPDATE\n\
         MAXJOBS trials {}\n",
        crate::output::counted(plan.trials, "trial"),
        crate::output::counted(plan.parts.len(), "job"),
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
        let all = [("JOB", name), ("image", &self.plan.image)]
            .into_iter()
            .chain(macros.iter().copied());
        let all = all.filter(|(_, value)| !value.is_empty());
        let vars = all
            .map(|(key, value)| format!(" {key}=\"{value}\""))
            .collect::<String>();
        self.text += &format!(
            "\nJOB {name} condor/{step}.sub\nVARS {name}{vars}\nRETRY {name} 2 UNLESS-EXIT 2\n"
        );
    }

    /// Makes a failure that is final a record in the file `failed`, and a success of the node. What the job `left` of a part
    /// is taken to its place first; tensors that it left are packed for the jobs that share them.
    fn may_fail(&mut self, name: &str, failed: &str, left: &str) {
        let words =
            format!("ended {failed} logs/{name}.err $JOB $RETURN $RETRY $MAX_RETRIES {left}");
        self.line(format!("SCRIPT POST {name} /bin/sh condor/node.sh {words}").trim_end());
    }

    /// Skips the node where the script answers its `question` with [`SKIP`].
    fn skip(&mut self, name: &str, question: &str) {
        self.line(&format!(
            "SCRIPT PRE {name} /bin/sh condor/node.sh {question}"
        ));
        self.line(&format!("PRE_SKIP {name} {SKIP}"));
    }

    /// Packs what was made before the first job, for the jobs that fetch it. No job either: it is a script's work.
    fn share(&mut self) {
        let input = self.plan.source.dir();
        self.line(&format!("\nJOB {SHARE} condor/best.sub NOOP"));
        self.line(&format!("RETRY {SHARE} 2"));
        self.line(&format!(
            "SCRIPT PRE {SHARE} /bin/sh condor/node.sh share {input} logs/{SHARE}.err"
        ));
        if matches!(self.plan.source, Source::Logs(_)) {
            self.line(&format!("PARENT parse CHILD {SHARE}"));
        }
    }

    fn tensors(&mut self, name: &str) {
        let node = format!("tensors-{name}");
        let events = self.fetched(self.plan.source.dir());
        let mut macros = vec![("tensors", name.to_owned())];
        macros.push(("config", format!("tensors/{name}.yaml")));
        let mut left = String::new();
        if let Some(events) = events {
            macros.push(("inputs", events.address));
            macros.push(("options", events.option));
            left = format!("tensors/{name}");
        }
        let macros: Vec<(&str, &str)> = macros
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.node(&node, "tensors", &macros);
        self.may_fail(&node, &format!("tensors/{name}.failed"), &left);
        if self.plan.shared.is_some() {
            self.line(&format!("PARENT {SHARE} CHILD {node}"));
        } else if matches!(self.plan.source, Source::Logs(_)) {
            self.line(&format!("PARENT parse CHILD {node}"));
        }
    }

    /// How a job gets the directory `input` where it is shared.
    fn fetched(&self, input: &str) -> Option<Fetched> {
        let shared = self.plan.shared.as_ref()?;
        Some(Fetched {
            address: shared.address_of(input),
            option: format!("--unpack {}", archive_name(input)),
        })
    }

    fn part(&mut self, part: &Part) {
        let failed = format!("rows/{}.failed", part.name);
        let dir = format!("parts/{}", part.name);
        let learned_from = match &part.tensors {
            Some(name) => format!("tensors/{name}"),
            None => self.plan.source.dir().to_owned(),
        };
        let fetched = self.fetched(&learned_from);
        let mut inputs = fetched
            .as_ref()
            .map_or(learned_from, |fetched| fetched.address.clone());
        if part.tensors.is_some() {
            inputs = format!("events/manifest.json,{inputs}");
        }
        let mut parent = match &part.tensors {
            Some(name) => Some(format!("tensors-{name}")),
            None => fetched.as_ref().map(|_| SHARE.to_owned()),
        };
        for (node, epoch) in self.nodes_of(part) {
            let until_epoch = epoch.map(|epoch| format!("--until-epoch {epoch}"));
            let unpack = fetched.as_ref().map(|fetched| fetched.option.clone());
            let options = Vec::from_iter(until_epoch.into_iter().chain(unpack)).join(" ");
            let (trials, name) = (part.ranges(), &*part.name);
            self.node(
                &node,
                "trials",
                &[
                    ("part", name),
                    ("trials", &trials),
                    ("inputs", &inputs),
                    ("options", &options),
                ],
            );
            self.line(&format!("CATEGORY {node} trials"));
            match (&part.tensors, epoch) {
                (_, Some(2..)) => {
                    self.skip(&node, &format!("epoch {failed} rows/{}.jsonl", part.name))
                }
                (Some(name), _) => {
                    self.skip(&node, &format!("begin tensors/{name}.failed {failed}"))
                }
                (None, _) => {}
            }
            self.may_fail(&node, &failed, &dir);
            if let Some(parent) = parent.replace(node.clone()) {
                self.line(&format!("PARENT {parent} CHILD {node}"));
            }
        }
    }

    /// The nodes that do the trials of `part`, in order: one, or one for each epoch.
    fn nodes_of(&self, part: &Part) -> Vec<(String, Option<usize>)> {
        match self.plan.config.dag.per_epoch {
            false => vec![(part.name.clone(), None)],
            true => (1..=self.plan.config.epochs)
                .map(|epoch| (format!("{}-{epoch:04}", part.name), Some(epoch)))
                .collect(),
        }
    }

    /// The choice among all trials, the scores of what was chosen, and the report.
    fn best(&mut self) {
        self.node("best", "best", &[("source", self.plan.source.dir())]);
        self.line("SCRIPT POST best /bin/sh condor/node.sh take $RETURN best");
        for part in &self.plan.parts {
            if let Some((last, _)) = self.nodes_of(part).pop() {
                self.line(&format!("PARENT {last} CHILD best"));
            }
        }
        self.node("evaluate", "evaluate", &[]);
        self.line("SCRIPT PRE evaluate /bin/sh condor/node.sh chosen");
        self.line("SCRIPT POST evaluate /bin/sh condor/node.sh take $RETURN evaluated");
        self.line("PARENT best CHILD evaluate");

        // No job: what reports needs no execution point, and must not wait for one.
        self.line("\nFINAL report condor/best.sub NOOP");
        let name = [&*self.plan.config.wandb.sweep.name];
        let tidies = self
            .plan
            .config
            .dag
            .cleanup
            .then(|| [&name[..], &cleanup::ENTRIES].concat());
        self.line(
            &[&[cleanup::SCRIPT][..], &tidies.unwrap_or_default()]
                .concat()
                .join(" "),
        );
    }

    /// The one parse of all logs, which a job finds side by side.
    fn parse(&mut self, logs: &[String]) {
        let names: Vec<&str> = logs
            .iter()
            .map(|log| log.rsplit('/').next().unwrap_or_default())
            .collect();
        let parse = &self.plan.config.parse;
        let ap = parse.ap.iter().map(|ap| format!("--ap {ap}"));
        let options: Vec<String> = ap
            .chain(parse.year.iter().map(|year| format!("--year {year}")))
            .collect();
        let (logs, names, options) = (logs.join(","), names.join(" "), options.join(" "));
        self.node(
            "parse",
            "parse",
            &[("logs", &logs), ("names", &names), ("options", &options)],
        );
    }
}
