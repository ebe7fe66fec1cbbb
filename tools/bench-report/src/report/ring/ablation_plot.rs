//! The ablation as a chart.

use std::io;

use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, PathElement, RGBColor, Rectangle,
    SVGBackend, Text, WHITE,
};
use plotters::style::IntoTextStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Ablation;

const SIZE: (u32, u32) = (1_000, 520);
const OURS: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
const THEIRS: RGBColor = RGBColor(0xbb, 0xbb, 0xbb);
const LEFT_OUT: RGBColor = RGBColor(0xff, 0x7f, 0x0e);

impl Ablation {
    /// Draws bars of the cumulative medians with their intervals, NullRing's, and the final build without each step
    /// as a line over it.
    ///
    /// # Errors
    /// The picture cannot be laid out.
    pub fn svg(&self) -> io::Result<String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), DrawingAreaErrorKind<io::Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let title = format!("p50 after each step, ns ({}, {} runs a build)", self.class, self.runs);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(60)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..self.steps.len() as f64, 0.0..self.highest() * 1.08)?;
        let whole = |ns: &f64| format!("{ns:.0}");
        chart.configure_mesh().disable_x_mesh().disable_x_axis().max_light_lines(0).y_label_formatter(&whole).draw()?;
        let legend = [
            (OURS, "this machine, this and all earlier steps, with the 95 % interval"),
            (LEFT_OUT, "this machine, the final build without this step"),
            (THEIRS, "published by NullRing"),
        ];
        for (row, (color, text)) in legend.into_iter().enumerate() {
            let (x, y) = (SIZE.0 as i32 - 460, 50 + 20 * row as i32);
            area.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], color.filled()))?;
            area.draw(&Text::new(text, (x + 18, y), ("sans-serif", 13).into_font()))?;
        }
        let plane = chart.plotting_area();
        for (index, step) in self.steps.iter().enumerate() {
            let x = index as f64;
            let p50 = step.cumulative.p50_ns;
            if let Some(published) = step.published_p50_ns {
                plane.draw(&Rectangle::new([(x + 0.52, 0.0), (x + 0.88, published)], THEIRS.filled()))?;
            }
            plane.draw(&Rectangle::new([(x + 0.12, 0.0), (x + 0.48, p50.value)], OURS.filled()))?;
            plane.draw(&PathElement::new([(x + 0.3, p50.low), (x + 0.3, p50.high)], BLACK.stroke_width(2)))?;
            if let Some(without) = &step.without {
                let ns = without.p50_ns.value;
                plane.draw(&PathElement::new([(x + 0.08, ns), (x + 0.52, ns)], LEFT_OUT.stroke_width(3)))?;
            }
            let above = Pos::new(HPos::Center, VPos::Bottom);
            let font = ("sans-serif", 13).into_font().into_text_style(&area).pos(above);
            let height = step.without.as_ref().map_or(0.0, |without| without.p50_ns.value);
            let label = (x + 0.3, p50.value.max(height) + 0.012 * self.highest());
            plane.draw(&Text::new(format!("{:.0}", p50.value), label, font))?;
            let below = Pos::new(HPos::Center, VPos::Top);
            let font = ("sans-serif", 12).into_font().into_text_style(&area).pos(below);
            let (left, bottom) = plane.map_coordinate(&(x + 0.5, 0.0));
            for (line, word) in step.name.split('_').enumerate() {
                area.draw(&Text::new(word.to_owned(), (left, bottom + 8 + 14 * line as i32), font.clone()))?;
            }
        }
        area.present()
    }

    /// The highest of all bars.
    fn highest(&self) -> f64 {
        let heights = self.steps.iter().flat_map(|step| {
            let without = step.without.as_ref().map_or(0.0, |without| without.p50_ns.value);
            [step.cumulative.p50_ns.value, step.published_p50_ns.unwrap_or(0.0), without]
        });
        heights.fold(1.0, f64::max)
    }
}
