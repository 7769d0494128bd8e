//! Text from logs and configurations → text that a page shows: bounded, and without characters that
//! cannot be seen or that turn the direction of others.

use poolcast_config::{Goal, MetricName};
use poolcast_base::escape;
use poolcast_base::output;

/// The most characters of one value.
const MOST_CHARACTERS: usize = 300;

/// The most characters of a text of several lines.
const MOST_TEXT: usize = 100_000;

/// One value from outside.
pub(super) fn shown(text: &str) -> String {
    output::cut(text, MOST_CHARACTERS)
}

/// Several lines from outside.
pub(super) fn shown_lines(text: &str) -> String {
    if text.chars().count() <= MOST_TEXT {
        return escape::lines(text).into_owned();
    }
    let begin: String = text.chars().take(MOST_TEXT).collect();
    format!("{}\n...", escape::lines(&begin))
}

/// A path or a name as a shell takes it.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-@%+=:,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", shown(text).replace('\'', r"'\''"))
}

/// What people call a metric.
pub(super) fn metric_title(name: MetricName) -> &'static str {
    match name {
        MetricName::ValidationLoss => "validation loss",
        MetricName::ValidationRocAuc => "ROC-AUC on the validation samples",
        MetricName::ValidationAveragePrecision => "average precision on the validation samples",
        MetricName::ValidationFMeasure => "F-measure on the validation samples",
        MetricName::ValidationAccuracy => "accuracy on the validation samples",
        MetricName::ValidationBrier => "Brier score on the validation samples",
        MetricName::ValidationMae => "mean absolute error on the validation samples",
        MetricName::ValidationRmse => "root mean squared error on the validation samples",
        MetricName::ValidationR2 => "R² on the validation samples",
        MetricName::HeldBackPinball => "mean pinball loss on the windows held back",
        MetricName::HeldBackCost => "mean cost of a window held back",
    }
}

/// Which values of a metric are better.
pub(super) fn better_word(goal: Goal) -> &'static str {
    match goal {
        Goal::Maximize => "higher",
        Goal::Minimize => "lower",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_from_outside_is_bounded_and_seen() {
        assert_eq!(shown("a\u{202e}b"), r"a\u{202e}b");
        assert_eq!(shown(&"x".repeat(10_000)).len(), MOST_CHARACTERS);
        let long = shown_lines(&"line\n".repeat(100_000));
        assert!(long.len() < MOST_TEXT + 10);
        assert_eq!(quoted("out/run-1"), "out/run-1");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
    }
}
