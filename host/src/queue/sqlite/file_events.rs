//! Tells that somebody writes to the log, or moves or deletes one of the database's files, by inotify.
//!
//! Watches names, opens none of the files: see `open`. Writes that nobody has asked about lie with the kernel as one event.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::db_files::FilePlace;

/// What happens to a file that is moved, deleted or replaced.
const LOSS: WatchFlags = WatchFlags::ATTRIB.union(WatchFlags::MOVE_SELF).union(WatchFlags::DELETE_SELF);

/// A watch on the files of one database.
pub(super) struct FileEvents(OwnedFd);

impl FileEvents {
    pub(super) fn of(place: &FilePlace) -> io::Result<Self> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&events, place.log(), LOSS | WatchFlags::MODIFY)?;
        inotify::add_watch(&events, place.index(), LOSS)?;
        inotify::add_watch(&events, place.database(), LOSS)?;
        Ok(Self(events))
    }

    /// Readable when something has happened.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Whether anything has happened since the last call.
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
