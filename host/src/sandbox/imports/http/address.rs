//! Which addresses of the net are meant for everybody: no others are reached through a name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for, where it is not meant for everybody.
pub(super) fn reserved(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => reserved_v4(v4),
        IpAddr::V6(v6) => reserved_v6(v6),
    }
}

fn reserved_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an address without a meaning of its own"),
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => Some("a private address"),
        [100, 64..=127, ..] => Some("an address of a provider's own net"),
        [127, ..] => Some("an address of this machine"),
        // The second is that of Azure, outside of every reserved range.
        [169, 254, ..] | [168, 63, 129, 16] => Some("a link-local or metadata address"),
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => Some("a reserved address"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("an address for documentation"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved or broadcast address"),
        _ => None,
    }
}

fn reserved_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    match segments {
        // IPv4 within IPv6: mapped, and translated by NAT64, which is how nets without IPv4 reach the rest.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            reserved_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("an address of this machine"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("an address for documentation"),
        // 2001::/23 holds Teredo, 2002::/16 is 6to4: both carry an IPv4 address that somebody else unpacks.
        [0x2001, 0..=0x1ff, ..] | [0x2002, ..] => Some("a reserved or tunnelled address"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_for_everybody() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.169.0.1",
            "223.255.255.255",
        ]
        .into_iter()
        .chain(["2606:4700::1111", "2a00::1", "64:ff9b::808:808", "::ffff:8.8.8.8", "2001:4860:4860::8888"])
        {
            assert_eq!(reserved(address.parse().expect("an address")), None, "{address}");
        }
    }

    #[test]
    fn others_are_not() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(reserved(address.parse().expect("an address")).is_some(), "{address}");
        }
    }
}
