// "Break it": a visitor makes the simulator send something wrong, and sees it caught.

import { button, text } from "/figures/parts.js";
import { chosenBook } from "./books.js";
import { refusal } from "./text.js";

const NAMES = {
  drop: ["Lose an update", "the next update is not sent"],
  duplicate: ["Repeat an update", "the next update is sent twice; a venue without numbers (Kraken) does not show it, and it changes nothing"],
  reorder: ["Swap two updates", "the next update is sent after its successor"],
  "flip-digit": ["Change a digit", "one digit of the next update is another one; a venue without checksum and ticker does not show it"],
  "half-open": ["Stall", "the connection stays open and nothing passes through it any more"],
};

async function inject(name) {
  const book = chosenBook();
  const says = document.getElementById("broken");
  const { symbol } = book;
  try {
    const listed = await (await fetch(`/api/v1/market/markets?venue=${encodeURIComponent(book.venue)}&symbol=${encodeURIComponent(symbol)}`)).json();
    const answer = await fetch("/api/v1/simulator/faults", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ venue: book.venue, symbol: listed[0].venue_symbol, fault: name }),
    });
    if (!answer.ok) throw new Error(await refusal(answer));
    text(says, `${symbol}: ${NAMES[name]?.[1] ?? name}. Watch the list below.`);
  } catch (error) {
    text(says, `Nothing was broken: ${error.message}`);
  }
}

/** Offers the faults of a simulator, once. */
export function showFaults(faults) {
  const part = document.getElementById("break");
  if (!part.hidden || faults.length === 0) return;
  part.append("Break it: ", ...faults.map((name) => button(NAMES[name]?.[0] ?? name, () => inject(name), { "data-fault": name, title: NAMES[name]?.[1] ?? "" })));
  part.hidden = false;
}
