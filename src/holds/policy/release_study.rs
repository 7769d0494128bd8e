//! The holds of a log → rules learned on the earlier ones, judged on the later ones.

use std::collections::BTreeMap;

use serde::Serialize;

use super::code_finding::{CodeFinding, CodeVerdict, is_on_purpose};
use super::past_hold::PastHold;
use super::release_policy::ReleasePolicy;
use super::release_rule::ReleaseRule;
use super::replay::{LaterHolds, ReplayResampling, ReplayedPolicy, count_later_holds, replay};
use poolcast_config::AdviceConfig;

/// The part of the outcomes that is learned from, in order of time; the holds after it judge.
const LEARNED_PART: (usize, usize) = (2, 3);

/// What is asked of a release by itself, and how intervals are found.
#[derive(Debug, Clone, Copy)]
pub struct StudySettings {
    /// As large a share of the releases after holds of a code has to succeed.
    pub required_share: f64,
    /// Bootstrap resamples behind each interval.
    pub resamples: usize,
    /// What these are drawn by.
    pub seed: u64,
}

/// What was learned, and what it would have come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReleaseStudy {
    /// As large a share of releases has to succeed.
    pub required_share: f64,
    /// Until when outcomes were learned from, epoch ms; `None` where there are too few to divide, and
    /// all are learned from.
    pub learned_until_ms: Option<i64>,
    /// What was learned of each code, those with the most outcomes first.
    pub codes: Vec<CodeFinding>,
    /// The rules that follow.
    pub rules: Vec<ReleaseRule>,
    /// The holds after that, which policies are judged by.
    pub later: LaterHolds,
    /// What policies would have come to; the learned one, if there is one, is the last.
    pub replay: Vec<ReplayedPolicy>,
}

/// The share of successes from which on a release pays: by what mistakes cost, if that is given,
/// else the precision of an answer that is given with "probably".
pub fn required_share(settings: &AdviceConfig) -> f64 {
    match settings.cost {
        Some(cost) => cost.wasted_run / (cost.wasted_run + cost.lost_success),
        None => settings.probable_precision,
    }
}

/// Learns from the earlier ones of `holds`, and judges on the later ones.
pub fn study_releases(holds: &[PastHold], settings: StudySettings) -> ReleaseStudy {
    study_until(holds, settings, learned_until_ms(holds))
}

/// The moment by which two thirds of the outcomes were decided; `None` for fewer than two.
fn learned_until_ms(holds: &[PastHold]) -> Option<i64> {
    let mut decided_ms = Vec::new();
    for hold in holds {
        decided_ms.extend(hold.outcome.map(|outcome| outcome.decided_ms));
    }
    decided_ms.sort_unstable();

    let (part, of) = LEARNED_PART;
    let last = (decided_ms.len() * part / of).checked_sub(1)?;
    Some(decided_ms[last])
}

fn study_until(
    holds: &[PastHold],
    settings: StudySettings,
    learned_until_ms: Option<i64>,
) -> ReleaseStudy {
    let until_ms = learned_until_ms.unwrap_or(i64::MAX);
    let codes = learn_codes(holds, settings.required_share, until_ms);
    let mut rules = Vec::new();
    for finding in &codes {
        if let CodeVerdict::Yes { rule, .. } = finding.verdict {
            rules.push(rule);
        }
    }

    let mut later = Vec::new();
    for hold in holds {
        if hold.held_at_ms > until_ms && !is_on_purpose(hold.code, hold.subcode) {
            later.push(*hold);
        }
    }
    let mut policies = vec![
        ReleasePolicy::Never,
        ReleasePolicy::MostHolds(2),
        ReleasePolicy::MostHolds(4),
        ReleasePolicy::Always,
    ];
    if !rules.is_empty() {
        policies.push(ReleasePolicy::Rules(rules.clone()));
    }
    let resampling = ReplayResampling {
        resamples: settings.resamples,
        seed: settings.seed,
    };

    ReleaseStudy {
        required_share: settings.required_share,
        learned_until_ms,
        codes,
        rules,
        later: count_later_holds(&later),
        replay: policies
            .iter()
            .map(|policy| replay(policy, &later, resampling))
            .collect(),
    }
}

