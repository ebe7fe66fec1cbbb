// Figure 3: the distribution of latencies, drawn by uPlot, with its stalls marked by cause.

import { absent, button, colour, count, make, oneOf, placementName, someOf, text, time, words } from "./parts.js";

const HEIGHT = 340;
const MARKS_PX = 16;
const CAUSES = ["interrupt", "preemption", "steal", "page_fault", "frequency", "unknown"];
const FIRST = ["one_in_flight", "ring_end_to_end"];
const VIEWS = [["count", "histogram"], ["above", "share above"]];
const loopName = (name) => (/^open_\d+$/.test(name) ? `${count(Number(name.slice(5)))}/s` : words(name));
const causeColour = (cause) => colour(`cause-${CAUSES.includes(cause) ? cause : "unknown"}`);

/** Samples in each bucket, or the share of samples at or above its lower end. */
function valuesOf(distribution, view) {
  if (view === "count") return distribution.buckets.map((bucket) => bucket.count);
  let above = distribution.n;
  return distribution.buckets.map((bucket) => {
    const share = above / distribution.n;
    above -= bucket.count;
    return share;
  });
}

function outline(distribution, view, values) {
  return (plot) => {
    const path = new Path2D();
    const fill = new Path2D();
    const x = (ns) => plot.valToPos(Math.max(ns, plot.scales.x.min / 10), "x", true);
    const y = (value) => plot.valToPos(value, "y", true);
    const floor = plot.bbox.top + plot.bbox.height;
    distribution.buckets.forEach((bucket, index) => {
      const [left, right, top] = [x(bucket.low_ns), x(bucket.high_ns), y(values[index])];
      if (view === "count") {
        fill.rect(left, top, right - left, floor - top);
        const joined = index > 0 && distribution.buckets[index - 1].high_ns >= bucket.low_ns;
        if (joined) path.lineTo(left, top);
        else path.moveTo(left, top);
        path.lineTo(right, top);
      } else {
        if (index === 0) path.moveTo(left, top); else path.lineTo(left, top);
        path.lineTo(right, top);
      }
    });
    return { stroke: path, fill: view === "count" ? fill : null };
  };
}

/** The recorded stalls, as triangles at the upper edge. */
function marks(shown) {
  return (plot) => {
    const { ctx, bbox } = plot;
    const size = MARKS_PX * devicePixelRatio * 0.55;
    ctx.save();
    for (const { distribution } of shown) {
      for (const stall of distribution.stalls) {
        if (stall.ns < plot.scales.x.min || stall.ns > plot.scales.x.max) continue;
        const x = plot.valToPos(stall.ns, "x", true);
        ctx.fillStyle = causeColours[stall.cause] ??= causeColour(stall.cause);
        ctx.beginPath();
        ctx.moveTo(x - size / 2, bbox.top);
        ctx.lineTo(x + size / 2, bbox.top);
        ctx.lineTo(x, bbox.top + size);
        ctx.fill();
      }
      if (distribution.stall_from_ns === null) continue;
      const from = plot.valToPos(distribution.stall_from_ns, "x", true);
      if (from > bbox.left && from < bbox.left + bbox.width) {
        ctx.strokeStyle = colour("soft");
        ctx.setLineDash([4, 4]);
        ctx.beginPath();
        ctx.moveTo(from, bbox.top);
        ctx.lineTo(from, bbox.top + bbox.height);
        ctx.stroke();
      }
    }
    ctx.restore();
  };
}
let causeColours = {};

const QUANTILES = [["samples", "n"], ["min", "min_ns"], ["p50", "p50_ns"], ["p95", "p95_ns"], ["p99", "p99_ns"], ["p99.9", "p999_ns"], ["max", "max_ns"], ["mean", "mean_ns"]];

