//! `poolcast publish`: writes what `advise` needs of a run, for users who may not read the log.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::text::advice::shell_word;
use super::trained_run;
use poolcast_advice::{ModelFacts, ModelOrigin, PublishedModel};
use poolcast_base::error::{EXIT_DONE, unavailable};
use poolcast_base::files::StagedDirectory;
use poolcast_base::{archive, escape, manifest, output};
use poolcast_cli::PublishArgs;
use poolcast_holds::answers::{ANSWERS_FORMAT, LearnedAnswers};
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::training::RunModels;
use poolcast_sweep::config::Config;
use poolcast_sweep::{self as sweep, condor};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Document that `--json` prints.
#[derive(Serialize)]
struct PublishedDocument<'a> {
    out: &'a Path,
    learned_ms: i64,
    access_points: &'a [String],
    model: Option<&'a ModelFacts>,
}

/// Publishes the model of a run, and prints what it has.
pub fn run(args: &PublishArgs) -> Result<u8> {
    let results = condor::results_directory(&args.run)?;
    let model = published_model(&results)?;
    let key = manifest::finished_key(&sweep::answers_dir(&results), ANSWERS_FORMAT);
    let key = key.unwrap_or_default();
    let is_file = args.out.extension().is_some_and(|end| end == "tar");
    if is_file {
        let staging = StagedDirectory::new(&args.out.with_extension("tar.published"), false)?;
        model.write(&staging.path().join("model"), &key)?;
        archive::pack(staging.path(), &args.out)?;
    } else {
        model.write(&args.out, &key)?;
    }

    let document = PublishedDocument {
        out: &args.out,
        learned_ms: model.answers.known_ms,
        access_points: &model.origin.access_points,
        model: model.origin.facts.as_ref(),
    };
    if args.output.json {
        output::print_json(SCHEMA_VERSION, &document)?;
    } else {
        output::print(&document.text(is_file))?;
    }
    Ok(EXIT_DONE)
}

/// Collects what `advise` needs of the run in `results`.
fn published_model(results: &Path) -> Result<PublishedModel> {
    let answers_dir = sweep::answers_dir(results);
    let (answers, run, facts) = if sweep::has_no_model(results) {
        let answers = LearnedAnswers::open_alone(&answers_dir)?;
        (answers, results.to_owned(), None)
    } else {
        let run = sweep::resolve_run(results)?;
        let models = RunModels::open(&run)?;
        let facts = ModelFacts::from(models.at_moment(i64::MAX));
        (LearnedAnswers::open(&answers_dir)?, run, Some(facts))
    };
    let answers = answers.with_context(|| {
        unavailable(
            format!(
                "`{}` has nothing to publish: it has learned no answers",
                results.display()
            ),
            "learn from a longer log: poolcast run --log LOG",
        )
    })?;
    Ok(PublishedModel {
        answers,
        origin: ModelOrigin {
            facts,
            ..trained_run::model_origin(&run, results)
        },
        settings: AdviceConfig {
            site_model: None,
            ..Config::read(&run)?.advice
        },
    })
}

impl PublishedDocument<'_> {
    fn text(&self, is_file: bool) -> String {
        let out = escape::path(self.out);
        let argument = shell_word(&self.out.to_string_lossy());
        let learned = output::utc_time(self.learned_ms);
        let use_it = if is_file {
            format!("unpack it: tar -xf {argument} && poolcast advise model --log LOG")
        } else {
            format!("use it: poolcast advise {argument} --log LOG")
        };
        format!("{out}: what was learned until {learned}, for everyone to read\n{use_it}\n")
    }
}
