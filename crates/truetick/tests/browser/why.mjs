// Looks at the answer of `truetick why` on the page's tab Machine. Prints one line of JSON with what was seen; asserting is
// the caller's.
//
// node why.mjs CHROMIUM PAGE_ADDRESS

import { launch, open, rowsOf, textOf } from "./look.mjs";

const [executablePath, url] = process.argv.slice(2);
const browser = await launch(executablePath, []);
const seen = { console: [], outside: [] };
const page = await open(browser, url, seen, "why", { viewport: { width: 1280, height: 900 } });
await page.waitForSelector("#panel-machine:not([hidden]) .why-changes");
seen.answer = await textOf(page, ".why-answer");
seen.changes = await rowsOf(page, ".why-changes tbody tr");
seen.of = await textOf(page, "#why-of");
seen.kept = await page.evaluate(async () => (await fetch("/api/v1/machine/why")).json());
await browser.close();
console.log(JSON.stringify(seen));
