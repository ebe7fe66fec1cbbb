//! The answer as one picture to share.

use std::io;

use plotters::prelude::{
    Color, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, RGBColor, Rectangle, SVGBackend, Text, WHITE,
};

use super::WhyResult;

const WIDTH: u32 = 1_000;
const MARGIN: i32 = 30;
const LINE: RGBColor = RGBColor(0x1f, 0x4e, 0x79);
const RING: RGBColor = RGBColor(0x2e, 0x8b, 0x57);
const EVALUATOR: RGBColor = RGBColor(0xb4, 0x5f, 0x06);
const STALL: RGBColor = RGBColor(0x8e, 0x2c, 0x48);
const GREY: RGBColor = RGBColor(0x59, 0x59, 0x59);
const DARK: RGBColor = RGBColor(0x11, 0x11, 0x11);
/// Characters of a line of the sentence.
const COLUMNS: usize = 92;
/// Names of stalls that have a bar.
const STALLS_DRAWN: usize = 6;

type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;
type Area<'a> = plotters::drawing::DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

impl WhyResult {
    /// Draws the sentence, the parts of the median as one bar, and the stalls by name.
    ///
    /// # Errors
    /// The picture cannot be laid out.
    pub fn svg(&self) -> io::Result<String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Drawn {
        let sentence = wrapped(&self.sentence());
        let stalls = wrapped(&self.stalls.sentence());
        let bars = self.stalls.names.len().min(STALLS_DRAWN) as i32;
        let text_lines = (sentence.len() + stalls.len()) as i32;
        let height = 230 + 24 * text_lines + 24 * bars;
        let area = SVGBackend::with_string(svg, (WIDTH, height.unsigned_abs())).into_drawing_area();
        area.fill(&WHITE)?;
        let mut y = 24;
        write(&area, "Machine or code? truetick why", (MARGIN, y), (16, GREY))?;
        y += 28;
        for line in &sentence {
            write(&area, line, (MARGIN, y), (20, DARK))?;
            y += 26;
        }
        y = self.draw_parts(&area, y + 10)?;
        for line in &stalls {
            write(&area, line, (MARGIN, y), (17, DARK))?;
            y += 24;
        }
        y = self.draw_stalls(&area, y + 6)?;
        let environment = &self.environment;
        let commit: String = environment.build.commit.chars().take(12).collect();
        let about = format!("{}, {}, truetick {commit}", environment.machine.cpu, environment.date);
        let forced = if environment.forced.is_some() { ", on a busy machine" } else { "" };
        write(&area, &format!("{about}{forced}"), (MARGIN, y + 8), (13, GREY))?;
        area.present()
    }

    /// One bar as long as the median; returns where the next thing goes.
    fn draw_parts(&self, area: &Area<'_>, y: i32) -> Result<i32, DrawingAreaErrorKind<io::Error>> {
        let Some(parts) = &self.parts else { return Ok(y) };
        let named = [
            ("one cache line", parts.floor_ns.value, LINE),
            ("ring", parts.ring_ns[0].value, RING),
            ("evaluator", parts.evaluator_ns[1].value, EVALUATOR),
        ];
        let total: f64 = named.iter().map(|(_, ns, _)| ns.max(0.0)).sum();
        let full = f64::from(WIDTH as i32 - 2 * MARGIN);
        let mut left = f64::from(MARGIN);
        let mut legend = MARGIN;
        for (name, ns, color) in named {
            let right = left + full * ns.max(0.0) / total.max(f64::MIN_POSITIVE);
            area.draw(&Rectangle::new([(left as i32, y), (right as i32, y + 44)], color.filled()))?;
            left = right;
            area.draw(&Rectangle::new([(legend, y + 56), (legend + 14, y + 70)], color.filled()))?;
            write(area, &format!("{name} {ns:.0} ns"), (legend + 20, y + 56), (15, DARK))?;
            legend += 220;
        }
        Ok(y + 96)
    }

    /// A bar for each name, by its share of the stalls' time.
    fn draw_stalls(&self, area: &Area<'_>, y: i32) -> Result<i32, DrawingAreaErrorKind<io::Error>> {
        let total = self.stalls.total().total_ns.max(f64::MIN_POSITIVE);
        let mut y = y;
        for one in self.stalls.names.iter().take(STALLS_DRAWN) {
            let share = one.total_ns / total;
            let color = if one.name.is_some() { STALL } else { GREY };
            let right = MARGIN + 330 + (400.0 * share) as i32;
            write(area, one.name.as_deref().unwrap_or("without a name"), (MARGIN, y), (15, DARK))?;
            area.draw(&Rectangle::new([(MARGIN + 330, y), (right.max(MARGIN + 331), y + 15)], color.filled()))?;
            write(area, &format!("{:.0} %, {} times", 100.0 * share, one.count), (right + 8, y), (15, DARK))?;
            y += 24;
        }
        Ok(y)
    }
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), (size, color): (u32, RGBColor)) -> Drawn {
    area.draw(&Text::new(text.to_owned(), at, ("sans-serif", size).into_font().color(&color)))
}

/// Lines of at most [`COLUMNS`] characters.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full = lines.last().is_some_and(|line| line.chars().count() + word.chars().count() >= COLUMNS);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
