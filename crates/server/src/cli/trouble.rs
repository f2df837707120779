//! What went wrong, what to do about it, and the exit code that says so to a script.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use punctual_client::wire::Problem;
use rustls::CertificateError;
use serde_json::json;

use super::flags::{flag_of, said_here};

/// The exit codes, for `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0  it is done
  1  refused: the text says why; nothing was changed
  2  wrong usage: nothing was sent
  3  the server was not reached, or is busy: nothing was changed, try again later
  4  it is not there: no such task, queue, lane or folder
  5  the task did not succeed: it is dead, cancelled or expired
  6  the task has not ended yet
  7  it may or may not have happened: look before you try again
  8  the data folder is damaged, in use, or of a newer version";

/// What a script is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Refused = 1,
    Usage = 2,
    NotReached = 3,
    NotThere = 4,
    NotSucceeded = 5,
    NotEnded = 6,
    Unknown = 7,
    Folder = 8,
}

/// Why a command did not do as asked.
#[derive(Debug)]
pub struct Trouble {
    exit: Exit,
    /// What programs look at.
    code: String,
    text: String,
    /// What to do, if the text does not say it.
    hint: Option<String>,
    /// As the server said it.
    problem: Option<Box<Problem>>,
}

impl Trouble {
    /// Trouble of that kind.
    pub fn new(exit: Exit, text: impl Display) -> Trouble {
        let code = match exit {
            Exit::Refused => "failed",
            Exit::Usage => "usage",
            Exit::NotReached => "not_reached",
            Exit::NotThere => "not_found",
            Exit::NotSucceeded => "task_not_succeeded",
            Exit::NotEnded => "task_not_ended",
            Exit::Unknown => "outcome_unknown",
            Exit::Folder => "folder",
        };
        Trouble { exit, code: code.into(), text: text.to_string(), hint: None, problem: None }
    }

    /// Something on this machine did not work.
    pub fn failed(text: impl Display) -> Trouble {
        Trouble::new(Exit::Refused, text)
    }

