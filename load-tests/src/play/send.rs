//! Requests on their way.

use std::{
    fmt,
    future::Future,
    io,
    num::NonZeroUsize,
    pin::pin,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hotgate_detector::Time;
use http::{HeaderValue, Request, Response, Uri, header::HOST};
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use indicatif::ProgressBar;
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{
    schedule::{Requests, Schedule},
    tally::{Answer, Tally},
};

/// A log holds no bodies.
pub(super) type Body = Empty<Bytes>;

/// How long an answer may take. Beyond it there was none.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A server: where it listens, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    host: HeaderValue,
    address: String,
}

/// Why a URL is no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTarget;

impl fmt::Display for NoTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected http://HOST:PORT, without a path: the log has the paths")
    }
}

impl std::error::Error for NoTarget {}

impl FromStr for Target {
    type Err = NoTarget;

    fn from_str(url: &str) -> Result<Self, NoTarget> {
        let uri: Uri = url.parse().map_err(|_| NoTarget)?;
        let authority = uri.authority().ok_or(NoTarget)?;
        let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if uri.scheme_str() != Some("http") || !bare || authority.as_str().contains('@') {
            return Err(NoTarget);
        }
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| NoTarget)?;
        let port = authority.port_u16().unwrap_or(80);
        Ok(Target { host, address: format!("{}:{port}", authority.host()) })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.address)
    }
}

/// Sends what is due, and takes down what came of it.
pub(super) struct Sender {
    inner: Arc<Inner>,
    /// One for each client's requests of one moment, so also for each connection.
    permits: Arc<Semaphore>,
}

struct Inner {
    target: Target,
    /// Connections that wait for a request.
    idle: Mutex<Vec<SendRequest<Body>>>,
    tally: Mutex<Tally>,
}

impl Sender {
    /// Opens one connection, to see whether anybody listens.
    pub(super) async fn connect(
        target: Target,
        in_flight: NonZeroUsize,
        tally: Tally,
    ) -> io::Result<Self> {
        let inner = Inner { target, idle: Mutex::default(), tally: Mutex::new(tally) };
        let connection = inner.open().await.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot connect to {}: {error}", inner.target))
        })?;
        inner.put_back(connection);
        let permits = Arc::new(Semaphore::new(in_flight.get().min(Semaphore::MAX_PERMITS)));
        Ok(Sender { inner: Arc::new(inner), permits })
    }

    /// Sends every line at its time, and waits for the answers.
    pub(super) async fn send_all(
        &self,
        mut schedule: Schedule,
        stop: impl Future<Output = ()>,
        progress: &ProgressBar,
    ) -> io::Result<()> {
        let mut stop = pin!(stop);
        let mut under_way = JoinSet::new();
        let start = Instant::now();
        'log: while let Some(moment) = schedule.next()? {
            let due = start + moment.due;
            tokio::select! {
                () = sleep_until(due) => {}
                () = &mut stop => break,
            }
            for requests in moment.clients {
                // All permits taken: nothing is left out, but what follows is late.
                let permit = tokio::select! {
                    permit = Arc::clone(&self.permits).acquire_owned() => permit,
                    () = &mut stop => break 'log,
                };
                let inner = Arc::clone(&self.inner);
                let lines = requests.requests.len() as u64;
                under_way.spawn(async move {
                    inner.send_in_turn(requests, moment.logged, due).await;
                    drop(permit);
                });
                while under_way.try_join_next().is_some() {}
                progress.inc(lines);
            }
        }
        while under_way.join_next().await.is_some() {}
        Ok(())
    }

    /// What came of all that was sent, once nothing is under way.
    pub(super) fn into_tally(self) -> Tally {
        let inner = Arc::into_inner(self.inner).expect("every task that shared it has ended");
        inner.tally.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    async fn send_in_turn(&self, requests: Requests, logged: Time, due: Instant) {
        for request in requests.requests {
            let sent = Instant::now();
            let answer = timeout(ANSWER_MAX, self.send(request)).await;
            let answered = Instant::now();
            let status = match answer {
                Ok(Ok((connection, response))) => {
                    let status = response.status();
                    self.read_to_end(connection, response).await;
                    Ok(status)
                }
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {} s", ANSWER_MAX.as_secs())),
            };
            let answer = Answer {
                logged,
                status,
                sent_late: sent.saturating_duration_since(due),
                answered_late: answered.saturating_duration_since(due),
            };
            let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.take(&requests.client, answer);
        }
    }

    /// The head of the answer, and the connection whose body is still to be read.
    async fn send(
        &self,
        mut request: Request<Body>,
    ) -> io::Result<(SendRequest<Body>, Response<Incoming>)> {
        request.headers_mut().insert(HOST, self.target.host.clone());
        // A connection that the server closed meanwhile gives the request back unsent.
        while let Some(mut connection) = self.take_idle() {
            match connection.try_send_request(request).await {
                Ok(response) => return Ok((connection, response)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(io::Error::other(failed.into_error())),
                },
            }
        }
        let mut connection = self.open().await?;
        let response = connection.send_request(request).await.map_err(io::Error::other)?;
        Ok((connection, response))
    }

    async fn open(&self) -> io::Result<SendRequest<Body>> {
        let stream = TcpStream::connect(&self.target.address).await?;
        stream.set_nodelay(true)?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        // It ends with its sender; its errors come to whoever waits for an answer.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// A connection is used again once its answer was read to the end; one whose answer does not end
    /// is closed.
    async fn read_to_end(&self, mut connection: SendRequest<Body>, response: Response<Incoming>) {
        let mut body = response.into_body();
        let reading = async {
            while let Some(frame) = body.frame().await {
                frame?;
            }
            connection.ready().await
        };
        if let Ok(Ok(())) = timeout(ANSWER_MAX, reading).await {
            self.put_back(connection);
        }
    }

    fn take_idle(&self) -> Option<SendRequest<Body>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put_back(&self, connection: SendRequest<Body>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_host_and_a_port_and_no_path() {
        let table = [
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("http://shop.example/", Some("http://shop.example:80")),
            ("http://[::1]:8080", Some("http://[::1]:8080")),
            ("https://shop.example", None),
            ("http://shop.example/api", None),
            ("http://shop.example/?x", None),
            ("http://me@shop.example/", None),
            ("127.0.0.1:8080", None),
            ("/x", None),
            ("", None),
        ];
        for (url, expected) in table {
            let target = url.parse::<Target>().ok().map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{url}");
        }
    }
}
