//! `poolcast publish`: writes what `advise` needs of a run, for users who may not read the log, if it
//! is better than the rules for hold codes alone.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::run_answers::RunAnswers;
use super::text::advice::shell_word;
use poolcast_advice::PublishedModel;
use poolcast_base::error::{EXIT_DONE, unavailable};
use poolcast_base::files::StagedDirectory;
use poolcast_base::{archive, escape, manifest, output};
use poolcast_cli::PublishArgs;
use poolcast_holds::answers::ANSWERS_FORMAT;
use poolcast_holds::config::{AdviceConfig, default_members};
use poolcast_holds::rehearsal::{Proportion, RehearsalTally};
use poolcast_sweep::config::Config;
use poolcast_sweep::{self as sweep, condor};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Document that `--json` prints.
#[derive(Serialize)]
struct PublishedDocument<'a> {
    /// The directory or file to write.
    out: &'a Path,
    /// False if the rehearsal of the run does not show that the model is better than rules: then
    /// nothing was written.
    is_published: bool,
    /// End of the time that the model learned from, epoch ms.
    learned_ms: i64,
    /// The access points that it learned from.
    access_points: &'a [String],
}

/// Publishes the model of a run, unless rules alone are as good, and prints what it has.
pub fn run(args: &PublishArgs) -> Result<u8> {
    let results = condor::results_directory(&args.run)?;
    let model = published_model(&results)?;
    let tally = RehearsalTally::read(&results)?.unwrap_or_default();
    let is_published = tally.beats_rules();
    let is_file = args.out.extension().is_some_and(|end| end == "tar");
    if is_published {
        write(&model, &results, &args.out, is_file)?;
    } else {
        output::note(&unpublished_words(&tally, &args.out));
    }

    let document = PublishedDocument {
        out: &args.out,
        is_published,
        learned_ms: model.answers.known_ms,
        access_points: &model.origin.access_points,
    };
    if args.output.json {
        output::print_json(SCHEMA_VERSION, &document)?;
    } else if is_published {
        output::print(&document.text(is_file))?;
    }
    Ok(EXIT_DONE)
}

/// Writes `model`, which is of the run in `results`, to the directory or tar file `out`.
fn write(model: &PublishedModel, results: &Path, out: &Path, is_file: bool) -> Result<()> {
    let key = manifest::finished_key(&sweep::answers_dir(results), ANSWERS_FORMAT);
    let key = key.unwrap_or_default();
    if !is_file {
        return model.write(out, &key);
    }
    let staging = StagedDirectory::new(&out.with_extension("tar.published"), false)?;
    model.write(&staging.path().join("model"), &key)?;
    archive::pack(staging.path(), out)
}

/// Says why nothing was written to `out`.
fn unpublished_words(tally: &RehearsalTally, out: &Path) -> String {
    let Proportion { count: right, of } = tally.advice.kind_right;
    let of_rules = tally.rules.kind_right.count;
    let what_answers = if out.exists() {
        "it stays as it was"
    } else {
        "rules answer without a model"
    };
    format!(
        "`{}` was not written, and {what_answers}: rehearsed on its log, the model was right about the kind of {right} of {}, \
         and the rules for hold codes alone about {of_rules}",
        out.display(),
        output::counted(of, "fault")
    )
}

/// Collects what `advise` needs of the run in `results`.
fn published_model(results: &Path) -> Result<PublishedModel> {
    let RunAnswers { learned, origin } = RunAnswers::open(results)?;
    let answers = learned.with_context(|| {
        unavailable(
            format!(
                "`{}` has nothing to publish: it has learned no answers",
                results.display()
            ),
            "learn from a longer log: poolcast learn --log LOG",
        )
    })?;
    Ok(PublishedModel {
        answers,
        origin,
        settings: AdviceConfig {
            site_model: None,
            // Directories of this site mean nothing elsewhere.
            members: default_members()?,
            ..Config::read(&sweep::resolve_run(results)?)?.advice
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
