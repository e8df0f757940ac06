//! Figure 9: abort rates by the number of clients; and what hangs on the skew of the keys, which the paper does not give.

use super::super::form::Form;
use super::super::lab::Lab;
use super::super::meter::Counts;
use super::super::parameters::{CLIENTS_BEFORE_THROTTLING, REGIONS, SKEW_CENTI, SKEW_OF_YCSB_CENTI};
use super::super::run::{Run, Setup};
use super::common::{by_clients, lower};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, percent, ratio};

/// By how many per cent handoff is to lower abort rates, at least.
const LOWER_MIN: f64 = 25.0;
/// What abort rates are to stay below, in per cent.
const RATE_MAX: f64 = 1.0;
/// Skews in hundredths, and forms that are run with each.
const SKEWS: [u32; 4] = [0, SKEW_CENTI, 60, SKEW_OF_YCSB_CENTI];
const SKEWED: [Form; 4] = [Form::MAJ0, Form::MAJ0H, Form::MAJ2, Form::MAJ2H];
/// Why transactions are aborted, as sites count it, and in words.
const CAUSES: [(&str, &str); 4] = [
    ("commit.aborted_stale", "read is old"),
    ("commit.aborted_locked", "locked"),
    ("commit.aborted_lock_lost", "read lock lost"),
    ("commit.aborted_timestamp_too_low", "timestamp too low"),
];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let (sheet, chart) = by_clients(lab, progress, "Abort rate", "% of transactions", rate)?;
    let mut outcome = Outcome { sheets: vec![sheet], charts: vec![chart], ..Outcome::default() };
    let mut totals = Vec::new();
    for form in Form::ALL {
        totals.push((form, Totals::of(form, lab, progress)?));
    }
    outcome.sheets.push(breakdown(&totals));
    by_skew(lab, progress, &mut outcome)?;

    let find = |form| &totals.iter().find(|(known, _)| *known == form).expect("all forms ran").1;
    let highest = Form::PAIRS.concat().into_iter().map(|form| find(form).highest).fold(0.0, f64::max);
    outcome.findings.push(Finding::at_most("abort rate of the six forms, at the most", "below 1 %", highest, RATE_MAX, " %"));
    for [without, with] in Form::PAIRS {
        let what = format!("abort rate: {} below {}", with.name(), without.name());
        let of = |figure: &dyn Fn(&Totals) -> f64| lower(figure(find(without)), figure(find(with)));
        outcome.findings.push(Finding::at_least(&what, "25-30 %", of(&Totals::rate), LOWER_MIN, " %"));
        outcome.findings.push(Finding::plain(format!("{what}, each region counted once"), "", format!("{:.2} %", of(&Totals::normalized))));
        let locked = |totals: &Totals| totals.cause("commit.aborted_locked") * totals.rate();
        outcome.findings.push(Finding::plain(format!("{what}, for locks alone"), "", format!("{:.2} %", of(&locked))));
    }
    let more = ratio(find(Form::MAJ2).rate(), find(Form::MAJ0).rate());
    outcome.findings.push(Finding::plain("abort rate: Maj2 over Maj0", "up to 2×", format!("{more:.2}×")));
    outcome.note(
        "Rates that are compared are of the runs with all numbers of clients together. Handoff shortens how long a transaction holds \
         locks, not how old its reads are when they are validated.",
    );
    Ok(outcome)
}

/// The abort rate of a run, in per cent.
fn rate(run: &Run) -> f64 {
    100.0 * run.meter.abort_rate()
}

/// The runs of a form with all numbers of clients.
struct Totals {
    regions: [Counts; REGIONS.len()],
    causes: Vec<u64>,
    all_causes: u64,
    /// The highest rate of a run, in per cent.
    highest: f64,
}

impl Totals {
    fn of(form: Form, lab: &mut Lab, progress: &mut dyn Progress) -> Result<Totals, Failure> {
        let mut totals = Totals { regions: Default::default(), causes: vec![0; CAUSES.len()], all_causes: 0, highest: 0.0 };
        for &clients in lab.clients() {
            let run = lab.run(&lab.setup(form, clients), progress)?;
            for (total, counts) in totals.regions.iter_mut().zip(&run.meter.regions) {
                total.committed += counts.committed;
                total.aborted += counts.aborted;
            }
            for (total, (event, _)) in totals.causes.iter_mut().zip(CAUSES) {
                *total += run.probe(event);
            }
            totals.all_causes +=
                run.probes.iter().filter(|(event, _)| event.starts_with("commit.aborted_")).map(|(_, count)| count).sum::<u64>();
            totals.highest = totals.highest.max(rate(&run));
        }
        Ok(totals)
    }

    /// The share of transactions aborted, in per cent.
    fn rate(&self) -> f64 {
        let aborted: u64 = self.regions.iter().map(|counts| counts.aborted).sum();
        let committed: u64 = self.regions.iter().map(|counts| counts.committed).sum();
        100.0 * ratio(aborted as f64, (aborted + committed) as f64)
    }

    /// The mean of the regions' rates, in per cent.
    fn normalized(&self) -> f64 {
        100.0 * self.regions.iter().map(Counts::abort_rate).sum::<f64>() / REGIONS.len() as f64
    }

    /// The share of aborted commits that `event` counts.
    fn cause(&self, event: &str) -> f64 {
        let place = CAUSES.iter().position(|(known, _)| *known == event).expect("one of the causes");
        ratio(self.causes[place] as f64, self.all_causes as f64)
    }
}

/// Rates by region, and causes.
fn breakdown(totals: &[(Form, Totals)]) -> Sheet {
    let columns: Vec<&str> = ["form", "all %"].into_iter().chain(REGIONS).chain(CAUSES.map(|(_, cause)| cause)).collect();
    let mut sheet = Sheet::new("Abort rate of all runs together, by region (%), and why commits were aborted", &columns);
    for (form, totals) in totals {
        let regions = totals.regions.iter().map(|counts| format!("{:.2}", 100.0 * counts.abort_rate()));
        let causes = CAUSES.map(|(event, _)| percent(totals.cause(event)));
        sheet.row([form.name(), format!("{:.2}", totals.rate())].into_iter().chain(regions).chain(causes));
    }
    sheet
}

/// What hangs on the skew.
fn by_skew(lab: &mut Lab, progress: &mut dyn Progress, outcome: &mut Outcome) -> Result<(), Failure> {
    let title = format!("Abort rate by skew, {CLIENTS_BEFORE_THROTTLING} clients");
    let columns: Vec<String> = SKEWS.iter().map(|skew| format!("skew {:.2}", f64::from(*skew) / 100.0)).collect();
    let columns: Vec<&str> = std::iter::once("form").chain(columns.iter().map(String::as_str)).collect();
    let mut sheet = Sheet::new(format!("{title} (%)"), &columns);
    let mut chart = Chart::new(&title, "skew of the keys", "% of transactions");
    for form in SKEWED {
        let mut points = Vec::new();
        for skew_centi in SKEWS {
            let setup = Setup { skew_centi, ..lab.setup(form, CLIENTS_BEFORE_THROTTLING) };
            points.push((f64::from(skew_centi) / 100.0, rate(&*lab.run(&setup, progress)?)));
        }
        sheet.row(std::iter::once(form.name()).chain(points.iter().map(|(_, y)| format!("{y:.2}"))));
        chart.line(form.name(), points);
    }
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(())
}
