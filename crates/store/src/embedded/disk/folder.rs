//! The real disk: one folder of the file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::direct::{Direct, Way};
use super::{Disk, DiskFile, DiskRoom, is_no_space};

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct FolderDisk {
    path: Arc<Path>,
    /// Kept open to be synced and asked for free space.
    folder: Arc<File>,
    room: DiskRoom,
    /// Past the system's cache.
    way: Way,
}

impl FolderDisk {
    /// Opens the folder. It is made if it is not there, durably, with the folders above it.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<FolderDisk> {
        let path: PathBuf = path.into();
        make_durable_folder(&path)?;
        let folder = File::open(&path)?;
        Ok(FolderDisk {
            path: path.into(),
            folder: Arc::new(folder),
            room: DiskRoom::default(),
            way: Way::default(),
        })
    }

    /// The same, with this much room.
    pub fn with_room(self, room: DiskRoom) -> FolderDisk {
        FolderDisk { room, ..self }
    }

    fn file(&self, path: &Path, file: File) -> FolderFile {
        FolderFile { file, direct: Direct::open(path, self.way.clone()) }
    }
}

/// A folder is an entry of the one above it, which must be synced too.
fn make_durable_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    make_durable_folder(parent)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(parent)?.sync_all()
}

impl Disk for FolderDisk {
    type File = FolderFile;
    type Lock = FolderLock;

    fn create(&self, name: &str) -> io::Result<FolderFile> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok(self.file(&path, file))
    }

    fn open(&self, name: &str) -> io::Result<FolderFile> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(self.file(&path, file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // What is not text is no name of ours.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.room.free_bytes(&self.path)
    }

    fn lock(&self, name: &str) -> io::Result<Option<FolderLock>> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FolderLock { _held: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A file of the file system.
#[derive(Debug)]
pub struct FolderFile {
    file: File,
    /// The same file, past the system's cache, where the file system can do that.
    direct: Option<Direct>,
}

impl DiskFile for FolderFile {
    fn len(&self) -> io::Result<u64> {
        self.file.metadata().map(|about| about.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_through(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        match self.direct.as_ref().and_then(|direct| direct.write(offset, bytes)) {
            // Whether it was the write or its sync that found none is not known: on the usual way it is.
            Some(Err(error)) if is_no_space(&error) => {}
            Some(written) => return written.map(|()| true),
            None => {}
        }
        self.write_at(offset, bytes).map(|()| false)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Held until it is dropped, also by a process that dies.
#[derive(Debug)]
pub struct FolderLock {
    _held: File,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test alone, removed at its end.
    struct Place(PathBuf);

    impl Place {
        fn new(test: &str) -> Place {
            let name = format!("punctual-disk-{}-{test}", std::process::id());
            Place(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_are_made_written_read_renamed_and_removed() {
        let place = Place::new("files");
        let disk = FolderDisk::open(place.0.join("deep/in/it")).expect("made");
        let file = disk.create("b").expect("created");
        file.write_at(3, b"words").expect("written");
        file.sync().expect("synced");
        assert_eq!(file.len().expect("asked"), 8);
        disk.create("a").expect("created");
        assert!(disk.create("a").is_err(), "the name is taken");
        assert_eq!(disk.list().expect("listed"), ["a", "b"]);

        disk.rename("b", "c").expect("renamed");
        disk.remove("a").expect("removed");
        disk.sync_folder().expect("synced");
        assert_eq!(disk.list().expect("listed"), ["c"]);
        let mut read = [0; 5];
        disk.open("c").expect("opened").read_at(3, &mut read).expect("read");
        assert_eq!(&read, b"words");
        assert!(disk.open("c").expect("opened").read_at(4, &mut read).is_err(), "the file ends before that");
        assert!(disk.free_bytes().expect("asked") > 0);
    }

    #[test]
    fn a_lock_keeps_others_out_until_it_is_dropped() {
        let place = Place::new("lock");
        let disk = FolderDisk::open(&place.0).expect("made");
        let held = disk.lock("lock").expect("asked").expect("free");
        assert!(disk.lock("lock").expect("asked").is_none());
        drop(held);
        assert!(disk.lock("lock").expect("asked").is_some());
    }
}
