//! Which IP addresses are public. A name may only lead to these.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is reserved for; `None` if it is public.
pub(super) fn reserved(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => reserved_v4(v4),
        IpAddr::V6(v6) => reserved_v6(v6),
    }
}

fn reserved_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an unspecified address"),
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => Some("a private address"),
        [100, 64..=127, ..] => Some("a carrier-grade NAT address"),
        [127, ..] => Some("a loopback address"),
        // The second is the metadata address of Azure, which is outside all reserved ranges.
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
        // IPv4 in IPv6: mapped, and NAT64, through which IPv6-only networks reach IPv4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            reserved_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("an address for documentation"),
        // 2001::/23 contains Teredo, 2002::/16 is 6to4. Both tunnel to an embedded IPv4 address.
        [0x2001, 0..=0x1ff, ..] | [0x2002, ..] => Some("a reserved or tunnelled address"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_not_reserved() {
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
    fn private_special_and_tunnelled_addresses_are_reserved() {
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
