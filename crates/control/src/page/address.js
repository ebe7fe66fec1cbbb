// Each view has an address: `#books/kraken/BTC-USD`.

const TABS = ["now", "relay", "books", "gate", "machine"];
const asPath = (name) => encodeURIComponent(name.replaceAll("/", "-"));

/** The view that the address names, and the book. */
export function address() {
  const [tab, venue, symbol] = location.hash.slice(1).split("/").map(decodeURIComponent);
  return { tab: TABS.includes(tab) ? tab : "now", venue, symbol };
}

/** The address of a book. `-` is written for `/`, which symbols contain. */
export const bookAddress = ({ venue, symbol }) => `#books/${encodeURIComponent(venue)}/${asPath(symbol)}`;

/** Whether the address names this book. */
export const isNamed = (book, { venue, symbol }) => book.venue === venue && asPath(book.symbol) === encodeURIComponent(symbol ?? "");

function showTab() {
  const { tab } = address();
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.dataset.tab === tab) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.id !== `panel-${tab}`;
  document.title = tab === "now" ? "truetick" : `${tab[0].toUpperCase()}${tab.slice(1)} · truetick`;
}

/** Shows the view of the address, now and when it changes. */
export function route(changed) {
  showTab();
  addEventListener("hashchange", () => {
    if (location.hash === "#content") return;
    showTab();
    changed();
  });
}

/** Arrows move between the tabs. */
export function keyboard() {
  document.getElementById("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...document.querySelectorAll("#tabs a:not([hidden])")];
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    event.preventDefault();
    next.focus();
    next.click();
  });
}
