//! Compares learned rules with the advice on the jobs that are held at the end of the same log.

use std::collections::BTreeMap;

use serde::Serialize;

use super::code_finding::{CodeFinding, CodeVerdict};
use super::owner_names::OwnerNames;
use super::release_study::ReleaseStudy;
use crate::JobAdvice;
use poolcast_holds::decision::{HoldAction, answer_rank};

/// Held jobs with one code for which the policy and the advice disagree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdviceContradiction {
    /// `HoldReasonCode`.
    pub hold_code: i32,
    /// `HoldReasonSubCode`.
    pub hold_subcode: i32,
    /// The owner of the jobs, if the finding is about one owner.
    pub owner: Option<String>,
    /// True if the policy releases the jobs, and false if their code rules out a release.
    pub is_released: bool,
    /// The answer of the advice.
    pub answer: HoldAction,
    /// Number of held jobs with this answer.
    pub jobs: usize,
}

/// Lists the codes for which `study` releases held jobs that `advice` does not release, or rules
/// out releases that `advice` recommends. The findings have the same order.
pub fn contradictions(
    study: &ReleaseStudy,
    advice: &[JobAdvice],
    owners: &OwnerNames,
) -> Vec<AdviceContradiction> {
    let mut jobs: BTreeMap<(usize, u8), AdviceContradiction> = BTreeMap::new();
    for one in advice {
        let owner = owners.owner(&one.job.ap, one.job.id.cluster);
        let finding = study.codes.iter().position(|finding| {
            (finding.hold_code, finding.hold_subcode) == (one.hold.code, one.hold.subcode)
                && (finding.owner.is_none() || finding.owner.as_deref() == owner)
        });
        let Some(place) = finding.filter(|&place| contradicts(&study.codes[place], one)) else {
            continue;
        };
        let finding = &study.codes[place];
        let entry = jobs
            .entry((place, answer_rank(one.verdict.action, None)))
            .or_insert_with(|| AdviceContradiction {
                hold_code: finding.hold_code,
                hold_subcode: finding.hold_subcode,
                owner: finding.owner.clone(),
                is_released: matches!(finding.verdict, CodeVerdict::Yes { .. }),
                answer: one.verdict.action,
                jobs: 0,
            });
        entry.jobs += 1;
    }
    jobs.into_values().collect()
}

/// Returns true if a finding and the advice on a job with its code disagree on a release.
fn contradicts(finding: &CodeFinding, advice: &JobAdvice) -> bool {
    match &finding.verdict {
        CodeVerdict::Yes { rule, .. } => {
            let is_kept = matches!(
                advice.verdict.action,
                HoldAction::Fix | HoldAction::Remove | HoldAction::Leave
            );
            is_kept && advice.hold.holds <= rule.most_holds
        }
        CodeVerdict::OnPurpose | CodeVerdict::NeedsRepair => {
            matches!(
                advice.verdict.action,
                HoldAction::Release | HoldAction::Probe | HoldAction::Later
            )
        }
        CodeVerdict::OwnerUnknown | CodeVerdict::TooFew | CodeVerdict::NotShown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy_hold::tests::policy_hold;
    use super::super::release_study::{StudySettings, study_releases};
    use super::*;
    use crate::JobQueue;
    use poolcast_base::moment::DAY_MS;

    /// Studies a log in which releases pay after 12/256 and 3/75 of ada, and after 13/2, which is
    /// never released.
    fn study() -> ReleaseStudy {
        let mut holds = Vec::new();
        for day in 0..90 {
            let mut of_ada = policy_hold((3, 75), day, DAY_MS * i64::from(day), Some((60, true)));
            of_ada.owner = Some("ada");
            holds.push(of_ada);
            for code in [(12, 256), (13, 2)] {
                holds.push(policy_hold(code, day, of_ada.held_at_ms, Some((60, true))));
            }
        }
        let settings = StudySettings {
            required_share: 0.75,
            resamples: 1,
            seed: 1,
        };
        study_releases(&holds, settings)
    }

    /// Returns advice on a held job with the code of each of `answers`, in cluster 1, 2, ….
    fn advice(answers: &[((i32, i32), HoldAction)]) -> Vec<JobAdvice> {
        let mut ads = Vec::new();
        for (place, ((code, subcode), _)) in answers.iter().enumerate() {
            ads.push(format!(
                r#"{{"ClusterId": {}, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": {code}, "HoldReasonSubCode": {subcode}}}"#,
                place + 1
            ));
        }
        let queue =
            JobQueue::read(&mut format!("[{}]", ads.join(",")).as_bytes()).expect("a queue");
        let (mut advice, _) = queue.correct(Vec::new(), "ap", 0);
        for (one, (_, action)) in advice.iter_mut().zip(answers) {
            one.verdict.action = *action;
        }
        advice
    }

    #[test]
    fn codes_with_opposite_answers_are_named() {
        use HoldAction::{Fix, Later, None, Release, Remove};
        let advice = advice(&[
            ((12, 256), Fix),
            ((12, 256), Fix),
            ((12, 256), Release),
            ((12, 256), Later),
            ((12, 256), None),
            ((13, 2), Release),
            ((13, 2), Fix),
            ((3, 75), Remove),
            ((3, 75), Fix),
        ]);
        let mut owners = OwnerNames::default();
        owners.add_owner("ap", 8, "ada");
        owners.add_owner("ap", 9, "eve");

        let found = contradictions(&study(), &advice, &owners);
        let mut found: Vec<_> = found
            .iter()
            .map(|one| {
                let code = (one.hold_code, one.hold_subcode);
                (
                    code,
                    one.owner.as_deref(),
                    one.is_released,
                    one.answer,
                    one.jobs,
                )
            })
            .collect();
        found.sort_by_key(|one| one.0);
        assert_eq!(
            found,
            [
                ((3, 75), Some("ada"), true, Remove, 1),
                ((12, 256), Option::None, true, Fix, 2),
                ((13, 2), Option::None, false, Release, 1),
            ]
        );
    }
}
