//! `wasi:filesystem`: the granted directories, served by wasmtime-wasi, and an empty root directory.
//!
//! For a path in no granted directory, a guest's library returns "no such file" without asking the host. With a root
//! directory, the host gets these calls: it returns the same error and records the path for the log. The root is only a
//! handle.

use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode, Filesize,
    Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use crate::sandbox::denials::Denials;
use crate::sandbox::grants::DirGrant;

/// The handle of the root. The table of handles never reaches it.
const ROOT: u32 = u32::MAX;

/// The file system of one guest.
pub(in crate::sandbox) struct Files<'a> {
    pub(in crate::sandbox) inner: WasiFilesystemCtxView<'a>,
    pub(in crate::sandbox) dirs: &'a [DirGrant],
    pub(in crate::sandbox) denials: &'a mut Denials,
}

/// Gives the linker access to [`Files`].
pub(super) struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = Files<'a>;
}

type Fd = Resource<Descriptor>;

impl Files<'_> {
    /// Fails with `error` if `fd` is the root.
    fn not_root(&self, fd: &Fd, error: ErrorCode) -> FsResult<()> {
        if is_root(fd) { Err(error.into()) } else { Ok(()) }
    }

    /// Fails, and records a denial, if `fd` is the root: `path` is in no granted directory.
    fn granted(&mut self, fd: &Fd, path: &str) -> FsResult<()> {
        if is_root(fd) {
            self.denials.deny_path(path);
            return Err(ErrorCode::NoEntry.into());
        }
        Ok(())
    }

    /// Records a change that wasn't permitted.
    fn noted<T>(&mut self, fd: u32, path: &str, result: FsResult<T>) -> FsResult<T> {
        let refused = |error: &FsError| matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted));
        if result.as_ref().is_err_and(refused) {
            self.denials.deny_change(fd, path);
        }
        result
    }
}

fn is_root(fd: &Fd) -> bool {
    fd.rep() == ROOT
}

impl preopens::Host for Files<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        let mut directories = preopens::Host::get_directories(&mut self.inner)?;
        for (fd, guest) in &directories {
            self.denials.add_dir(fd.rep(), guest, self.dirs);
        }
        // The root is last, because some runtimes use the first one as working directory.
        if directories.iter().all(|(_, guest)| guest != "/") {
            directories.push((Resource::new_own(ROOT), "/".to_owned()));
        }
        Ok(directories)
    }
}

impl Host for Files<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.inner.convert_error_code(error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        self.inner.filesystem_error_code(error)
    }
}

