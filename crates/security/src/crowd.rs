//! Who is at a door and has proved nothing yet, by where they come from.
//!
//! When there are too many, one leaves: of those from where most come, the one that has been there longest. So whoever comes in numbers pushes out its own,
//! and keeps nobody else out. What counts as one place is an address, of IPv6 the network of its first 64 bits, all of which one machine may have.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Those at a door; each is told to leave by a `T`.
#[derive(Debug)]
pub struct Crowd<T> {
    next: u64,
    /// Those of each place, in the order in which they came.
    places: BTreeMap<IpAddr, BTreeMap<u64, T>>,
    count: usize,
}

/// Which one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    place: IpAddr,
    number: u64,
}

impl<T> Default for Crowd<T> {
    fn default() -> Crowd<T> {
        Crowd { next: 0, places: BTreeMap::new(), count: 0 }
    }
}

/// What counts as one place.
fn place(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl<T> Crowd<T> {
    /// Somebody comes from `address`.
    pub fn enter(&mut self, address: IpAddr, leave: T) -> Ticket {
        let (place, number) = (place(address), self.next);
        self.next += 1;
        self.count += 1;
        self.places.entry(place).or_default().insert(number, leave);
        Ticket { place, number }
    }

    /// That one has gone, or has proved itself. `None` if it was made to leave before.
    pub fn leave(&mut self, Ticket { place, number }: Ticket) -> Option<T> {
        let of_place = self.places.get_mut(&place)?;
        let left = of_place.remove(&number)?;
        if of_place.is_empty() {
            self.places.remove(&place);
        }
        self.count -= 1;
        Some(left)
    }

    /// The one that has to leave if there are more than `max`, which is no longer among them.
    pub fn beyond(&mut self, max: usize) -> Option<T> {
        if self.count <= max { None } else { self.dismiss() }
    }

    /// The same however many there are.
    pub fn dismiss(&mut self) -> Option<T> {
        let first = |of_place: &BTreeMap<u64, T>| of_place.keys().next().copied().unwrap_or(u64::MAX);
        // Of places with as many, the one whose oldest came first.
        let (place, of_place) = self.places.iter().max_by_key(|(_, of_place)| (of_place.len(), u64::MAX - first(of_place)))?;
        let ticket = Ticket { place: *place, number: first(of_place) };
        self.leave(ticket)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there is nobody.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn whoever_comes_in_numbers_pushes_out_its_own() {
        let mut crowd = Crowd::default();
        let site = crowd.enter(v4(1), "site");
        for _ in 0..8 {
            crowd.enter(v4(2), "flood");
        }
        for _ in 0..1_000 {
            crowd.enter(v4(2), "flood");
            assert_eq!(crowd.beyond(9), Some("flood"));
        }
        assert_eq!((crowd.len(), crowd.leave(site)), (9, Some("site")));
        assert_eq!((crowd.len(), crowd.leave(site)), (8, None));
    }

    #[test]
    fn of_one_place_and_of_places_with_as_many_the_oldest_leaves() {
        let mut crowd = Crowd::default();
        let entered: Vec<Ticket> = [(2, "a"), (1, "b"), (1, "c")].into_iter().map(|(place, who)| crowd.enter(v4(place), who)).collect();
        assert_eq!((crowd.beyond(3), crowd.beyond(2), crowd.beyond(1)), (None, Some("b"), Some("a")));
        assert_eq!((crowd.leave(entered[0]), crowd.leave(entered[2])), (None, Some("c")));
        assert!(crowd.is_empty() && crowd.dismiss().is_none());
    }

    #[test]
    fn a_machine_has_all_addresses_of_its_network_of_ipv6_and_one_of_ipv4() {
        let place = |text: &str| place(text.parse().expect("an address"));
        assert_eq!(place("2001:db8::1"), place("2001:db8::ffff:0:0:1"));
        assert_ne!(place("2001:db8::1"), place("2001:db8:0:1::1"));
        assert_eq!(place("::ffff:10.0.0.1"), place("10.0.0.1"));
        assert_ne!(place("10.0.0.1"), place("10.0.0.2"));
    }
}
