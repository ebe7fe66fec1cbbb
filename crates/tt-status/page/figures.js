// All figures of a result, with one choice of the placement class for those that show one.

import { make, oneOf, placementName, count } from "./parts.js";
import { pathsOf, showFlow } from "./flow.js";
import { showLine } from "./line.js";
import { showSharing } from "./sharing.js";
import { showSpread } from "./spread.js";
import { showAblation } from "./ablation.js";

function card(id, title, subtitle) {
  const body = make("div", { class: "figure" });
  const box = make("section", { class: "card", id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title, make("small", {}, subtitle)), body);
  return { box, body };
}

/** The class that most runs were in, of those with a placement. */
function usual(classes) {
  const placed = classes.filter((entry) => entry.placement !== "moved");
  return (placed.length > 0 ? placed : classes).toSorted((a, b) => b.runs - a.runs)[0]?.placement;
}

/** Puts the figures of a `report.json` into `root`. */
export function mountFigures(root, { summary, figures }, { withFlow = true } = {}) {
  const { classes, ablation } = figures;
  let placement = usual(classes);
  let sharingIsOn = true;
  let stops = [];

  const flow = card("figure-flow", "From bytes to verdict", "the stages, and what each takes on this machine");
  const line = card("figure-line", "A cache line’s way", "from the producer’s core to the consumer’s, in this run’s times");
  const sharing = card("figure-sharing", "False sharing", "two threads, each with a counter of its own");
  const spread = card("figure-spread", "Every latency of the run", "both axes logarithmic, nothing removed");
  const steps = card("figure-ablation", "Ablation of the ring", "each step real code behind a switch");

  const draw = () => {
    stops.forEach((stop) => stop());
    const entry = classes.find((one) => one.placement === placement);
    stops = [showLine(line.body, entry), drawSharing(entry)];
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
    choice.append(oneOf("Distance of the two cores", placed.map((entry) => [entry.placement, says(entry)]), placement, (chosen) => { placement = chosen; draw(); }));
  }
  if (withFlow) root.append(flow.box);
  root.append(choice, line.box, sharing.box, spread.box, steps.box);
  draw();
  showSpread(spread.body, figures, [placement]);
  showAblation(steps.body, ablation);
}
