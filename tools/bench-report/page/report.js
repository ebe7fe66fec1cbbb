// `report.html`: the head, the figures and the rows of one result.

import { count, make, text } from "./parts.js";
import { mountFigures } from "./figures.js";

const report = JSON.parse(document.getElementById("data").textContent);
const { environment: { date, machine, build, timing, disturbance, forced }, warnings, rows: results = [], truetick_bench: title, quick } = report.summary;

text(document.getElementById("run"), `bench ${title}${forced ? ", forced on a busy machine" : ""}${quick ? ", quick" : ""}`);
text(document.getElementById("machine"), [
  `${machine.cpu}, ${machine.cores} cores`, `Linux ${machine.kernel}`, build.rustc, `commit ${build.commit}${build.dirty ? " with changes" : ""}`, date,
  `clock ${(timing.counter_hz / 1e6).toFixed(0)} MHz in steps of ${timing.step_ns.toFixed(1)} ns, a read ${timing.read_ns.toFixed(1)} ns`,
  `${disturbance.wall_s.toFixed(0)} s, steal ${disturbance.steal_pct === null ? "unknown" : `${disturbance.steal_pct.toFixed(1)} %`}`,
].join(" · "));
document.getElementById("warnings").append(...warnings.map((line) => make("p", { class: "notice" }, line)));
mountFigures(document.getElementById("figures"), report);

const number = (value) => (Math.abs(value) >= 1000 ? count(Math.round(value)) : value.toPrecision(value < 1 ? 2 : 3));
const figure = (value, unit) => (value === null || value === undefined ? "" : `${number(value)} ${unit}`);
const tone = { reached: "good", behind: "bad", undecided: "" };
const aims = (row) => (row.aims ?? []).map(({ statistic, at_most: most, verdict }) =>
  make("span", { class: `chip ${tone[verdict]}`, title: `aim: ${statistic} at most ${figure(most, row.unit)}` }, `aim ${figure(most, row.unit)} ${verdict}`));
document.getElementById("all-rows").hidden = results.length === 0;
document.getElementById("rows").append(...results.map((row) => {
  const { published } = row;
  const median = published?.statistic === "p50" && row.quantiles?.p50;
  const [value, [low, high]] = median ? [row.quantiles.p50, row.quantiles_ci95.p50] : [row.mean, row.ci95];
  const mark = published?.mark ?? "";
  const factor = published?.factor ? ` ${number(published.factor)}×` : "";
  return make("tr", {},
    make("th", { scope: "row", title: row.what }, ...row.name.split("_").flatMap((part, index) => (index === 0 ? [part] : ["_", make("wbr"), part]))), make("td", { class: "num" }, figure(value, row.unit)), make("td", { class: "num wide" }, `[${number(low)}, ${number(high)}]`),
    make("td", { class: "num" }, published ? figure(published.value, published.unit) : ""),
    make("td", {}, ...(mark ? [make("span", { class: `chip ${mark === "better" ? "good" : mark === "worse" ? "bad" : ""}` }, mark + factor)] : []), ...aims(row)));
}));
