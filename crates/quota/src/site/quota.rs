//! One quota at one site: its tokens, its protocol, the demand for it, and what waits for it.
//!
//! Source: Samya, 4.1.2, 4.2 and 4.3.

use crate::account::Account;
use crate::avantan::{AccountPort, Call, Protocol};
use crate::catalog::{Definition, QuotaId};
use crate::config::Config;
use crate::count::Count;
use crate::demand::Demand;
use crate::info::SiteTokens;
use crate::list::{Entry, List};
use crate::operation::{AMOUNT_MAX, Action};
use crate::planted::Planted;
use crate::site::pace::Calling;
use crate::site::settling::Settling;
use crate::site::shortage::{STAGGER_TICKS, Shortage};
use crate::site::waiting::{Needs, Waiting};
use crate::spec::OfferPolicy;
use crate::tokens::Tokens;
use rhumb_core::actor::RequestId;
use rhumb_core::{Rules, SiteId, Time};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// One quota at one site.
pub struct Quota {
    /// What it is.
    pub definition: Definition,
    /// It and the quotas above it, from below.
    pub chain: Arc<[QuotaId]>,
    /// Its tokens here.
    pub account: Account,
    /// Its part in redistributions.
    pub protocol: Protocol,
    /// Its part in counts.
    pub count: Count,
    /// How much it is asked for.
    pub demand: Demand,
    /// Acquisitions that wait.
    pub acquires: VecDeque<Waiting>,
    /// Releases that wait.
    pub releases: VecDeque<Waiting>,
    /// What acquisitions wait for, here and below.
    pub to_acquire: Needs,
    /// What releases wait for, here and below.
    pub to_release: Needs,
    /// Readers that wait for a count.
    pub readers: VecDeque<Reader>,
    /// Offers ever made, and counts stood still for: what waited then had its say.
    pub offers: u64,
    /// The tick of the last one, if it was in this incarnation.
    pub offered_at: Option<u64>,
    /// Below so many tokens left, the site looks ahead next.
    pub look_ahead_below: u64,
    /// It looked ahead and saw too few tokens.
    pub foresees: bool,
    /// What other sites could spare was not enough for an operation that still waits.
    pub urgent: bool,
    /// Fewer tokens seem to be there than somebody wants: they are to be counted before that is said.
    pub needs_recount: bool,
    /// So many counts that this site has led came to nothing, one after another, as others were at something.
    pub counts_void: u32,
    /// This site leads a redistribution.
    pub leads: bool,
    /// The last redistribution that this site has led.
    pub calling: Option<Calling>,
    /// What is known of there being too few tokens.
    pub shortage: Shortage,
    /// Ticks until the next may be led.
    pub rest: u32,
    /// Ticks until the next may be led to collect tokens ([`Quota::collects`]).
    pub debt_in: u32,
    /// The wait after that one.
    pub debt_every: u32,
    /// This site is to have it counted, and when.
    pub settling: Option<Settling>,
}

/// When a step happens.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// By the site's clock.
    pub now: Time,
    /// By its ticks.
    pub tick: u64,
}

/// A client that waits for an exact count.
pub struct Reader {
    /// Who.
    pub client: RequestId,
    /// [`Quota::offers`] when it asked.
    pub offers: u64,
    /// Ticks since.
    pub waited: u32,
}

impl Quota {
    /// How many operations wait, and how many readers.
    pub fn waiting(&self) -> (usize, usize) {
        (self.acquires.len() + self.releases.len(), self.readers.len())
    }

    /// A quota that this site has just heard of.
    pub fn new(definition: Definition, account: Account, protocol: Protocol, count: Count, demand: Demand, config: &Config) -> Quota {
        let mut quota = Quota {
            definition,
            chain: Arc::new([]),
            account,
            protocol,
            count,
            demand,
            acquires: VecDeque::new(),
            releases: VecDeque::new(),
            to_acquire: Needs::default(),
            to_release: Needs::default(),
            readers: VecDeque::new(),
            offers: 0,
            offered_at: None,
            look_ahead_below: 0,
            foresees: false,
            urgent: false,
            needs_recount: false,
            counts_void: 0,
            leads: false,
            calling: None,
            shortage: Shortage::none(config.dry_ticks, config.dry_ticks_max),
            rest: 0,
            debt_in: 0,
            debt_every: config.debt_ticks,
            settling: None,
        };
        quota.granted(config);
        quota
    }

