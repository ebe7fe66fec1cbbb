// Clicks through the page of `truetick turn --http`: an attack, the list of allocations, the tests. Prints one line of JSON
// with what was seen; asserting is the caller's.
//
// node operator.mjs CHROMIUM PAGE_URL TOKEN USER PASSWORD SCREENSHOT_FOLDER [CHROMIUM_FLAG...]

import { launch, live, lookAtAll, open, rowsOf, shiftsOf, textOf, visit } from "./look.mjs";

const [executablePath, url, token, user, password, folder, ...flags] = process.argv.slice(2);
const TABS = ["now", "relay", "machine"];
const browser = await launch(executablePath, flags);
const seen = { console: [], outside: [], widths: {}, axe: [] };
const page = await open(browser, url, seen, "operator", { viewport: { width: 1280, height: 900 } });

/** Allocates `count` times in the page and keeps the allocations; returns what the server answered. */
const allocate = (credential, count) => page.evaluate(async ([username, given, times]) => {
  const { listens } = await (await fetch("/api/v1/turn/allocations")).json();
  const udp = listens.find((listen) => listen.startsWith("udp ")).split(" ")[1];
  const iceServers = [{ urls: [`turn:${udp}`], username, credential: given }];
  window.calls ??= [];
  return Promise.all(Array.from({ length: times }, () => new Promise((resolve) => {
    const call = new RTCPeerConnection({ iceServers, iceTransportPolicy: "relay" });
    window.calls.push(call);
    call.onicecandidate = ({ candidate }) => candidate?.type === "relay" && resolve("relay");
    call.onicecandidateerror = ({ errorCode }) => resolve(String(errorCode));
    call.createDataChannel("call");
    call.setLocalDescription();
  })));
}, [user, credential, count]);

seen.tabs = await page.$$eval("#tabs a:not([hidden])", (links) => links.map((link) => link.textContent));
seen.cards = await page.$$eval("#engines > *", (cards) => cards.map((card) => card.id));
seen.calm = await textOf(page, "#sentence");
seen.shifts = await shiftsOf(page, url, TABS);
await page.goto(`${url}#books`);
await page.reload();
await live(page);
await page.waitForFunction(() => location.hash === "#now");
seen.elsewhere = await page.evaluate(() => location.hash);

// The list, with a wrong token first.
await visit(page, "relay");
seen.kernel = await page.locator("#in-kernel").isVisible();
await allocate(password, 2);
const form = page.locator("#allocations-token");
await form.getByLabel("API token").fill("another token");
const quiet = seen.console.length;
await form.getByRole("button", { name: "List" }).click();
await page.waitForFunction(() => document.getElementById("allocations-refused").textContent !== "");
seen.wrong = await textOf(page, "#allocations-refused");
seen.console.length = quiet; // Chromium's own line about the refused request
await form.getByLabel("API token").fill(token);
await form.getByRole("button", { name: "List" }).click();
await page.waitForFunction(() => document.querySelectorAll("#allocations tbody tr").length === 2);
seen.listed = await rowsOf(page, "#allocations tbody tr");
seen.sorted = [];
for (let clicks = 0; clicks < 2; clicks += 1) {
  await page.getByRole("button", { name: "Relayed", exact: true }).click();
  seen.sorted.push((await rowsOf(page, "#allocations tbody tr")).map((row) => row[2]));
}
const relayed = seen.listed[0][2];
const filter = page.getByRole("searchbox", { name: "Filter" });
await filter.fill(relayed);
seen.filtered = await page.locator("#allocations tbody tr").count();
await filter.fill("absent");
seen.nothing = await page.locator("#allocations tbody tr").count();
await filter.fill("");
await page.getByRole("button", { name: `End ${relayed}` }).click();
await page.waitForFunction(() => document.getElementById("allocations-answer").textContent.includes("has ended"));
seen.ended = await textOf(page, "#allocations-answer");
await page.waitForFunction(() => document.querySelectorAll("#allocations tbody tr").length < 2);
seen.left = await page.locator("#allocations tbody tr").count();

// Users by traffic; a ban of a documentation address, and its end.
await page.waitForFunction(() => document.querySelector("#users tbody tr")?.cells[1].textContent === "1");
seen.users = await rowsOf(page, "#users tbody tr");
seen.bans = [await page.locator("#bans-none").isVisible()];
await page.getByLabel("Address or prefix").fill("192.0.2.0/24");
await page.getByLabel("Hours").fill("0.5");
await page.getByRole("button", { name: "Ban", exact: true }).click();
await page.waitForSelector("#bans tbody tr");
seen.bans.push(await textOf(page, "#orders-answer"), await rowsOf(page, "#bans tbody tr"), await page.locator("#bans-none").isVisible());
await page.getByLabel("Address or prefix").fill("192.0.2.7/24");
const before = await textOf(page, "#orders-answer");
const said = seen.console.length;
await page.getByRole("button", { name: "Ban", exact: true }).click();
await page.waitForFunction((was) => document.getElementById("orders-answer").textContent !== was, before);
seen.bans.push(await textOf(page, "#orders-answer"));
seen.console.length = said; // Chromium's own line about the refused request
await page.locator("#orders-answer").scrollIntoViewIfNeeded();
await page.screenshot({ path: `${folder}/operator-bans.png` });
await page.getByRole("button", { name: "End the ban of 192.0.2.0/24" }).click();
await page.waitForFunction(() => document.querySelectorAll("#bans tbody tr").length === 0);
seen.bans.push(await textOf(page, "#orders-answer"));
await page.getByRole("button", { name: `End all allocations of ${user}` }).click();
await page.waitForFunction(() => document.querySelectorAll("#users tbody tr").length === 0);
seen.kicked = await textOf(page, "#orders-answer");
await page.waitForFunction(() => document.getElementById("ended-says").textContent.includes("all: 2"));
seen.endedTraffic = [await textOf(page, "#ended-says"), await rowsOf(page, "#ended tbody tr")];
seen.stored = await page.evaluate(() => ({ document: document.documentElement.outerHTML, address: location.href, inputs: [...document.querySelectorAll("input")].map((input) => input.value) }));

// An attack is red, with its source.
await allocate("eraser", 20);
await page.waitForSelector("#facts .red");
seen.attack = await page.evaluate(() => {
  const probe = document.createElement("span");
  probe.style.color = "var(--bad)";
  document.body.append(probe);
  const [fact, bad] = [document.querySelector("#facts .red"), getComputedStyle(probe).color];
  probe.remove();
  return { fact: fact.textContent, colour: getComputedStyle(fact).color, bad };
});
await page.waitForSelector("#sources tbody tr.red");
seen.attack.source = (await rowsOf(page, "#sources tbody tr")).map((row) => row.slice(0, 2));

// The test with the operator's own credential.
await page.getByLabel("User", { exact: true }).fill(user);
await page.getByLabel("Password", { exact: true }).fill(password);
await page.click("#try");
await page.waitForSelector("#outcome[data-state]");
seen.ways = await rowsOf(page, "#ways tbody tr");
await lookAtAll(page, TABS, folder, "operator", seen);
await browser.close();
console.log(JSON.stringify(seen));
