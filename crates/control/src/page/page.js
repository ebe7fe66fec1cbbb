// The page's stream: /api/v1/live sends a snapshot four times a second.

import { showEngine, showMachine, makeEngine } from "./engines.js";
import { showBooks, showChosen } from "./books.js";
import { showRisk } from "./risk.js";
import { showGate } from "./gate.js";
import { showRelay } from "./relay.js";
import { showAllocations } from "./allocations.js";
import "./users.js";
import { showKept, showLiveFlow, showPasses, showWhy } from "./kept.js";
import { showTop } from "./top.js";
import { address, keyboard, route } from "./address.js";
import { showNewest } from "./incidents.js";
import { startHistory } from "./history.js";
import { showFaults } from "./fault.js";

const RETRY_MS = 2000;
const byId = (id) => document.getElementById(id);

const engines = {
  turn: makeEngine("turn", "Relay", "#relay", "STUN and TURN over UDP, TCP and TLS"),
  market: makeEngine("market", "Books", "#books", "frames to verified order books"),
  risk: makeEngine("risk", "Gate", "#gate", "order intents to verdicts"),
};

let paused = false;
let last = null;
let reported = false;

function link(state, text) {
  document.body.dataset.link = state;
  const pill = byId("link");
  if (pill.textContent !== text) pill.textContent = text;
  pill.dataset.state = state;
}

/** Draws what runs: engines that do not run have no card, no tab and no chart. */
function present(snapshot) {
  for (const part of document.querySelectorAll("#tabs [data-engine], .card[data-engine]")) part.hidden = !snapshot[part.dataset.engine];
  const cards = Object.values(engines).filter(({ key }) => snapshot[key]).map(({ card }) => card);
  const parent = byId("engines");
  if (cards.length !== parent.children.length) parent.replaceChildren(...cards);
  byId("simulated").hidden = !snapshot.simulated;
  showFaults(snapshot.faults);
  // An address of an engine that does not run leads nowhere.
  if (byId("tabs").querySelector(`[data-tab=${address().tab}]`).hidden) location.replace("#now");
  byId("debug").hidden = snapshot.machine.build === "release";
}

/** Only what can be seen is drawn. */
function draw(snapshot) {
  showTop(snapshot);
  const { tab } = address();
  if (tab === "now") {
    for (const [key, engine] of Object.entries(engines)) if (snapshot[key]) showEngine(engine, snapshot[key], snapshot.at_unix_ms);
    showNewest(snapshot);
  } else if (tab === "relay") {
    showRelay(snapshot);
    showAllocations(snapshot);
  } else if (tab === "books") {
    showBooks(snapshot);
  } else if (tab === "gate") {
    if (snapshot.risk) showRisk(snapshot.risk, snapshot.simulated);
  } else {
    showMachine(snapshot.machine);
    showLiveFlow(snapshot);
  }
}

function show(snapshot) {
  last = snapshot;
  showReport();
  showGate(snapshot.gate, snapshot.risk?.limits);
  if (paused) return;
  present(snapshot);
  draw(snapshot);
}

/** The figures need the width of their view. */
function showReport() {
  if (reported || !last || address().tab !== "machine") return;
  reported = true;
  showKept();
  showWhy();
}

function connect() {
  const stream = new EventSource("/api/v1/live");
  stream.onmessage = (event) => {
    const first = document.body.dataset.link !== "live";
    const snapshot = JSON.parse(event.data);
    if (first) present(snapshot);
    link("live", paused ? "Paused" : "Live");
    show(snapshot);
  };
  stream.onerror = () => {
    link("lost", "Connection lost, retrying");
    stream.close();
    setTimeout(connect, RETRY_MS);
  };
}

byId("pause").addEventListener("click", (event) => {
  paused = !paused;
  event.target.setAttribute("aria-pressed", String(paused));
  event.target.textContent = paused ? "Resume" : "Pause";
  if (document.body.dataset.link === "live") link("live", paused ? "Paused" : "Live");
});

route(() => {
  if (last) draw(last);
  showChosen();
  showReport();
});
keyboard();
connect();
startHistory(() => !paused && document.body.dataset.link === "live");
showPasses(() => paused || address().tab !== "machine");
