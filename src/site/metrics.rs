//! Advice as metrics in the text format of Prometheus, for the textfile collector of node_exporter.
//! They count jobs, and name no owner and no job.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use poolcast_advice::{AdviceBasis, AnswerTally, JobAdvice};
use poolcast_base::files;

/// Mode of the file, because the collector runs as another user.
const FILE_MODE: u32 = 0o644;

/// The advice that the metrics are about.
#[derive(Debug, Clone, Copy)]
pub struct AdviceMetrics<'a> {
    /// The data and the model behind the advice.
    pub basis: &'a AdviceBasis,
    /// Advice on all held jobs.
    pub all: &'a [JobAdvice],
    /// Results of earlier answers, if the outcome of any is decided.
    pub earlier: Option<&'a AnswerTally>,
    /// Current time, epoch ms.
    pub now_ms: i64,
}

/// A metric: one or several numbers of one meaning.
struct MetricFamily {
    name: &'static str,
    help: &'static str,
    samples: Vec<MetricSample>,
}

/// One number of a metric.
struct MetricSample {
    /// Names and values of the labels.
    labels: Vec<(&'static str, String)>,
    value: f64,
}

impl AdviceMetrics<'_> {
    /// Writes the metrics to `file`, which everyone may read. It is replaced in one step.
    pub fn write(&self, file: &Path) -> Result<()> {
        files::write_with_mode(file, self.text().as_bytes(), FILE_MODE)
    }

    /// The metrics in Prometheus' text format. A metric without a value is left out.
    pub fn text(&self) -> String {
        let families = [
            self.held_jobs(),
            self.oldest_holds(),
            self.advice_times(),
            self.rehearsed_skill(),
            self.earlier_answers(),
        ];
        let mut text = String::new();
        for family in families.into_iter().flatten() {
            family.add_text(&mut text);
        }
        text
    }

    fn held_jobs(&self) -> Vec<MetricFamily> {
        let mut counts: BTreeMap<(&str, &str, i32), usize> = BTreeMap::new();
        for one in self.all {
            let key = (
                one.job.ap.as_str(),
                one.verdict.action.word(),
                one.hold.code,
            );
            *counts.entry(key).or_default() += 1;
        }
        let samples = counts.into_iter().map(|((ap, action, code), jobs)| {
            let labels = vec![
                ("access_point", ap.to_owned()),
                ("action", action.to_owned()),
                ("code", code.to_string()),
            ];
            MetricSample {
                labels,
                value: jobs as f64,
            }
        });
        vec![
            MetricFamily {
                name: "poolcast_held_jobs",
                help: "Held jobs, by recommended action and hold code.",
                samples: samples.collect(),
            },
            MetricFamily::of_number(
                "poolcast_held_jobs_all",
                "All held jobs.",
                Some(self.all.len() as f64),
            ),
        ]
    }

    fn oldest_holds(&self) -> Vec<MetricFamily> {
        let mut oldest: BTreeMap<&str, i64> = BTreeMap::new();
        for one in self.all {
            let since_ms = oldest.entry(one.job.ap.as_str()).or_insert(i64::MAX);
            *since_ms = one.hold.since_ms.min(*since_ms);
        }
        let samples = oldest.into_iter().map(|(ap, since_ms)| {
            let age_ms = self.now_ms.saturating_sub(since_ms).max(0);
            MetricSample {
                labels: vec![("access_point", ap.to_owned())],
                value: seconds(age_ms),
            }
        });
        vec![MetricFamily {
            name: "poolcast_oldest_hold_age_seconds",
            help: "Time since the begin of the oldest hold.",
            samples: samples.collect(),
        }]
    }

    fn advice_times(&self) -> Vec<MetricFamily> {
        let basis = self.basis;
        let published = basis.published_model.as_ref();
        let learned_ms = published.map(|model| model.learned_ms);
        let learned_ms = learned_ms.or(basis.trained_until_ms);
        let age_ms = learned_ms.map(|ms| self.now_ms.saturating_sub(ms).max(0));
        vec![
            MetricFamily::of_number(
                "poolcast_model_age_seconds",
                "Time since the end of what the model has learned from.",
                age_ms.map(seconds),
            ),
            MetricFamily::of_number(
                "poolcast_log_end_timestamp_seconds",
                "Time of the last event of the log.",
                basis.log_end_ms.map(seconds),
            ),
            MetricFamily::of_number(
                "poolcast_advice_timestamp_seconds",
                "Time at which this file was written.",
                Some(seconds(self.now_ms)),
            ),
        ]
    }

