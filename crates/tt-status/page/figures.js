// All figures of a result, with one choice of the thread placement for those that need one.

import { make, oneOf, placementName, count } from "./parts.js";
import { pathsOf, showFlow } from "./flow.js";
import { showLine } from "./line.js";
import { showSharing } from "./sharing.js";
import { showSpread } from "./spread.js";
import { showComparison } from "./comparison.js";
import { showMap } from "./map.js";
import { showAblation } from "./ablation.js";

function card(id, title, subtitle) {
  const body = make("div", { class: "figure" });
  const box = make("section", { class: "card", id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title, make("small", {}, subtitle)), body);
  return { box, body };
}

/** The placement with the most to show, then the most runs; not that of runs whose threads moved, if there is another. */
function usual(classes) {
  const placed = classes.filter((entry) => entry.placement !== "moved");
  const layouts = (entry) => (entry.ping_pong ? entry.ways.length : 0);
  const sharings = (entry) => (entry.sharing ? 1 : 0);
  return (placed.length > 0 ? placed : classes).toSorted((a, b) => layouts(b) - layouts(a) || sharings(b) - sharings(a) || b.runs - a.runs)[0]?.placement;
}

/** Puts the figures of a `report.json` into `root`. */
export function mountFigures(root, { summary, figures }, { withFlow = true } = {}) {
  const { classes, ablation, simulated, parts } = figures;
  let placement = usual(classes);
  let sharingIsOn = true;
  let stops = [];

  const flow = card("figure-flow", "Stages", "means on this machine, which sum to a pass with stamps");
  const line = card("figure-line", "Cache-line transfer", "from the producer’s core to the consumer’s, with the times of this run");
  const sharing = card("figure-sharing", "False sharing", "two threads, each incrementing its own counter");
  const spread = card("figure-spread", "Latency distribution", "all samples of the run, both axes logarithmic");
  const comparison = card("figure-comparison", "Simulated and measured", "the distribution that the published figures describe, and the one of this run; same axes");
  const steps = card("figure-ablation", "Ring ablation", "each step switches one optimization of the real code");
  const map = card("figure-map", "Implementation map", "the code of this repository that does each part");

  const draw = () => {
    stops.forEach((stop) => stop());
    const entry = classes.find((one) => one.placement === placement);
    stops = [showLine(line.body, entry), drawSharing(entry)];
    if (simulated) stops.push(showComparison(comparison.body, simulated, placement, entry?.distributions.find((one) => one.name === "one_in_flight")));
    showFlow(flow.body, pathsOf(summary.rows ?? []));
  };
  const drawSharing = (entry) => {
    let stop = showSharing(sharing.body, entry, sharingIsOn, turn);
    function turn(isOn) {
      sharingIsOn = isOn;
      stop();
      stop = showSharing(sharing.body, entry, sharingIsOn, turn);
      sharing.body.querySelector("[role=switch]").focus();
    }
    return () => stop();
  };

  const placed = classes.filter((entry) => entry.ping_pong && entry.placement !== "moved");
  const choice = make("div", { class: "choices placements" });
  if (placed.length > 0) {
    const says = (entry) => `${placementName(entry.placement)} · ${count(entry.runs)} runs`;
    choice.append(oneOf("Placement of the two threads", placed.map((entry) => [entry.placement, says(entry)]), placement, (chosen) => { placement = chosen; draw(); }));
  }
  if (withFlow) root.append(flow.box);
  // A report of other rows, or of an earlier version, has neither.
  root.append(choice, line.box, sharing.box, spread.box, ...(simulated ? [comparison.box] : []), steps.box, ...(parts?.length > 0 ? [map.box] : []));
  draw();
  showSpread(spread.body, figures, [placement]);
  showAblation(steps.body, ablation);
  showMap(map.body, parts ?? []);
}
