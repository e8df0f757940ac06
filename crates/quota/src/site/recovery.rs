//! What a new incarnation takes over from its disk, before it serves.

use super::Site;
use crate::account::Account;
use crate::catalog::{self, Catalog, Definition, QuotaId};
use crate::records::{self, quota_of};
use bytes::Bytes;
use rhumb_core::Effects;
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::record::decode;
use std::collections::BTreeMap;

/// Records per load.
const PAGE: usize = 1_000;
const READ: &str = "records are read by the version that wrote them";

/// How far reading is.
#[derive(Default)]
pub struct Recovery {
    /// Index of the space being read.
    space: usize,
    /// Its next key.
    from: Bytes,
    catalog: catalog::State,
    definitions: BTreeMap<QuotaId, Definition>,
    accounts: BTreeMap<QuotaId, Account>,
    protocols: BTreeMap<QuotaId, Bytes>,
    lists: BTreeMap<QuotaId, Bytes>,
}

impl Site {
    /// Reads the next page.
    pub(super) fn recover_next(&mut self, fx: &mut Effects<Site>) {
        let recovery = self.recovery.as_ref().expect("it is recovering");
        match records::ALL.get(recovery.space) {
            Some(space) => fx.load(0, Load::Records { space: *space, from: recovery.from.clone(), limit: PAGE, bytes: usize::MAX }),
            None => self.serve(fx),
        }
    }

    pub(super) fn on_recovered(&mut self, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        let recovery = self.recovery.as_mut().expect("nothing is loaded later");
        let space = records::ALL[recovery.space];
        match records.last().filter(|_| more) {
            Some((last, _)) => recovery.from = [last, &[0][..]].concat().into(),
            None => (recovery.space, recovery.from) = (recovery.space + 1, Bytes::new()),
        }
        for (key, bytes) in records {
            let quota = || quota_of(&key).expect(READ);
            match space {
                records::CATALOG => recovery.catalog = decode(&bytes).expect(READ),
                records::DEFINITIONS => drop(recovery.definitions.insert(quota(), decode(&bytes).expect(READ))),
                records::ACCOUNTS => drop(recovery.accounts.insert(quota(), decode(&bytes).expect(READ))),
                records::PROTOCOLS => drop(recovery.protocols.insert(quota(), bytes)),
                records::LISTS => drop(recovery.lists.insert(quota(), bytes)),
                records::ANSWERS => self.window.recover(&key, decode(&bytes).expect(READ)),
                _ => unreachable!("no other space is read"),
            }
        }
        self.recover_next(fx);
    }

    /// Begins to serve with what was read.
    fn serve(&mut self, fx: &mut Effects<Site>) {
        let mut recovery = self.recovery.take().expect("it serves once");
        self.catalog = Catalog::new(self.cluster.clone(), recovery.catalog, recovery.definitions.clone());
        self.cluster = self.cluster.without(self.catalog.definitions().lost());
        self.losses_known = self.cluster.losses();
        for (id, definition) in recovery.definitions {
            let account = recovery.accounts.remove(&id).expect("a quota is written with its account");
            let quota = self.new_quota(definition, account);
            self.quotas.insert(id, quota);
        }
        self.relate();
        if self.is_lost() {
            return;
        }
        for id in self.quotas.keys().copied().collect::<Vec<_>>() {
            let (state, lists) = (recovery.protocols.remove(&id), recovery.lists.remove(&id));
            self.with_protocol(id, fx, |protocol, port, out| protocol.recover(state.as_ref(), lists.as_ref(), port, out));
        }
        self.take_up_losses(fx);
        self.plan_counts();
    }
}
