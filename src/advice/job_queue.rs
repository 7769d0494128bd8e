//! Reads the held jobs from the output of `condor_q -json`, and corrects advice by them.

use std::io::BufRead;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::job_advice::JobAdvice;
use super::listed_jobs::{SkippedJobs, read_listed_jobs};
use super::queued_job::{CodeTexts, CommonValues, QueuedJob};
use poolcast_base::shared_text::SharedText;
use poolcast_holds::job_ads::{ListedAd, job_status};

/// The job attributes that this program requests from `condor_q`.
pub const QUEUE_ATTRIBUTES: &str = "ClusterId,ProcId,JobStatus,GlobalJobId,Owner,QDate,EnteredCurrentStatus,HoldReasonCode,\
    HoldReasonSubCode,HoldReason,NumHolds,NumJobStarts,RequestMemory,MemoryUsage,ResidentSetSize,PeriodicRelease,\
    Iwd,Cmd,TransferExecutable,ContainerImageFullPath,DiskUsage,DAGNodeName,JobSubmitFile";

/// Jobs after which the memory of a list that gets shorter is returned.
const JOBS_PER_SHRINK: usize = 1 << 14;

/// The held jobs in a queue.
#[derive(Debug, Clone)]
pub struct JobQueue {
    /// The jobs, sorted by cluster and proc.
    held: Vec<QueuedJob>,
    skipped: Option<SkippedJobs>,
}

/// The agreement between the log and the queue on the held jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueAgreement {
    /// Jobs that are held in the queue.
    pub held: usize,
    /// Jobs that are held in the queue, but whose hold is not in the log.
    pub not_in_log: usize,
    /// Jobs that are held in the log but not in the queue. They get no advice.
    pub not_in_queue: usize,
    /// Jobs in the output of `condor_q` that cannot be read; absent if there are none.
    pub skipped: Option<SkippedJobs>,
}

impl JobQueue {
    /// Reads the output of `condor_q -json` from `input`. An empty input means an empty queue. Jobs
    /// that cannot be read are skipped and counted, and a job that is listed twice counts once.
    ///
    /// # Errors
    /// Fails if `input` cannot be read, or if it is not a complete JSON list.
    pub fn read(input: impl BufRead) -> Result<JobQueue> {
        let mut common = CommonValues::new();
        let query = format!("condor_q -allusers -json -attributes {QUEUE_ATTRIBUTES}");
        let read_job = |ad: &ListedAd| {
            let status = ad.get("JobStatus").and_then(Value::as_i64);
            let is_held = status == Some(job_status::HELD);
            is_held
                .then(|| QueuedJob::from_ad(ad, &mut common))
                .transpose()
        };
        let (held, skipped) = read_listed_jobs(input, query, read_job)?;
        let mut queue = JobQueue { held, skipped };
        queue.sort();
        Ok(queue)
    }

    /// Sorts the jobs by number, and drops those that were listed before. Several access points may
    /// have jobs of one number.
    fn sort(&mut self) {
        fn key(job: &QueuedJob) -> (i32, i32, Option<&str>) {
            (job.cluster, job.proc, job.ap.as_deref())
        }
        self.held.sort_by(|a, b| key(a).cmp(&key(b)));
        self.held.dedup_by(|later, first| key(later) == key(first));
        self.held.shrink_to_fit();
    }

    /// Returns the index in `held` of the job.
    fn place(&self, cluster: i32, proc: i32) -> Option<usize> {
        let number = (cluster, proc);
        let place = (self.held).partition_point(|job| (job.cluster, job.proc) < number);
        let is_it = |job: &QueuedJob| (job.cluster, job.proc) == number;
        self.held.get(place).is_some_and(is_it).then_some(place)
    }

    /// The jobs that were skipped, if there are any.
    pub fn skipped(&self) -> Option<SkippedJobs> {
        self.skipped
    }

    /// The number of held jobs.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// Returns true if the job is held in the queue.
    pub(super) fn has_held(&self, cluster: i32, proc: i32) -> bool {
        self.place(cluster, proc).is_some()
    }

