// The page's stream: /api/v1/live sends a snapshot four times a second.

import { showBooks, showEngine, showMachine, showRisk, makeEngine } from "./show.js";
import { showGate } from "./gate.js";
import { offerTrial } from "./relay.js";
import { showKept, showLiveFlow, showPasses } from "./kept.js";

const RETRY_MS = 2000;
const byId = (id) => document.getElementById(id);

const engines = {
  turn: makeEngine("TURN", "STUN and TURN over UDP, TCP and TLS"),
  market: makeEngine("Market", "frames to verified order books"),
  risk: makeEngine("Risk", "order intents to verdicts"),
};
byId("engines").append(engines.turn.card, engines.market.card, engines.risk.card);

let paused = false;
let trial = null;

function link(state, text) {
  document.body.dataset.link = state;
  const pill = byId("link");
  if (pill.textContent !== text) pill.textContent = text;
  pill.dataset.state = state;
}

function presence(id, present) {
  const part = byId(id);
  part.querySelector(".absent").hidden = present;
  part.querySelector(".present").hidden = !present;
}

/** Labels the market data, and the verdicts on it, as simulated. */
function showSimulated(simulated) {
  byId("simulated").hidden = !simulated;
  document.querySelectorAll(".chip.simulated").forEach((chip) => { chip.hidden = !simulated; });
}

function show(snapshot) {
  for (const name of ["turn", "market", "risk"]) {
    showEngine(engines[name], snapshot[name], snapshot.at_unix_ms, !paused);
  }
  showGate(snapshot.gate, snapshot.risk?.limits);
  if (paused) return;
  showMachine(snapshot.machine);
  showLiveFlow(snapshot);
  showSimulated(snapshot.simulated);
  byId("debug").hidden = snapshot.machine.build === "release";
  presence("books", snapshot.market !== null);
  presence("risk", snapshot.risk !== null);
  if (snapshot.market) showBooks(snapshot.market);
  if (snapshot.risk) showRisk(snapshot.risk);
  if (trial !== snapshot.trial) {
    trial = snapshot.trial;
    presence("relay", trial);
    if (trial) offerTrial();
  }
}

function connect() {
  const stream = new EventSource("/api/v1/live");
  stream.onmessage = (event) => {
    link("live", paused ? "Paused" : "Live");
    show(JSON.parse(event.data));
  };
  stream.onerror = () => {
    link("lost", "Connection lost, retrying");
    trial = null;
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

connect();
showKept();
showPasses(() => paused);