/// What was known of each code at `until_ms`.
fn learn_codes(holds: &[PastHold], required_share: f64, until_ms: i64) -> Vec<CodeFinding> {
    let mut by_code: BTreeMap<(i32, i32), Vec<PastHold>> = BTreeMap::new();
    for hold in holds {
        if hold.held_at_ms <= until_ms {
            let outcome = hold
                .outcome
                .filter(|outcome| outcome.decided_ms <= until_ms);
            let of_code = by_code.entry((hold.code, hold.subcode)).or_default();
            of_code.push(PastHold { outcome, ..*hold });
        }
    }

    let mut codes = Vec::new();
    for (code, holds) in by_code {
        codes.push(CodeFinding::new(code, &holds, required_share));
    }
    codes.sort_by_key(|finding| std::cmp::Reverse((finding.released.outcomes, finding.holds)));
    codes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::past_hold::tests::{DAY_MS, past_hold};
    use super::*;

    const SETTINGS: StudySettings = StudySettings {
        required_share: 0.75,
        resamples: 50,
        seed: 1,
    };

    /// Ninety days: 12/256 succeeds once it was held for an hour and fails sooner, 13/512 fails,
    /// and a person holds jobs.
    fn planted_holds() -> Vec<PastHold> {
        let mut holds = Vec::new();
        for day in 0..90 {
            let at_ms = i64::from(day) * DAY_MS;
            holds.push(past_hold((12, 256), day, at_ms, Some((3600, true))));
            holds.push(past_hold((12, 256), 100 + day, at_ms, Some((60, false))));
            holds.push(past_hold((13, 512), 200 + day, at_ms, Some((3600, false))));
            holds.push(past_hold((1, 0), 300 + day, at_ms, Some((3600, true))));
        }
        holds
    }

    #[test]
    fn the_code_that_pays_is_named_with_its_wait() {
        let study = study_releases(&planted_holds(), SETTINGS);
        let rule = ReleaseRule {
            hold_code: 12,
            hold_subcode: 256,
            wait_s: 1800,
            most_holds: 1,
        };
        assert_eq!(study.rules, [rule]);
        assert_eq!(study.learned_until_ms.map(|ms| ms / DAY_MS), Some(59));

        let of_policy = |name: &str| {
            let mut all = study.replay.iter();
            all.find(|replayed| replayed.policy == name).expect(name)
        };
        assert_eq!(study.later.holds, 90, "without those on purpose");
        assert_eq!(of_policy("always").failures.sum, 60);
        assert_eq!(of_policy("learned").successes.share, Some(1.0));
        assert_eq!(of_policy("learned").failures.share, Some(0.0));
        assert_eq!(of_policy("never").successes.sum, 0);
    }

    #[test]
    fn a_log_without_releases_has_no_rule() {
        let held = past_hold((12, 256), 1, 0, None);
        for holds in [&[][..], &[held]] {
            let study = study_releases(holds, SETTINGS);
            assert_eq!((study.rules.len(), study.later.holds), (0, 0));
            assert_eq!(study.codes.len(), holds.len());
        }
    }

    #[test]
    fn what_mistakes_cost_says_from_when_on_a_release_pays() {
        let config: poolcast_config::Config =
            poolcast_config::yaml::read(poolcast_config::DEFAULT).expect("sound");
        assert_eq!(required_share(&config.advice), 0.75);
        let cost = poolcast_config::AdviceCost {
            wasted_run: 1.0,
            lost_success: 4.0,
        };
        let with_cost = AdviceConfig {
            cost: Some(cost),
            ..config.advice
        };
        assert_eq!(required_share(&with_cost), 0.2);
    }

    proptest! {
        #[test]
        fn nothing_after_the_cut_changes_what_is_learned(
            cut_day in 20_i64..70,
            changes in prop::collection::vec((0_usize..360, any::<bool>(), 0_i64..100_000), 0..300),
        ) {
            let until_ms = cut_day * DAY_MS + 7_000_000;
            let planted = planted_holds();
            let mut changed = planted.clone();
            for (place, is_success, held_for_s) in changes {
                let hold = &mut changed[place];
                let (code, cluster) = ((hold.code, hold.subcode), hold.cluster.1);
                let is_known = hold.outcome.is_some_and(|outcome| outcome.decided_ms <= until_ms);
                if hold.held_at_ms > until_ms {
                    *hold = past_hold(code, cluster, hold.held_at_ms, Some((held_for_s, is_success)));
                } else if !is_known {
                    hold.outcome = None;
                }
            }
            let of_planted = study_until(&planted, SETTINGS, Some(until_ms));
            let of_changed = study_until(&changed, SETTINGS, Some(until_ms));
            prop_assert_eq!(of_planted.rules, of_changed.rules);
            prop_assert_eq!(of_planted.codes, of_changed.codes);
        }
    }
}
