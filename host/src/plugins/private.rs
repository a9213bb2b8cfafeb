//! A directory that no other user can write or replace, so that its files can be trusted.
//!
//! A user who can write to a parent directory could replace the directory between a check and its use. So each parent has
//! to belong to this user or to root, and must not be writable by others. Sticky directories such as /tmp are fine: there,
//! users can only rename their own files.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The extensions of the files of the cache.
pub(super) const EXTENSIONS: [&str; 3] = ["cwasm", "sha256", "tmp"];

/// Why a directory can't be trusted.
#[derive(Debug, Error)]
pub(super) enum NotPrivate {
    #[error("it cannot be created or read: {0}")]
    Io(#[from] io::Error),
    #[error("others can write to it, so its code cannot be trusted; delete it, or empty it and `chmod 700` it")]
    Open,
    #[error(
        "its parent directory `{}` {how}, so it could be replaced; `chmod go-w` that directory, or set \
         `plugins.cache_dir` to another one",
        path.display()
    )]
    Replaceable { path: PathBuf, how: &'static str },
    #[error(
        "`{}` is readable by others and holds other files, such as `{}`; set `plugins.cache_dir` to a directory of its own",
        path.display(), file.display()
    )]
    Shared { path: PathBuf, file: PathBuf },
    #[error("{}", foreign(path, owner, *is_root))]
    Foreign { path: PathBuf, owner: String, is_root: bool },
}

/// What another user's directory means. Root is refused too: the owner could make root run any code.
fn foreign(path: &Path, owner: &str, is_root: bool) -> String {
    let path = path.display();
    if is_root {
        format!(
            "`{path}` belongs to {owner}, and root does not run code that another user can change. A service that runs \
             as that user is not affected; to use its cache, run this command as that user (`sudo -u`)"
        )
    } else {
        format!("`{path}` belongs to {owner}; set `plugins.cache_dir` to a directory of your own")
    }
}

/// Creates the directory if it doesn't exist, closes it to others, and returns its real path.
///
/// Nothing is created below a directory of another user. So if root runs a command in the directory of a service, no
/// directory of root is left that the service can't use.
pub(super) fn private_dir(dir: &Path) -> Result<PathBuf, NotPrivate> {
    let user = User::current();
    let written = std::path::absolute(dir)?;
    if !dir.exists() {
        let parent = written.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        user.check_parents(&parent.join("new"))?;
        user.check_parents(&parent.canonicalize()?.join("new"))?;
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let meta = fs::metadata(dir)?;
    if !meta.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory).into());
    }
    if meta.uid() != user.uid {
        return Err(user.foreign(dir, meta.uid()));
    }
    if meta.mode() & 0o022 != 0 {
        return Err(NotPrivate::Open);
    }
    let real = dir.canonicalize()?;
    // Both the path as written, which may contain links, and the real one.
    user.check_parents(&written)?;
    user.check_parents(&real)?;
    if meta.mode() & 0o077 != 0 {
        if let Some(file) = file_of_others(&real)? {
            return Err(NotPrivate::Shared { path: real, file });
        }
        fs::set_permissions(&real, fs::Permissions::from_mode(0o700))?;
    }
    Ok(real)
}

/// A file that no cache of ours has. Its directory serves other purposes too, so its mode must not change.
fn file_of_others(dir: &Path) -> io::Result<Option<PathBuf>> {
    let is_ours = |path: &Path| path.extension().is_some_and(|found| EXTENSIONS.iter().any(|ours| found == *ours));
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if !is_ours(&path) {
            return Ok(path.file_name().map(PathBuf::from));
        }
    }
    Ok(None)
}

/// The current user, and the users and groups of this machine.
struct User {
    uid: u32,
    users: String,
    groups: String,
}

