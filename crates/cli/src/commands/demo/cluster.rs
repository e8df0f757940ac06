//! The cluster of a demo, supervised: what happens to its processes, and what is done to them.
//!
//! A site that dies stays dead until somebody says `rhumb chaos restart`: to see how the others go on is what a demo is
//! for. The state file always says which processes live.

use super::control::{Action, Order, Received};
use super::error::{DemoError, file};
use super::folder::{SitePlan, plural};
use super::site::Site;
use super::{say, stop::Stop};
use crate::http;
use crate::running::{Running, RunningSite, write_atomically};
use futures::future::{join_all, select_all};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long a cluster may take until it serves.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a site that is not ready is asked again.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// How long sites that were asked to stop may take, beyond the grace of their clients, before they are killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The cluster of a demo.
pub struct Cluster {
    sites: Vec<Site>,
    executable: OsString,
    /// Where the state file is, what is in it but for the sites.
    state: PathBuf,
    control: PathBuf,
    data: PathBuf,
    secure: bool,
}

/// How waiting for something ended.
pub enum Waited {
    /// It happened.
    Done,
    /// The user wants the demo to stop.
    Stopped,
}

impl Cluster {
    /// The cluster of `plans`, nothing of it started yet.
    pub fn new(plans: Vec<SitePlan>, (state, control): (PathBuf, PathBuf), data: PathBuf, secure: bool) -> Result<Cluster, DemoError> {
        let executable = std::env::current_exe().map_err(|reason| DemoError::System { doing: "cannot find this executable", reason })?;
        let sites = plans.into_iter().map(Site::new).collect();
        if secure {
            http::go_by(&data);
        }
        Ok(Cluster { sites, executable: executable.into(), state, control, data, secure })
    }

    /// The sites, region by region.
    pub fn plans(&self) -> impl Iterator<Item = &SitePlan> {
        self.sites.iter().map(|site| &site.plan)
    }

    /// Where data and logs are.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Starts every process.
    pub fn start(&mut self) -> Result<(), DemoError> {
        self.sites.iter_mut().try_for_each(|site| site.start(&self.executable))
    }

    /// Waits until every site is ready for clients.
    pub async fn ready(&mut self, stop: &mut Stop, bar: &ProgressBar) -> Result<Waited, DemoError> {
        let begun = Instant::now();
        let mut waiting: Vec<(String, String)> = self.plans().map(|plan| (plan.name(), plan.http())).collect();
        loop {
            let asked = async {
                let reasons = join_all(waiting.iter().map(|(_, http)| why_not_ready(http))).await;
                tokio::time::sleep(ASK_EVERY).await;
                reasons
            };
            let reasons = tokio::select! {
                reasons = asked => reasons,
                (index, status) = ended(&mut self.sites) => return Err(died(&self.sites[index], status)),
                () = stop.requested() => return Ok(Waited::Stopped),
            };
            let mut still = waiting.into_iter().zip(reasons).filter_map(|(site, reason)| Some((site, reason?))).collect::<Vec<_>>();
            bar.set_position((self.sites.len() - still.len()) as u64);
            let Some(((name, _), reason)) = still.first() else { return Ok(Waited::Done) };
            bar.set_message(format!("{name}: {reason}"));
            if begun.elapsed() > READY_TIMEOUT {
                let missing = still.iter().map(|((name, _), reason)| format!("{name}: {reason}")).collect::<Vec<_>>().join("; ");
                return Err(DemoError::NotReady { after: READY_TIMEOUT, missing });
            }
            waiting = still.drain(..).map(|(site, _)| site).collect();
        }
    }

