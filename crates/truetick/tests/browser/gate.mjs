// Controls the gate on the page that `truetick serve` shows, with mouse and keyboard. Prints one line of JSON with what
// was seen; asserting is the caller's.
//
// node gate.mjs CHROMIUM PAGE_URL TOKEN URL_OF_A_PAGE_WITHOUT_TOKEN SCREENSHOT_FOLDER URL_OF_A_GATE_WITH_JOURNAL

import { chromium } from "playwright-core";

const [executablePath, url, token, closedUrl, folder, journaledUrl] = process.argv.slice(2);
const PATIENCE_MS = 60_000;
const args = [
  "--headless",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-gpu",
  "--disable-quic",
  "--disable-sync",
  "--no-first-run",
  "--no-sandbox",
];

const browser = await chromium.launch({ executablePath, args });
const seen = { console: [], posts: [], shots: {} };

async function open(where, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (line) => seen.console.push(`${line.type()}: ${line.text()}`));
  page.on("pageerror", (error) => seen.console.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.method() === "POST") seen.posts.push(`${new URL(request.url()).pathname} ${request.postData()}`);
  });
  await load(page, where);
  return page;
}

async function load(page, where) {
  // The same address with another fragment would not load it again.
  await page.goto("about:blank");
  await page.goto(`${where}#gate`);
  await page.waitForSelector("#link[data-state=live]");
  await page.waitForSelector("#modes li");
}

const api = async () => (await fetch(new URL("/api/v1/risk/modes", url))).json();
const modesOf = (page) => page.$$eval("#modes li", (rows) => rows.map((row) => row.innerText.replace(/\s+/g, " ").trim()));
const focusOf = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.dataset.act);
const newest = (page) => page.locator("#answers p").first();

/** What the newest answer says once there is one. */
async function answer(page) {
  await page.waitForSelector("#answers p:first-child[data-state]");
  const [state, role, text] = await newest(page).evaluate((entry) => [entry.dataset.state, entry.getAttribute("role"), entry.textContent]);
  return { state, role, text };
}

async function scope(page, level, name) {
  await page.getByRole("combobox", { name: "Scope" }).selectOption(level);
  if (name !== undefined) await page.getByRole("combobox", { name: "Name or number" }).fill(name);
}

const trigger = (page, name) => page.locator("#control").getByRole("button", { name, exact: true });
const dialog = (page) => page.getByRole("dialog");

/** Opens the dialog, gives the token if it is asked for, and confirms. */
async function act(page, name, secret = token) {
  await trigger(page, name).click();
  if (await page.getByRole("textbox", { name: "API token" }).isVisible()) await page.getByRole("textbox", { name: "API token" }).fill(secret);
  await page.locator("#sure").click();
  await dialog(page).waitFor({ state: "hidden" });
  return answer(page);
}

/** Repeats an act until it is acknowledged: on a busy machine the gate may be silent for longer than it may. */
async function acknowledged(page, name) {
  for (;;) {
    const said = await act(page, name);
    if (said.state !== "silent") return said;
  }
}

async function shoot(page, name) {
  await page.screenshot({ path: `${folder}/gate-${name}.png`, fullPage: false });
  seen.shots[name] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
}

/** The control at both widths, in the light and in the dark: at rest, and with the dialog. */
async function shootAll(page) {
  for (const [name, width, height] of [["wide", 1280, 900], ["narrow", 390, 844]]) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      await page.locator("#gate-control").scrollIntoViewIfNeeded();
      await page.evaluate(() => document.getElementById("gate-control").scrollIntoView());
      await shoot(page, `${name}-${colorScheme}`);
      await trigger(page, "Kill").click();
      await shoot(page, `${name}-${colorScheme}-dialog`);
      await page.keyboard.press("Escape");
    }
  }
}