    /// Corrects `advice` by the queue, which has the final say on which jobs are held. Drops advice
    /// on other jobs, and adds attributes that the log lacks. A job whose hold is not in the log
    /// gets advice by rule, for the prediction time `asked_ms`. `ap` is the access point of jobs
    /// for which the queue names none.
    pub fn correct(
        mut self,
        advice: Vec<JobAdvice>,
        ap: &str,
        asked_ms: i64,
    ) -> (Vec<JobAdvice>, QueueAgreement) {
        let (in_log, held) = (advice.len(), self.held.len());
        let mut is_known = vec![false; held];
        let mut all = Vec::with_capacity(held);
        let mut still_held = 0;
        for mut one in advice {
            let Some(place) = self.place(one.job.id.cluster, one.job.id.proc) else {
                continue;
            };
            still_held += 1;
            let job = &self.held[place];
            // A job may be in another hold than the one in the log: then the advice is outdated.
            if job.matches_hold_of(&one) {
                is_known[place] = true;
                job.add_to(&mut one);
                all.push(one);
            }
        }

        let agreement = QueueAgreement {
            held,
            not_in_log: is_known.iter().filter(|known| !**known).count(),
            not_in_queue: in_log - still_held,
            skipped: self.skipped,
        };
        let (ap, mut texts) = (SharedText::from(ap), CodeTexts::default());
        while let Some(job) = self.held.pop() {
            if !is_known[self.held.len()] {
                all.push(job.advice(&ap, asked_ms, &mut texts));
            }
            // The queue shrinks while the advice grows, so that memory holds both only in part.
            if self.held.len().is_multiple_of(JOBS_PER_SHRINK) {
                self.held.shrink_to_fit();
            }
        }
        // Sorting in place needs no memory for another list.
        all.sort_unstable_by(|a, b| (&a.job.ap, a.job.id).cmp(&(&b.job.ap, b.job.id)));
        (all, agreement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_command::JobId;
    use htcondor_holdreasons::{Outcome, ReasonKind, Thing};
    use poolcast_holds::decision::HoldAction;

    fn queue(text: &str) -> JobQueue {
        JobQueue::read(text.as_bytes()).expect("a queue")
    }

    /// The command for one job, which is limited to its hold since 100 s.
    fn guarded(program: &str, job: &str, arguments: &str) -> String {
        let (cluster, proc) = job.split_once('.').expect("an id");
        format!(
            "{program} -constraint 'JobStatus==5 && EnteredCurrentStatus<=102 && ClusterId=={cluster} && ProcId=={proc}'{arguments}"
        )
    }

    #[test]
    fn jobs_whose_hold_is_not_in_the_log_are_advised_on_by_rule() {
        let queue = queue(
            r#"[{"ClusterId": 7, "ProcId": 1, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "Owner": "ada",
                 "EnteredCurrentStatus": 100, "RequestMemory": 1000, "MemoryUsage": 2000, "NumJobStarts": 3, "GlobalJobId": "ap#7.1#9"},
                {"ClusterId": 7, "ProcId": 2, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "EnteredCurrentStatus": 100,
                 "RequestMemory": "/Expr(2 * $(reboot))/", "ResidentSetSize": 225280},
                {"ClusterId": 7, "ProcId": 3, "JobStatus": 5, "HoldReasonCode": 12},
                {"ClusterId": 8, "ProcId": 0, "JobStatus": 2}]"#,
        );
        let (advice, agreement) = queue.correct(Vec::new(), "log", 200_000);
        let said: Vec<_> = advice
            .iter()
            .map(|one| {
                let command = one.verdict.command.as_ref().map(ToString::to_string);
                (one.job.id.to_string(), one.verdict.action, command)
            })
            .collect();
        assert_eq!(
            said,
            [
                (
                    "7.1".to_owned(),
                    HoldAction::Fix,
                    Some(
                        guarded("condor_qedit", "7.1", " RequestMemory 3072")
                            .replace("=102 &&", "=102 && Owner==\"ada\" &&")
                    )
                ),
                (
                    "7.2".to_owned(),
                    HoldAction::Fix,
                    Some("condor_q -hold 7.2".to_owned())
                ),
                ("7.3".to_owned(), HoldAction::None, None),
            ]
        );
        assert_eq!(
            (agreement.held, agreement.not_in_log, agreement.not_in_queue),
            (3, 3, 0)
        );
        let shown = advice[1]
            .job
            .queue
            .as_ref()
            .and_then(|facts| facts.request_memory.as_deref());
        assert_eq!(shown, Some("2 * $(reboot)"));
    }

