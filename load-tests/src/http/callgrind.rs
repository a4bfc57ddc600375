//! Instructions and allocations of a request, counted by valgrind's callgrind.

use std::{
    collections::{HashMap, HashSet},
    env, fs,
    io::{self, ErrorKind},
    path::Path,
    process::{Command, Stdio},
};

use super::variant::{CLIENTS, Clients, Variant, request, send};

/// The functions that allocate.
const ALLOCATORS: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];

/// What one thread has spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) instructions: f64,
    pub(super) allocations: f64,
}

/// What is asked for under callgrind: every client once and then `count` requests.
pub(crate) fn requests(variant: Variant, clients: u32, count: u32) {
    let mut service = variant.service(Clients::Peers);
    let clients = clients.clamp(1, CLIENTS);
    for number in 0..clients.saturating_add(count) {
        send(&mut service, request(number % clients));
    }
}

/// The cost of a request, the making of it included: the difference between N and 2 N of them, by the
/// thread that asks. `None`: there is no valgrind.
///
/// # Errors
///
/// When valgrind fails, or writes what cannot be read.
pub(super) fn cost(variant: Variant, clients: u32, count: u32) -> io::Result<Option<Cost>> {
    let Some(once) = run(variant, clients, count)? else { return Ok(None) };
    let Some(twice) = run(variant, clients, 2 * count)? else { return Ok(None) };
    let each = |once: f64, twice: f64| (twice - once) / f64::from(count);
    Ok(Some(Cost {
        instructions: each(once.instructions, twice.instructions),
        allocations: each(once.allocations, twice.allocations),
    }))
}

fn run(variant: Variant, clients: u32, count: u32) -> io::Result<Option<Cost>> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("out");
    let child = Command::new("valgrind")
        .args(["--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe()?)
        .args(["requests", variant_name(variant).as_str()])
        .args([clients.to_string(), count.to_string()])
        .stdout(Stdio::null())
        .output();
    let child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        child => child?,
    };
    if !child.status.success() {
        let told = String::from_utf8_lossy(&child.stderr).into_owned();
        return Err(io::Error::other(format!("valgrind: {}\n{told}", child.status)));
    }
    // The first thread is the one that asks.
    read(&folder.path().join("out-01")).map(Some)
}

fn variant_name(variant: Variant) -> String {
    let value = clap::ValueEnum::to_possible_value(&variant).expect("no variant is skipped");
    value.get_name().to_owned()
}

fn read(file: &Path) -> io::Result<Cost> {
    let profile = fs::read_to_string(file)?;
    let cost = parse(&profile);
    cost.ok_or_else(|| io::Error::other(format!("no totals in {}", file.display())))
}

/// Reads callgrind's format: a name stands beside its number once, where it is first used.
fn parse(profile: &str) -> Option<Cost> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let allocators: HashSet<&str> = ALLOCATORS.into();
    let (mut callee, mut totals, mut allocations) = ("", None, 0);
    for line in profile.lines() {
        if let Some(calls) = line.strip_prefix("calls=") {
            if allocators.contains(callee) {
                allocations += calls.split(' ').next()?.parse::<u64>().ok()?;
            }
        } else if let Some(text) = line.strip_prefix("totals: ") {
            totals = text.trim().parse::<u64>().ok();
        } else if let Some((is_callee, text)) = function(line) {
            let (number, name) = text.split_once(' ').unwrap_or((text, ""));
            if !name.is_empty() {
                names.insert(number, name.split('\'').next()?);
            }
            if is_callee {
                callee = names.get(number).copied().unwrap_or_default();
            }
        }
    }
    Some(Cost { instructions: totals? as f64, allocations: allocations as f64 })
}

/// Whether a line names a function that is called, and which.
fn function(line: &str) -> Option<(bool, &str)> {
    let called = line.strip_prefix("cfn=").map(|name| (true, name));
    called.or_else(|| Some((false, line.strip_prefix("fn=")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_calls_of_the_allocator_are_read() {
        let profile = "events: Ir\nfn=(1) main\n16 4\ncfn=(2) malloc\ncalls=3 0\n16 40\n\
            fn=(3) other\ncfn=(2)\ncalls=2 0\n1 9\ncfn=(4) free\ncalls=5 0\n1 9\n\
            fn=(2)\n1 1\ntotals: 1234\n";
        let cost = Cost { instructions: 1234.0, allocations: 5.0 };
        assert_eq!(parse(profile), Some(cost));
        assert_eq!(parse("events: Ir\n"), None, "a run that was cut off");
    }
}
