//! `rhumb lab`: the experiments of published evaluations, repeated in virtual time.

use super::fail;
use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressStyle};
use rhumb_core::Span;
use rhumb_lab::Output;
use rhumb_lab::forecast::{self, Watch};
use rhumb_lab::samya::{EXPERIMENTS, Lab, Options, Outcome, Progress, experiment, table4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// `list` and `samya` are no experiments.
const LIST: &str = "list";
const SAMYA: &str = "samya";
/// Quick runs are so many times shorter.
const QUICK: usize = 12;

/// Repeat the experiments of published evaluations in virtual time, each figure beside the paper's.
///
/// The sites run the same code as a cluster does, in the simulator: the same seed gives the same figures on every machine.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb lab list                                 what there is
  rhumb lab samya-table6 --quick                 a twelfth of the time, and other figures
  rhumb lab samya-figure9 samya-table6 --out lab the same runs for both; CSV and SVG go to the folder lab
  rhumb lab samya --all --seed 7 --out lab       all of Samya's evaluation; several minutes for each experiment

Exit code 0: done, whether or not a figure is as good as the paper's; 1: an experiment failed; 2: there is no such experiment."
)]
pub struct Args {
    /// Experiments by name; `list` names them; `samya` with --all is all of them.
    #[arg(value_name = "EXPERIMENT", required = true)]
    what: Vec<String>,
    /// All experiments of an evaluation.
    #[arg(long)]
    all: bool,
    /// Decides all that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs twelve times shorter than the paper's: to see that all works, not for its figures.
    #[arg(long)]
    quick: bool,
    /// Write tables as CSV and charts as SVG into this folder, made if need be.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs what was asked for.
pub fn run(args: &Args) -> ExitCode {
    if args.what == [LIST] {
        print!("{}", list());
        return ExitCode::SUCCESS;
    }
    match names(args).map_err(|why| (why, 2)).and_then(|names| run_all(&names, args).map_err(|why| (why, 1))) {
        Ok(()) => ExitCode::SUCCESS,
        Err((why, code)) => fail(why, code),
    }
}

/// Names and titles of all experiments, in the order of the paper.
fn catalogue() -> Vec<(&'static str, &'static str)> {
    std::iter::once((table4::NAME, table4::TITLE)).chain(EXPERIMENTS.iter().map(|it| (it.name, it.title))).collect()
}

fn list() -> String {
    let width = catalogue().iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    catalogue().iter().map(|(name, title)| format!("{name:<width$}  {title}\n")).collect()
}

/// The experiments asked for.
fn names(args: &Args) -> Result<Vec<&'static str>, String> {
    let mut names = Vec::new();
    for wanted in &args.what {
        match catalogue().into_iter().find(|(name, _)| name == wanted) {
            Some((name, _)) => names.push(name),
            None if wanted == SAMYA && args.all => names.extend(catalogue().into_iter().map(|(name, _)| name)),
            None if wanted == SAMYA => return Err("`rhumb lab samya --all` runs all experiments; `rhumb lab list` names them".to_owned()),
            None => return Err(format!("there is no experiment `{wanted}`; `rhumb lab list` names those that there are")),
        }
    }
    Ok(names)
}

fn run_all(names: &[&str], args: &Args) -> Result<(), String> {
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    }
    let options = Options { seed: args.seed, shorter: if args.quick { QUICK } else { 1 } };
    let mut lab = Lab::new(options, None);
    for (number, name) in names.iter().enumerate() {
        let begun = Instant::now();
        let mut bar = Bar::new(format!("[{}/{}] {name}", number + 1, names.len()));
        let outcome = match experiment(name) {
            Some(it) => (it.run)(&mut lab, &mut bar).map_err(|error| error.to_string()),
            None => table4::run(args.seed, &mut bar).map_err(|error| error.to_string()),
        };
        bar.bar.finish_and_clear();
        let outcome = outcome.map_err(|why| format!("{name}: {why}"))?;
        let title = catalogue().into_iter().find(|(known, _)| known == name).map_or("", |(_, title)| title);
        let shorter = if args.quick { format!(", {QUICK} times shorter than the paper's") } else { String::new() };
        println!("{name} · {title} · seed {}{shorter} · {:.0} s\n\n{outcome}", args.seed, begun.elapsed().as_secs_f64());
        if let Some(folder) = &args.out {
            write(name, &outcome, folder)?;
        }
    }
    Ok(())
}

fn write(name: &str, outcome: &Outcome, folder: &Path) -> Result<(), String> {
    for file in outcome.files(name).map_err(|error| format!("{name}: {error}"))? {
        let path = folder.join(file.name);
        let unwritable = |error: std::io::Error| format!("{}: cannot be written: {error}", path.display());
        Output::at(&path).map_err(unwritable)?.write(file.text.as_bytes()).map_err(unwritable)?;
        println!("written to {}", path.display());
    }
    println!();
    Ok(())
}

/// An experiment as a bar on standard error; nothing if that is no terminal.
struct Bar {
    bar: ProgressBar,
    name: String,
}

impl Bar {
    fn new(name: String) -> Bar {
        let style = ProgressStyle::with_template("{prefix} {bar:30} {percent} %{msg}, {elapsed}").expect("the template is well-formed");
        let bar = ProgressBar::new(1).with_style(style).with_prefix(name.clone());
        Bar { bar, name }
    }

    fn stage(&self, what: &str, length: u64) {
        self.bar.set_prefix(format!("{}: {what}", self.name));
        self.bar.set_length(length);
        self.bar.set_position(0);
        self.bar.tick();
    }
}

impl Progress for Bar {
    fn begin(&mut self, run: &str, length: Span) {
        self.stage(run, length.as_micros());
    }

    fn passed(&mut self, passed: Span) {
        self.bar.set_position(passed.as_micros());
    }
}

impl Watch for Bar {
    fn begin(&mut self, what: &str, _: usize, _: usize) {
        self.stage(what, 1);
    }

    fn passed(&mut self, forecast::Progress { done, total, .. }: forecast::Progress) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }
}
