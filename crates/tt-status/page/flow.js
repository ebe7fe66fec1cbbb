// The stages of each engine, with their measured times, from input to output.

import { make, time } from "./parts.js";

const ENGINES = [
  { key: "turn", name: "TURN", from: "datagram", to: "datagram", stages: ["parse", "validate", "look up", "build", "serialize"] },
  { key: "market", name: "Market", from: "frame", to: "verified book", stages: ["parse", "apply and publish"] },
  { key: "risk", name: "Risk", from: "intent", to: "verdict", stages: ["ring", "gate"] },
];

/** The paths of the engines from the rows of a result. */
export function pathsOf(rows) {
  const row = (name) => rows.find((one) => one.name === name);
  const mean = (name) => row(name)?.mean;
  const p50 = (name) => row(name)?.quantiles?.p50 ?? undefined;
  const turn = ["parse", "validate", "look_up", "build", "serialize"];
  return {
    turn: { stages: turn.map((name) => ({ name: name.replace("_", " "), ns: mean(`stage_${name}`) })), whole: mean("pipeline_pass"), says: "whole pass, mean" },
    market: {
      stages: [{ name: "parse", ns: mean("parse_ns") }, { name: "apply and publish", ns: mean("state_ob_delta_ns") }],
      whole: p50("end_to_end_ns"), says: "frame to published state, p50",
    },
    risk: {
      stages: [{ name: "ring", ns: p50("ring_one_way") }, { name: "gate", ns: mean("evaluator_ns") }],
      whole: p50("ring_end_to_end"), says: "push to verdict, p50, all placements",
    },
  };
}

/** Draws `paths` (`{turn: {stages, whole, says}, ...}`) into `part`, in place of what was there. */
export function showFlow(part, paths, absence = "not measured in this run; use truetick bench all") {
  part.replaceChildren(...ENGINES.map(({ key, name, from, to, stages }) => {
    const path = paths[key] ?? { stages: stages.map((stage) => ({ name: stage })) };
    const longest = Math.max(...path.stages.map((stage) => stage.ns ?? 0), 1);
    const row = make("div", { class: "path", "data-engine": key }, make("h3", {}, name));
    const way = make("ol", { class: "way" }, make("li", { class: "end" }, from));
    for (const stage of path.stages) {
      const known = stage.ns !== undefined && stage.ns !== null;
      const fill = make("i");
      fill.style.width = known ? `${Math.max(2, (100 * stage.ns) / longest)}%` : "0";
      way.append(make("li", { class: known ? "stage" : "stage none" }, make("span", {}, stage.name), make("b", {}, known ? time(stage.ns) : "–"), fill));
    }
    way.append(make("li", { class: "end" }, to));
    const whole = make("p", { class: "whole" });
    if (path.whole !== undefined && path.whole !== null) whole.append(make("b", {}, time(path.whole)), ` ${path.says}`);
    else whole.append(path.stages.some((stage) => stage.ns !== undefined) ? "" : absence);
    row.append(way, whole);
    return row;
  }));
}
