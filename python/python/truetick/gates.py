"""The pre-trade gate."""

from __future__ import annotations

import os
from dataclasses import dataclass
from decimal import Decimal

from ._truetick import Book, GateCore

Number = Decimal | int | str


def _text(number: Number) -> str:
    return number if isinstance(number, str) else f"{Decimal(number):f}"


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What a strategy wants to send: an order, a cancel or a replace of the order `client_id`.

    `side` is `buy` or `sell`; `kind` is `limit`, `market`, `cancel`, `replace`, `stop-market` or `stop-limit`; `tif` is
    `gtc`, `ioc` or `fok`. Prices and quantities are exact: Decimal, int, or decimal text.
    """

    symbol: str
    side: str
    quantity: Number
    price: Number | None = None
    trigger: Number | None = None
    client_id: int
    kind: str = "limit"
    account: str | int = 0
    strategy: int = 0
    tif: str = "gtc"
    reduce_only: bool = False
    post_only: bool = False
    close_position: bool = False
    ttl_ms: int = 0


@dataclass(frozen=True)
class Verdict:
    """The gate's answer to one intent. True if it is accepted."""

    ok: bool
    reasons: list[str]
    """Every reason that was found, as docs/gate-api.md lists them."""
    seq: int
    """The number of the verdict."""

    def __bool__(self) -> bool:
        return self.ok


class Gate:
    """A gate with the limits of a file, on the caller's thread. It never sends an order."""

    def __init__(self, text: str) -> None:
        """Read limits from TOML text. Raises ValueError with line and key of a fault."""
        self._core = GateCore(text)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Gate:
        """Read limits from a file (docs/limits-file.md). Raises OSError, and ValueError with line and key of a fault."""
        gate = cls.__new__(cls)
        gate._core = GateCore.from_toml(path)
        return gate

    @property
    def symbols(self) -> list[str]:
        """The symbols of the limits."""
        return self._core.symbols

    def mark(self, symbol: str, *, bid: Number, ask: Number, ts: int | None = None, is_verified: bool = True) -> None:
        """Set the reference price of a symbol: the middle of bid and ask at `ts` (ns of the Unix epoch; now if absent)."""
        self._core.mark(symbol, _text(bid), _text(ask), ts, is_verified)

    def mark_book(self, book: Book, symbol: str | None = None) -> None:
        """Set the reference price from a book and its proof; `symbol` is the limits' name if it is another one.

        Raises ValueError if a side of the book is empty.
        """
        if book.best_bid is None or book.best_ask is None:
            raise ValueError("a side of the book is empty")
        bid, ask = book.best_bid.price, book.best_ask.price
        self.mark(symbol or book.symbol, bid=bid, ask=ask, ts=book.ts_recv, is_verified=book.proof.ok)

    def check(self, intent: Intent, *, ts: int | None = None) -> Verdict:
        """Judge an intent at `ts` (now if absent). An accepted order is reserved until a report ends it."""
        fields = {
            "symbol": intent.symbol,
            "side": intent.side,
            "quantity": _text(intent.quantity),
            "price": None if intent.price is None else _text(intent.price),
            "trigger": None if intent.trigger is None else _text(intent.trigger),
            "client_id": intent.client_id,
            "kind": intent.kind,
            "account": str(intent.account),
            "strategy": intent.strategy,
            "tif": intent.tif,
            "reduce_only": intent.reduce_only,
            "post_only": intent.post_only,
            "close_position": intent.close_position,
            "ttl_ms": intent.ttl_ms,
        }
        return Verdict(*self._core.check(fields, ts))

    def report(
        self,
        kind: str,
        symbol: str,
        client_id: int,
        *,
        side: str = "buy",
        quantity: Number = 0,
        price: Number = 0,
        executed: Number | None = None,
        execution_id: int = 0,
        account: str | int = 0,
        ts: int | None = None,
    ) -> str:
        """Apply a report of the venue, and return what became of it: `applied`, `duplicate`, `late`, `unknown`, ...

        `kind` is `fill`, `cancelled`, `rejected`, `expired` or `unsent`. A fill has `quantity`, `price` and
        `execution_id`; `executed` is the order's executed total if the venue states it.
        """
        fields = {
            "kind": kind,
            "symbol": symbol,
            "account": str(account),
            "client_id": client_id,
            "side": side,
            "quantity": _text(quantity),
            "price": _text(price),
            "executed": None if executed is None else _text(executed),
            "execution_id": execution_id,
        }
        return self._core.report(fields, ts)
