// The stages of each engine, with their measured times, from input to output.

import { make, time } from "./parts.js";

const ENGINES = [
  { key: "turn", name: "TURN", from: "datagram", to: "datagram", rows: "stage_", plain: "pipeline_pass" },
  { key: "market", name: "Market", from: "frame", to: "published state", rows: "market_stage_", plain: "end_to_end_recorded_ns" },
  { key: "risk", name: "Risk", from: "intent", to: "verdict", rows: "evaluator_stage_", plain: "evaluator_ns" },
];
const STAGES = ["parse", "validate", "look_up", "build", "serialize"];
/** The parts of a pass whose stages are stamped: their means sum to its mean. */
const PARTS = [...STAGES, "rest", "probe"];

const SAYS = { look_up: "look up", probe: "the stamps" };

/** The paths of the engines from the rows of a result. */
export function pathsOf(rows) {
  const mean = (name) => rows.find((one) => one.name === name)?.mean;
  return Object.fromEntries(ENGINES.map(({ key, rows: prefix, plain }) =>
    [key, { parts: PARTS.map((name) => ({ name, ns: mean(`${prefix}${name}`) })), whole: mean(`${prefix}whole`), plain: mean(plain) }]));
}

/**
 * Draws `paths` (`{turn: {parts, whole, plain}, ...}`) into `part`, in place of what was there. All are means: `whole` is
 * the sum of `parts`, `plain` a pass without stamps.
 */
export function showFlow(part, paths, absence = "not measured in this run; use truetick bench all") {
  part.replaceChildren(...ENGINES.map(({ key, name, from, to }) => {
    const path = paths[key] ?? { parts: PARTS.map((name) => ({ name })) };
    const longest = Math.max(...path.parts.map((stage) => stage.ns ?? 0), 1);
    const row = make("div", { class: "path", "data-engine": key }, make("h3", {}, name));
    const way = make("ol", { class: "way" }, make("li", { class: "end" }, from));
    const isKnown = (ns) => ns !== undefined && ns !== null;
    for (const stage of path.parts) {
      const known = isKnown(stage.ns);
      const fill = make("i");
      fill.style.width = known ? `${Math.max(2, (100 * stage.ns) / longest)}%` : "0";
      way.append(make("li", { class: known ? "stage" : "stage none", "data-part": stage.name }, make("span", {}, SAYS[stage.name] ?? stage.name), make("b", {}, known ? time(stage.ns) : "–"), fill));
    }
    way.append(make("li", { class: "end" }, to));
    const whole = make("p", { class: "whole" });
    if (isKnown(path.whole)) whole.append(make("span", { class: "sum" }, make("b", {}, time(path.whole)), " the sum: a pass with stamps, mean"));
    else whole.append(path.parts.some((stage) => isKnown(stage.ns)) ? "" : absence);
    if (isKnown(path.plain)) whole.append(make("span", { class: "plain" }, make("b", {}, time(path.plain)), " a pass without stamps, mean"));
    row.append(way, whole);
    return row;
  }));
}
