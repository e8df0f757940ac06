//! The frame of a plot: its two axes with ticks and labels, and the lines behind the data.

use super::axis::Ruler;
use super::canvas::{Area, Drawn, GAP, INK, LINE_HEIGHT, TEXT_SIZE, grid, stroke, text, units, width};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// A framed plot. It is drawn in by values on its axes.
pub(super) type Frame<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;

/// An axis laid out, and what is written along it.
pub(super) struct Side<'a>(pub(super) Ruler, pub(super) &'a str);

/// Draws axes into `area`, leaving `beside` pixels free on the right and `below` under the axis along.
pub(super) fn frame<'a, 'b>(
    area: &'a Area<'b>,
    Side(x, x_label): Side<'_>,
    Side(y, y_label): Side<'_>,
    beside: f64,
    below: f64,
) -> Drawn<Frame<'a, 'b>> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(units(GAP))
        .margin_right(units(beside))
        .x_label_area_size(units(below))
        .y_label_area_size(units(width(y.label_width()) + LINE_HEIGHT + 2.0 * GAP))
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(grid())
        .axis_style(stroke(INK, 1.0))
        .label_style(text(TEXT_SIZE, HPos::Center, VPos::Center))
        .axis_desc_style(text(TEXT_SIZE + 1.0, HPos::Center, VPos::Center))
        .set_all_tick_mark_size(units(4.0))
        .x_desc(x_label)
        .y_desc(y_label)
        .draw()?;
    Ok(chart)
}

/// Where the plot lies in the area that it was framed in, in units of drawing: from left to right, from top to bottom.
///
/// What stands outside the axes is drawn on that area: what is drawn on the plot itself is cut at its edge.
pub(super) fn bounds(area: &Area<'_>, chart: &Frame<'_, '_>) -> ((i32, i32), (i32, i32)) {
    let (across, up) = chart.plotting_area().get_pixel_range();
    let (left, top) = area.get_base_pixel();
    ((across.start - left, across.end - left), (up.start - top, up.end - top))
}
