// Clicks through the page that `truetick serve` shows. Prints one line of JSON with what was seen; asserting is the
// caller's. When everything was seen it prints `stop the server` and waits for the page to say that it is gone.
//
// node page.mjs CHROMIUM PAGE_URL SCREENSHOT_FOLDER [CHROMIUM_FLAG...]

import { changed, launch, live, lookAtAll, open, rowsOf, shiftsOf, snapshots, textOf, visit } from "./look.mjs";

const [executablePath, url, folder, ...flags] = process.argv.slice(2);
const TABS = ["now", "relay", "books", "gate", "machine"];
const browser = await launch(executablePath, flags);
const seen = { console: [], outside: [], widths: {}, axe: [] };

async function ledgers(page) {
  // A rate needs two snapshots.
  await page.waitForFunction(() => {
    const rates = [...document.querySelectorAll(".rate")];
    return rates.length === 3 && rates.every((rate) => rate.textContent.endsWith("/s"));
  });
  const found = {};
  for (const engine of ["turn", "market", "risk"]) {
    const card = `#engine-${engine}`;
    found[engine] = { ledger: await textOf(page, `${card} .ledger`), rate: await textOf(page, `${card} .rate`) };
  }
  found.market.later = await changed(page, "#engine-market .ledger", found.market.ledger);
  return found;
}

async function books(page) {
  await page.waitForFunction(() => {
    const chips = [...document.querySelectorAll(".books td:nth-child(5) .chip")].map((chip) => chip.textContent);
    return chips.length > 0 && chips.every((proof) => ["crc", "sequence", "oracle"].includes(proof));
  });
  const list = await rowsOf(page, ".books tbody tr");
  const last = page.locator(".books tbody tr").last().getByRole("link");
  const symbol = await last.locator("span").first().textContent();
  await last.click();
  await page.waitForFunction((wanted) => document.getElementById("book-title").textContent.startsWith(wanted), symbol);
  await page.waitForSelector("#ladder tbody tr");
  return { list, symbol, address: await page.evaluate(() => location.hash), ladder: await rowsOf(page, "#ladder tbody tr") };
}

/** Whether something is drawn on a canvas. */
const isDrawn = (page, selector) => page.waitForFunction((where) => {
  const canvas = document.querySelector(where);
  return canvas.width > 0 && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value !== 0);
}, selector).then(() => true);

/** A book by its address; every control of it. */
async function book(page) {
  await page.goto(`${url}#books/kraken/${seen.kraken}`);
  await live(page);
  await page.waitForFunction(() => document.getElementById("book-title").textContent.endsWith("on kraken"));
  await page.waitForSelector("#ladder tbody tr");
  const drawn = [await isDrawn(page, "#heat"), await isDrawn(page, "#strip"), await isDrawn(page, "#candles")];
  const top = await textOf(page, "#ladder tbody tr");
  const says = await textOf(page, "#ladder-says");
  await page.$eval("#ladder", (box) => { box.scrollTop = 2200; });
  const below = await changed(page, "#ladder tbody tr", top);
  const inDocument = await page.locator("#ladder tbody tr").count();
  const before = await textOf(page, "#candles-says");
  await page.locator("#timeframes").getByText("1 s", { exact: true }).click();
  const candles = [before, await changed(page, "#candles-says", before)];
  return { drawn, top, below, says, inDocument, candles };
}

/** Breaks a book in every way; what the list says of each. */
async function broken(page) {
  const found = {};
  let venue = "";
  for (const name of ["drop", "duplicate", "reorder", "flip-digit", "half-open"]) {
    // Kraken numbers nothing, so that a repeated update changes nothing; OKX has no checksum.
    const wanted = ["drop", "duplicate", "reorder"].includes(name) ? "okx" : "kraken";
    if (venue !== wanted) await page.locator(`.books a[href^='#books/${wanted}/']`).first().click();
    venue = wanted;
    await page.waitForFunction((of) => document.getElementById("book-title").textContent.endsWith(`on ${of}`), venue);
    // The list of the book before is gone.
    await page.evaluate(() => document.querySelector("#incidents tbody").replaceChildren());
    await snapshots(page, 8);
    const first = () => page.$$eval("#incidents tbody tr", (rows) => rows.length === 0 ? "" : [...rows[0].cells].slice(0, 3).map((cell) => cell.textContent).join("|"));
    const before = await first();
    await page.locator(`[data-fault=${name}]`).click();
    await page.waitForFunction((wanted) => document.getElementById("broken").textContent.includes(wanted), "Watch the list");
    const says = await textOf(page, "#broken");
    await page.waitForFunction((old) => {
      const row = document.querySelector("#incidents tbody tr");
      return row && [...row.cells].slice(0, 3).map((cell) => cell.textContent).join("|") !== old && row.cells[4].textContent !== "not yet";
    }, before, { timeout: 150_000 });
    found[name] = { says, row: (await rowsOf(page, "#incidents tbody tr"))[0] };
  }
  return found;
}

/** A reload loses nothing. */
async function reloaded(page) {
  await page.waitForFunction(() => !document.getElementById("strip").getAttribute("aria-label").endsWith(": 0 failed"));
  const before = { strip: await page.getAttribute("#strip", "aria-label"), incidents: (await rowsOf(page, "#incidents tbody tr")).length };
  await page.reload();
  await live(page);
  await page.waitForFunction(() => document.querySelectorAll("#incidents tbody tr").length > 0);
  return { before, after: { strip: await page.getAttribute("#strip", "aria-label"), incidents: (await rowsOf(page, "#incidents tbody tr")).length, title: await page.title() } };
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
    bars: await page.$$eval(".limits .meter i", (bars) => bars.filter((bar) => bar.style.width !== "0.0%").length),
  };
}

