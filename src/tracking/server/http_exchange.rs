//! Sends one HTTP request and receives its whole answer, within limits of time and size. A stop flag
//! ends it at any moment.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Method, RequestBuilder};
use tokio::runtime::{Builder, Runtime};

/// Size limit of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Interval between two checks of the stop flag.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The whole answer to a request.
pub(super) struct ReceivedAnswer {
    /// The HTTP status.
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The reason why there is no whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExchangeError {
    /// The stop flag was set.
    Stopped,
    /// The request or its answer failed, for this reason.
    Failed(String),
}

/// An HTTP client with a runtime of its own.
pub(super) struct HttpExchange {
    runtime: Runtime,
    client: Client,
}

impl HttpExchange {
    /// Builds the client of [`client_builder`]: a key is for one server, so redirects are not followed.
    ///
    /// # Errors
    /// Fails if the system's proxies or certificates cannot be used.
    pub(super) fn new() -> Result<HttpExchange> {
        // The thread of the runtime watches idle connections between two requests.
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("http")
            .enable_all()
            .build();
        Ok(HttpExchange {
            runtime: runtime.context("cannot start a thread for HTTP")?,
            client: build_client(client_builder()?)?,
        })
    }

    /// Begins a request to `url`.
    pub(super) fn request(&self, method: Method, url: &str) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends `request`, and returns its answer once it is complete. `limit` is the time for all of
    /// it; setting `stop` ends it early.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or if its answer ends early, is too large or is not
    /// complete in time.
    pub(super) fn receive(
        &self,
        request: RequestBuilder,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<ReceivedAnswer, ExchangeError> {
        let began = Instant::now();
        self.runtime.block_on(async {
            let mut exchange = pin!(receive_whole(request));
            loop {
                let left = limit.saturating_sub(began.elapsed());
                let step = left.min(STOP_CHECK_INTERVAL);
                if let Ok(received) = tokio::time::timeout(step, exchange.as_mut()).await {
                    return received.map_err(ExchangeError::Failed);
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(ExchangeError::Stopped);
                }
                if left.is_zero() {
                    let seconds = limit.as_secs_f64();
                    let why = format!("no complete answer within {seconds:.0} s");
                    return Err(ExchangeError::Failed(why));
                }
            }
        })
    }
}

/// Sends `request` and receives its answer. Returns the reason as a text if that fails.
async fn receive_whole(request: RequestBuilder) -> Result<ReceivedAnswer, String> {
    let mut answer = request.send().await.map_err(described)?;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let mut body = Vec::new();
    loop {
        let part = answer.chunk().await;
        let part = part.map_err(|error| format!("its answer ends early: {}", described(error)))?;
        let Some(part) = part else {
            return Ok(ReceivedAnswer {
                status,
                headers,
                body,
            });
        };
        if body.len() + part.len() > MAX_ANSWER_BYTES {
            let max_mb = MAX_ANSWER_BYTES >> 20;
            return Err(format!("its answer is larger than {max_mb} MB"));
        }
        body.extend_from_slice(&part);
    }
}

/// Formats `error` and its causes, without the URL, which may contain names.
fn described(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut why = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        why = format!("{why}: {cause}");
        source = cause.source();
    }
    why
}

/// Builds a client that trusts the system's certificates and the bundled web roots. It follows no redirects,
/// and tells no server where its address comes from.
pub(super) fn client_builder() -> Result<ClientBuilder> {
    // This fails only if another sender of this process came first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = Vec::new();
    for root in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        roots.push(Certificate::from_der(root)?);
    }
    Ok(Client::builder()
        .tls_certs_merge(roots)
        .hickory_dns(true)
        .referer(false)
        .redirect(Policy::none()))
}

/// Builds the client of `builder`.
pub(super) fn build_client(builder: ClientBuilder) -> Result<Client> {
    let client = builder.build();
    client.context("cannot make an HTTP client with the system's proxies and certificates")
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

    /// Begins a server that answers the first connection by `answer`, and returns its URL.
    fn begin_server(answer: impl FnOnce(TcpStream) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            answer(stream);
        });
        format!("http://{address}")
    }

    /// Answers one byte each 20 ms, for as long as the client listens.
    fn drip(mut stream: TcpStream) {
        let _ = stream.write_all(HEAD);
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn receive(url: &str, limit_ms: u64, stop: &AtomicBool) -> Result<Vec<u8>, ExchangeError> {
        let http = HttpExchange::new().expect("a client");
        let request = http.request(Method::GET, url);
        let limit = Duration::from_millis(limit_ms);
        let received = http.receive(request, limit, stop)?;
        Ok(received.body)
    }

    #[test]
    fn dripping_answer_ends_at_the_time_limit() {
        let url = begin_server(drip);
        let received = receive(&url, 600, &AtomicBool::new(false));
        let expected = ExchangeError::Failed("no complete answer within 1 s".to_owned());
        assert_eq!(received, Err(expected));
    }

    #[test]
    fn stop_flag_ends_dripping_and_silent_answers() {
        // A silent server reads on until the client goes away.
        let answers: [fn(TcpStream); 2] = [drip, |mut stream| {
            let _ = stream.read_to_end(&mut Vec::new());
        }];
        for answer in answers {
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = Arc::clone(&stop);
            let url = begin_server(move |stream| {
                stopped.store(true, Ordering::Relaxed);
                answer(stream);
            });
            let an_hour_ms = 3_600_000;
            let received = receive(&url, an_hour_ms, &stop);
            assert_eq!(received, Err(ExchangeError::Stopped));
        }
    }

    #[test]
    fn answers_without_an_end_are_cut_off() {
        let url = begin_server(|mut stream| {
            let _ = stream.write_all(HEAD);
            let part = [b'['; 1 << 16];
            while stream.write_all(&part).is_ok() {}
        });
        let received = receive(&url, 3_600_000, &AtomicBool::new(false));
        let expected = ExchangeError::Failed("its answer is larger than 16 MB".to_owned());
        assert_eq!(received, Err(expected));
    }
}
