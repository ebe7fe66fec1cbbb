// Incidents of books: what was expected, what came, what the engine did, and when the book was proved again.

import { count, make, text, time } from "/figures/parts.js";
import { bookAddress } from "./address.js";
import { cells, clock, rows } from "./text.js";

const NAMES = { gap: "an update is missing", duplicate: "an update came twice", checksum: "the checksum differs", best_levels: "the best bid and offer differ", behind: "the book is too old", connection: "the connection was lost", other: "the book was wrong" };
const DID = { ignored: "ignored it; the book is unchanged", snapshot_requested: "marked the book stale and requested a snapshot", waiting: "marked the book stale until the venue's next one", reconnecting: "marked its books stale and reconnects" };
const moment = (unixNs) => new Date(Number(unixNs) / 1e6).toISOString().slice(11, 23);
const number = (digits) => (/^\d+$/.test(digits) ? count(Number(digits)) : digits);

export function expected({ cause, expected: what }) {
  if (cause === "gap") return `an update after ${number(what)}`;
  if (cause === "checksum") return `checksum ${number(what)}`;
  if (cause === "duplicate") return "a new update";
  if (cause === "best_levels") return what;
  if (cause === "behind") return `a book like the best bid and offer of ${moment(what)}`;
  return cause === "connection" ? "a connection" : "a valid update";
}

export function received({ cause, received: what, count: times }) {
  const often = times > 1 ? ` (${count(times)} times)` : "";
  if (cause === "gap") return `one after ${number(what)}${often}`;
  if (cause === "checksum") return `checksum ${number(what)}${often}`;
  if (cause === "duplicate") return `update ${number(what)} again${often}`;
  if (cause === "behind") return `one of ${moment(what)}${often}`;
  return `${what || "another one"}${often}`;
}

export const did = ({ reaction }) => DID[reaction] ?? reaction;

export function healed(incident) {
  if (incident.reaction === "ignored") return "never lost";
  return incident.proven_unix_ns === null ? "not yet" : time(incident.proven_unix_ns - incident.at_unix_ns);
}

/** The newest of all books, on the first view. */
export function showNewest({ incidents, market }) {
  if (!market) return;
  const build = () => {
    const row = cells("mono", "", "", "num")();
    row.cells[1].append(make("a", { href: "#books" }));
    return row;
  };
  rows(document.querySelector("#newest tbody"), incidents, build, (row, incident) => {
    row.dataset.cause = incident.cause;
    text(row.cells[0], clock(incident.at_unix_ns / 1e6));
    text(row.cells[1].firstChild, incident.book ? `${incident.book} ${incident.venue}` : incident.venue);
    row.cells[1].firstChild.href = incident.book ? bookAddress({ venue: incident.venue, symbol: incident.book }) : "#books";
    text(row.cells[2], `${NAMES[incident.cause] ?? incident.cause}: expected ${expected(incident)}, received ${received(incident)}`);
    text(row.cells[3], healed(incident));
  });
}

/** Those of one book. */
export function showIncidents(incidents) {
  rows(document.querySelector("#incidents tbody"), incidents.slice(0, 50), cells("mono", "", "", "", "num"), (row, incident) => {
    row.dataset.cause = incident.cause;
    const shown = [clock(incident.at_unix_ns / 1e6), expected(incident), received(incident), did(incident), healed(incident)];
    shown.forEach((value, cell) => text(row.cells[cell], value));
  });
}
