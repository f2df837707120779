//! Which addresses may be called. A scheduler makes requests for others, from its own place in the network: what only
//! that place can reach must be allowed by name.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The ports that may be called when nothing is said.
pub const USUAL_PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Decides for each address whether it may be called.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Networks that may be called although they are not public. The ports still count.
    pub allow: Vec<IpNet>,
    /// Ports that may be called.
    pub ports: Ports,
    /// This machine may be called, on every port: right when the server itself listens to nobody else.
    pub allow_loopback: bool,
    /// Where we listen ourselves, and where the store is: never called, whatever else is allowed. An unspecified
    /// address (`0.0.0.0`) stands for every address of this machine.
    pub own: Vec<SocketAddr>,
}

/// The ports that may be called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ports {
    /// Only these.
    These(Vec<u16>),
    /// All.
    Any,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports::These(USUAL_PORTS.to_vec())
    }
}

impl Ports {
    fn contain(&self, port: u16) -> bool {
        match self {
            Ports::These(ports) => ports.contains(&port),
            Ports::Any => true,
        }
    }
}

/// Why an address may not be called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocked {
    /// It is not one of the public internet.
    Address {
        /// Which.
        address: IpAddr,
        /// What it is instead, such as "a private address".
        what: &'static str,
    },
    /// The port is not among those allowed.
    Port {
        /// Which.
        port: u16,
        /// Those that are.
        allowed: Vec<u16>,
    },
    /// It is one of our own.
    Own(SocketAddr),
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocked::Address { address, what } => {
                let bits = if address.is_ipv4() { 32 } else { 128 };
                write!(f, "blocked: {address} is {what}; allow it with --allow-net {address}/{bits}")
            }
            Blocked::Port { port, allowed } => {
                write!(f, "blocked: port {port} is not one of ")?;
                for (place, port) in allowed.iter().enumerate() {
                    write!(f, "{}{port}", if place == 0 { "" } else { ", " })?;
                }
                write!(f, "; allow it with --allow-port {port}")
            }
            Blocked::Own(address) => write!(f, "blocked: {address} is an address of Punctual itself"),
        }
    }
}

impl std::error::Error for Blocked {}

impl Guard {
    /// Whether this address may be called: if so, the address to connect to.
    pub fn check(&self, address: SocketAddr) -> Result<SocketAddr, Blocked> {
        // `::ffff:127.0.0.1` is only another way to write 127.0.0.1, and is judged, and called, as that.
        let ip = address.ip().to_canonical();
        let address = SocketAddr::new(ip, address.port());
        if self.own.iter().any(|own| is_own(*own, address)) {
            return Err(Blocked::Own(address));
        }
        if self.allow_loopback && ip.is_loopback() {
            return Ok(address);
        }
        let not_public = what_it_is(ip).filter(|_| !self.allow.iter().any(|net| net.contains(&ip)));
        if let Some(what) = not_public {
            return Err(Blocked::Address { address: ip, what });
        }
        self.check_port(address.port()).map(|()| address)
    }

    /// Whether a name may be called at this port, as far as that can be said before it is resolved.
    pub fn check_name(&self, name: &str, port: u16) -> Result<(), Blocked> {
        let name = name.trim_end_matches('.');
        if name == "localhost" || name.ends_with(".localhost") {
            let v4 = self.check((Ipv4Addr::LOCALHOST, port).into());
            let v6 = self.check((Ipv6Addr::LOCALHOST, port).into());
            return v4.or_else(|blocked| v6.map_err(|_| blocked)).map(drop);
        }
        // Where this machine may be called on every port, any name can turn out to be this machine.
        if self.allow_loopback { Ok(()) } else { self.check_port(port) }
    }

    /// Whether a connection has come out at ourselves: a machine has more addresses than can be listed beforehand, but
    /// one that is called at its own address answers from the address that calls.
    pub fn check_connected(&self, local: SocketAddr, peer: SocketAddr) -> Result<(), Blocked> {
        let everywhere =
            |own: &SocketAddr| own.ip().to_canonical().is_unspecified() && own.port() == peer.port();
        let came_home = local.ip().to_canonical() == peer.ip().to_canonical();
        if came_home && self.own.iter().any(everywhere) { Err(Blocked::Own(peer)) } else { Ok(()) }
    }

    /// Whether this is an address of our own: this machine's, or one of the networks that may be called besides.
    pub(super) fn is_ours(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_loopback() || self.allow.iter().any(|network| network.contains(&ip))
    }

    fn check_port(&self, port: u16) -> Result<(), Blocked> {
        match &self.ports {
            Ports::These(allowed) if !self.ports.contain(port) => {
                Err(Blocked::Port { port, allowed: allowed.clone() })
            }
            _ => Ok(()),
        }
    }
}

