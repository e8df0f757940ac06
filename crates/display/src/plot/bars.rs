//! A grouped bar chart: for each group a bar of every series, each with a mark to hold it against, if there is one.

use super::axis::{Ends, Ruler, Scale, check, number};
use super::canvas::{Area, Drawn, GAP, INK, LINE_HEIGHT, SERIES_MAX, Swatch, TEXT_SIZE, colour, page, stroke, text, units, width};
use super::error::PlotError;
use super::frame::{Frame, Side, bounds, frame};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Ticks wanted up the axis.
const TICKS: usize = 6;
/// The share of a group's width that its bars take.
const GROUP_FILL: f64 = 0.76;
/// What a mark sticks out on either side, as a share of a bar's width.
const MARK_OVERHANG: f64 = 0.06;
/// Values are written over the bars where there are no more bars than this.
const VALUES_MAX: usize = 24;
/// Lines that the name of a group may take.
const NAME_LINES_MAX: usize = 3;

/// A bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// How high it is; no bar without.
    pub value: Option<f64>,
    /// What to hold it against.
    pub mark: Option<f64>,
}

/// The bars of a series, one for each group.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What the legend calls it.
    pub name: String,
    /// In the order of the groups.
    pub bars: Vec<Bar>,
}

/// A chart of groups of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// The quantity with its unit.
    pub y: String,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// At most [`SERIES_MAX`].
    pub series: Vec<Bars>,
    /// What the legend calls the marks: `paper`.
    pub mark: String,
    /// Digits after the point of the values written over the bars.
    pub decimals: usize,
}

impl BarChart {
    /// The chart as an SVG document.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        self.check()?;
        let y = Ruler::spanning(Scale::Linear, self.values().map(|(_, _, value)| value), Ends::Round, TICKS);
        let mut legend: Vec<(Swatch, &str)> =
            self.series.iter().enumerate().map(|(index, series)| (Swatch::Bar(colour(index)), series.name.as_str())).collect();
        if self.bars().any(|bar| bar.mark.is_some()) {
            legend.push((Swatch::Mark, &self.mark));
        }
        Ok(page(&self.title, &legend, |area| self.draw(area, y)))
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.series.iter().flat_map(|series| &series.bars)
    }

    /// All values and marks, with their series and the number of their group.
    fn values(&self) -> impl Iterator<Item = (&str, usize, f64)> {
        self.series.iter().flat_map(|series| {
            let both = series.bars.iter().enumerate();
            both.flat_map(move |(index, bar)| {
                [bar.value, bar.mark].into_iter().flatten().map(move |value| (series.name.as_str(), index + 1, value))
            })
        })
    }

    fn check(&self) -> Result<(), PlotError> {
        if self.series.len() > SERIES_MAX {
            return Err(PlotError::TooManySeries { found: self.series.len() });
        }
        for Bars { name, bars } in &self.series {
            if bars.len() != self.groups.len() {
                return Err(PlotError::Groups { series: name.clone(), found: bars.len(), groups: self.groups.len() });
            }
        }
        if self.bars().all(|bar| bar.value.is_none()) {
            return Err(PlotError::Empty { title: self.title.clone() });
        }
        self.values().try_for_each(|(series, point, value)| check(series, point, value, Scale::Linear))
    }

    fn draw(&self, area: &Area<'_>, y: Ruler) -> Drawn {
        let groups = Side(Ruler::groups(self.groups.len()), "");
        let mut chart = frame(area, groups, Side(y, &self.y), GAP, NAME_LINES_MAX as f64 * LINE_HEIGHT + GAP)?;
        let wide = GROUP_FILL / self.series.len() as f64;
        for (number, series) in self.series.iter().enumerate() {
            for (group, bar) in series.bars.iter().enumerate() {
                let left = group as f64 + (1.0 - GROUP_FILL) / 2.0 + wide * number as f64;
                self.draw_bar(&mut chart, bar, (left, left + wide), colour(number))?;
            }
        }
        chart.draw_series([PathElement::new([(0.0, 0.0), (self.groups.len() as f64, 0.0)], stroke(INK, 1.0))])?;
        self.draw_names(area, &chart)
    }

    fn draw_bar(&self, chart: &mut Frame<'_, '_>, bar: &Bar, (left, right): (f64, f64), colour: RGBColor) -> Drawn {
        let space = (right - left) * MARK_OVERHANG;
        if let Some(value) = bar.value {
            chart.draw_series([Rectangle::new([(left + space, 0.0), (right - space, value)], colour.filled())])?;
            if self.bars().count() <= VALUES_MAX {
                let anchor = if value < 0.0 { VPos::Top } else { VPos::Bottom };
                let label = Text::new(number(value, self.decimals), ((left + right) / 2.0, value), text(TEXT_SIZE, HPos::Center, anchor));
                chart.draw_series([label])?;
            }
        }
        if let Some(mark) = bar.mark {
            let across = [(left - space, mark), (right + space, mark)];
            // The edge keeps the mark apart from the bar behind it.
            chart.draw_series([PathElement::new(across, stroke(WHITE, 5.0)), PathElement::new(across, stroke(INK, 3.0))])?;
        }
        Ok(())
    }

    fn draw_names(&self, area: &Area<'_>, chart: &Frame<'_, '_>) -> Drawn {
        let ((left, right), (_, bottom)) = bounds(area, chart);
        let each = f64::from(right - left) / self.groups.len() as f64;
        let characters = (each / f64::from(units(width(1)))) as usize;
        for (group, name) in self.groups.iter().enumerate() {
            let middle = left + (each * (group as f64 + 0.5)) as i32;
            for (row, line) in wrapped(name, characters.max(1)).into_iter().enumerate() {
                let top = bottom + units(GAP + row as f64 * LINE_HEIGHT);
                area.draw(&Text::new(line, (middle, top), text(TEXT_SIZE, HPos::Center, VPos::Top)))?;
            }
        }
        Ok(())
    }
}

/// A name broken at its spaces into lines of `characters`; what goes beyond the last line is cut, and says so.
fn wrapped(name: &str, characters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters => *line = format!("{line} {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > NAME_LINES_MAX {
        lines.truncate(NAME_LINES_MAX);
        lines[NAME_LINES_MAX - 1].push('…');
    }
    for line in lines.iter_mut().filter(|line| line.chars().count() > characters) {
        *line = line.chars().take(characters - 1).chain(['…']).collect();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn names_are_broken_at_spaces_and_cut_where_they_do_not_fit() {
        assert_eq!(wrapped("ARIMA(3,0,3) season 336", 14), ["ARIMA(3,0,3)", "season 336"]);
        assert_eq!(wrapped("a b c", 1), ["a", "b", "c"]);
        assert_eq!(wrapped("a b c d", 3), ["a b", "c d"]);
        assert_eq!(wrapped("aa bb cc dd", 3), ["aa", "bb", "cc…"]);
        assert_eq!(wrapped("unpronounceable", 6), ["unpro…"]);
        assert_eq!(wrapped("", 6), Vec::<String>::new());
    }
}