function quantileTable(shown, of) {
  const head = make("tr", {}, make("th", { scope: "col" }, of), ...QUANTILES.map(([name]) => make("th", { scope: "col", class: "num" }, name)));
  const body = shown.map(({ placement, distribution }) => make("tr", { "data-series": placement },
    make("th", { scope: "row" }, make("i", { "data-series": placement }), placementName(placement)),
    ...QUANTILES.map(([name, key]) => make("td", { class: "num", "data-of": name },
      key === "n" ? count(distribution.n) : distribution[key] === null ? "n/a" : time(distribution[key])))));
  return make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Quantiles" }, make("table", { class: "quantiles" }, make("thead", {}, head), make("tbody", {}, ...body)));
}

function causeList(shown) {
  const from = shown[0]?.distribution.stall_from_ns;
  if (from === null || from === undefined) return "";
  const sums = new Map();
  for (const { distribution } of shown) {
    for (const { cause, count: n, total_ns: total } of distribution.causes) {
      const sum = sums.get(cause) ?? { n: 0, total: 0 };
      sums.set(cause, { n: sum.n + n, total: sum.total + total });
    }
  }
  const list = make("ul", { class: "causes", "aria-label": "Stalls by cause" });
  for (const [cause, { n, total }] of sums) {
    list.append(make("li", { "data-cause": CAUSES.includes(cause) ? cause : "unknown" }, make("i"), `${words(cause)} `, make("b", {}, count(n)), make("small", {}, ` ${time(total)} in total`)));
  }
  if (sums.size === 0) list.append(make("li", { class: "none" }, "no stall"));
  return make("div", {}, make("p", { class: "quiet" }, `Stalls of at least ${time(from)}; the longest are marked at the upper edge:`), list);
}

/** Stalls per second by cause, of the ring and of the same core spinning alone. */
function tailTable(tail) {
  if (tail.length === 0) return "";
  const rate = (value) => (value >= 100 ? count(Math.round(value)) : value.toPrecision(2));
  const rows = tail.map(({ cause, ring_per_s: ring, floor_per_s: floor }) => make("tr", { "data-cause": cause }, make("th", { scope: "row" }, words(cause)), make("td", { class: "num" }, rate(ring)), make("td", { class: "num" }, rate(floor))));
  const head = make("tr", {}, make("th", { scope: "col" }, "Cause"), make("th", { scope: "col", class: "num" }, "Ring, stalls/s"), make("th", { scope: "col", class: "num" }, "Core alone, stalls/s"));
  return make("table", { class: "tail" }, make("caption", {}, "Compared with the jitter floor: the same core spinning without events"), make("thead", {}, head), make("tbody", {}, ...rows));
}

/**
 * Draws the distributions of all `classes` into `part`, first those of `chosenPlacements`; the controls are the figure's
 * own. `of` says what a class is of. Returns `stop`, and `update`, which takes later samples of the same classes.
 */