    fn rehearsed_skill(&self) -> Vec<MetricFamily> {
        let rehearsed = self.basis.rehearsed;
        vec![
            MetricFamily::of_number(
                "poolcast_rehearsal_kind_right_ratio",
                "Share of rehearsed answers that were right about whether the fault passes or stays.",
                rehearsed.and_then(|skill| skill.kind_right.share()),
            ),
            MetricFamily::of_number(
                "poolcast_rehearsal_firm_right_ratio",
                "Share of rehearsed firm answers that were right.",
                rehearsed.and_then(|skill| skill.firm_right.share()),
            ),
        ]
    }

    fn earlier_answers(&self) -> Vec<MetricFamily> {
        let mut samples = Vec::new();
        for kind in self.earlier.into_iter().flat_map(|tally| &tally.kinds) {
            let counts = match kind.right {
                Some(right) => [("right", right), ("wrong", kind.decided - right)],
                None => [
                    ("succeeded", kind.succeeded),
                    ("failed", kind.decided - kind.succeeded),
                ],
            };
            for (outcome, answers) in counts {
                let labels = vec![
                    ("action", kind.action.word().to_owned()),
                    ("outcome", outcome.to_owned()),
                ];
                samples.push(MetricSample {
                    labels,
                    value: answers as f64,
                });
            }
        }
        vec![MetricFamily {
            name: "poolcast_earlier_answers",
            help: "Earlier answers with a known outcome, by action and outcome.",
            samples,
        }]
    }
}

/// Milliseconds as seconds.
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

impl MetricFamily {
    /// A metric without labels. It is left out of the text if there is no `value`.
    fn of_number(name: &'static str, help: &'static str, value: Option<f64>) -> MetricFamily {
        let sample = value.map(|value| MetricSample {
            labels: Vec::new(),
            value,
        });
        MetricFamily {
            name,
            help,
            samples: sample.into_iter().collect(),
        }
    }

    fn add_text(&self, text: &mut String) {
        let MetricFamily { name, help, .. } = self;
        let samples: Vec<_> = (self.samples.iter())
            .filter(|sample| sample.value.is_finite())
            .collect();
        if samples.is_empty() {
            return;
        }
        // Writing to a string never fails.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for MetricSample { labels, value } in samples {
            let labels: Vec<String> = labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", escaped_label(value)))
                .collect();
            let labels = match labels.is_empty() {
                true => String::new(),
                false => format!("{{{}}}", labels.join(",")),
            };
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
}

/// Escapes a label's value as the format demands. Hidden characters, which a log may have, become
/// `\u{1b}`, and a backslash two. So different values stay different: equal series would make the
/// collector reject the whole file.
fn escaped_label(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => escaped.push_str(r"\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            c if poolcast_base::escape::is_hidden(c) => {
                escaped.push('\\');
                escaped.extend(c.escape_unicode());
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn empty_metrics_have_the_time_and_no_held_job() {
        let metrics = AdviceMetrics {
            basis: &AdviceBasis::without_log(0),
            all: &[],
            earlier: None,
            now_ms: 1_500,
        };
        let text = metrics.text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "poolcast_held_jobs_all 0",
                "poolcast_advice_timestamp_seconds 1.5"
            ]
        );
    }

    #[test]
    fn hostile_labels_stay_in_their_quotes() {
        let family = MetricFamily {
            name: "x",
            help: "y",
            samples: vec![
                MetricSample {
                    labels: vec![("ap", "a\"} 1\nb\\\u{1b}[31m\r".to_owned())],
                    value: 2.0,
                },
                MetricSample {
                    labels: Vec::new(),
                    value: f64::NAN,
                },
            ],
        };
        let mut text = String::new();
        family.add_text(&mut text);
        assert_eq!(
            text,
            "# HELP x y\n# TYPE x gauge\nx{ap=\"a\\\"} 1\\nb\\\\\\\\\\\\u{1b}[31m\\\\u{d}\"} 2\n"
        );
    }

    #[test]
    fn different_values_are_different_labels() {
        let values = [
            "a ",
            "a\u{1}",
            "a\u{200b}",
            r"a\u{1}",
            r"a\",
            r"a\\",
            "a\n",
            r"a\n",
            "a\"",
        ];
        let labels: BTreeSet<String> = values.into_iter().map(escaped_label).collect();
        assert_eq!(labels.len(), values.len());
    }
}
