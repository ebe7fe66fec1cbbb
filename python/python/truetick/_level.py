"""A level of a book."""

from decimal import Decimal
from typing import NamedTuple


class Level(NamedTuple):
    """A price and the quantity that is offered at it, exactly as the venue counts them."""

    price: Decimal
    quantity: Decimal
