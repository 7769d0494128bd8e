//! Parses a `JobID` of `sacct` into the jobs that it names. Pending elements of an array share one
//! row.

use super::row_fault::RowFault;
use super::trace_job::{JobNumber, JobPart};

/// Maximum number of array elements in one row.
const MAX_ELEMENTS: usize = 100_000;

/// The jobs that a `JobID` names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NamedJobs {
    /// A single job.
    One(JobNumber),
    /// Elements of an array.
    Several(Vec<JobNumber>),
    /// A step of a job. Steps hold no nodes of their own.
    Step,
}

/// Parses `12`, `12_3`, `12+1`, `12_[3,5-9:2%4]`, and steps such as `12.batch`.
pub(super) fn parse_job_id(text: &str) -> Result<NamedJobs, RowFault> {
    // Only look for a dot before the list: Slurm truncates a long list with dots.
    let before_list = text.split('[').next().unwrap_or_default();
    if before_list.contains('.') {
        return Ok(NamedJobs::Step);
    }
    if let Some((number, tasks)) = text.split_once('_') {
        let number = parse_number(number)?;
        let list = tasks
            .strip_prefix('[')
            .and_then(|tasks| tasks.strip_suffix(']'));
        return match list {
            Some(list) => parse_elements(number, list),
            None => Ok(NamedJobs::One(JobNumber {
                part: JobPart::ArrayTask(parse_index(tasks)?),
                ..JobNumber::single(number)
            })),
        };
    }
    if let Some((number, offset)) = text.split_once('+') {
        return Ok(NamedJobs::One(JobNumber {
            part: JobPart::HetOffset(parse_index(offset)?),
            ..JobNumber::single(parse_number(number)?)
        }));
    }
    Ok(NamedJobs::One(JobNumber::single(parse_number(text)?)))
}

/// Counts the elements of the array `number` in the list `tasks`, such as `1-10%2`.
pub fn elements_of_array(number: u64, tasks: &str) -> Result<usize, RowFault> {
    match parse_elements(number, tasks)? {
        NamedJobs::Several(elements) => Ok(elements.len()),
        NamedJobs::One(_) | NamedJobs::Step => Ok(1),
    }
}

fn parse_elements(number: u64, list: &str) -> Result<NamedJobs, RowFault> {
    let list = list.split('%').next().unwrap_or_default();
    let mut elements = Vec::new();
    for part in list.split(',') {
        if part == "..." {
            break;
        }
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (parse_index(first)?, parse_index(last)?);
        let step = parse_index(step)?.max(1);
        if first > last {
            return Err(RowFault::JobId);
        }
        let count = ((last - first) / step) as usize + 1;
        if elements.len() + count > MAX_ELEMENTS {
            return Err(RowFault::LongArray);
        }
        for task in (first..=last).step_by(step as usize) {
            elements.push(JobNumber {
                part: JobPart::ArrayTask(task),
                ..JobNumber::single(number)
            });
        }
    }
    Ok(NamedJobs::Several(elements))
}

fn parse_number(text: &str) -> Result<u64, RowFault> {
    let number = text.parse().map_err(|_| RowFault::JobId)?;
    // The number is stored as parsed. `parse` accepts a plus sign, but Slurm never writes one.
    if text.starts_with('+') || number > i64::MAX as u64 {
        return Err(RowFault::JobId);
    }
    Ok(number)
}

fn parse_index(text: &str) -> Result<u32, RowFault> {
    let index: u32 = text.parse().map_err(|_| RowFault::JobId)?;
    if text.starts_with('+') || index > i32::MAX as u32 {
        return Err(RowFault::JobId);
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(text: &str) -> Vec<String> {
        match parse_job_id(text).expect("a job id") {
            NamedJobs::One(job) => vec![job.to_string()],
            NamedJobs::Several(jobs) => jobs.iter().map(ToString::to_string).collect(),
            NamedJobs::Step => Vec::new(),
        }
    }

    #[test]
    fn job_ids_of_jobs_elements_and_steps_are_parsed() {
        assert_eq!(tasks("12"), ["12"]);
        assert_eq!(tasks("12_3"), ["12_3"]);
        assert_eq!(tasks("12+1"), ["12+1"]);
        assert_eq!(tasks("8_[1,4-8:2%2]"), ["8_1", "8_4", "8_6", "8_8"]);
        assert_eq!(tasks("8_[1-2,...]"), ["8_1", "8_2"]);
        for step in ["12.batch", "12_3.0", "12+1.extern"] {
            assert_eq!(parse_job_id(step), Ok(NamedJobs::Step));
        }
        for (text, fault) in [
            ("", RowFault::JobId),
            ("x", RowFault::JobId),
            ("12_", RowFault::JobId),
            ("12_[5-1]", RowFault::JobId),
            ("12_[0-4000000]", RowFault::LongArray),
            ("12_[0-99999999999]", RowFault::JobId),
        ] {
            assert_eq!(parse_job_id(text), Err(fault), "{text}");
        }
    }
}
