//! What a server is started with: flags, then environment variables, then a file, then what suits most.
//!
//! One structure is all three: each setting is a flag, an environment variable and a key of the file. A value is
//! checked where it was written, so that the flag, the variable or the line of the file is named.

mod file;
mod values;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use punctual_server::call::{Guard, Ports, Proxy};
use punctual_server::logs::{Filter, Format};
use punctual_server::{Limits, Options, TlsFiles};
use serde::Deserialize;

use super::trouble::Trouble;
use super::words;
use values::{Address, Count, Endpoint, Length, Network, PortRule, Size, path, value, values};

pub use file::read;

const MIN: u64 = 60_000;
const HOUR: u64 = 60 * MIN;
const MIB_KIB: usize = 1_024;
const GIB_KIB: usize = 1_024 * MIB_KIB;

/// What a server can be told.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Settings {
    /// Where the tasks are kept; made if it is not there [default: punctual-data]
    #[arg(long, value_name = "DIR", env = "PUNCTUAL_DATA")]
    #[serde(default, deserialize_with = "path")]
    pub data: Option<PathBuf>,
    /// Where it listens; port 0 takes one that is free [default: 127.0.0.1:8700]
    #[arg(long, value_name = "ADDR", env = "PUNCTUAL_LISTEN")]
    #[serde(default, deserialize_with = "value")]
    pub listen: Option<Address>,
    /// How long what runs may go on when the server stops [default: 30s]
    #[arg(long, value_name = "DURATION", env = "PUNCTUAL_DRAIN")]
    #[serde(default, deserialize_with = "value")]
    pub drain: Option<Length<0, { 24 * HOUR }>>,
    /// Where it is written who changed what [default: audit.jsonl in the data folder, if there are keys]
    #[arg(long, value_name = "FILE", env = "PUNCTUAL_AUDIT")]
    #[serde(default, deserialize_with = "path")]
    pub audit: Option<PathBuf>,
    /// What is logged to stderr: off, error, warn, info, debug or trace; or by module: info,punctual_server::api=debug
    /// [default: warn]
    #[arg(long, value_name = "LEVEL", env = "PUNCTUAL_LOG")]
    #[serde(default, deserialize_with = "value")]
    pub log: Option<Filter>,
    /// How it is logged: text, or json, one object to a line [default: text]
    #[arg(long, value_name = "FORMAT", env = "PUNCTUAL_LOG_FORMAT")]
    #[serde(default, deserialize_with = "value")]
    pub log_format: Option<Format>,
    /// A collector that is told spans over OTLP and HTTP, such as http://127.0.0.1:4318; needs a build with that feature
    #[arg(long, value_name = "URL", env = "PUNCTUAL_OTLP_ENDPOINT")]
    #[serde(default, deserialize_with = "value")]
    pub otlp_endpoint: Option<Endpoint>,
    #[command(flatten)]
    #[serde(default)]
    pub tls: TlsSettings,
    #[command(flatten)]
    #[serde(default)]
    pub calls: CallSettings,
    #[command(flatten)]
    #[serde(default)]
    pub limits: LimitSettings,
}

/// What it proves its name with.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[command(next_help_heading = "TLS")]
pub struct TlsSettings {
    /// A certificate in PEM, followed by those that vouch for it; read again on SIGHUP
    #[arg(
        id = "tls_certificate",
        long = "tls-certificate",
        value_name = "FILE",
        env = "PUNCTUAL_TLS_CERTIFICATE"
    )]
    #[serde(default, deserialize_with = "path")]
    pub certificate: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(id = "tls_key", long = "tls-key", value_name = "FILE", env = "PUNCTUAL_TLS_KEY")]
    #[serde(default, deserialize_with = "path")]
    pub key: Option<PathBuf>,
}

/// What may be called.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[command(next_help_heading = "Calls")]
pub struct CallSettings {
    /// A network that may be called although it is not public, such as 10.0.0.0/8; may be repeated
    #[arg(long, value_name = "CIDR", env = "PUNCTUAL_ALLOW_NET", value_delimiter = ',')]
    #[serde(default, deserialize_with = "values")]
    pub allow_net: Option<Vec<Network>>,
    /// A port that may be called besides the usual ones (80, 443, 8080, 8443), or `any`; may be repeated
    #[arg(long, value_name = "PORT", env = "PUNCTUAL_ALLOW_PORT", value_delimiter = ',')]
    #[serde(default, deserialize_with = "values")]
    pub allow_port: Option<Vec<PortRule>>,
    /// A proxy through which the internet is called, such as `http://proxy.internal:3128`; networks of --allow-net and this
    /// machine are called without it
    #[arg(long, value_name = "URL", env = "PUNCTUAL_PROXY", hide_env_values = true)]
    #[serde(default, deserialize_with = "value")]
    pub proxy: Option<Proxy>,
}