export function showSpread(part, { classes: given, tail: tailRates }, chosenPlacements, of = "Placement") {
  let classes = given;
  const found = new Set(classes.flatMap((entry) => entry.distributions.map((one) => one.name)));
  const names = [...FIRST.filter((name) => found.has(name)), ...[...found].filter((name) => !FIRST.includes(name))];
  if (names.length === 0) {
    part.replaceChildren(absent("No distribution in this run."));
    return { stop: () => {}, update: () => {} };
  }
  let [name, view] = [names[0], "count"];
  const has = (entry) => entry.distributions.some((one) => one.name === name);
  let placements = classes.filter((entry) => has(entry) && chosenPlacements.includes(entry.placement)).map((entry) => entry.placement);
  if (placements.length === 0) placements = classes.filter(has).slice(0, 1).map((entry) => entry.placement);
  let plot = null;
  const frame = make("div", { class: "plot", role: "img" });
  const readout = make("p", { class: "readout", "aria-live": "off" });
  const below = make("div", { class: "below" });

  const shownNow = () => classes.filter((entry) => placements.includes(entry.placement))
    .map((entry) => ({ placement: entry.placement, distribution: entry.distributions.find((one) => one.name === name) }))
    .filter(({ distribution }) => distribution !== undefined);

  function draw(keep = null) {
    const shown = shownNow();
    plot?.destroy();
    plot = null;
    causeColours = {};
    below.replaceChildren(quantileTable(shown, of), causeList(shown), make("p", { class: "quiet" }, shown[0]?.distribution.what ?? ""), tailTable(tailRates));
    if (shown.length === 0) return;
    plot = chart(frame, readout, shown, view);
    if (keep) plot.setScale("x", keep);
    frame.setAttribute("aria-label", `${loopName(name)}: ${shown.map(({ placement, distribution }) => `${placementName(placement)} median ${time(distribution.p50_ns)}, maximum ${time(distribution.max_ns)}`).join("; ")}`);
    publishRange();
  }
  function publishRange() {
    const { min, max } = plot.scales.x;
    frame.dataset.from = min;
    frame.dataset.to = max;
  }
  const zoom = (factor) => () => {
    const { min, max } = plot.scales.x;
    const [low, high] = [Math.log(min), Math.log(max)];
    const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
    const whole = reach(shownNow());
    plot.setScale("x", { min: Math.max(Math.exp(middle - half), whole[0]), max: Math.min(Math.exp(middle + half), whole[1]) });
    publishRange();
  };
  const to = (range) => () => { const [min, max] = range(); plot.setScale("x", { min, max }); publishRange(); };
  const tail = () => {
    const shown = shownNow();
    return [Math.min(...shown.map(({ distribution }) => distribution.p99_ns ?? distribution.p50_ns ?? distribution.min_ns)), reach(shown)[1]];
  };
  const body = () => {
    const shown = shownNow();
    return [reach(shown)[0], 1.3 * Math.max(...shown.map(({ distribution }) => distribution.p99_ns ?? distribution.max_ns))];
  };
  const group = someOf(`${of}s`, classes.filter((entry) => entry.distributions.length > 0).map((entry) => [entry.placement, placementName(entry.placement)]), placements, (chosen) => { placements = chosen; draw(); });
  part.replaceChildren(
    make("div", { class: "choices" },
      ...(names.length > 1 ? [oneOf("Measurement", names.map((one) => [one, loopName(one)]), name, (chosen) => { name = chosen; draw(); })] : []),
      oneOf("View", VIEWS, view, (chosen) => { view = chosen; draw({ min: plot.scales.x.min, max: plot.scales.x.max }); }), group),
    make("div", { class: "controls" }, button("Zoom in", zoom(0.5)), button("Zoom out", zoom(2)), button("Body", to(body)), button("Tail", to(tail)), button("All", to(() => reach(shownNow()))),
      make("span", { class: "quiet" }, "or drag across the chart")),
    frame, readout, below);
  draw();
  const fit = new ResizeObserver(() => plot?.setSize({ width: frame.clientWidth, height: HEIGHT }));
  fit.observe(frame);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const redraw = () => draw({ min: plot.scales.x.min, max: plot.scales.x.max });
  scheme.addEventListener("change", redraw);
  const update = (later) => {
    // Not while the user zooms or reads.
    if (part.matches(":focus-within") || frame.matches(":hover") || document.hidden) return;
    const [low, high] = reach(shownNow());
    const range = { min: plot.scales.x.min, max: plot.scales.x.max };
    classes = later;
    draw(range.min > low || range.max < high ? range : null);
  };
  return { update, stop: () => { fit.disconnect(); scheme.removeEventListener("change", redraw); plot?.destroy(); } };
}

/** From the least to the greatest bucket of all that is shown. */
function reach(shown) {
  const buckets = shown.flatMap(({ distribution }) => [distribution.buckets[0], distribution.buckets.at(-1)]);
  return [Math.max(Math.min(...buckets.map((bucket) => bucket.low_ns)), 1) * 0.9, Math.max(...buckets.map((bucket) => bucket.high_ns)) * 1.1];
}

