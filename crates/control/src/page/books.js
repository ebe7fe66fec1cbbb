// Books: the list, and one book with its proof, depth, ladder and candles.

import { count, make, oneOf, text, time } from "/figures/parts.js";
import { address, bookAddress, isNamed } from "./address.js";
import { drawCandles, drawHeat, drawStrip } from "./canvas.js";
import { showIncidents } from "./incidents.js";
import { cells, rows } from "./text.js";

const PROVEN = ["crc", "sequence", "oracle", "snapshot"];
const PROOFS = {
  crc: "The venue’s checksum of the best levels fits.",
  sequence: "No update is missing. A digit that changed on the way would not be noticed.",
  oracle: "No update is missing, and the venue’s best bid and offer of the same update fits.",
  snapshot: "No update is missing, and all levels fitted the venue’s snapshot at the verified update.",
  stale: "The book is known to be wrong; it is requested again.",
  syncing: "The first snapshot is awaited.",
  unverified: "The venue sends nothing that would prove it.",
};
const spreads = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const isProven = (book) => PROVEN.includes(book.proof);
const EVERY_MS = 1000;
const LEVEL_PX = 22;
const DEPTH = 1000;

let chosen = null;
let loaded = "";
let asks = 0;
let depth = { columns: [], trades: [] };
let ladder = { bids: [], asks: [] };
let timeframe = "1m";

