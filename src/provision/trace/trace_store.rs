//! Stores and opens traces: shards of jobs, and a manifest that is written last.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::local_time::TraceZone;
use super::source_file::TraceSource;
use super::trace_columns::{TraceColumns, TraceSlices};
use super::trace_job::{JobFate, TraceJob};
use poolcast_base::error::hinted;
use poolcast_base::files::StagedDirectory;
use poolcast_base::manifest::{self, Checksum};
use poolcast_base::shard::{ArtefactFormat, ShardLayout};

/// The format of stored traces.
pub const TRACE_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "trace",
    version: 1,
    rebuild: "poolcast provision trace FILE... -o TRACE",
};

/// Jobs per shard.
const SHARD_JOBS: usize = 1 << 20;

/// The body of a trace's manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TraceSummary {
    /// The source files.
    pub sources: Vec<TraceSource>,
    /// The time zone of the cluster.
    pub zone: String,
    /// The digest of the salt for user hashes. Equal digests mean that two traces hash users with
    /// one salt.
    pub owner_salt_digest: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of jobs by fate: `pending`, `running`, `cancelled` while they waited, or `ended`
    /// after a run.
    pub fates: BTreeMap<JobFate, u64>,
    /// Jobs without a time limit of their own.
    pub without_limit: u64,
    /// Rows that were dropped because another row about the same run is as complete or more
    /// complete.
    pub repeated_rows: u64,
    /// The first submission, in seconds of the epoch.
    pub begin_s: i64,
    /// The last time in the trace, in seconds of the epoch.
    pub end_s: i64,
    /// The files of the trace.
    #[serde(default)]
    shards: Vec<ListedTraceShard>,
}

/// A shard, as listed in the manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ListedTraceShard {
    /// Name of the file.
    file: String,
    /// Number of its jobs.
    jobs: usize,
    /// Digest of the file.
    xxh3: String,
}

impl TraceSummary {
    /// Summarizes `jobs`, which must be in order of submission.
    pub fn of(jobs: &[TraceJob], sources: Vec<TraceSource>, zone: &TraceZone) -> TraceSummary {
        let mut fates = BTreeMap::new();
        let mut end_s = i64::MIN;
        let mut without_limit = 0;
        for job in jobs {
            *fates.entry(job.fate).or_insert(0) += 1;
            let last_s = job.end_s.get().or(job.start_s.get());
            let last_s = last_s.unwrap_or(job.submit_s);
            end_s = end_s.max(last_s);
            without_limit += u64::from(job.limit_s.get().is_none());
        }
        TraceSummary {
            sources,
            zone: zone.name.clone(),
            owner_salt_digest: String::new(),
            jobs: jobs.len(),
            fates,
            without_limit,
            repeated_rows: 0,
            begin_s: jobs.first().map_or(0, |job| job.submit_s),
            end_s,
            shards: Vec::new(),
        }
    }

    /// The number of nodes of the cluster, if a source file states it.
    pub fn cluster_nodes(&self) -> Option<u32> {
        let stated = self.sources.iter();
        stated.filter_map(|source| source.cluster_nodes).max()
    }
}

/// Writes `jobs` into the directory `out`, and replaces an earlier trace there if `overwrite` is
/// true.
///
/// # Errors
/// Fails if `out` holds anything else, or cannot be written.
pub fn write_trace(
    jobs: &[TraceJob],
    summary: &TraceSummary,
    key: &str,
    out: &Path,
    overwrite: bool,
) -> Result<()> {
    let staging = StagedDirectory::new(out, overwrite)?;
    let mut summary = summary.clone();
    let mut columns = TraceColumns::with_capacity(jobs.len().min(SHARD_JOBS));
    for (number, part) in jobs.chunks(SHARD_JOBS).enumerate() {
        columns.clear();
        columns.extend(part);
        let file = format!("trace-{number:05}.safetensors");
        let layout = ShardLayout::new(TRACE_FORMAT, &"jobs", columns.named())?;
        layout.write(&staging.path().join(&file))?;
        summary.shards.push(ListedTraceShard {
            file,
            jobs: part.len(),
            xxh3: Checksum::of(layout.parts()),
        });
    }
    manifest::write(staging.path(), TRACE_FORMAT, key, &summary)?;
    staging.commit()
}

/// All jobs of a trace, in order of submission.
#[derive(Debug)]
pub struct JobTrace {
    /// The body of the manifest.
    pub summary: TraceSummary,
    /// The jobs.
    pub jobs: Vec<TraceJob>,
    /// The time zone of the cluster.
    pub zone: TraceZone,
}

impl JobTrace {
    /// Reads the trace in `dir`, and checks its shards against the manifest.
    pub fn open(dir: &Path) -> Result<JobTrace> {
        let summary: TraceSummary = manifest::read(dir, TRACE_FORMAT)?.body;
        let zone = TraceZone::named(&summary.zone)?;
        let mut jobs = Vec::with_capacity(summary.jobs.min(1 << 24));
        for listed in &summary.shards {
            let shard = manifest::open_shard(dir, &listed.file, &listed.xxh3, TRACE_FORMAT)?;
            TraceSlices::read_jobs(&shard, listed.jobs, &mut jobs).with_context(|| {
                hinted(
                    format!("`{}` is not usable", shard.path().display()),
                    format!("recreate it with `{}`", TRACE_FORMAT.rebuild),
                )
            })?;
        }
        Ok(JobTrace {
            summary,
            jobs,
            zone,
        })
    }
}
