//! A map of the world: groups of marks with labels, and lines between places.

mod globe;
mod labels;

use super::canvas::{Area, Drawn, SERIES_MAX, Swatch, bold, colour, grid, page, stroke, text, units, width_of};
use super::error::PlotError;
use globe::{NORTH, SOUTH, land, project, shortest_way};
use labels::{Label, Rectangle, place};
use plotters::element::DashedPathElement;
use plotters::prelude::{Circle, PathElement, Polygon, RGBColor, Text, WHITE};
use plotters::prelude::{Color, Rectangle as Box};
use plotters::style::text_anchor::{HPos, VPos};

pub use globe::Point;

const LAND: RGBColor = RGBColor(232, 232, 226);
/// Meridians and parallels are so many degrees apart.
const GRATICULE: i32 = 30;
const LABEL_SIZE: f64 = 11.0;
const LABEL_HEIGHT: f64 = 12.0;
/// Half the side of a mark of the first group, and the radius of one of any other.
const FIRST_MARK: f64 = 6.0;
const MARK: f64 = 3.5;
const LINK_WIDTH: f64 = 1.3;
const DASH: f64 = 4.0;
/// How much wider bold type is, about.
const BOLD: f64 = 1.1;
/// A label that stands farther from its mark is joined to it by a line.
const APART: f64 = 10.0;
const WHITENESS: f64 = 0.75;

/// A place with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// What is written beside it.
    pub label: String,
    /// Where it is.
    pub at: Point,
}

/// Marks of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    /// What the legend calls them.
    pub name: String,
    /// The marks. One that another group has at the same place is labelled once.
    pub marks: Vec<Mark>,
}

/// Lines of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// What the legend calls them.
    pub name: String,
    /// From where to where.
    pub links: Vec<(Point, Point)>,
    /// Whether they are dashed.
    pub dashed: bool,
}

/// A map of the world.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldMap {
    /// What it shows.
    pub title: String,
    /// Groups of marks. Those of the first stand out, and are labelled first.
    pub marks: Vec<Marks>,
    /// Groups of lines. Together with the groups of marks at most [`SERIES_MAX`].
    pub links: Vec<Links>,
}

impl WorldMap {
    /// The map as an SVG document.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        if self.marks.iter().all(|group| group.marks.is_empty()) {
            return Err(PlotError::Empty { title: self.title.clone() });
        }
        let series = self.marks.len() + self.links.len();
        if series > SERIES_MAX {
            return Err(PlotError::TooManySeries { found: series });
        }
        for Marks { name, marks } in &self.marks {
            for (index, mark) in marks.iter().enumerate() {
                check(name, index + 1, mark.at)?;
            }
        }
        for Links { name, links, .. } in &self.links {
            for (index, (from, to)) in links.iter().enumerate() {
                check(name, index + 1, *from).and_then(|()| check(name, index + 1, *to))?;
            }
        }
        let marks = self.marks.iter().enumerate().map(|(index, group)| {
            let swatch = if index == 0 { Swatch::Bar(colour(index)) } else { Swatch::Dot(colour(index)) };
            (swatch, group.name.as_str())
        });
        let first = self.marks.len();
        let links = self.links.iter().enumerate().map(|(index, group)| (Swatch::Line(colour(first + index)), group.name.as_str()));
        let legend: Vec<(Swatch, &str)> = marks.chain(links).collect();
        Ok(page(&self.title, &legend, |area| self.draw(area)))
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let (width, height) = area.dim_in_pixel();
        let on_page = |point: Point| {
            let (x, y) = project(point, f64::from(width), f64::from(height));
            (x.round() as i32, y.round() as i32)
        };
        draw_globe(area, &on_page)?;
        for (index, group) in self.links.iter().enumerate() {
            let style = stroke(colour(self.marks.len() + index), LINK_WIDTH);
            for part in group.links.iter().flat_map(|&(from, to)| shortest_way(from, to)) {
                let points: Vec<(i32, i32)> = part.into_iter().map(&on_page).collect();
                if group.dashed {
                    area.draw(&DashedPathElement::new(points, units(DASH), units(DASH), style))?;
                } else {
                    area.draw(&PathElement::new(points, style))?;
                }
            }
        }
        for (index, group) in self.marks.iter().enumerate() {
            for (x, y) in group.marks.iter().map(|mark| on_page(mark.at)) {
                if index == 0 {
                    let half = units(FIRST_MARK);
                    area.draw(&Box::new([(x - half, y - half), (x + half, y + half)], colour(index).filled()))?;
                } else {
                    area.draw(&Circle::new((x, y), units(MARK), colour(index).filled()))?;
                }
            }
        }
        self.draw_labels(area)
    }

    fn draw_labels(&self, area: &Area<'_>) -> Drawn {
        let unit = f64::from(units(1.0));
        let (width, height) = area.dim_in_pixel();
        let size = (f64::from(width) / unit, f64::from(height) / unit);
        let mut labelled: Vec<&Mark> = Vec::new();
        for mark in self.marks.iter().flat_map(|group| &group.marks) {
            if !labelled.contains(&mark) {
                labelled.push(mark);
            }
        }
        let points: Vec<(f64, f64)> = labelled.iter().map(|mark| project(mark.at, size.0, size.1)).collect();
        let around = |&(x, y): &(f64, f64)| Rectangle {
            left: x - FIRST_MARK,
            top: y - FIRST_MARK,
            width: 2.0 * FIRST_MARK,
            height: 2.0 * FIRST_MARK,
        };
        let marks: Vec<Rectangle> = points.iter().map(around).collect();
        let label = |(mark, &at): (&&Mark, &(f64, f64))| Label {
            mark: at,
            width: BOLD * width_of(mark.label.chars().count(), LABEL_SIZE),
            height: LABEL_HEIGHT,
        };
        let wanted: Vec<Label> = labelled.iter().zip(&points).map(label).collect();
        for ((mark, point), placed) in labelled.iter().zip(&points).zip(place(&wanted, &marks, size)) {
            let (x, y) = placed.nearest(*point);
            let at = |x: f64, y: f64| (units(x), units(y));
            if (x - point.0).hypot(y - point.1) > APART {
                area.draw(&PathElement::new([at(point.0, point.1), at(x, y)], stroke(RGBColor(120, 120, 120), 0.7)))?;
            }
            let corners = [at(placed.left, placed.top), at(placed.left + placed.width, placed.top + placed.height)];
            area.draw(&Box::new(corners, WHITE.mix(WHITENESS).filled()))?;
            let middle = at(placed.left + placed.width / 2.0, placed.top + placed.height / 2.0);
            let style = text(LABEL_SIZE, HPos::Center, VPos::Center);
            let stands_out = self.marks.first().is_some_and(|group| group.marks.contains(mark));
            area.draw(&Text::new(mark.label.as_str(), middle, if stands_out { bold(style) } else { style }))?;
        }
        Ok(())
    }
}

