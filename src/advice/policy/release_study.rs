//! Learns release rules on the earlier holds of a log, and evaluates policies on the later holds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::code_finding::{CodeFinding, CodeKey, CodeVerdict, is_on_purpose};
use super::policy_hold::PolicyHold;
use super::release_policy::ReleasePolicy;
use super::release_rule::ReleaseRule;
use super::replay::{LaterHolds, ReplayResampling, ReplayedPolicy, count_later_holds, replay};
use poolcast_holds::config::AdviceConfig;

/// Fraction of the outcomes that rules are learned from, as numerator and denominator. The outcomes
/// are ordered by time; policies are evaluated on the later holds.
const TRAINING_FRACTION: (usize, usize) = (2, 3);

/// Settings of a study of automatic releases.
#[derive(Debug, Clone, Copy)]
pub struct StudySettings {
    /// Minimum share of successes among the automatic releases of a code.
    pub required_share: f64,
    /// Bootstrap resamples for each interval.
    pub resamples: usize,
    /// Seed of the resamples.
    pub seed: u64,
}

/// The result of a study: the learned rules, and their estimated effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReleaseStudy {
    /// Minimum share of successes among automatic releases.
    pub required_share: f64,
    /// Cutoff of the outcomes that rules are learned from, epoch ms. `None` if there are too few
    /// for a split: then rules are learned from all outcomes.
    pub learned_until_ms: Option<i64>,
    /// Findings for each code, and for each owner with code 3, sorted by descending number of
    /// outcomes.
    pub codes: Vec<CodeFinding>,
    /// The learned rules.
    pub rules: Vec<ReleaseRule>,
    /// The holds after the cutoff, on which policies are evaluated.
    pub later: LaterHolds,
    /// Estimated effects of policies. The learned policy is the last one, if there are rules.
    pub replay: Vec<ReplayedPolicy>,
}

/// Returns the minimum share of successes with which releases pay. It follows from the costs of
/// mistakes if they are configured, or else it is the precision of probable answers.
pub fn required_share(settings: &AdviceConfig) -> f64 {
    match settings.cost {
        Some(cost) => cost.wasted_run / (cost.wasted_run + cost.lost_success),
        None => settings.probable_precision,
    }
}

