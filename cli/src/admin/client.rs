//! Asks the admin router of a gate.

use std::{env, fs, io::Write, path::PathBuf, time::Duration};

use serde_json::Value;
use ureq::{Agent, http::Response};

/// The longest that an answer may take.
const ANSWER_SECONDS_MAX: u64 = 30;

/// The largest answer that is read, in bytes: ten thousand hot keys are a third of it.
const ANSWER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What every answer of an admin router bears.
const MARK: &str = "hotgate-admin";

/// Where the gate is, and what lets one in.
#[derive(Debug, clap::Args)]
pub(crate) struct Remote {
    /// The admin router of a running gate, such as http://127.0.0.1:9090 [env: HOTGATE_URL].
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A file that holds its token [env: HOTGATE_TOKEN_FILE, or the token itself in HOTGATE_TOKEN].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// A request that came to nothing, and the status to end with.
#[derive(Debug)]
pub(super) enum Failed {
    /// What was given cannot be asked.
    Usage(String),
    /// It was asked, and not done.
    Failed(String),
}

pub(super) struct Client {
    agent: Agent,
    url: String,
    token: String,
}

impl Client {
    /// From the arguments, else from the environment.
    pub(super) fn new(remote: &Remote, err: &mut dyn Write) -> Result<Self, Failed> {
        const NO_URL: &str = "expected --url or HOTGATE_URL: where the gate's admin router is, such as http://127.0.0.1:9090";
        let url = remote.url.clone().or_else(|| env::var("HOTGATE_URL").ok());
        let url = url.ok_or_else(|| Failed::Usage(NO_URL.to_owned()))?;
        let url = url.trim_end_matches('/').to_owned();
        let host = host(&url)?;
        let token = token(remote)?;
        if !is_local(&host) {
            let _ = writeln!(
                err,
                "note: the token and the answers pass the network to {host} in clear"
            );
        }
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(ANSWER_SECONDS_MAX)))
            // The token is meant for that address alone: for no proxy, and for nowhere it sends one on to.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("hotgate/", env!("CARGO_PKG_VERSION")));
        Ok(Client { agent: config.build().into(), url, token })
    }

    pub(super) fn get(&self, path: &str) -> Result<String, Failed> {
        let request = self.agent.get(format!("{}/{path}", self.url));
        let answer = request.header("authorization", self.bearer()).call();
        self.text(answer)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<String, Failed> {
        let request = self.agent.post(format!("{}/{path}", self.url));
        let request = request.header("authorization", self.bearer());
        let answer = request.content_type("application/json").send(body.to_string());
        self.text(answer)
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn text(&self, answer: Result<Response<ureq::Body>, ureq::Error>) -> Result<String, Failed> {
        let mut answer = answer.map_err(|error| self.unreached(&error))?;
        let status = answer.status();
        let url = &self.url;
        if !answer.headers().contains_key(MARK) {
            return Err(Failed::Failed(format!(
                "{url} answers {} as nothing that a gate serves: expected the address of an admin \
                 router, with its path, asked from the same machine and through no proxy",
                status.as_u16()
            )));
        }
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let text = text.map_err(|error| self.unreached(&error))?;
        if status.is_success() {
            return Ok(text);
        }
        if status.as_u16() == 401 {
            return Err(Failed::Failed(format!(
                "the token is not the one that {url} expects: give it by --token-file, \
                 HOTGATE_TOKEN_FILE or HOTGATE_TOKEN"
            )));
        }
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or("it does not say why").to_owned();
        Err(if status.as_u16() == 400 { Failed::Usage(detail) } else { Failed::Failed(detail) })
    }

    fn unreached(&self, error: &ureq::Error) -> Failed {
        let url = &self.url;
        Failed::Failed(match error {
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                format!(
                    "nobody listens at {url}: does the service run, and is that its admin port?"
                )
            }
            ureq::Error::Timeout(_) => {
                format!("{url} did not answer within {ANSWER_SECONDS_MAX} s")
            }
            error => format!("cannot ask {url}: {error}"),
        })
    }
}

/// The host of a URL that can be asked.
fn host(url: &str) -> Result<String, Failed> {
    let bad = |why: &str| Failed::Usage(format!("--url {url}: {why}"));
    let uri: http::Uri =
        url.parse().map_err(|_| bad("expected a URL such as http://127.0.0.1:9090"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(bad(
                "https is not spoken here: use an SSH tunnel to the machine's loopback",
            ));
        }
        _ => return Err(bad("expected http:// before the address")),
    }
    if uri.query().is_some() {
        return Err(bad("expected no query"));
    }
    uri.host().map(str::to_owned).ok_or_else(|| bad("expected an address after http://"))
}

fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    host == "localhost" || address.parse().is_ok_and(is_loopback)
}

fn token(remote: &Remote) -> Result<String, Failed> {
    const NONE: &str =
        "expected the admin router's token, by --token-file, HOTGATE_TOKEN_FILE or HOTGATE_TOKEN";
    let file = remote.token_file.clone();
    let file = file.or_else(|| env::var_os("HOTGATE_TOKEN_FILE").map(PathBuf::from));
    let text = match file {
        Some(file) => fs::read_to_string(&file).map_err(|error| {
            Failed::Usage(format!("cannot read the token from {}: {error}", file.display()))
        })?,
        None => env::var("HOTGATE_TOKEN").map_err(|_| Failed::Usage(NONE.to_owned()))?,
    };
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failed::Usage("the token is empty or holds more than one word".to_owned()));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_be_asked_says_what_was_expected() {
        for (url, expected) in [
            ("http://127.0.0.1:9090", Ok("127.0.0.1")),
            ("http://[::1]:9090/ops", Ok("[::1]")),
            ("127.0.0.1:9090", Err("expected http://")),
            ("https://shop.example", Err("https is not spoken here")),
            ("http://a?b", Err("expected no query")),
            ("http:// a", Err("expected a URL")),
        ] {
            match (host(url), expected) {
                (Ok(host), Ok(expected)) => assert_eq!(host, expected),
                (Err(Failed::Usage(said)), Err(expected)) => {
                    assert!(said.contains(expected), "{said}")
                }
                (found, _) => panic!("{url}: {found:?}"),
            }
        }
        for (host, local) in
            [("127.9.0.1", true), ("[::1]", true), ("localhost", true), ("10.0.0.1", false)]
        {
            assert_eq!(is_local(host), local, "{host}");
        }
    }
}
