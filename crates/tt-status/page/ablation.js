// Ablation: each step from a naive ring to the shipped one.

import { absent, make, time } from "./parts.js";
import { sourceList } from "./map.js";

function dot(kind, value, most) {
  const element = make("i", { class: `dot ${kind}`, title: `${kind}: ${time(value)}` });
  element.style.left = `${(100 * value) / most}%`;
  return element;
}

function whisker(estimate, most) {
  const element = make("i", { class: "whisker" });
  element.style.left = `${(100 * estimate.low) / most}%`;
  element.style.width = `${(100 * (estimate.high - estimate.low)) / most}%`;
  return element;
}

/** Where the published figures come from, a line for each source. */
function publishedSources(steps) {
  const groups = new Map();
  for (const { name, published_source: source } of steps) {
    if (source) groups.set(source, [...(groups.get(source) ?? []), name]);
  }
  return [...groups].map(([source, names]) => make("p", { class: "quiet published-source" }, `${source}: ${names.join(", ")}.`));
}

/** Eleven steps: cumulative, and each removed from the shipped ring, next to the published times. */
export function showAblation(part, steps) {
  if (steps.length === 0) {
    part.replaceChildren(absent("Not measured in this run; use truetick bench ring --ablation."));
    return;
  }
  const values = steps.flatMap((step) => [step.cumulative?.high, step.without?.high, step.published_ns]);
  const most = 1.03 * Math.max(...values.filter((value) => value !== undefined && value !== null));
  const rows = steps.map((step) => {
    const track = make("div", { class: "dots" });
    for (const [kind, estimate] of [["cumulative", step.cumulative], ["without", step.without]]) {
      if (estimate) track.append(whisker(estimate, most), dot(kind, estimate.value, most));
    }
    if (step.published_ns !== null) track.append(dot("published", step.published_ns, most));
    const figure = (estimate) => (estimate ? time(estimate.value) : "–");
    return make("tr", {}, make("th", { scope: "row", title: step.what }, step.name), make("td", { class: "drawn" }, track),
      make("td", { class: "num", "data-of": "cumulative" }, figure(step.cumulative)), make("td", { class: "num", "data-of": "without" }, figure(step.without)),
      make("td", { class: "num", "data-of": "published" }, step.published_ns === null ? "–" : time(step.published_ns)), make("td", { class: "says" }, step.verdict),
      make("td", { class: "code" }, sourceList(step.sources ?? []), sourceList(step.sources_without ?? [], "without: ")));
  });
  const head = ["Step", "", "cumulative", "without this step", "published", "result here", "code"].map((name, index) =>
    make("th", { scope: "col", class: index >= 2 && index <= 4 ? "num" : "" }, name));
  part.replaceChildren(
    make("p", { class: "key" }, ...[["cumulative", "with this and all previous steps"], ["without", "the shipped ring without this step"], ["published", "published (another machine)"]]
      .map(([kind, says]) => make("span", {}, make("i", { class: `dot ${kind}` }), says))),
    make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Ablation" },
      make("table", { class: "ablation" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))), ...publishedSources(steps));
}
