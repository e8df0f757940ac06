//! Invariant: there is one outcome of everything. What one site records as [agreed on](rhumb_core::Effects::agree), in any incarnation, is what
//! every other site records about the same thing: the outcome of an attempt, the entry at a place of a stream, the placement of an epoch.

use super::World;
use crate::error::SimError;
use rhumb_core::actor::{Actor, Agreed};
use rhumb_core::{RegionId, SiteId};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What was recorded so far: who did so first, and a digest of the value, for entries are large.
#[derive(Debug, Default)]
pub(crate) struct Agreements {
    known: BTreeMap<(&'static str, String), (SiteId, u64)>,
    /// What the sites of this region record with this value is not compared.
    but: Option<(Vec<RegionId>, Vec<u8>)>,
}

impl Agreements {
    /// All is compared, unless a site of `regions` says that it is `value`.
    pub(crate) fn but(regions: Vec<RegionId>, value: Vec<u8>) -> Agreements {
        Agreements { but: Some((regions, value)), ..Agreements::default() }
    }

    /// The keys under which something is recorded of `topic`.
    pub(crate) fn keys(&self, topic: &'static str) -> impl Iterator<Item = &str> {
        self.known.keys().filter(move |(known, _)| *known == topic).map(|(_, key)| key.as_str())
    }

    /// `site` records something.
    fn take(&mut self, site: SiteId, agreed: Agreed) -> Result<(), String> {
        let Agreed { topic, key, value } = agreed;
        if self.but.as_ref().is_some_and(|(regions, but)| regions.contains(&site.region) && *but == value) {
            return Ok(());
        }
        let mut digest = DefaultHasher::new();
        value.hash(&mut digest);
        let digest = digest.finish();
        match self.known.get(&(topic, key.clone())) {
            None => drop(self.known.insert((topic, key), (site, digest))),
            Some((_, known)) if *known == digest => {}
            Some((other, _)) => return Err(format!("{site} records another value of {topic} {key} than {other} did")),
        }
        Ok(())
    }
}

impl<A: Actor> World<A> {
    /// Compares what the step at `site` has recorded with what was recorded before.
    pub(crate) fn compare(&mut self, site: SiteId, recorded: Vec<Agreed>) {
        let Some(agreements) = &mut self.agreements else { return };
        let compared = recorded.into_iter().try_for_each(|agreed| agreements.take(site, agreed));
        if let Err(what) = compared {
            self.fail(SimError::Violation { at: self.now, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_outcome_of_one_thing_is_found_and_two_things_may_differ() {
        let mut agreements = Agreements::default();
        let agreed = |topic, key: &str, value| Agreed { topic, key: key.into(), value: vec![value] };
        let (a, b) = (SiteId::new(0, 0), SiteId::new(1, 0));
        assert_eq!(agreements.take(a, agreed("attempt", "7", 1)), Ok(()));
        assert_eq!(agreements.take(b, agreed("attempt", "7", 1)), Ok(()));
        assert_eq!(agreements.take(b, agreed("attempt", "8", 0)), Ok(()));
        assert_eq!(agreements.take(b, agreed("entry", "7", 0)), Ok(()));
        let second = Err("r1.0 records another value of attempt 7 than r0.0 did".to_owned());
        assert_eq!(agreements.take(b, agreed("attempt", "7", 0)), second);
    }
}
