//! Where a fault strikes: a site, a region or everything; and the directed links between two such places.

use rhumb_core::{RegionId, SiteId};
use std::fmt;

/// Some sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// One site.
    Site(SiteId),
    /// All sites of a region.
    Region(RegionId),
    /// All sites; as one end of [`Links`], all outside the other end.
    Everywhere,
}

impl Place {
    /// True if `site` is in it.
    pub fn holds(self, site: SiteId) -> bool {
        match self {
            Place::Site(only) => only == site,
            Place::Region(region) => region == site.region,
            Place::Everywhere => true,
        }
    }
}

/// The links from one place to another, in this direction only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Links {
    /// Where they begin.
    pub from: Place,
    /// Where they end.
    pub to: Place,
}

impl Links {
    /// Every link there is.
    pub const ALL: Links = Links { from: Place::Everywhere, to: Place::Everywhere };

    /// The links from `from` to `to`.
    pub const fn new(from: Place, to: Place) -> Links {
        Links { from, to }
    }

    /// The links of the other direction.
    pub const fn reversed(self) -> Links {
        Links { from: self.to, to: self.from }
    }

    /// True if the link between these two sites is one of them.
    pub fn hold(self, from: SiteId, to: SiteId) -> bool {
        match (self.from, self.to) {
            (Place::Everywhere, Place::Everywhere) => true,
            (Place::Everywhere, place) => place.holds(to) && !place.holds(from),
            (place, Place::Everywhere) => place.holds(from) && !place.holds(to),
            (start, end) => start.holds(from) && end.holds(to),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Site(site) => site.fmt(f),
            Place::Region(region) => region.fmt(f),
            Place::Everywhere => f.write_str("all"),
        }
    }
}

impl fmt::Display for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everywhere_is_outside_the_other_end() {
        let (a, neighbour, b) = (SiteId::new(0, 0), SiteId::new(0, 1), SiteId::new(1, 0));
        let out = Links::new(Place::Region(a.region), Place::Everywhere);
        assert!(out.hold(a, b) && !out.hold(b, a));
        assert!(!out.hold(a, neighbour), "a region cut off from the others still talks within");
        assert!(out.reversed().hold(b, a) && !out.reversed().hold(a, neighbour));
        assert!(Links::ALL.hold(a, neighbour) && Links::ALL.hold(b, a));
        assert!(!Links::new(Place::Site(a), Place::Everywhere).hold(neighbour, b));
    }
}
