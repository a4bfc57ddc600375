//! Watching a file by looking at it.
//!
//! Looking works on every file system and through every chain of symbolic links, has no queue that
//! overflows, and costs one `stat` each tick. The content is read when the `stat` differs, while a change
//! goes on, and every few seconds: a second write within one grain of the file's clock, or one through a
//! memory map, leaves the `stat` as it was.

use std::{
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use hotgate_detector::Time;
use siphasher::sip128::SipHasher24;

use super::{quiet::Quiet, read};

/// How often the content is read although nothing seems to have changed.
const CONTENT_CHECK: Duration = Duration::from_secs(3);

/// What was read, or why it could not be.
pub(super) type Read = io::Result<Vec<u8>>;

#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    /// As it was before the content was read last.
    stamp: Option<Stamp>,
    check_at: Time,
    quiet: Quiet<Seen>,
}

/// What the file system says of a file, or why it says nothing.
type Stamp = Result<FileStamp, io::ErrorKind>;

/// A content by its hash, or an error by its words.
type Seen = Result<u128, String>;

impl Watch {
    /// Watches `path`, which held `content` when it was read last.
    pub(super) fn new(path: &Path, content: &[u8]) -> Self {
        Watch {
            // The working directory may change.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            stamp: None,
            check_at: Time::default(),
            quiet: Quiet::new(Ok(hash(content))),
        }
    }

    /// Where the file stands.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Looks at the file. What it holds is to be taken where a change has stood still.
    pub(super) fn look(&mut self, now: Time) -> Option<Read> {
        let stamp = fs::metadata(&self.path);
        let stamp = stamp.map(|metadata| FileStamp::of(&metadata)).map_err(|error| error.kind());
        let differs = self.stamp.as_ref() != Some(&stamp);
        if !differs && !self.quiet.is_changing() && now < self.check_at {
            return None;
        }
        self.stamp = Some(stamp);
        self.check_at = now.plus(CONTENT_CHECK);
        let read = read::bytes(&self.path);
        let seen = match &read {
            Ok(bytes) => Ok(hash(bytes)),
            Err(error) => Err(error.to_string()),
        };
        self.quiet.see(seen, now).then_some(read)
    }
}

#[cfg(test)]
impl Watch {
    /// As if the file had looked like this when it was read last.
    pub(super) fn pretend_seen(&mut self, metadata: &Metadata) {
        self.stamp = Some(Ok(FileStamp::of(metadata)));
    }
}

fn hash(bytes: &[u8]) -> u128 {
    SipHasher24::new().hash(bytes).as_u128()
}

/// What changes with a file.
#[cfg(unix)]
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[cfg(unix)]
impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        FileStamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[cfg(not(unix))]
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
    created: Option<std::time::SystemTime>,
}

#[cfg(not(unix))]
impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        FileStamp {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            created: metadata.created().ok(),
        }
    }
}
