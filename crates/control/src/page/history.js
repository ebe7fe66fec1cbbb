// The server's history, drawn by uPlot: a reload loses nothing.

import { colour, oneOf } from "/figures/parts.js";
import { address } from "./address.js";
import { showSparks } from "./engines.js";
import { bytes, short } from "./text.js";

const EVERY_MS = 2000;
const CHARTS = [
  { id: "chart-traffic", tab: "relay", unit: (n) => `${bytes(n)}/s`, least: 1000, lines: [["to peers", "turn_to_peers_bytes_per_s", "good"], ["to clients", "turn_to_clients_bytes_per_s", "warn"]], more: ["allocations", "turn_allocations", "soft"] },
  { id: "chart-refusals", tab: "relay", unit: (n) => `${short(n)}/s`, lines: [["wrong passwords", "turn_failed_logins_per_s", "bad"], ["refused", "turn_refused_per_s", "warn"]] },
  { id: "chart-machine", tab: "machine", unit: (n) => `${(n / 10).toFixed(0)} %`, least: 100, lines: [["share of a core", "machine_cpu_ms_per_s", "good"]], more: ["memory", "machine_resident_bytes", "soft"], moreUnit: bytes },
];
const HEIGHT = 190;
const utc = (s) => new Date(s * 1000).toISOString().slice(11, 19);
let seconds = "600";
const plots = new Map();

/** The chart is made once the part can be seen: then its width is known. */
function makeChart(chart, data) {
  const part = document.getElementById(chart.id);
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const lines = [...chart.lines, ...(chart.more ? [chart.more] : [])];
  const series = lines.map(([label, , ink], index) => ({
    label, stroke: colour(ink), width: 1.6, points: { show: false }, scale: index < chart.lines.length ? "y" : "more",
    dash: index < chart.lines.length ? undefined : [4, 3],
    value: (_, n) => (n === null ? "–" : index < chart.lines.length ? chart.unit(n) : (chart.moreUnit ?? short)(n)),
  }));
  const from = (least) => (_, __, high) => [0, Math.max(high, least) * 1.05];
  const axes = [{ ...axis, space: 84, values: (_, ticks) => ticks.map(utc) }, { ...axis, size: 84, values: (_, ticks) => ticks.map(chart.unit) }];
  if (chart.more) axes.push({ ...axis, side: 1, size: 64, scale: "more", grid: { show: false }, values: (_, ticks) => ticks.map((n) => (chart.moreUnit ?? short)(n)) });
  const plot = new window.uPlot({
    width: part.clientWidth, height: HEIGHT, series: [{ label: "UTC", value: (_, s) => (s === null ? "–" : utc(s)) }, ...series], axes,
    scales: { y: { range: from(chart.least ?? 1) }, more: { range: from(1) } }, cursor: { drag: { x: false, y: false } },
  }, data, part);
  part.setAttribute("role", "img");
  part.setAttribute("aria-label", lines.map(([label]) => label).join(", "));
  return plot;
}

function draw(history) {
  for (const chart of CHARTS) {
    const part = document.getElementById(chart.id);
    const lines = [...chart.lines, ...(chart.more ? [chart.more] : [])];
    if (chart.tab !== address().tab || part.clientWidth === 0 || !history.series[lines[0][1]]) continue;
    const data = [history.at_unix_ms.map((ms) => ms / 1000), ...lines.map(([, name]) => history.series[name])];
    const plot = plots.get(chart.id);
    if (!plot) plots.set(chart.id, makeChart(chart, data));
    else {
      if (plot.width !== part.clientWidth) plot.setSize({ width: part.clientWidth, height: HEIGHT });
      plot.setData(data);
    }
  }
}

let asks = 0;
async function ask() {
  const mine = asks += 1;
  const { tab } = address();
  if (document.hidden || !["now", "relay", "machine"].includes(tab)) return;
  const span = tab === "now" ? "600" : seconds;
  const answer = await fetch(`/api/v1/history?seconds=${span}&step=${Math.ceil(span / 300)}`);
  if (mine !== asks) return;
  const history = await answer.json();
  if (tab === "now") showSparks(history);
  else draw(history);
}

/** Asks for the history as long as the page `isLive`. */
export async function startHistory(isLive) {
  for (const part of document.querySelectorAll("[data-range]")) {
    const choice = oneOf("Time", [["600", "10 min"], ["3600", "1 hour"]], seconds, (value) => {
      seconds = value;
      for (const input of document.querySelectorAll("[data-range] input")) input.checked = input.value === value;
      ask();
    });
    part.append(choice);
  }
  const repaint = () => {
    for (const plot of plots.values()) plot.destroy();
    plots.clear();
    ask().catch(() => {});
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("hashchange", () => ask().catch(() => {}));
  for (;;) {
    // The event stream reports that the connection is lost.
    if (isLive()) await ask().catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, plots.size === 0 ? 500 : EVERY_MS));
  }
}
