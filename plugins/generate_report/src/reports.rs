//! The directory where reports are left: each is whole or not there.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes a report beside its place and moves it there, over an older one of that name.
pub(crate) fn write(dir: &Path, file: &str, page: &str) -> Result<(), String> {
    let guest = dir.display();
    let advice = || format!("jobq.toml grants one with dirs = [{{ host = \"…\", guest = \"{guest}\", write = true }}]");
    if !dir.is_dir() {
        return Err(format!("this job type has no directory {guest}; {}", advice()));
    }
    let beside = dir.join(format!(".{file}.tmp"));
    replace(&beside, &dir.join(file), page).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("failed to write {file} into {guest}: {error}; {}", advice())
        }
        _ => format!("failed to write {file} into {guest}: {error}"),
    })
}

fn replace(beside: &Path, place: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(beside, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_replaces_the_one_before_and_leaves_nothing_else() {
        let dir = std::env::temp_dir().join(format!("generate_report-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        write(&dir, "a.html", "one").unwrap();
        write(&dir, "a.html", "two").unwrap();
        assert_eq!(fs::read_to_string(dir.join("a.html")).unwrap(), "two");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_type_without_the_directory_is_told_how_to_get_it() {
        let message = write(Path::new("/no/such/reports"), "a.html", "").unwrap_err();
        assert!(
            message.starts_with("this job type has no directory /no/such/reports; jobq.toml grants one with"),
            "{message}"
        );
    }
}
