// Figure 2: two counters on one cache line, or on separate lines.

import { absent, calm, count, interval, make, text, time } from "./parts.js";

/** Animated duration of one increment on the shared line. */
const SHARED_MS = 1200;

function thread(name, cell) {
  const value = make("output", {}, "0");
  return { box: make("div", { class: "core" }, make("h4", {}, name), make("p", {}, `counts ${cell}`), value), value };
}

function bar(name, estimate, most) {
  const fill = make("i");
  fill.style.width = `${(100 * estimate.value) / most}%`;
  return make("div", { class: "measure" }, make("span", {}, name), make("div", { class: "track" }, fill),
    make("b", {}, time(estimate.value)), make("small", {}, interval(estimate)));
}

/** Draws the figure of `entry`, a placement class, into `part`; returns what stops its animation. */
export function showSharing(part, entry, isOn, turn) {
  const sharing = entry?.sharing;
  if (!sharing) {
    part.replaceChildren(absent("Not measured in this run, or not in this placement."));
    return () => {};
  }
  const { one_line: shared, own_lines: own } = sharing;
  const knob = make("button", { type: "button", role: "switch", class: "switch", "aria-checked": String(isOn) },
    make("i"), "The counters share a cache line");
  knob.addEventListener("click", () => turn(!isOn));
  const now = isOn ? shared : own;
  const factor = shared.value / own.value;
  const [first, second] = [thread("Core A", "a"), thread("Core B", "b")];
  const line = (...cells) => make("div", { class: "line" }, ...cells.map((cell) => make("span", {}, cell)));
  const track = make("div", { class: "track" });
  const moving = line("a", "b");
  if (isOn) track.append(moving);
  else track.append(line("a", "·"), line("·", "b"));
  const stage = make("div", { class: "stage-of-two", "data-sharing": isOn ? "on" : "off" }, first.box, track, second.box);
  const most = Math.max(shared.value, own.value);
  const says = make("p", { class: "result" }, make("b", {}, `${time(now.value)}`), ` per increment ${interval(now)}: `,
    isOn ? "the line moves between the cores" : "each line stays with its core");
  part.replaceChildren(knob, stage, says,
    make("div", { class: "measures" }, bar("one line", shared, most), bar(`separate lines, ${sharing.apart_bytes} bytes apart`, own, most)),
    make("p", { class: "verdict" }, factor >= 1 ? `False sharing makes an increment ${factor.toFixed(1)} times slower.` : `No cost of false sharing measured (factor ${factor.toFixed(2)}).`),
    make("p", { class: "quiet" }, `Measured: ${sharing.what}; mean over runs with its 95 % interval. The animation is ${count(Math.round(SHARED_MS / shared.value))} million times slower.`));
  return animate(stage, moving, [first.value, second.value], now.value / shared.value, isOn);
}

function animate(stage, moving, values, share, isOn) {
  if (calm.matches) {
    moving.style.left = "0%";
    values.forEach((value) => text(value, "–"));
    return () => {};
  }
  const begin = performance.now();
  let frame = 0;
  const draw = (at) => {
    const turns = (at - begin) / (SHARED_MS * share);
    if (isOn) {
      // The line is at each core for half of a turn, and moves in between.
      const phase = turns % 1;
      const side = phase < 0.5 ? Math.min(1, phase / 0.2) : 1 - Math.min(1, (phase - 0.5) / 0.2);
      moving.style.left = `${100 * side}%`;
      stage.dataset.owner = phase < 0.2 || (phase >= 0.5 && phase < 0.7) ? "moving" : phase < 0.5 ? "b" : "a";
      text(values[0], count(Math.floor(turns + 0.3)));
      text(values[1], count(Math.floor(turns + 0.8)));
    } else {
      values.forEach((value) => text(value, count(Math.floor(turns))));
    }
    frame = requestAnimationFrame(draw);
  };
  frame = requestAnimationFrame(draw);
  return () => cancelAnimationFrame(frame);
}
