// Control of the gate, with the API token.

import { button, make, text } from "/figures/parts.js";
import { keepToken, refusal, token } from "./text.js";

const ANSWER_MAX_MS = 15_000;
const CANCEL_MAX_MS = 10_000;
const ASK_EVERY_MS = 250;
const SHOWN_MAX = 5;
const byId = (id) => document.getElementById(id);

const ACTS = {
  kill: ["Kill", "No order of this scope passes. Open orders stay open. Cancels pass."],
  reduce: ["Reduce only", "Of this scope, only orders pass that reduce a position. Cancels pass."],
  active: ["Resume", "Orders of this scope pass again."],
  cancel: ["Cancel orders of", "Every open order of this scope is cancelled, whoever has sent it. New orders are not kept away: kill first."],
};

let asked = null;
let listed = "";
let names = "";

/** Shows what the server says of its gate: modes in force, and whether it takes control. */
export function showGate(gate, limits) {
  byId("gate-control").hidden = !gate;
  byId("stopped").hidden = !gate?.modes.length;
  const version = gate?.limits_version ?? null;
  text(byId("limits-version"), version === null ? "" : `; limits version ${version}`);
  showJournal(gate);
  if (!gate) return;
  byId("no-token").hidden = gate.has_token;
  byId("control").hidden = !gate.has_token;
  offerNames(limits);
  if (listed === JSON.stringify(gate)) return;
  listed = JSON.stringify(gate);
  text(byId("stopped").firstChild, `The gate stops orders of ${gate.modes.map(({ scope, mode }) => `${scope} (${mode})`).join(", ")}.`);
  const rows = gate.modes.map(({ scope, mode }) => make("li", {},
    make("span", { class: mode === "kill" ? "chip bad" : "chip" }, mode), " ",
    gate.has_token ? button(scope, () => choose(scope), { "aria-label": `Choose ${scope}` }) : scope));
  byId("modes").replaceChildren(...(rows.length > 0 ? rows : [make("li", { class: "quiet" }, "None: every scope is active.")]));
}

/** Shows how far the journal is written. */
function showJournal(gate) {
  const journal = gate?.journal ?? null;
  text(byId("journal"), journal === null ? "" : journal.is_lost
    ? `The journal is lost after record ${journal.record}: orders are rejected until the next start.`
    : `Journal: record ${journal.record}.`);
  byId("journal").className = journal?.is_lost ? "bad" : "quiet";
}

/** Suggests the names that the limits have for the chosen level. */
function offerNames(limits) {
  const of = { account: ({ account }) => account, instrument: ({ venue, symbol }) => `${venue}:${symbol}` }[byId("level").value];
  const offered = of ? [...new Set(limits?.map((row) => String(of(row))))] : [];
  if (names === offered.join()) return;
  names = offered.join();
  byId("names").replaceChildren(...offered.map((value) => make("option", { value })));
}

function choose(scope) {
  const [level, ...name] = scope.split(":");
  byId("level").value = level;
  byId("name").value = name.join(":");
  showLevel();
  document.querySelector("[data-act=active]").focus();
}

function showLevel() {
  byId("named").hidden = byId("level").value === "global";
}

/** Opens the dialog. Nothing is sent before its second button is clicked. */
function ask(act) {
  const [level, name] = [byId("level").value, byId("name")];
  if (level !== "global" && !name.reportValidity()) return;
  asked = { act, scope: level === "global" ? level : `${level}:${name.value.trim()}` };
  const title = `${ACTS[act][0]} ${asked.scope}`;
  text(byId("confirm-title"), `${title}?`);
  text(byId("effect"), ACTS[act][1]);
  text(byId("sure"), title);
  byId("sure").className = act === "active" ? "main" : "stop";
  byId("needs-token").hidden = token() !== "";
  byId("confirm").showModal();
}

function confirmed() {
  const input = byId("token");
  if (token() === "" && !input.reportValidity()) return;
  if (token() === "") keepToken(input.value.trim());
  const { act, scope } = asked;
  byId("confirm").close();
  send(act, scope, note(`${ACTS[act][0]} ${scope}`));
}

/** Adds an entry to the list of answers; returns how to complete it. */
function note(title) {
  const entry = make("p", {}, `${title}: waiting for the answer`);
  const list = byId("answers");
  list.prepend(entry);
  while (list.children.length > SHOWN_MAX) list.lastChild.remove();
  return (state, says) => {
    entry.dataset.state = state;
    if (state !== "passed") entry.setAttribute("role", "alert");
    text(entry, `${title}: ${says}`);
  };
}

async function send(act, scope, says) {
  try {
    if (act === "cancel") await cancel(scope, says);
    else await setMode(act, scope, says);
  } catch (error) {
    says("failed", error.message);
  }
}

async function setMode(mode, scope, says) {
  const { acknowledged, before, silent, senders } = await post("modes", { scope, mode });
  const sent = senders === 1 ? "1 sender" : `${senders} senders`;
  if (acknowledged) says("passed", `${mode}, before: ${before}; in force, seen by the gate and ${sent}.`);
  else says("silent", `${mode}, before: ${before}; in force, but silent: ${silent.join(", ")}. A silent sender is closed.`);
}

/** Asks again until no order is open. */
async function cancel(scope, says) {
  const start = performance.now();
  for (let requested = 0; ;) {
    const found = await post("cancels", { scope });
    requested += found.requested;
    if (found.open.length === 0) return says("passed", `${requested} cancels, no order is open.`);
    if (performance.now() - start > CANCEL_MAX_MS) {
      const open = found.open.map(({ account, client_id: id }) => `${id} of account ${account}`).join(", ");
      return says("silent", `${requested} cancels, still open: ${open}.`);
    }
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
}

async function post(path, body) {
  const answer = await fetch(`/api/v1/risk/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token()}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MAX_MS),
  }).catch((error) => {
    keepToken("");
    throw new Error(`no answer: ${error.message}. The list has the modes in force.`);
  });
  if (answer.ok) return answer.json();
  if (answer.status === 401) keepToken("");
  throw new Error(await refusal(answer));
}

for (const trigger of document.querySelectorAll("[data-act]")) trigger.addEventListener("click", () => ask(trigger.dataset.act));
byId("level").addEventListener("change", showLevel);
byId("back").addEventListener("click", () => byId("confirm").close());
byId("sure").addEventListener("click", confirmed);
byId("confirm").addEventListener("close", () => { byId("token").value = ""; });
