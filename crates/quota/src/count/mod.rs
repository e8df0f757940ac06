//! An exact count of a quota: all sites stand still at one moment and say what they have.
//!
//! ```text
//!   leader                        every other site
//!     │ stands still
//!     ├─Stand─────────────────────▶│ stands still, if it is in no redistribution
//!     │◀─────────────────Standing──┤ with its tokens
//!     │ all stand still: this is the moment; it goes on
//!     ├─Go────────────────────────▶│ goes on
//!     │◀────────────────────Stood──┤ if it has stood still all the time, or else Void
//!     │ all have: counted
//!     ├─Counted───────────────────▶│ its own readers are answered too
//! ```
//!
//! A site that stands still gives out nothing, takes nothing back and is in no redistribution. So at the moment at which the
//! leader has heard the last site, no token is on its way, if each says afterwards that it stood still until `Go`.
//!
//! A message may be doubled, and its copy late: a site would stand still a second time, at another moment. So each time of standing still has a
//! name, the leader keeps what a site said first, and what confirms it has the same name.
//!
//! A count moves nothing, so it owes nothing to anybody: **any site may end its part at any time**, for any reason, and the count
//! is void. Nothing of it is on any disk. A redistribution that asks a site for tokens voids the count, a new incarnation of a site has
//! forgotten it, silence ends it after [`STAND_TICKS`].
//!
//! **Rest.** A site that has stood still does not do so again for anybody before it has served [`REST`] times as long. So however many readers there
//! are, and wherever they ask, a quota is served at least REST / (REST + 1) of the time. Readers that come meanwhile share the next count, and those
//! of all sites share it. Of two counts that meet, that of the first site goes on.
//!
//! A site that is [lost](crate::lost) is not counted. If all others know the quota alike, what is missing is what the lost sites have; and if nobody
//! uses it any more, as many are held as clients held when it was [dropped](crate::catalog::Definitions).
//!
//! Invariant: what a count says was true at one moment between its beginning and its end.

mod message;
mod tally;
mod word;

pub use message::{Note, Promise};
pub use tally::Tally;
pub use word::Word;

use crate::cluster::Cluster;
use crate::planted::Planted;
use rhumb_core::{Rules, SiteId};
use std::collections::{BTreeMap, BTreeSet};

/// A site stands still for so many ticks at the most: a trip there and back, and what a busy site adds.
pub const STAND_TICKS: u32 = 16;
/// After that it serves for so many times as long as it stood still.
pub const REST: u32 = 4;
/// Sites lead so many ticks later than they may stand still, one after another.
const LEAD_AFTER_TICKS: u32 = 6;
const STAGGER_TICKS: u32 = 3;

/// The site when it takes a step in a count.
pub struct Here {
    /// Names what it begins now, a count or a time of standing still: above all names that it, in any incarnation, has given before.
    pub name: u64,
    /// What it has, as it knows the quota.
    pub word: Word,
    /// It is in no redistribution.
    pub idle: bool,
    /// Readers that asked before it stands still asked at a lower number.
    pub asked_before: u64,
}

/// How a count ended for this site.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// All stood still.
    Counted {
        /// What they had.
        tally: Tally,
        /// [`Here::asked_before`] when this site stood still.
        asked_before: u64,
        /// This site led.
        led: bool,
    },
    /// The count that this site led is void: others were at something else.
    Void,
    /// The count that this site led is void: too few answered in time.
    Unanswered,
}

/// What a count wants done, and what it has to tell.
#[derive(Debug, Default)]
pub struct Out {
    /// Messages that promise nothing.
    pub notes: Vec<(SiteId, Note)>,
    /// Messages that leave once all that this site did before is on disk.
    pub promises: Vec<(SiteId, Promise)>,
    /// This site has begun to stand still.
    pub stands: bool,
    /// It has gone on.
    pub goes_on: bool,
    /// How a count ended.
    pub ended: Option<Ended>,
}

/// This site stands still.
#[derive(Debug)]
struct Standing {
    leader: SiteId,
    number: u64,
    /// Its name, by which the leader knows what is confirmed.
    name: u64,
    asked_before: u64,
    ticks: u32,
}

/// The count that this site leads.
#[derive(Debug)]
struct Leading {
    number: u64,
    asked_before: u64,
    /// What each site said first.
    said: BTreeMap<SiteId, Said>,
    /// Those that have stood still until they were told to go on.
    stood: BTreeSet<SiteId>,
    ticks: u32,
}

