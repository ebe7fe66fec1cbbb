// Looks at the share of the kernel path on the page of `truetick turn --http`. Prints one line of JSON with what was seen;
// asserting is the caller's.
//
// node kernel.mjs CHROMIUM PAGE_URL SCREENSHOT_FOLDER [CHROMIUM_FLAG...]

import { launch, lookAtAll, open, shiftsOf, textOf, visit } from "./look.mjs";

const [executablePath, url, folder, ...flags] = process.argv.slice(2);
const browser = await launch(executablePath, flags);
const seen = { console: [], outside: [], widths: {}, axe: [] };
const page = await open(browser, url, seen, "kernel", { viewport: { width: 1280, height: 900 } });
await visit(page, "relay");
await page.waitForSelector("#in-kernel:not([hidden])");
seen.kernel = await textOf(page, "#in-kernel");
await page.locator("#in-kernel").scrollIntoViewIfNeeded();
seen.shifts = await shiftsOf(page, url, ["relay"]);
await lookAtAll(page, ["relay"], folder, "kernel", seen);
await browser.close();
console.log(JSON.stringify(seen));