const page = await open(url, { viewport: { width: 1280, height: 900 } });
seen.before = await modesOf(page);
// The version of the limits is the one that verdicts are made with.
await page.waitForFunction(() => document.getElementById("limits-version").textContent !== "");
seen.version = await page.locator("#limits-version").textContent();

// Both ways out of the dialog send nothing.
await scope(page, "account", "0");
await trigger(page, "Kill").click();
seen.dialog = { text: await dialog(page).innerText(), focus: await focusOf(page), sure: await page.locator("#sure").innerText() };
await page.getByRole("textbox", { name: "API token" }).fill(token);
await page.getByRole("button", { name: "Back" }).click();
seen.back = { focus: await focusOf(page), token: await page.$eval("#token", (input) => input.value), modes: await api() };
await trigger(page, "Kill").click();
await page.keyboard.press("Escape");
seen.escape = { focus: await focusOf(page), modes: await api() };
// Without the token the second button sends nothing either.
await trigger(page, "Kill").click();
await page.locator("#sure").click();
seen.untyped = { open: await dialog(page).isVisible(), focus: await focusOf(page) };
await page.keyboard.press("Escape");
seen.unsent = seen.posts.length;

seen.wrong = { ...(await act(page, "Kill", "another token")), modes: await api(), listed: await modesOf(page) };
seen.killed = { ...(await acknowledged(page, "Kill")), modes: await api() };
await page.waitForFunction(() => document.getElementById("modes").innerText.includes("account:0"));
seen.listed = await modesOf(page);
seen.top = await page.locator("#stopped").innerText();
seen.stored = await page.evaluate(async () => ({
  places: [localStorage.length, sessionStorage.length, document.cookie.length, (await indexedDB.databases()).length],
  document: document.documentElement.outerHTML,
  inputs: [...document.querySelectorAll("input")].map((input) => input.value),
  address: location.href,
}));
seen.unknown = await (async () => {
  await scope(page, "strategy", "no such");
  return act(page, "Reduce only");
})();
await shootAll(page);

// A reload loses the token, and no mode.
await load(page, url);
seen.reloaded = await modesOf(page);
await page.getByRole("button", { name: "Choose account:0" }).click();
seen.chosen = { focus: await focusOf(page), level: await page.getByRole("combobox", { name: "Scope" }).inputValue(), name: await page.getByRole("combobox", { name: "Name or number" }).inputValue() };
// By keyboard alone.
await page.keyboard.press("Enter");
await dialog(page).waitFor();
await page.keyboard.type(token);
await page.keyboard.press("Tab");
await page.keyboard.press("Tab");
seen.tabbed = await focusOf(page);
await page.keyboard.press("Enter");
await dialog(page).waitFor({ state: "hidden" });
await answer(page);
seen.returned = await focusOf(page);
seen.resumed = { ...(await acknowledged(page, "Resume")), modes: await api() };
await page.waitForFunction(() => !document.getElementById("modes").innerText.includes("account:0"));
seen.none = { modes: await modesOf(page), top: await page.locator("#stopped").isVisible() };

await scope(page, "global");
await acknowledged(page, "Kill");
for (let tries = 0; tries < 3; tries += 1) {
  seen.cancelled = await act(page, "Cancel orders");
  seen.first ??= seen.cancelled.text;
  if (seen.cancelled.state !== "silent") break;
}
await acknowledged(page, "Reduce only");
seen.reduced = await api();
await acknowledged(page, "Resume");
seen.end = await api();

const closed = await open(closedUrl, { viewport: { width: 1280, height: 900 } });
seen.closed = { text: await closed.locator("#no-token").innerText(), journal: await closed.locator("#journal").textContent(), buttons: await closed.locator("[data-act]:visible").count() };

const journaled = await open(`${journaledUrl}/`, { viewport: { width: 1280, height: 900 } });
await journaled.waitForFunction(() => document.getElementById("journal").textContent !== "");
seen.journal = await journaled.locator("#journal").innerText();
await shoot(journaled, "journal");

await browser.close();
console.log(JSON.stringify(seen));