impl User {
    fn current() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let uid = rustix::process::geteuid().as_raw();
        Self { uid, users: read("/etc/passwd"), groups: read("/etc/group") }
    }

    fn foreign(&self, path: &Path, owner: u32) -> NotPrivate {
        NotPrivate::Foreign { path: path.to_path_buf(), owner: self.name_of(owner), is_root: self.uid == 0 }
    }

    /// Fails if others could replace `path`, because they own or can write to one of its parents.
    fn check_parents(&self, path: &Path) -> Result<(), NotPrivate> {
        for parent in path.ancestors().skip(1) {
            let meta = fs::symlink_metadata(parent)?;
            if meta.uid() != self.uid && meta.uid() != 0 {
                return Err(self.foreign(parent, meta.uid()));
            }
            if let Some(how) = self.writable_by(&meta) {
                return Err(NotPrivate::Replaceable { path: parent.to_path_buf(), how });
            }
        }
        Ok(())
    }

    /// A user by name and number.
    fn name_of(&self, uid: u32) -> String {
        let mut fields = self.users.lines().map(|user| user.split(':').collect::<Vec<_>>());
        let found = fields.find(|user| user.get(2).is_some_and(|field| field.parse() == Ok(uid)));
        match found.and_then(|user| user.first().copied()) {
            Some(name) => format!("the user `{name}` (uid {uid})"),
            None => format!("the user with uid {uid}"),
        }
    }

    /// Which others could replace an entry of this directory, if any.
    fn writable_by(&self, meta: &Metadata) -> Option<&'static str> {
        let is_sticky = meta.mode() & 0o1000 != 0;
        if meta.is_symlink() || is_sticky {
            return None;
        }
        if meta.mode() & 0o002 != 0 {
            return Some("is writable by everyone");
        }
        (meta.mode() & 0o020 != 0 && !self.is_alone_in(meta.gid())).then_some("is writable by a group")
    }

    /// Whether this user is the only member of the group. Many systems give each user a group that may write by default.
    fn is_alone_in(&self, gid: u32) -> bool {
        let is = |field: Option<&str>, id: u32| field.is_some_and(|field| field.parse() == Ok(id));
        let own: Vec<&str> = self.users.lines().filter(|user| is(user.split(':').nth(2), self.uid)).collect();
        let names: Vec<&str> = own.iter().filter_map(|user| user.split(':').next()).collect();
        let mut of_group = self.users.lines().filter(|user| is(user.split(':').nth(3), gid));
        let Some(group) = self.groups.lines().find(|group| is(group.split(':').nth(2), gid)) else { return false };
        let mut members = group.split(':').nth(3).unwrap_or_default().split(',').filter(|name| !name.is_empty());
        members.all(|name| names.contains(&name)) && of_group.all(|user| own.contains(&user))
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
    fn a_directory_writable_by_others_is_not_trusted() {
        for mode in [0o777, 0o770, 0o702] {
            let refused = private_dir(with_mode(mode).path());
            assert!(matches!(refused, Err(NotPrivate::Open)), "{mode:o} {refused:?}");
        }
    }

    #[test]
    fn a_directory_readable_by_others_is_closed_to_them() {
        let dir = with_mode(0o755);
        private_dir(dir.path()).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_or_file_that_serves_another_purpose_keeps_its_mode() {
        let dir = with_mode(0o755);
        let file = dir.path().join("index.html");
        fs::write(&file, "").unwrap();
        let refused = private_dir(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("holds other files, such as `index.html`"), "{refused}");
        assert_eq!(fs::metadata(dir.path()).unwrap().mode() & 0o777, 0o755);
        let mode = fs::metadata(&file).unwrap().mode();
        assert!(private_dir(&file).is_err());
        assert_eq!(fs::metadata(&file).unwrap().mode(), mode);
    }

    #[test]
    fn a_directory_that_can_be_replaced_is_not_trusted() {
        let parent = with_mode(0o777);
        for dir in [parent.path().join("cache"), parent.path().join("deep/cache")] {
            let refused = private_dir(&dir).unwrap_err().to_string();
            assert!(refused.contains(&format!("`{}`", parent.path().display())), "{refused}");
            assert!(refused.contains("is writable by everyone"), "{refused}");
            assert!(!dir.exists(), "nothing is created where it could be replaced");
        }
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        private_dir(&parent.path().join("cache")).unwrap();
    }

    #[test]
    fn a_link_that_can_be_replaced_is_not_trusted_and_the_real_path_is_returned() {
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
    fn another_users_directory_is_refused_with_its_owner() {
        let users = "root:x:0:0:root:/root:/bin/sh\njobq:x:998:998::/var/lib/jobq:\n".to_owned();
        let of = |uid| User { uid, users: users.clone(), groups: String::new() };
        let as_root = of(0).foreign(Path::new("/var/lib/jobq/.jobq/cache"), 998).to_string();
        assert!(as_root.starts_with("`/var/lib/jobq/.jobq/cache` belongs to the user `jobq` (uid 998)"), "{as_root}");
        assert!(as_root.contains("root does not run code that another user can change"), "{as_root}");
        let as_user = of(1000).foreign(Path::new("/cache"), 4711).to_string();
        assert!(
            as_user.starts_with("`/cache` belongs to the user with uid 4711; set `plugins.cache_dir`"),
            "{as_user}"
        );
    }

    #[test]
    fn a_group_with_only_this_user_may_write() {
        let users = "root:x:0:0:root:/root:/bin/sh\nana:x:1000:1000::/home/ana:\nben:x:1001:100::/home/ben:\n";
        let groups = "root:x:0:\nusers:x:100:\nana:x:1000:\nmail:x:8:ben\njobs:x:9:ana,ben\nhers:x:10:ana\n";
        let user = User { uid: 1000, users: users.to_owned(), groups: groups.to_owned() };
        assert!([1000, 10].into_iter().all(|gid| user.is_alone_in(gid)));
        assert!([0, 100, 8, 9, 4711].into_iter().all(|gid| !user.is_alone_in(gid)));
    }
}
