"""What an ensemble may cost, such as bytes or seconds: the sum of what its members cost and of what they share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cashmere.base.arrays import BoolArray, Float64

Allowed = Callable[[Sequence[int]], BoolArray]
"""Takes the positions of the candidates chosen so far, and returns which candidates may be chosen next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What ensembles cost, in one unit.

    Attributes
    ----------
    fixed : float
        Cost of every ensemble.
    own : mapping of int to float
        Cost of each candidate as a member, by its number.
    shares : mapping of int to str
        What each candidate shares with others, by name: an ensemble pays for it once.
    shared : mapping of str to float
        Cost of what is shared, by name; 0 if it is missing.

    Examples
    --------
    >>> cost = Cost(fixed=1.0, own={3: 5.0, 4: 2.0}, shares={3: "onehot", 4: "onehot"}, shared={"onehot": 0.5})
    >>> cost.of([3, 4]), cost.of([4])
    (8.5, 3.5)
    """

    fixed: float
    own: Mapping[int, float]
    shares: Mapping[int, str] = field(default_factory=dict)
    shared: Mapping[str, float] = field(default_factory=dict)

    def of(self, members: Collection[int]) -> float:
        """Return the cost of an ensemble of these members."""
        names = {self.shares[number] for number in members if number in self.shares}
        return (
            self.fixed + sum(self.own[number] for number in members) + sum(self.shared.get(name, 0.0) for name in names)
        )

    def with_one_more(self, members: Collection[int], numbers: Sequence[int]) -> Float64:
        """Return the cost of an ensemble of these members and each of the candidates, shape ``(n_candidates,)``."""
        paid = {self.shares.get(number) for number in members}
        more = [
            0.0
            if number in members
            else self.own[number]
            + (0.0 if self.shares.get(number) in paid else self.shared.get(self.shares.get(number, ""), 0.0))
            for number in numbers
        ]
        return self.of(members) + np.array(more, dtype=np.float64)

    def times(self, factor: float) -> Cost:
        """Return costs that are all larger by a factor."""
        return Cost(
            fixed=factor * self.fixed,
            own={number: factor * each for number, each in self.own.items()},
            shares=self.shares,
            shared={name: factor * each for name, each in self.shared.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The most that an ensemble may cost in one unit.

    Attributes
    ----------
    cost : Cost
        What ensembles cost.
    most : float
        In the same unit.
    """

    cost: Cost
    most: float

    def holds(self, members: Collection[int]) -> bool:
        """Return whether an ensemble of these members keeps the limit."""
        return self.cost.of(members) <= self.most


def allowed_within(limits: Sequence[Limit], numbers: Sequence[int]) -> Allowed | None:
    """Return a function that tells a selection which candidates keep all limits, or None if there are no limits.

    Parameters
    ----------
    limits : sequence of Limit
        Limits to keep; if empty, all candidates are allowed.
    numbers : sequence of int
        Numbers of the candidates, by position.
    """
    if not limits:
        return None
    known: dict[frozenset[int], BoolArray] = {}

    def allowed(chosen: Sequence[int]) -> BoolArray:
        members = frozenset(numbers[position] for position in chosen)
        if members not in known:
            within = [limit.cost.with_one_more(members, numbers) <= limit.most for limit in limits]
            known[members] = np.all(within, axis=0)
        return known[members]

    return allowed