fn is_own(own: SocketAddr, called: SocketAddr) -> bool {
    // Whoever calls 0.0.0.0 comes out at loopback.
    let is_here = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    let (own_ip, ip) = (own.ip().to_canonical(), called.ip().to_canonical());
    own.port() == called.port() && (own_ip == ip || (is_here(own_ip) && is_here(ip)))
}

/// What an address is, unless it is a public one.
fn what_it_is(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => V4.iter().find(|(net, _)| net.contains(&ip)).map(|(_, what)| *what),
        IpAddr::V6(ip) => match V6.iter().find(|(net, _)| net.contains(&ip)) {
            Some((_, what)) => Some(what),
            None if V6_PUBLIC.contains(&ip) => None,
            None => Some("not a public address"),
        },
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, c: u16, last: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, last), bits)
}

const V4: [(Ipv4Net, &str); 17] = [
    (v4(0, 0, 0, 0, 8), "an address of this network"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 0, 10), "a shared address (carrier-grade NAT)"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    // Reached from every machine of that cloud, and answers for it.
    (v4(168, 63, 129, 16, 32), "a service address of the cloud"),
    (v4(192, 0, 0, 0, 24), "an address reserved for protocols"),
    (v4(192, 0, 2, 0, 24), "an address for documentation"),
    (v4(192, 88, 99, 0, 24), "a 6to4 relay"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "an address for benchmarks"),
    (v4(198, 51, 100, 0, 24), "an address for documentation"),
    (v4(203, 0, 113, 0, 24), "an address for documentation"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    (v4(255, 255, 255, 255, 32), "the broadcast address"),
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];

/// All that is public lies in here; what the table below does not name is not.
const V6_PUBLIC: Ipv6Net = v6(0x2000, 0, 0, 0, 3);

const V6: [(Ipv6Net, &str); 15] = [
    (v6(0, 0, 0, 0, 128), "the unspecified address"),
    (v6(0, 0, 0, 1, 128), "a loopback address"),
    (v6(0, 0, 0, 0, 96), "an IPv4 address in an old disguise"),
    (v6(0x64, 0xff9b, 0, 0, 96), "an IPv4 address behind NAT64"),
    (v6(0x64, 0xff9b, 1, 0, 48), "an IPv4 address behind NAT64"),
    (v6(0x100, 0, 0, 0, 64), "an address that discards"),
    // Teredo is in here, which carries IPv4 addresses too.
    (v6(0x2001, 0, 0, 0, 23), "an address reserved for protocols"),
    (v6(0x2001, 0xdb8, 0, 0, 32), "an address for documentation"),
    (v6(0x2002, 0, 0, 0, 16), "an IPv4 address behind 6to4"),
    (v6(0x3fff, 0, 0, 0, 20), "an address for documentation"),
    (v6(0x5f00, 0, 0, 0, 16), "an address of segment routing"),
    (v6(0xfc00, 0, 0, 0, 7), "a private address"),
    (v6(0xfe80, 0, 0, 0, 10), "a link-local address"),
    (v6(0xfec0, 0, 0, 0, 10), "a site-local address"),
    (v6(0xff00, 0, 0, 0, 8), "a multicast address"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn is_public(ip: &str) -> bool {
        let ip: IpAddr = ip.parse().unwrap();
        Guard::default().check((ip, 443).into()).is_ok()
    }

    /// Each range by its first and last address, and the neighbours outside that are public.
    const RANGES: &[(&str, &str, &str, &str)] = &[
        ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
        ("168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
        ("223.255.255.255", "224.0.0.0", "239.255.255.255", ""),
        ("", "240.0.0.0", "255.255.255.255", ""),
        ("", "::", "::", ""),
        ("", "::1", "::1", ""),
        ("", "::2", "::255.255.255.255", ""),
        ("", "64:ff9b::", "64:ff9b::255.255.255.255", ""),
        ("", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", ""),
        ("", "100::", "100::ffff:ffff:ffff:ffff", ""),
        ("", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"),
        (
            "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001::",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:200::",
        ),
        (
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db9::",
        ),
        (
            "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2002::",
            "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2003::",
        ),
        (
            "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "3fff::",
            "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            "3fff:1000::",
        ),
        ("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::", "4000::", ""),
        ("", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
        ("", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
        ("", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
        ("", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
        ("", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ];

    #[test]
    fn every_range_is_blocked_from_its_first_to_its_last_address() {
        for (before, first, last, after) in RANGES {
            assert!(!is_public(first), "{first}");
            assert!(!is_public(last), "{last}");
            for outside in [before, after].into_iter().filter(|outside| !outside.is_empty()) {
                assert!(is_public(outside), "{outside}");
            }
        }
    }

    #[test]
    fn the_tests_know_every_range_of_the_tables() {
        let firsts: Vec<IpAddr> = RANGES.iter().map(|(_, first, _, _)| first.parse().unwrap()).collect();
        let lasts: Vec<IpAddr> = RANGES.iter().map(|(_, _, last, _)| last.parse().unwrap()).collect();
        let v4 = V4.iter().map(|(net, _)| IpNet::V4(*net));
        let v6 = V6.iter().map(|(net, _)| IpNet::V6(*net));
        for net in v4.chain(v6) {
            let broadcast = net.network() == net.broadcast();
            assert!(broadcast || firsts.contains(&net.network()) || net.prefix_len() == 96, "{net}");
            assert!(lasts.contains(&net.broadcast()), "{net}");
        }
    }

    #[test]
    fn an_ipv4_address_dressed_as_ipv6_is_judged_as_what_it_is() {
        assert!(!is_public("::ffff:127.0.0.1"));
        assert!(!is_public("::ffff:169.254.169.254"));
        let checked = Guard::default().check("[::ffff:9.9.9.9]:443".parse().unwrap());
        assert_eq!(checked, Ok("9.9.9.9:443".parse().unwrap()));
    }

    #[test]
    fn what_the_operator_allows_may_be_called_at_the_usual_ports() {
        let guard = Guard { allow: vec!["10.1.0.0/16".parse().unwrap()], ..Guard::default() };
        assert!(guard.check("10.1.2.3:8080".parse().unwrap()).is_ok());
        assert!(guard.check("[::ffff:10.1.2.3]:80".parse().unwrap()).is_ok());
        assert!(guard.check("10.2.2.3:8080".parse().unwrap()).is_err());
        let blocked = guard.check("10.1.2.3:6379".parse().unwrap()).unwrap_err();
        assert_eq!(
            blocked.to_string(),
            "blocked: port 6379 is not one of 80, 443, 8080, 8443; allow it with --allow-port 6379"
        );
    }

    #[test]
    fn a_blocked_address_says_what_it_is_and_how_to_allow_it() {
        let blocked = Guard::default().check("10.0.0.1:80".parse().unwrap()).unwrap_err();
        assert_eq!(
            blocked.to_string(),
            "blocked: 10.0.0.1 is a private address; allow it with --allow-net 10.0.0.1/32"
        );
    }

    #[test]
    fn a_server_for_this_machine_alone_may_call_this_machine_on_every_port() {
        let guard = Guard { allow_loopback: true, ..Guard::default() };
        for allowed in ["127.0.0.1:3000", "127.9.9.9:1", "[::1]:3000", "[::ffff:127.0.0.1]:3000"] {
            assert!(guard.check(allowed.parse().unwrap()).is_ok(), "{allowed}");
        }
        for blocked in ["10.0.0.1:80", "0.0.0.0:80", "9.9.9.9:3000"] {
            assert!(guard.check(blocked.parse().unwrap()).is_err(), "{blocked}");
        }
    }

    #[test]
    fn our_own_addresses_are_blocked_whatever_is_allowed() {
        let guard = |own: &str| Guard {
            allow: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
            ports: Ports::Any,
            allow_loopback: true,
            own: vec![own.parse().unwrap()],
        };
        let blocks = |own, called: &str| guard(own).check(called.parse().unwrap()).is_err();
        for called in
            ["127.0.0.1:8700", "[::1]:8700", "0.0.0.0:8700", "127.1.1.1:8700", "[::ffff:127.0.0.1]:8700"]
        {
            assert!(blocks("127.0.0.1:8700", called), "{called}");
            assert!(blocks("0.0.0.0:8700", called), "{called}");
            assert!(blocks("[::]:8700", called), "{called}");
        }
        assert!(blocks("10.0.0.5:5432", "10.0.0.5:5432"));
        assert!(!blocks("10.0.0.5:5432", "10.0.0.5:80"));
        assert!(!blocks("127.0.0.1:8700", "127.0.0.1:8701"));
    }

    #[test]
    fn a_connection_that_comes_home_by_an_address_nobody_listed_is_noticed() {
        let guard = Guard { own: vec!["0.0.0.0:80".parse().unwrap()], ..Guard::default() };
        let connected = |local: &str, peer: &str| {
            guard.check_connected(local.parse().unwrap(), peer.parse().unwrap()).is_ok()
        };
        assert!(!connected("9.9.9.9:40000", "9.9.9.9:80"));
        assert!(connected("9.9.9.9:40000", "9.9.9.10:80"));
        assert!(connected("9.9.9.9:40000", "9.9.9.9:443"));
    }

    #[test]
    fn names_are_judged_by_what_is_known_before_they_are_resolved() {
        let public = Guard::default();
        assert!(public.check_name("api.example.com", 443).is_ok());
        assert!(public.check_name("api.example.com", 25).is_err());
        assert!(public.check_name("localhost", 80).is_err());
        assert!(public.check_name("a.localhost.", 80).is_err());
        let here = Guard { allow_loopback: true, ..Guard::default() };
        assert!(here.check_name("localhost", 3000).is_ok());
        assert!(here.check_name("laptop.local", 3000).is_ok());
    }
}
