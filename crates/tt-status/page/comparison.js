// The distribution that the published figures describe, next to the measured one, on the same axes.

import { count, make, placementName, time } from "./parts.js";
import { divisions } from "./spread.js";

const PANEL_PX = 230;
const EDGES = { left: 62, right: 10, top: 8, bottom: 24 };
const SIMULATED = "simulated (published parameters)";
const COLUMNS = [["min", "min_ns", "min"], ["p50", "p50_ns", "p50"], ["p95", "p95_ns", "p95"], ["p99", "p99_ns", "p99"], ["p99.9", "p999_ns", "p999"], ["max", "max_ns", "max"], ["mean", "mean_ns", "average"]];

function vector(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Bars of one distribution: the share of its samples in each bucket. Both panels have the scales `x` and `y`. */
function panelOf(width, { buckets, n }, { ranges: [low, high, least], summary }) {
  const [right, floor] = [width - EDGES.right, PANEL_PX - EDGES.bottom];
  const x = (ns) => EDGES.left + ((right - EDGES.left) * Math.log(Math.max(ns, low) / low)) / Math.log(high / low);
  const y = (share) => EDGES.top + ((floor - EDGES.top) * Math.log(share)) / Math.log(least);
  const drawn = vector("svg", { width, height: PANEL_PX, viewBox: `0 0 ${width} ${PANEL_PX}`, role: "img", "aria-label": summary });
  for (let share = 1; share >= least; share /= 10) {
    drawn.append(vector("line", { x1: EDGES.left, x2: right, y1: y(share), y2: y(share) }));
    drawn.append(vector("text", { x: EDGES.left - 6, y: y(share) + 4, "text-anchor": "end" }, `${+(100 * share).toPrecision(1)} %`));
  }
  for (const ns of divisions({ min: low, max: high }, right - EDGES.left)) {
    drawn.append(vector("line", { x1: x(ns), x2: x(ns), y1: EDGES.top, y2: floor }));
    const says = ns < 1e3 ? `${ns} ns` : ns < 1e6 ? `${ns / 1e3} µs` : `${ns / 1e6} ms`;
    drawn.append(vector("text", { x: Math.min(x(ns), right - 14), y: PANEL_PX - 6, "text-anchor": "middle" }, says));
  }
  for (const bucket of buckets) {
    const [left, top] = [x(bucket.low_ns), y(bucket.count / n)];
    drawn.append(vector("rect", { x: left, y: top, width: Math.max(x(bucket.high_ns) - left, 1), height: Math.max(floor - top, 0) }));
  }
  return drawn;
}

/** The least and the greatest time, and the least share, rounded down to a power of ten. */
function commonRanges(distributions) {
  const buckets = distributions.flatMap((one) => one.buckets);
  const least = Math.min(...distributions.flatMap((one) => one.buckets.map((bucket) => bucket.count / one.n)));
  return [Math.max(Math.min(...buckets.map((bucket) => bucket.low_ns)), 1), Math.max(...buckets.map((bucket) => bucket.high_ns)), 10 ** Math.floor(Math.log10(least) + 1e-9)];
}

function figuresTable(published, rows) {
  const head = make("tr", {}, make("th", { scope: "col" }, "Figures"), ...COLUMNS.map(([name]) => make("th", { scope: "col", class: "num" }, name)));
  const row = (name, kind, value) => make("tr", { "data-kind": kind }, make("th", { scope: "row" }, name),
    ...COLUMNS.map((column) => make("td", { class: "num", "data-of": column[0] }, value(column) === null ? "n/a" : time(value(column)))));
  return make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Figures of both distributions" },
    make("table", { class: "quantiles" }, make("thead", {}, head), make("tbody", {},
      row("published (another machine)", "published", ([, , key]) => published[key]),
      ...rows.map(({ name, kind, distribution }) => row(name, kind, ([, key]) => distribution[key])))));
}

/** Draws both into `part`; `measured` is `undefined` where this placement has none. Returns how to stop. */
export function showComparison(part, { distribution, published, method }, placement, measured) {
  const sides = [{ kind: "simulated", name: SIMULATED, distribution }];
  if (measured) sides.push({ kind: "measured", name: `measured here, ${placementName(placement)}`, distribution: measured });
  const ranges = commonRanges(sides.map((side) => side.distribution));
  const frames = sides.map(({ kind, name, distribution: { n } }) => make("figure", { "data-kind": kind, "data-placement": placement }, make("figcaption", {}, make("b", {}, name), ` ${count(n)} events`)));
  const draw = () => frames.forEach((frame, index) => {
    const { name, distribution: shown } = sides[index];
    const summary = `${name}: median ${time(shown.p50_ns)}, 99th percentile ${time(shown.p99_ns)}`;
    frame.querySelector("svg")?.remove();
    frame.append(panelOf(Math.max(frame.clientWidth, 200), shown, { ranges, summary }));
  });
  const absence = measured ? [] : [make("p", { class: "quiet" }, "One event in flight was not measured in this placement.")];
  part.replaceChildren(make("div", { class: "comparison" }, ...frames), ...absence, figuresTable(published, sides),
    make("p", { class: "quiet" }, `Share of events in each bucket. ${SIMULATED[0].toUpperCase()}${SIMULATED.slice(1)}: ${method} Measured: every event of this run, one in flight.`));
  draw();
  let width = part.clientWidth;
  const fit = new ResizeObserver(() => {
    if (part.clientWidth === width) return;
    width = part.clientWidth;
    draw();
  });
  fit.observe(part);
  return () => fit.disconnect();
}