/// Learns rules from the earlier part of `holds`, and evaluates policies on the later part.
pub fn study_releases(holds: &[PolicyHold<'_>], settings: StudySettings) -> ReleaseStudy {
    study_until(holds, settings, learned_until_ms(holds))
}

/// Returns the time by which two thirds of the outcomes were known, epoch ms; `None` for fewer than
/// two outcomes.
fn learned_until_ms(holds: &[PolicyHold<'_>]) -> Option<i64> {
    let mut decided_ms = Vec::new();
    for hold in holds {
        decided_ms.extend(hold.outcome.map(|outcome| outcome.decided_ms));
    }
    decided_ms.sort_unstable();

    let (part, of) = TRAINING_FRACTION;
    let last = (decided_ms.len() * part / of).checked_sub(1)?;
    Some(decided_ms[last])
}

fn study_until(
    holds: &[PolicyHold<'_>],
    settings: StudySettings,
    learned_until_ms: Option<i64>,
) -> ReleaseStudy {
    let until_ms = learned_until_ms.unwrap_or(i64::MAX);
    let codes = learn_codes(holds, settings.required_share, until_ms);
    let mut rules = Vec::new();
    for finding in &codes {
        if let CodeVerdict::Yes { rule, .. } = &finding.verdict {
            rules.push(rule.clone());
        }
    }

    // Intended holds are excluded: no automatic policy should release them.
    let mut later = Vec::new();
    for hold in holds {
        if hold.held_at_ms > until_ms && !is_on_purpose(hold.code, hold.subcode) {
            later.push(*hold);
        }
    }
    let mut policies = vec![
        ReleasePolicy::Never,
        ReleasePolicy::MaxHolds(2),
        ReleasePolicy::MaxHolds(4),
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

/// Derives the findings for each code from the holds and outcomes known at `until_ms`; also for
/// each owner where owners define the code.
fn learn_codes(holds: &[PolicyHold<'_>], required_share: f64, until_ms: i64) -> Vec<CodeFinding> {
    let mut by_code: BTreeMap<CodeKey<'_>, Vec<PolicyHold<'_>>> = BTreeMap::new();
    for hold in holds {
        if hold.held_at_ms <= until_ms {
            // An outcome decided after the cutoff is not known yet.
            let outcome = hold
                .outcome
                .filter(|outcome| outcome.decided_ms <= until_ms);
            let of_code = by_code.entry(CodeKey::from_hold(hold)).or_default();
            of_code.push(PolicyHold { outcome, ..*hold });
        }
    }

    let mut codes = Vec::new();
    for (key, holds) in by_code {
        codes.push(CodeFinding::new(key, &holds, required_share));
    }
    codes.sort_by_key(|finding| std::cmp::Reverse((finding.released.outcomes, finding.holds)));
    codes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::policy_hold::tests::policy_hold;
    use super::*;
    use poolcast_base::moment::DAY_MS;

    const SETTINGS: StudySettings = StudySettings {
        required_share: 0.75,
        resamples: 50,
        seed: 1,
    };

    /// Creates holds over ninety days. Holds with 12/256 succeed after an hour and fail if released
    /// sooner; holds with 13/512 fail; a person makes the holds with code 1.
    fn planted_holds() -> Vec<PolicyHold<'static>> {
        let mut holds = Vec::new();
        for day in 0..90 {
            let at_ms = i64::from(day) * DAY_MS;
            holds.push(policy_hold((12, 256), day, at_ms, Some((3600, true))));
            holds.push(policy_hold((12, 256), 100 + day, at_ms, Some((60, false))));
            holds.push(policy_hold(
                (13, 512),
                200 + day,
                at_ms,
                Some((3600, false)),
            ));
            holds.push(policy_hold((1, 0), 300 + day, at_ms, Some((3600, true))));
        }
        holds
    }

    #[test]
    fn paying_codes_get_a_rule_with_their_wait() {
        let study = study_releases(&planted_holds(), SETTINGS);
        let rule = ReleaseRule {
            hold_code: 12,
            hold_subcode: 256,
            owner: None,
            wait_s: 1800,
            most_holds: 1,
        };
        assert_eq!(study.rules, [rule]);
        assert_eq!(study.learned_until_ms.map(|ms| ms / DAY_MS), Some(59));

        let policy_named = |name: &str| {
            let mut all = study.replay.iter();
            all.find(|replayed| replayed.policy == name).expect(name)
        };
        assert_eq!(study.later.holds, 90, "without those on purpose");
        assert_eq!(policy_named("always").failures.sum, 60);
        assert_eq!(policy_named("learned").successes.share, Some(1.0));
        assert_eq!(policy_named("learned").failures.share, Some(0.0));
        assert_eq!(policy_named("never").successes.sum, 0);
    }

    #[test]
    fn codes_that_owners_define_get_a_rule_for_each_owner() {
        let mut holds = Vec::new();
        for day in 0..90 {
            let at_ms = i64::from(day) * DAY_MS;
            let owners = [(Some("ada"), true), (Some("eve"), false), (None, true)];
            for (place, (owner, is_success)) in owners.into_iter().enumerate() {
                let cluster = 100 * place as i32 + day;
                let hold = policy_hold((3, 75), cluster, at_ms, Some((600, is_success)));
                holds.push(PolicyHold { owner, ..hold });
            }
        }

        let study = study_releases(&holds, SETTINGS);
        let verdicts = study.codes.iter().map(|code| {
            let owner = code.owner.as_deref();
            (
                owner,
                code.holds,
                matches!(code.verdict, CodeVerdict::Yes { .. }),
            )
        });
        let expected = [
            (None, 60, false),
            (Some("ada"), 60, true),
            (Some("eve"), 60, false),
        ];
        assert_eq!(verdicts.collect::<Vec<_>>(), expected);
        assert_eq!(study.codes[0].verdict, CodeVerdict::OwnerUnknown);
        let learned = study.replay.last().expect("a policy");
        assert_eq!((learned.successes.sum, learned.failures.sum), (30, 0));
    }

    #[test]
    fn a_log_without_releases_has_no_rule() {
        let held = policy_hold((12, 256), 1, 0, None);
        for holds in [&[][..], &[held]] {
            let study = study_releases(holds, SETTINGS);
            assert_eq!((study.rules.len(), study.later.holds), (0, 0));
            assert_eq!(study.codes.len(), holds.len());
        }
    }

    #[test]
    fn required_share_follows_from_costs() {
        #[derive(serde::Deserialize)]
        struct AdviceKeys {
            advice: AdviceConfig,
        }
        let default: AdviceKeys =
            poolcast_config::yaml::read(poolcast_config::DEFAULT).expect("sound");
        assert_eq!(required_share(&default.advice), 0.75);
        let cost = poolcast_holds::config::AdviceCost {
            wasted_run: 1.0,
            lost_success: 4.0,
        };
        let with_cost = AdviceConfig {
            cost: Some(cost),
            ..default.advice
        };
        assert_eq!(required_share(&with_cost), 0.2);
    }

    proptest! {
        #[test]
        fn rules_do_not_depend_on_events_after_the_cutoff(
            cutoff_day in 20_i64..70,
            changes in prop::collection::vec((0_usize..360, any::<bool>(), 0_i64..100_000), 0..300),
        ) {
            let until_ms = cutoff_day * DAY_MS + 7_000_000;
            let planted = planted_holds();
            let mut changed = planted.clone();
            for (place, is_success, held_for_s) in changes {
                let hold = &mut changed[place];
                let (code, cluster) = ((hold.code, hold.subcode), hold.cluster.1);
                let is_known = hold.outcome.is_some_and(|outcome| outcome.decided_ms <= until_ms);
                if hold.held_at_ms > until_ms {
                    *hold = policy_hold(code, cluster, hold.held_at_ms, Some((held_for_s, is_success)));
                } else if !is_known {
                    hold.outcome = None;
                }
            }
            let planted_study = study_until(&planted, SETTINGS, Some(until_ms));
            let changed_study = study_until(&changed, SETTINGS, Some(until_ms));
            prop_assert_eq!(planted_study.rules, changed_study.rules);
            prop_assert_eq!(planted_study.codes, changed_study.codes);
        }
    }
}
