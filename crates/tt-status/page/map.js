// The implementation map: which code of the repository does which part of the design.

import { make } from "./parts.js";

/** Files and items, an item a line; a path may break after each `/`. */
export function sourceList(sources, before = "") {
  return make("ul", { class: "code-items" }, ...sources.map(({ path, item }) => make("li", {}, before,
    make("code", {}, item), " ", make("small", {}, ...path.split("/").flatMap((part, index) => (index === 0 ? [part] : ["/", make("wbr"), part]))))));
}

/** A row for each part. */
export function showMap(part, parts) {
  const rows = parts.map(({ name, what, sources }) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, what), make("td", {}, sourceList(sources))));
  const head = ["Part", "What it does", "Code"].map((name) => make("th", { scope: "col" }, name));
  part.replaceChildren(make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Implementation map" },
    make("table", { class: "map" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))));
}
