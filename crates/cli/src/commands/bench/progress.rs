//! A benchmark's progress as a bar on standard error; nothing if that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use rhumb_bench::{Progress, Pulse, Unit};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The exit code of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The bar of the current stage.
pub struct Bar {
    current: Mutex<ProgressBar>,
    stop: Arc<AtomicBool>,
}

impl Bar {
    /// Nothing to show yet.
    pub fn new() -> Bar {
        Bar { current: Mutex::new(ProgressBar::hidden()), stop: Arc::default() }
    }

    /// One that turns the first Ctrl-C into the wish to stop and report; a second one ends the process. Within a tokio
    /// runtime.
    pub fn stoppable() -> Bar {
        let bar = Bar::new();
        let stop = Arc::clone(&bar.stop);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if stop.swap(true, Ordering::Relaxed) {
                    exit(INTERRUPTED);
                }
            }
        });
        bar
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.current().finish_and_clear();
    }

    fn current(&self) -> MutexGuard<'_, ProgressBar> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Bar {
    fn stage(&self, name: &str, total: u64, unit: Unit) {
        let template = match unit {
            Unit::Rows => "{prefix:11} {bar:30} {human_pos}/{human_len} rows, {per_sec}, {eta} left",
            Unit::Milliseconds => "{prefix:11} {bar:30} {elapsed}  {wide_msg}",
            Unit::Transactions => "{prefix:11} {bar:30} {human_pos}/{human_len} transactions  {wide_msg}",
            Unit::Conditions => "{prefix:11} {bar:30} {pos}/{len} conditions",
        };
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        let mut current = self.current();
        current.finish_and_clear();
        *current = ProgressBar::new(total).with_style(style).with_prefix(name.to_owned());
    }

    fn position(&self, done: u64) {
        self.current().set_position(done);
    }

    fn pulse(&self, pulse: &Pulse) {
        let Pulse { per_second, p50_ms, aborted, unknown, .. } = pulse;
        self.current().set_message(format!("{per_second:.0} txn/s, p50 {p50_ms:.1} ms, {aborted} aborts, {unknown} unknown"));
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