impl HostDescriptor for Files<'_> {
    async fn advise(&mut self, fd: Fd, offset: Filesize, len: Filesize, advice: Advice) -> FsResult<()> {
        self.not_root(&fd, ErrorCode::BadDescriptor)?;
        self.inner.advise(fd, offset, len, advice).await
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.not_root(&fd, ErrorCode::NotPermitted)?;
        self.inner.sync_data(fd).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        if is_root(&fd) {
            return Ok(DescriptorFlags::READ);
        }
        self.inner.get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        if is_root(&fd) {
            return Ok(DescriptorType::Directory);
        }
        self.inner.get_type(fd).await
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        self.not_root(&fd, ErrorCode::IsDirectory)?;
        self.inner.set_size(fd, size).await
    }

    async fn set_times(&mut self, fd: Fd, accessed: NewTimestamp, modified: NewTimestamp) -> FsResult<()> {
        self.not_root(&fd, ErrorCode::NotPermitted)?;
        self.inner.set_times(fd, accessed, modified).await
    }

    async fn read(&mut self, fd: Fd, len: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        self.not_root(&fd, ErrorCode::IsDirectory)?;
        self.inner.read(fd, len, offset).await
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.not_root(&fd, ErrorCode::IsDirectory)?;
        self.inner.write(fd, bytes, offset).await
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<DirectoryEntryStream>> {
        self.granted(&fd, ".")?;
        self.inner.read_directory(fd).await
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.not_root(&fd, ErrorCode::NotPermitted)?;
        self.inner.sync(fd).await
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.granted(&fd, &path)?;
        let rep = fd.rep();
        let created = self.inner.create_directory_at(fd, path.clone()).await;
        self.noted(rep, &path, created)
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        if is_root(&fd) {
            return Ok(DescriptorStat {
                type_: DescriptorType::Directory,
                link_count: 1,
                size: 0,
                data_access_timestamp: None,
                data_modification_timestamp: None,
                status_change_timestamp: None,
            });
        }
        self.inner.stat(fd).await
    }

    async fn stat_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        self.granted(&fd, &path)?;
        self.inner.stat_at(fd, flags, path).await
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.granted(&fd, &path)?;
        let rep = fd.rep();
        let set = self.inner.set_times_at(fd, flags, path.clone(), accessed, modified).await;
        self.noted(rep, &path, set)
    }

    async fn link_at(&mut self, fd: Fd, flags: PathFlags, old: String, new_fd: Fd, new: String) -> FsResult<()> {
        self.granted(&fd, &old)?;
        self.granted(&new_fd, &new)?;
        let rep = new_fd.rep();
        let linked = self.inner.link_at(fd, flags, old, new_fd, new.clone()).await;
        self.noted(rep, &new, linked)
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        self.granted(&fd, &path)?;
        let changes = how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
            || flags.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY);
        let rep = fd.rep();
        let opened = self.inner.open_at(fd, path_flags, path.clone(), how, flags).await;
        if changes { self.noted(rep, &path, opened) } else { opened }
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        self.granted(&fd, &path)?;
        self.inner.readlink_at(fd, path).await
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.granted(&fd, &path)?;
        let rep = fd.rep();
        let removed = self.inner.remove_directory_at(fd, path.clone()).await;
        self.noted(rep, &path, removed)
    }

    async fn rename_at(&mut self, fd: Fd, old: String, new_fd: Fd, new: String) -> FsResult<()> {
        self.granted(&fd, &old)?;
        self.granted(&new_fd, &new)?;
        let (rep, new_rep) = (fd.rep(), new_fd.rep());
        let renamed = self.inner.rename_at(fd, old.clone(), new_fd, new.clone()).await;
        let renamed = self.noted(rep, &old, renamed);
        self.noted(new_rep, &new, renamed)
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        self.granted(&fd, &path)?;
        let rep = fd.rep();
        let linked = self.inner.symlink_at(fd, target, path.clone()).await;
        self.noted(rep, &path, linked)
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.granted(&fd, &path)?;
        let rep = fd.rep();
        let unlinked = self.inner.unlink_file_at(fd, path.clone()).await;
        self.noted(rep, &path, unlinked)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        self.not_root(&fd, ErrorCode::IsDirectory)?;
        self.inner.read_via_stream(fd, offset)
    }

    fn write_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        self.not_root(&fd, ErrorCode::IsDirectory)?;
        self.inner.write_via_stream(fd, offset)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.not_root(&fd, ErrorCode::IsDirectory)?;
        self.inner.append_via_stream(fd)
    }

    async fn is_same_object(&mut self, a: Fd, b: Fd) -> wasmtime::Result<bool> {
        if is_root(&a) || is_root(&b) {
            return Ok(is_root(&a) && is_root(&b));
        }
        self.inner.is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        if is_root(&fd) {
            return Ok(MetadataHashValue { lower: 0, upper: 0 });
        }
        self.inner.metadata_hash(fd).await
    }

    async fn metadata_hash_at(&mut self, fd: Fd, flags: PathFlags, path: String) -> FsResult<MetadataHashValue> {
        self.granted(&fd, &path)?;
        self.inner.metadata_hash_at(fd, flags, path).await
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        if is_root(&fd) {
            return Ok(());
        }
        self.denials.remove_dir(fd.rep());
        HostDescriptor::drop(&mut self.inner, fd)
    }
}

impl HostDirectoryEntryStream for Files<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.inner.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.inner, stream)
    }
}
