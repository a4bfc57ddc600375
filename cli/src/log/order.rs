//! Lines in the order of their times, whatever order they stand in.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
};

use hotgate_detector::Time;

use super::source::Place;

/// Lines that are sorted in memory at once: 48 MiB at 24 bytes a line. Beyond them sorted runs go to
/// temporary files, one each, so that the usual 1,024 open files serve for two billion lines.
pub const RUN_LINES: usize = 2 << 20;

/// One parsed line: its time and its place. Lines of one moment stay in the order of the logs on the
/// command line, and within one log in its own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    time: Time,
    log: u32,
    offset: u64,
    length: u32,
}

impl Entry {
    /// The entry of the line at `place` in the `log`th log.
    #[must_use]
    pub fn new(time: Time, log: usize, place: Place) -> Self {
        let length = u32::try_from(place.length).expect("a parsed line is short");
        let log = u32::try_from(log).expect("a command line has fewer arguments");
        Entry { time, log, length, offset: place.offset }
    }

    /// When it was logged.
    #[must_use]
    pub fn time(&self) -> Time {
        self.time
    }

    /// In which log.
    #[must_use]
    pub fn log(&self) -> usize {
        self.log as usize
    }

    /// Where in it.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { offset: self.offset, length: self.length as usize }
    }

    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.time.as_nanos().to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.log.to_le_bytes());
        bytes[20..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Self {
        let eight = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let four = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        Entry {
            time: Time::from_nanos(eight(0)),
            log: four(16),
            offset: eight(8),
            length: four(20),
        }
    }
}

const ENTRY_BYTES: usize = 24;

/// Takes entries, and gives them back in order.
#[derive(Debug)]
pub struct Sorter {
    run_lines: usize,
    held: Vec<Entry>,
    runs: Vec<File>,
}

impl Sorter {
    /// A sorter that holds `run_lines` entries in memory, [`RUN_LINES`] as a rule.
    #[must_use]
    pub fn new(run_lines: usize) -> Self {
        Sorter { run_lines, held: Vec::new(), runs: Vec::new() }
    }

    /// Takes one entry.
    ///
    /// # Errors
    ///
    /// When a temporary file cannot be written.
    pub fn push(&mut self, entry: Entry) -> io::Result<()> {
        if self.held.len() >= self.run_lines {
            self.spill()?;
        }
        self.held.push(entry);
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        self.held.sort_unstable();
        let mut run = BufWriter::new(tempfile::tempfile()?);
        self.held.iter().try_for_each(|entry| run.write_all(&entry.to_bytes()))?;
        let mut run = run.into_inner().map_err(io::IntoInnerError::into_error)?;
        run.rewind()?;
        self.runs.push(run);
        self.held.clear();
        Ok(())
    }

    /// All that was pushed, in order.
    ///
    /// # Errors
    ///
    /// When a temporary file cannot be read; so may each entry that follows.
    pub fn sorted(mut self) -> io::Result<Sorted> {
        self.held.sort_unstable();
        let mut runs = vec![Run::Held(self.held.into_iter())];
        runs.extend(self.runs.into_iter().map(|run| Run::Spilled(BufReader::new(run))));
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (index, run) in runs.iter_mut().enumerate() {
            heads.extend(run.next()?.map(|entry| Reverse((entry, index))));
        }
        Ok(Sorted { runs, heads })
    }
}

#[derive(Debug)]
enum Run {
    Held(std::vec::IntoIter<Entry>),
    Spilled(BufReader<File>),
}

impl Run {
    fn next(&mut self) -> io::Result<Option<Entry>> {
        match self {
            Run::Held(entries) => Ok(entries.next()),
            Run::Spilled(file) => {
                let mut bytes = [0; ENTRY_BYTES];
                match file.read_exact(&mut bytes) {
                    Ok(()) => Ok(Some(Entry::from_bytes(bytes))),
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

/// The entries of all runs, merged.
#[derive(Debug)]
pub struct Sorted {
    runs: Vec<Run>,
    /// The first entry of each run that has one left.
    heads: BinaryHeap<Reverse<(Entry, usize)>>,
}

impl Iterator for Sorted {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((entry, index)) = self.heads.pop()?;
        match self.runs[index].next() {
            Ok(next) => self.heads.extend(next.map(|next| Reverse((next, index)))),
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(entry))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(seconds: u64, log: usize, line: usize) -> Entry {
        let place = Place { offset: line as u64 * 10, length: line + 1 };
        Entry::new(Time::from_nanos(seconds * 1_000_000_000), log, place)
    }

    fn sort(run_lines: usize, entries: &[Entry]) -> Vec<Entry> {
        let mut sorter = Sorter::new(run_lines);
        entries.iter().try_for_each(|entry| sorter.push(*entry)).unwrap();
        sorter.sorted().unwrap().collect::<io::Result<_>>().unwrap()
    }

    #[test]
    fn no_number_of_lines_is_lost_whatever_the_runs() {
        for run_lines in 1..5 {
            for count in 0..60 {
                let entries: Vec<_> = (0..count).map(|line| entry(7, 0, line)).collect();
                assert_eq!(sort(run_lines, &entries), entries, "{count} in {run_lines}s");
            }
        }
    }

    proptest! {
        /// Lines of one second keep their order, and logs the order of the command line (C104).
        #[test]
        fn the_order_is_that_of_a_stable_sort_by_time(
            times in proptest::collection::vec(proptest::collection::vec(0_u64..6, 0..40), 0..4),
            run_lines in 1_usize..9,
        ) {
            let logs = times.iter().enumerate();
            let entries: Vec<_> = logs
                .flat_map(|(log, times)| {
                    times.iter().enumerate().map(move |(line, time)| entry(*time, log, line))
                })
                .collect();
            let mut expected = entries.clone();
            expected.sort_by_key(Entry::time);
            prop_assert_eq!(sort(run_lines, &entries), expected);
        }
    }
}