/// How much it takes from those who ask.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[command(next_help_heading = "Limits")]
pub struct LimitSettings {
    /// How many connections are open at once [default: 16384]
    #[arg(long, value_name = "N", env = "PUNCTUAL_CONNECTIONS_MAX")]
    #[serde(default, deserialize_with = "value")]
    pub connections_max: Option<Count<1, 1_000_000>>,
    /// How long a connection may be open without a request, or without taking its answer [default: 75s]
    #[arg(long, value_name = "DURATION", env = "PUNCTUAL_IDLE_MAX")]
    #[serde(default, deserialize_with = "value")]
    pub idle_max: Option<Length<1_000, HOUR>>,
    /// How long the head of a request may take, from its first byte [default: 10s]
    #[arg(long, value_name = "DURATION", env = "PUNCTUAL_HEAD_TIMEOUT")]
    #[serde(default, deserialize_with = "value")]
    pub head_timeout: Option<Length<100, HOUR>>,
    /// How large the head of a request may be [default: 32KiB]
    #[arg(long, value_name = "SIZE", env = "PUNCTUAL_HEAD_MAX")]
    #[serde(default, deserialize_with = "value")]
    pub head_max: Option<Size<8, MIB_KIB>>,
    /// How long the body of a request may take [default: 1m]
    #[arg(long, value_name = "DURATION", env = "PUNCTUAL_BODY_TIMEOUT")]
    #[serde(default, deserialize_with = "value")]
    pub body_timeout: Option<Length<100, HOUR>>,
    /// How large the body of a request may be [default: 32MiB]
    #[arg(long, value_name = "SIZE", env = "PUNCTUAL_BODY_MAX")]
    #[serde(default, deserialize_with = "value")]
    pub body_max: Option<Size<1, GIB_KIB>>,
    /// How much of all bodies is held at once [default: 256MiB]
    #[arg(long, value_name = "SIZE", env = "PUNCTUAL_IN_FLIGHT_MAX")]
    #[serde(default, deserialize_with = "value")]
    pub in_flight_max: Option<Size<1, { 1_024 * GIB_KIB }>>,
    /// How many requests a key may make in a second, if the key does not say [default: any number]
    #[arg(long, value_name = "N", env = "PUNCTUAL_REQUESTS_PER_SECOND")]
    #[serde(default, deserialize_with = "value")]
    pub requests_per_second: Option<Count<1, 1_000_000>>,
    /// How many of them may come at once after a rest [default: as many as in a second]
    #[arg(long, value_name = "N", env = "PUNCTUAL_REQUESTS_BURST")]
    #[serde(default, deserialize_with = "value")]
    pub requests_burst: Option<Count<1, 1_000_000>>,
}

/// Takes from the second what the first does not say.
macro_rules! or {
    ($first:expr, $second:expr, $type:ident { $($said:ident),* }) => {
        $type { $($said: $first.$said.or($second.$said),)* }
    };
}

impl Settings {
    /// These, and those of the file that they do not decide; if there is a file.
    pub fn over(self, file: Option<&Path>) -> Result<Settings, Trouble> {
        match file {
            Some(file) => Ok(self.or(read(file)?)),
            None => Ok(self),
        }
    }

    fn or(self, file: Settings) -> Settings {
        or!(
            self,
            file,
            Settings { data, listen, drain, audit, log, log_format, otlp_endpoint, tls, calls, limits }
        )
    }

    /// Where the tasks are kept.
    pub fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from("punctual-data"))
    }

    /// What a server is started with.
    pub fn options(&self) -> Result<Options, Trouble> {
        let usual = Address((Ipv4Addr::LOCALHOST, 8700).into());
        let Address(listen) = self.listen.unwrap_or(usual);
        let mut options = Options::new(self.data(), listen);
        options.guard = self.calls.guard();
        options.proxy = self.calls.proxy.clone();
        options.drain = self.drain.map_or(options.drain, |Length(drain)| drain);
        options.audit = self.audit.clone();
        options.otlp_endpoint = self.otlp_endpoint.clone().map(|Endpoint(url)| url);
        options.tls = self.tls.files()?;
        options.limits = self.limits.limits()?;
        Ok(options)
    }
}

impl TlsSettings {
    fn or(self, file: TlsSettings) -> TlsSettings {
        or!(self, file, TlsSettings { certificate, key })
    }

    fn files(&self) -> Result<Option<TlsFiles>, Trouble> {
        match (self.certificate.clone(), self.key.clone()) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
            (Some(_), None) => {
                Err(Trouble::usage("tls: there is a certificate, and no key: name it with tls.key"))
            }
            (None, Some(_)) => {
                Err(Trouble::usage("tls: there is a key, and no certificate: name it with tls.certificate"))
            }
        }
    }
}

