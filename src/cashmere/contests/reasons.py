"""Why a contender left a contest, as records; the sentences are written where they are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class WorseLoss:
    """Others have found better configurations.

    Attributes
    ----------
    best_loss : float
        Lowest loss of the contender.
    bar : float
        Lowest loss of the last one that was kept.
    n_kept, n_contenders : int
        How many were kept, of how many.
    """

    kind: Literal["worse loss"] = field(default="worse loss", init=False)
    best_loss: float
    bar: float
    n_kept: int
    n_contenders: int

    def sentence(self, word: str, value: Callable[[float], float]) -> str:
        """Return the sentence, in losses or in scores.

        Parameters
        ----------
        word : str
            Name of the values: ``"loss"`` or ``"score"``.
        value : callable
            Converts a loss to the value to show.
        """
        return (
            f"best {word} {value(self.best_loss):.4g}; "
            f"the {self.n_kept} kept of {self.n_contenders} reach {value(self.bar):.4g}"
        )

    def __str__(self) -> str:
        return self.sentence("loss", float)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverEvaluated:
    """The budget did not suffice for a single evaluation."""

    kind: Literal["never evaluated"] = field(default="never evaluated", init=False)

    def __str__(self) -> str:
        return "never evaluated: the budget is too small"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorseRank:
    """A test finds the contender worse than the best one.

    Attributes
    ----------
    test : str
        ``"wilcoxon"`` for two contenders, ``"holm"`` for more.
    rank, best_rank : float
        Mean ranks of the contender and of the best one.
    best : str
        Name of the best one.
    p_value : float
        Probability of the test; for Holm's procedure the adjusted one.
    """

    kind: Literal["worse rank"] = field(default="worse rank", init=False)
    test: str
    rank: float
    best_rank: float
    best: str
    p_value: float

    def __str__(self) -> str:
        test = "Wilcoxon" if self.test == "wilcoxon" else "adjusted"
        return f"mean rank {self.rank:.3g} against {self.best_rank:.3g} of {self.best} ({test} p = {self.p_value:.2g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """There is nothing left to evaluate.

    Attributes
    ----------
    n_configurations : int
        How many configurations the contender has.
    """

    kind: Literal["exhausted"] = field(default="exhausted", init=False)
    n_configurations: int

    def __str__(self) -> str:
        return f"all of its {self.n_configurations} configurations have been evaluated"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherReason:
    """A sentence stored by an earlier version.

    Attributes
    ----------
    text : str
        The sentence.
    """

    kind: Literal["other"] = field(default="other", init=False)
    text: str

    def __str__(self) -> str:
        return self.text


Reason = WorseLoss | NeverEvaluated | WorseRank | Exhausted | OtherReason

_KINDS: dict[str, type[Reason]] = {
    "worse loss": WorseLoss,
    "never evaluated": NeverEvaluated,
    "worse rank": WorseRank,
    "exhausted": Exhausted,
    "other": OtherReason,
}
_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}


def reason_from_json(data: Any) -> Reason:
    """Rebuild a record from the dictionary of `dataclasses.asdict`; a text becomes an `OtherReason`.

    Raises
    ------
    TypeError, KeyError
        If it is neither, or its fields do not have their types.
    """
    if isinstance(data, str):
        return OtherReason(text=data)
    values = dict(data)
    record = _KINDS[values.pop("kind")]
    expected = {each.name: _TYPES[str(each.type)] for each in fields(record) if each.init}
    for name, value in values.items():
        if not isinstance(value, expected[name]):
            raise TypeError(f"{name} must be {expected[name][-1].__name__}; got {value!r}")
    return record(**values)