function bookRow() {
  const row = cells("", "num", "num", "num wide", "", "num wide")();
  row.cells[0].append(make("a", { href: "#books" }, make("span"), make("small"), make("span", { class: "chip simulated" }, "simulated")));
  row.cells[4].append(make("span", { class: "chip" }), make("small", { class: "narrow" }));
  row.addEventListener("click", () => { location.hash = row.cells[0].firstChild.getAttribute("href"); });
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

function fillBook(row, book, simulated) {
  row.dataset.chosen = book === chosen;
  const link = row.cells[0].firstChild;
  const where = bookAddress(book);
  if (link.getAttribute("href") !== where) link.setAttribute("href", where);
  text(link.children[0], book.symbol);
  text(link.children[1], book.venue);
  link.children[2].hidden = !simulated;
  row.classList.toggle("lost", !isProven(book) && book.proof !== "unverified");
  text(row.cells[1], book.bids[0]?.px ?? "–");
  text(row.cells[2], book.asks[0]?.px ?? "–");
  text(row.cells[3], book.spread_bps === null ? "–" : `${spreads.format(book.spread_bps)} bps`);
  const chip = row.cells[4].firstChild;
  text(chip, book.proof);
  chip.title = PROOFS[book.proof] ?? "";
  chip.className = `chip ${isProven(book) ? "good" : book.proof === "stale" ? "bad" : ""}`;
  const age = time(book.proof_age_ms === null ? null : book.proof_age_ms * 1e6);
  text(row.cells[4].lastChild, age);
  text(row.cells[5], age);
}

const KINDS = { orders: " of single orders", rpi: " with RPI orders" };

export function showBooks({ market, simulated }) {
  if (!market) return;
  const { books, feeds } = market;
  const wanted = address();
  const before = chosen && bookAddress(chosen);
  chosen = books.find((book) => isNamed(book, wanted)) ?? books[0] ?? null;
  rows(document.querySelector(".books tbody"), books, bookRow, (row, book) => fillBook(row, book, simulated));
  rows(document.querySelector(".feeds tbody"), feeds, cells("", "", "num", "num", "num"), (row, feed) => {
    const shown = [feed.venue, connection(feed), count(feed.frames), count(feed.gaps), count(feed.resyncs)];
    shown.forEach((value, cell) => text(row.cells[cell], value));
  });
  if (!chosen) return;
  text(document.getElementById("book-title"), `${chosen.symbol} on ${chosen.venue}`);
  text(document.getElementById("book-says"), `Update ${count(chosen.update_id)}, proof: ${chosen.proof}${KINDS[chosen.kind] ?? ""}` +
    `${chosen.known_levels === null ? "" : `, known to ${count(chosen.known_levels)} levels`}${simulated ? ", simulated" : ""}`);
  if (before !== bookAddress(chosen)) showChosen();
}

/** The book that the faults of the simulator go to. */
export const chosenBook = () => chosen;

/** Loads the chosen book's past when it is another one. */
export function showChosen() {
  if (address().tab !== "books" || !chosen) return;
  const name = bookAddress(chosen);
  if (name === loaded) return;
  loaded = name;
  depth = { columns: [], trades: [] };
  ladder = { bids: [], asks: [] };
  document.getElementById("ladder").scrollTop = 0;
  // Nothing of the book before is shown under the name of this one.
  draw({ proofs: "", incidents: [], candles: [] });
  ask().catch(() => {});
}

const json = async (path) => (await fetch(path)).json();

async function ask() {
  const [mine, book] = [asks += 1, chosen];
  const which = `venue=${encodeURIComponent(book.venue)}&symbol=${encodeURIComponent(book.symbol)}`;
  const since = depth.columns.at(-1)?.at_unix_ms ?? 0;
  const [more, proofs, found, [whole], [candles]] = await Promise.all([
    json(`/api/v1/market/history/depth?${which}&since=${since}`),
    json(`/api/v1/market/history/proofs?${which}&seconds=300`),
    json(`/api/v1/market/history/incidents?${which}`),
    json(`/api/v1/market/orderbook?${which}&depth=${DEPTH}`),
    json(`/api/v1/market/candles?${which}&timeframe=${timeframe}&limit=60`),
  ]);
  // Another book was chosen, or another answer has come before.
  if (mine !== asks) return;
  if (more.columns) {
    const from = (more.columns.at(-1)?.at_unix_ms ?? since) - 300_000;
    const trades = new Map([...depth.trades, ...more.trades].map((trade) => [`${trade.at_unix_ms} ${trade.px} ${trade.qty}`, trade]));
    depth = { columns: [...depth.columns, ...more.columns].filter((column) => column.at_unix_ms > from), trades: [...trades.values()].filter((trade) => trade.at_unix_ms > from) };
  }
  ladder = whole ?? ladder;
  draw({ proofs: proofs.books[0]?.cells ?? "", incidents: found.incidents, candles: candles?.candles ?? [] });
}

/** Draws depth and ladder as they are, and the rest from what is given. */
function draw({ proofs, incidents, candles }) {
  drawHeat(document.getElementById("heat"), depth, chosen.bids[0]?.px);
  drawStrip(document.getElementById("strip"), proofs, 600);
  showIncidents(incidents);
  showLadder();
  drawCandles(document.getElementById("candles"), candles);
  text(document.getElementById("candles-says"), `${timeframe}, from trades; the last ${count(candles.length)}`);
}

const ladderRow = cells("num qty-bid", "num bid", "num ask", "num qty-ask");

/** Only the levels in sight are in the document. */
function showLadder() {
  const box = document.getElementById("ladder");
  const [space, table] = box.children;
  const length = Math.max(ladder.bids.length, ladder.asks.length);
  space.style.height = `${length * LEVEL_PX}px`;
  const first = Math.min(Math.floor(box.scrollTop / LEVEL_PX), Math.max(length - 1, 0));
  const shown = Math.min(Math.ceil(box.clientHeight / LEVEL_PX) + 1, length - first);
  table.style.transform = `translateY(${first * LEVEL_PX}px)`;
  const levels = Array.from({ length: shown }, (_, index) => [ladder.bids[first + index], ladder.asks[first + index]]);
  // The bars compare what is in sight: one large level elsewhere hides nothing.
  const most = Math.max(...levels.flat().map((level) => Number(level?.qty ?? 0)), Number.MIN_VALUE);
  rows(table.tBodies[0], levels, ladderRow, (row, [bid, ask]) => {
    [[0, bid?.qty], [1, bid?.px], [2, ask?.px], [3, ask?.qty]].forEach(([cell, value]) => text(row.cells[cell], value ?? ""));
    row.cells[0].style.setProperty("--share", `${((100 * Number(bid?.qty ?? 0)) / most).toFixed(1)}%`);
    row.cells[3].style.setProperty("--share", `${((100 * Number(ask?.qty ?? 0)) / most).toFixed(1)}%`);
  });
  const of = (levels, all) => (levels.length === (all ?? 0) ? count(all ?? 0) : `${count(levels.length)} of ${count(all)}`);
  text(document.getElementById("ladder-says"), `${of(ladder.bids, ladder.bid_levels)} bids, ${of(ladder.asks, ladder.ask_levels)} asks`);
}

document.getElementById("ladder").addEventListener("scroll", showLadder, { passive: true });
document.getElementById("timeframes").append(oneOf("Candle", [["1s", "1 s"], ["1m", "1 min"], ["5m", "5 min"]], timeframe, (value) => {
  timeframe = value;
  if (chosen) ask().catch(() => {});
}));

setInterval(() => {
  const isSeen = chosen && address().tab === "books" && !document.hidden && document.body.dataset.link === "live";
  if (isSeen && document.getElementById("pause").ariaPressed !== "true") ask().catch(() => {});
}, EVERY_MS);
