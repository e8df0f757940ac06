//! What waits for the disk: promises and answers leave after the sync, reads see what is on its way, a failing disk
//! ends the site and acknowledges nothing.

use crate::common::{self, Request, Toy, ToySite, configure, start, start_as, until};
use futures::future::join_all;
use futures::poll;
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{Key, SiteId, Timestamp, Value};
use rhumb_node::runtime::{Handle, Rejected};
use rhumb_node::service::Service;
use rhumb_store::{Engine, MemoryEngine, Store, StoreError, View, Write};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinSet;

/// What the disk does when asked to sync.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Works,
    Hangs,
    Fails,
    Panics,
}

/// An engine whose disk does as it is told. While it hangs it takes no writes either, as a real one.
#[derive(Clone)]
struct Disk(Arc<Inner>);

struct Inner {
    engine: MemoryEngine,
    mode: Mutex<Mode>,
    changed: Condvar,
    /// Held while it writes or syncs.
    busy: Mutex<()>,
    hangs: AtomicBool,
    syncs: AtomicUsize,
    writes: AtomicUsize,
    horizon: AtomicU64,
}

impl Disk {
    fn new() -> Disk {
        let (mode, changed, busy) = (Mutex::new(Mode::Works), Condvar::new(), Mutex::new(()));
        let (syncs, writes, horizon) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
        Disk(Arc::new(Inner { engine: MemoryEngine::new(), mode, changed, busy, hangs: AtomicBool::new(false), syncs, writes, horizon }))
    }

    fn set(&self, mode: Mode) {
        *self.0.mode.lock().expect("no panic") = mode;
        self.0.changed.notify_all();
    }

    /// True while a sync hangs: what was to be written before it is.
    fn hangs(&self) -> bool {
        self.0.hangs.load(Ordering::SeqCst)
    }

    fn syncs(&self) -> usize {
        self.0.syncs.load(Ordering::SeqCst)
    }

    fn writes(&self) -> usize {
        self.0.writes.load(Ordering::SeqCst)
    }
}

impl Engine for Disk {
    fn view(&self) -> Box<dyn View + '_> {
        self.0.engine.view()
    }

    fn write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let _idle = self.0.busy.lock().expect("no panic");
        self.0.writes.fetch_add(1, Ordering::SeqCst);
        self.0.engine.write(writes)
    }

    fn sync(&self) -> Result<(), StoreError> {
        let _busy = self.0.busy.lock().expect("no panic");
        let hangs = |mode: &mut Mode| {
            self.0.hangs.store(*mode == Mode::Hangs, Ordering::SeqCst);
            *mode == Mode::Hangs
        };
        let mode = self.0.changed.wait_while(self.0.mode.lock().expect("no panic"), hangs).expect("no panic");
        assert!(*mode != Mode::Panics, "the disk was told to");
        if *mode == Mode::Fails {
            return Err(StoreError::Full { path: "/data".into(), source: std::io::Error::from(std::io::ErrorKind::StorageFull) });
        }
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        self.0.engine.sync()
    }

    fn collect(&self, horizon: Timestamp) {
        self.0.horizon.store(horizon.bits(), Ordering::SeqCst);
        self.0.engine.collect(horizon);
    }
}

/// A service whose disk is written by a thread of its own, and one whose disk is written by the actor's.
const SERVICES: [Service; 2] = [Service::Commit, Service::Quotas];

async fn put(handle: Handle<Toy>, key: &'static str) -> Result<String, Rejected> {
    handle.ask(Request::Put { key, value: "v" }).await
}

/// Puts while the disk hangs; returns once it does so in the sync of that.
async fn put_into_a_hanging_sync(disk: &Disk, handle: &Handle<Toy>) -> JoinSet<Result<String, Rejected>> {
    disk.set(Mode::Hangs);
    let mut puts = JoinSet::new();
    puts.spawn(put(handle.clone(), "alone"));
    until("the sync of the first hangs", async || disk.hangs()).await;
    puts
}

