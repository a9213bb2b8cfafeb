//! What `jobq run` needs from the machine: a database that it can write, and memory for its slots.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use super::memory_limit::{self, MemoryLimit};

/// The first bytes of every SQLite file.
const HEADER: &[u8] = b"SQLite format 3\0";

/// Why the database cannot be used, as a sentence; `None` if it can. Actually creates a file beside it, as SQLite does.
pub(super) fn database_obstacle(database: &Path) -> Option<String> {
    let dir = database.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (database, shown_dir) = (database, dir.display());
    if !dir.is_dir() {
        let what = if dir.exists() { "is not a directory" } else { "does not exist" };
        return Some(format!("the directory `{shown_dir}` of the database {what}"));
    }
    if let Err(error) = try_to_write(dir) {
        return Some(format!("the directory `{shown_dir}` of the database is not writable: {error}"));
    }
    let shown = database.display();
    match fs::metadata(database) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("the database `{shown}` cannot be read: {}", error.kind())),
        Ok(meta) if !meta.is_file() => return Some(format!("the database `{shown}` is not a regular file")),
        Ok(_) => {}
    }
    let mut file = match File::options().read(true).write(true).open(database) {
        Ok(file) => file,
        Err(error) => return Some(format!("the database `{shown}` is not writable: {}", error.kind())),
    };
    let mut start = [0; HEADER.len()];
    match file.read(&mut start) {
        Ok(0) => None,
        Ok(_) if start == HEADER => None,
        Ok(_) => Some(format!("`{shown}` is not a SQLite database")),
        Err(error) => Some(format!("the database `{shown}` cannot be read: {}", error.kind())),
    }
}

/// Creates a file, writes a page to the disk, and removes it.
fn try_to_write(dir: &Path) -> Result<(), ErrorKind> {
    let tried = tempfile::Builder::new().prefix(".jobq-check-").tempfile_in(dir).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.as_file().sync_data()
    });
    tried.map_err(|error| error.kind())
}

/// A note if the slots may need more memory than there is. Each type has a limit, and perhaps a concurrency of its own.
pub(super) fn note_memory(slots: u32, types: Vec<(u64, Option<u32>)>) -> Option<String> {
    let needed = most_memory(slots, types);
    let MemoryLimit { bytes, of } = memory_limit::of_this_process(Path::new("/"))?;
    let (needed_text, limit) = (size(needed), size(bytes));
    (needed > bytes).then(|| {
        format!(
            "{slots} attempts at once may use {needed_text} by their limits, but {of} is {limit}: the kernel may kill the \
             daemon; lower `worker.concurrency`, or `memory` or `concurrency` of a type"
        )
    })
}

/// The most memory that the slots can use together: the types with the highest limits come first.
fn most_memory(slots: u32, mut types: Vec<(u64, Option<u32>)>) -> u64 {
    types.sort_by(|a, b| b.cmp(a));
    let (mut free, mut sum) = (slots, 0_u64);
    for (memory, concurrency) in types {
        let taken = concurrency.map_or(free, |most| most.min(free));
        sum = sum.saturating_add(memory.saturating_mul(u64::from(taken)));
        free -= taken;
    }
    sum
}

fn size(bytes: u64) -> String {
    bytesize::ByteSize(bytes).display().iec().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_memory_respects_the_concurrency_of_each_type() {
        assert_eq!(most_memory(8, vec![]), 0);
        assert_eq!(most_memory(8, vec![(10, None), (100, None)]), 800);
        assert_eq!(most_memory(8, vec![(10, None), (100, Some(2))]), 260);
        assert_eq!(most_memory(8, vec![(10, Some(1)), (100, Some(2))]), 210);
    }

    #[test]
    fn a_database_must_be_a_sqlite_file_or_absent() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("jobq.db");
        assert_eq!(database_obstacle(&database), None);
        fs::write(&database, b"").unwrap();
        assert_eq!(database_obstacle(&database), None);
        fs::write(&database, b"not a database, but text").unwrap();
        assert!(database_obstacle(&database).unwrap().ends_with("is not a SQLite database"));
        assert!(database_obstacle(dir.path()).unwrap().ends_with("is not a regular file"));
        assert!(database_obstacle(&database.join("jobq.db")).unwrap().ends_with("is not a directory"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
    }
}
