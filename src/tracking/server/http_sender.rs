//! Sends HTTP requests with retries, and reads the JSON documents that the server answers. The key
//! is redacted in all that the server says.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::answer_json::parse_answer;
use super::http_exchange::{ExchangeError, HttpExchange, ReceivedAnswer};
use super::request_pace::RequestPace;
use super::sender_clock::SenderClock;
use super::tracker_key::TrackerKey;
use super::tracker_state::StateKeeper;
use poolcast_sweep::config::Tracker;

/// Maximum length of a server's text in a message, in characters.
const MAX_ERROR_CHARACTERS: usize = 200;

/// Longest sleep before the sender checks again if it must stop.
const MAX_SLEEP: Duration = Duration::from_millis(200);

/// The program's name and version in the header `User-Agent`.
pub(super) const PROGRAM_NAME: &str = concat!("poolcast/", env!("CARGO_PKG_VERSION"));

/// Time limit of one try, until its whole answer is there.
const TRY_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of one try to send a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(300);

/// Statuses after which a request is not retried.
const FINAL_STATUSES: [u16; 8] = [400, 401, 403, 404, 410, 413, 422, 501];

/// The reason why a request failed for good.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The server does not give a usable answer, and the time for retries is over.
    #[error("{server} did not answer in time: {last}")]
    OutOfTime {
        /// Host of the server.
        server: String,
        /// The last error.
        last: String,
    },
    /// The time limit has passed, and not everything was sent.
    #[error("the time was over before {server} had everything")]
    TimeOver {
        /// Host of the server.
        server: String,
    },
    /// The request must not be repeated, and it is not known if the server accepted it.
    #[error("it is not known whether the server accepted the request")]
    InDoubt,
    /// A caller set the stop flag of the sender.
    #[error("the sender was stopped")]
    Stopped,
    /// The server demands something that poolcast cannot do.
    #[error("{server}: {message}")]
    Unusable {
        /// Name of the server.
        server: String,
        /// The reason, as a text.
        message: String,
    },
    /// The server rejects the request for good.
    #[error("{server} answers {status}: {message}")]
    Refused {
        /// Host of the server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The server's explanation.
        message: String,
    },
}

/// A request with a JSON body.
pub(crate) struct JsonRequest<'a> {
    /// The HTTP method.
    pub(crate) method: Method,
    /// The whole URL.
    pub(crate) url: &'a str,
    /// The JSON document; `None` for a request without a body.
    pub(crate) body: Option<&'a [u8]>,
    /// True if the request may be repeated: a second copy at the server does no harm.
    pub(crate) is_repeatable: bool,
    /// Returns true if the text of a rejection is final although its status would be retried.
    pub(crate) is_final: fn(&str) -> bool,
}

/// A file to upload, and its destination.
pub(crate) struct FileUpload<'a> {
    /// The whole URL.
    pub(crate) url: &'a str,
    /// Headers that the server demands for the upload.
    pub(crate) headers: &'a [(String, String)],
    /// Content of the file.
    pub(crate) bytes: &'a [u8],
    /// True if the URL belongs to the key's server, so that the key is sent.
    pub(crate) has_key: bool,
}

/// Time limits of retries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SendLimits {
    /// Longest time without an answer; `None` for no limit.
    pub(crate) patience: Option<Duration>,
    /// Time by the sender's clock after which no request begins, and at which the last one ends.
    pub(crate) deadline: Option<Duration>,
}

/// Sends requests to one server, one after another.
pub(crate) struct HttpSender {
    http: HttpExchange,
    server: String,
    key: Option<TrackerKey>,
    clock: SenderClock,
    pace: RequestPace,
    limits: SendLimits,
    stop: Arc<AtomicBool>,
    requests: u64,
    answered_at: Duration,
    keeper: Option<StateKeeper>,
}

impl HttpSender {
    /// Makes a sender to the server called `server`, with `key` on every request to that server.
    ///
    /// # Errors
    /// Fails if the system's proxies or certificates cannot be used.
    pub(crate) fn new(
        server: &str,
        key: Option<TrackerKey>,
        clock: SenderClock,
        limits: SendLimits,
        stop: Arc<AtomicBool>,
    ) -> Result<HttpSender> {
        Ok(HttpSender {
            http: HttpExchange::new()?,
            server: server.to_owned(),
            key,
            answered_at: clock.now(),
            clock,
            pace: RequestPace::default(),
            limits,
            stop,
            requests: 0,
            keeper: None,
        })
    }

