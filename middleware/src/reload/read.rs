//! Reading the rule file, whatever stands in its place.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

use hotgate_rules::RuleSet;

/// What the file holds, up to one byte more than a rule file may have: enough for the parser to say
/// that it is too large. Waits for nobody: a pipe, where nobody may ever write, is an error.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    up_to(RuleSet::FILE_BYTES_MAX, path)
}

/// What a file holds, up to one byte more than `max`.
pub(crate) fn up_to(max: usize, path: &Path) -> io::Result<Vec<u8>> {
    expect_file(&fs::metadata(path)?)?;
    let file = open(path)?;
    // Something else may have taken its place since.
    expect_file(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The file's text.
pub(crate) fn text(bytes: Vec<u8>) -> io::Result<String> {
    // The place where a file that is too large was cut may well be inside a character.
    if bytes.len() > RuleSet::FILE_BYTES_MAX {
        let limit = format!("expected a rule file of at most {} bytes", RuleSet::FILE_BYTES_MAX);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, limit));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not valid UTF-8"))
    })
}

fn expect_file(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = if metadata.is_dir() { "a directory" } else { "a pipe or a device" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("expected a file, found {kind}")))
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // Opening a pipe would wait for somebody to write.
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}