    /// Lets the cluster run until it is to stop: says which sites die, and carries out orders.
    pub async fn supervise(&mut self, stop: &mut Stop, orders: &mut mpsc::Receiver<Received>) -> Result<(), DemoError> {
        loop {
            tokio::select! {
                (index, status) = ended(&mut self.sites) => {
                    let site = &self.sites[index];
                    say(&format!("{} died ({status}); `rhumb chaos restart {}` starts it again", site.plan.name(), site.plan.region));
                    if status.code().is_some() {
                        say(&format!("the end of {}:\n{}", site.plan.log.display(), site.last_words()));
                    }
                }
                Some((order, tell)) = orders.recv() => {
                    let outcome = self.obey(&order).await;
                    self.write_state()?;
                    // Who gave the order may have gone meanwhile.
                    let _ = tell.send(outcome);
                    continue;
                }
                () = stop.requested() => return Ok(()),
            }
            self.write_state()?;
        }
    }

    async fn obey(&mut self, order: &Order) -> Result<(), String> {
        let addressed = |site: &&mut Site| site.plan.region == order.region && site.plan.shard == order.shard;
        let Some(site) = self.sites.iter_mut().find(addressed) else {
            return Err(format!("the demo has no site {}/{}", order.region, order.shard));
        };
        let name = site.plan.name();
        match (order.action, site.pid()) {
            (Action::Kill, None) => Err(format!("{name} is dead already; `rhumb chaos restart {}` starts it again", order.region)),
            (Action::Kill, Some(_)) => {
                site.kill().await.map_err(|error| format!("{name} cannot be killed: {error}"))?;
                say(&format!("{name} was killed"));
                Ok(())
            }
            (Action::Restart, Some(pid)) => Err(format!("{name} is running (process {pid})")),
            (Action::Restart, None) => {
                site.start(&self.executable).map_err(|error| error.to_string())?;
                say(&format!("{name} was started again"));
                Ok(())
            }
        }
    }

    /// Tells other processes what runs where.
    pub fn write_state(&self) -> Result<(), DemoError> {
        let site = |site: &Site| RunningSite {
            region: site.plan.region.clone(),
            shard: site.plan.shard,
            pid: site.pid(),
            pg: site.plan.pg(),
            resp: site.plan.resp().to_string(),
            http: site.plan.http(),
            config: site.plan.config.clone(),
            log: site.plan.log.clone(),
        };
        let running = Running {
            pid: std::process::id(),
            control: self.control.clone(),
            data: self.data.clone(),
            secure: self.secure,
            sites: self.sites.iter().map(site).collect(),
        };
        write_atomically(&self.state, &running).map_err(file("cannot write the state file", &self.state))
    }

    /// Stops every process: in order, or by force if that takes too long or the user will not wait.
    pub async fn stop(&mut self, stop: &mut Stop) {
        for site in &mut self.sites {
            site.ask_to_stop();
        }
        let all_ended = async {
            while self.sites.iter().any(|site| site.pid().is_some()) {
                ended(&mut self.sites).await;
            }
        };
        let in_order = tokio::select! {
            () = all_ended => true,
            () = tokio::time::sleep(STOP_TIMEOUT) => false,
            () = stop.requested() => false,
        };
        if !in_order {
            let left = self.sites.iter().filter(|site| site.pid().is_some()).count();
            say(&format!("killing {} that did not stop", plural(left, "site")));
            for site in &mut self.sites {
                if let Err(error) = site.kill().await {
                    say(&format!("{} cannot be killed: {error}", site.plan.name()));
                }
            }
        }
    }
}

/// Waits until the process of any site ends; forever if none is running.
async fn ended(sites: &mut [Site]) -> (usize, ExitStatus) {
    let ((index, status), _, _) =
        select_all(sites.iter_mut().enumerate().map(|(index, site)| Box::pin(async move { (index, site.ended().await) }))).await;
    (index, status)
}

fn died(site: &Site, status: ExitStatus) -> DemoError {
    DemoError::Died { site: site.plan.name(), status, log: site.plan.log.clone(), last_words: site.last_words() }
}

/// Why the site at `http` cannot serve clients yet; none if it can.
pub async fn why_not_ready(http: &str) -> Option<String> {
    match http::get(http, "/readyz").await {
        Ok(answer) if answer.status == 200 => None,
        Ok(answer) => Some(answer.body),
        Err(_) => Some("it does not listen yet".to_owned()),
    }
}
