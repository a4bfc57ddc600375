//! A server of a few threads, which takes down what it hears.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

/// Answers `/STATUS` with that status, any other path with 200.
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    heads: Vec<String>,
    under_way: usize,
    most_under_way: usize,
}

impl Server {
    /// Listens on a port of its own. `hold` says of a request's head how long its answer waits: until
    /// another request comes, and so long at most.
    pub(crate) fn start(hold: fn(&str) -> Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || state.serve(&stream, hold));
            }
        });
        Server { url, state }
    }

    /// Where nobody listens.
    pub(crate) fn closed_url() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    /// The heads of all requests, in the order they came.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.state.seen.lock().unwrap().heads.clone()
    }

    /// How many requests waited for their answers at once, at most.
    pub(crate) fn most_under_way(&self) -> usize {
        self.state.seen.lock().unwrap().most_under_way
    }
}

impl State {
    fn serve(&self, stream: &TcpStream, hold: fn(&str) -> Option<Duration>) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                match reader.read_line(&mut head) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
            self.begin(&head, hold(&head));
            let path = head.split(' ').nth(1).unwrap_or_default();
            let status = path[1..].parse().unwrap_or(200);
            self.seen.lock().unwrap().under_way -= 1;
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok");
            if (&*stream).write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn begin(&self, head: &str, hold: Option<Duration>) {
        let mut seen = self.seen.lock().unwrap();
        seen.heads.push(head.to_owned());
        seen.under_way += 1;
        seen.most_under_way = seen.most_under_way.max(seen.under_way);
        self.changed.notify_all();
        if let Some(most) = hold {
            let count = seen.heads.len();
            let waited = self.changed.wait_timeout_while(seen, most, |s| s.heads.len() == count);
            drop(waited.unwrap());
        }
    }
}
