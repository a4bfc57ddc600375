//! Runs the shop.

use std::{
    io::IsTerminal as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Parser;
use hotgate::Gate;
use tokio::net::TcpListener;
use tracing::{error, info};
use tracing_subscriber::EnvFilter;

/// The exit status of bad rules, as of bad arguments.
const BAD_RULES: u8 = 2;

/// Where operators ask and command the shop's gate.
const ADMIN: &str = "/hotgate";

/// A shop behind a gate.
#[derive(Parser)]
struct Arguments {
    /// The rule file.
    #[arg(long, value_name = "FILE", default_value = shop::RULES_FILE)]
    rules: PathBuf,
    /// Where to listen.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let ansi = std::io::stdout().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).init();

    let gate = match Gate::from_file(&arguments.rules) {
        Ok(gate) => gate,
        Err(error) => {
            error!("no shop without rules\n{:#}", anyhow::Error::from(error));
            return Ok(ExitCode::from(BAD_RULES));
        }
    };
    let token = random_token().context("no random bytes for the admin token")?;
    // Outside of the gate's layer, so that no rule keeps its operator out.
    let app = shop::app(&gate).nest(ADMIN, gate.admin_router().token(&*token).build()?);
    let listener = TcpListener::bind(arguments.listen).await.with_context(|| {
        format!("cannot listen on {}; try another with --listen 127.0.0.1:8081", arguments.listen)
    })?;
    say_what_to_try(&format!("http://{}", listener.local_addr()?), &arguments.rules, &token);
    shop::run(listener, app, interrupted()).await.context("the listener failed")?;
    Ok(ExitCode::SUCCESS)
}

/// 32 hexadecimal digits that nobody can guess. A real service takes a token that lasts, by
/// `.token_file(path)` or from its environment.
fn random_token() -> Result<String, getrandom::Error> {
    Ok(format!("{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?))
}

/// To stdout and without a date, so that it can be read and pasted.
#[expect(clippy::print_stdout, reason = "it is what the command answers")]
fn say_what_to_try(url: &str, rules: &Path, token: &str) {
    println!(
        "The shop is open at {url}, its rules are in {rules}.
Guess a password; after ten tries even the right one, wonderland, is refused:

  for i in $(seq 12); do curl -s -o /dev/null -w '%{{http_code}} ' -d 'user=alice&password=guess' {url}/login; done
  curl -i -d 'user=alice&password=wonderland' {url}/login

Ask its gate why, and lift the block:

  export HOTGATE_URL={url}{ADMIN} HOTGATE_TOKEN={token}
  cargo run -q -p hotgate-cli -- status
  cargo run -q -p hotgate-cli -- why 127.0.0.1
  cargo run -q -p hotgate-cli -- lift --all-rules 127.0.0.1
",
        rules = rules.display()
    );
}

/// Ready at the first Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // No signal can be had here, so nothing but a kill ends the shop.
        std::future::pending::<()>().await;
    }
    info!("closing");
}
