//! `rhumb plan apply`: brings a running cluster to the placement that a plan proposes, step by step, while clients run.
//!
//! Which step comes next follows from where the cluster stands ([`Course`]), and from nothing kept here. So whatever ends this
//! command, running it again goes on.
//!
//! ```text
//!   look ──▶ not settled: wait ──▶ look            refused, as long as a copy is not whole: wait ──▶ look
//!        └──▶ POST the next step ──▶ decided: look  no answer, or outcome unknown: wait ──▶ look
//! ```

use super::Failure;
use super::live::{Live, PATH, change, layout};
use super::usage;
use crate::commands::{fail, runtime};
use crate::http;
use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use rhumb_api::placement::{Placement, PlacementChange, PlacementStatus};
use rhumb_plan::Layout;
use rhumb_plan::layout::course::{Course, Next, Standing};
use rhumb_plan::layout::{Role, RoleChange};
use rhumb_plan::report::change::Planned;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long one step may take before this gives up. It is for the slowest: a region that copies all rows.
const STEP_MAX: Duration = Duration::from_secs(3_600);
/// How long the site may leave every question unanswered, or a majority be out of its reach, before this gives up.
const TROUBLE_MAX: Duration = Duration::from_secs(30);
/// The wait before looking again.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Longer than a site lets a commit take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);
/// The exit code if Ctrl-C ended it.
const INTERRUPTED: u8 = 130;
/// Longer files are no plans.
const PLAN_BYTES_MAX: u64 = 4 << 20;

/// Bring a running cluster to the placement that a plan proposes, while clients run.
///
/// FILE is what `rhumb plan --from URL --save FILE` wrote; what was shown then is what is done now. First the regions that are to
/// hold a copy become passive and copy all rows; once these are whole the new active regions take over, and reads and commits go
/// to the new coordinators; last, regions that are not needed any more leave. Commits wait for a few round trips at each step;
/// none fails for it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  rhumb plan --from http://127.0.0.1:8080 --faults 1 --save plan.json
  rhumb plan apply plan.json                               shows what will change, asks, and does it
  rhumb plan apply plan.json --yes                         without asking
  rhumb plan apply plan.json --to http://127.0.0.1:8083    by way of another site of the cluster