/** The chart of passes, with an engine's name for each row, until it has been redrawn; and the history. */
async function machine(page) {
  const read = () => page.$$eval("#passes .quantiles tbody tr", (rows) => Object.fromEntries(rows.map((row) =>
    [row.dataset.series, Object.fromEntries([...row.querySelectorAll("td")].map((cell) => [cell.dataset.of, cell.textContent]))])));
  const row = "#passes .quantiles tr[data-series=market]";
  await page.waitForSelector(row);
  const before = await read();
  await changed(page, row, await textOf(page, row));
  const ranges = [];
  for (const [range, seconds] of [["1 hour", 3600], ["10 min", 600]]) {
    // The page also asks by itself every few seconds, for the range of before until the click.
    const answer = page.waitForRequest((request) => request.url().includes(`/api/v1/history?seconds=${seconds}&`));
    await page.locator("#panel-machine [data-range]").getByText(range).click();
    ranges.push(new URL((await answer).url()).search);
  }
  return { before, later: await read(), canvas: await page.locator("#passes canvas").count(), chart: await isDrawn(page, "#chart-machine canvas"), ranges };
}

/** Nothing moves while paused, though the stream goes on; everything moves again after. */
async function pause(page) {
  await page.click("#pause");
  await page.waitForFunction(() => document.getElementById("link").textContent === "Paused");
  const before = await textOf(page, "#engine-market .ledger");
  await snapshots(page, 2);
  const during = await textOf(page, "#engine-market .ledger");
  await page.click("#pause");
  await changed(page, "#engine-market .ledger", before);
  return { before, during };
}

async function relay(page) {
  const snippets = {};
  for (const name of ["Synapse", "Jitsi", "Nextcloud Talk", "LiveKit", "JavaScript"]) {
    const before = await textOf(page, "#snippet");
    await page.locator("#products").getByText(name, { exact: true }).click();
    snippets[name] = await changed(page, "#snippet", before);
  }
  await page.click("#copy");
  await page.waitForFunction(() => document.getElementById("copied").textContent !== "");
  await page.click("#try");
  await page.waitForSelector("#outcome[data-state]");
  // The wrong password of the test, in the snapshot after it.
  await page.waitForFunction(() => document.querySelector("#sources tbody")?.innerText.includes("401"));
  const chart = [await isDrawn(page, "#chart-traffic canvas"), await isDrawn(page, "#chart-refusals canvas")];
  return {
    snippets, copied: await textOf(page, "#copied"), chart, state: await page.getAttribute("#outcome", "data-state"),
    ways: await rowsOf(page, "#ways tbody tr"), outcome: await textOf(page, "#outcome"), sources: await rowsOf(page, "#sources tbody tr"),
    closed: await page.locator("#allocations-closed").innerText(),
  };
}

/** The tabs by mouse and keyboard, each with its address. */
async function tabs(page) {
  const addresses = [];
  for (const tab of TABS) {
    await visit(page, tab);
    addresses.push([await page.evaluate(() => location.hash), await page.locator(".panel:visible").count(), await page.title()]);
  }
  await page.keyboard.press("ArrowRight");
  const wrapped = await page.evaluate(() => location.hash);
  await page.keyboard.press("ArrowRight");
  const next = await page.evaluate(() => location.hash);
  await page.goBack();
  await page.waitForSelector("#panel-now:not([hidden])");
  return { addresses, wrapped, next, back: await page.evaluate(() => location.hash) };
}

const laptop = await open(browser, url, seen, "laptop", { viewport: { width: 1366, height: 800 }, colorScheme: "light" });
seen.ledgers = await ledgers(laptop);
await laptop.click("#engine-market summary");
await laptop.waitForSelector("#engine-market .drops tbody tr");
seen.outcomes = await rowsOf(laptop, "#engine-market .drops tbody tr");
await laptop.click("#engine-market summary");
seen.spark = await laptop.waitForFunction(() => document.querySelector("#engine-market .line").getAttribute("d")).then(() => true);
seen.pause = await pause(laptop);
seen.top = { sentence: await textOf(laptop, "#sentence"), facts: await textOf(laptop, "#facts") };
seen.tabs = await tabs(laptop);
await visit(laptop, "books");
seen.books = await books(laptop);
seen.simulated = { notice: await laptop.locator("#simulated").innerText(), rows: await laptop.locator(".books .chip.simulated:visible").count() };
seen.kraken = await laptop.locator(".books a[href^='#books/kraken/']").first().evaluate((link) => link.getAttribute("href").split("/").pop());
seen.book = await book(laptop);
seen.broken = await broken(laptop);
seen.reloaded = await reloaded(laptop);
await visit(laptop, "now");
await laptop.waitForSelector("#newest tbody tr");
seen.newest = await rowsOf(laptop, "#newest tbody tr");
seen.after = await textOf(laptop, "#sentence");
await visit(laptop, "gate");
seen.verdicts = await verdicts(laptop);
seen.simulated.verdicts = await laptop.locator(".verdicts .chip.simulated:visible").count();
await visit(laptop, "machine");
seen.machine = await machine(laptop);
await visit(laptop, "relay");
seen.relay = await relay(laptop);
await lookAtAll(laptop, TABS, folder, "page", seen);
await laptop.setViewportSize({ width: 1366, height: 800 });
seen.shifts = await shiftsOf(laptop, url, TABS);

const quiet = seen.console.length;
console.log("stop the server");
await laptop.waitForSelector("#link[data-state=lost]");
seen.lost = await textOf(laptop, "#link");
seen.console.length = quiet; // the browser's own messages about the stopped server
await browser.close();
console.log(JSON.stringify(seen));