/// What a site said, and the name of its standing still.
#[derive(Clone, Copy, Debug)]
struct Said {
    standing: u64,
    word: Word,
}

/// One quota's part in counts at one site. Forgotten in a crash.
#[derive(Debug)]
pub struct Count {
    cluster: Cluster,
    standing: Option<Standing>,
    leading: Option<Leading>,
    /// The last count for which it stood still to the end: its leader, number and [`Here::asked_before`].
    stood: Option<(SiteId, u64, u64)>,
    /// Ticks until it may stand still again.
    rest: u32,
    /// Ticks until it may lead.
    pause: u32,
    rules: Rules<Planted>,
}

impl Count {
    /// No count yet.
    pub fn new(cluster: Cluster) -> Count {
        Count { cluster, standing: None, leading: None, stood: None, rest: 0, pause: 0, rules: Rules::HOLD }
    }

    /// The same count by other rules.
    pub fn with_rules(self, rules: Rules<Planted>) -> Count {
        Count { rules, ..self }
    }

    /// True while the site stands still.
    pub fn is_standing(&self) -> bool {
        self.standing.is_some()
    }

    /// True if nothing is under way and it need not look after its rest.
    pub fn is_idle(&self) -> bool {
        !self.is_under_way() && self.rest == 0 && self.pause == 0
    }

    /// True while the site stands still or leads.
    pub fn is_under_way(&self) -> bool {
        self.standing.is_some() || self.leading.is_some()
    }

    /// Leads a count, unless one is under way or has just been.
    pub fn lead(&mut self, here: Here, out: &mut Out) {
        if !self.is_idle() || !here.idle {
            return;
        }
        let me = self.cluster.me;
        let Here { name: number, word, asked_before, .. } = here;
        self.standing = Some(Standing { leader: me, number, name: number, asked_before, ticks: 0 });
        out.stands = true;
        let said = BTreeMap::from([(me, Said { standing: number, word })]);
        self.leading = Some(Leading { number, asked_before, said, stood: BTreeSet::new(), ticks: 0 });
        out.promises.extend(self.cluster.others().map(|site| (site, Promise::Stand { number })));
        self.consider(out);
    }

    /// Takes a note.
    pub fn on_note(&mut self, from: SiteId, note: Note, out: &mut Out) {
        match note {
            Note::Standing { number, standing, word } => {
                if let Some(leading) = self.leading.as_mut().filter(|leading| leading.number == number) {
                    let said = Said { standing, word };
                    if self.rules.breaks(Planted::CountMixed) {
                        leading.said.insert(from, said);
                    }
                    leading.said.entry(from).or_insert(said);
                    self.consider(out);
                }
            }
            Note::Go { number } => {
                if !self.stands_for(from, number) {
                    return out.notes.push((from, Note::Void { number }));
                }
                let Standing { name, asked_before, .. } = self.go_on(out).expect("it stands still");
                self.stood = Some((from, number, asked_before));
                out.promises.push((from, Promise::Stood { number, standing: name }));
            }
            Note::Void { number } => {
                if self.stands_for(from, number) {
                    self.go_on(out);
                }
                if self.leading.as_ref().is_some_and(|leading| leading.number == number) {
                    self.void(Ended::Void, out);
                }
            }
        }
    }

    /// Takes a promise.
    pub fn on_promise(&mut self, from: SiteId, promise: Promise, here: Here, out: &mut Out) {
        match promise {
            Promise::Stand { number } => self.on_stand(from, number, here, out),
            Promise::Stood { number, standing } => {
                let mixes = self.rules.breaks(Planted::CountMixed);
                let is_of = |said: &Said| said.standing == standing || mixes;
                let leading = self.leading.as_mut().filter(|leading| leading.number == number);
                if let Some(leading) = leading.filter(|leading| leading.said.get(&from).is_some_and(is_of)) {
                    leading.stood.insert(from);
                    self.consider(out);
                }
            }
            Promise::Counted { number, tally } => {
                if let Some((_, _, asked_before)) = self.stood.take_if(|(leader, of, _)| (*leader, *of) == (from, number)) {
                    out.ended = Some(Ended::Counted { tally, asked_before, led: false });
                }
            }
        }
    }

    fn stands_for(&self, leader: SiteId, number: u64) -> bool {
        self.standing.as_ref().is_some_and(|standing| (standing.leader, standing.number) == (leader, number))
    }

