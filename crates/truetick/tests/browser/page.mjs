// Clicks through the page that `truetick serve` shows. Prints one line of JSON with what was seen; asserting is the
// caller's. When everything was seen it prints `stop the server` and waits for the page to say that it is gone.
//
// node page.mjs CHROMIUM PAGE_URL SCREENSHOT_FOLDER [CHROMIUM_FLAG...]

import { chromium } from "playwright-core";

const [executablePath, url, folder, ...flags] = process.argv.slice(2);
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
  ...flags,
];

const browser = await chromium.launch({ executablePath, args });
const seen = { console: [], outside: [], widths: {} };

async function open(name, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (line) => seen.console.push(`${name} ${line.type()}: ${line.text()}`));
  page.on("pageerror", (error) => seen.console.push(`${name} error: ${error.message}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) seen.outside.push(request.url());
  });
  await page.goto(url);
  await page.waitForSelector("#link[data-state=live]");
  return page;
}

const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);
const rowsOf = (page, selector) =>
  page.$$eval(selector, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));

/** Waits until the text of `selector` is another one than `before`. */
async function changed(page, selector, before) {
  await page.waitForFunction(([where, old]) => document.querySelector(where).textContent !== old, [selector, before]);
  return textOf(page, selector);
}

async function ledgers(page) {
  // A rate needs two snapshots.
  await page.waitForFunction(() => [...document.querySelectorAll(".rate")].every((rate) => rate.textContent.endsWith("/s")));
  const found = {};
  for (const engine of ["turn", "market", "risk"]) {
    const card = `#engine-${engine}`;
    found[engine] = { ledger: await textOf(page, `${card} .ledger`), rate: await textOf(page, `${card} .rate`) };
  }
  const before = found.market.ledger;
  found.market.later = await changed(page, "#engine-market .ledger", before);
  return found;
}

async function books(page) {
  await page.waitForFunction(() => {
    const chips = [...document.querySelectorAll(".books .chip")].map((chip) => chip.textContent);
    return chips.length > 0 && chips.every((proof) => ["crc", "sequence", "oracle"].includes(proof));
  });
  const list = await rowsOf(page, ".books tbody tr");
  const last = page.locator(".books tbody tr").last().getByRole("button");
  const symbol = await last.locator("span").textContent();
  await last.click();
  await page.waitForFunction((wanted) => document.getElementById("ladder-title").textContent.startsWith(wanted), symbol);
  return { list, symbol, ladder: await rowsOf(page, ".ladder table:first-of-type tbody tr") };
}

async function verdicts(page) {
  await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll(".verdicts tbody tr")].map((row) => row.innerText);
    return rows.some((text) => text.includes("accepted")) && rows.some((text) => text.includes("rejected"));
  });
  const first = await textOf(page, ".verdicts tbody tr");
  await changed(page, ".verdicts tbody tr", first);
  return {
    list: await rowsOf(page, ".verdicts tbody tr"),
    reasons: await rowsOf(page, ".reasons tbody tr"),
    limits: await rowsOf(page, ".limits tbody tr"),
  };
}

/** The chart of passes, with an engine's name for each row, until it has been redrawn. */
async function passes(page) {
  const read = () => page.$$eval("#passes .quantiles tbody tr", (rows) => Object.fromEntries(rows.map((row) =>
    [row.dataset.series, Object.fromEntries([...row.querySelectorAll("td")].map((cell) => [cell.dataset.of, cell.textContent]))])));
  await page.waitForSelector("#passes .quantiles tr[data-series=market]");
  const before = await read();
  await changed(page, "#passes .quantiles tr[data-series=market]", await textOf(page, "#passes .quantiles tr[data-series=market]"));
  return { before, later: await read(), canvas: await page.locator("#passes canvas").count() };
}

/** Nothing moves while paused, though the stream goes on; everything moves again after. */
async function pause(page) {
  await page.click("#pause");
  await page.waitForFunction(() => document.getElementById("link").textContent === "Paused");
  const before = await textOf(page, "#engine-market .ledger");
  // Two more snapshots have come by the time that two more answers have.
  for (let count = 0; count < 8; count += 1) await page.evaluate(() => fetch("/healthz").then((answer) => answer.text()));
  const during = await textOf(page, "#engine-market .ledger");
  await page.click("#pause");
  await changed(page, "#engine-market .ledger", before);
  return { before, during };
}

async function relay(page) {
  const snippet = await textOf(page, "#snippet");
  await page.click("#try");
  await page.waitForSelector("#outcome[data-state]");
  const state = await page.getAttribute("#outcome", "data-state");
  return { snippet, state, steps: await textOf(page, "#steps"), outcome: await textOf(page, "#outcome") };
}

async function shoot(page, name) {
  await page.screenshot({ path: `${folder}/page-${name}.png`, fullPage: true });
  seen.widths[name] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
}

const laptop = await open("laptop", { viewport: { width: 1366, height: 800 }, colorScheme: "light" });
seen.ledgers = await ledgers(laptop);
await laptop.click("#engine-market summary");
seen.outcomes = await rowsOf(laptop, "#engine-market .drops tbody tr");
await laptop.click("#engine-market summary");
seen.simulated = {
  notice: await laptop.locator("#simulated").innerText(),
  chips: await laptop.locator(".chip.simulated:visible").count(),
};
seen.books = await books(laptop);
seen.verdicts = await verdicts(laptop);
seen.passes = await passes(laptop);
seen.pause = await pause(laptop);
seen.relay = await relay(laptop);
await shoot(laptop, "laptop");
const phone = await open("phone", { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, colorScheme: "dark" });
await books(phone);
await shoot(phone, "phone");
await phone.close();

const quiet = seen.console.length;
console.log("stop the server");
await laptop.waitForSelector("#link[data-state=lost]");
seen.lost = await textOf(laptop, "#link");
seen.console.length = quiet; // the browser's own messages about the stopped server
await browser.close();
console.log(JSON.stringify(seen));