    /// The command makes no sense as it was typed.
    pub fn usage(text: impl Display) -> Trouble {
        Trouble::new(Exit::Usage, text)
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Trouble {
        self.hint = Some(hint.into());
        self
    }

    /// What a client made of it. `server` is the address that was asked.
    pub fn of(error: punctual_client::Error, server: &str) -> Trouble {
        use punctual_client::Error;
        let cause = innermost(&error);
        if let Some(why) = certificate_error(&error) {
            return untrusted(server, why);
        }
        match error {
            Error::Refused(problem) if problem.code.is_empty() => {
                let text = format!("{server} answered {} {}", problem.status, problem.title);
                Trouble::new(Exit::Refused, text).hint("is this a Punctual server? Name yours with --server")
            }
            Error::Refused(problem) if problem.code == "not_found" => {
                let text = format!("{server} cannot do this: is it older than this command?");
                Trouble {
                    code: "not_found".into(),
                    problem: Some(problem),
                    ..Trouble::new(Exit::Refused, text)
                }
            }
            Error::Refused(problem) if matches!(&*problem.code, "key_missing" | "key_invalid") => {
                Trouble::refused(problem).hint("give your key with --key, or in PUNCTUAL_KEY")
            }
            Error::Refused(problem) => Trouble::refused(problem),
            Error::Busy { problem, retry_after } => {
                let after =
                    retry_after.map_or("later".to_owned(), |after| format!("in {} s", after.as_secs()));
                let text = format!("the server is busy: {}", problem.detail);
                let trouble = Trouble::new(Exit::NotReached, text).hint(format!("try again {after}"));
                Trouble { code: problem.code.to_string(), problem: Some(problem), ..trouble }
            }
            Error::Unreachable(_) => {
                Trouble::new(Exit::NotReached, format!("no server at {server}: {cause}"))
                    .hint("start one with `punctual serve`, or name yours with --server or PUNCTUAL_SERVER")
            }
            Error::Unknown(_) => {
                let text = format!("no answer from {server}: {cause}");
                Trouble::new(Exit::Unknown, text)
                    .hint("it may or may not have happened: look before you try again")
            }
            Error::Unreadable(_) => {
                let text = format!("what {server} answered makes no sense: {cause}");
                Trouble::new(Exit::Unknown, text).hint("is this a Punctual server? Name yours with --server")
            }
            Error::Impossible(_) => Trouble::usage(format!("the request cannot be written: {cause}")),
        }
    }

    fn refused(problem: Box<Problem>) -> Trouble {
        let exit = if problem.status == 404 { Exit::NotThere } else { Exit::Refused };
        let said = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
        let mut text = said_here(said);
        for fault in &problem.errors {
            // What is said already about the only field is not said again.
            if !said.contains(&fault.detail) {
                text = format!("{text}\n  {}: {}", flag_of(&fault.field), fault.detail);
            }
        }
        Trouble { code: problem.code.to_string(), problem: Some(problem), ..Trouble::new(exit, text) }
    }

    /// The code of the problem.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What went wrong, in words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a script is told.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Says it on stderr: as a sentence, or as JSON.
    pub fn report(&self, json: bool) -> ExitCode {
        if !json {
            eprintln!("punctual: {}", self.text);
            if let Some(hint) = &self.hint {
                eprintln!("  {hint}");
            }
        } else if let Some(problem) = &self.problem {
            eprintln!("{}", json!(problem));
        } else {
            eprintln!("{}", json!({"code": self.code, "detail": self.text, "hint": self.hint}));
        }
        ExitCode::from(self.exit as u8)
    }
}

/// The cause that is furthest away is the one that names the thing.
fn innermost(error: &punctual_client::Error) -> String {
    let Some(mut cause) = error.source() else { return error.to_string() };
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Why the server could not prove its name, if that is what lies behind an error.
fn certificate_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a CertificateError> {
    if let Some(rustls::Error::InvalidCertificate(why)) = error.downcast_ref() {
        return Some(why);
    }
    // An error of the system does not name the one that it carries as its source.
    let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    carried.map(|error| error as &dyn Error).or_else(|| error.source()).and_then(certificate_error)
}

/// A server that is there, and could be anybody.
fn untrusted(server: &str, why: &CertificateError) -> Trouble {
    use CertificateError::*;
    let hint = match why {
        NotValidForName | NotValidForNameContext { .. } => {
            "ask for the server by a name that stands in its certificate, with --server or PUNCTUAL_SERVER"
        }
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => {
            "it is not good at this time: is the clock here right? If it is, the server needs a new one"
        }
        _ => {
            "SSL_CERT_FILE names a file with the certificates to trust, in PEM, in place of those of this machine"
        }
    };
    Trouble::new(Exit::NotReached, format!("the certificate of {server} is not trusted: {why}")).hint(hint)
}

/// What is wrong with a data folder.
pub fn of_folder(error: &punctual::FolderError) -> Trouble {
    use punctual::FolderTrouble;
    // To the store, the disk has failed.
    if let (FolderTrouble::Disk(_), Some(file)) = (&error.trouble, file_in(&error.path)) {
        return Trouble::usage(format!("{} is a file, not a folder", file.display()));
    }
    let exit = match &error.trouble {
        FolderTrouble::Missing => Exit::NotThere,
        FolderTrouble::NotEmpty | FolderTrouble::Foreign { .. } => Exit::Usage,
        _ => Exit::Folder,
    };
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    Trouble::new(exit, text)
}

/// What is wrong with a folder that must be a data folder already: another one that is empty is of no use.
pub fn of_source(error: &punctual::FolderError) -> Trouble {
    match &error.trouble {
        punctual::FolderTrouble::Foreign { holds } => {
            let path = error.path.display();
            Trouble::usage(format!(
                "{path} is no data folder of Punctual, and no backup of one: it holds `{holds}`"
            ))
        }
        _ => of_folder(error),
    }
}

/// The part of a path that is there and is no folder.
pub fn file_in(path: &Path) -> Option<&Path> {
    path.ancestors().find(|above| above.exists() && !above.is_dir())
}
