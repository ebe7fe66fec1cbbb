"""Order books of exchanges that carry their proof, live and from recordings.

>>> import truetick as tt
>>> with tt.Simulator() as venues, tt.books("kraken", venues.symbols("kraken"), url=venues.url("kraken")) as books:
...     book = next(books)
>>> book.venue
'kraken'
"""

from ._level import Level
from ._truetick import Book, FeedError, Proof, Simulator, venues
from .books import Books, books

__all__ = ["Book", "Books", "FeedError", "Level", "Proof", "Simulator", "books", "venues"]