    /// Writes the state of this sender to `tracker` into a file in `dir` from now on.
    pub(crate) fn enable_state_file(&mut self, dir: &Path, tracker: Tracker) {
        self.keeper = Some(StateKeeper::new(dir, tracker, &self.server));
    }

    /// Records the numbers of runs that were sent completely and of runs that go on.
    pub(crate) fn count_runs(&mut self, ended: usize, running: usize) {
        if let Some(keeper) = &mut self.keeper {
            keeper.count_runs(ended, running);
        }
    }

    /// Requests so far, with retries counted.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// The time by the sender's clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Replaces the limits of retries, and restarts the time without an answer.
    pub(crate) fn set_limits(&mut self, limits: SendLimits) {
        self.limits = limits;
        self.answered_at = self.clock.now();
    }

    /// Returns true if the sender must stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends `request` until the server answers with a JSON document or rejects it.
    pub(crate) fn send(&mut self, request: &JsonRequest<'_>) -> Result<Value, SendError> {
        let answer = self.send_with_retries(request.is_repeatable, |sender| {
            let received = sender.receive(sender.call(request), TRY_TIMEOUT)?;
            sender.read_answer(received, request.is_final)?.into_json()
        });
        Ok(answer?.unwrap_or_default())
    }

    /// Uploads a file until the server accepts or rejects it.
    pub(crate) fn put_file(&mut self, upload: &FileUpload<'_>) -> Result<(), SendError> {
        self.send_with_retries(true, |sender| {
            let received = sender.receive(sender.upload_request(upload), FILE_TIMEOUT)?;
            sender.read_answer(received, |_| false)
        })?;
        Ok(())
    }

    /// Calls `try_once` until it returns an answer or a final error, with backoff between tries.
    fn send_with_retries(
        &mut self,
        is_repeatable: bool,
        try_once: impl Fn(&HttpSender) -> Result<HttpResponse, TryError>,
    ) -> Result<Option<Value>, SendError> {
        loop {
            self.check_deadline()?;
            self.wait_until(self.pace.not_before())?;
            self.requests += 1;
            let failure = match try_once(self) {
                Ok(answer) => {
                    let now = self.clock.now();
                    self.answered_at = now;
                    self.pace.succeed(now, &answer.headers);
                    if let Some(keeper) = &mut self.keeper {
                        keeper.record_answer();
                    }
                    return Ok(answer.document);
                }
                Err(TryError::Final(error)) => return Err(error),
                Err(TryError::Again(failure)) => failure,
            };

            let now = self.clock.now();
            tracing::info!("{}: {}", self.server, failure.why);
            self.pace.fail(now, failure.headers.as_ref(), jitter());
            if let Some(keeper) = &mut self.keeper {
                keeper.record_failure(&failure.why);
            }
            // `OutOfTime` takes precedence over `InDoubt`: without time left, the caller cannot
            // find out the effect of the request.
            self.check_time_left(failure.why)?;
            if !is_repeatable {
                return Err(SendError::InDoubt);
            }
        }
    }