/// Land, meridians and parallels.
fn draw_globe(area: &Area<'_>, on_page: &impl Fn(Point) -> (i32, i32)) -> Drawn {
    for outline in land() {
        area.draw(&Polygon::new(outline.into_iter().map(on_page).collect::<Vec<_>>(), LAND.filled()))?;
    }
    let line = |from: (f64, f64), to: (f64, f64)| {
        let ends = [from, to].map(|(latitude, longitude)| on_page(Point { latitude, longitude }));
        area.draw(&PathElement::new(ends, grid()))
    };
    for meridian in (-180..=180).step_by(GRATICULE as usize).map(f64::from) {
        line((SOUTH, meridian), (NORTH, meridian))?;
    }
    for parallel in (-30..=60).step_by(GRATICULE as usize).map(f64::from) {
        line((parallel, -180.0), (parallel, 180.0))?;
    }
    Ok(())
}

fn check(series: &str, point: usize, Point { latitude, longitude }: Point) -> Result<(), PlotError> {
    for (value, most) in [(latitude, 90.0), (longitude, 180.0)] {
        if !(-most..=most).contains(&value) {
            return Err(PlotError::OffTheGlobe { series: series.to_owned(), point, value, most });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(label: &str, latitude: f64, longitude: f64) -> Mark {
        Mark { label: label.to_owned(), at: Point { latitude, longitude } }
    }

    fn map() -> WorldMap {
        let (tokyo, virginia) = (mark("tokyo", 35.7, 139.7), mark("virginia", 38.9, -77.4));
        WorldMap {
            title: "Two regions".to_owned(),
            links: vec![Links { name: "commits by".to_owned(), links: vec![(tokyo.at, virginia.at)], dashed: false }],
            marks: vec![
                Marks { name: "replicas".to_owned(), marks: vec![virginia.clone()] },
                Marks { name: "clients".to_owned(), marks: vec![virginia, tokyo] },
            ],
        }
    }

    #[test]
    fn a_map_names_each_place_once_and_all_kinds() {
        let svg = map().to_svg().expect("two places");
        for name in ["Two regions", "replicas", "clients", "commits by", "tokyo", "virginia"] {
            assert_eq!(svg.matches(&format!("\n{name}\n")).count(), 1, "{name}");
        }
        assert_eq!(map().to_svg(), Ok(svg));
    }

    #[test]
    fn what_is_not_on_the_globe_is_refused() {
        let mut off = map();
        off.marks[1].marks[1].at.latitude = 139.7;
        let error = off.to_svg().expect_err("beyond the pole").to_string();
        assert_eq!(error, "`clients`, point 2: 139.7 is not on the globe; expected degrees from -90 to 90");
        let empty = WorldMap { title: "Nothing".to_owned(), marks: Vec::new(), links: Vec::new() };
        assert!(empty.to_svg().is_err());
    }
}
