//! A request → the JSON document that a server answers with, however often it has to be tried.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Method};
use serde_json::Value;

use super::request_pace::RequestPace;
use super::sender_clock::SenderClock;
use super::tracker_key::TrackerKey;
use super::tracker_state::StateKeeper;
use poolcast_config::Tracker;

/// The largest answer that is read.
const MOST_ANSWER_BYTES: u64 = 64 << 20;

/// So much of what a server says is in a message.
const MOST_SAID_CHARACTERS: usize = 200;

/// The longest sleep after which a sender looks whether it is to stop.
const SLEEP_STEP: Duration = Duration::from_millis(200);

/// What the program calls itself.
const PROGRAM_NAME: &str = concat!("poolcast/", env!("CARGO_PKG_VERSION"));

/// How long one try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long one try to send a file may take.
const FILE_TIMEOUT: Duration = Duration::from_secs(300);

/// Statuses after which the same request is not tried again.
const FINAL_STATUSES: [u16; 8] = [400, 401, 403, 404, 410, 413, 422, 501];

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The server does not answer as it should, and there is no more time.
    #[error("{server} did not answer in time: {last}")]
    OutOfTime {
        /// Its host.
        server: String,
        /// What went wrong last.
        last: String,
    },
    /// The request is not to be repeated, and it is not known what came of it.
    #[error("it is not known whether the server took the request")]
    InDoubt,
    /// The sender was told to stop.
    #[error("the sender was stopped")]
    Stopped,
    /// The server wants what cannot be done.
    #[error("{server}: {said}")]
    Unusable {
        /// Its name.
        server: String,
        /// What it wants.
        said: String,
    },
    /// The server does not want the request, now or later.
    #[error("{server} answers {status}: {said}")]
    Refused {
        /// Its host.
        server: String,
        /// The HTTP status.
        status: u16,
        /// What it says of it.
        said: String,
    },
}

/// A request of JSON.
pub(super) struct JsonRequest<'a> {
    /// `POST` or another.
    pub(super) method: Method,
    /// The whole address.
    pub(super) url: &'a str,
    /// The document; `None` for none.
    pub(super) body: Option<&'a [u8]>,
    /// Whether it does no harm if the server gets it twice.
    pub(super) is_repeatable: bool,
    /// Whether a refusal is final that would be tried again by its status: so says the text of it.
    pub(super) is_final: fn(&str) -> bool,
}

/// A file for an address.
pub(super) struct FileUpload<'a> {
    /// The whole address.
    pub(super) url: &'a str,
    /// Headers that the server wants with it.
    pub(super) headers: &'a [(String, String)],
    /// What is in the file.
    pub(super) bytes: &'a [u8],
    /// Whether the address is the server's own, which the key is for.
    pub(super) has_key: bool,
}

/// How long requests are tried.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SendLimits {
    /// How long a server may not answer; without end if it is `None`.
    pub(super) patience: Option<Duration>,
    /// The moment by the sender's clock after which nothing is tried again.
    pub(super) deadline: Option<Duration>,
}

