// What the scripts of the page share: a browser that reports its console, requests to others and layout shifts, checks by
// axe-core, and pictures.

import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

export const PATIENCE_MS = 60_000;
export const FLAGS = [
  "--headless",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-gpu",
  "--disable-quic",
  "--disable-sync",
  "--no-first-run",
  "--no-sandbox",
];
const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

export const launch = (executablePath, flags) => chromium.launch({ executablePath, args: [...FLAGS, ...flags] });

/** Opens `url`; `seen` gets what the page must not do. */
export async function open(browser, url, seen, name, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (line) => seen.console.push(`${name} ${line.type()}: ${line.text()}`));
  page.on("pageerror", (error) => seen.console.push(`${name} error: ${error.message}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) seen.outside.push(request.url());
  });
  await page.addInitScript(() => {
    window.shifts = [];
    const named = ({ node }) => node?.id || node?.className || node?.nodeName;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push([entry.value, entry.sources.map(named).join(" ")]);
    }).observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(url);
  await live(page);
  return page;
}

export const live = (page) => page.waitForSelector("#link[data-state=live]");
export const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);
export const rowsOf = (page, selector) =>
  page.$$eval(selector, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));

/** Waits until the text of `selector` is another one than `before`. */
export async function changed(page, selector, before) {
  await page.waitForFunction(([where, old]) => {
    const found = document.querySelector(where);
    return found && found.textContent !== old;
  }, [selector, before]);
  return textOf(page, selector);
}

/** Opens a view by its tab. */
export async function visit(page, tab) {
  await page.locator(`#tabs [data-tab=${tab}]`).click();
  await page.waitForSelector(`#panel-${tab}:not([hidden])`);
}

/** Waits for `count` more snapshots of the page's stream. */
export async function snapshots(page, count) {
  await page.evaluate((more) => new Promise((resolve) => {
    const stream = new EventSource("/api/v1/live");
    stream.onmessage = () => {
      more -= 1;
      if (more > 0) return;
      stream.close();
      resolve();
    };
  }), count);
}

/** Waits until the page has been laid out and painted once more. */
export const painted = (page) => page.evaluate(() => new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(resolve));
}));

/** What axe-core finds in the page as it is. */
export async function violations(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`));
  });
}

/** Every view in both themes at several widths: a picture, overflow, shifts, and violations at the first width. */
export async function lookAtAll(page, tabs, folder, prefix, seen) {
  for (const [index, width] of [1280, 390, 768, 2560].entries()) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const tab of tabs) {
        await visit(page, tab);
        // At the first width every view is filled; it is kept while the others are looked at.
        if (index === 0) await snapshots(page, 2);
        else await painted(page);
        const name = `${prefix}-${tab}-${width}-${colorScheme}`;
        await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
        seen.widths[name] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        if (index === 0) seen.axe.push(...(await violations(page)).map((found) => `${name}: ${found}`));
      }
    }
  }
}

/** Loads each view again, and returns the shifts that no input caused. */
export async function shiftsOf(page, url, tabs) {
  const found = [];
  for (const tab of tabs) {
    await page.goto(`${url}#${tab}`);
    await page.reload();
    await live(page);
    await snapshots(page, 6);
    found.push(...(await page.evaluate(() => window.shifts)).map(([value, what]) => `${tab}: ${value.toFixed(4)} ${what}`));
  }
  return found;
}
