// Opens addresses of the page one after the other, so that the processor time of each can be measured. Prints one line of
// JSON when an address is live, and goes on after a line on standard input.
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
for (const address of addresses) {
  await page.goto("about:blank");
  await page.goto(address);
  await live(page);
  // The history of the page comes first.
  await page.waitForLoadState("networkidle").catch(() => {});
  const ladder = await page.$eval("#ladder-says", (says) => says.textContent).catch(() => "");
  console.log(JSON.stringify({ browser: server.process().pid, ladder }));
  if ((await lines.next()).done) break;
}
await browser.close();
await server.close();