    fn on_stand(&mut self, from: SiteId, number: u64, here: Here, out: &mut Out) {
        if self.stands_for(from, number) {
            return; // doubled, and answered already: readers that have asked since stay with the next count
        }
        let gives_way = match (&self.standing, &self.leading) {
            (Some(standing), _) => from <= standing.leader,
            (None, leading) => leading.is_none(),
        };
        let is_idle = here.idle || self.rules.breaks(Planted::CountInFlight);
        if !gives_way || !is_idle || self.rest > 0 {
            return out.notes.push((from, Note::Void { number }));
        }
        // It goes on standing still, for another.
        let before = self.standing.take();
        if self.leading.is_some() {
            self.void(Ended::Void, out);
        } else if let Some(Standing { leader, number, .. }) = before.as_ref().filter(|before| before.leader != from) {
            out.notes.push((*leader, Note::Void { number: *number }));
        }
        let ticks = before.map_or(0, |before| before.ticks);
        self.standing = Some(Standing { leader: from, number, name: here.name, asked_before: here.asked_before, ticks });
        out.stands = true;
        let Here { name: standing, word, .. } = here;
        out.notes.push((from, Note::Standing { number, standing, word }));
    }

    /// The next phase, once all have said what this one needs.
    fn consider(&mut self, out: &mut Out) {
        let Some(Leading { number, said, stood, asked_before, .. }) = &self.leading else { return };
        let (number, asked_before, size) = (*number, *asked_before, self.cluster.size());
        if said.len() < size {
            return;
        }
        let confirmed = stood.len() == size;
        let confirmed = confirmed || (self.rules.breaks(Planted::CountUnconfirmed) && !self.is_standing());
        if confirmed {
            let tally = Tally::of(&said.values().map(|said| said.word).collect::<Vec<_>>());
            self.leading = None;
            let counted = Promise::Counted { number, tally: tally.clone() };
            out.promises.extend(self.cluster.others().map(|site| (site, counted.clone())));
            out.ended = Some(Ended::Counted { tally, asked_before, led: true });
        } else if self.stands_for(self.cluster.me, number) {
            self.go_on(out);
            out.notes.extend(self.cluster.others().map(|site| (site, Note::Go { number })));
            self.leading.as_mut().expect("it leads").stood.insert(self.cluster.me);
            self.consider(out);
        }
    }

    /// More sites were declared lost: those of `cluster`. A count under way is void.
    pub fn lose(&mut self, cluster: &Cluster, out: &mut Out) {
        self.interrupt(out);
        self.void(Ended::Void, out);
        self.cluster = cluster.clone();
    }

    /// Something has precedence: the count that this site stands still for is void.
    pub fn interrupt(&mut self, out: &mut Out) {
        match &self.standing {
            Some(standing) if standing.leader != self.cluster.me => {
                out.notes.push((standing.leader, Note::Void { number: standing.number }));
                self.go_on(out);
            }
            Some(_) => self.void(Ended::Void, out),
            None => {}
        }
    }

    /// Stands still no more.
    fn go_on(&mut self, out: &mut Out) -> Option<Standing> {
        let standing = self.standing.take()?;
        out.goes_on = true;
        self.rest = REST * (standing.ticks + 1);
        self.pause = self.rest + LEAD_AFTER_TICKS + STAGGER_TICKS * self.cluster.rank() as u32;
        Some(standing)
    }

    /// The count that this site leads has come to nothing.
    fn void(&mut self, ended: Ended, out: &mut Out) {
        let Some(Leading { number, .. }) = self.leading.take() else { return };
        self.go_on(out);
        out.notes.extend(self.cluster.others().map(|site| (site, Note::Void { number })));
        out.ended = Some(ended);
    }

    /// Time passes.
    pub fn tick(&mut self, out: &mut Out) {
        self.rest = self.rest.saturating_sub(1);
        self.pause = self.pause.saturating_sub(1);
        if let Some(leading) = &mut self.leading {
            leading.ticks += 1;
            if leading.ticks >= 2 * STAND_TICKS {
                self.void(Ended::Unanswered, out);
            }
        }
        if let Some(standing) = &mut self.standing {
            standing.ticks += 1;
            if standing.ticks < STAND_TICKS {
                return;
            }
            match standing.leader == self.cluster.me {
                true => self.void(Ended::Unanswered, out),
                false => self.interrupt(out),
            }
        }
    }
}