It may be interrupted at any time: the cluster serves at every step. Run the same again and it goes
on from there; where nothing is left to do it says so. A plan whose cluster somebody else has changed
since is refused.
Exit code 0: the placement is as planned; 1: not, or not yet; the message says where it stands;
2: asked wrongly, or the plan does not fit the cluster, and nothing was done; 130: interrupted.")]
pub struct Args {
    /// The plan: a file of `rhumb plan --from URL --save FILE`.
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// By way of the site with this HTTP address [default: the one that the plan was made from].
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

/// Brings it about.
pub fn run(args: &Args) -> ExitCode {
    match apply(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err((line, code)) => fail(line, code),
    }
}

fn apply(args: &Args) -> Result<(), Failure> {
    let planned = read(&args.plan)?;
    let course = Course::new(&planned.now, &planned.proposed);
    let url = args.to.as_deref().unwrap_or(&planned.from);
    let runtime = runtime()?;
    let live = runtime.block_on(Live::look(url)).map_err(|why| (format!("{why}; nothing was done"), 1))?;
    let present = live.layout();
    let Some(done) = course.done(&present) else {
        return Err(usage(format!("{}; nothing was done", stray(&live.shown))));
    };
    if done < course.steps() {
        print!("{}", preview(&course, done, &present, &live));
        confirm(args.yes)?;
    }
    let mut moving = Moving { course: &course, url: &live.url, decided: 0, told: done, bar: spinner() };
    runtime
        .block_on(async {
            tokio::select! {
                arrived = moving.go() => arrived,
                _ = tokio::signal::ctrl_c() => Err(("interrupted".to_owned(), INTERRUPTED)),
            }
        })
        .map_err(|(why, code)| {
            moving.bar.finish_and_clear();
            (format!("{why}; {}", moving.standing()), code)
        })
}

/// The plan in the file at `path`.
fn read(path: &Path) -> Result<Planned, Failure> {
    let name = path.display();
    let unreadable = |error: io::Error| usage(format!("{name}: cannot be read: {error}"));
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > PLAN_BYTES_MAX {
        return Err(usage(format!("{name}: is no plan: it has {length} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let how = "`rhumb plan --from URL --save FILE` writes one";
    serde_json::from_str(&text).map_err(|error| usage(format!("{name}: is no plan for a running cluster ({error}); {how}")))
}

fn stray(shown: &PlacementStatus) -> String {
    let epoch = shown.placement.epoch;
    let present = layout(&shown.placement);
    format!("the placement of epoch {epoch} ({present}) is not one that the plan was made for or leads through: plan again")
}

/// What is left to do.
fn preview(course: &Course, done: usize, present: &Layout, live: &Live) -> String {
    let mut text = format!("{} is in epoch {}: {present}\n", live.url, live.shown.placement.epoch);
    if done > 0 {
        text += &format!("{done} of {} steps are done already\n", course.steps());
    }
    for (index, (before, after)) in course.legs().enumerate().skip(done) {
        text += &format!("  {}. {}\n", index + 1, describe(before, after));
    }
    text
}

/// A step in words.
fn describe(before: &Layout, after: &Layout) -> String {
    let changes = before.changes(after);
    let to = |role: Role| {
        let names = changes.iter().filter(|change| change.to == role).map(|RoleChange { region, .. }| region.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let told = [(Role::Passive, "passive"), (Role::Active, "active"), (Role::None, "to leave")];
    let mut parts: Vec<String> = told
        .into_iter()
        .filter(|(role, _)| changes.iter().any(|change| change.to == *role))
        .map(|(role, how)| format!("{how}: {}", to(role)))
        .collect();
    if before.coordinators != after.coordinators {
        let regions: std::collections::BTreeSet<&String> = before.coordinators.keys().chain(after.coordinators.keys()).collect();
        let moved = regions.into_iter().filter(|region| before.coordinators.get(*region) != after.coordinators.get(*region));
        parts.push(format!("other coordinators: {}", moved.map(String::as_str).collect::<Vec<_>>().join(", ")));
    }
    parts.join("; ")
}

/// Asks whether to go on.
fn confirm(yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(usage("there is no terminal to ask at: give --yes to go ahead; nothing was done"));
    }
    eprint!("Go ahead? [y/N] ");
    let mut line = String::new();
    let answered = io::stderr().flush().and_then(|()| io::stdin().read_line(&mut line));
    match (answered, line.trim().to_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(("nothing was done".to_owned(), 1)),
    }
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {wide_msg}").expect("the template is well-formed");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// A cluster on its way.
struct Moving<'m> {
    course: &'m Course,
    url: &'m str,
    /// The epoch of the last step that was decided, as far as known.
    decided: u64,
    /// Steps that are done and told.
    told: usize,
    bar: ProgressBar,
}

/// What came of one look, and of one attempt at the next step.
enum Came {
    /// The cluster is there.
    Arrived,
    /// The next step is decided, in this epoch.
    Decided(u64),
    /// Not now; the reason.
    NotYet(String),
    /// Nobody knows, or nobody answers; the reason.
    Trouble(String),
}

impl Moving<'_> {
    /// Goes on until the cluster is there.
    async fn go(&mut self) -> Result<(), Failure> {
        let (mut step_begun, mut heard) = (Instant::now(), Instant::now());
        loop {
            let told = self.told;
            let came = self.advance().await?;
            if self.told > told {
                step_begun = Instant::now();
            }
            if !matches!(came, Came::Trouble(_)) {
                heard = Instant::now();
            }
            let why = match came {
                Came::Arrived => return Ok(()),
                Came::Decided(epoch) => {
                    self.decided = epoch;
                    continue;
                }
                Came::NotYet(why) | Came::Trouble(why) => why,
            };
            if heard.elapsed() > TROUBLE_MAX {
                return Err((format!("gave up after {} s: {why}", TROUBLE_MAX.as_secs()), 1));
            }
            if step_begun.elapsed() > STEP_MAX {
                return Err((format!("gave up after {} minutes: {why}", STEP_MAX.as_secs() / 60), 1));
            }
            self.bar.set_message(why);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Looks where the cluster stands, and tries the next step. `Err`: there is no going on.
    async fn advance(&mut self) -> Result<Came, Failure> {
        let live = match Live::look(self.url).await {
            Ok(live) => live,
            Err(why) => return Ok(Came::Trouble(why)),
        };
        self.tell(&live);
        let (present, epoch, settled) = (live.layout(), live.shown.placement.epoch, live.shown.settled);
        match self.course.next(Standing { layout: &present, epoch, settled }, self.decided) {
            Next::Arrived => {
                self.arrive(epoch, &present);
                Ok(Came::Arrived)
            }
            Next::Stray => Err((stray(&live.shown), 1)),
            Next::Wait => Ok(Came::NotYet("the regions take over".to_owned())),
            Next::Go(step, to) => {
                self.bar.set_prefix(format!("step {step} of {}", self.course.steps()));
                let came = post(self.url, &change(epoch, to)).await?;
                Ok(if let Came::NotYet(why) = came { Came::NotYet(with_silent(&live.shown, to, why)) } else { came })
            }
        }
    }

    /// Tells which steps are done by now.
    fn tell(&mut self, live: &Live) {
        let epoch = live.shown.placement.epoch;
        let done = if epoch < self.decided { None } else { self.course.done(&live.layout()) };
        let Some(done) = done.filter(|done| *done > self.told) else { return };
        let legs = self.course.legs().enumerate().take(done).skip(self.told);
        for (index, (before, after)) in legs {
            let line = format!("step {} of {} is decided: {}", index + 1, self.course.steps(), describe(before, after));
            self.bar.suspend(|| println!("{line}"));
        }
        self.told = done;
        self.bar.set_message("");
    }

    fn arrive(&self, epoch: u64, present: &Layout) {
        self.bar.finish_and_clear();
        println!("The placement is as planned, in epoch {epoch}: {present}");
    }

    /// How far it came.
    fn standing(&self) -> String {
        format!("{} of {} steps are done, and the cluster serves; run the same again to go on from there", self.told, self.course.steps())
    }
}

/// Says besides which of the regions that are to vote do not answer: those will not copy anything.
fn with_silent(shown: &PlacementStatus, to: &Layout, why: String) -> String {
    let silent = shown.regions.iter().filter(|region| !region.reachable && to.active.contains(&region.name));
    let silent: Vec<&str> = silent.map(|region| region.name.as_str()).collect();
    if silent.is_empty() { why } else { format!("{why} ({} does not answer)", silent.join(", ")) }
}

/// Has `next` come next. `Err`: it never can.
async fn post(url: &str, next: &PlacementChange) -> Result<Came, Failure> {
    let body = serde_json::to_string(next).expect("names have a form in JSON");
    let answer = match http::ask(url, PATH, Method::POST, body, ANSWER_TIMEOUT).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Came::Trouble(error.to_string())),
    };
    let why = answer.reason();
    match answer.status {
        200 => match serde_json::from_str(&answer.body) {
            Ok(Placement { epoch, .. }) => Ok(Came::Decided(epoch)),
            Err(error) => Ok(Came::Trouble(format!("an answer that is no placement: {error}"))),
        },
        409 => Ok(Came::NotYet(why)),
        500.. => Ok(Came::Trouble(why)),
        _ => Err((format!("the site refuses it: {why}"), 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_plan::layout::Coordinators;

    fn placed(active: &[&str], passive: &[&str]) -> Layout {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Layout { active: set(active), passive: set(passive), ..Layout::default() }
    }

    #[test]
    fn a_step_is_told_by_what_regions_become() {
        let (now, next) = (placed(&["a", "b", "c"], &["d"]), placed(&["a", "d"], &["b"]));
        assert_eq!(describe(&now, &next), "passive: b; active: d; to leave: c");
        let mut handed = now.clone();
        handed.coordinators.insert("z".to_owned(), Coordinators { read: "a".to_owned(), commit: "b".to_owned() });
        assert_eq!(describe(&now, &handed), "other coordinators: z");
    }

    #[test]
    fn a_file_that_is_no_plan_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plan.json");
        let error = || read(&path).expect_err("no plan").0;
        assert!(error().ends_with("plan.json: cannot be read: No such file or directory (os error 2)"));
        std::fs::write(&path, r#"{"replicas": ["a"]}"#).expect("written");
        let how = "`rhumb plan --from URL --save FILE` writes one";
        assert!(error().ends_with(&format!("is no plan for a running cluster (missing field `from` at line 1 column 19); {how}")));
        std::fs::write(&path, r#"{"from": "http://h:1", "now": {"active": ["a"]}, "proposed": {"active": ["b"]}, "more": 1}"#)
            .expect("written");
        let planned = read(&path).expect("a plan");
        assert_eq!((planned.now, planned.proposed), (placed(&["a"], &[]), placed(&["b"], &[])));
    }
}
