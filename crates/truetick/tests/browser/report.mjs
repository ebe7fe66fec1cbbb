// Plays with every figure of a report, in `report.html` opened as a file or in the page of a server, and prints one line
// of JSON with what was seen; asserting is the caller's.
//
// node report.mjs CHROMIUM URL SCREENSHOT_FOLDER NAME

import { chromium } from "playwright-core";

const [executablePath, url, folder, prefix] = process.argv.slice(2);
const PATIENCE_MS = 60_000;
const args = ["--headless", "--disable-background-networking", "--disable-component-update", "--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run", "--no-sandbox"];

const browser = await chromium.launch({ executablePath, args });
const seen = { console: [], outside: [], widths: {} };
const isOwn = (asked) => (url.startsWith("file:") ? asked === url : new URL(asked).origin === new URL(url).origin) || asked.startsWith("data:");

async function open(name, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("console", (line) => seen.console.push(`${name} ${line.type()}: ${line.text()}`));
  page.on("pageerror", (error) => seen.console.push(`${name} error: ${error.message}`));
  page.on("request", (request) => { if (!isOwn(request.url())) seen.outside.push(request.url()); });
  await page.goto(url);
  await page.waitForSelector("#figure-ablation .figure > *");
  return page;
}

const texts = (page, selector) => page.$$eval(selector, (found) => found.map((element) => element.innerText.trim()));
const text = async (page, selector) => (await texts(page, selector))[0];
const press = (page, figure, name) => page.locator(figure).getByRole("button", { name, exact: true }).click();

/** The state of both lanes. */
const lanes = (page) => page.$$eval("#figure-line .lane", (found) => Object.fromEntries(found.map((lane) => [lane.dataset.layout, {
  whole: lane.querySelector("output").textContent,
  done: lane.dataset.done,
  cores: [...lane.querySelectorAll(".core")].map((core) => [...core.querySelectorAll("b")].map((badge) => badge.textContent).join("")),
  token: lane.querySelector(".token").hidden ? null : lane.querySelector(".token").dataset.kind,
  says: lane.querySelector(".says").textContent,
}])));

/** Steps to the end, one press at a time, and back by the keyboard. */
async function line(page) {
  const placement = await page.$eval(".placements input:checked", (input) => input.value);
  const steps = [await lanes(page)];
  for (let step = 0; step < 20 && Object.values(steps.at(-1)).some((lane) => lane.done !== "true"); step += 1) {
    await press(page, "#figure-line", "Step");
    steps.push(await lanes(page));
  }
  const clock = await text(page, "#figure-line .clock");
  await page.locator("#figure-line input[type=range]").press("Home");
  const back = { clock: await text(page, "#figure-line .clock"), lanes: await lanes(page) };
  await press(page, "#figure-line", "Play");
  await page.waitForFunction(() => document.querySelector("#figure-line .lane[data-done=true]"));
  // Where both lanes are done, there is nothing left to pause.
  await page.$$eval("#figure-line button", (buttons) => buttons.find((button) => button.textContent.trim() === "Pause")?.click());
  return { placement, steps, clock, back };
}

/** The switch in both positions, or what the figure says where nothing was measured. */
async function sharing(page) {
  if (await page.locator("#figure-sharing [role=switch]").count() === 0) return { absent: await text(page, "#figure-sharing .figure") };
  const read = async () => ({
    checked: await page.locator("#figure-sharing [role=switch]").getAttribute("aria-checked"),
    stage: await page.locator("#figure-sharing .stage-of-two").getAttribute("data-sharing"),
    result: await text(page, "#figure-sharing .result b"),
    measures: await texts(page, "#figure-sharing .measure b"),
  });
  const on = await read();
  await page.locator("#figure-sharing [role=switch]").focus();
  await page.keyboard.press("Space");
  const off = await read();
  await page.keyboard.press("Space");
  return { on, off, again: await read() };
}

const plotted = (page) => page.$eval("#figure-spread .plot", (plot) => [Number(plot.dataset.from), Number(plot.dataset.to)]);
const quantiles = (page) => page.$$eval("#figure-spread .quantiles tbody tr", (rows) => Object.fromEntries(rows.map((row) =>
  [row.dataset.series, Object.fromEntries([...row.querySelectorAll("td")].map((cell) => [cell.dataset.of, cell.textContent]))])));

