// Drawing: each function updates the document from one part of a snapshot.

import { count, make, text, time } from "/figures/parts.js";

const HISTORY_MS = 60_000;
const RATE_OVER_MS = 1000;
const VERDICTS_SHOWN = 16;

const rates = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const spreads = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** A decimal without trailing zeros. */
const plain = (decimal) => (decimal.includes(".") ? decimal.replace(/\.?0+$/, "") : decimal);

function bytes(n) {
  if (n < 1e3) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  return n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(2)} GB`;
}

/** Updates the rows of `body` from `items`: `build` creates a row once, `fill` updates it. */
function rows(body, items, build, fill) {
  while (body.rows.length > items.length) body.lastElementChild.remove();
  while (body.rows.length < items.length) body.append(build());
  items.forEach((item, index) => fill(body.rows[index], item, index));
}

const cells = (...kinds) => () => make("tr", {}, ...kinds.map((kind) => make("td", kind ? { class: kind } : {})));

function barRow() {
  return make("tr", {}, make("th", { scope: "row" }), make("td", {}, make("span", { class: "bar" })), make("td"));
}

function fillBar(row, name, share, value) {
  text(row.cells[0], name);
  row.cells[1].firstChild.hidden = share === 0;
  row.cells[1].firstChild.style.width = `${Math.max(0, share * 100).toFixed(1)}%`;
  text(row.cells[2], value);
}

export function showMachine(machine) {
  const up = Math.floor(machine.uptime_ms / 1000);
  const clock = [up / 3600, (up / 60) % 60, up % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
  const share = machine.uptime_ms > 0 ? (100 * machine.cpu_ms) / machine.uptime_ms : 0;
  text(document.getElementById("machine"), [
    `${machine.cpu}, ${machine.cores} cores`, `Linux ${machine.kernel}`, `${machine.version} ${machine.build}`,
    `up ${clock.join(":")}`, `${share.toFixed(0)} % of one core`, `${bytes(machine.rss_bytes)} memory`,
  ].join(" · "));
}

/** One engine's card, and the history for its rate. */
export function makeEngine(name, what) {
  const card = document.getElementById("engine").content.firstElementChild.cloneNode(true);
  const key = name.toLowerCase();
  card.id = `engine-${key}`;
  text(card.querySelector(".name"), name);
  text(card.querySelector(".what"), what);
  return { key, card, history: [] };
}

const EXTRAS = {
  turn: ({ allocations, ledger }) => ledger.in === 0 ? "No client yet" : `${count(allocations.live)} of ${count(allocations.capacity)} live allocations, ` +
    `${bytes(allocations.to_peers_bytes + allocations.to_clients_bytes)} relayed`,
  market: ({ books }) => `${count(books.filter(isProven).length)} of ${count(books.length)} books verified`,
  risk: ({ ledger }) => `${Math.round((100 * ledger.outcomes[0].count) / Math.max(ledger.in, 1))} % accepted since startup`,
};

export function showEngine(engine, snapshot, at, visible) {
  const { card, history } = engine;
  card.querySelector(".absent").hidden = snapshot !== null;
  card.querySelector(".present").hidden = snapshot === null;
  if (snapshot === null) return;
  const { ledger, stages } = snapshot;
  if (history.length > 0 && ledger.in < history.at(-1).total) history.length = 0; // the server restarted
  history.push({ at, total: ledger.in });
  while (history[0].at < at - HISTORY_MS - RATE_OVER_MS) history.shift();
  if (!visible) return;
  showRate(card, ledger.unit, history, at);
  text(card.querySelector(".extra"), EXTRAS[engine.key](snapshot));
  showStages(card, stages);
  showLedger(card, ledger);
}

/** The rate at each entry of the history, over the preceding second. */
function rateHistory(history) {
  const points = [];
  let from = 0;
  for (const point of history) {
    while (history[from].at < point.at - RATE_OVER_MS) from += 1;
    const earlier = history[from];
    if (point.at > earlier.at) points.push({ at: point.at, rate: (1000 * (point.total - earlier.total)) / (point.at - earlier.at) });
  }
  return points;
}

function showRate(card, unit, history, at) {
  const points = rateHistory(history);
  if (points.length === 0) return;
  const peak = Math.max(...points.map((point) => point.rate));
  const now = points.at(-1).rate;
  text(card.querySelector(".rate b"), rates.format(Math.round(now)));
  text(card.querySelector(".rate span"), `${unit}/s`);
  text(card.querySelector(".peak"), `peak ${rates.format(Math.round(peak))}/s`);
  const x = (point) => (240 * (1 - (at - point.at) / HISTORY_MS)).toFixed(1);
  const line = points.map((point) => `${x(point)} ${(38 - (36 * point.rate) / Math.max(peak, 1)).toFixed(1)}`).join("L");
  card.querySelector(".line").setAttribute("d", `M${line}`);
  card.querySelector(".area").setAttribute("d", `M${x(points[0])} 40L${line}L240 40Z`);
  card.querySelector(".spark").setAttribute("aria-label", `${unit} per second over the last 60 seconds, ${Math.round(now)} now`);
}

function showStages(card, { stages, pass, one_in }) {
  const longest = Math.max(...stages.map((stage) => stage.mean_ns), 1);
  rows(card.querySelector(".stages tbody"), stages, barRow, (row, stage) => {
    const sampled = stage.n > 0;
    fillBar(row, stage.stage.replace("_", " "), sampled ? stage.mean_ns / longest : 0, sampled ? time(stage.mean_ns) : "no sample");
  });
  const whole = pass ?? {};
  const list = [["pass p50", time(whole.p50_ns)], ["p95", time(whole.p95_ns)], ["p99", time(whole.p99_ns)], ["p99.9", time(whole.p999_ns)]];
  const terms = card.querySelector(".pass");
  if (terms.children.length === 0) list.forEach(([term]) => terms.append(make("div", {}, make("dt", {}, term), make("dd"))));
  list.forEach(([, value], index) => text(terms.children[index].lastChild, value));
  text(card.querySelector("caption"), `Mean time per stage; ${count(whole.n ?? 0)} samples${one_in === 1 ? "" : `, 1 in ${count(one_in)}`}`);
}

function showLedger(card, ledger) {
  const line = card.querySelector(".ledger");
  const { unit } = ledger;
  text(line, `${count(ledger.in)} ${unit} in ${ledger.closes ? "=" : "≠"} ${count(ledger.out)} out + ${count(ledger.dropped)} dropped`);
  line.classList.toggle("open", !ledger.closes);
  text(card.querySelector("summary"), "Outcomes, and drops by reason");
  const all = [...ledger.outcomes, ...ledger.drops.map((drop) => ({ name: `dropped: ${drop.name}`, count: drop.count }))];
  rows(card.querySelector(".drops tbody"), all, cells("", ""), (row, entry) => {
    text(row.cells[0], entry.name.replaceAll("_", " "));
    text(row.cells[1], count(entry.count));
    row.className = entry.count === 0 ? "none" : "";
  });
}

const PROVEN = ["crc", "sequence", "oracle", "snapshot"];
const PROOFS = {
  crc: "The venue’s checksum of the best levels fits.",
  sequence: "No update is missing. A digit that changed on the way would not be noticed.",
  oracle: "No update is missing, and the venue’s best bid and offer of the same update fits.",
  snapshot: "No update is missing, and all levels fitted the venue’s snapshot at the verified update.",
};
function isProven(book) {
  return PROVEN.includes(book.proof);
}
let chosen = 0;

function bookRow() {
  const row = cells("", "num", "num", "num wide", "", "num wide", "num wide")();
  row.cells[0].append(make("button", { type: "button" }, make("span"), make("small")));
  row.cells[4].append(make("span", { class: "chip" }), make("small", { class: "narrow" }));
  row.addEventListener("click", () => { chosen = Number(row.dataset.instrument); });
  return row;
}

/** "connected", "not connected", or the topics that the venue accepted and does not send; what it refuses, and where a book was wrong. */
function connection(feed) {
  if (!feed.connected) return "not connected";
  const silent = feed.silent_topics.map(({ topic, symbol }) => `${topic} ${symbol}`.trim());
  const state = silent.length > 0 ? `silent: ${silent.join(", ")}` : "connected";
  const refused = feed.refused.map(({ subject }) => subject);
  const differed = feed.differences.slice(-1).map((last) =>
    `; differed from a snapshot ${count(feed.snapshot_mismatches)} times, last ${last.symbol} ${last.side} ${last.px}`);
  return (refused.length > 0 ? `${state}; refused: ${refused.join(", ")}` : state) + differed.join("");
}

export function showBooks({ books, feeds }) {
  rows(document.querySelector(".feeds tbody"), feeds, cells("", "", "num", "num", "num"), (row, feed) => {
    const shown = [feed.venue, connection(feed), count(feed.frames), count(feed.gaps), count(feed.resyncs)];
    shown.forEach((value, cell) => text(row.cells[cell], value));
  });
  rows(document.querySelector(".books tbody"), books, bookRow, (row, book) => {
    row.dataset.instrument = book.instrument;
    row.dataset.chosen = book.instrument === chosen;
    const name = row.cells[0].firstChild;
    text(name.firstChild, book.symbol);
    text(name.lastChild, book.venue);
    text(row.cells[1], book.bids[0]?.px ?? "–");
    text(row.cells[2], book.asks[0]?.px ?? "–");
    text(row.cells[3], book.spread_bps === null ? "–" : `${spreads.format(book.spread_bps)} bps`);
    const chip = row.cells[4].firstChild;
    text(chip, book.proof);
    chip.title = PROOFS[book.proof] ?? "";
    chip.className = `chip ${isProven(book) ? "good" : book.proof === "stale" ? "bad" : ""}`;
    text(row.cells[5], count(book.proof_update_id));
    const age = time(book.proof_age_ms === null ? null : book.proof_age_ms * 1e6);
    text(row.cells[4].lastChild, age);
    text(row.cells[6], age);
  });
  showLadder(books.find((book) => book.instrument === chosen) ?? books[0]);
}

function showLadder(book) {
  if (!book) return;
  text(document.getElementById("ladder-title"), `${book.symbol} on ${book.venue}, update ${count(book.update_id)}` +
    (book.known_levels === null ? "" : `, known to ${count(book.known_levels)} levels`));
  const depth = Math.max(book.bids.length, book.asks.length);
  const most = Math.max(...[...book.bids, ...book.asks].map((level) => Number(level.qty)), Number.MIN_VALUE);
  const levels = Array.from({ length: depth }, (_, index) => [book.bids[index], book.asks[index]]);
  rows(document.querySelector(".ladder tbody"), levels, cells("num qty-bid", "num bid", "num ask", "num qty-ask"), (row, [bid, ask]) => {
    [[0, bid?.qty], [1, bid?.px], [2, ask?.px], [3, ask?.qty]].forEach(([cell, value]) => text(row.cells[cell], value ?? ""));
    row.cells[0].style.setProperty("--share", `${((100 * Number(bid?.qty ?? 0)) / most).toFixed(1)}%`);
    row.cells[3].style.setProperty("--share", `${((100 * Number(ask?.qty ?? 0)) / most).toFixed(1)}%`);
  });
}

const phrase = (reason) => reason.toLowerCase().replaceAll("_", " ");

function verdictRow() {
  const row = cells("", "", "", "num")();
  row.cells[1].append(make("span", { class: "side" }), make("span", { class: "mono" }));
  row.cells[2].append(make("div", { class: "chips" }));
  return row;
}

export function showRisk(risk) {
  rows(document.querySelector(".verdicts tbody"), risk.verdicts.slice(0, VERDICTS_SHOWN), verdictRow, fillVerdict);
  const found = risk.reasons.filter((reason) => reason.count > 0).sort((a, b) => b.count - a.count);
  const most = found[0]?.count ?? 1;
  rows(document.querySelector(".reasons tbody"), found, barRow, (row, reason) =>
    fillBar(row, phrase(reason.name), reason.count / most, count(reason.count)));
  rows(document.querySelector(".limits tbody"), risk.limits, cells("", "num", "num", "num wide", "num wide"), (row, limits) => {
    text(row.cells[0], limits.symbol);
    const [long, short] = [plain(limits.position_long_max), plain(limits.position_short_max)];
    text(row.cells[1], `${plain(limits.position)} of ${long === short ? `±${long}` : `−${short} to +${long}`}`);
    text(row.cells[2], `${limits.open_orders} of ${limits.open_orders_max}`);
    text(row.cells[3], plain(limits.qty_max));
    text(row.cells[4], `${limits.collar_bps} bps`);
  });
  const { ring } = risk;
  text(document.getElementById("ring"), `Ring of ${count(ring.capacity)} slots: ${count(ring.pushed)} pushed = ${count(ring.popped)} popped + ${count(ring.pushed - ring.popped)} queued; ${count(ring.full)} pushes found it full. ` +
    (risk.journey ? `Push to verdict p50 ${time(risk.journey.p50_ns)}, p99 ${time(risk.journey.p99_ns)}: the gate’s thread sleeps between intents; in truetick bench it spins.` : ""));
}

function fillVerdict(row, verdict) {
  if (row.dataset.seq === String(verdict.seq)) return;
  row.dataset.seq = verdict.seq;
  text(row.cells[0], new Date(verdict.at_unix_ms).toISOString().slice(11, 23));
  text(row.cells[1].firstChild, `${verdict.side} `);
  text(row.cells[1].lastChild, `${plain(verdict.qty)} ${verdict.symbol} at ${verdict.px}`);
  const chips = verdict.accept
    ? [make("span", { class: "chip good" }, "accepted")]
    : [make("span", { class: "chip bad" }, "rejected"), ...verdict.reasons.map((reason) => make("span", { class: "chip" }, phrase(reason)))];
  row.cells[2].firstChild.replaceChildren(...chips);
  text(row.cells[3], time(verdict.journey_ns));
}
