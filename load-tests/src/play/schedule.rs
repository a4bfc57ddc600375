//! Which lines are due when.

use std::{collections::HashMap, io, iter::Peekable, time::Duration};

use hotgate_cli::log::{Entry, Line, RUN_LINES, Sorted, Sorter, Source};
use hotgate_detector::Time;
use http::Request;
use jiff::Timestamp;

use super::{
    Args,
    line::{Planned, Unplayable},
    send::Body,
};

/// What reading the log found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    /// All lines.
    pub(super) lines: u64,
    /// Lines that could not be parsed.
    pub(super) unparsed: u64,
    /// Parsed lines before `--from` or after `--until`.
    pub(super) outside: u64,
    /// Lines whose first field is no address.
    pub(super) no_client: u64,
    /// Lines that ask for nothing that can be sent.
    pub(super) no_request: u64,
    /// The first and the last moment of what is played.
    pub(super) span: Option<(Time, Time)>,
}

/// The lines to play, in the order of their times; lines of one moment in the order of the log.
pub(super) struct Schedule {
    read: Read,
    speed: f64,
    source: Source,
    entries: Peekable<Sorted>,
    buffer: Vec<u8>,
}

/// All lines of one moment.
pub(super) struct Moment {
    /// When they were logged.
    pub(super) logged: Time,
    /// How long after the first line of all they are due.
    pub(super) due: Duration,
    /// In the order of their first lines.
    pub(super) clients: Vec<Requests>,
}

/// What one client asks for at one moment, in the order of the log.
pub(super) struct Requests {
    pub(super) client: String,
    pub(super) requests: Vec<Request<Body>>,
}

impl Schedule {
    /// Reads the log once for its lines' times.
    pub(super) fn read(args: &Args) -> io::Result<Self> {
        let naming = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", args.log.display()))
        };
        let mut source = Source::open(&args.log).map_err(naming)?;
        let mut sorter = Sorter::new(RUN_LINES);
        let mut read = Read::default();
        let scanned = source.for_each_line(|place, bytes| {
            if let Some(time) = read.take(bytes, args) {
                sorter.push(Entry::new(time, 0, place))?;
            }
            Ok(())
        });
        scanned.map_err(naming)?;
        let entries = sorter.sorted()?.peekable();
        Ok(Schedule { read, speed: args.speed, source, entries, buffer: Vec::new() })
    }

    pub(super) fn found(&self) -> Read {
        self.read
    }

    /// How many lines are to be played.
    pub(super) fn playable(&self) -> u64 {
        let Read { lines, unparsed, outside, no_client, no_request, .. } = self.read;
        lines - unparsed - outside - no_client - no_request
    }

    /// The lines of the next moment; `None` after the last.
    pub(super) fn next(&mut self) -> io::Result<Option<Moment>> {
        let Some(entry) = self.entries.next().transpose()? else { return Ok(None) };
        let logged = entry.time();
        let (first, _) = self.read.span.unwrap_or((logged, logged));
        let since = Duration::from_nanos(logged.as_nanos().saturating_sub(first.as_nanos()));
        let due = since.div_f64(self.speed);
        let mut moment = Moment { logged, due, clients: Vec::new() };
        let mut places = HashMap::new();
        self.add(entry, &mut moment, &mut places)?;
        while let Some(next) = self.next_of(logged)? {
            self.add(next, &mut moment, &mut places)?;
        }
        Ok(Some(moment))
    }

    fn next_of(&mut self, logged: Time) -> io::Result<Option<Entry>> {
        let same = |entry: &io::Result<Entry>| entry.as_ref().map_or(true, |e| e.time() == logged);
        self.entries.next_if(same).transpose()
    }

    fn add(
        &mut self,
        entry: Entry,
        moment: &mut Moment,
        places: &mut HashMap<String, usize>,
    ) -> io::Result<()> {
        let changed =
            || io::Error::new(io::ErrorKind::InvalidData, "the log changed while it was read");
        let bytes = self.source.read_at(entry.place(), &mut self.buffer)?;
        let line = Line::read(bytes).map_err(|_| changed())?;
        let Planned { client, request } = Planned::of(&line).map_err(|_| changed())?;
        let clients = &mut moment.clients;
        let place = *places.entry(client.clone()).or_insert_with(|| {
            clients.push(Requests { client, requests: Vec::new() });
            clients.len() - 1
        });
        clients[place].requests.push(request);
        Ok(())
    }
}

impl Read {
    /// Counts a line; its time if it is to be played.
    fn take(&mut self, bytes: Option<&[u8]>, args: &Args) -> Option<Time> {
        self.lines += 1;
        let Some(Ok(line)) = bytes.map(Line::read) else {
            self.unparsed += 1;
            return None;
        };
        let before = args.from.is_some_and(|from| nanos(line.time) < from.as_nanosecond());
        let after = args.until.is_some_and(|until| nanos(line.time) >= until.as_nanosecond());
        if before || after {
            self.outside += 1;
            return None;
        }
        match Planned::of(&line) {
            Ok(_) => {}
            Err(Unplayable::NoClient) => {
                self.no_client += 1;
                return None;
            }
            Err(Unplayable::NoRequest) => {
                self.no_request += 1;
                return None;
            }
        }
        let (first, last) = self.span.unwrap_or((line.time, line.time));
        self.span = Some((first.min(line.time), last.max(line.time)));
        Some(line.time)
    }
}

fn nanos(time: Time) -> i128 {
    i128::from(time.as_nanos())
}

/// A log's time as a timestamp.
pub(super) fn timestamp(time: Time) -> Timestamp {
    let timestamp = Timestamp::from_nanosecond(nanos(time));
    timestamp.expect("a log's times end in 2554, a timestamp's in 9999")
}
