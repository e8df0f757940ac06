//! A line chart: named series of points over a common axis, and references to hold them against.

use super::axis::{Axis, Ends, Ruler, check};
use super::canvas::{Area, Drawn, GAP, INK, LINE_HEIGHT, SERIES_MAX, Swatch, TEXT_SIZE, colour, page, stroke, text, units, width};
use super::error::PlotError;
use super::frame::{Frame, Side, bounds, frame};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Ticks wanted along and up.
const TICKS: (usize, usize) = (8, 6);
const LINE_WIDTH: f64 = 2.0;
/// Points are marked each where a line has no more than this.
const MARKED_MAX: usize = 30;
const POINT_RADIUS: f64 = 3.5;
/// Where there are many points.
const CLOUD_RADIUS: f64 = 1.5;
const DASH: f64 = 6.0;
/// Room below the plot for ticks and the label of the axis.
const BELOW: f64 = 48.0;

/// Points, joined in their order or each by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// `(x, y)`
    pub points: Vec<(f64, f64)>,
    /// False for points that stand each by itself.
    pub joined: bool,
}

/// A horizontal line to hold the others against.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// What is written beside it: `paper: 0.43`.
    pub label: String,
    /// Its height.
    pub y: f64,
}

/// A chart of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// What it shows.
    pub title: String,
    /// The axis along.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
    /// At most [`SERIES_MAX`].
    pub lines: Vec<Line>,
    /// References, if any.
    pub references: Vec<Reference>,
}

impl LineChart {
    /// The chart as an SVG document.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        self.check()?;
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = Ruler::spanning(self.x.scale, points().map(|point| point.0), Ends::Tight, TICKS.0);
        let heights = points().map(|point| point.1).chain(self.references.iter().map(|reference| reference.y));
        let y = Ruler::spanning(self.y.scale, heights, Ends::Round, TICKS.1);
        let legend: Vec<(Swatch, &str)> =
            self.lines.iter().enumerate().map(|(index, line)| (Swatch::Line(colour(index)), line.name.as_str())).collect();
        Ok(page(&self.title, &legend, |area| self.draw(area, x, y)))
    }

    fn check(&self) -> Result<(), PlotError> {
        if self.lines.is_empty() {
            return Err(PlotError::Empty { title: self.title.clone() });
        }
        if self.lines.len() > SERIES_MAX {
            return Err(PlotError::TooManySeries { found: self.lines.len() });
        }
        for Line { name, points, .. } in &self.lines {
            if points.is_empty() {
                return Err(PlotError::EmptySeries { series: name.clone() });
            }
            for (index, (x, y)) in points.iter().enumerate() {
                check(name, index + 1, *x, self.x.scale)?;
                check(name, index + 1, *y, self.y.scale)?;
            }
        }
        self.references.iter().try_for_each(|reference| check(&reference.label, 1, reference.y, self.y.scale))
    }

    fn draw(&self, area: &Area<'_>, x: Ruler, y: Ruler) -> Drawn {
        let widest = self.references.iter().map(|reference| reference.label.chars().count()).max();
        let beside = widest.map_or(GAP, |characters| width(characters) + 2.0 * GAP);
        let mut chart = frame(area, Side(x, &self.x.label), Side(y, &self.y.label), beside, BELOW)?;
        self.draw_references(area, &chart)?;
        for (index, line) in self.lines.iter().enumerate() {
            if line.joined {
                chart.draw_series([PathElement::new(line.points.clone(), stroke(colour(index), LINE_WIDTH))])?;
            }
            let few = line.points.len() <= MARKED_MAX;
            if few || !line.joined {
                let radius = if few { POINT_RADIUS } else { CLOUD_RADIUS };
                let mark = |point: &(f64, f64)| Circle::new(*point, units(radius), colour(index).filled());
                chart.draw_series(line.points.iter().map(mark))?;
            }
        }
        Ok(())
    }

    fn draw_references(&self, area: &Area<'_>, chart: &Frame<'_, '_>) -> Drawn {
        let ((left, right), (_, bottom)) = bounds(area, chart);
        let start = chart.x_range().start;
        let height = |reference: &Reference| chart.backend_coord(&(start, reference.y)).1 - area.get_base_pixel().1;
        let mut references: Vec<(i32, &str)> =
            self.references.iter().map(|reference| (height(reference), reference.label.as_str())).collect();
        references.sort();
        let heights: Vec<i32> = references.iter().map(|reference| reference.0).collect();
        for ((height, label), beside) in references.into_iter().zip(spread(&heights, units(LINE_HEIGHT), bottom)) {
            let across = [(left, height), (right, height)].into_iter();
            area.draw(&DashedPathElement::new(across, units(DASH), units(DASH), stroke(INK, 1.25)))?;
            area.draw(&Text::new(label, (right + units(GAP), beside), text(TEXT_SIZE, HPos::Left, VPos::Center)))?;
        }
        Ok(())
    }
}

/// Moves heights, in order, apart until they are `gap` from each other, those at the bottom upwards.
fn spread(heights: &[i32], gap: i32, bottom: i32) -> Vec<i32> {
    let mut moved: Vec<i32> = Vec::with_capacity(heights.len());
    for height in heights {
        moved.push(moved.last().map_or(*height, |above| (*height).max(above + gap)));
    }
    let mut below = bottom + gap;
    for height in moved.iter_mut().rev() {
        *height = (*height).min(below - gap);
        below = *height;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn labels_of_close_references_move_apart() {
        assert_eq!(spread(&[10, 50, 90], 20, 100), [10, 50, 90]);
        assert_eq!(spread(&[10, 12, 35], 20, 100), [10, 30, 50]);
        assert_eq!(spread(&[90, 95, 100], 20, 100), [60, 80, 100]);
    }
}
