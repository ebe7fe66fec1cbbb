// Words, numbers and rows that several views use.

import { make } from "/figures/parts.js";

export const bytes = (n) => {
  if (n < 1e3) return `${Math.round(n)} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  return n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(2)} GB`;
};

const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A number with at most three digits and a prefix. */
export function short(n) {
  const [scale, unit] = n >= 1e9 ? [1e9, "G"] : n >= 1e6 ? [1e6, "M"] : n >= 1e4 ? [1e3, "k"] : [1, ""];
  return `${digits.format(n / scale)}${unit ? ` ${unit}` : ""}`;
}

/** "12 s", "4 min", "2 h". */
export function ago(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return `${s} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
}

export const clock = (ms) => new Date(ms).toISOString().slice(11, 23);
export const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

/** A decimal without trailing zeros. */
export const plain = (decimal) => (decimal.includes(".") ? decimal.replace(/\.?0+$/, "") : decimal);

/** Updates the rows of `body` from `items`: `build` creates a row once, `fill` updates it. */
export function rows(body, items, build, fill) {
  while (body.rows.length > items.length) body.lastElementChild.remove();
  while (body.rows.length < items.length) body.append(build());
  items.forEach((item, index) => fill(body.rows[index], item, index));
}

export const cells = (...kinds) => () => make("tr", {}, ...kinds.map((kind) => make("td", kind ? { class: kind } : {})));

/** The token of the API: in memory only, never in storage, a cookie or an address. */
const kept = { token: "" };
export const token = () => kept.token;
export const keepToken = (value) => { kept.token = value; };

/** The body of a refused answer in words. */
export async function refusal(answer) {
  const said = await answer.text();
  try {
    return `refused with ${answer.status}: ${JSON.parse(said).error ?? said}`;
  } catch {
    return `refused with ${answer.status}: ${said}`;
  }
}
