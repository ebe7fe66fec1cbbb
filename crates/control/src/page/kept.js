// The figures: the stages from the running engines, the others from a report of `truetick bench`.

import { make, text, time } from "/figures/parts.js";
import { showFlow } from "/figures/flow.js";
import { mountFigures } from "/figures/figures.js";
import { showSpread } from "/figures/spread.js";

const FLOW_EVERY_MS = 2000;
const PASSES_EVERY_MS = 2000;
let shownAt = 0;

/** The stages of the running engines, updated slowly enough to read. */
export function showLiveFlow(snapshot) {
  if (snapshot.at_unix_ms - shownAt < FLOW_EVERY_MS) return;
  shownAt = snapshot.at_unix_ms;
  const paths = {};
  for (const engine of ["turn", "market", "risk"]) {
    const timed = snapshot[engine]?.stages;
    if (!timed) continue;
    const { stamped } = timed;
    const parts = timed.stages.map(({ stage, n, per_pass_ns: mean }) => ({ name: stage, ns: n > 0 ? mean : undefined }));
    parts.push({ name: "rest", ns: stamped?.rest_ns }, { name: "probe", ns: stamped?.probe_ns });
    paths[engine] = { parts, whole: stamped?.mean_ns, plain: timed.pass?.mean_ns };
  }
  const part = document.getElementById("flow");
  showFlow(part, paths, "no input yet");
  // Engines that do not run are absent.
  for (const row of [...part.children]) if (!paths[row.dataset.engine]) row.remove();
}

/** The service times, updated every few seconds; the chart is rebuilt when an engine has its first sample. */
export async function showPasses(isPaused) {
  const part = document.getElementById("passes");
  let [chart, drawn] = [null, ""];
  for (;;) {
    try {
      if (isPaused()) throw new Error("not seen");
      const passes = await (await fetch("/api/v1/machine/passes")).json();
      const engines = passes.classes.map((entry) => entry.placement);
      if (drawn === engines.join()) {
        chart?.update(passes.classes);
      } else {
        chart?.stop();
        chart = showSpread(part, passes, engines, "Engine");
        drawn = engines.join();
      }
      // The rest is shown when nothing above it grows any more.
      document.getElementById("panel-machine").dataset.ready = "";
    } catch {
      // The page is hidden, or the event stream reports that the connection is lost.
    }
    await new Promise((resolve) => setTimeout(resolve, PASSES_EVERY_MS));
  }
}

/** The bench report, or the command that writes one. */
export async function showKept() {
  const kept = document.getElementById("kept");
  const says = document.getElementById("kept-of");
  const report = await (await fetch("/api/v1/machine/report")).json();
  if (report.absent) {
    says.replaceChildren("No report yet. Run ", make("code", {}, report.command), ", then restart this server.");
    return;
  }
  const { truetick_bench: title, quick, environment: { date, machine, build }, warnings } = report.summary;
  text(says, [`bench ${title}${quick ? ", quick" : ""}`, date, machine.cpu, build.profile, ...warnings].join(" · "));
  mountFigures(kept, report, { withFlow: false });
}

/** The answer of `truetick why`: two sentences, the parts of the median as one bar, and what a change would gain. */
export async function showWhy() {
  const part = document.getElementById("why");
  const says = document.getElementById("why-of");
  const why = await (await fetch("/api/v1/machine/why")).json();
  if (why.absent) {
    says.replaceChildren("No answer yet. Run ", make("code", {}, why.command), ", then restart this server.");
    return;
  }
  const { answer, parts, changes, quick, warnings, environment: { date, machine, build } } = why;
  text(says, [quick ? "quick" : "full run", date, machine.cpu, build.profile, ...warnings].join(" · "));
  part.prepend(make("p", { class: "why-answer" }, answer));
  if (parts) {
    const named = [["one cache line", parts.floor_ns], ["ring", parts.ring_ns[0]], ["evaluator", parts.evaluator_ns[1]]];
    const bar = make("div", { class: "why-bar", role: "img", "aria-label": "parts of the median" });
    const legend = make("p", { class: "why-legend" });
    for (const [name, { value }] of named) {
      const piece = make("span");
      piece.style.flexGrow = Math.max(value, 0);
      bar.append(piece);
      legend.append(make("span", {}, `${name} ${time(value)}`));
    }
    part.insertBefore(bar, says);
    part.insertBefore(legend, says);
  }
  const rows = changes.map(({ what, refused, is_none: isNone, p50_gain_ns: gain }) => {
    const effect = refused ? `not tried: ${refused}` : !gain ? "too few runs" : isNone ? "no effect on the median" : `${time(-gain.value)} at the median`;
    return make("tr", {}, make("td", {}, what), make("td", {}, effect));
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "Change, tried and undone"), make("th", { scope: "col" }, "Effect"));
  part.insertBefore(make("table", { class: "why-changes" }, make("thead", {}, head), make("tbody", {}, ...rows)), says);
}
