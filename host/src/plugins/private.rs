//! A directory that nobody else can write, nor replace: what lies in it can be trusted as far as we wrote it.
//!
//! Whoever can write a directory on the way could put another in its place between two looks, so each of them has to
//! belong to this user or to root and be closed to the others. A sticky one, such as /tmp, lets nobody touch what is not theirs.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a directory is not to be trusted.
#[derive(Debug, Error)]
pub(super) enum NotPrivate {
    #[error("it cannot be made or looked at: {0}")]
    Io(#[from] io::Error),
    #[error("others can write it, so that its code cannot be trusted; delete it, or `chmod 700` an empty one")]
    Open,
    #[error(
        "`{}` on the way to it {how}, so that it could be replaced; `chmod go-w` that, or choose another place in \
         `plugins.cache_dir`",
        path.display()
    )]
    Replaceable { path: PathBuf, how: &'static str },
    #[error("it belongs to another user")]
    Foreign,
}

/// Makes the directory where there is none, closes it to others, and tells its real path.
pub(super) fn private_dir(dir: &Path) -> Result<PathBuf, NotPrivate> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let us = Us::look();
    let meta = fs::metadata(dir)?;
    if meta.uid() != us.uid {
        return Err(NotPrivate::Foreign);
    }
    if meta.mode() & 0o022 != 0 {
        return Err(NotPrivate::Open);
    }
    let real = dir.canonicalize()?;
    // Both as it is written, where links are on the way, and where it leads to.
    for way in [&std::path::absolute(dir)?, &real] {
        for path in way.ancestors().skip(1) {
            if let Some(how) = us.mistrust(&fs::symlink_metadata(path)?) {
                return Err(NotPrivate::Replaceable { path: path.to_path_buf(), how });
            }
        }
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(&real, fs::Permissions::from_mode(0o700))?;
    }
    Ok(real)
}

/// This user, and the groups of this machine.
struct Us {
    uid: u32,
    users: String,
    groups: String,
}

impl Us {
    fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let uid = rustix::process::geteuid().as_raw();
        Self { uid, users: read("/etc/passwd"), groups: read("/etc/group") }
    }

    /// Why others could replace what lies in a directory, or the link that this is.
    fn mistrust(&self, meta: &Metadata) -> Option<&'static str> {
        if meta.uid() != self.uid && meta.uid() != 0 {
            return Some("belongs to another user");
        }
        let is_sticky = meta.mode() & 0o1000 != 0;
        if meta.is_symlink() || is_sticky {
            return None;
        }
        if meta.mode() & 0o002 != 0 {
            return Some("can be written by everybody");
        }
        (meta.mode() & 0o020 != 0 && !self.is_alone_in(meta.gid())).then_some("can be written by a group")
    }

    /// Whether the group has no member but this user: many systems give each user one, and let it write by default.
    fn is_alone_in(&self, gid: u32) -> bool {
        let is = |field: Option<&str>, id: u32| field.is_some_and(|field| field.parse() == Ok(id));
        let us: Vec<&str> = self.users.lines().filter(|user| is(user.split(':').nth(2), self.uid)).collect();
        let names = us.iter().filter_map(|user| user.split(':').next());
        let names: Vec<&str> = names.collect();
        let mut of_group = self.users.lines().filter(|user| is(user.split(':').nth(3), gid));
        let Some(group) = self.groups.lines().find(|group| is(group.split(':').nth(2), gid)) else { return false };
        let mut members = group.split(':').nth(3).unwrap_or_default().split(',').filter(|name| !name.is_empty());
        members.all(|name| names.contains(&name)) && of_group.all(|user| us.contains(&user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_mode(mode: u32) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        dir
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_trusted() {
        for mode in [0o777, 0o770, 0o702] {
            let refused = private_dir(with_mode(mode).path());
            assert!(matches!(refused, Err(NotPrivate::Open)), "{mode:o} {refused:?}");
        }
    }

    #[test]
    fn a_directory_that_others_can_only_read_is_closed_to_them() {
        let dir = with_mode(0o755);
        private_dir(dir.path()).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_others_can_replace_is_not_trusted() {
        let parent = with_mode(0o777);
        for dir in [parent.path().join("cache"), parent.path().join("deep/cache")] {
            let refused = private_dir(&dir).unwrap_err().to_string();
            assert!(refused.contains(&format!("`{}`", parent.path().display())), "{refused}");
            assert!(refused.contains("can be written by everybody"), "{refused}");
        }
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        private_dir(&parent.path().join("cache")).unwrap();
    }

    #[test]
    fn a_link_that_others_can_replace_is_not_trusted_and_the_real_path_is_what_is_used() {
        let (open, closed) = (with_mode(0o777), with_mode(0o755));
        let target = closed.path().join("cache");
        private_dir(&target).unwrap();
        for parent in [&open, &closed] {
            std::os::unix::fs::symlink(&target, parent.path().join("link")).unwrap();
        }
        let refused = private_dir(&open.path().join("link"));
        assert!(matches!(refused, Err(NotPrivate::Replaceable { .. })), "{refused:?}");
        assert_eq!(private_dir(&closed.path().join("link")).unwrap(), target.canonicalize().unwrap());
    }

    #[test]
    fn a_group_of_ones_own_is_nobody_else() {
        let users = "root:x:0:0:root:/root:/bin/sh\nana:x:1000:1000::/home/ana:\nben:x:1001:100::/home/ben:\n";
        let groups = "root:x:0:\nusers:x:100:\nana:x:1000:\nmail:x:8:ben\njobs:x:9:ana,ben\nhers:x:10:ana\n";
        let us = Us { uid: 1000, users: users.to_owned(), groups: groups.to_owned() };
        assert!([1000, 10].into_iter().all(|gid| us.is_alone_in(gid)));
        assert!([0, 100, 8, 9, 4711].into_iter().all(|gid| !us.is_alone_in(gid)));
    }
}
