//! The table of the input files of jobs in a shard. Only jobs whose ads name their inputs have rows.

use anyhow::{Result, ensure};

use htcondor_eventlog::InputFile;
use poolcast_base::column_table;

/// An input file of the job with the index `job` in its shard.
pub(super) struct InputOfJob {
    pub(super) job: u32,
    pub(super) input: InputFile,
}

column_table! {
    /// Input files, to write.
    pub(super) struct InputColumns from |row: &InputOfJob|;

    /// Input files, to read.
    pub(super) struct InputRows<'a>;

    input_job: u32 = row.job,
    input_file: u32 = row.input.file,
    input_origin: u32 = row.input.origin,
}

impl<'a> InputRows<'a> {
    /// Checks everything that [`InputRows::of_job`] relies on.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.have_length(self.input_job.len()) && self.input_job.is_sorted(),
            "its table of input files is damaged"
        );
        Ok(())
    }

    /// Returns the input files of job `job` of the shard.
    pub(super) fn of_job(&self, job: u32) -> impl Iterator<Item = InputFile> + use<'a> {
        let begin = self.input_job.partition_point(|&other| other < job);
        let count = self.input_job[begin..].partition_point(|&other| other == job);
        let InputRows {
            input_file,
            input_origin,
            ..
        } = self.slice(begin..begin + count);
        let pairs = input_file.iter().zip(input_origin);
        pairs.map(|(&file, &origin)| InputFile { file, origin })
    }
}
