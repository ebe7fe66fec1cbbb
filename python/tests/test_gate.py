"""The pre-trade gate."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from conftest import Follow, proven

import truetick as tt

LIMITS = Path(__file__).parent.parent.parent / "deploy/limits.toml"
NOW = 1_700_000_000_000_000_000
SYMBOL = "BTC/USDT"


def order(client_id: int, **fields: object) -> tt.Intent:
    """A small order at the market, with other fields."""
    standard = {"symbol": SYMBOL, "side": "buy", "price": "60000.00", "quantity": "0.3", "client_id": client_id}
    return tt.Intent(**{**standard, **fields})  # type: ignore[arg-type]


@pytest.fixture
def gate() -> tt.Gate:
    gate = tt.Gate.from_toml(LIMITS)
    gate.mark(SYMBOL, bid="59999.90", ask=Decimal("60000.10"), ts=NOW)
    return gate


def test_a_verdict_lists_every_reason(gate: tt.Gate) -> None:
    assert gate.symbols == [SYMBOL]
    accepted = gate.check(order(1), ts=NOW)
    assert accepted and accepted.ok and accepted.reasons == [] and accepted.seq == 1
    far = gate.check(order(2, price=66000), ts=NOW)
    assert not far and far.seq == 2
    assert far.reasons == ["COLLAR_REF", "POS_LONG"]
    large = gate.check(order(1, price="60000.05", quantity=9), ts=NOW)
    assert {"PRICE_TICK", "DUP_ID", "POS_LONG"} <= set(large.reasons)


def test_an_order_is_reserved_until_a_report_ends_it(gate: tt.Gate) -> None:
    assert gate.check(order(1), ts=NOW)
    assert "POS_LONG" in gate.check(order(2), ts=NOW + 1).reasons
    assert gate.report("cancelled", SYMBOL, 1, ts=NOW + 2) == "applied"
    assert gate.report("cancelled", SYMBOL, 99, ts=NOW + 2) == "unknown"
    later = NOW + 1_500_000_000
    gate.mark(SYMBOL, bid="59999.90", ask="60000.10", ts=later)
    assert gate.check(order(3), ts=later)
    filled = gate.report(
        "fill", SYMBOL, 3, quantity="0.3", executed="0.3", price="60000", execution_id=7, ts=later
    )
    assert filled == "applied"
    assert "POS_LONG" in gate.check(order(4), ts=later).reasons


def test_a_proven_book_is_a_reference_and_an_unproven_one_is_not(paused: tt.Simulator, follow: Follow) -> None:
    books = follow("kraken")
    text = LIMITS.read_text().replace(SYMBOL, "BTC/USD")
    symbol = paused.symbols("kraken")[0]
    assert symbol == "BTC/USD"
    gate = tt.Gate(text)
    book = proven(books, symbol)
    at = book.ts_recv
    assert book.best_ask is not None
    price = book.best_ask.price
    intent = tt.Intent(symbol=symbol, side="buy", price=price, quantity="0.001", client_id=1)
    assert "MD_STALE" in gate.check(intent, ts=at).reasons
    gate.mark_book(book)
    marked = gate.check(tt.Intent(symbol=symbol, side="buy", price=price, quantity="0.001", client_id=2), ts=at)
    assert "MD_STALE" not in marked.reasons
    gate.mark(symbol, bid=price, ask=price, ts=at, is_verified=False)
    again = gate.check(tt.Intent(symbol=symbol, side="buy", price=price, quantity="0.001", client_id=3), ts=at)
    assert again.reasons == ["BOOK_UNVERIFIED"]


def test_faults_are_reported(gate: tt.Gate, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tt.Gate.from_toml(tmp_path / "absent.toml")
    with pytest.raises(ValueError, match="no_such_key"):
        tt.Gate(LIMITS.read_text() + "\nno_such_key = 1\n")
    with pytest.raises(KeyError, match="ETH/USDT"):
        gate.check(order(1, symbol="ETH/USDT"))
    with pytest.raises(ValueError, match="side must be one of buy, sell"):
        gate.check(order(1, side="up"))
    with pytest.raises(ValueError, match="at most 5 decimals"):
        gate.check(order(1, quantity="0.0000001"))
