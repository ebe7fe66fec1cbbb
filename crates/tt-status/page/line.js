// Figure 1: transfer of a cache line between two cores, for two ring layouts side by side.

import { absent, button, calm, make, text, time } from "./parts.js";

const PLAY_MS = 7000;
const STEP_MS = 1500;

const NAMES = {
  sequence_in_slot: ["One line moves", "the sequence number and the event share a slot"],
  index_pair: ["Two lines move", "the index has its own line, then the event"],
};

/** Phases of a lane. The transfer is measured as a whole; its division into thirds or halves is not. */
function phases(layout, hop, whole) {
  const steps = layout === "index_pair" ? twoLines(hop) : oneLine(hop);
  const read = steps.at(-1).to;
  const last = steps.at(-1).after;
  return [...steps,
    { from: read, to: whole, cells: last, says: "The consumer reads the whole event and takes its timestamp." },
    { from: whole, to: Infinity, cells: last, done: true, says: `Event read, ${time(whole)} after the producer’s timestamp.` }];
}

function oneLine(hop) {
  const slot = "sequence + event";
  const cells = (producer, consumer) => ({ producer: { [slot]: producer }, consumer: { [slot]: consumer } });
  return [
    { from: -Infinity, to: 0, cells: cells("S", "S"), says: "The consumer spins on the slot. Both cores have a shared copy of its line." },
    { from: 0, to: hop / 3, cells: cells("S", "S"), token: ["invalidate", 1, slot], says: "The producer writes event and sequence. It needs exclusive ownership, so all other copies are invalidated." },
    { from: hop / 3, to: (2 * hop) / 3, cells: cells("M", "I"), token: ["read", -1, slot], says: "Modified at the producer, invalid at the consumer. The consumer’s next read misses and requests the line." },
    { from: (2 * hop) / 3, to: hop, cells: cells("S", "I"), token: ["line", 1, slot], after: cells("S", "S"), says: "One transfer carries both sequence and event." },
  ];
}

function twoLines(hop) {
  const cells = (index, event) => ({ producer: { index: index[0], event: event[0] }, consumer: { index: index[1], event: event[1] } });
  return [
    { from: -Infinity, to: 0, cells: cells("SS", "SS"), says: "The consumer spins on the index. It has an old copy of the slot." },
    { from: 0, to: hop / 3, cells: cells("SS", "MI"), token: ["invalidate", 1, "index"], says: "The producer writes the event, then the index. It needs exclusive ownership of both lines." },
    { from: hop / 3, to: (2 * hop) / 3, cells: cells("MI", "MI"), token: ["read", -1, "index"], says: "The consumer’s next read of the index misses and requests the line." },
    { from: (2 * hop) / 3, to: hop, cells: cells("SI", "MI"), token: ["line", 1, "index"], says: "The index is transferred. Only now does the consumer know where the event is." },
    { from: hop, to: 1.5 * hop, cells: cells("SS", "MI"), token: ["read", -1, "event"], says: "An event is available. The slot misses, and the consumer requests a second line." },
    { from: 1.5 * hop, to: 2 * hop, cells: cells("SS", "SI"), token: ["line", 1, "event"], after: cells("SS", "SS"), says: "The event is transferred." },
  ];
}

function core(name, lines) {
  const rows = Object.fromEntries(lines.map((line) => {
    const badge = make("b");
    return [line, { badge, row: make("div", { class: "cell" }, make("span", {}, line), badge) }];
  }));
  const box = make("div", { class: "core" }, make("h4", {}, name), ...Object.values(rows).map(({ row }) => row));
  return { box, show: (states) => Object.entries(states).forEach(([line, state]) => {
    text(rows[line].badge, state);
    rows[line].row.dataset.state = state;
  }) };
}