    /// All operations that wait: they do so no more.
    pub fn take_waiting(&mut self) -> Vec<Waiting> {
        self.acquires.drain(..).chain(self.releases.drain(..)).collect()
    }

    /// What operations wait for, here and below.
    pub fn needs(&self) -> Tokens {
        let tokens = |needs: &Needs| u64::try_from(needs.amount).unwrap_or(u64::MAX);
        Tokens { left: tokens(&self.to_acquire), held: tokens(&self.to_release) }
    }

    /// What those wait for who wait for this action.
    pub fn needs_of(&mut self, action: Action) -> &mut Needs {
        match action {
            Action::Acquire => &mut self.to_acquire,
            Action::Release | Action::Free => &mut self.to_release,
        }
    }

    /// The quotas right below in or below which somebody waits for one of these actions.
    pub fn waiting_below(&self, actions: &[Action]) -> BTreeSet<QuotaId> {
        let below = |action: &Action| match action {
            Action::Acquire => &self.to_acquire.below,
            Action::Release | Action::Free => &self.to_release.below,
        };
        actions.iter().flat_map(below).copied().collect()
    }

    /// True if it needs to be looked after at every tick.
    pub fn is_active(&self) -> bool {
        let waits = !self.acquires.is_empty() || !self.releases.is_empty() || !self.readers.is_empty();
        let moves = !self.protocol.is_idle() || !self.count.is_idle();
        waits || moves || self.collects() || self.foresees || self.shortage.is_on() || self.rest > 0 || self.settling.is_some()
    }

    /// True if `action` can be carried out for `amount` tokens: nothing changes hands while the site stands still.
    pub fn allows(&self, action: Action, amount: u64) -> bool {
        !self.count.is_standing() && self.account.allows(action, amount)
    }

    /// Its tokens here, for people.
    pub fn tokens(&self, site: SiteId) -> SiteTokens {
        let Account { tokens, offered, owed, freed, .. } = self.account;
        SiteTokens { site, left: tokens.left, held: tokens.held, offered: offered.left + offered.held, owed, freed }
    }

    /// New tokens have come: when to look ahead next (Samya, 5.2).
    pub fn granted(&mut self, config: &Config) {
        self.look_ahead_below = self.account.last_grant * config.low_percent / 100;
        self.foresees = false;
    }

    /// What is owed or to be taken back has changed: the others are asked for it at once, and ever more rarely after that.
    pub fn collect_at_once(&mut self, config: &Config) {
        (self.debt_in, self.debt_every) = (0, config.debt_ticks);
    }

    /// The others are asked for what is owed or to be taken back now, or have just been: they are asked again after a while, twice as long each
    /// time, and `rank`, this site's place in the order of sites, makes it a little longer.
    pub fn collect_later(&mut self, rank: u32, config: &Config) {
        self.debt_in = self.debt_every + rank * STAGGER_TICKS;
        self.debt_every = (2 * self.debt_every).min(config.debt_ticks_max);
    }

    /// The others were asked for it in vain, as they were in a redistribution without this site: they are asked again soon.
    pub fn collect_soon(&mut self, rank: u32, config: &Config) {
        self.debt_in = self.debt_in.min(config.debt_ticks + rank * STAGGER_TICKS);
    }

    /// True if this site wants tokens for no operation: to take them out of circulation, or back from clients that hold them no more.
    pub fn collects(&self) -> bool {
        !self.definition.closing && (self.account.owed > 0 || self.account.returning > 0)
    }

    /// Looks ahead if few tokens are left (Samya, 4.1.2, steps 4 and 5). True if more are going to be needed.
    pub fn look_ahead(&mut self, now: Time) -> bool {
        let left = self.account.tokens.left;
        if left >= self.look_ahead_below || !self.protocol.is_idle() || self.shortage.is_on() {
            return false;
        }
        // Not again at every token: at half of what is left now.
        self.look_ahead_below = left / 2;
        self.foresees = self.demand.predicted(now).is_some_and(|predicted| predicted > left);
        self.foresees
    }

