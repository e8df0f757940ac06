//! Reads: of this site alone, of all sites as they answer, or of all at one moment.
//!
//! An exact read waits for a [`count`](crate::count), with all others that asked before it began. Readers never have a count follow
//! another at once: a count makes all sites stand still.

use super::Site;
use super::quota::Reader;
use crate::catalog::QuotaId;
use crate::info::{Info, Read, SiteTokens};
use crate::message::Note;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::request::Answer;
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, SiteId, work};

/// Reads of other sites under way at the most.
pub(super) const READS_MAX: usize = 1_024;
/// Readers of one quota that wait for a count at the most.
pub(super) const READERS_MAX: usize = 256;

/// A read of all sites that is under way.
pub struct GlobalRead {
    client: RequestId,
    quota: QuotaId,
    /// Global; or exact, which is begun only if all sites answer: a count makes all of them stand still.
    read: Read,
    seen: Vec<SiteTokens>,
    waited: u32,
}

impl Site {
    pub(super) fn on_get(&mut self, client: RequestId, name: &Name, read: Read, fx: &mut Effects<Site>) {
        let id = match self.catalog.definitions().id(name) {
            Ok(id) => id,
            Err(refusal) => return fx.answer(client, Answer::Got(Err(refusal))),
        };
        let own = self.quotas[&id].tokens(self.cluster.me);
        match read {
            Read::Local => {
                let info = self.info(id, Read::Local, vec![own]);
                self.outcome.answers.push((client, Answer::Got(Ok(info))));
            }
            Read::Global | Read::Exact if self.reads.len() >= READS_MAX => fx.answer(client, too_many()),
            Read::Global | Read::Exact => {
                // Above those of earlier incarnations, whose answers may still come.
                self.last_read = (self.last_read + 1).max(self.now.as_micros());
                self.reads.insert(self.last_read, GlobalRead { client, quota: id, read, seen: vec![own], waited: 0 });
                for site in self.cluster.others() {
                    fx.send(site, Note::Look(id, self.last_read));
                }
                self.finish_read(self.last_read, false, fx);
            }
        }
    }

    /// All sites answer: has them counted.
    fn begin_count(&mut self, client: RequestId, id: QuotaId, fx: &mut Effects<Site>) {
        let quota = self.quotas.get_mut(&id).expect("the caller has looked");
        if quota.readers.len() >= READERS_MAX {
            return fx.answer(client, too_many());
        }
        quota.readers.push_back(Reader { client, offers: quota.offers, waited: 0 });
        self.maybe_redistribute(id, fx);
    }

    pub(super) fn on_list(&mut self, client: RequestId) {
        let there = self.quotas.iter().filter(|(_, quota)| !quota.definition.closing);
        let mut infos: Vec<Info> = there.map(|(id, quota)| self.info(*id, Read::Local, vec![quota.tokens(self.cluster.me)])).collect();
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        self.outcome.answers.push((client, Answer::Listed(infos)));
    }

    pub(super) fn info(&self, id: QuotaId, read: Read, mut sites: Vec<SiteTokens>) -> Info {
        sites.sort_by_key(|tokens| tokens.site);
        let definition = &self.quotas[&id].definition;
        // A lost site is missing until it is booked what it has.
        let booked = self.cluster.lost.iter().take(definition.settled.losses as usize);
        let booked: Vec<SiteId> = booked.copied().collect();
        let is_missing = |site: &SiteId| read != Read::Local && !booked.contains(site) && !sites.iter().any(|tokens| tokens.site == *site);
        let missing = self.cluster.sites.iter().copied().filter(is_missing).collect();
        let booked = definition.settled.booked;
        Info { name: definition.name.clone(), spec: definition.spec.clone(), read, sites, missing, booked }
    }

    pub(super) fn on_look(&mut self, from: SiteId, id: QuotaId, read: u64, fx: &mut Effects<Site>) {
        if let Some(quota) = self.quotas.get(&id) {
            fx.send(from, Note::Seen(id, read, quota.tokens(self.cluster.me)));
        }
    }

    pub(super) fn on_seen(&mut self, id: QuotaId, read: u64, tokens: SiteTokens, fx: &mut Effects<Site>) {
        let Some(reading) = self.reads.get_mut(&read).filter(|reading| reading.quota == id) else { return };
        if reading.seen.iter().all(|seen| seen.site != tokens.site) {
            reading.seen.push(tokens);
            self.finish_read(read, false, fx);
        }
    }

    /// Answers a read that has heard all sites, or has waited long enough.
    fn finish_read(&mut self, read: u64, overdue: bool, fx: &mut Effects<Site>) {
        let reading = &self.reads[&read];
        if reading.seen.len() < self.cluster.size() && !overdue {
            return;
        }
        let reading = self.reads.remove(&read).expect("it was just looked at");
        let quota = self.quotas.get(&reading.quota).filter(|quota| !quota.definition.closing);
        let answer = match (quota, reading.read) {
            (Some(_), Read::Exact) if !overdue => return self.begin_count(reading.client, reading.quota, fx),
            (Some(_), Read::Exact) => Err(self.not_counted(&reading)),
            (Some(_), _) => Ok(self.info(reading.quota, Read::Global, reading.seen)),
            (None, _) => Err(Refusal::Unavailable("the quota was dropped meanwhile".into())),
        };
        self.outcome.answers.push((reading.client, Answer::Got(answer)));
    }

    fn not_counted(&self, reading: &GlobalRead) -> Refusal {
        let missing = self.cluster.members().filter(|site| !reading.seen.iter().any(|tokens| tokens.site == *site));
        let missing: Vec<String> = missing.map(|site| site.to_string()).collect();
        Refusal::Unavailable(format!(
            "an exact read needs every site, and {} did not answer; a global read does without",
            missing.join(", ")
        ))
    }

    pub(super) fn tick_reads(&mut self, fx: &mut Effects<Site>) {
        let max = self.config.look_ticks;
        work::add(self.reads.len());
        self.reads.values_mut().for_each(|reading| reading.waited += 1);
        let overdue: Vec<u64> = self.reads.iter().filter(|(_, reading)| reading.waited >= max).map(|(read, _)| *read).collect();
        overdue.into_iter().for_each(|read| self.finish_read(read, true, fx));
    }

    /// Nobody reads here any more.
    pub(super) fn forget_reads(&mut self) {
        let reads = std::mem::take(&mut self.reads);
        let told = reads.into_values().map(|reading| (reading.client, Answer::Got(Err(Refusal::DeclaredLost))));
        self.outcome.answers.extend(told);
    }

    pub(super) fn expire_readers(&mut self, id: QuotaId) {
        let Some(quota) = self.quotas.get_mut(&id) else { return };
        let max = self.config.exact_ticks;
        quota.readers.iter_mut().for_each(|reader| reader.waited += 1);
        while quota.readers.front().is_some_and(|reader| reader.waited >= max) {
            let reader = quota.readers.pop_front().expect("it was just looked at");
            let why = "an exact count needs every site, and not all could be counted in time; a global read does without";
            self.outcome.answers.push((reader.client, Answer::Got(Err(Refusal::Unavailable(why.into())))));
        }
    }
}

fn too_many() -> Answer {
    Answer::Got(Err(Refusal::Unavailable("too many reads are under way".into())))
}
