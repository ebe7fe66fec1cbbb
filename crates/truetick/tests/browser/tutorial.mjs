// Does on the page what the operator's tutorial says: enters the token and looks at the calls. Prints one line of JSON
// with what was seen; asserting is the caller's.
//
// node tutorial.mjs CHROMIUM PAGE_ADDRESS TOKEN

import { changed, launch, open, rowsOf, textOf } from "./look.mjs";

const [executablePath, url, token] = process.argv.slice(2);
const browser = await launch(executablePath, []);
const seen = { console: [], outside: [] };
const page = await open(browser, url, seen, "tutorial", { viewport: { width: 1280, height: 900 } });
const form = page.locator("#allocations-token");
await form.getByLabel("API token").fill(token);
await form.getByRole("button", { name: "List" }).click();

// The call is there, and goes on.
await page.waitForFunction(() => {
  const rows = [...document.querySelectorAll("#allocations tbody tr")];
  return rows.length === 2 && rows.every((row) => row.cells[3].textContent.startsWith("1,"));
});
seen.says = await textOf(page, "#allocations-says");
seen.calls = await rowsOf(page, "#allocations tbody tr");
const bytes = "#allocations tbody tr:first-child td:nth-child(5), #allocations tbody tr:nth-child(2) td:nth-child(5)";
const sum = () => page.$$eval(bytes, (cells) => cells.map((cell) => cell.textContent).join(" "));
const before = await sum();
await page.waitForFunction(([where, old]) => [...document.querySelectorAll(where)].map((cell) => cell.textContent).join(" ") !== old, [bytes, before]);
seen.bytes = [before, await sum()];
seen.users = await rowsOf(page, "#users tbody tr");
seen.refusals = await textOf(page, "#sources tbody");
seen.products = await page.locator("#products label").allInnerTexts();

const all = page.getByRole("button", { name: "End all", exact: false }).first();
await all.click();
seen.ended = await changed(page, "#orders-answer", "");
await page.waitForFunction(() => document.querySelectorAll("#allocations tbody tr").length === 0);
await browser.close();
console.log(JSON.stringify(seen));
