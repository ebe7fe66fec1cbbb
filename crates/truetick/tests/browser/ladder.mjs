// Scrolls through the ladder of a deep book on the page of `truetick serve --levels N`. Prints one line of JSON with what
// was seen; asserting is the caller's.
//
// node ladder.mjs CHROMIUM PAGE_URL VENUE SCREENSHOT_FOLDER

import { launch, live, open, painted, textOf, violations, visit } from "./look.mjs";

const [executablePath, url, venue, folder] = process.argv.slice(2);
const browser = await launch(executablePath, []);
const seen = { console: [], outside: [], axe: [], widths: {} };
const page = await open(browser, url, seen, "ladder", { viewport: { width: 1366, height: 800 }, colorScheme: "light" });

/** The books of the API that the page got, newest last. */
const books = [];
page.on("response", async (response) => {
  if (!response.url().includes("/api/v1/market/orderbook?") || !response.url().includes(venue)) return;
  // The browser may close first.
  const answer = await response.json().catch(() => null);
  if (answer) books.push(answer[0]);
});

/** Waits until the page shows `count` more books. */
async function further(count) {
  for (let left = count; left > 0; left -= 1) {
    const answer = await page.waitForResponse((response) => response.url().includes("/api/v1/market/orderbook?"));
    await answer.finished();
  }
  await painted(page);
}

/** Position, number of the first row, and rows as [bid quantity, bid, ask, ask quantity]. */
const look = () => page.$eval("#ladder", (box) => {
  const [, table] = box.children;
  const inside = box.getBoundingClientRect();
  const rows = [...table.tBodies[0].rows];
  return {
    top: box.scrollTop,
    most: box.scrollHeight - box.clientHeight,
    first: Math.round(new DOMMatrix(getComputedStyle(table).transform).m42 / rows[0].getBoundingClientRect().height),
    rows: rows.map((row) => [...row.cells].map((cell) => cell.textContent)),
    lastIsInside: rows.at(-1).getBoundingClientRect().bottom <= inside.bottom + 1,
    inDocument: document.querySelectorAll("#ladder tr").length - 1,
  };
});

async function scrollTo(top) {
  await page.$eval("#ladder", (box, to) => { box.scrollTop = to; }, top);
  await painted(page);
  return look();
}

/** Every row from the first to the last, while the page is paused; and the book that it shows. */
async function walk() {
  await page.click("#pause");
  await page.waitForFunction(() => document.getElementById("link").textContent === "Paused");
  // An answer that is on its way is still shown.
  await page.waitForLoadState("networkidle");
  const rows = [];
  let inDocument = 0;
  for (let at = await scrollTo(0); ; at = await scrollTo(at.top + 200)) {
    at.rows.forEach((row, index) => { rows[at.first + index] = row; });
    inDocument = Math.max(inDocument, at.inDocument);
    if (at.top >= at.most) break;
  }
  const side = (levels) => levels.map(({ px, qty }) => [px, qty]);
  const book = books.at(-1);
  await page.click("#pause");
  return { rows, inDocument, bids: side(book.bids), asks: side(book.asks), proof: book.proof };
}

/** The position after further updates, and whether any level changed; at the top, in the middle and at the end. */
async function hold(top) {
  const before = await scrollTo(top);
  const first = books.length;
  await further(4);
  const after = await look();
  const texts = books.slice(first).map(({ bids, asks }) => JSON.stringify([bids, asks]));
  return { before, after, updates: new Set(texts).size };
}

/** By keyboard and by wheel, as a visitor does. */
async function byHand() {
  await scrollTo(0);
  await page.focus("#ladder");
  const found = [];
  for (const key of ["End", "Home", "PageDown"]) {
    const before = (await look()).top;
    await page.keyboard.press(key);
    await page.waitForFunction((old) => document.getElementById("ladder").scrollTop !== old, before);
    // Chromium scrolls smoothly: the end of it is an event.
    found.push([key, await settled()]);
  }
  await page.hover("#ladder");
  const before = (await look()).top;
  await page.mouse.wheel(0, 3000);
  await page.waitForFunction((old) => document.getElementById("ladder").scrollTop !== old, before);
  found.push(["wheel", await settled()]);
  return found;
}

/** The position once it has been the same for some frames. */
const settled = () => page.$eval("#ladder", (box) => new Promise((resolve) => {
  let [last, same] = [box.scrollTop, 0];
  const next = () => {
    same = box.scrollTop === last ? same + 1 : 0;
    last = box.scrollTop;
    if (same === 12) resolve([last, box.scrollHeight - box.clientHeight]);
    else requestAnimationFrame(next);
  };
  next();
}));

await visit(page, "books");
await page.waitForSelector(`.books a[href^='#books/${venue}/']`);
await page.locator(`.books a[href^='#books/${venue}/']`).first().click();
await page.waitForFunction((wanted) => document.getElementById("book-title").textContent.endsWith(` on ${wanted}`), venue);
await live(page);
await page.waitForFunction(() => document.getElementById("ladder-says").textContent.startsWith("1,000 bids, 1,000 asks") && document.querySelector("#ladder tbody tr"));
seen.says = await textOf(page, "#ladder-says");
seen.walked = await walk();
const end = (await look()).most;
seen.held = { top: await hold(0), middle: await hold(Math.round(end / 2)), end: await hold(end) };
seen.byHand = await byHand();
seen.shifts = (await page.evaluate(() => window.shifts)).map(([value, what]) => `${value.toFixed(4)} ${what}`);

for (const [width, colorScheme] of [[1366, "light"], [1366, "dark"], [390, "light"], [390, "dark"]]) {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme });
  for (const [name, share] of [["top", 0], ["middle", 0.5], ["end", 1]]) {
    const { most } = await look();
    await scrollTo(Math.round(most * share));
    await page.evaluate(() => window.scrollTo(0, 0));
    const picture = `ladder-${name}-${width}-${colorScheme}`;
    await page.screenshot({ path: `${folder}/${picture}.png`, fullPage: true });
    seen.widths[picture] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  }
  seen.axe.push(...(await violations(page)).map((found) => `${width} ${colorScheme}: ${found}`));
}
await browser.close();
console.log(JSON.stringify(seen));
