// The relay: who is refused, and tests of each way from this browser.

import { count, text } from "/figures/parts.js";
import { parsed, showSnippets } from "./snippets.js";
import { runWay, wrongPassword, privatePeer, PEER } from "./trial.js";
import { ago, cells, rows } from "./text.js";

const byId = (id) => document.getElementById(id);
const WAYS = ["UDP", "TCP", "TLS"];

let trial = null;
let listened = "";

/** The URLs of the listeners, with `host` in place of an address that all interfaces share. */
function urlsOf(listens, host) {
  return listens.map((listen) => {
    const [transport, address] = listen.split(" ");
    const port = address.slice(address.lastIndexOf(":") + 1);
    if (transport === "udp") return `turn:${host}:${port}`;
    return transport === "tls" ? `turns:${host}:${port}?transport=tcp` : `turn:${host}:${port}?transport=tcp`;
  });
}

/** With a trial credential the test needs nothing; else the operator names a user. */
async function offer(turn, hasTrial) {
  if (listened === turn.listens.join()) return;
  listened = turn.listens.join();
  trial = hasTrial ? (await (await fetch("/api/v1/turn/ice-servers")).json()).iceServers : null;
  if (trial?.length) {
    showSnippets(trial);
    return;
  }
  byId("credentials").hidden = false;
  byId("test-host").value ||= location.hostname;
  const show = () => showSnippets([{ urls: urlsOf(turn.listens, byId("test-host").value), username: byId("test-user").value || "user", credential: "password" }]);
  byId("test-host").addEventListener("input", show);
  byId("test-user").addEventListener("input", show);
  show();
}

const wayRow = cells("", "", "num", "num", "");

function showWays(results) {
  rows(document.querySelector("#ways tbody"), results, wayRow, (row, { name, candidate, trip, lost, state, says }) => {
    [name, candidate, trip, lost, says].forEach((value, cell) => text(row.cells[cell], value ?? ""));
    row.dataset.state = state;
  });
}

const waiting = () => [...WAYS, "Wrong password", `Peer ${PEER}`].map((name) => ({ name, says: "not tested yet", state: "" }));
showWays(waiting());

/** The servers with a single way each. */
function servers() {
  if (trial?.length) return trial;
  const form = byId("credentials");
  if (!form.reportValidity()) return null;
  const listens = listened.split(",");
  return [{ urls: urlsOf(listens, byId("test-host").value.trim()), username: byId("test-user").value.trim(), credential: byId("test-password").value }];
}

function oneWay(all, name) {
  for (const server of all) {
    const url = server.urls.find((each) => {
      const { scheme, transport } = parsed(each);
      return (scheme === "turns" ? "TLS" : transport.toUpperCase()) === name;
    });
    if (url) return [{ ...server, urls: [url] }];
  }
  return null;
}

async function test() {
  const all = servers();
  if (!all) return;
  const button = byId("try");
  button.disabled = true;
  const outcome = byId("outcome");
  outcome.removeAttribute("data-state");
  text(outcome, "");
  const results = waiting();
  const step = async (index, run) => {
    Object.assign(results[index], { says: "running", state: "" });
    showWays(results);
    try {
      Object.assign(results[index], { state: "passed", says: "works" }, await run());
    } catch (error) {
      Object.assign(results[index], { says: error.message, state: "failed" });
    }
    showWays(results);
  };
  for (const [index, name] of WAYS.entries()) {
    const one = oneWay(all, name);
    if (one) await step(index, () => runWay(one));
    else Object.assign(results[index], { says: "no listener", state: "absent" });
  }
  const first = WAYS.map((name) => oneWay(all, name)).find(Boolean);
  await step(3, () => wrongPassword(first));
  await step(4, () => privatePeer(first));
  button.disabled = false;
  const failed = results.filter(({ state }) => state === "failed").map(({ name }) => name);
  outcome.dataset.state = failed.length > 0 ? "failed" : "passed";
  text(outcome, failed.length > 0 ? `Failed: ${failed.join(", ")}.` : "Passed: every way that has a listener relays, and what must be refused is refused.");
}

byId("try").addEventListener("click", test);
byId("credentials").addEventListener("submit", (event) => event.preventDefault());

/** The share of relayed packets that the kernel relays itself; absent where it relays nothing. */
function showKernel({ ledger, kernel_path: path }) {
  const line = byId("in-kernel");
  line.hidden = !path;
  if (!path) return;
  const byKernel = path.to_peers + path.to_clients;
  const all = ledger.outcomes.filter(({ name }) => name.includes("relayed") || name === "hairpinned").reduce((sum, row) => sum + row.count, 0);
  const share = all === 0 ? "no packet yet" : `${Math.floor((100 * byKernel) / all)} % of relayed packets`;
  const on = path.interfaces.map(({ name, mode, proof }) => `${name} ${mode}, ${proof}`).join("; ");
  text(line, `in the kernel: ${share}, ${count(path.to_peers)} to peers and ${count(path.to_clients)} to clients; channels: ${count(path.open)}; ${on}`);
}

export function showRelay({ turn, trial: hasTrial, at_unix_ms: now }) {
  if (!turn) return;
  offer(turn, hasTrial).catch(() => { listened = ""; });
  showKernel(turn);
  const found = turn.rejected_sources.map((row) => [row.source, row.code === 401 ? "401, wrong name or password" : String(row.code), count(row.count), `${ago(now - row.last_unix_ms)} ago`, row.code === 401]);
  for (const { rule, count: times } of turn.denied.filter((row) => row.count > 0)) found.push(["peers, since the start", `403, rule ${rule}`, count(times), "", false]);
  if (found.length === 0) found.push(["none", "", "", "", false]);
  rows(document.querySelector("#sources tbody"), found, cells("", "", "num", "num"), (row, shown) => {
    row.className = shown[4] ? "red" : "";
    shown.slice(0, 4).forEach((value, cell) => text(row.cells[cell], value));
  });
}
