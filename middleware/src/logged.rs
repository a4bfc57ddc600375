//! What is logged on a test's thread.

use std::{
    io,
    sync::{Arc, Mutex, Once},
};

/// The lines logged on one thread.
#[derive(Clone, Default)]
pub(crate) struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    /// Keeps what is logged on this thread while the guard lives.
    pub(crate) fn listen(&self) -> tracing::subscriber::DefaultGuard {
        static EVERYWHERE: Once = Once::new();
        // While one thread alone has a subscriber, an event that is met first by another thread, which
        // has none, is taken for one that nobody wants.
        EVERYWHERE.call_once(|| {
            let nowhere = tracing_subscriber::fmt().with_writer(io::sink).finish();
            tracing::subscriber::set_global_default(nowhere).expect("no test sets another");
        });
        let writer = self.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        tracing::subscriber::set_default(lines.finish())
    }

    /// The lines that hold `text`.
    pub(crate) fn lines_with(&self, text: &str) -> Vec<String> {
        let all = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
