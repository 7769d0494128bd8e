//! Rate limiting and backoff: computes when the next request may be sent, for the whole sender.

use std::time::Duration;

use reqwest::header::HeaderMap;

/// Backoff after the first failure; it doubles with each further failure.
const INITIAL_BACKOFF: Duration = Duration::from_secs(2);

/// Longest backoff if the server does not request one, before jitter.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Longest wait that is accepted from a server.
const MAX_REQUESTED_WAIT: Duration = Duration::from_secs(3600);

/// Longest pause between two requests that a server's rate limit can cause.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Remaining requests in the server's rate limit below which requests are spread out.
const AMPLE_REQUESTS: f64 = 10.0;

/// The earliest time of the next request, and the failures that it depends on.
#[derive(Debug, Default)]
pub(super) struct RequestPace {
    failures: u32,
    not_before: Duration,
}

impl RequestPace {
    /// The earliest time of the next request, by the sender's clock.
    pub(super) fn not_before(&self) -> Duration {
        self.not_before
    }

    /// Records an answer at `now` and resets the backoff.
    pub(super) fn succeed(&mut self, now: Duration, headers: &HeaderMap) {
        self.failures = 0;
        self.not_before = now + rate_limit_pause(headers);
    }

    /// Records a failure at `now` that will be retried. `jitter` is from 0 to 1 and lengthens the
    /// backoff by up to 25 %.
    pub(super) fn fail(&mut self, now: Duration, headers: Option<&HeaderMap>, jitter: f64) {
        let doubled = INITIAL_BACKOFF * 2_u32.saturating_pow(self.failures.min(8));
        let own = doubled.min(MAX_BACKOFF).mul_f64(1.0 + 0.25 * jitter);
        self.failures = self.failures.saturating_add(1);
        let asked = headers.and_then(|headers| requested_wait(headers, jiff::Timestamp::now()));
        self.not_before = now + asked.unwrap_or(own).min(MAX_REQUESTED_WAIT);
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the wait that a server requests by `Retry-After`, in seconds or until a date.
fn requested_wait(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = header(headers, "retry-after")?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let left_s = until.as_second().saturating_sub(now.as_second());
    Some(Duration::from_secs(u64::try_from(left_s).unwrap_or(0)))
}

/// Returns the pause that keeps a sender within a server's rate limit.
fn rate_limit_pause(headers: &HeaderMap) -> Duration {
    let number = |name| header(headers, name)?.trim().parse::<f64>().ok();
    let named = (number("ratelimit-remaining"), number("ratelimit-reset"));
    let (Some(remaining), Some(reset_s)) = named else {
        return Duration::ZERO;
    };
    let is_ample = remaining >= AMPLE_REQUESTS;
    if is_ample || !remaining.is_finite() || !(0.0..1e6).contains(&reset_s) {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(reset_s / remaining.max(1.0)).min(MAX_PAUSE)
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
    fn retry_after_is_read_in_seconds_and_as_a_date() {
        let now: jiff::Timestamp = "2015-10-21T07:28:00Z".parse().expect("a moment");
        let wait = |text: &str| requested_wait(&headers(&[("Retry-After", text)]), now);
        assert_eq!(wait("3"), Some(Duration::from_secs(3)));
        let date = "Wed, 21 Oct 2015 07:28:07 GMT";
        assert_eq!(wait(date), Some(Duration::from_secs(7)));
        let passed = "Wed, 21 Oct 2015 07:27:00 GMT";
        assert_eq!(wait(passed), Some(Duration::ZERO));
        assert_eq!(wait("soon"), None);
    }

    #[test]
    fn backoff_doubles_and_resets_after_an_answer() {
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
    fn last_requests_of_a_rate_limit_are_spread_out() {
        let pause = |remaining: &str, reset: &str| {
            rate_limit_pause(&headers(&[
                ("RateLimit-Remaining", remaining),
                ("RateLimit-Reset", reset),
            ]))
        };
        assert_eq!(pause("900", "60"), Duration::ZERO);
        assert_eq!(pause("6", "12"), Duration::from_secs(2));
        assert_eq!(pause("0", "3"), Duration::from_secs(3));
        assert_eq!(pause("0", "3000"), MAX_PAUSE);
        assert_eq!(pause("NaN", "3"), Duration::ZERO);
        assert_eq!(pause("1", "-3"), Duration::ZERO);
    }
}
