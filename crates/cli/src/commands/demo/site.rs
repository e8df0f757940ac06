//! One site of the demo: a child process that is started, killed, started again, and asked to stop.
//!
//! The demo holds the other end of the child's standard input; when that closes, for whatever reason, the child stops. So
//! no site outlives its demo, even one that is killed. Children are in process groups of their own: Ctrl-C reaches the
//! demo alone, which then stops them in order.

use super::error::{DemoError, file};
use super::folder::SitePlan;
use std::ffi::OsString;
use std::fs::File;
use std::future::pending;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, ChildStdin, Command};

/// How much of the end of a log is shown.
const LAST_WORDS_BYTES: u64 = 4_096;
const LAST_WORDS_LINES: usize = 12;

/// One site of the demo.
pub struct Site {
    /// Where it is.
    pub plan: SitePlan,
    process: Option<Process>,
}

struct Process {
    child: Child,
    /// Closed to ask the site to stop.
    stdin: Option<ChildStdin>,
}

impl Site {
    /// The site of `plan`, not yet started.
    pub fn new(plan: SitePlan) -> Site {
        Site { plan, process: None }
    }

    /// Starts its process, `rhumb start` of the same executable.
    pub fn start(&mut self, executable: &OsString) -> Result<(), DemoError> {
        let log = File::options().create(true).append(true).open(&self.plan.log).map_err(file("cannot write the log", &self.plan.log))?;
        let errors = log.try_clone().map_err(file("cannot write the log", &self.plan.log))?;
        let mut child = Command::new(executable)
            .arg("start")
            .arg("--config")
            .arg(&self.plan.config)
            .arg("--exit-with-stdin")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|reason| DemoError::System { doing: "cannot start a site's process", reason })?;
        let stdin = child.stdin.take();
        self.process = Some(Process { child, stdin });
        Ok(())
    }

    /// Its process, while it lives.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().and_then(|process| process.child.id())
    }

    /// Waits until its process ends; forever if there is none. Dropping the future loses nothing.
    pub async fn ended(&mut self) -> ExitStatus {
        let Some(process) = &mut self.process else { return pending().await };
        match process.child.wait().await {
            Ok(status) => {
                self.process = None;
                status
            }
            // Only if somebody else has collected the child, which nobody does.
            Err(_) => pending().await,
        }
    }

    /// Kills its process as `kill -9` does, and waits until it is gone.
    pub async fn kill(&mut self) -> io::Result<()> {
        if let Some(process) = &mut self.process {
            process.child.kill().await?;
            self.process = None;
        }
        Ok(())
    }

    /// Asks its process to stop in order.
    pub fn ask_to_stop(&mut self) {
        if let Some(process) = &mut self.process {
            process.stdin = None;
        }
    }

    /// The last lines of its log, indented.
    pub fn last_words(&self) -> String {
        last_lines(&self.plan.log).unwrap_or_else(|error| format!("  (the log cannot be read: {error})"))
    }
}

fn last_lines(path: &Path) -> io::Result<String> {
    let mut log = File::open(path)?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES)))?;
    let mut bytes = Vec::new();
    log.take(LAST_WORDS_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LAST_WORDS_LINES)..];
    Ok(shown.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_long_log_are_its_last_lines() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text: String = (0..2_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(file.path(), text).expect("written");
        let shown = last_lines(file.path()).expect("read");
        let expected: Vec<String> = (1_988..2_000).map(|n| format!("  line {n}")).collect();
        assert_eq!(shown, expected.join("\n"));
    }
}
