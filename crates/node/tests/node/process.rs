//! The life of a process: what it refuses to start with, what it shows over HTTP, how it stops.

mod interface;

use crate::common::{self, Request, Toy, ToyQuotas, http};
use rhumb_api::error::{Code, Error};
use rhumb_config::{Config, Coordinators, Placement, Setup};
use rhumb_core::SiteId;
use rhumb_node::incarnation::PEERS;
use rhumb_node::site::QUOTAS_FOLDER;
use rhumb_node::site::error::RunError;
use rhumb_node::site::process::{Actors, Served, live};
use rhumb_quota::name::Name;
use rhumb_quota::operation::Operation;
use rhumb_quota::refusal::Refusal;
use rhumb_store::{DiskEngine, DiskOptions, Store};
use rhumb_testkit::folders::{copy, roll_back};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

/// Configurations with data folders below `folder`, and free ports that are given up for the processes to bind.
async fn configs(regions: &[&str], folder: &Path) -> Vec<Config> {
    let (mut configs, ports) = common::configure(regions, None).await;
    drop(ports);
    for config in &mut configs {
        config.data_dir = folder.join(&config.site.region);
        config.listen.http = common::lasting_port().await.local_addr().expect("bound");
    }
    configs
}

fn setup(config: &Config) -> Setup {
    Arc::unwrap_or_clone(common::setup(config))
}

fn actors() -> Actors<Toy, ToyQuotas> {
    Actors { commits: Toy::default(), quotas: ToyQuotas::default(), catenae: None, quad: None }
}

/// A server of clients that hands out what it is given and has no clients; done when told to stop.
async fn idle(mut served: Served<Toy>, started: oneshot::Sender<Served<Toy>>) -> io::Result<()> {
    let mut stop = served.stop.clone();
    served.stop = stop.clone();
    served.status.recovered().await;
    started.send(served).map_err(|_| io::Error::other("nobody waits for the start"))?;
    stop.requested().await;
    Ok(())
}

/// A site's process within this one.
struct Process {
    served: Served<Toy>,
    stop: Arc<Notify>,
    life: tokio::task::JoinHandle<Result<(), RunError>>,
}

impl Process {
    async fn start(config: &Config) -> Process {
        let (started, served) = oneshot::channel();
        let stop = Arc::new(Notify::new());
        let (setup, signal) = (setup(config), Arc::clone(&stop));
        let life = tokio::spawn(live(setup, actors(), |served| idle(served, started), async move || signal.notified().await));
        match served.await {
            Ok(served) => Process { served, stop, life },
            Err(_) => panic!("it did not start: {:?}", life.await),
        }
    }

    async fn stop(self) -> Result<(), RunError> {
        self.stop.notify_one();
        self.life.await.expect("no panic")
    }
}

