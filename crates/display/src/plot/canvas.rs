//! The page that a chart is drawn on: its size, colours and type, the title, and the legend above the plot.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The most series of a plot: so many colours can be told apart, by the colour-blind too.
pub const SERIES_MAX: usize = PALETTE.len();
/// The palette of Okabe and Ito without its yellow, which is hard to see on white.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
/// Text, axes, and marks of what others measured.
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
/// Lines that help the eye only.
const GRID: RGBColor = RGBColor(226, 226, 226);

/// The size of a plot in pixels.
const SIZE: (u32, u32) = (900, 520);
/// Units of drawing per pixel: the library rounds to whole ones, a plot should not.
const UNITS: u32 = 8;

const MARGIN: f64 = 18.0;
/// Between a plot's labels and what is beside them.
pub(super) const GAP: f64 = 10.0;
const TITLE_HEIGHT: f64 = 30.0;
const TITLE_SIZE: f64 = 17.0;
pub(super) const TEXT_SIZE: f64 = 12.5;
pub(super) const LINE_HEIGHT: f64 = 17.0;
/// The mean width of a character, as a share of the size of the type: what a reader's font makes of it is not known here.
const CHARACTER_WIDTH: f64 = 0.56;
const SWATCH_WIDTH: f64 = 20.0;
const SWATCH_GAP: f64 = 6.0;
const ENTRY_GAP: f64 = 22.0;
const LEGEND_ROW: f64 = 22.0;

/// A part of the page.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What drawing returns. It writes into a string and cannot fail.
pub(super) type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

/// How the legend shows a series.
pub(super) enum Swatch {
    /// A stroke.
    Line(RGBColor),
    /// A box.
    Bar(RGBColor),
    /// A dot.
    Dot(RGBColor),
    /// The mark that lies across a bar.
    Mark,
}

/// Pixels in units of drawing.
pub(super) fn units(pixels: f64) -> i32 {
    (pixels * f64::from(UNITS)).round() as i32
}

/// The colour of a series by its number.
pub(super) fn colour(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// A line of this colour, `width` pixels wide.
pub(super) fn stroke(colour: RGBColor, width: f64) -> ShapeStyle {
    colour.stroke_width(units(width) as u32)
}

/// Type of `size` pixels.
pub(super) fn text(size: f64, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    // The backend divides the size by this.
    let size = size * f64::from(UNITS) * 1.24;
    TextStyle::from(("sans-serif", size)).color(&INK).pos(Pos::new(horizontal, vertical))
}

/// The same in bold.
pub(super) fn bold(style: TextStyle<'static>) -> TextStyle<'static> {
    TextStyle { font: style.font.style(FontStyle::Bold), ..style }
}

/// About how wide a text of so many characters is, in pixels.
pub(super) fn width(characters: usize) -> f64 {
    width_of(characters, TEXT_SIZE)
}

/// The same of type of `size`.
pub(super) fn width_of(characters: usize, size: f64) -> f64 {
    characters as f64 * size * CHARACTER_WIDTH
}

/// The lines behind the data.
pub(super) fn grid() -> ShapeStyle {
    stroke(GRID, 1.0)
}

/// Draws a page with `title` and `legend`, and below them what `chart` draws. Returns the SVG.
pub(super) fn page(title: &str, legend: &[(Swatch, &str)], chart: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    draw(&mut svg, title, legend, chart).expect("a string takes all that is drawn");
    let (width, height) = (SIZE.0 * UNITS, SIZE.1 * UNITS);
    let scaled = format!("width=\"{}\" height=\"{}\"", SIZE.0, SIZE.1);
    svg.replacen(&format!("width=\"{width}\" height=\"{height}\""), &scaled, 1)
}

fn draw(svg: &mut String, title: &str, legend: &[(Swatch, &str)], chart: impl FnOnce(&Area<'_>) -> Drawn) -> Drawn {
    let page = SVGBackend::with_string(svg, (SIZE.0 * UNITS, SIZE.1 * UNITS)).into_drawing_area();
    page.fill(&WHITE)?;
    let inner = page.margin(units(MARGIN), units(MARGIN), units(MARGIN), units(MARGIN));
    inner.draw(&Text::new(title, (0, 0), bold(text(TITLE_SIZE, HPos::Left, VPos::Top))))?;
    let legend_height = draw_legend(&inner, legend)?;
    let (_, below) = inner.split_vertically(units(TITLE_HEIGHT + legend_height));
    chart(&below)?;
    page.present()
}

/// Draws the entries in as many rows as they take, and returns the height of these.
fn draw_legend(area: &Area<'_>, legend: &[(Swatch, &str)]) -> Drawn<f64> {
    let space = f64::from(SIZE.0) - 2.0 * MARGIN;
    let (mut left, mut middle) = (0.0, TITLE_HEIGHT + LEGEND_ROW / 2.0);
    for (swatch, name) in legend {
        let taken = SWATCH_WIDTH + SWATCH_GAP + width(name.chars().count());
        if left > 0.0 && left + taken > space {
            (left, middle) = (0.0, middle + LEGEND_ROW);
        }
        draw_swatch(area, swatch, left, middle)?;
        let at = (units(left + SWATCH_WIDTH + SWATCH_GAP), units(middle));
        area.draw(&Text::new(*name, at, text(TEXT_SIZE, HPos::Left, VPos::Center)))?;
        left += taken + ENTRY_GAP;
    }
    Ok(if legend.is_empty() { 0.0 } else { middle - TITLE_HEIGHT + LEGEND_ROW })
}

fn draw_swatch(area: &Area<'_>, swatch: &Swatch, left: f64, middle: f64) -> Drawn {
    let across = |half: f64| [(units(left), units(middle - half)), (units(left + SWATCH_WIDTH), units(middle + half))];
    match swatch {
        Swatch::Line(colour) => area.draw(&PathElement::new(across(0.0), stroke(*colour, 3.0))),
        Swatch::Bar(colour) => area.draw(&Rectangle::new(across(6.0), colour.filled())),
        Swatch::Dot(colour) => {
            let at = (units(left + SWATCH_WIDTH / 2.0), units(middle));
            area.draw(&Circle::new(at, units(4.0), colour.filled()))
        }
        Swatch::Mark => area.draw(&PathElement::new(across(0.0), stroke(INK, 3.0))),
    }
}
