//! What several experiments share: curves over the number of clients, and how much one is below another.

use super::super::form::Form;
use super::super::lab::Lab;
use super::super::run::Run;
use crate::experiment::{Chart, Failure, Progress, Sheet, ratio};

/// A figure of every form by the number of clients, as a table and as a chart.
pub(super) fn by_clients(
    lab: &mut Lab,
    progress: &mut dyn Progress,
    title: &str,
    unit: &str,
    figure: impl Fn(&Run) -> f64,
) -> Result<(Sheet, Chart), Failure> {
    let columns: Vec<String> = lab.clients().iter().map(|clients| format!("{clients} clients")).collect();
    let columns: Vec<&str> = std::iter::once("form").chain(columns.iter().map(String::as_str)).collect();
    let mut sheet = Sheet::new(format!("{title} ({unit})"), &columns);
    let mut chart = Chart::new(title, "clients", unit);
    for form in Form::ALL {
        let mut points = Vec::new();
        for &clients in lab.clients() {
            let setup = lab.setup(form, clients);
            points.push((clients as f64, figure(&*lab.run(&setup, progress)?)));
        }
        sheet.row(std::iter::once(form.name()).chain(points.iter().map(|(_, y)| format!("{y:.2}"))));
        chart.line(form.name(), points);
    }
    Ok((sheet, chart))
}

/// By how many per cent `to` is below `from`.
pub(super) fn lower(from: f64, to: f64) -> f64 {
    100.0 * ratio(from - to, from)
}