/// Lets the tasks of this thread that are ready run first.
async fn behind_the_others() {
    let mut waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn all_are_put(mut puts: JoinSet<Result<String, Rejected>>) {
    while let Some(put) = puts.join_next().await {
        assert_eq!(put.expect("no panic"), Ok("put".into()));
    }
}

/// So long nothing must happen that must not happen at all.
const QUIET: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaves_before_the_sync_that_it_waits_for() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a", "b"], None).await;
        let disk = Disk::new();
        let far = start_as(service, &configs[1], ports.pop().expect("two"), disk.clone());
        let near = start_as(service, &configs[0], ports.pop().expect("two"), MemoryEngine::new());
        common::echo(&near.handle(), SiteId::new(1, 0), "connected").await;

        disk.set(Mode::Hangs);
        let (asker, writer) = (near.handle(), far.handle());
        let promise = tokio::spawn(async move { asker.ask(Request::Echo { to: SiteId::new(1, 0), text: "promised".into() }).await });
        let answer = tokio::spawn(async move { writer.ask(Request::Put { key: "k", value: "v" }).await });
        tokio::time::sleep(QUIET).await;
        assert!(!promise.is_finished(), "the promise left before the sync");
        assert!(!answer.is_finished(), "the answer left before the sync");
        disk.set(Mode::Works);
        assert_eq!(promise.await.expect("no panic"), Ok("promised".into()));
        assert_eq!(answer.await.expect("no panic"), Ok("put".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gathers_during_a_sync_is_written_and_made_durable_as_one_and_the_actor_never_waits() {
    let (configs, mut ports) = configure(&["a"], None).await;
    let disk = Disk::new();
    let site = start(&configs[0], ports.remove(0), disk.clone());
    let handle = site.handle();
    handle.ask(Request::Put { key: "first", value: "v" }).await.expect("put");
    let before = (disk.writes(), disk.syncs());

    let mut puts = put_into_a_hanging_sync(&disk, &handle).await;
    for key in ["b", "c", "d", "e", "f"] {
        puts.spawn(put(handle.clone(), key));
    }
    // Other keys are read as if nothing were the matter: the actor is not held up.
    for _ in 0..10 {
        assert_eq!(handle.ask(Request::Get { key: "first" }).await, Ok("v".into()));
    }
    tokio::time::sleep(QUIET).await;
    disk.set(Mode::Works);
    all_are_put(puts).await;
    let since = (disk.writes() - before.0, disk.syncs() - before.1);
    assert_eq!(since, (2, 2), "one write and one sync for the first, one for the five that gathered meanwhile");
}

/// A site whose disk hangs, and whose actor has made all steps that it may for that reason; the steps go on.
async fn behind(disk: &Disk, times: usize) -> (ToySite, JoinSet<Result<String, Rejected>>, Arc<AtomicUsize>) {
    let (configs, mut ports) = configure(&["a"], None).await;
    let site = start(&configs[0], ports.remove(0), disk.clone());
    let handle = site.handle();
    handle.ask(Request::Put { key: "first", value: "v" }).await.expect("put");
    let mut asked = put_into_a_hanging_sync(disk, &handle).await;
    let made = Arc::new(AtomicUsize::new(0));
    let steps = Request::Steps { times, writes: true, made: Arc::clone(&made) };
    asked.spawn(async move { handle.ask(steps).await.map(|_| "put".into()) });
    let mut before = 0;
    until("no more steps are made", async || {
        tokio::time::sleep(QUIET).await;
        let now = made.load(Ordering::SeqCst);
        std::mem::replace(&mut before, now) == now && now > 0
    })
    .await;
    (site, asked, made)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_whose_disk_is_behind_makes_no_step_until_it_has_caught_up() {
    let (disk, times) = (Disk::new(), 100_000);
    let (site, asked, made) = behind(&disk, times).await;
    assert_eq!(made.load(Ordering::SeqCst), 65_536, "so many writes may wait");
    // Nobody is held up on its own thread by that.
    let heard = tokio::time::timeout(QUIET, site.handle().ask(Request::Heard)).await;
    assert!(heard.is_err(), "the actor makes no step");
    disk.set(Mode::Works);
    all_are_put(asked).await;
    assert_eq!(made.load(Ordering::SeqCst), times);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_while_all_that_may_waits_for_it_ends_the_site() {
    for mode in [Mode::Fails, Mode::Panics] {
        let disk = Disk::new();
        let (site, asked, _) = behind(&disk, 100_000).await;
        disk.set(mode);
        site.status().failure().wait().await;
        assert!(asked.join_all().await.iter().all(|asked| *asked == Err(Rejected::Stopped)));
        assert_eq!(site.handle().ask(Request::Heard).await, Err(Rejected::Stopped));
        tokio::time::timeout(Duration::from_secs(20), site.stop()).await.expect("all its threads end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_actor_has_written_when_it_is_stopped_is_durable() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a"], None).await;
        let disk = Disk::new();
        let site = start_as(service, &configs[0], ports.remove(0), disk.clone());
        let (handle, made) = (site.handle(), Arc::new(AtomicUsize::new(0)));
        let steps = Request::Steps { times: 10_000_000, writes: true, made: Arc::clone(&made) };
        let asked = tokio::spawn(async move { handle.ask(steps).await });
        until("steps are made", async || made.load(Ordering::SeqCst) > 1_000).await;
        site.stop().await;
        assert_eq!(asked.await.expect("no panic"), Err(Rejected::Stopped));
        assert_eq!(disk.0.engine.unsynced_bytes(), 0);
        let get = Load::Get { keys: vec![Key::from("step")], at: Timestamp::MAX, bytes: usize::MAX };
        let Loaded::Rows { rows, .. } = Store::open(disk).expect("a store").load(&get).expect("read") else {
            panic!("rows were asked for")
        };
        let last = made.load(Ordering::SeqCst).to_string();
        assert_eq!(rows[0].value, Some(Value::from(last.as_str())), "the last step of {service:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_during_a_sync_by_the_actor_is_written_and_made_durable_as_one() {
    let (configs, mut ports) = configure(&["a"], None).await;
    let disk = Disk::new();
    let site = start_as(Service::Quotas, &configs[0], ports.remove(0), disk.clone());
    let handle = site.handle();
    handle.ask(Request::Put { key: "first", value: "v" }).await.expect("put");
    let before = disk.syncs();

    let mut puts = put_into_a_hanging_sync(&disk, &handle).await;
    // One of them lives where the actor does, which is busy now.
    puts.spawn_on(put(handle.clone(), "at home"), handle.home());
    for key in ["b", "c", "d", "e"] {
        puts.spawn(put(handle.clone(), key));
    }
    tokio::time::sleep(QUIET).await;
    disk.set(Mode::Works);
    all_are_put(puts).await;
    let syncs = disk.syncs() - before;
    // The one at home asks once the actor's thread is free again.
    assert!((2..=3).contains(&syncs), "one sync for the first, one or two for the five that came meanwhile: {syncs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_trickles_in_while_a_group_gathers_is_answered() {
    let (configs, mut ports) = configure(&["a"], None).await;
    let disk = Disk::new();
    let site = start_as(Service::Quotas, &configs[0], ports.remove(0), disk.clone());
    let handle = site.handle();
    handle.ask(Request::Put { key: "first", value: "v" }).await.expect("put");
    for count in 1..=20 {
        // A large group, so that the next one gathers.
        let mut puts = put_into_a_hanging_sync(&disk, &handle).await;
        (0..30).for_each(|_| drop(puts.spawn(put(handle.clone(), "many"))));
        tokio::time::sleep(Duration::from_millis(5)).await;
        disk.set(Mode::Works);
        all_are_put(puts).await;

        // One more each time that the driver looks, and then silence.
        let trickle = handle.clone();
        let trickle = handle.home().spawn(async move {
            let mut puts = Vec::new();
            for index in 0..count {
                let mut put = Box::pin(put(trickle.clone(), "one"));
                assert!(poll!(&mut put).is_pending(), "it waits for the disk");
                puts.push(put);
                // The driver, which yields in between, gets its turn before this task does, and the next put is there when it looks.
                if index > 0 {
                    tokio::task::yield_now().await;
                }
                behind_the_others().await;
            }
            join_all(puts).await
        });
        let answered = tokio::time::timeout(Duration::from_secs(5), trickle).await.map(|answers| answers.expect("no panic").len());
        assert_eq!(answered, Ok(count), "of {count} that trickled in one was left lying");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_sees_the_write_before_it() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a"], None).await;
        let disk = Disk::new();
        let site = start_as(service, &configs[0], ports.remove(0), disk.clone());
        let handle = site.handle();
        assert_eq!(handle.ask(Request::Get { key: "k" }).await, Ok("nothing".into()));
        for _ in 0..100 {
            assert_eq!(handle.ask(Request::PutThenGet { key: "k", value: "v" }).await, Ok("v".into()));
        }
        // Also while the write cannot even reach the engine.
        disk.set(Mode::Hangs);
        let put = handle.clone();
        let put = tokio::spawn(async move { put.ask(Request::Put { key: "other", value: "v" }).await });
        until("the sync hangs", async || disk.hangs()).await;
        let get = handle.clone();
        let get = tokio::spawn(async move { get.ask(Request::PutThenGet { key: "new", value: "w" }).await });
        tokio::time::sleep(QUIET).await;
        assert!(!get.is_finished(), "it cannot know the write yet");
        disk.set(Mode::Works);
        assert_eq!(get.await.expect("no panic"), Ok("w".into()));
        assert_eq!(put.await.expect("no panic"), Ok("put".into()));
    }
}

/// A crash must not leave a store without the versions, and without the record that says so.
#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_collected_once_what_was_written_before_is_durable() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a"], None).await;
        let disk = Disk::new();
        let site = start_as(service, &configs[0], ports.remove(0), disk.clone());
        let (putter, collector) = (site.handle(), site.handle());
        let horizon = || disk.0.horizon.load(Ordering::SeqCst);
        disk.set(Mode::Hangs);
        let put = tokio::spawn(async move { putter.ask(Request::Put { key: "k", value: "v" }).await });
        until("the sync hangs", async || disk.hangs()).await;
        let collect = tokio::spawn(async move { collector.ask(Request::Collect { horizon: Timestamp::from_bits(7) }).await });
        tokio::time::sleep(QUIET).await;
        assert_eq!(horizon(), 0, "nothing is durable yet");
        disk.set(Mode::Works);
        until("it is collected", async || horizon() == 7).await;
        assert_eq!((put.await.expect("no panic"), collect.await.expect("no panic")), (Ok("put".into()), Ok("collected".into())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_nobody_waits_for_share_a_sync_that_comes_by_itself() {
    const WRITES: usize = 100;
    let (configs, mut ports) = configure(&["a"], None).await;
    let disk = Disk::new();
    let site = start(&configs[0], ports.remove(0), disk.clone());
    let handle = site.handle();
    handle.ask(Request::Put { key: "first", value: "v" }).await.expect("put");
    let before = disk.syncs();
    for _ in 0..WRITES {
        assert_eq!(handle.ask(Request::PutThenGet { key: "k", value: "v" }).await, Ok("v".into()));
    }
    until("all is durable", async || disk.0.engine.unsynced_bytes() == 0).await;
    let syncs = disk.syncs() - before;
    assert!((1..WRITES).contains(&syncs), "{syncs} syncs for {WRITES} writes");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_behind_a_write_that_nobody_waits_for_leaves_once_that_is_durable() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a"], None).await;
        let disk = Disk::new();
        let site = start_as(service, &configs[0], ports.remove(0), disk.clone());
        let handle = site.handle();
        handle.ask(Request::Put { key: "first", value: "v" }).await.expect("put");
        disk.set(Mode::Hangs);
        let confirm = tokio::spawn(async move { handle.ask(Request::PutThenConfirm { key: "k", value: "v" }).await });
        tokio::time::sleep(QUIET).await;
        assert!(!confirm.is_finished(), "the empty write has nothing to sync, but the one before it has");
        disk.set(Mode::Works);
        assert_eq!(confirm.await.expect("no panic"), Ok("put".into()));
        assert_eq!(disk.0.engine.unsynced_bytes(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_nobody_waits_for_and_that_fails_ends_the_site() {
    let (configs, mut ports) = configure(&["a"], None).await;
    let disk = Disk::new();
    let site = start(&configs[0], ports.remove(0), disk.clone());
    let handle = site.handle();
    handle.ask(Request::Put { key: "first", value: "v" }).await.expect("put");
    disk.set(Mode::Fails);
    assert_eq!(handle.ask(Request::PutThenGet { key: "k", value: "v" }).await, Ok("v".into()));
    assert!(site.status().failure().wait().await.starts_with("no space is left on the disk of /data"));
    assert_eq!(handle.ask(Request::Heard).await, Err(Rejected::Stopped));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_may_wait_are_told_that_the_site_is_busy() {
    let (mut configs, mut ports) = configure(&["a"], None).await;
    configs[0].limits.requests = 2;
    let disk = Disk::new();
    let site = start(&configs[0], ports.remove(0), disk.clone());
    site.status().recovered().await;
    disk.set(Mode::Hangs);
    let mut puts = JoinSet::new();
    for key in ["a", "b"] {
        let handle = site.handle();
        puts.spawn(async move { handle.ask(Request::Put { key, value: "v" }).await });
    }
    until("two wait", async || site.status().metrics().contains("rhumb_requests_waiting{service=\"commit\"} 2\n")).await;
    assert_eq!(site.handle().ask(Request::Heard).await, Err(Rejected::Busy));
    disk.set(Mode::Works);
    assert_eq!(puts.join_all().await, [Ok("put".into()), Ok("put".into())]);
    assert_eq!(site.handle().ask(Request::Heard).await, Ok(String::new()));
    assert!(site.status().metrics().contains("rhumb_requests_busy_total{service=\"commit\"} 1\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_acknowledges_nothing_and_ends_the_site() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a"], None).await;
        let disk = Disk::new();
        let site = start_as(service, &configs[0], ports.remove(0), disk.clone());
        let status = site.status();
        status.recovered().await;
        assert_eq!(status.ready(), Ok(()));
        disk.set(Mode::Fails);
        assert_eq!(site.handle().ask(Request::Put { key: "k", value: "v" }).await, Err(Rejected::Stopped));
        let reason =
            "no space is left on the disk of /data: no storage space; free some and start the site again, what was committed is kept";
        assert_eq!(status.failure().wait().await, reason);
        assert_eq!(status.ready(), Err(reason.to_owned()));
        disk.set(Mode::Works);
        assert_eq!(site.handle().ask(Request::Heard).await, Err(Rejected::Stopped), "it does not come back by itself");
        site.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_makes_durable_what_was_written() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a"], None).await;
        let disk = Disk::new();
        let site = start_as(service, &configs[0], ports.remove(0), disk.clone());
        let handle = site.handle();
        handle.ask(Request::Put { key: "k", value: "v" }).await.expect("put");
        disk.set(Mode::Hangs);
        let put = tokio::spawn(async move { handle.ask(Request::Put { key: "last", value: "v" }).await });
        until("the sync hangs", async || disk.hangs()).await;
        let stop = tokio::spawn(site.stop());
        tokio::time::sleep(QUIET).await;
        assert!(!stop.is_finished(), "it waits for the disk");
        disk.set(Mode::Works);
        stop.await.expect("no panic");
        // Whether the answer got out before the stop or not: what it says is true.
        assert!(matches!(put.await.expect("no panic"), Ok(_) | Err(Rejected::Stopped)));
        assert_eq!(disk.0.engine.unsynced_bytes(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_actor_is_reported_and_leaves_nobody_waiting() {
    for service in SERVICES {
        let (configs, mut ports) = configure(&["a"], None).await;
        let site = start_as(service, &configs[0], ports.remove(0), MemoryEngine::new());
        assert_eq!(site.handle().ask(Request::Panic).await, Err(Rejected::Stopped));
        let reason = site.status().failure().wait().await;
        assert_eq!(reason, format!("{} panicked: an error in Rhumb, please report it with the log", service.actor()));
        site.stop().await;
    }
}