/** Powers of ten, with 2 and 5, or all digits between them where there is room. */
export function divisions({ min, max }, width) {
  const room = width / 62;
  const at = (digits) => {
    const found = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power += 1) {
      found.push(...digits.map((digit) => digit * 10 ** power).filter((ns) => ns >= min && ns <= max));
    }
    return found;
  };
  const choices = [[1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]];
  return choices.map(at).find((found) => found.length <= room) ?? at([1]);
}

function chart(frame, readout, shown, view) {
  const lows = [...new Set(shown.flatMap(({ distribution }) => distribution.buckets.map((bucket) => Math.max(bucket.low_ns, 1))))].sort((a, b) => a - b);
  const [soft, line] = [colour("soft"), colour("line")];
  const sets = shown.map(({ placement, distribution }) => ({ placement, distribution, values: valuesOf(distribution, view) }));
  const columns = sets.map(({ distribution, values }) => {
    const at = new Map(distribution.buckets.map((bucket, index) => [Math.max(bucket.low_ns, 1), values[index]]));
    return lows.map((low) => at.get(low) ?? null);
  });
  const all = sets.flatMap(({ values }) => values);
  const bottom = view === "count" ? 0.7 : Math.min(...all) * 0.7;
  const top = view === "count" ? Math.max(...all) * 3 : 1.6;
  const series = sets.map(({ placement, distribution, values }) => {
    const ink = colour(`class-${placement}`);
    return { label: placement, stroke: ink, width: 2, fill: view === "count" ? ink.replace("rgb(", "rgba(").replace(")", ", .22)") : undefined, paths: outline(distribution, view, values), points: { show: false } };
  });
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: soft, font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const hover = (plot) => {
    const { idx } = plot.cursor;
    if (idx === null || idx === undefined) return text(readout, "\u00a0");
    const found = sets.map(({ placement, distribution, values }) => {
      const index = distribution.buckets.findIndex((bucket) => Math.max(bucket.low_ns, 1) === lows[idx]);
      if (index < 0) return null;
      const bucket = distribution.buckets[index];
      const says = view === "count" ? `${count(bucket.count)} samples from ${time(bucket.low_ns)} to ${time(bucket.high_ns)}`
        : `${(100 * values[index]).toPrecision(3)} % take ${time(bucket.low_ns)} or more`;
      return `${placementName(placement)}: ${says}`;
    });
    return text(readout, found.filter(Boolean).join(" · ") || "\u00a0");
  };
  const short = (ns) => ns < 1e3 ? `${+ns.toPrecision(3)} ns` : ns < 1e6 ? `${+(ns / 1e3).toPrecision(3)} µs` : `${+(ns / 1e6).toPrecision(3)} ms`;
  const powers = (value) => view === "count" ? (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : `${value}`) : `${+(100 * value).toPrecision(2)} %`;
  const whole = reach(shown);
  const plot = new window.uPlot({
    width: Math.max(frame.clientWidth, 240),
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { show: false }, y: false },
    scales: {
      x: { time: false, distr: 3, range: (_, min, max) => [min ?? whole[0], max ?? whole[1]] },
      y: { distr: 3, range: () => [bottom, top] },
    },
    axes: [
      { ...axis, size: 34, splits: (plot) => divisions(plot.scales.x, plot.bbox.width / devicePixelRatio), filter: (_, splits) => splits, values: (_, splits) => splits.map(short) },
      { ...axis, values: (_, splits) => splits.map((value) => (value === null ? "" : powers(value))), size: 56, label: view === "count" ? "samples" : "share at or above", labelFont: font, labelSize: 18 },
    ],
    series: [{}, ...series],
    hooks: { draw: [marks(shown)], setCursor: [hover], setScale: [(plot, key) => { if (key === "x") { frame.dataset.from = plot.scales.x.min; frame.dataset.to = plot.scales.x.max; } }] },
  }, [lows, ...columns], frame);
  plot.setScale("x", { min: whole[0], max: whole[1] });
  // A double click shows the whole again; what uPlot would take for it are the buckets' lower ends.
  plot.over.addEventListener("dblclick", () => plot.setScale("x", { min: whole[0], max: whole[1] }));
  return plot;
}