/** One layout's lane; `scale` is the time at the right end of every lane's meter. */
function makeLane(way, pingPong, scale) {
  const lines = way.layout === "index_pair" ? 2 : 1;
  const whole = way.p50.value;
  const hop = Math.min(pingPong, whole / lines);
  const steps = phases(way.layout, hop, whole);
  const [title, subtitle] = NAMES[way.layout];
  const names = way.layout === "index_pair" ? ["index", "event"] : ["sequence + event"];
  const [producer, consumer] = [core("Producer", names), core("Consumer", names)];
  const token = make("span", { class: "token" });
  const says = make("p", { class: "says" });
  const needle = make("i", { class: "needle" });
  const meter = make("div", { class: "meter" });
  const part = (name, ns, kind) => {
    const piece = make("span", { class: kind, title: `${name}: ${time(ns)}` }, make("b", {}, name), ` ${time(ns)}`);
    piece.style.width = `${(100 * Math.max(ns, 0)) / scale}%`;
    meter.append(piece);
  };
  names.forEach((name) => part(lines === 1 ? "line" : name, hop, "hop"));
  part("rest", whole - lines * hop, "rest");
  meter.append(needle);
  const box = make("section", { class: "lane", "data-layout": way.layout },
    make("h3", {}, title, make("small", {}, subtitle), make("output", { title: way.what }, time(whole))),
    make("div", { class: "cores" }, producer.box, make("div", { class: "track" }, token), consumer.box), meter, says);
  const show = (at) => {
    const phase = steps.find(({ from, to }) => at >= from && at < to) ?? steps.at(-1);
    producer.show(phase.cells.producer);
    consumer.show(phase.cells.consumer);
    box.dataset.done = phase.done === true;
    token.hidden = phase.token === undefined;
    if (phase.token) {
      const [kind, heading, line] = phase.token;
      const share = (at - phase.from) / (phase.to - phase.from);
      token.dataset.kind = kind;
      
      text(token, kind === "line" && lines === 2 ? line : kind);
      token.style.left = `${100 * (heading > 0 ? share : 1 - share)}%`;
    }
    needle.style.left = `${(100 * Math.min(Math.max(at, 0), scale)) / scale}%`;
    text(says, phase.says);
  };
  return { box, show, whole, edges: steps.map(({ from }) => from).filter(Number.isFinite) };
}

/** Draws the figure of `entry`, a placement class, into `part`; returns what stops its animation. */
export function showLine(part, entry) {
  if (!entry?.ping_pong || entry.ways.length === 0) {
    part.replaceChildren(absent("Not measured in this run, or not in this placement."));
    return () => {};
  }
  const pingPong = entry.ping_pong.value;
  const shown = entry.ways.filter((way) => NAMES[way.layout]);
  const resting = entry.ways.find((way) => way.layout === "sequence_in_slot_resting");
  const scale = Math.max(...shown.map((way) => way.p50.value)) * 1.02;
  const lanes = shown.map((way) => makeLane(way, pingPong, scale));
  const start = -0.12 * scale;
  const edges = [...new Set([start, ...lanes.flatMap((lane) => lane.edges)])].sort((a, b) => a - b);
  let at = start;
  let timer = 0;

  const slider = make("input", { type: "range", min: start, max: scale, step: "any", "aria-label": "Time since the producer’s timestamp" });
  const clock = make("output", { class: "clock" });
  const show = (to) => {
    at = Math.min(Math.max(to, start), scale);
    slider.value = at;
    const shown = at < 0 ? "before" : time(at);
    text(clock, shown);
    slider.setAttribute("aria-valuetext", shown);
    lanes.forEach((lane) => lane.show(at));
  };
  const stop = () => {
    cancelAnimationFrame(timer);
    clearTimeout(timer);
    timer = 0;
    text(play, "Play");
  };
  const next = () => show(edges.find((edge) => edge > at + 1e-6) ?? scale);
  const step = (move) => () => { stop(); move(); };
  const run = () => {
    if (timer !== 0) return stop();
    if (at >= scale - 1e-6) show(start);
    text(play, "Pause");
    if (calm.matches) {
      const tick = () => { next(); if (at < scale - 1e-6) timer = setTimeout(tick, STEP_MS); else stop(); };
      timer = setTimeout(tick, STEP_MS);
      return undefined;
    }
    let before = performance.now();
    const frame = (now) => {
      show(at + ((now - before) * (scale - start)) / PLAY_MS);
      before = now;
      if (at < scale - 1e-6) timer = requestAnimationFrame(frame); else stop();
    };
    timer = requestAnimationFrame(frame);
    return undefined;
  };
  const play = button("Play", run, { class: "main" });
  const back = () => show(edges.findLast((edge) => edge < at - 1e-6) ?? start);
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  const slower = Math.round(PLAY_MS / (scale - start)); // milliseconds over nanoseconds: millions
  part.replaceChildren(
    make("div", { class: "lanes" }, ...lanes.map((lane) => lane.box)),
    make("div", { class: "controls" }, button("Step back", step(back)), play, button("Step", step(next)), slider, clock),
    make("p", { class: "quiet" }, (resting ? `When idle, the shipped producer repeatedly fetches the next slot’s line; without that, one line takes ${time(resting.p50.value)}. ` : "") +
      `A transfer takes half a ping-pong round trip between the same threads: ${time(pingPong)}. ` +
      `Its division into invalidation, request and transfer is schematic, not measured. Playback is ${slower} million times slower. ` +
      "M: modified, S: shared, I: invalid. After a read, the producer’s line is S here; on AMD cores it is O (owned)."));
  show(start);
  return stop;
}
