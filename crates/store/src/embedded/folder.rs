//! A data folder: what it is, and who may use it. Decision record: `docs/decisions/0011-the-data-folder.md`.
//!
//! ```text
//!   punctual.txt    what the folder is: its format, its identity, how many partitions
//!   lock            held by the process that uses it; its number is in it
//!   journal/        segments of frames
//!   tables/         sorted rows
//! ```

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::disk::{Disk, DiskFile, FolderDisk};
use super::frame::Identity;
use crate::StoreError;

/// The newest format of a data folder that is known here.
const FORMAT: u32 = 1;
/// How the first line of [`ABOUT`] reads.
const TITLE: &str = "A data folder of Punctual. Do not change anything in it.";
const ABOUT: &str = "punctual.txt";
const ABOUT_UNFINISHED: &str = "punctual.txt.new";
const LOCK: &str = "lock";
const JOURNAL: &str = "journal";
const TABLES: &str = "tables";
const TABLES_UNFINISHED: &str = "tables.new";

/// Why a data folder was not opened, copied or verified. Nothing in it was changed.
#[derive(Debug)]
pub struct FolderError {
    /// The folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub trouble: FolderTrouble,
}

/// What is wrong with a data folder.
#[derive(Debug)]
pub enum FolderTrouble {
    /// Another process has it open.
    InUse {
        /// Its number, if it said so.
        pid: Option<u32>,
    },
    /// There is no data folder.
    Missing,
    /// It holds something else.
    Foreign {
        /// The first name found in it.
        holds: String,
    },
    /// It must be empty to be copied into, and is not.
    NotEmpty,
    /// It lies inside the folder that is to be copied.
    Inside,
    /// A backup or restore into it was interrupted.
    Unfinished,
    /// It was written by a newer version of this program.
    Newer {
        /// Its format.
        format: u32,
    },
    /// What it says about itself cannot be read.
    Unreadable(&'static str),
    /// The disk failed.
    Disk(io::Error),
    /// The store in it could not be opened or read.
    Store(StoreError),
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.trouble {
            FolderTrouble::InUse { pid: Some(pid) } if *pid == std::process::id() => {
                write!(
                    f,
                    "the data folder {path} is already open in this process: close the other store first"
                )
            }
            FolderTrouble::InUse { pid: Some(pid) } => {
                write!(f, "the data folder {path} is in use by process {pid}: stop it first")
            }
            FolderTrouble::InUse { pid: None } => {
                write!(f, "the data folder {path} is in use by another process: stop it first")
            }
            FolderTrouble::Missing => write!(f, "there is no data folder at {path}"),
            FolderTrouble::Foreign { holds } => write!(
                f,
                "{path} is no data folder of Punctual (it holds `{holds}`): name one that is empty or not there yet"
            ),
            FolderTrouble::NotEmpty => {
                write!(f, "{path} is not empty: name a folder that is empty or not there yet")
            }
            FolderTrouble::Inside => {
                write!(f, "{path} lies inside the data folder that is to be copied: name one beside it")
            }
            FolderTrouble::Unfinished => {
                write!(
                    f,
                    "a backup or restore into {path} was interrupted: remove the folder and make it again"
                )
            }
            FolderTrouble::Newer { format } => write!(
                f,
                "the data folder {path} has format {format}, and {FORMAT} is the newest that this version knows: use the newer version"
            ),
            FolderTrouble::Unreadable(what) => write!(f, "{path}/{ABOUT} cannot be read: {what}"),
            FolderTrouble::Disk(_) => write!(f, "the disk failed at the data folder {path}"),
            FolderTrouble::Store(_) => write!(f, "the data folder {path} could not be opened"),
        }
    }
}

impl std::error::Error for FolderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.trouble {
            FolderTrouble::Disk(error) => Some(error),
            FolderTrouble::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl FolderTrouble {
    /// It happened to this folder.
    pub(super) fn at(self, path: &Path) -> FolderError {
        FolderError { path: path.into(), trouble: self }
    }
}

impl From<io::Error> for FolderTrouble {
    fn from(error: io::Error) -> FolderTrouble {
        FolderTrouble::Disk(error)
    }
}

impl From<StoreError> for FolderTrouble {
    fn from(error: StoreError) -> FolderTrouble {
        FolderTrouble::Store(error)
    }
}

/// What a folder says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct About {
    pub identity: Identity,
    pub partitions: u16,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (identity, partitions) = (self.identity.0, self.partitions);
        writeln!(f, "{TITLE}\nformat = {FORMAT}\nidentity = {identity:016x}\npartitions = {partitions}")
    }
}

impl About {
    /// Reads the text again. The format comes first, so that a newer one is told from damage.
    fn parse(text: &str) -> Result<About, FolderTrouble> {
        let unreadable = FolderTrouble::Unreadable;
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(unreadable("its first line is not ours"));
        }
        let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(" = ");
        let format = value("format").and_then(|format| format.parse().ok());
        match format.ok_or(unreadable("it does not say its format"))? {
            0 => return Err(unreadable("there is no format 0")),
            FORMAT => {}
            format => return Err(FolderTrouble::Newer { format }),
        }
        let identity = value("identity").and_then(|identity| u64::from_str_radix(identity, 16).ok());
        let identity = Identity(identity.ok_or(unreadable("it does not say its identity"))?);
        let partitions = value("partitions").and_then(|partitions| partitions.parse().ok());
        let partitions = partitions.filter(|partitions| *partitions > 0);
        Ok(About { identity, partitions: partitions.ok_or(unreadable("it does not say its partitions"))? })
    }
}

