//! The port of the model: a real account, with a fixed part kept back and a fixed want.

use super::Tokens as Profile;
use rhumb_core::{Rules, SiteId};
use rhumb_quota::account::Account;
use rhumb_quota::avantan::{AccountPort, Call};
use rhumb_quota::list::{Entry, List};
use rhumb_quota::planted::Planted;
use rhumb_quota::tokens::Tokens;

pub struct ModelAccountPort<'a> {
    pub site: SiteId,
    pub tokens: Profile,
    pub rules: Rules<Planted>,
    pub account: &'a mut Account,
    /// Tokens were moved.
    pub moved: bool,
}

impl AccountPort for ModelAccountPort<'_> {
    fn offer(&mut self, _: Call) -> Entry {
        self.moved = true;
        let here = self.account.tokens;
        let offered = Tokens::left(here.left - self.tokens.keeps.min(here.left));
        self.account.offer(self.site, offered, Tokens::left(self.tokens.wants))
    }

    fn withdraw(&mut self) {
        self.moved = true;
        self.account.withdraw();
    }

    fn apply(&mut self, list: &List) {
        self.moved = true;
        let entry = list.entry(self.site).expect("only a member applies a list");
        let share = list.share(self.site).expect("it is a member");
        let share = rhumb_quota::site::planted::share(self.rules, list, self.site).unwrap_or(share);
        if rhumb_quota::site::planted::replays(self.rules, self.account, entry, share) {
            return;
        }
        self.account.apply(entry, share);
    }

    fn put_in_doubt(&mut self, _: u64) {
        unreachable!("no site of the model is lost")
    }
}
