"""The items with the highest ranks of very many; at most twice `MOST` are kept."""

import heapq
from typing import Final

import attrs

MOST: Final = 64


@attrs.define(eq=False)
class TopK:
    """Names with their ranks. A name that was dropped returns when it is offered again and there is
    room."""

    ranks: dict[str, int] = attrs.Factory(dict)
    _least: int = -1
    """Names with lower ranks have been dropped."""

    def offer(self, name: str, rank: int) -> None:
        """Set the rank of a name, and keep it if the rank is high enough."""
        if name in self.ranks or rank > self._least or len(self.ranks) < MOST:
            self.ranks[name] = rank
        if len(self.ranks) > 2 * MOST:
            kept = heapq.nlargest(MOST, self.ranks, key=self.ranks.__getitem__)
            self.ranks = {each: self.ranks[each] for each in kept}
            self._least = self.ranks[kept[-1]]

    def discard(self, name: str) -> None:
        """Remove a name."""
        self.ranks.pop(name, None)
