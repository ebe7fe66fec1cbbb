// The cards of the engines, and the machine.

import { count, make, text, time } from "/figures/parts.js";
import { bytes, cells, rows, short } from "./text.js";

const RATE_OVER_MS = 2000;
const SERIES = { turn: ["turn_datagrams_per_s"], market: ["market_frames_per_s"], risk: ["risk_accepted_per_s", "risk_rejected_per_s"] };

/** One engine's card, and the last totals for its rate. */
export function makeEngine(key, name, where, what) {
  const card = document.getElementById("engine").content.firstElementChild.cloneNode(true);
  card.id = `engine-${key}`;
  text(card.querySelector(".name"), name);
  card.querySelector(".name").href = where;
  text(card.querySelector(".what"), what);
  const terms = ["pass p50", "p95", "p99", "p99.9"].map((term) => make("div", {}, make("dt", {}, term), make("dd", {}, "–")));
  card.querySelector(".pass").append(...terms);
  return { key, card, totals: [] };
}

const isProven = ({ proof }) => ["crc", "sequence", "oracle", "snapshot"].includes(proof);

const EXTRAS = {
  turn: ({ allocations, ledger }) => ledger.in === 0 ? "No client yet" : `${count(allocations.live)} of ${count(allocations.capacity)} live allocations, ` +
    `${bytes(allocations.to_peers_bytes + allocations.to_clients_bytes)} relayed`,
  market: ({ books }) => `${count(books.filter(isProven).length)} of ${count(books.length)} books verified`,
  risk: ({ ledger }) => `${Math.round((100 * (ledger.outcomes[0]?.count ?? 0)) / Math.max(ledger.in, 1))} % accepted since startup`,
};

export function showEngine(engine, { ledger, stages, ...part }, at) {
  const { card, totals } = engine;
  if (totals.length > 0 && ledger.in < totals.at(-1).total) totals.length = 0; // the server restarted
  totals.push({ at, total: ledger.in });
  while (totals.length > 2 && totals[1].at < at - RATE_OVER_MS) totals.shift();
  const [first, now] = [totals[0], totals.at(-1)];
  if (now.at > first.at) {
    text(card.querySelector(".rate b"), short(Math.round((1000 * (now.total - first.total)) / (now.at - first.at))));
    text(card.querySelector(".rate span"), `${ledger.unit}/s`);
  }
  text(card.querySelector(".extra"), EXTRAS[engine.key]({ ledger, ...part }));
  const whole = stages.pass ?? {};
  const list = [whole.p50_ns, whole.p95_ns, whole.p99_ns, whole.p999_ns];
  list.forEach((ns, index) => text(card.querySelector(".pass").children[index].lastChild, time(ns)));
  showLedger(card, ledger);
}

function showLedger(card, ledger) {
  const line = card.querySelector(".ledger");
  const { unit } = ledger;
  text(line, `${count(ledger.in)} ${unit} in ${ledger.closes ? "=" : "≠"} ${count(ledger.out)} out + ${count(ledger.dropped)} dropped`);
  line.classList.toggle("open", !ledger.closes);
  text(card.querySelector("summary"), "Outcomes, and drops by reason");
  if (!card.querySelector("details").open) return;
  const all = [...ledger.outcomes, ...ledger.drops.map((drop) => ({ name: `dropped: ${drop.name}`, count: drop.count }))];
  rows(card.querySelector(".drops tbody"), all, cells("", ""), (row, entry) => {
    text(row.cells[0], entry.name.replaceAll("_", " "));
    text(row.cells[1], count(entry.count));
    row.className = entry.count === 0 ? "none" : "";
  });
}

/** The rate over the server's history. */
export function showSparks({ at_unix_ms: at, series }) {
  for (const [key, names] of Object.entries(SERIES)) {
    const card = document.getElementById(`engine-${key}`);
    if (!card || !series[names[0]] || at.length < 2) continue;
    const values = at.map((_, index) => names.reduce((sum, name) => sum + series[name][index], 0));
    const [peak, end] = [Math.max(...values), at.at(-1)];
    const x = (index) => (240 * (1 - (end - at[index]) / 600_000)).toFixed(1);
    const line = values.map((value, index) => `${x(index)} ${(38 - (36 * value) / Math.max(peak, 1)).toFixed(1)}`).join("L");
    card.querySelector(".line").setAttribute("d", `M${line}`);
    card.querySelector(".area").setAttribute("d", `M${x(0)} 40L${line}L240 40Z`);
    text(card.querySelector(".peak"), `peak ${short(peak)}/s`);
    card.querySelector(".spark").setAttribute("aria-label", `Rate over the last ten minutes, ${values.at(-1)} per second now`);
  }
}

export function showMachine(machine) {
  const up = Math.floor(machine.uptime_ms / 1000);
  const parts = [up / 3600, (up / 60) % 60, up % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
  const share = machine.uptime_ms > 0 ? (100 * machine.cpu_ms) / machine.uptime_ms : 0;
  text(document.getElementById("process"), [
    `${machine.cpu}, ${machine.cores} cores`, `Linux ${machine.kernel}`, `${machine.version} ${machine.build}`,
    `up ${parts.join(":")}`, `${share.toFixed(0)} % of one core`, `${bytes(machine.rss_bytes)} memory`,
  ].join(" · "));
}
