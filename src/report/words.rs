//! Prepares text from logs and configurations for display. It is shortened, and invisible
//! characters and those that change the text direction are escaped.

use poolcast_base::escape;
use poolcast_base::output;
use poolcast_config::{Goal, Metric, MetricName};

/// Maximum length of one value, in characters.
const MAX_VALUE_CHARACTERS: usize = 300;

/// Maximum length of a text of several lines, in characters.
const MAX_TEXT_CHARACTERS: usize = 100_000;

/// Shortens and escapes one value from a log or a configuration.
pub(super) fn shown(text: &str) -> String {
    output::cut(text, MAX_VALUE_CHARACTERS)
}

/// Shortens and escapes several lines from a log or a configuration.
pub(super) fn shown_lines(text: &str) -> String {
    if text.chars().count() <= MAX_TEXT_CHARACTERS {
        return escape::lines(text).into_owned();
    }
    let begin: String = text.chars().take(MAX_TEXT_CHARACTERS).collect();
    format!("{}\n...", escape::lines(&begin))
}

/// Quotes a path or a name for a shell, in full. Returns `None` if it has characters that cannot be
/// shown, because a command with other characters names something else.
pub(super) fn quoted(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-@%+=:,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Some(text.to_owned());
    }
    let is_shown = escape::value(text) == text;
    is_shown.then(|| format!("'{}'", text.replace('\'', r"'\''")))
}

/// Returns the display name of a metric.
pub(super) fn metric_title(metric: &Metric) -> String {
    if let Some(reported) = &metric.reported {
        return shown(reported);
    }
    let title = match metric.name {
        MetricName::ValidationLoss => "validation loss",
        MetricName::ValidationRocAuc => "ROC-AUC on the validation samples",
        MetricName::ValidationAveragePrecision => "average precision on the validation samples",
        MetricName::ValidationFMeasure => "F-measure on the validation samples",
        MetricName::ValidationAccuracy => "accuracy on the validation samples",
        MetricName::ValidationBrier => "Brier score on the validation samples",
        MetricName::ValidationMae => "mean absolute error on the validation samples",
        MetricName::ValidationRmse => "root mean squared error on the validation samples",
        MetricName::ValidationR2 => "R² on the validation samples",
        MetricName::HeldBackPinball => "mean pinball loss on the held-back windows",
        MetricName::HeldBackCost => "mean cost of a held-back window",
        MetricName::AnswersLogLoss => {
            "logarithmic loss of the answers to both questions about held jobs"
        }
        MetricName::Reported => "metric of the program",
    };
    title.to_owned()
}

/// Returns the word for the better direction of a metric.
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
    fn outside_text_is_shortened_and_escaped() {
        assert_eq!(shown("a\u{202e}b"), r"a\u{202e}b");
        assert_eq!(shown(&"x".repeat(10_000)).len(), MAX_VALUE_CHARACTERS);
        let long = shown_lines(&"line\n".repeat(100_000));
        assert!(long.len() < MAX_TEXT_CHARACTERS + 10);
        assert_eq!(quoted("out/run-1").as_deref(), Some("out/run-1"));
        assert_eq!(quoted("it's here").as_deref(), Some(r"'it'\''s here'"));
    }

    #[test]
    fn paths_in_commands_are_never_cut() {
        let long = format!("/a b/{}", "directory/".repeat(100));
        assert_eq!(quoted(&long), Some(format!("'{long}'")));
        assert_eq!(quoted("a\u{202e}b"), None);
        assert_eq!(quoted("a\nb"), None);
    }
}
