//! Watches by inotify for writes to the write-ahead log, and for database files that are moved or deleted.
//!
//! Opens none of the files: see `open`. The kernel merges writes that nobody has read yet into one event.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::db_files::DbFiles;

/// The events of a file that is moved, deleted or replaced.
const LOSS: WatchFlags = WatchFlags::ATTRIB.union(WatchFlags::MOVE_SELF).union(WatchFlags::DELETE_SELF);

/// A watch on the files of one database.
pub(super) struct FileEvents(OwnedFd);

impl FileEvents {
    pub(super) fn of(files: &DbFiles) -> io::Result<Self> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&events, files.log(), LOSS | WatchFlags::MODIFY)?;
        inotify::add_watch(&events, files.index(), LOSS)?;
        inotify::add_watch(&events, files.database(), LOSS)?;
        Ok(Self(events))
    }

    /// Readable when there is an event.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Whether there were events since the last call.
    pub(super) fn drain(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = Reader::new(&self.0, &mut buffer);
        let mut any = false;
        loop {
            match events.next() {
                Ok(_) => any = true,
                Err(Errno::INTR) => {}
                Err(_) => return any,
            }
        }
    }
}
