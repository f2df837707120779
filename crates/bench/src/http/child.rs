//! The processes that are measured. Each ends with what stands for it here.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Bench;
use super::connection::{Connection, request};

/// How long a process may take until it answers.
const START_MAX: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// In what Linux counts processor time for those who ask, on every machine.
const TICKS_PER_SEC: f64 = 100.0;

/// A server in a process of its own.
pub struct Served {
    process: Child,
    pub address: SocketAddr,
}

impl Bench<'_> {
    /// Punctual, on a folder of this name.
    pub async fn punctual(&self, name: &str) -> Served {
        let beside = || std::env::current_exe().ok().map(|own| own.with_file_name("punctual"));
        let program = self.options.server.clone().or_else(beside).expect("this program has a path");
        assert!(program.exists(), "{program:?} is not there: cargo build --release --bin punctual");
        let address = free_address();
        let mut command = Command::new(program);
        command.arg("serve").arg("--data").arg(self.folder.join(name));
        command.args(["--listen", &address.to_string(), "--allow-port", "any"]);
        Served::start(command, address, "/readyz").await
    }

    /// Nothing but axum.
    pub async fn bare_server(&self) -> Served {
        let address = free_address();
        let mut command = own_program();
        command.args(["bare-server", "--listen", &address.to_string()]);
        Served::start(command, address, "/").await
    }
}

impl Served {
    /// The processor time that it has taken so far, in seconds. What else the machine does changes it little.
    pub fn processor_secs(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        // The name before the bracket may hold anything. Then come the state and ten numbers that are no times.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = after_name.split_ascii_whitespace().skip(11).take(2);
        ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SEC
    }

    #[expect(clippy::disallowed_methods, reason = "another process says nothing when it is ready")]
    async fn start(mut command: Command, address: SocketAddr, path: &str) -> Served {
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let served = Served { process: process.expect("the program can be started"), address };
        let ready = request("GET", path, "", "");
        let until_ready = async {
            loop {
                if let Ok(mut connection) = Connection::open(address).await
                    && connection.ask(&ready).await.status < 500
                {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::time::timeout(START_MAX, until_ready).await.expect("it starts");
        served
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// This program again.
pub fn own_program() -> Command {
    Command::new(std::env::current_exe().expect("this program has a path"))
}

/// Runs to its end, and answers what it printed.
pub async fn printed(mut command: Command) -> String {
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it does not panic");
    let output = output.expect("the program can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address")
}

/// Removes what a server left behind.
pub fn clean(folder: &Path) {
    std::fs::remove_dir_all(folder).expect("what was made can be removed");
}
