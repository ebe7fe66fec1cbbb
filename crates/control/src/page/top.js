// The sentence on top, computed from state, and what needs attention, red first.

import { make, text } from "/figures/parts.js";
import { ago, bytes, plural } from "./text.js";

const RECENT_MS = 60_000;
const isProven = ({ proof }) => ["crc", "sequence", "oracle", "snapshot"].includes(proof);
let shown = "";
let relayed = null;

/** Facts that need attention: `[href, words]`. */
function facts({ turn, market, gate, at_unix_ms: now }) {
  const found = [];
  for (const { source, code, count, first_unix_ms: first, last_unix_ms: last } of turn?.rejected_sources ?? []) {
    if (now - last > RECENT_MS) continue;
    const what = code === 401 ? "with a wrong name or password" : `refused with ${code}`;
    found.push(["#relay", `${plural(count, "request")} ${what} in ${ago(Math.max(now - first, 1000))} from ${source}.`, code !== 401]);
  }
  const lost = market?.books.filter((book) => !isProven(book) && book.proof !== "unverified") ?? [];
  if (lost.length > 0) {
    const names = lost.slice(0, 3).map(({ venue, symbol }) => `${symbol} on ${venue}`).join(", ");
    found.push(["#books", `${plural(lost.length, "book")} not proved: ${names}${lost.length > 3 ? ", …" : ""}.`, lost.every(({ proof }) => proof === "syncing")]);
  }
  const cut = market?.feeds.filter(({ connected }) => !connected) ?? [];
  if (cut.length > 0) found.push(["#books", `Not connected: ${[...new Set(cut.map(({ venue }) => venue))].join(", ")}.`, false]);
  if (gate?.modes.length) found.push(["#gate", `The gate stops orders of ${gate.modes.map(({ scope, mode }) => `${scope} (${mode})`).join(", ")}.`, false]);
  if (gate?.journal?.is_lost) found.push(["#gate", "The gate's journal is lost: orders are rejected.", false]);
  if (turn?.workers_down) found.push(["#relay", `${plural(turn.workers_down, "worker")} down after a panic.`, false]);
  if (turn?.memory?.is_full) found.push(["#relay", "Memory is full: new allocations are rejected.", false]);
  if (turn?.draining) found.push(["#relay", "The server drains: it makes no new allocations.", true]);
  return found.sort((a, b) => a[2] - b[2]);
}

function booksSay({ market, incidents, at_unix_ms: now }) {
  const all = market.books.length;
  if (all === 0) return "No book is followed yet";
  const proven = market.books.filter(isProven).length;
  const says = `${proven} of ${plural(all, "book")} ${proven === 1 ? "agrees" : "agree"} with ${proven === 1 ? "its" : "their"} venue`;
  const last = incidents.find(({ reaction }) => reaction !== "ignored");
  if (!last) return says;
  const when = ago(now - last.at_unix_ns / 1e6);
  const healed = last.proven_unix_ns === null ? "" : ` and was proved again in ${Math.max(1, Math.round((last.proven_unix_ns - last.at_unix_ns) / 1e6)).toLocaleString("en")} ms`;
  return `${says}; ${last.book ? "one disagreed" : "a connection was lost"} ${when} ago${healed}`;
}

function relaySays({ turn, at_unix_ms: at }) {
  const total = turn.allocations.to_peers_bytes + turn.allocations.to_clients_bytes;
  if (!relayed || at - relayed.at > 2000 || total < relayed.total) relayed = { at, total, rate: relayed && total >= relayed.total && at > relayed.at ? (1000 * (total - relayed.total)) / (at - relayed.at) : 0 };
  if (turn.allocations.live === 0) return "no call is relayed";
  return `${plural(turn.allocations.live, "allocation")} ${turn.allocations.live === 1 ? "relays" : "relay"} ${bytes(relayed.rate)}/s`;
}

function gateSays({ risk }) {
  if (!risk) return "the gate judges the events that this process reads";
  const { in: intents, outcomes } = risk.ledger;
  return intents === 0 ? "the gate has judged no order" : `the gate accepted ${Math.round((100 * (outcomes[0]?.count ?? 0)) / intents)} % of ${plural(intents, "order")}`;
}

export function showTop(snapshot) {
  const says = [snapshot.market && booksSay(snapshot), snapshot.turn && relaySays(snapshot), (snapshot.risk || snapshot.gate) && gateSays(snapshot)].filter(Boolean).join("; ");
  const sentence = says ? `${says[0].toUpperCase()}${says.slice(1)}.` : "No engine runs in this process.";
  text(document.getElementById("sentence"), sentence);
  const found = facts(snapshot);
  const key = JSON.stringify(found);
  if (key === shown) return;
  shown = key;
  const rows = found.map(([href, words, mild]) => make("li", { class: mild ? "mild" : "red" }, make("a", { href }, words)));
  document.getElementById("facts").replaceChildren(...(rows.length > 0 ? rows : [make("li", { class: "well" }, "Nothing needs attention.")]));
}