    /// Returns the command for a job that was held for memory, with `attributes` in the queue.
    fn memory_command(attributes: &str) -> Option<String> {
        let queue = queue(&format!(
            r#"[{{"ClusterId": 7, "ProcId": 1, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102,
                 "EnteredCurrentStatus": 100, "RequestMemory": 64, {attributes}}}]"#
        ));
        let (mut advice, _) = queue.correct(Vec::new(), "log", 200_000);
        let command = advice.pop().and_then(|one| one.verdict.command);
        command.map(|command| command.to_string())
    }

    #[test]
    fn a_queue_without_reasons_leaves_what_the_log_states() {
        let stated = ReasonKind {
            thing: Thing::Disk,
            outcome: Outcome::Exceeded,
            ..ReasonKind::default()
        };
        let of_log = JobAdvice::of_test_job().with(|one| {
            one.hold.code = 21;
            one.hold.subcode = 102;
            one.hold.stated = stated;
        });
        let JobId { cluster, proc } = of_log.job.id;
        let ad = format!(
            r#"[{{"ClusterId": {cluster}, "ProcId": {proc}, "JobStatus": 5, "HoldReasonCode": 21, "HoldReasonSubCode": 102,
                 "RequestMemory": 64, "MemoryUsage": 700}}]"#
        );
        let (advice, _) = queue(&ad).correct(vec![of_log], "log", 200_000);
        assert_eq!(advice.len(), 1);
        assert_eq!(
            advice[0].hold.stated, stated,
            "and not memory, as the code says"
        );
        assert!(
            !advice[0]
                .verdict
                .command
                .as_ref()
                .is_some_and(|command| { command.to_string().contains("RequestMemory") })
        );
    }

    #[test]
    fn memory_request_counts_the_resident_set_where_memory_usage_is_an_expression() {
        let expression = r#""MemoryUsage": "\/Expr(( ( ResidentSetSize + 1023 ) \/ 1024 ))\/""#;
        let raised = |mb| {
            Some(guarded(
                "condor_qedit",
                "7.1",
                &format!(" RequestMemory {mb}"),
            ))
        };
        // 225,281 KiB are 221 MB, and 1.5 times as much is rounded up to a multiple of 128.
        assert_eq!(
            memory_command(&format!(r#"{expression}, "ResidentSetSize": 225281"#)),
            raised(384)
        );
        assert_eq!(
            memory_command(r#""MemoryUsage": 700, "ResidentSetSize": 225280"#),
            raised(1152)
        );
        assert_eq!(
            memory_command(r#""MemoryUsage": 219.5, "ResidentSetSize": 4000"#),
            raised(384)
        );
        assert_eq!(
            memory_command(expression).as_deref(),
            Some("condor_q -hold 7.1"),
            "no usage, no number"
        );
    }

    #[test]
    fn the_image_of_a_job_is_the_file_that_htcondor_sends() {
        let image = |attributes: &str| {
            let queue = queue(&format!(
                r#"[{{"ClusterId": 7, "ProcId": 1, "JobStatus": 5, "HoldReasonCode": 45, "Iwd": "/home/ada", {attributes}}}]"#
            ));
            let (mut advice, _) = queue.correct(Vec::new(), "log", 200_000);
            let facts = advice.pop().and_then(|one| one.job.queue).expect("facts");
            facts.files.image.as_ref().map(ToString::to_string)
        };
        let sent = |path: &str| {
            image(&format!(
                r#""ContainerImage": "a.sif", "ContainerImageFullPath": "{path}""#
            ))
        };
        assert_eq!(sent("/images/a.sif").as_deref(), Some("/images/a.sif"));
        assert_eq!(
            sent("images/a.sif").as_deref(),
            Some("/home/ada/images/a.sif")
        );
        assert_eq!(sent("osdf:///images/a.sif"), None);
        assert_eq!(image(r#""ContainerImage": "a.sif""#), None);
        assert_eq!(image(r#""ContainerImage": "/cvmfs/a.sif""#), None);
    }

    /// The ad of a job that HTCondor 25.14.1 held by its policy `HOLD_IF_MEMORY_EXCEEDED`.
    const HELD_BY_EXECUTION_POINT: &str = r#"[
{
  "ClusterId": 1,
  "EnteredCurrentStatus": 1795535923,
  "GlobalJobId": "localhost#1.1#1795535915",
  "HoldReason": "Error from slot1_2@localhost: memory usage exceeded request_memory",
  "HoldReasonCode": 21,
  "HoldReasonSubCode": 102,
  "JobStatus": 5,
  "MemoryUsage": "\/Expr(((ResidentSetSize + 1023) / 1024))\/",
  "NumHolds": 1,
  "NumJobStarts": 1,
  "Owner": "tester",
  "ProcId": 1,
  "QDate": 1795535915,
  "RequestMemory": 128,
  "ResidentSetSize": 275000
}
]
"#;

    #[test]
    fn memory_holds_by_an_execution_point_get_a_request() {
        let (advice, _) =
            queue(HELD_BY_EXECUTION_POINT).correct(Vec::new(), "log", 1_795_535_930_000);
        let [one] = &advice[..] else {
            panic!("one job: {advice:?}")
        };
        assert_eq!(one.verdict.action, HoldAction::Fix);
        assert_eq!(
            one.verdict
                .command
                .as_ref()
                .map(ToString::to_string)
                .as_deref(),
            Some(
                "condor_qedit -constraint 'JobStatus==5 && EnteredCurrentStatus<=1795535925 && Owner==\"tester\" && ClusterId==1 && ProcId==1' RequestMemory 512"
            )
        );
        assert!(one.verdict.then.is_some(), "a release follows");
    }

    #[test]
    fn queue_ads_of_a_real_pool_have_a_usage() {
        let text = fs_err::read("../../tests/data/gel/condor_q.json").expect("read");
        let queue = JobQueue::read(&text[..]).expect("a queue");
        assert_eq!((queue.held_count(), queue.skipped()), (8, None));
        for job in &queue.held {
            let facts = &job.facts;
            assert_eq!(facts.memory_usage_mb, None, "an expression: {job:?}");
            // One job has never run.
            let has_run = job.facts.job_starts > Some(0);
            assert_eq!(facts.used_memory_mb() > 0, has_run, "{job:?}");
        }
    }

    #[test]
    fn damaged_queues_are_rejected_or_harmless() {
        assert!(queue("").held.is_empty());
        assert!(queue("[]").held.is_empty());
        for text in ["{}", "[", "[{}", &"[".repeat(100_000)] {
            assert!(
                JobQueue::read(text.as_bytes()).is_err(),
                "{}",
                &text[..text.len().min(40)]
            );
        }
        let odd = queue(
            r#"[{"ClusterId": 1, "ProcId": 1, "JobStatus": 5, "EnteredCurrentStatus": -9223372036854775808, "HoldReasonCode": "x",
                 "RequestMemory": 18446744073709551615, "MemoryUsage": 18446744073709551615, "HoldReason": 5, "Owner": ["a"]},
                {"ClusterId": 1, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102,
                 "RequestMemory": 18446744073709551615, "EnteredCurrentStatus": 9223372036854775807}]"#,
        );
        let (advice, _) = odd.correct(Vec::new(), "log", 0);
        assert_eq!(advice.len(), 2);
        assert_eq!(
            super::super::cause_groups(&advice.iter().collect::<Vec<_>>()).len(),
            2
        );
    }

    #[test]
    fn jobs_that_cannot_be_read_are_skipped_and_counted() {
        let good = r#"{"ClusterId": 1, "ProcId": 0, "JobStatus": 5}"#;
        for (bad, why) in [
            ("1", "it is not a JSON object"),
            (r#"{"JobStatus": x}"#, "it is not a JSON object"),
            (
                r#"{"JobStatus": 5}"#,
                "its ClusterId and ProcId are not a job id",
            ),
            (
                r#"{"JobStatus": 5, "ClusterId": -1, "ProcId": 0}"#,
                "its ClusterId and ProcId are not a job id",
            ),
            (
                r#"{"JobStatus": 5, "ClusterId": 1, "ProcId": -7}"#,
                "its ClusterId and ProcId are not a job id",
            ),
            (
                r#"{"JobStatus": 5, "ClusterId": 1e99, "ProcId": 0}"#,
                "its ClusterId and ProcId are not a job id",
            ),
        ] {
            let queue = queue(&format!("[{good}, {bad}, {bad}]"));
            let skipped = SkippedJobs {
                count: 2,
                first: 2,
                why,
            };
            assert_eq!(
                (queue.held_count(), queue.skipped()),
                (1, Some(skipped)),
                "{bad}"
            );
        }
        assert_eq!(
            queue(r#"[{"ClusterId": -1, "JobStatus": 2}]"#).skipped(),
            None
        );
    }

    #[test]
    fn a_job_that_is_listed_twice_counts_once() {
        let job = |ap: &str| {
            format!(
                r#"{{"ClusterId": 1, "ProcId": 0, "JobStatus": 5, "GlobalJobId": "{ap}#1.0#9"}}"#
            )
        };
        let (a, b) = (job("a"), job("b"));
        let (advice, agreement) =
            queue(&format!("[{a}, {b}, {b}, {a}, {a}]")).correct(Vec::new(), "a", 0);
        assert_eq!(
            (agreement.held, agreement.not_in_log, advice.len()),
            (2, 2, 2)
        );
    }
}
