// Opens addresses of the page one after the other, each after an empty page, so that the processor time of each can be
// measured. Prints one line of JSON when it is open, and goes on after a line on standard input.
//
// node cost.mjs CHROMIUM ADDRESS...

import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { FLAGS, live } from "./look.mjs";

const [executablePath, ...addresses] = process.argv.slice(2);
const server = await chromium.launchServer({ executablePath, args: FLAGS });
const browser = await chromium.connect(server.wsEndpoint());
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function watched(ladder) {
  console.log(JSON.stringify({ browser: server.process().pid, ladder }));
  await lines.next();
}

for (const address of addresses) {
  await page.goto("about:blank");
  await watched("");
  await page.goto(address);
  await live(page);
  // The history of the page comes first.
  await page.waitForLoadState("networkidle").catch(() => {});
  await watched(await page.$eval("#ladder-says", (says) => says.textContent).catch(() => ""));
}
await browser.close();
await server.close();
process.exit();