    /// The protocol and its account port, for a step at this moment; `needs`: what operations wait for, here and below.
    pub fn port<'a>(
        &'a mut self,
        site: SiteId,
        moment: Moment,
        needs: Tokens,
        config: &'a Config,
    ) -> (&'a mut Protocol, SiteAccountPort<'a>) {
        let port = SiteAccountPort {
            site,
            moment,
            needs,
            config,
            policy: self.definition.spec.offer,
            account: &mut self.account,
            demand: &mut self.demand,
            offers: &mut self.offers,
            offered_at: &mut self.offered_at,
            moved: false,
            rules: Rules::HOLD,
        };
        (&mut self.protocol, port)
    }
}

/// The tokens of a quota at this site, in the hands of its protocol: the offer policies.
pub struct SiteAccountPort<'a> {
    site: SiteId,
    moment: Moment,
    needs: Tokens,
    config: &'a Config,
    policy: OfferPolicy,
    account: &'a mut Account,
    demand: &'a mut Demand,
    offers: &'a mut u64,
    offered_at: &'a mut Option<u64>,
    /// Tokens were moved.
    pub moved: bool,
    /// The rules that it goes by.
    pub rules: Rules<Planted>,
}

impl SiteAccountPort<'_> {
    /// What is lacking, once `kept` stays here and the rest is pooled; `all`: as far as somebody waits for it. What may be
    /// needed soon does not compete with that. The paper's TokensWanted (Samya, 4.2, equations 4 and 5).
    fn wanted(&mut self, kept: Tokens, all: bool) -> Tokens {
        let moments = self.demand.moments(self.config.keep_for, self.moment.now);
        let expected = if all { 0 } else { self.demand.predicted(self.moment.now).unwrap_or(0).max(moments) };
        let left = self.needs.left.max(expected).min(AMOUNT_MAX);
        let held = self.needs.held.min(AMOUNT_MAX);
        Tokens { left: left.saturating_sub(kept.left), held: held.saturating_sub(kept.held) }
    }

    /// Asks for so many tokens at least, whatever waits.
    pub fn need_at_least(&mut self, left: u64) {
        self.needs.left = self.needs.left.max(left);
    }

    /// What this site would ask for as a leader: what it wants, and held tokens that it is to take back.
    pub fn call(&mut self, all: bool) -> Call {
        let kept = Tokens { left: 0, held: self.account.tokens.held };
        let Tokens { left, held } = self.wanted(kept, all);
        let held = held.saturating_add(self.account.returning).min(AMOUNT_MAX);
        Call { wanted: Tokens { left, held }, all }
    }
}

impl AccountPort for SiteAccountPort<'_> {
    fn offer(&mut self, call: Call) -> Entry {
        *self.offers += 1;
        *self.offered_at = Some(self.moment.tick);
        self.moved = true;
        let here = self.account.tokens;
        let keep = match self.policy {
            OfferPolicy::Spare if !call.all => self.demand.moments(self.config.keep_for, self.moment.now).min(here.left),
            OfferPolicy::All | OfferPolicy::Spare => 0,
        };
        // Somebody who releases elsewhere is welcome to what is held here, unless releases wait here, too, or held tokens are missing here.
        let lend = match call.all {
            true if call.wanted.held > 0 => here.held,
            false if self.needs.held > 0 || self.account.returning > 0 => 0,
            _ => here.held.min(call.wanted.held),
        };
        let offered = Tokens { left: here.left - keep, held: lend };
        let wanted = self.wanted(here - offered, call.all);
        self.account.offer(self.site, offered, wanted)
    }

    fn withdraw(&mut self) {
        self.account.withdraw();
        self.moved = true;
    }

    fn apply(&mut self, list: &List) {
        let entry = list.entry(self.site).expect("only a member applies a list");
        let share = list.share(self.site).expect("it is a member");
        let share = crate::site::planted::share(self.rules, list, self.site).unwrap_or(share);
        if crate::site::planted::replays(self.rules, self.account, entry, share) {
            return;
        }
        self.account.apply(entry, share);
        self.moved = true;
    }

    fn put_in_doubt(&mut self, held: u64) {
        self.account.in_doubt += held;
        self.moved = true;
    }
}