    /// Fails if the next request would begin after the deadline.
    fn check_deadline(&self) -> Result<(), SendError> {
        let next = self.pace.not_before().max(self.clock.now());
        match self.limits.deadline {
            Some(deadline) if next > deadline => Err(SendError::TimeOver {
                server: self.server.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Fails if the next try would begin after a time limit.
    fn check_time_left(&self, last: String) -> Result<(), SendError> {
        let next = self.pace.not_before();
        let given_up = self
            .limits
            .patience
            .map(|patience| self.answered_at + patience);
        let is_late = |limit: Option<Duration>| limit.is_some_and(|limit| next > limit);
        if is_late(given_up) || is_late(self.limits.deadline) {
            return Err(SendError::OutOfTime {
                server: self.server.clone(),
                last,
            });
        }
        Ok(())
    }

    /// Waits until `moment` by the sender's clock, or fails once the sender must stop.
    pub(crate) fn wait_until(&self, moment: Duration) -> Result<(), SendError> {
        loop {
            if self.is_stopped() {
                return Err(SendError::Stopped);
            }
            let left = moment.saturating_sub(self.clock.now());
            if left.is_zero() {
                return Ok(());
            }
            self.clock.sleep(left.min(MAX_SLEEP));
        }
    }

    fn upload_request(&self, upload: &FileUpload<'_>) -> RequestBuilder {
        let mut call = self
            .http
            .request(Method::PUT, upload.url)
            .header(USER_AGENT, PROGRAM_NAME)
            .body(upload.bytes.to_vec());
        for (name, value) in upload.headers {
            call = call.header(name, value);
        }
        match &self.key {
            Some(key) if upload.has_key => call.header(AUTHORIZATION, key.authorization()),
            _ => call,
        }
    }

    fn call(&self, request: &JsonRequest<'_>) -> RequestBuilder {
        let mut call = self
            .http
            .request(request.method.clone(), request.url)
            .header(USER_AGENT, PROGRAM_NAME)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.key {
            call = call.header(AUTHORIZATION, key.authorization());
        }
        if let Some(body) = request.body {
            call = call.body(body.to_vec());
        }
        call
    }

    /// Sends `call` and receives its whole answer, in at most `limit` and before the deadline.
    fn receive(&self, call: RequestBuilder, limit: Duration) -> Result<ReceivedAnswer, TryError> {
        let left = self
            .limits
            .deadline
            .map_or(limit, |deadline| deadline.saturating_sub(self.clock.now()));
        let received = self.http.receive(call, limit.min(left), &self.stop);
        received.map_err(|error| match error {
            ExchangeError::Stopped => TryError::Final(SendError::Stopped),
            ExchangeError::Failed(why) => TryError::Again(Failure {
                why: self.shown(&why),
                headers: None,
            }),
        })
    }

    fn read_answer(
        &self,
        received: ReceivedAnswer,
        is_final: fn(&str) -> bool,
    ) -> Result<HttpResponse, TryError> {
        let ReceivedAnswer {
            status,
            headers,
            body,
        } = received;
        // The answer to an upload may have no JSON, so only `send` requires it.
        let mut document = parse_answer(&body);
        if let (Some(document), Some(key)) = (&mut document, &self.key) {
            key.redact_document(document);
        }
        if (200..300).contains(&status) {
            return Ok(HttpResponse { document, headers });
        }

        let message = self.shown(&error_text(document, &body));
        let is_redirect = (300..400).contains(&status);
        if is_redirect || FINAL_STATUSES.contains(&status) || is_final(&message) {
            return Err(TryError::Final(SendError::Refused {
                server: self.server.clone(),
                status,
                message: if is_redirect {
                    "it redirects to another address, which poolcast does not follow".to_owned()
                } else {
                    message
                },
            }));
        }
        Err(TryError::Again(Failure {
            why: format!("it answers {status}: {message}"),
            headers: Some(headers),
        }))
    }

    /// Returns a message of the server for display: without the key, escaped, and shortened.
    pub(crate) fn shown(&self, message: &str) -> String {
        let redacted = self.key.as_ref().map(|key| key.redact(message));
        let message = redacted.as_deref().unwrap_or(message);
        poolcast_base::output::cut(message.trim(), MAX_ERROR_CHARACTERS)
    }
}

/// The answer to an accepted request.
struct HttpResponse {
    /// The JSON document in the answer, if it has one.
    document: Option<Value>,
    headers: HeaderMap,
}

impl HttpResponse {
    /// Returns the answer if it has a JSON document, and a retryable error if not.
    fn into_json(self) -> Result<HttpResponse, TryError> {
        if self.document.is_some() {
            return Ok(self);
        }
        Err(TryError::Again(Failure {
            why: "its answer is not usable JSON".to_owned(),
            headers: Some(self.headers),
        }))
    }
}

/// The error of one try.
enum TryError {
    Again(Failure),
    Final(SendError),
}

struct Failure {
    why: String,
    headers: Option<HeaderMap>,
}

/// Returns the server's explanation of a rejection.
fn error_text(document: Option<Value>, body: &[u8]) -> String {
    let named = document.and_then(|document| {
        let errors = document.get("errors").or(document.get("error"));
        let first = errors.and_then(|errors| errors.get(0)).or(errors);
        let message = first.and_then(|error| error.get("message").or(Some(error)));
        let message = message.or(document.get("message"));
        Some(message?.as_str()?.to_owned())
    });
    named.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// A random number from 0 to 1. It differs between senders, so that they do not retry at the same
/// time.
fn jitter() -> f64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard library seeds its hash keys with the system's random numbers.
    let bits = std::hash::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
