//! A site whose machine shows a wrong time: started over the folder of a killed one, with a library before the system's that adds an hour.
//!
//! Its peers contradict it, so it must not serve; and whatever it says must not take their clocks along.

use crate::cluster::Cluster;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const AHEAD_S: u64 = 3_600;
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *out) {
    static int (*system_clock)(clockid_t, struct timespec *);
    if (!system_clock) system_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = system_clock(id, out);
    if (!failed && id == CLOCK_REALTIME) out->tv_sec += AHEAD_S;
    return failed;
}
"#;

/// The library, if there is a compiler that makes it.
pub struct WrongClock {
    library: Option<PathBuf>,
    _folder: TempDir,
}

impl WrongClock {
    /// Makes it.
    pub fn make() -> WrongClock {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, library) = (folder.path().join("clock.c"), folder.path().join("clock.so"));
        std::fs::write(&source, SOURCE).expect("written");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", &format!("-DAHEAD_S={AHEAD_S}"), "-o"]).args([&library, &source]).arg("-ldl");
        let made = compiler.status().is_ok_and(|status| status.success());
        if !made {
            println!("no C compiler makes a library that sets the clock wrong: that fault is only a kill");
        }
        WrongClock { library: made.then_some(library), _folder: folder }
    }

    /// Starts the killed site of `region` with a wrong clock. `None` without the library.
    pub fn start(&self, cluster: &Cluster, region: usize) -> Option<WrongSite> {
        let library = self.library.as_ref()?;
        let log = File::options().append(true).open(cluster.log(region)).expect("the site wrote it");
        let process = Command::new(env!("CARGO_BIN_EXE_rhumb"))
            .args(["start".as_ref(), "--config".as_ref(), cluster.config(region).as_os_str()])
            .env("LD_PRELOAD", library)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("the binary runs");
        Some(WrongSite(process))
    }
}

/// A site with a wrong clock.
pub struct WrongSite(Child);

impl WrongSite {
    /// Ends it. An error if it serves.
    pub fn end(mut self, cluster: &Cluster, region: usize) -> Result<(), String> {
        match cluster.get(region, "/readyz") {
            Ok((200, _)) => Err(format!("it is ready with a clock that is {AHEAD_S} s ahead")),
            Ok((_, reason)) if !reason.contains("clock") => Err(format!("with a clock that is {AHEAD_S} s ahead it says: {reason}")),
            // It may have given up already, or be slow to start.
            Ok(_) | Err(_) => self.0.try_wait().map(|_| ()).map_err(|error| error.to_string()),
        }
    }
}

impl Drop for WrongSite {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