/// Sends requests to one server, one after another.
pub(super) struct HttpSender {
    client: Client,
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
    /// For the server called `server`, with `key` on every request.
    ///
    /// # Errors
    /// Fails where the system's settings of proxies or certificates cannot be used.
    pub(super) fn new(
        server: &str,
        key: Option<TrackerKey>,
        clock: SenderClock,
        limits: SendLimits,
        stop: Arc<AtomicBool>,
    ) -> Result<HttpSender> {
        Ok(HttpSender {
            client: new_client()?,
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

    /// From now on a file says how this sender to `tracker` gets on with the runs in `dir`.
    pub(super) fn keep_state(&mut self, dir: &Path, tracker: Tracker) {
        self.keeper = Some(StateKeeper::new(dir, tracker, &self.server));
    }

    /// Takes note that so many runs were sent to their end, and so many go on.
    pub(super) fn count_runs(&mut self, ended: usize, running: usize) {
        if let Some(keeper) = &mut self.keeper {
            keeper.count_runs(ended, running);
        }
    }

    /// How many requests were sent, each try counted.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// The time by the sender's clock.
    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// From now on requests are tried for so long.
    pub(super) fn set_limits(&mut self, limits: SendLimits) {
        self.limits = limits;
        self.answered_at = self.clock.now();
    }

    /// Whether the sender is to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends `request` until it is answered with a JSON document, or refused.
    pub(super) fn send(&mut self, request: &JsonRequest<'_>) -> Result<Value, SendError> {
        let answer = self.send_by(request.is_repeatable, |sender| {
            let answer = sender.call(request).send();
            sender.read_answer(answer?, request.is_final)?.into_json()
        });
        Ok(answer?.unwrap_or_default())
    }

    /// Sends a file until it is taken, or refused.
    pub(super) fn put_file(&mut self, upload: &FileUpload<'_>) -> Result<(), SendError> {
        self.send_by(true, |sender| {
            let answer = sender.upload_call(upload).send();
            sender.read_answer(answer?, |_| false)
        })?;
        Ok(())
    }

    /// Tries until there is an answer, or a refusal.
    fn send_by(
        &mut self,
        is_repeatable: bool,
        try_once: impl Fn(&HttpSender) -> Result<Answer, TryError>,
    ) -> Result<Option<Value>, SendError> {
        loop {
            self.wait_until(self.pace.not_before())?;
            self.requests += 1;
            let failure = match try_once(self) {
                Ok(answer) => {
                    let now = self.clock.now();
                    self.answered_at = now;
                    self.pace.succeed(now, &answer.headers);
                    if let Some(keeper) = &mut self.keeper {
                        keeper.hear_answer();
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
                keeper.hear_failure(&failure.why);
            }
            self.check_time_left(failure.why)?;
            if !is_repeatable {
                return Err(SendError::InDoubt);
            }
        }
    }

    /// Fails where the next try would come too late.
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

    /// Waits until `moment` by the sender's clock.
    pub(super) fn wait_until(&self, moment: Duration) -> Result<(), SendError> {
        loop {
            if self.is_stopped() {
                return Err(SendError::Stopped);
            }
            let left = moment.saturating_sub(self.clock.now());
            if left.is_zero() {
                return Ok(());
            }
            self.clock.sleep(left.min(SLEEP_STEP));
        }
    }

    fn upload_call(&self, upload: &FileUpload<'_>) -> RequestBuilder {
        let mut call = self
            .client
            .put(upload.url)
            .timeout(FILE_TIMEOUT)
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
            .client
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

    fn read_answer(
        &self,
        answer: Response,
        is_final: fn(&str) -> bool,
    ) -> Result<Answer, TryError> {
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let mut body = Vec::new();
        let read = answer.take(MOST_ANSWER_BYTES).read_to_end(&mut body);
        let again = |why: String| {
            TryError::Again(Failure {
                why,
                headers: Some(headers.clone()),
            })
        };
        if let Err(error) = read {
            return Err(again(format!("its answer ends early: {error}")));
        }

        let document = serde_json::from_slice::<Value>(&body);
        if (200..300).contains(&status) {
            return Ok(Answer {
                document: document.ok(),
                headers,
            });
        }

        let said = said_in(document.ok(), &body);
        let is_redirect = (300..400).contains(&status);
        if is_redirect || FINAL_STATUSES.contains(&status) || is_final(&said) {
            return Err(TryError::Final(SendError::Refused {
                server: self.server.clone(),
                status,
                said: if is_redirect {
                    "it names another address, to which nothing is sent".to_owned()
                } else {
                    said
                },
            }));
        }
        Err(again(format!("it answers {status}: {said}")))
    }
}

/// The answer of a server that has taken a request.
struct Answer {
    /// What it says, if that is a JSON document.
    document: Option<Value>,
    headers: HeaderMap,
}

impl Answer {
    /// The same, if it is a JSON document.
    fn into_json(self) -> Result<Answer, TryError> {
        if self.document.is_some() {
            return Ok(self);
        }
        Err(TryError::Again(Failure {
            why: "its answer is no JSON".to_owned(),
            headers: Some(self.headers),
        }))
    }
}

/// Why one try failed.
enum TryError {
    Again(Failure),
    Final(SendError),
}

impl From<reqwest::Error> for TryError {
    fn from(error: reqwest::Error) -> TryError {
        TryError::Again(Failure::from(error))
    }
}

struct Failure {
    why: String,
    headers: Option<HeaderMap>,
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Failure {
        // The address is left out: it may have names in it.
        let error = error.without_url();
        let mut why = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            why = format!("{why}: {cause}");
            source = cause.source();
        }
        Failure { why, headers: None }
    }
}

/// The client of one sender. It trusts the system's certificates, and the roots of the web where the
/// system has none. It follows no redirects, as a key is for one server.
fn new_client() -> Result<Client> {
    // It is an error only that another sender of this process was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = Vec::new();
    for root in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        roots.push(Certificate::from_der(root)?);
    }
    let client = Client::builder()
        .tls_certs_merge(roots)
        .hickory_dns(true)
        .redirect(Policy::none())
        .timeout(TRY_TIMEOUT)
        .build();
    client.context("cannot make requests with the system's proxies and certificates")
}

/// What a server says of a refusal, bounded, on one line.
fn said_in(document: Option<Value>, body: &[u8]) -> String {
    let named = document.and_then(|document| {
        let errors = document.get("errors").or(document.get("error"));
        let first = errors.and_then(|errors| errors.get(0)).or(errors);
        let message = first.and_then(|error| error.get("message").or(Some(error)));
        let message = message.or(document.get("message"));
        Some(message?.as_str()?.to_owned())
    });
    let said = named.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    poolcast_base::output::cut(said.trim(), MOST_SAID_CHARACTERS)
}

/// A number from 0 to 1 that differs from sender to sender, so that they do not come back at once.
fn jitter() -> f64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard library's keys are the system's random numbers.
    let bits = std::hash::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
