//! A log file, read more than once: to find its lines' times, and then in the order of those.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
};

/// The longest line that is parsed, in bytes: servers limit a request line and each field to 8 KiB
/// or so, which escaping makes four times as long. A longer one is counted as unparsed.
pub(crate) const LINE_BYTES_MAX: usize = 256 << 10;

/// The buffer of each open log, in bytes. Lines step back by little, so most of a replay is read
/// from here.
const BUFFER_BYTES: usize = 256 << 10;

/// One open log.
#[derive(Debug)]
pub struct Source {
    /// As the command line names it.
    pub name: String,
    /// Its length when it was opened: what is written to it later does not count.
    pub bytes: u64,
    reader: BufReader<File>,
    /// Where the reader stands.
    position: u64,
}

impl Source {
    /// Opens the log at `path`. What can be read only once, such as a pipe, is copied to a temporary
    /// file; `-` is standard input.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or is a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let name = path.display().to_string();
        let file =
            if name == "-" { spool(io::stdin().lock())? } else { open_twice_readable(path)? };
        let bytes = file.metadata()?.len();
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Source { name, bytes, reader, position: 0 })
    }

    /// Calls `each` with every line's place and its bytes without their end; `None` for one longer
    /// than 256 KiB.
    ///
    /// # Errors
    ///
    /// Those of reading, and those of `each`.
    pub fn for_each_line(
        &mut self,
        mut each: impl FnMut(Place, Option<&[u8]>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.reader.seek(SeekFrom::Start(0))?;
        self.position = 0;
        let mut line = Vec::new();
        while self.position < self.bytes {
            line.clear();
            let left = self.bytes - self.position;
            let most = left.min(LINE_BYTES_MAX as u64 + 1);
            let read = (&mut self.reader).take(most).read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            let ended = line.ends_with(b"\n") || read as u64 == left;
            let place = Place { offset: self.position, length: read };
            self.position += read as u64;
            if !ended {
                let rest = (&mut self.reader).take(self.bytes - self.position).skip_until(b'\n')?;
                self.position += rest as u64;
            }
            let too_long = !ended || without_end(&line).len() > LINE_BYTES_MAX;
            each(place, (!too_long).then(|| without_end(&line)))?;
        }
        Ok(())
    }

    /// Reads the line at `place` into `line`, without its end.
    ///
    /// # Errors
    ///
    /// When it cannot be read, such as when the file was cut since.
    pub fn read_at<'l>(&mut self, place: Place, line: &'l mut Vec<u8>) -> io::Result<&'l [u8]> {
        let step = i128::from(place.offset) - i128::from(self.position);
        match i64::try_from(step) {
            Ok(step) => self.reader.seek_relative(step)?,
            Err(_) => drop(self.reader.seek(SeekFrom::Start(place.offset))?),
        }
        line.resize(place.length, 0);
        self.reader.read_exact(line)?;
        self.position = place.offset + place.length as u64;
        Ok(without_end(line))
    }
}

/// Where a line stands in its log, with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// In bytes from the beginning.
    pub offset: u64,
    /// In bytes.
    pub length: usize,
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn open_twice_readable(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_file() { Ok(file) } else { spool(file) }
}

fn spool(mut from: impl io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut from, &mut file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn source(bytes: &[u8]) -> (Source, tempfile::NamedTempFile) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        (Source::open(file.path()).unwrap(), file)
    }

    fn lines(source: &mut Source) -> Vec<(Place, Option<Vec<u8>>)> {
        let mut lines = Vec::new();
        source
            .for_each_line(|place, line| {
                lines.push((place, line.map(<[u8]>::to_vec)));
                Ok(())
            })
            .unwrap();
        lines
    }

    #[test]
    fn lines_end_at_a_newline_or_at_the_end_of_the_file() {
        for end in [&b""[..], b"\n", b"\r\n"] {
            let (mut source, _file) = source(&[b"one\n\r\nthree\xff\r\nfour", end].concat());
            let found: Vec<_> =
                lines(&mut source).into_iter().map(|(_, line)| line.unwrap()).collect();
            assert_eq!(found, [&b"one"[..], b"", b"three\xff", b"four"], "{end:?}");
        }
    }

    #[test]
    fn an_endless_line_is_skipped_and_does_not_hide_the_next() {
        for length in [LINE_BYTES_MAX - 1, LINE_BYTES_MAX, LINE_BYTES_MAX + 1, 3 * LINE_BYTES_MAX] {
            let text = [&vec![b'x'; length][..], b"\nnext\n"].concat();
            let (mut source, _file) = source(&text);
            let found = lines(&mut source);
            assert_eq!(found.len(), 2, "{length}");
            assert_eq!(found[0].1.is_some(), length <= LINE_BYTES_MAX, "{length}");
            assert_eq!(found[1].1.as_deref(), Some(&b"next"[..]), "{length}");
        }
    }

    #[test]
    fn lines_are_read_back_at_their_places_in_any_order() {
        let text: String = (0..2000).map(|n| format!("line {n} {}\n", "x".repeat(n))).collect();
        let (mut source, _file) = source(text.as_bytes());
        let found = lines(&mut source);
        let mut buffer = Vec::new();
        for step in [1, 2, 1999, 1001] {
            for turn in 0..found.len() {
                let (place, line) = &found[turn * step % found.len()];
                assert_eq!(source.read_at(*place, &mut buffer).unwrap(), line.as_deref().unwrap());
            }
        }
    }

    #[test]
    fn what_is_appended_while_a_log_is_read_does_not_count() {
        let (mut source, mut file) = source(b"one\ntwo\n");
        file.write_all(b"three\n").unwrap();
        assert_eq!(lines(&mut source).len(), 2);
    }
}
