// The gate: exposure against limits, verdicts with their reasons.

import { count, make, text, time } from "/figures/parts.js";
import { cells, clock, plain, rows } from "./text.js";

const VERDICTS_SHOWN = 16;
const phrase = (reason) => reason.toLowerCase().replaceAll("_", " ");

function barRow() {
  return make("tr", {}, make("th", { scope: "row" }), make("td", {}, make("span", { class: "bar" })), make("td"));
}

function fillBar(row, name, share, value) {
  text(row.cells[0], name);
  row.cells[1].firstChild.hidden = share === 0;
  row.cells[1].firstChild.style.width = `${Math.max(0, share * 100).toFixed(1)}%`;
  text(row.cells[2], value);
}

function verdictRow() {
  const row = cells("", "", "", "num")();
  row.cells[1].append(make("span", { class: "side" }), make("span", { class: "mono" }), make("span", { class: "chip simulated" }, "simulated"));
  row.cells[2].append(make("div", { class: "chips" }));
  return row;
}

function exposureRow() {
  const row = cells("", "", "", "num", "", "num", "num wide", "num wide")();
  for (const cell of [row.cells[2], row.cells[4]]) cell.append(make("span", { class: "meter" }, make("i")));
  return row;
}

/** A bar of a share; it is red from nine tenths on. */
function fillMeter(cell, share) {
  const bar = cell.firstChild.firstChild;
  bar.style.width = `${(100 * Math.min(share, 1)).toFixed(1)}%`;
  cell.firstChild.dataset.state = share >= 0.9 ? "full" : share >= 0.7 ? "near" : "";
  cell.firstChild.title = `${(100 * share).toFixed(0)} %`;
}

const share = (value, max) => (max > 0 ? Math.abs(value) / max : 0);

/** The levels by instrument: the firm, its accounts, their strategies. */
function exposures({ levels, limits }) {
  const rank = { firm: 0, account: 1, strategy: 2 };
  const all = [...limits.map((row) => ({ level: "account", ...row })), ...levels];
  const key = ({ venue, symbol }) => `${venue} ${symbol}`;
  return all.sort((a, b) => key(a).localeCompare(key(b)) || (a.account ?? 0) - (b.account ?? 0) || rank[a.level] - rank[b.level]);
}

function levelOf({ level, account, strategy }) {
  return level === "firm" ? "firm" : level === "account" ? `account ${account}` : `strategy ${account}/${strategy}`;
}

function fillExposure(row, limits) {
  const position = Number(limits.position);
  const max = Number(position < 0 ? limits.position_short_max : limits.position_long_max);
  text(row.cells[0], levelOf(limits));
  text(row.cells[1], `${limits.symbol} ${limits.venue}`);
  fillMeter(row.cells[2], share(position, max));
  const [long, short] = [plain(limits.position_long_max), plain(limits.position_short_max)];
  text(row.cells[3], `${plain(limits.position)} of ${long === short ? `±${long}` : `−${short} to +${long}`}`);
  fillMeter(row.cells[4], share(limits.open_orders, limits.open_orders_max));
  text(row.cells[5], `${limits.open_orders} of ${limits.open_orders_max}`);
  text(row.cells[6], limits.qty_max === undefined ? "" : plain(limits.qty_max));
  text(row.cells[7], limits.collar_bps === undefined ? "" : `${limits.collar_bps} bps`);
}

export function showRisk(risk, simulated) {
  rows(document.querySelector(".limits tbody"), exposures(risk), exposureRow, fillExposure);
  rows(document.querySelector(".verdicts tbody"), risk.verdicts.slice(0, VERDICTS_SHOWN), verdictRow, (row, verdict) => fillVerdict(row, verdict, simulated));
  const found = risk.reasons.filter((reason) => reason.count > 0).sort((a, b) => b.count - a.count);
  const most = found[0]?.count ?? 1;
  rows(document.querySelector(".reasons tbody"), found, barRow, (row, reason) =>
    fillBar(row, phrase(reason.name), reason.count / most, count(reason.count)));
  const { ring } = risk;
  text(document.getElementById("ring"), `Ring of ${count(ring.capacity)} slots: ${count(ring.pushed)} pushed = ${count(ring.popped)} popped + ${count(ring.pushed - ring.popped)} queued; ${count(ring.full)} pushes found it full. ` +
    (risk.journey ? `Push to verdict p50 ${time(risk.journey.p50_ns)}, p99 ${time(risk.journey.p99_ns)}: the gate’s thread sleeps between intents; in truetick bench it spins.` : ""));
}

function fillVerdict(row, verdict, simulated) {
  if (row.dataset.seq === String(verdict.seq)) return;
  row.dataset.seq = verdict.seq;
  text(row.cells[0], clock(verdict.at_unix_ms));
  text(row.cells[1].children[0], `${verdict.side} `);
  text(row.cells[1].children[1], `${plain(verdict.qty)} ${verdict.symbol} at ${verdict.px} `);
  row.cells[1].children[2].hidden = !simulated;
  const chips = verdict.accept
    ? [make("span", { class: "chip good" }, "accepted")]
    : [make("span", { class: "chip bad" }, "rejected"), ...verdict.reasons.map((reason) => make("span", { class: "chip" }, phrase(reason)))];
  row.cells[2].firstChild.replaceChildren(...chips);
  text(row.cells[3], time(verdict.journey_ns));
}
