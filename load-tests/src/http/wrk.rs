//! Requests a second over sockets, by wrk.

use std::{
    io::{self, ErrorKind, Write as _},
    net::{SocketAddr, TcpListener},
    process::{self, Command, Stdio},
    thread,
};

use axum::Router;
use tempfile::NamedTempFile;

use super::variant::{CLIENTS, Clients, Variant};

/// Requests of one client after the other, made before the first is sent.
const SCRIPT: &str = r#"
local requests, last = {}, 0
function init()
  for n = 0, CLIENTS - 1 do
    local address = string.format("10.%d.%d.%d", n / 65536, n / 256 % 256, n % 256)
    local headers = { ["x-forwarded-for"] = address, ["x-user"] = "user-" .. n, ["x-api-key"] = "key-" .. n }
    requests[n + 1] = wrk.format("GET", "/orders/7", headers)
  end
end
function request()
  last = last % CLIENTS + 1
  return requests[last]
end
"#;

/// Requests a second of two servers, in rounds, the one beside the other.
#[derive(Default)]
pub(super) struct Rounds {
    pub(super) peer: Vec<f64>,
    pub(super) ours: Vec<f64>,
}

impl Rounds {
    /// Ours in shares of the peer's, of each round, sorted.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let both = self.ours.iter().zip(&self.peer);
        let mut ratios: Vec<f64> = both.map(|(ours, peer)| ours / peer).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }
}

/// Two servers in this process, asked in turn. `None`: there is no wrk.
///
/// # Errors
///
/// When a server or wrk fails, or an answer is not the one that is compared.
pub(super) fn compare(
    peer: Variant,
    ours: Variant,
    rounds: usize,
    seconds: u32,
    pinned: bool,
) -> io::Result<Option<Rounds>> {
    if !is_there("wrk") {
        return Ok(None);
    }
    let mut script = NamedTempFile::new()?;
    script.write_all(SCRIPT.replace("CLIENTS", &CLIENTS.to_string()).as_bytes())?;
    let of = |variant| Ok::<_, io::Error>((variant, serve(variant)?));
    let (peer, ours) = (of(peer)?, of(ours)?);
    let ask = |(variant, address): (Variant, SocketAddr)| {
        let report = ask(address, seconds, pinned, &script)?;
        rate(&report, variant)
            .ok_or_else(|| io::Error::other(format!("wrk of {variant}: {report}")))
    };
    ask(peer)?;
    ask(ours)?;
    let mut measured = Rounds::default();
    for round in 0..rounds {
        if round % 2 == 0 {
            measured.peer.push(ask(peer)?);
            measured.ours.push(ask(ours)?);
        } else {
            measured.ours.push(ask(ours)?);
            measured.peer.push(ask(peer)?);
        }
    }
    Ok(Some(measured))
}

fn is_there(program: &str) -> bool {
    let tried =
        Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    !tried.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Puts this process on the first core, so that wrk can have the second. Whether that could be done.
pub(super) fn pin() -> bool {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let process = process::id().to_string();
    let mut taskset = Command::new("taskset");
    taskset.args(["-a", "-c", "-p", "0", &process]).stdout(Stdio::null()).stderr(Stdio::null());
    cores > 1 && taskset.status().is_ok_and(|status| status.success())
}

/// Serves a variant from a thread of its own until the process ends; where.
fn serve(variant: Variant) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let router: Router = variant.service(Clients::Forwarded);
    thread::Builder::new().name(format!("{variant:?}")).spawn(move || {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let service = router.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, service).await
        })
    })?;
    Ok(address)
}

/// What wrk says of a server.
fn ask(
    address: SocketAddr,
    seconds: u32,
    pinned: bool,
    script: &NamedTempFile,
) -> io::Result<String> {
    let mut command = Command::new(if pinned { "taskset" } else { "wrk" });
    if pinned {
        command.args(["-c", "1", "wrk"]);
    }
    command.args(["-t1", "-c64", &format!("-d{seconds}s"), "-s"]).arg(script.path());
    let output = command.arg(format!("http://{address}/")).stderr(Stdio::inherit()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Requests a second, if all answers are such as the variant gives.
fn rate(report: &str, variant: Variant) -> Option<f64> {
    let after = |label| report.split_once(label).map(|(_, rest)| rest.trim_start());
    let word = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
    let requests = report.lines().find_map(|line| word(line.split_once(" requests in ")?.0))?;
    let refused = after("Non-2xx or 3xx responses:").map_or(Some(0.0), word)?;
    // The very first request of a throttle is admitted.
    let expected = if variant.status().is_success() { 0.0 } else { requests };
    let rate = word(after("Requests/sec:")?)?;
    (requests > 0.0 && (refused - expected).abs() <= 1.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_only_if_the_answers_are_the_right_ones() {
        let report = "  2000 requests in 2.00s, 1 MB read\n  Non-2xx or 3xx responses: 1999\n\
            Requests/sec:   1000.50\n";
        assert_eq!(rate(report, Variant::Throttled), Some(1_000.5));
        assert_eq!(rate(report, Variant::OneRule), None, "some were refused");
        assert_eq!(rate("", Variant::OneRule), None);
    }

    #[test]
    fn ratios_are_those_of_each_round() {
        let rounds = Rounds { peer: vec![100.0, 50.0], ours: vec![99.0, 40.0] };
        assert_eq!(rounds.ratios(), [0.8, 0.99]);
    }
}