/// Tries to start, and returns the error.
async fn refused(config: &Config) -> RunError {
    let (started, _served) = oneshot::channel();
    let outcome = live(setup(config), actors(), |served| idle(served, started), async || std::future::pending().await).await;
    outcome.expect_err("refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_site_has_kept_its_data_and_ends_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    let process = Process::start(&config).await;
    assert_eq!(process.served.commits.ask(Request::Put { key: "k", value: "v" }).await, Ok("put".into()));
    let mut stop = process.served.stop.clone();
    process.stop().await.expect("exit code 0");
    stop.requested().await;
    let process = Process::start(&config).await;
    assert_eq!(process.served.commits.ask(Request::Get { key: "k" }).await, Ok("v".into()));
    process.stop().await.expect("exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_does_not_go_on_with_an_empty_folder_or_an_older_copy_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let configs = configs(&["a", "b"], folder.path()).await;
    let (own, away) = (configs[0].data_dir.clone(), |name: &str| folder.path().join(name));
    let peer = Process::start(&configs[1]).await;
    // Incarnations in which the peer hears it.
    let live = async || {
        let process = Process::start(&configs[0]).await;
        assert_eq!(common::echo(&process.served.commits, SiteId::new(1, 0), "heard").await, "heard");
        process.stop().await.expect("exit code 0");
    };
    live().await;
    copy(&own, &away("copy"));
    live().await;
    fs::rename(&own, away("latest")).expect("moved");

    let expected =
        format!("the site cannot go on: {} is not the data folder that this site had: b/0 has heard it in an incarnation", own.display());
    let refusal = refused(&configs[0]).await.to_string();
    assert!(refusal.starts_with(&expected), "an empty folder: {refusal}");
    fs::remove_dir_all(&own).expect("removed");
    copy(&away("copy"), &own);
    for _ in 0..3 {
        let refusal = refused(&configs[0]).await.to_string();
        assert!(refusal.starts_with(&expected), "an older copy, however often it is started: {refusal}");
    }
    fs::remove_dir_all(&own).expect("removed");
    fs::rename(away("latest"), &own).expect("moved");
    live().await;
    peer.stop().await.expect("the peer heard none of that");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_pings_told_of_a_site_unmasks_a_folder_of_the_same_incarnation() {
    let folder = tempfile::tempdir().expect("a folder");
    let configs = configs(&["a", "b"], folder.path()).await;
    let (own, copied) = (configs[0].data_dir.clone(), folder.path().join("copy"));
    let peer = Process::start(&configs[1]).await;
    let site = Process::start(&configs[0]).await;
    let put = async |site: &Process| assert_eq!(site.served.commits.ask(Request::Put { key: "k", value: "v" }).await, Ok("put".into()));
    put(&site).await;
    copy(&own, &copied);
    put(&site).await;
    let peers = || fs::read_to_string(configs[1].data_dir.join(PEERS)).unwrap_or_default();
    common::until("the peer has noted two syncs", async || peers().ends_with(" 2 0 0 0\n")).await;
    // The site dies.
    assert!(site.served.commits.ask(Request::Panic).await.is_err());
    site.life.await.expect("the panic stays in its thread").expect_err("it failed");
    roll_back(&own, &copied);
    peer.stop().await.expect("exit code 0");
    let peer = Process::start(&configs[1]).await;
    for _ in 0..2 {
        let refusal = refused(&configs[0]).await.to_string();
        assert!(refusal.contains("after 2 syncs of commit, of which the folder has 1. It is empty, or was restored"), "{refusal}");
    }
    peer.stop().await.expect("the peer heard none of that");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_died_goes_on_and_its_peer_knows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let configs = configs(&["a", "b"], folder.path()).await;
    let _peer = Process::start(&configs[1]).await;
    for _ in 0..3 {
        let site = Process::start(&configs[0]).await;
        assert_eq!(site.served.commits.ask(Request::Put { key: "k", value: "v" }).await, Ok("put".into()));
        assert_eq!(common::echo(&site.served.commits, SiteId::new(1, 0), "heard").await, "heard");
        assert!(configs[0].data_dir.join("RUNNING").exists());
        assert!(site.served.commits.ask(Request::Panic).await.is_err());
        site.life.await.expect("the panic stays in its thread").expect_err("it failed");
    }
    Process::start(&configs[0]).await.stop().await.expect("exit code 0");
    assert!(!configs[0].data_dir.join("RUNNING").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_does_not_start_with_another_setting_than_its_folder_was_written_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = configs(&["a"], folder.path()).await.remove(0);
    Process::start(&config).await.stop().await.expect("exit code 0");
    config.catenae.epoch_ms = 20;
    let error = refused(&config).await;
    let why = format!(
        "catenae.epoch_ms is 20, but {} was written with 10: it stays what it was when the cluster began. Set it to 10 again; for another \
         value start a new cluster, with an empty data_dir at every site",
        config.data_dir.display()
    );
    assert_eq!((error.to_string(), error.exit_code()), (why, 2));
    config.catenae.epoch_ms = 10;
    Process::start(&config).await.stop().await.expect("exit code 0");
}

/// One demand to stop, at once.
fn once() -> impl AsyncFnMut() {
    let mut demands = 1;
    async move || {
        if demands == 0 {
            std::future::pending().await
        }
        demands -= 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_have_a_store_of_their_own_in_the_data_folder_also_in_one_made_before_there_were_any() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    drop(Store::open(DiskEngine::open(&config.data_dir, DiskOptions::DEFAULT).expect("made")).expect("made"));
    let process = Process::start(&config).await;
    let name = Name::new("vm").expect("a name");
    let operation = Operation::acquire(name.clone(), 1, None).expect("an amount");
    assert_eq!(process.served.quotas.run(vec![operation]).await, [Err(Refusal::Unknown(name))]);
    assert_eq!(process.served.commits.ask(Request::Put { key: "k", value: "v" }).await, Ok("put".into()));
    process.stop().await.expect("exit code 0");
    assert!(config.data_dir.join(QUOTAS_FOLDER).join("FORMAT").exists());

    let process = Process::start(&config).await;
    let (_, shown) = http(config.listen.http, "GET", "/status", "").await;
    assert!(shown.contains(r#""quotas":{"quotas":1,"#), "what was noted is there again: {shown}");
    assert_eq!(process.served.commits.ask(Request::Get { key: "k" }).await, Ok("v".into()));
    process.stop().await.expect("exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_for_the_redis_protocol_is_bound_if_it_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = configs(&["a"], folder.path()).await.remove(0);
    let process = Process::start(&config).await;
    assert!(process.served.resp.is_none());
    process.stop().await.expect("exit code 0");
    config.listen.resp = Some("127.0.0.1:0".parse().expect("an address"));
    let process = Process::start(&config).await;
    let resp = process.served.resp.as_ref().expect("bound").listener.local_addr().expect("bound");
    TcpStream::connect(resp).await.expect("it listens");
    process.stop().await.expect("exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_clients_finish_within_the_grace_and_no_longer() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = configs(&["a"], folder.path()).await.remove(0);
    // A client that finishes after it was told to stop.
    let finished = Arc::new(Notify::new());
    let done = Arc::clone(&finished);
    let serve = async move |mut served: Served<Toy>| {
        served.stop.requested().await;
        assert_eq!(served.commits.ask(Request::Put { key: "late", value: "v" }).await, Ok("put".into()));
        assert_eq!(served.status.ready(), Err("the site is stopping".into()));
        done.notify_one();
        Ok(())
    };
    live(setup(&config), actors(), serve, once()).await.expect("exit code 0");
    finished.notified().await;
    // One that never does.
    config.limits.stop_grace_ms = 10;
    live(setup(&config), actors(), async |_| std::future::pending().await, once()).await.expect("exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_http_requests_be_answered_and_takes_up_none_but_those_of_probes() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    let Process { served, stop, life } = Process::start(&config).await;
    let address = config.listen.http;
    let mut idle = TcpStream::connect(address).await.expect("it listens");
    let held = tokio::spawn(async move { http(address, "POST", "/quotas/held/acquire", r#"{"amount":9}"#).await });
    let asked = async || http(address, "GET", "/status", "").await.1.contains(r#""quotas":{"quotas":1,"#);
    common::until("the request is under way", asked).await;
    stop.notify_one();
    assert_eq!(idle.read_to_end(&mut Vec::new()).await.expect("closed"), 0, "nobody waits for who has asked nothing");
    assert_eq!(http(address, "GET", "/readyz", "").await, (503, "the site is stopping\n".into()));
    assert_eq!(http(address, "GET", "/healthz", "").await, (200, "ok\n".into()));
    let refused = r#"{"error":{"code":"UNAVAILABLE","message":"the site is stopping; try again later"}}"#;
    for (method, path) in
        [("POST", "/quotas/held/acquire"), ("GET", "/quotas"), ("POST", "/chaos"), ("GET", "/status"), ("GET", "/metrics")]
    {
        assert_eq!(http(address, method, path, r#"{"amount":1}"#).await, (503, refused.into()), "{method} {path}");
    }
    assert!(!held.is_finished());
    assert_eq!(served.quotas.list().await, Ok(Vec::new()));
    assert_eq!(held.await.expect("no panic"), (200, r#"{"left":0}"#.into()));
    life.await.expect("no panic").expect("exit code 0");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_says_why_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    let check = async |config: &Config, expected: String| {
        let error = refused(config).await;
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.exit_code(), 1);
    };

    for key in ["listen.peer", "listen.http", "listen.sql", "listen.resp"] {
        let taken = match key {
            "listen.peer" => TcpListener::bind(config.listen.peer).await,
            _ => TcpListener::bind("127.0.0.1:0").await,
        };
        let taken = taken.expect("free");
        let address = taken.local_addr().expect("bound");
        let mut config = config.clone();
        match key {
            "listen.http" => config.listen.http = address,
            "listen.sql" => config.listen.sql = address,
            "listen.resp" => config.listen.resp = Some(address),
            _ => {}
        }
        check(&config, format!("{key}: {address} is in use by another process; stop that one, or choose another port")).await;
    }

    let strange = folder.path().join("strange");
    std::fs::create_dir(&strange).expect("made");
    std::fs::write(strange.join("holiday.jpg"), "x").expect("written");
    let mut config = config;
    config.data_dir = strange.clone();
    let expected = "is not a data folder of rhumb (it is not empty and has no file FORMAT): name an empty or a new folder";
    check(&config, format!("{} {expected}", strange.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_active_regions_count_for_readiness_and_for_the_floor_of_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut configs = configs(&["a", "b", "c"], folder.path()).await;
    let coordinators = [("c".to_owned(), Coordinators { read: "b".into(), commit: "a".into() })].into();
    for config in &mut configs {
        config.placement =
            Some(Placement { active: vec!["a".into()], passive: vec!["b".into()], coordinators: BTreeMap::clone(&coordinators) });
    }
    let address = configs[2].listen.http;
    let _third = Process::start(&configs[2]).await;
    let _second = Process::start(&configs[1]).await;
    let reason = "only 0 of 1 active regions can be heard; a majority is 1\n";
    assert_eq!(http(address, "GET", "/readyz", "").await, (503, reason.into()));
    let _first = Process::start(&configs[0]).await;
    common::until("one is a majority of one", async || http(address, "GET", "/readyz", "").await == (200, "ready\n".into())).await;
    let shown = async |address| -> serde_json::Value { serde_json::from_str(&http(address, "GET", "/status", "").await.1).expect("JSON") };
    common::until("the way to the one that votes is measured", async || !shown(address).await["regions"][0]["rtt_ms"].is_null()).await;
    let status = shown(address).await;
    let of = |name: &str| status["regions"].as_array().expect("regions").iter().map(|region| region[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("role"), ["active", "passive", "none"]);
    assert_eq!((of("reads_at")[2].as_str(), of("commits_at")[2].as_str()), (Some("b"), Some("a")));
    assert!(of("reads_at")[0].is_null());
    assert_eq!(of("floor_ms")[2], of("rtt_ms")[0]);
    assert_eq!(shown(configs[0].listen.http).await["regions"][0]["floor_ms"], 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_ready_when_a_majority_of_regions_is_heard_and_says_whom_it_misses() {
    let folder = tempfile::tempdir().expect("a folder");
    let configs = configs(&["a", "b", "c"], folder.path()).await;
    let first = Process::start(&configs[0]).await;
    let address = configs[0].listen.http;
    assert_eq!(http(address, "GET", "/healthz", "").await, (200, "ok\n".into()));
    let reason = "only 1 of 3 regions can be heard (a); a majority is 2\n";
    assert_eq!(http(address, "GET", "/readyz", "").await, (503, reason.into()));
    let second = Process::start(&configs[1]).await;
    common::until("two are a majority", async || http(address, "GET", "/readyz", "").await == (200, "ready\n".into())).await;

    let (code, metrics) = http(address, "GET", "/metrics", "").await;
    assert_eq!(code, 200);
    for name in [
        "rhumb_peer_rtt_seconds{region=\"b\",shard=\"0\"}",
        "rhumb_peer_messages_sent_total",
        "rhumb_store_sync_seconds_count{service=\"commit\"} 0",
    ] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }
    let (_, shown) = http(address, "GET", "/status", "").await;
    assert!(shown.starts_with(r#"{"cluster":"test","site":"a/0","ready":true,"reason":null,"regions":[{"name":"a","local":true,"sites":1,"reachable":1,"rtt_ms":0.0,"#), "{shown}");
    let vitals = r#""transactions":{"open":0,"prepared":2,"in_doubt":1,"safe_us":1500000,"safe_lag_ms":"#;
    assert!(
        shown.contains(vitals)
            && shown.ends_with(
                r#","reachable_regions":["a"]},"quotas":{"quotas":0,"waiting":2,"redistributing":1,"lost":0,"unsettled":0},"epochs":null,"quorums":null}"#
            ),
        "{shown}"
    );
    let told = Request::Tell { to: first.served.status.setup().site, text: "news".into() };
    assert_eq!(first.served.commits.ask(told).await, Ok("told".into()));
    common::until("the actor is asked anew", async || {
        http(address, "GET", "/metrics", "").await.1.contains("\nrhumb_transactions_open 1\n")
    })
    .await;

    assert_eq!(http(address, "POST", "/chaos", r#"{"action":"cut","region":"b"}"#).await, (200, "b/0\n".into()));
    common::until("b is missed", async || http(address, "GET", "/readyz", "").await == (503, reason.into())).await;
    assert_eq!(http(address, "POST", "/chaos", r#"{"action":"heal"}"#).await, (200, "b/0 c/0\n".into()));
    common::until("b is back", async || http(address, "GET", "/readyz", "").await.0 == 200).await;
    assert_eq!(http(address, "POST", "/chaos", r#"{"action":"slow","region":"c","extra_ms":5}"#).await.0, 200);

    let bad = async |body, expected: &str| {
        let error = serde_json::to_string(&Error::new(Code::Invalid, expected)).expect("JSON");
        assert_eq!(http(address, "POST", "/chaos", body).await, (400, error));
    };
    bad(r#"{"action":"cut","region":"mars"}"#, "region: there is no region `mars`").await;
    bad(r#"{"action":"cut","region":"a"}"#, "no such link: expected the region, and the shard if given, of another site").await;
    bad(r#"{"action":"slow","extra_ms":-1}"#, "extra_ms: is -1; expected 0 to 60000").await;
    assert_eq!(http(address, "POST", "/chaos", r#"{"action":"burn"}"#).await.0, 400);
    assert_eq!(http(address, "POST", "/chaos", r#"{"action":"heal","planet":"x"}"#).await.0, 400);
    first.stop().await.expect("exit code 0");
    second.stop().await.expect("exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_not_tampered_with_unless_the_configuration_allows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = configs(&["a"], folder.path()).await.remove(0);
    config.chaos = false;
    let process = Process::start(&config).await;
    let refused = http(config.listen.http, "POST", "/chaos", r#"{"action":"heal"}"#).await;
    let error = r#"{"error":{"code":"FORBIDDEN","message":"no harm is to be done here: the configuration does not say `chaos = true`"}}"#;
    assert_eq!(refused, (403, error.to_owned()));
    process.stop().await.expect("exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_either_service_ends_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    let process = Process::start(&config).await;
    let name = Name::new("vm").expect("a name");
    let unknown = Refusal::UnknownOutcome("the site stopped before it could tell".into());
    assert_eq!(process.served.quotas.set_limit(name.clone(), 1).await, Err(unknown));
    let stopping = Refusal::Unavailable("the site is stopping".into());
    assert_eq!(process.served.quotas.list().await, Err(stopping), "a question leaves nothing unknown");
    let error = process.life.await.expect("the panic stays in its thread").expect_err("it failed");
    let reason = "the thread of the site's quotas panicked: an error in Rhumb, please report it with the log";
    assert_eq!(error.to_string(), format!("the site cannot go on: {reason}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_site_ends_the_process_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    let process = Process::start(&config).await;
    assert!(process.served.commits.ask(Request::Panic).await.is_err());
    let error = process.life.await.expect("the panic stays in its thread").expect_err("it failed");
    assert_eq!(
        error.to_string(),
        "the site cannot go on: the thread of the site's transactions panicked: an error in Rhumb, please report it with the log"
    );
    assert_eq!(error.exit_code(), 1);
}
