//! The shop over a real socket.

use std::net::SocketAddr;

use hotgate::Gate;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::{Duration, timeout},
};

/// A running shop.
struct Shop {
    address: SocketAddr,
    close: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// An answer as it came.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Shop {
    async fn open() -> Shop {
        let gate = Gate::from_file(shop::RULES_FILE).expect("the rules beside the example");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (close, closed) = oneshot::channel();
        let task = tokio::spawn(shop::run(listener, shop::app(&gate), async {
            let _ = closed.await;
        }));
        Shop { address, close, task }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")).await
    }

    async fn login(&self, password: &str) -> Answer {
        let form = format!("user=alice&password={password}");
        let length = form.len();
        self.send(&format!(
            "POST /login HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
        ))
        .await
    }

    async fn send(&self, request: &str) -> Answer {
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.expect("a connection");
            stream.write_all(request.as_bytes()).await.expect("a request sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            answer
        };
        let answer = timeout(Duration::from_secs(10), exchange).await.expect("an answer in time");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    async fn close(self) {
        self.close.send(()).expect("the shop is open");
        let ended = timeout(Duration::from_secs(10), self.task).await.expect("it closes in time");
        ended.expect("no panic").expect("no error");
    }
}

#[tokio::test]
async fn ten_failed_logins_block_the_client_from_the_login_alone() {
    let shop = Shop::open().await;
    assert_eq!(shop.login("wonderland").await.status, 200);
    for attempt in 1..=10 {
        assert_eq!(shop.login("guess").await.status, 401, "attempt {attempt}");
    }
    let refused = shop.login("guess").await;
    assert_eq!(refused.status, 403);
    assert!(refused.head.contains("content-type: application/problem+json"), "{}", refused.head);
    assert!(refused.head.contains("cache-control: no-store"), "{}", refused.head);
    let problem: serde_json::Value = serde_json::from_str(&refused.body).expect("a JSON document");
    assert_eq!(problem["status"], 403);
    assert!(problem["type"].as_str().expect("a type").ends_with("#abnormal-usage-detected"));

    assert_eq!(shop.login("wonderland").await.status, 403, "the right password is refused too");
    assert_eq!(shop.get("/").await.status, 200, "the rest of the shop is open");
    assert_eq!(shop.get("/products/1").await.status, 200);
    assert_eq!(shop.get("/healthz").await.status, 200);
    shop.close().await;
}

#[tokio::test]
async fn the_api_is_throttled_and_says_when_to_come_back() {
    let shop = Shop::open().await;
    for _ in 0..100 {
        assert_eq!(shop.get("/api/orders").await.status, 200);
    }
    // Never early, and beyond a limit of 64 at most 2 % late.
    let mut refused = shop.get("/api/orders").await;
    for _ in 0..2 {
        if refused.status == 200 {
            refused = shop.get("/api/orders").await;
        }
    }
    assert_eq!(refused.status, 429);
    assert!(refused.head.contains("retry-after: "), "{}", refused.head);
    assert!(
        refused.head.contains("ratelimit-policy: \"api-per-client\";q=100;w=60"),
        "{}",
        refused.head
    );
    assert_eq!(shop.get("/healthz").await.status, 200);
    shop.close().await;
}

#[tokio::test]
async fn a_trap_and_a_missing_page_are_told_apart() {
    let shop = Shop::open().await;
    assert_eq!(shop.get("/.env").await.status, 403);
    assert_eq!(shop.get("/nowhere").await.status, 404);
    shop.close().await;
}

#[tokio::test]
async fn half_a_request_does_not_keep_the_shop_open() {
    let shop = Shop::open().await;
    let mut stream = TcpStream::connect(shop.address).await.expect("a connection");
    let half = "POST /login HTTP/1.1\r\nHost: shop\r\nContent-Length: 100\r\n\
                Content-Type: application/x-www-form-urlencoded\r\n\r\nuser=";
    stream.write_all(half.as_bytes()).await.expect("half a request sent");
    assert_eq!(shop.get("/").await.status, 200, "by now the half has come, too");
    shop.close().await;
}

#[test]
fn bad_rules_end_the_shop_with_all_their_errors_and_status_2() {
    let rules = std::env::temp_dir().join(format!("hotgate-shop-{}.toml", std::process::id()));
    let text =
        "app = \"shop\"\n[[rule]]\nname = \"a\"\nkey = [\"client\"]\nover = \"1\"\ntrottle = {}\n";
    std::fs::write(&rules, text).expect("a file written");
    let shop = std::process::Command::new(env!("CARGO_BIN_EXE_shop"))
        .args(["--listen", "127.0.0.1:0", "--rules"])
        .arg(&rules)
        .env_remove("RUST_LOG")
        .output();
    std::fs::remove_file(&rules).expect("the file removed");
    let shop = shop.expect("the shop runs");
    assert_eq!(shop.status.code(), Some(2));
    let said = String::from_utf8(shop.stdout).expect("text");
    for place in [":5:", ":6:"] {
        assert!(said.contains(&format!("{}{place}", rules.display())), "{place} in {said}");
    }
}