async function spread(page) {
  const radios = await page.$$eval("#figure-spread fieldset:nth-of-type(1) input", (found) => found.map((input) => input.value));
  const classes = await page.$$eval("#figure-spread fieldset:nth-of-type(3) input", (found) => found.map((input) => input.value));
  const whole = await plotted(page);
  await press(page, "#figure-spread", "Zoom in");
  const zoomed = await plotted(page);
  await press(page, "#figure-spread", "Tail");
  const tail = await plotted(page);
  await press(page, "#figure-spread", "All");
  // The mouse reaches only what is in the window; the chart may be below its edge.
  const chart = page.locator("#figure-spread .u-over");
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width * 0.2, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 4 });
  const readout = await text(page, "#figure-spread .readout");
  await page.mouse.up();
  const dragged = await plotted(page);
  const painted = () => page.$eval("#figure-spread canvas", (canvas) => canvas.toDataURL().length);
  const histogram = await painted();
  await page.locator("#figure-spread").getByText("share above", { exact: true }).click();
  const above = await painted();
  await page.locator("#figure-spread").getByText("histogram", { exact: true }).click();
  await press(page, "#figure-spread", "All");
  const tables = {};
  for (const of of radios) {
    await page.check(`#figure-spread input[type=radio][value=${of}]`, { force: true });
    for (const placement of classes) await page.setChecked(`#figure-spread input[value=${placement}]`, true, { force: true });
    tables[of] = { quantiles: await quantiles(page), causes: await page.$$eval("#figure-spread .causes li", (rows) => rows.map((row) => [row.dataset.cause, row.querySelector("b")?.textContent])) };
  }
  return { radios, classes, whole, zoomed, tail, dragged, readout, histogram, above, tables };
}

/** Figures by placement, each class chosen once. */
async function placements(page) {
  const found = {};
  for (const placement of await page.$$eval(".placements input", (inputs) => inputs.map((input) => input.value))) {
    await page.check(`.placements input[value=${placement}]`, { force: true });
    found[placement] = {
      ways: await lanes(page),
      hop: await text(page, "#figure-line .figure > .quiet"),
      sharing: await texts(page, "#figure-sharing .measure b"),
    };
  }
  return found;
}

/** Both panels, with the labels of their axes, and the figures below them. */
async function comparison(page) {
  const panels = await page.$$eval("#figure-comparison figure", (found) => Object.fromEntries(found.map((panel) => [panel.dataset.kind, {
    says: panel.querySelector("figcaption").textContent,
    bars: panel.querySelectorAll("rect").length,
    axes: [...panel.querySelectorAll("text")].map((label) => label.textContent),
  }])));
  const figures = await page.$$eval("#figure-comparison tbody tr", (rows) => Object.fromEntries(rows.map((row) =>
    [row.dataset.kind, Object.fromEntries([...row.querySelectorAll("td")].map((cell) => [cell.dataset.of, cell.textContent]))])));
  const placement = await page.$eval("#figure-comparison figure", (panel) => panel.dataset.placement);
  return { placement, panels, figures, caption: await text(page, "#figure-comparison .figure > .quiet:last-child") };
}

async function shoot(page, name) {
  await page.screenshot({ path: `${folder}/${prefix}-${name}.png`, fullPage: true });
  seen.widths[name] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
}

const wide = await open("wide", { viewport: { width: 1400, height: 900 }, colorScheme: "light" });
seen.line = await line(wide);
seen.sharing = await sharing(wide);
seen.spread = await spread(wide);
seen.placements = await placements(wide);
seen.ablation = await wide.$$eval("#figure-ablation tbody tr", (rows) => rows.map((row) => [row.querySelector("th").textContent, ...[...row.querySelectorAll("td.num")].map((cell) => cell.textContent)]));
seen.code = await wide.$$eval("#figure-ablation td.code", (cells) => cells.map((cell) => [...cell.querySelectorAll("li")].map((line) => line.textContent)));
seen.publishedSources = await texts(wide, "#figure-ablation .published-source");
seen.map = await wide.$$eval("#figure-map tbody tr", (rows) => rows.map((row) => [row.querySelector("th").textContent, [...row.querySelectorAll("li")].map((line) => line.textContent)]));
seen.comparison = await comparison(wide);
seen.whole = await wide.$$eval(".path", (paths) => Object.fromEntries(paths.map((path) => [path.dataset.engine, path.querySelector(".whole .sum b")?.textContent ?? null])));
seen.flow = await wide.$$eval(".path", (paths) => Object.fromEntries(paths.map((path) => [path.dataset.engine, [...path.querySelectorAll(".stage")].map((stage) => [stage.querySelector("span").textContent, stage.querySelector("b").textContent])])));
await shoot(wide, "wide");
await wide.emulateMedia({ colorScheme: "dark" });
await shoot(wide, "wide-dark");
await wide.close();
for (const [name, colorScheme] of [["narrow", "light"], ["narrow-dark", "dark"]]) {
  const narrow = await open(name, { viewport: { width: 400, height: 860 }, deviceScaleFactor: 2, colorScheme });
  await shoot(narrow, name);
  await narrow.close();
}
await browser.close();
console.log(JSON.stringify(seen));
