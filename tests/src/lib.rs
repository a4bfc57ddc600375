//! The harness of the integration tests.

use std::path::{Path, PathBuf};

/// The folder `name` of the real data, if this machine has it: in `HOTGATE_DATA`, else in
/// `shared/data` beside the repository. A test that needs it says so and passes where it is absent.
#[must_use]
pub fn data_dir(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let root = std::env::var_os("HOTGATE_DATA").map_or_else(beside, PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    #[expect(clippy::print_stderr, reason = "the report of a skipped test")]
    {
        eprintln!("skipped: no data at {}", folder.display());
    }
    None
}
