//! Pools rows into the prior that ships with the program, and learns the model of logs without an
//! outcome from it: `pool_prior PRIOR MODEL SOURCE...`. A source is a contribution that `poolcast share` wrote, or the events of a log that was made for such purposes
//! and whose owners need no protection.

use std::path::Path;

use anyhow::{Context as _, Result};
use poolcast_base::files;
use poolcast_events::EventStore;
use poolcast_holds::answers::{Contribution, HoldHistory, Prior, PriorModel};

fn main() -> Result<()> {
    let mut paths = std::env::args_os().skip(1);
    let prior_path = paths.next().context("name the file of the prior")?;
    let model_path = paths.next().context("name the file of the model")?;
    let sources = paths.map(|path| read_source(Path::new(&path)));
    let sources: Vec<Contribution> = sources.collect::<Result<_>>()?;
    let prior = Prior::pool(&sources);
    files::write_atomic(Path::new(&prior_path), &prior.bytes()?)?;
    files::write_atomic(Path::new(&model_path), &PriorModel::learn(&prior)?.bytes()?)
}

fn read_source(path: &Path) -> Result<Contribution> {
    if !path.is_dir() {
        return Contribution::read(path);
    }
    let store = EventStore::open(path)?;
    Ok(Contribution::collect(&HoldHistory::new(&store), 0).0)
}
