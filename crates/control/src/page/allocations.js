// The list of allocations: sorted, filtered, and ended one at a time, with the API token.

import { button, count, make, text } from "/figures/parts.js";
import { address } from "./address.js";
import { ago, bytes, cells, keepToken, refusal, rows, token } from "./text.js";

const EVERY_MS = 2000;
const PAGE = 1000;
const byId = (id) => document.getElementById(id);

/** Columns: name, value to sort by, text, and whether it is a number. */
const COLUMNS = [
  ["User", (row) => row.user, (row) => row.user, false],
  ["Client", (row) => row.client, (row) => `${row.transport} ${row.client}`, false],
  ["Relayed", (row) => row.relayed, (row) => [row.relayed, row.relayed_second].filter(Boolean).join(" "), false],
  ["Peers", (row) => row.permissions, (row) => `${count(row.permissions)}, ${count(row.channels)} by channel`, true],
  ["To peers", (row) => row.to_peers_bytes, (row) => bytes(row.to_peers_bytes), true],
  ["To client", (row) => row.to_client_bytes, (row) => bytes(row.to_client_bytes), true],
  ["Age", (row) => row.age_s, (row) => ago(row.age_s * 1000), true],
];

let list = [];
let sorted = { column: 6, down: false };
let hasToken = false;
let live = 0;
let ending = false;

export function showAllocations({ turn, has_token: present }) {
  if (!turn) return;
  hasToken = present;
  live = turn.allocations.live;
  text(byId("allocations-says"), `${count(live)} of at most ${count(turn.allocations.capacity)}; ${count(turn.allocations.created)} made since the start`);
  byId("allocations-closed").hidden = present;
  byId("allocations-token").hidden = !present || token() !== "";
  byId("allocations-open").hidden = !present || token() === "";
}

/** Sends a request with the API token. */
export async function call(path, method = "GET", body = undefined) {
  const answer = await fetch(path, { method, headers: { authorization: `Bearer ${token()}` }, body: body && JSON.stringify(body) });
  if (answer.ok) return answer.json();
  if (answer.status === 401) keepToken("");
  throw new Error(await refusal(answer));
}

function compare(a, b) {
  const [left, right] = [a, b].map(COLUMNS[sorted.column][1]);
  const order = typeof left === "number" ? left - right : left.localeCompare(right, "en", { numeric: true });
  return sorted.down ? -order : order;
}

function allocationRow() {
  const row = cells(...COLUMNS.map(([, , , isNumber]) => (isNumber ? "num" : "")), "")();
  row.lastChild.append(button("End", () => end(row.dataset.relayed)));
  return row;
}

function draw() {
  const wanted = byId("allocations-filter").value.trim().toLowerCase();
  const shown = list.filter((row) => !wanted || COLUMNS.slice(0, 3).some(([, , words]) => words(row).toLowerCase().includes(wanted))).sort(compare);
  rows(document.querySelector("#allocations tbody"), shown, allocationRow, (row, of) => {
    row.dataset.relayed = of.relayed;
    COLUMNS.forEach(([, , words], index) => text(row.cells[index], words(of)));
    row.lastChild.firstChild.setAttribute("aria-label", `End ${of.relayed}`);
  });
  document.querySelectorAll("#allocations th").forEach((head, index) => {
    if (index < COLUMNS.length) head.setAttribute("aria-sort", index !== sorted.column ? "none" : sorted.down ? "descending" : "ascending");
  });
  return shown.length;
}

async function ask() {
  const { list: found, next } = await call(`/api/v1/turn/allocations?limit=${PAGE}`);
  list = found;
  const shown = draw();
  const more = next ? ` The first ${count(PAGE)} are listed.` : "";
  if (!ending) text(byId("allocations-answer"), `${count(shown)} of ${count(live)} shown.${more}`);
}

async function end(relayed) {
  ending = true;
  try {
    await call(`/api/v1/turn/allocations/${encodeURIComponent(relayed)}`, "DELETE");
    text(byId("allocations-answer"), `${relayed} has ended.`);
  } catch (error) {
    text(byId("allocations-answer"), `${relayed}: ${error.message}`);
  }
  await ask().catch(() => {});
  setTimeout(() => { ending = false; }, 5 * EVERY_MS);
}

COLUMNS.forEach(([name, , , isNumber], index) => {
  const sort = button(name, () => {
    sorted = { column: index, down: sorted.column === index ? !sorted.down : isNumber };
    draw();
  });
  document.querySelector("#allocations thead tr").append(make("th", { scope: "col", "aria-sort": "none", class: isNumber ? "num" : "" }, sort));
});
document.querySelector("#allocations thead tr").append(make("th", { scope: "col" }, make("span", { class: "sr" }, "End")));
byId("allocations-filter").addEventListener("input", draw);
byId("allocations-token").addEventListener("submit", async (event) => {
  event.preventDefault();
  const input = event.target.querySelector("input");
  keepToken(input.value.trim());
  input.value = "";
  byId("allocations-token").hidden = true;
  byId("allocations-open").hidden = false;
  text(byId("allocations-refused"), "");
  await ask().catch((error) => {
    byId("allocations-token").hidden = token() !== "";
    byId("allocations-open").hidden = token() === "";
    text(byId("allocations-refused"), error.message);
  });
});

setInterval(() => {
  if (hasToken && token() && address().tab === "relay" && !document.hidden && document.body.dataset.link === "live") ask().catch(() => {});
}, EVERY_MS);