/// A folder that belongs to this process until it is dropped.
#[derive(Debug)]
pub(super) struct DataFolder {
    path: PathBuf,
    pub about: About,
    _lock: File,
}

impl DataFolder {
    /// Opens a data folder, or makes one with so many partitions.
    pub fn open_or_make(path: &Path, partitions: u16) -> Result<DataFolder, FolderError> {
        match DataFolder::open(path) {
            Err(FolderError { trouble: FolderTrouble::Missing, .. }) => {
                let identity = draw_identity().map_err(|error| FolderTrouble::Disk(error).at(path))?;
                NewFolder::begin(path, About { identity, partitions })?.finish()
            }
            opened => opened,
        }
    }

    /// Opens a data folder that is there.
    pub fn open(path: &Path) -> Result<DataFolder, FolderError> {
        if !is_data_folder(path)? {
            return Err(FolderTrouble::Missing.at(path));
        }
        let lock = lock(path)?;
        let about = std::fs::read_to_string(path.join(ABOUT)).map_err(|error| {
            let is_text = error.kind() != io::ErrorKind::InvalidData;
            let trouble = if is_text { error.into() } else { FolderTrouble::Unreadable("it is no text") };
            trouble.at(path)
        })?;
        let about = About::parse(&about).map_err(|trouble| trouble.at(path))?;
        Ok(DataFolder { path: path.into(), about, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    pub fn tables(&self) -> PathBuf {
        self.path.join(TABLES)
    }
}

/// Refuses to copy a folder into itself: the copy would be part of what is copied, or look like a part of it.
pub(super) fn check_beside(source: &Path, target: &Path) -> Result<(), FolderError> {
    let failed = |error| FolderTrouble::Disk(error).at(target);
    let source = source.canonicalize().map_err(failed)?;
    // The target may not be there yet, nor those above it.
    let is_inside = target.ancestors().find_map(|above| {
        let path = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let path = path.canonicalize().ok()?;
        Some(path.starts_with(&source) && !(above == target && path == source))
    });
    if is_inside == Some(true) { Err(FolderTrouble::Inside.at(target)) } else { Ok(()) }
}

/// A data folder in the making. Until it is finished, nobody takes it for one.
pub(super) struct NewFolder {
    path: PathBuf,
    about: About,
    lock: File,
}

impl NewFolder {
    /// Begins one in a folder that is empty, or not there yet.
    pub fn begin(path: &Path, about: About) -> Result<NewFolder, FolderError> {
        FolderDisk::open(path).map_err(|error| FolderTrouble::Disk(error).at(path))?;
        if is_data_folder(path)? {
            return Err(FolderTrouble::NotEmpty.at(path));
        }
        let lock = lock(path)?;
        // Somebody may have made it between the look and the lock.
        if is_data_folder(path)? {
            return Err(FolderTrouble::NotEmpty.at(path));
        }
        Ok(NewFolder { path: path.into(), about, lock })
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    pub fn tables(&self) -> PathBuf {
        self.path.join(TABLES)
    }

    /// Says, durably, what the folder is.
    pub fn finish(self) -> Result<DataFolder, FolderError> {
        let NewFolder { path, about, lock } = self;
        write_about(&path, about).map_err(|error| FolderTrouble::Disk(error).at(&path))?;
        Ok(DataFolder { path, about, _lock: lock })
    }
}

fn write_about(path: &Path, about: About) -> io::Result<()> {
    let disk = FolderDisk::open(path)?;
    if disk.list()?.iter().any(|name| name == ABOUT_UNFINISHED) {
        disk.remove(ABOUT_UNFINISHED)?;
    }
    let file = disk.create(ABOUT_UNFINISHED)?;
    file.write_at(0, about.to_string().as_bytes())?;
    file.sync()?;
    disk.rename(ABOUT_UNFINISHED, ABOUT)?;
    disk.sync_folder()
}

/// Whether there is a data folder; not if there is nothing, or an empty folder. Anything else is an error.
fn is_data_folder(path: &Path) -> Result<bool, FolderError> {
    let names = match std::fs::read_dir(path) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(FolderTrouble::Disk(error).at(path)),
    };
    let mut trouble = None;
    for name in names {
        let name = name.map_err(|error| FolderTrouble::Disk(error).at(path))?.file_name();
        match &*name.to_string_lossy() {
            ABOUT => return Ok(true),
            LOCK | ABOUT_UNFINISHED => {}
            JOURNAL | TABLES | TABLES_UNFINISHED => _ = trouble.get_or_insert(FolderTrouble::Unfinished),
            other => trouble = Some(FolderTrouble::Foreign { holds: other.into() }),
        }
    }
    trouble.map_or(Ok(false), |trouble| Err(trouble.at(path)))
}

/// Keeps other processes out. The lock ends with the process, whatever ends that.
fn lock(path: &Path) -> Result<File, FolderError> {
    let failed = |error| FolderTrouble::Disk(error).at(path);
    let options = || OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
    let mut file = options().open(path.join(LOCK)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            file.read_to_string(&mut pid).map_err(failed)?;
            return Err(FolderTrouble::InUse { pid: pid.trim().parse().ok() }.at(path));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let pid = format!("{}\n", std::process::id());
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes()));
    match written {
        // The number only helps whoever finds the folder locked.
        Err(error) if !super::disk::is_no_space(&error) => Err(failed(error)),
        _ => Ok(file),
    }
}

/// Drawn by chance, so that no two folders are taken for one another.
pub(super) fn draw_identity() -> io::Result<Identity> {
    let mut drawn = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    Ok(Identity(u64::from_le_bytes(drawn)))
}
