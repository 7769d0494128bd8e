//! What a server says of its limits → when the next request may be sent. It holds for the whole
//! sender, not for one run.

use std::time::Duration;

use reqwest::header::HeaderMap;

/// The wait after the first failure; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// The longest wait that a sender takes of its own.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The longest wait that a server is followed in.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(3600);

/// The longest pause between two requests that a server's rate is followed in.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How many requests may be left before their pace is slowed down.
const AMPLE_REQUESTS: f64 = 10.0;

/// When the next request may be sent.
#[derive(Debug, Default)]
pub(super) struct RequestPace {
    failures: u32,
    not_before: Duration,
}

impl RequestPace {
    /// The earliest moment of the next request.
    pub(super) fn not_before(&self) -> Duration {
        self.not_before
    }

    /// Takes note of an answer at `now`.
    pub(super) fn succeed(&mut self, now: Duration, headers: &HeaderMap) {
        self.failures = 0;
        self.not_before = now + asked_pause(headers);
    }

    /// Takes note of a failure at `now`, which is to be tried again. `jitter` is from 0 to 1.
    pub(super) fn fail(&mut self, now: Duration, headers: Option<&HeaderMap>, jitter: f64) {
        let doubled = FIRST_WAIT * 2_u32.saturating_pow(self.failures.min(8));
        let own = doubled.min(LONGEST_WAIT).mul_f64(1.0 + 0.25 * jitter);
        self.failures = self.failures.saturating_add(1);
        let asked = headers.and_then(|headers| asked_wait(headers, jiff::Timestamp::now()));
        self.not_before = now + asked.unwrap_or(own).min(LONGEST_ASKED_WAIT);
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The wait that a server asks for: in seconds, or until a moment.
fn asked_wait(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = header(headers, "retry-after")?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let left_s = until.as_second().saturating_sub(now.as_second());
    Some(Duration::from_secs(u64::try_from(left_s).unwrap_or(0)))
}

/// The pause that keeps a sender within a server's rate.
fn asked_pause(headers: &HeaderMap) -> Duration {
    let number = |name| header(headers, name)?.trim().parse::<f64>().ok();
    let named = (number("ratelimit-remaining"), number("ratelimit-reset"));
    let (Some(remaining), Some(reset_s)) = named else {
        return Duration::ZERO;
    };
    let is_ample = remaining >= AMPLE_REQUESTS;
    if is_ample || !remaining.is_finite() || !(0.0..1e6).contains(&reset_s) {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(reset_s / remaining.max(1.0)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_in_either_form() {
        let now: jiff::Timestamp = "2015-10-21T07:28:00Z".parse().expect("a moment");
        let wait = |text: &str| asked_wait(&headers(&[("Retry-After", text)]), now);
        assert_eq!(wait("3"), Some(Duration::from_secs(3)));
        let date = "Wed, 21 Oct 2015 07:28:07 GMT";
        assert_eq!(wait(date), Some(Duration::from_secs(7)));
        let passed = "Wed, 21 Oct 2015 07:27:00 GMT";
        assert_eq!(wait(passed), Some(Duration::ZERO));
        assert_eq!(wait("soon"), None);
    }

    #[test]
    fn waits_double_and_end_with_an_answer() {
        let mut pace = RequestPace::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            pace.fail(Duration::ZERO, None, 0.0);
            waits.push(pace.not_before().as_secs());
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
        pace.fail(Duration::ZERO, None, 1.0);
        assert_eq!(pace.not_before().as_secs(), 75);
        pace.succeed(Duration::from_secs(9), &HeaderMap::new());
        assert_eq!(pace.not_before().as_secs(), 9);
        pace.fail(Duration::ZERO, None, 0.0);
        assert_eq!(pace.not_before().as_secs(), 2);
    }

    #[test]
    fn few_requests_that_are_left_are_spread() {
        let pause = |remaining: &str, reset: &str| {
            asked_pause(&headers(&[
                ("RateLimit-Remaining", remaining),
                ("RateLimit-Reset", reset),
            ]))
        };
        assert_eq!(pause("900", "60"), Duration::ZERO);
        assert_eq!(pause("6", "12"), Duration::from_secs(2));
        assert_eq!(pause("0", "3"), Duration::from_secs(3));
        assert_eq!(pause("0", "3000"), LONGEST_PAUSE);
        assert_eq!(pause("NaN", "3"), Duration::ZERO);
        assert_eq!(pause("1", "-3"), Duration::ZERO);
    }
}
