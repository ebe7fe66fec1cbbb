// Helpers for all parts of a page.

const counts = new Intl.NumberFormat("en");
const seconds = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
export const count = (n) => counts.format(n);

/** A time in the unit that leaves one to three digits before the point. */
export function time(ns) {
  if (ns === null || ns === undefined) return "–";
  if (ns < 0) return `−${time(-ns)}`;
  if (ns === 0) return "0 ns";
  if (ns < 999.5) return `${ns < 100 ? ns.toFixed(1) : ns.toFixed(0)} ns`;
  if (ns < 999_500) return `${(ns / 1e3).toPrecision(3)} µs`;
  if (ns < 999_500_000) return `${(ns / 1e6).toPrecision(3)} ms`;
  return `${seconds.format(ns / 1e9)} s`;
}

/** The interval of an estimate, `[46.1 ns, 47.0 ns]`. */
export const interval = ({ low, high }) => `[${time(low)}, ${time(high)}]`;

export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const PLACEMENTS = {
  siblings: "two threads of one core",
  same_cache: "same L3",
  across_caches: "across L3s",
  moved: "moved during the run",
  turn: "TURN",
  market: "Market",
  risk: "Risk",
};
export const placementName = (placement) => PLACEMENTS[placement] ?? placement;

export const words = (name) => name.replaceAll("_", " ");

/** A colour of the style sheet, computed for the canvas. */
export function colour(name) {
  const probe = make("span", { hidden: "" });
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export const calm = matchMedia("(prefers-reduced-motion: reduce)");

let groups = 0;

/** A group of radio buttons. `choices` are `[value, label]`. */
export function oneOf(legend, choices, chosen, change) {
  groups += 1;
  const group = make("fieldset", { class: "choice" }, make("legend", {}, legend));
  for (const [value, says] of choices) {
    const input = make("input", { type: "radio", name: `choice-${groups}`, value });
    input.checked = value === chosen;
    input.addEventListener("change", () => change(value));
    group.append(make("label", {}, input, make("span", {}, says)));
  }
  return group;
}

/** A group of check boxes; at least one stays checked. */
export function someOf(legend, choices, chosen, change) {
  const group = make("fieldset", { class: "choice" }, make("legend", {}, legend));
  const inputs = choices.map(([value, says]) => {
    const input = make("input", { type: "checkbox", value });
    input.checked = chosen.includes(value);
    input.addEventListener("change", () => {
      if (inputs.every((other) => !other.checked)) input.checked = true;
      change(inputs.filter((other) => other.checked).map((other) => other.value));
    });
    group.append(make("label", {}, input, make("span", {}, make("i", { "data-series": value }), says)));
    return input;
  });
  return group;
}

export function button(says, click, attributes = {}) {
  const element = make("button", { type: "button", ...attributes }, says);
  element.addEventListener("click", click);
  return element;
}

/** The reason why a figure is empty. */
export const absent = (says) => make("p", { class: "quiet" }, says);
