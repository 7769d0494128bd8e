//! Distinguishes addresses that everyone can reach from addresses of private networks and of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not everyone's: of this host, private (RFC 1918), behind a provider's
/// translation of addresses, loopback, link-local, of the protocol, for benchmarks, multicast and
/// reserved. Each is an address and the length of its prefix in bits.
const LOCAL_V4: [([u8; 4], u32); 11] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Networks of IPv6 that are not everyone's: the low addresses with loopback, translation within a
/// site, discarded, Teredo, unique local, link-local, site-local and multicast.
const LOCAL_V6: [([u16; 3], u32); 8] = [
    ([0, 0, 0], 48),
    ([0x64, 0xff9b, 1], 48),
    ([0x100, 0, 0], 48),
    ([0x2001, 0, 0], 32),
    ([0xfc00, 0, 0], 7),
    ([0xfe80, 0, 0], 10),
    ([0xfec0, 0, 0], 10),
    ([0xff00, 0, 0], 8),
];

/// Returns true if `address` is in no private network, and not of this machine.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_within = |&(network, bits): &([u8; 4], u32)| {
        let network = Ipv4Addr::from(network).to_bits();
        (address.to_bits() ^ network).leading_zeros() >= bits
    };
    !LOCAL_V4.iter().any(is_within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_within = |&([a, b, c], bits): &([u16; 3], u32)| {
        let network = Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).to_bits();
        (address.to_bits() ^ network).leading_zeros() >= bits
    };
    !LOCAL_V6.iter().any(is_within)
}

/// Returns the address of IPv4 that `address` stands for: mapped, by a translation (64:ff9b::/96), or by
/// 6to4 (2002::/16).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(from(high, low))
        }
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_networks_and_this_machine_are_not_public() {
        let public = |text: &str| is_public(text.parse().expect("an address"));
        for local in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fe80::1",
            "fd00:ec2::254",
            "fc00::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(local), "{local}");
        }
        for open in [
            "8.8.8.8",
            "128.105.244.191",
            "172.32.0.1",
            "172.15.0.1",
            "100.128.0.1",
            "192.169.0.1",
            "2607:f388::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(public(open), "{open}");
        }
    }
}
