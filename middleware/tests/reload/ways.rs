//! The ways in which a file is replaced.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use crate::site::pause;

/// What a round puts in the file's place.
pub(crate) struct Change<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) round: u32,
    /// The text, and how much of it are rules that could be taken for the whole.
    pub(crate) text: &'a str,
    pub(crate) half: usize,
    /// A text that must never be in force.
    pub(crate) decoy: &'a str,
}

pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// Replaces `hotgate.toml` in the folder; when it was whole.
    pub(crate) replace: fn(&Change<'_>) -> Instant,
}

/// All of them.
pub(crate) const WAYS: [Way; 6] = [
    Way { name: "written in place", replace: write_in_place },
    Way { name: "renamed over", replace: rename_over },
    Way { name: "symbolic link swapped", replace: swap_links },
    Way { name: "renamed over twice", replace: rename_twice },
    Way { name: "deleted and created", replace: delete_and_create },
    Way { name: "half written, then completed", replace: write_in_halves },
];

/// The rule file in a folder.
pub(crate) const FILE: &str = "hotgate.toml";

fn write_in_place(change: &Change<'_>) -> Instant {
    fs::write(change.folder.join(FILE), change.text).unwrap();
    Instant::now()
}

fn rename_over(change: &Change<'_>) -> Instant {
    rename(change, change.text)
}

fn rename(change: &Change<'_>, text: &str) -> Instant {
    let new = change.folder.join("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, change.folder.join(FILE)).unwrap();
    Instant::now()
}

/// As Kubernetes updates a ConfigMap: the file is a link into `..data`, which is a link to a folder that
/// is made anew.
fn swap_links(change: &Change<'_>) -> Instant {
    let Change { folder, round, text, .. } = change;
    let versioned = |round: u32| folder.join(format!("..version-{round}"));
    fs::create_dir(versioned(*round)).unwrap();
    fs::write(versioned(*round).join(FILE), text).unwrap();
    symlink(format!("..version-{round}"), folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    let whole = Instant::now();
    let file = folder.join(FILE);
    if !file.is_symlink() {
        symlink("..data/hotgate.toml", folder.join("link")).unwrap();
        fs::rename(folder.join("link"), file).unwrap();
        return Instant::now();
    }
    fs::remove_dir_all(versioned(round - 1)).unwrap();
    whole
}

fn rename_twice(change: &Change<'_>) -> Instant {
    rename(change, change.decoy);
    pause(Duration::from_millis(u64::from(change.round % 8)));
    rename(change, change.text)
}

fn delete_and_create(change: &Change<'_>) -> Instant {
    fs::remove_file(change.folder.join(FILE)).unwrap();
    pause(Duration::from_millis(u64::from(change.round % 6) * 50));
    write_in_place(change)
}

fn write_in_halves(change: &Change<'_>) -> Instant {
    let file = change.folder.join(FILE);
    let (half, rest) = change.text.split_at(change.half);
    fs::write(&file, half).unwrap();
    pause(Duration::from_millis(u64::from(change.round % 6) * 50));
    OpenOptions::new().append(true).open(&file).unwrap().write_all(rest.as_bytes()).unwrap();
    Instant::now()
}
