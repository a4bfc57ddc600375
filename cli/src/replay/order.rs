//! The order of a replay: by time, whatever order the lines stand in.

use std::io::{self, Read, Write};

use extsort::{ExternalSorter, Sortable};
use hotgate_detector::Time;

use super::source::Place;

/// Lines that are sorted in memory at once: 48 MiB at 24 bytes a line. Beyond them sorted segments
/// go to temporary files.
pub(super) const SEGMENT_LINES: usize = 2 << 20;

/// One parsed line: its time and its place. Lines of one moment stay in the order of the logs on the
/// command line, and within one log in its own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    time: Time,
    log: u32,
    length: u32,
    offset: u64,
}

impl Entry {
    pub(super) fn new(time: Time, log: usize, place: Place) -> Self {
        let length = u32::try_from(place.length).expect("a parsed line is short");
        let log = u32::try_from(log).expect("a command line has fewer arguments");
        Entry { time, log, length, offset: place.offset }
    }

    pub(super) fn time(&self) -> Time {
        self.time
    }

    pub(super) fn log(&self) -> usize {
        self.log as usize
    }

    pub(super) fn place(&self) -> Place {
        Place { offset: self.offset, length: self.length as usize }
    }

    fn sort_key(&self) -> (Time, u32, u64) {
        (self.time, self.log, self.offset)
    }
}

const ENTRY_BYTES: usize = 24;

impl Sortable for Entry {
    fn encode<W: Write>(&self, writer: &mut W) -> io::Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.time.as_nanos().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.log.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..].copy_from_slice(&self.offset.to_le_bytes());
        writer.write_all(&bytes)
    }

    fn decode<R: Read>(reader: &mut R) -> io::Result<Self> {
        let mut four = [0; 4];
        let mut eight = [0; 8];
        reader.read_exact(&mut eight)?;
        let time = Time::from_nanos(u64::from_le_bytes(eight));
        reader.read_exact(&mut four)?;
        let log = u32::from_le_bytes(four);
        reader.read_exact(&mut four)?;
        let length = u32::from_le_bytes(four);
        reader.read_exact(&mut eight)?;
        Ok(Entry { time, log, length, offset: u64::from_le_bytes(eight) })
    }
}

/// Stands for no line: see [`sorted`].
const FILLER: Entry = Entry { time: Time::MAX, log: u32::MAX, length: 0, offset: u64::MAX };

/// Takes what `fill` pushes, and returns it sorted.
///
/// `extsort` 0.5 writes a segment once it holds more than its size, and returns nothing at all when
/// that has just emptied its buffer at the end. One entry more, which is taken out again, keeps the
/// number of entries from ever being such a multiple.
pub(super) fn sorted(
    segment_lines: usize,
    fill: impl FnOnce(&mut dyn FnMut(Entry) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<Box<dyn Iterator<Item = io::Result<Entry>>>> {
    let sorter = ExternalSorter::new().with_segment_size(segment_lines);
    let mut sorter = sorter.pushed_by_key(Entry::sort_key);
    let mut pushed = 0_usize;
    fill(&mut |entry| {
        pushed += 1;
        sorter.push(entry)
    })?;
    if pushed.is_multiple_of(segment_lines + 1) {
        sorter.push(FILLER)?;
    }
    let entries = sorter.done()?;
    Ok(Box::new(entries.filter(|entry| !matches!(entry, Ok(entry) if *entry == FILLER))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(seconds: u64, log: usize, line: usize) -> Entry {
        let place = Place { offset: line as u64 * 10, length: line + 1 };
        Entry::new(Time::from_nanos(seconds * 1_000_000_000), log, place)
    }

    fn sort(segment_lines: usize, entries: &[Entry]) -> Vec<Entry> {
        let fill = |push: &mut dyn FnMut(Entry) -> io::Result<()>| {
            entries.iter().try_for_each(|entry| push(*entry))
        };
        sorted(segment_lines, fill).unwrap().collect::<io::Result<_>>().unwrap()
    }

    #[test]
    fn no_number_of_lines_is_lost_whatever_the_segments() {
        for segment_lines in 1..5 {
            for count in 0..60 {
                let entries: Vec<_> = (0..count).map(|line| entry(7, 0, line)).collect();
                assert_eq!(sort(segment_lines, &entries), entries, "{count} in {segment_lines}s");
            }
        }
    }

    proptest! {
        /// Lines of one second keep their order, and logs the order of the command line (C104).
        #[test]
        fn the_order_is_that_of_a_stable_sort_by_time(
            times in proptest::collection::vec(proptest::collection::vec(0_u64..6, 0..40), 0..4),
            segment_lines in 1_usize..9,
        ) {
            let logs = times.iter().enumerate();
            let entries: Vec<_> = logs
                .flat_map(|(log, times)| {
                    times.iter().enumerate().map(move |(line, time)| entry(*time, log, line))
                })
                .collect();
            let mut expected = entries.clone();
            expected.sort_by_key(Entry::time);
            prop_assert_eq!(sort(segment_lines, &entries), expected);
        }
    }
}
