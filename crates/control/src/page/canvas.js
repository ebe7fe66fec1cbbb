// What is drawn on a canvas: depth, proof and candles.

import { colour } from "/figures/parts.js";

let inks = null;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { inks = null; });

const ink = (name) => {
  inks ??= Object.fromEntries(["good", "bad", "warn", "line", "soft", "ink"].map((each) => [each, colour(each)]));
  return inks[name];
};

/** The context of a canvas in CSS pixels, cleared. */
function paper(canvas) {
  const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height };
}

const SPAN_MS = 300_000;
const LABEL_PX = 64;
const middle = ({ bids, asks }) => (bids.length && asks.length ? (bids[0][0] + asks[0][0]) / 2 : null);

/** Depth by time and price: the stronger the colour, the larger the quantity. */
export function drawHeat(canvas, { columns, trades }, example) {
  const { context, width, height } = paper(canvas);
  if (columns.length === 0 || width < LABEL_PX) return;
  const end = columns.at(-1).at_unix_ms;
  const right = width - LABEL_PX;
  const x = (at) => right * (1 - (end - at) / SPAN_MS);
  const middles = columns.map(middle).filter((px) => px !== null);
  const reach = columns.flatMap(({ bids, asks }) => [bids.at(-1)?.[0], asks.at(-1)?.[0]]).filter((px) => px !== undefined);
  const [low, high] = [Math.min(...reach, ...middles), Math.max(...reach, ...middles)];
  const y = (px) => height - (height * (px - low)) / Math.max(high - low, Number.EPSILON);
  // Nine of ten quantities are below: one wall does not hide the rest.
  const sizes = columns.flatMap(({ bids, asks }) => [...bids, ...asks].map(([, qty]) => qty)).sort((a, b) => a - b);
  const most = sizes[Math.floor(sizes.length * 0.9)] || 1;
  const wide = Math.max(right / (SPAN_MS / 1000), 1);
  for (const { at_unix_ms: at, bids, asks } of columns) {
    for (const [side, fill] of [[bids, "good"], [asks, "bad"]]) {
      context.fillStyle = ink(fill);
      side.forEach(([px, qty], index) => {
        const next = side[index + 1]?.[0] ?? px;
        context.globalAlpha = 0.06 + 0.6 * Math.min(qty / most, 1);
        const top = Math.min(y(px), y(next));
        context.fillRect(x(at) - wide, top, wide + 0.5, Math.max(Math.abs(y(px) - y(next)), 1));
      });
    }
  }
  context.globalAlpha = 1;
  context.strokeStyle = ink("ink");
  context.lineWidth = 1.4;
  context.beginPath();
  let before = null;
  for (const column of columns) {
    const px = middle(column);
    if (px === null) continue;
    if (before !== null && column.at_unix_ms - before < 5000) context.lineTo(x(column.at_unix_ms), y(px));
    else context.moveTo(x(column.at_unix_ms), y(px));
    before = column.at_unix_ms;
  }
  context.stroke();
  const largest = Math.max(...trades.map(({ qty }) => qty), Number.MIN_VALUE);
  for (const { at_unix_ms: at, px, qty, aggressor } of trades) {
    if (at < end - SPAN_MS || px < low || px > high) continue;
    context.fillStyle = ink(aggressor === "buy" ? "good" : "bad");
    context.beginPath();
    context.arc(x(Math.min(at, end)), y(px), 1.5 + 3.5 * Math.sqrt(qty / largest), 0, 2 * Math.PI);
    context.fill();
  }
  prices(context, { low, high, y, left: right + 6, example });
}

function prices(context, { low, high, y, left, example }) {
  const places = example?.includes(".") ? Math.min(example.split(".")[1].length, 6) : 0;
  context.fillStyle = ink("soft");
  context.textBaseline = "middle";
  for (const share of [0.05, 0.35, 0.65, 0.95]) {
    const px = low + (high - low) * share;
    context.fillText(px.toFixed(places), left, y(px));
  }
}

/** A cell per half second; the newest is at the right. */
export function drawStrip(canvas, cells, most) {
  const { context, width, height } = paper(canvas);
  const right = width - LABEL_PX;
  const wide = right / most;
  const fills = { p: "good", r: "warn", f: "bad", u: "soft" };
  // A red cell is never thinner than two pixels, and is drawn last.
  const draw = (letters) => [...cells].forEach((letter, index) => {
    if (!letters.includes(letter)) return;
    context.fillStyle = ink(fills[letter]);
    context.globalAlpha = letter === "p" ? 0.5 : 1;
    context.fillRect(right - (cells.length - index) * wide, 0, Math.max(wide - (wide > 3 ? 1 : 0), letter === "p" ? 0.5 : 2), height);
  });
  ["pu", "r", "f"].forEach(draw);
  context.globalAlpha = 1;
  const failed = [...cells].filter((letter) => letter === "f").length;
  canvas.setAttribute("aria-label", `Proof of the last ${Math.round(cells.length / 2)} seconds, a cell per half second: ${failed} failed`);
}

export function drawCandles(canvas, candles) {
  const { context, width, height } = paper(canvas);
  canvas.setAttribute("aria-label", `${candles.length} candles`);
  if (candles.length === 0) return;
  const right = width - LABEL_PX;
  const each = candles.map(({ open, high, low, close, is_whole: isWhole }) => ({ open: Number(open), high: Number(high), low: Number(low), close: Number(close), isWhole }));
  const [low, high] = [Math.min(...each.map((candle) => candle.low)), Math.max(...each.map((candle) => candle.high))];
  const y = (px) => height - 4 - ((height - 8) * (px - low)) / Math.max(high - low, Number.EPSILON);
  const wide = Math.min(right / each.length, 14);
  each.forEach((candle, index) => {
    const x = right - (each.length - index) * wide + wide / 2;
    context.fillStyle = context.strokeStyle = ink(candle.close >= candle.open ? "good" : "bad");
    context.globalAlpha = candle.isWhole ? 1 : 0.55;
    context.beginPath();
    context.moveTo(x, y(candle.high));
    context.lineTo(x, y(candle.low));
    context.stroke();
    const [top, bottom] = [y(Math.max(candle.open, candle.close)), y(Math.min(candle.open, candle.close))];
    context.fillRect(x - wide * 0.36, top, wide * 0.72, Math.max(bottom - top, 1));
  });
  context.globalAlpha = 1;
  prices(context, { low, high, y, left: right + 6, example: candles[0].close });
}
