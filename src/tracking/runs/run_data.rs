//! What the runs of a directory learned from, for trackers: which program, which log, which samples. It has no paths,
//! hosts, owners or names of logs.

use std::path::Path;

use serde_json::{Map, Value, json};

use poolcast_base::{manifest, output, program};
use poolcast_events::{EVENTS_FORMAT, StoreSummary};
use poolcast_sweep as sweep;
use poolcast_sweep::config::Config;
use poolcast_tensors::{Split, TENSORS_FORMAT, TensorSummary};

/// Name of these facts in the configuration of a run.
pub(crate) const DATA: &str = "data";

/// Key of the digest of the inputs among the facts.
pub(crate) const DIGEST: &str = "digest";

/// Number of the event that says that a job was held.
const HELD: u16 = 12;

/// Length of a digest that is sent, in hexadecimal digits.
const DIGEST_LENGTH: usize = 16;

/// Returns the facts that the files in `dir`, with the configuration `config`, give. A DAG whose logs and samples were not fetched has fewer.
pub(super) fn run_data(dir: &Path, config: &Config) -> Map<String, Value> {
    let mut facts = Map::new();
    let made_with = format!("{} {}", env!("CARGO_PKG_VERSION"), program::commit());
    facts.insert("program".to_owned(), json!(made_with));
    let inputs = input_digest(dir);
    facts.extend(inputs.map(|digest| (DIGEST.to_owned(), json!(digest))));

    let events = manifest::read::<StoreSummary>(&sweep::events_dir(dir), EVENTS_FORMAT);
    if let Ok(events) = events {
        add_log(&mut facts, &events.body);
    }
    if let Some(samples) = only_samples(dir, config) {
        add_samples(&mut facts, &samples);
    }
    facts
}

/// Returns the digest of the log, the table or the samples that the manifest in `dir` names.
fn input_digest(dir: &Path) -> Option<String> {
    let document: Value = manifest::read_json(&dir.join(manifest::FILE)).ok()?;
    let named = ["source_key", "tensors_key"].map(|key| document[key].as_str());
    let digest = named.into_iter().flatten().next()?;
    Some(digest.chars().take(DIGEST_LENGTH).collect())
}

fn add_log(facts: &mut Map<String, Value>, events: &StoreSummary) {
    let contents: String = events.sources.iter().map(|log| &*log.xxh3).collect();
    let mut digest = manifest::sha256(contents.as_bytes());
    digest.truncate(DIGEST_LENGTH);
    let holds = events.events_by_number.get(&HELD).copied().unwrap_or(0);
    facts.extend([
        ("log_digest".to_owned(), json!(digest)),
        (
            "log_begin".to_owned(),
            json!(output::utc_time(events.begin_ms)),
        ),
        ("log_end".to_owned(), json!(output::utc_time(events.end_ms))),
        ("holds".to_owned(), json!(holds)),
    ]);
}

/// Returns the samples in `dir`, if all its trials have the same. Otherwise a trial's hyper-parameters say which it has.
/// Workers make the samples of a trial when they begin it, so a search over samples may not have all of them yet.
fn only_samples(dir: &Path, config: &Config) -> Option<TensorSummary> {
    if config.preprocessing.parameters.drawn().next().is_some() {
        return None;
    }
    let mut sets = fs_err::read_dir(dir.join("tensors")).ok()?;
    let only = sets.next()?.ok()?;
    if sets.next().is_some() {
        return None;
    }
    let samples = manifest::read::<TensorSummary>(&only.path(), TENSORS_FORMAT);
    samples.ok().map(|samples| samples.body)
}

fn add_samples(facts: &mut Map<String, Value>, samples: &TensorSummary) {
    facts.insert("split".to_owned(), json!(samples.settings.split));
    for split in Split::ALL {
        let count = samples.splits.get(&split).map_or(0, |known| known.samples);
        facts.insert(format!("samples_{}", split.name()), json!(count));
    }
}
