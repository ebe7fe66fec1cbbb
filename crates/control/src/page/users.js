// The users of the relay by what they have relayed, and banned sources: with the API token.

import { button, count, text } from "/figures/parts.js";
import { address } from "./address.js";
import { call } from "./allocations.js";
import { bytes, cells, rows, token } from "./text.js";

const EVERY_MS = 2000;
const SHOWN_MAX = 100;
const byId = (id) => document.getElementById(id);

function userRow() {
  const row = cells("", "num", "num", "num", "num", "")();
  row.lastChild.append(button("End all", () => endUser(row.dataset.user)));
  return row;
}

function banRow() {
  const row = cells("", "num", "")();
  row.lastChild.append(button("End", () => order(`${row.dataset.source} is not banned any more.`, `/api/v1/turn/bans/${row.dataset.source}`, "DELETE")));
  return row;
}

function left(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** What ended allocations have relayed: the users with most of it, the sum of those that are not shown, and all. */
function showEnded({ users, list, total }) {
  const [peers, clients] = [bytes(total.to_peers_bytes), bytes(total.to_clients_bytes)];
  const shown = users > list.length ? `the first ${count(list.length)} of ${count(users)} users` : `${count(users)} ${users === 1 ? "user" : "users"}`;
  text(byId("ended-says"), `${shown}; all: ${count(total.allocations)}, ${peers} to peers, ${clients} to clients`);
  const rest = (key) => list.reduce((left, of) => left - of[key], total[key]);
  const others = { user: "other users", realm: "", allocations: rest("allocations"), to_peers_bytes: rest("to_peers_bytes"), to_clients_bytes: rest("to_clients_bytes") };
  const shownRows = others.allocations > 0 ? [...list, others] : list;
  rows(document.querySelector("#ended tbody"), shownRows, cells("", "", "num", "num", "num"), (row, of) => {
    [of.user, of.realm, count(of.allocations), bytes(of.to_peers_bytes), bytes(of.to_clients_bytes)].forEach((value, cell) => text(row.cells[cell], value));
  });
}

async function ask() {
  const [{ users, list, ended }, { bans }] = await Promise.all([call(`/api/v1/turn/users?limit=${SHOWN_MAX}`), call("/api/v1/turn/bans")]);
  text(byId("users-says"), users > list.length ? `the first ${count(list.length)} of ${count(users)}, most traffic first` : `${count(users)}, most traffic first`);
  rows(document.querySelector("#users tbody"), list, userRow, (row, of) => {
    row.dataset.user = of.user;
    [of.user, count(of.allocations), count(of.permissions), bytes(of.to_peers_bytes), bytes(of.to_client_bytes)].forEach((value, cell) => text(row.cells[cell], value));
    row.lastChild.firstChild.setAttribute("aria-label", `End all allocations of ${of.user}`);
  });
  showEnded(ended);
  byId("bans-none").hidden = bans.length > 0;
  rows(document.querySelector("#bans tbody"), bans, banRow, (row, { source, seconds_left: seconds }) => {
    row.dataset.source = source;
    [source, left(seconds)].forEach((value, cell) => text(row.cells[cell], value));
    row.lastChild.firstChild.setAttribute("aria-label", `End the ban of ${source}`);
  });
}

/** Sends an order, says what came of it, and shows what is so then. */
async function order(says, path, method, body) {
  try {
    const answer = await call(path, method, body);
    text(byId("orders-answer"), typeof says === "function" ? says(answer) : says);
  } catch (error) {
    text(byId("orders-answer"), error.message);
  }
  await ask().catch(() => {});
}

const endUser = (user) => order(({ ended }) => `${count(ended)} of ${user} have ended.`, `/api/v1/turn/users/${encodeURIComponent(user)}`, "DELETE");

byId("ban").addEventListener("submit", (event) => {
  event.preventDefault();
  const [source, hours] = [byId("ban-source").value.trim(), Number(byId("ban-hours").value)];
  const path = `/api/v1/turn/bans/${source.split("/").map(encodeURIComponent).join("/")}`;
  order(({ source: banned, ended }) => `${banned} is banned; ${count(ended)} allocations have ended.`, path, "PUT", { seconds: Math.round(hours * 3600) });
});

setInterval(() => {
  if (token() && !byId("allocations-open").hidden && address().tab === "relay" && !document.hidden && document.body.dataset.link === "live") ask().catch(() => {});
}, EVERY_MS);