impl CallSettings {
    fn or(self, file: CallSettings) -> CallSettings {
        or!(self, file, CallSettings { allow_net, allow_port, proxy })
    }

    fn guard(&self) -> Guard {
        let networks = self.allow_net.iter().flatten().map(|Network(network)| *network);
        let mut guard = Guard { allow: networks.collect(), ..Guard::default() };
        for rule in self.allow_port.iter().flatten() {
            match (rule, &mut guard.ports) {
                (PortRule::Any, ports) => *ports = Ports::Any,
                (PortRule::One(port), Ports::These(ports)) => ports.push(*port),
                (PortRule::One(_), Ports::Any) => {}
            }
        }
        guard
    }
}

impl LimitSettings {
    fn or(self, file: LimitSettings) -> LimitSettings {
        or!(
            self,
            file,
            LimitSettings {
                connections_max,
                idle_max,
                head_timeout,
                head_max,
                body_timeout,
                body_max,
                in_flight_max,
                requests_per_second,
                requests_burst
            }
        )
    }

    fn limits(&self) -> Result<Limits, Trouble> {
        let usual = Limits::default();
        let length = |said: Option<Duration>, usual| said.unwrap_or(usual);
        let limits = Limits {
            connections_max: self.connections_max.map_or(usual.connections_max, |Count(count)| count),
            idle_max: length(self.idle_max.map(|Length(it)| it), usual.idle_max),
            head_timeout: length(self.head_timeout.map(|Length(it)| it), usual.head_timeout),
            head_max: self.head_max.map_or(usual.head_max, |Size(bytes)| bytes),
            body_timeout: length(self.body_timeout.map(|Length(it)| it), usual.body_timeout),
            body_max: self.body_max.map_or(usual.body_max, |Size(bytes)| bytes),
            in_flight_max: self.in_flight_max.map_or(usual.in_flight_max, |Size(bytes)| bytes),
            requests_per_second: self.requests_per_second.map(|Count(count)| count),
            requests_burst: self.requests_burst.map(|Count(count)| count),
        };
        if limits.body_max > limits.in_flight_max {
            let (body, all) = (values::written(limits.body_max), values::written(limits.in_flight_max));
            return Err(Trouble::usage(format!(
                "limits: one body may have {body} (body_max), and all at once only {all} (in_flight_max): such a body \
                 could never come in. Make one larger or the other smaller"
            )));
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../../docs/configuration.md");
    const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/punctual.toml");

    /// The names of all keys in a table and in those within it.
    fn keys(table: &toml::Table, before: &str) -> Vec<String> {
        let names = table.iter().flat_map(|(name, value)| match value {
            toml::Value::Table(inner) => keys(inner, &format!("{before}{name}.")),
            _ => vec![format!("{before}{name}")],
        });
        names.collect()
    }

    #[test]
    fn the_example_has_every_key_and_the_page_says_what_it_is() {
        let settings = read(Path::new(EXAMPLE)).unwrap();
        assert_eq!(settings.limits.limits().unwrap().body_max, 32 * 1024 * 1024);
        assert!(settings.options().unwrap().tls.is_some());
        let text = std::fs::read_to_string(EXAMPLE).unwrap();
        let keys = keys(&text.parse().unwrap(), "");
        let command = Settings::augment_args(clap::Command::new("serve"));
        let flags: Vec<&clap::Arg> = command.get_arguments().collect();
        // A key that does not exist is refused, so that as many keys as flags are all of them.
        assert_eq!(keys.len(), flags.len(), "docs/punctual.toml has every key: {keys:?}");
        for key in keys {
            assert!(PAGE.contains(&format!("| `{key}` |")), "docs/configuration.md tells about {key}");
        }
        for flag in flags {
            let long = flag.get_long().unwrap();
            let variable = flag.get_env().unwrap().to_str().unwrap();
            assert!(PAGE.contains(&format!("| `--{long} ")), "docs/configuration.md has --{long}");
            assert!(PAGE.contains(&format!("| `{variable}` |")), "docs/configuration.md has {variable}");
        }
    }

    #[test]
    fn the_example_shows_the_defaults() {
        let example = read(Path::new(EXAMPLE)).unwrap().options().unwrap();
        let usual = Settings::default().options().unwrap();
        assert_eq!((example.data, example.listen, example.drain), (usual.data, usual.listen, usual.drain));
        let limits = Limits { requests_per_second: None, requests_burst: None, ..example.limits };
        assert_eq!(limits, usual.limits);
    }
}
