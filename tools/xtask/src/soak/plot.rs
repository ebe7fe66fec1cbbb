//! The samples of a soak as an SVG: a panel for each quantity.

use std::io;

use plotters::prelude::{
    ChartBuilder, Color as _, DrawingAreaErrorKind, IntoDrawingArea as _, PathElement, RGBColor, Rectangle, SVGBackend,
    WHITE,
};

const PANEL: (u32, u32) = (560, 220);
const COLUMNS: usize = 2;
const LINE: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
/// Behind the samples that the slope is of.
const JUDGED: RGBColor = RGBColor(0xf2, 0xf2, 0xf2);

/// A panel: its title, and samples of (minutes, value).
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) samples: Vec<(f64, f64)>,
}

/// Draws `panels`; the samples after `judged_from` minutes are those that the slopes are of.
///
/// # Errors
/// The picture cannot be laid out.
pub(super) fn svg(panels: &[Panel], judged_from: f64) -> io::Result<String> {
    let mut svg = String::new();
    draw(&mut svg, panels, judged_from).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(svg)
}

fn draw(svg: &mut String, panels: &[Panel], judged_from: f64) -> Result<(), DrawingAreaErrorKind<io::Error>> {
    let rows = panels.len().div_ceil(COLUMNS);
    let size = (PANEL.0 * COLUMNS as u32, PANEL.1 * rows as u32);
    let area = SVGBackend::with_string(svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, area) in panels.iter().zip(area.split_evenly((rows, COLUMNS))) {
        let values = || panel.samples.iter().map(|(_, value)| *value);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        let end = panel.samples.last().map_or(1.0, |(minutes, _)| *minutes);
        let room = ((high - low) * 0.1).max(1.0);
        let mut chart = ChartBuilder::on(&area)
            .caption(&panel.title, ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(28)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..end, (low - room).max(0.0)..high + room)?;
        let judged = Rectangle::new([(judged_from, (low - room).max(0.0)), (end, high + room)], JUDGED.filled());
        chart.draw_series([judged])?;
        let whole = |value: &f64| format!("{value:.0}");
        let mut mesh = chart.configure_mesh();
        mesh.max_light_lines(0).x_desc("minutes").x_label_formatter(&whole).y_label_formatter(&whole).draw()?;
        chart.draw_series([PathElement::new(panel.samples.clone(), LINE)])?;
    }
    area.present()
}
