// Where the median goes, and the steps that led to it.

import { absent, interval, make, termName, time } from "./parts.js";

const change = (ns) => (ns > 0 ? `+${time(ns)}` : time(ns));

/** The terms of the median as one stacked bar. */
export function showTerms(part, entry) {
  const terms = entry?.terms ?? [];
  if (terms.length === 0) {
    part.replaceChildren(absent("Not measured in this run, or not in this placement."));
    return;
  }
  const whole = terms.reduce((sum, term) => sum + term.ns.value, 0);
  const drawn = terms.reduce((sum, term) => sum + Math.max(term.ns.value, 0), 0);
  const bar = make("div", { class: "stack", role: "img", "aria-label": terms.map((term) => `${termName(term.name)} ${time(term.ns.value)}`).join(", ") });
  const list = make("ul", { class: "terms" });
  for (const term of terms) {
    const piece = make("span", { "data-term": term.name });
    piece.style.width = `${(100 * Math.max(term.ns.value, 0)) / drawn}%`;
    bar.append(piece);
    list.append(make("li", { "data-term": term.name, title: term.what }, make("i"), `${termName(term.name)} `,
      make("b", {}, time(term.ns.value)), make("small", {}, ` ${interval(term.ns)}`)));
  }
  const controls = (entry.controls ?? []).map((control) => make("li", { "data-holds": control.holds },
    make("span", { class: `chip ${control.holds ? "good" : "bad"}` }, control.holds ? "holds" : "does not hold"), ` ${control.what}: `,
    control.moved.map((term) => `${termName(term.name)} ${change(term.ns.value)}`).join(", "), `; expected ${change(control.expected_ns)} of the evaluator`));
  part.replaceChildren(make("p", { class: "result" }, make("b", {}, time(whole)), " p50 from end to end"), bar, list);
  if (controls.length > 0) part.append(make("p", { class: "quiet" }, "Changed on purpose, to see that only its own term moves:"), make("ul", { class: "controls-of" }, ...controls));
}

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

/** Ten steps, cumulative and each taken out of the final build, next to what was published. */
export function showJourney(part, journey) {
  if (journey.length === 0) {
    part.replaceChildren(absent("Not in this run: truetick bench ring --journey measures it."));
    return;
  }
  const values = journey.flatMap((step) => [step.cumulative?.high, step.without?.high, step.published_ns]);
  const most = 1.03 * Math.max(...values.filter((value) => value !== undefined && value !== null));
  const rows = journey.map((step) => {
    const track = make("div", { class: "dots" });
    for (const [kind, estimate] of [["cumulative", step.cumulative], ["without", step.without]]) {
      if (estimate) track.append(whisker(estimate, most), dot(kind, estimate.value, most));
    }
    if (step.published_ns !== null) track.append(dot("published", step.published_ns, most));
    const figure = (estimate) => (estimate ? time(estimate.value) : "–");
    return make("tr", {}, make("th", { scope: "row", title: step.what }, step.name), make("td", { class: "drawn" }, track),
      make("td", { class: "num", "data-of": "cumulative" }, figure(step.cumulative)), make("td", { class: "num", "data-of": "without" }, figure(step.without)),
      make("td", { class: "num", "data-of": "published" }, step.published_ns === null ? "–" : time(step.published_ns)), make("td", { class: "says" }, step.verdict));
  });
  const head = ["Step", "", "with all before it", "final without it", "published", "here"].map((name, index) =>
    make("th", { scope: "col", class: index >= 2 && index <= 4 ? "num" : "" }, name));
  part.replaceChildren(
    make("p", { class: "key" }, ...[["cumulative", "with this step and all before it"], ["without", "the final build without this step alone"], ["published", "published (another machine)"]]
      .map(([kind, says]) => make("span", {}, make("i", { class: `dot ${kind}` }), says))),
    make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "The journey" },
      make("table", { class: "journey" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))));
}
