//! Returns free pages to the file system, a slice at a time, in files with `auto_vacuum = INCREMENTAL`.

use rusqlite::Result;

use super::session::Session;

const PAGES: &str = "SELECT auto_vacuum, freelist_count, page_count
FROM pragma_auto_vacuum, pragma_freelist_count, pragma_page_count";

/// One slice: less than a megabyte, some milliseconds.
const VACUUM: &str = "PRAGMA incremental_vacuum(200)";

/// Free pages that are kept: 4 MB. New jobs use them soon.
const KEPT: i64 = 1000;

/// The mode of files that were created with incremental vacuum.
const INCREMENTAL: i64 = 2;

/// Whether more pages are free than should be kept: 4 MB, or a tenth of the file.
pub(super) fn is_worth_it(db: &Session<'_>) -> Result<bool> {
    let pages = db.first(PAGES, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
    Ok(pages.is_some_and(|(mode, free, all)| mode == INCREMENTAL && free > KEPT.max(all / 10)))
}

/// Returns one slice.
pub(super) fn vacuum(db: &Session<'_>) -> Result<()> {
    // One row for each page, and each has to be read.
    db.all(VACUUM, [], |_| Ok(())).map(drop)
}
