"""What a search begins with: the defaults, and configurations learnt on other tables or chosen by an earlier run."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NotRequired, Self, TypedDict

from ConfigSpace import Configuration
from msgspec import Meta

from cashmere.base.files import failures_as, read_file
from cashmere.base.json_files import JSON_BYTES, Finite, Positive, ShortText, checked, parse_json, write_json
from cashmere.exceptions import ArtefactError
from cashmere.records.space_names import present_space_name
from cashmere.records.trial import configuration_key
from cashmere.space.space import ALGORITHM, Space

FORMAT = "cashmere opening"
VERSION = 2
"""The same as that of artefacts, which name spaces in the same way."""

SHIPPED = Path(__file__).parent / "openings"
"""Folder of the openings shipped with the package, one file per space."""

_AGAIN = "Restore it from a copy, or make it again with `cashmere pretrain --opening`."

_MOST_STEPS = 1000

_Gain = Annotated[float, Meta(gt=0.0, le=1.7e308)]
"""Positive, because its logarithm is taken."""


class _Head(TypedDict):
    format: ShortText
    version: Annotated[int, Meta(ge=0, le=10**6)]


class _StepContent(TypedDict):
    values: dict[ShortText, ShortText | bool | int | Finite]
    gain: _Gain
    seconds: Positive


class _Content(TypedDict):
    space: ShortText
    first_gain: _Gain
    sources: list[dict[ShortText, Any]]
    notes: dict[ShortText, Any]
    steps: Annotated[list[_StepContent], Meta(max_length=_MOST_STEPS)]
    steps_first: NotRequired[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningStep:
    """One configuration of an opening, beside the defaults.

    Attributes
    ----------
    values : mapping of str to value
        ``algorithm``, and the hyper-parameters that differ from their defaults.
    gain : float
        By how much it lowered the logarithm of the ensemble's loss, after the steps before it; mean over the sources.
    seconds : float
        What it took, relative to the geometric mean of all candidates tried on the same source; mean over the sources.
    """

    values: Mapping[str, Any]
    gain: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What was learnt about the beginning of a search of one space.

    Attributes
    ----------
    space : str
        Name of the space.
    first_gain : float
        An equal share of what the defaults and variants gain together.
    steps : tuple of OpeningStep
        What comes after these, in the order that lowers the loss of the ensemble fastest on the sources.
    steps_first : bool
        Whether the steps come before the defaults instead, as those of an earlier run do.
    sources : tuple of mappings
        The tables: ``name``, ``origin``, ``task``, ``n_rows``, ``n_columns``, ``n_classes``.
    notes : mapping
        How it was made, for people.
    """

    space: str
    first_gain: float
    steps: tuple[OpeningStep, ...]
    steps_first: bool = False
    sources: tuple[Mapping[str, Any], ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    def gains(self, space: Space) -> dict[Configuration, float]:
        """Return what a search of a space begins with, in order, and what each is expected to gain.

        Parameters
        ----------
        space : Space
            The space of a table: its defaults and variants, and the steps. Values that it lacks are left out of these,
            and configurations that are then alike count once.
        """
        defaults = [(c, self.first_gain * gain) for c, gain in space.first_gains().items()]
        steps = [(c, step.gain) for step in self.steps if (c := _configuration(step.values, space)) is not None]
        found: dict[Any, tuple[Configuration, float]] = {}
        for configuration, gain in steps + defaults if self.steps_first else defaults + steps:
            found.setdefault(configuration_key(configuration), (configuration, gain))
        return dict(found.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain data, the content of the file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "space": self.space,
            "first_gain": self.first_gain,
            "sources": [dict(source) for source in self.sources],
            "notes": dict(self.notes),
            "steps": [{"values": dict(step.values), "gain": step.gain, "seconds": step.seconds} for step in self.steps],
            **({"steps_first": True} if self.steps_first else {}),
        }

    @classmethod
    def from_json(cls, content: Any, path: Path) -> Self:
        """Return the opening in plain data that was read from a file.

        Raises
        ------
        ArtefactError
            If it is of a newer version, or something else.
        """
        with failures_as(ArtefactError, path, _AGAIN):
            head = checked(content, _Head)
            if head["format"] != FORMAT or head["version"] > VERSION:
                found = f"{head['format']!r} of version {head['version']}"
                raise ArtefactError(
                    path, f"holds {found}; this version reads {FORMAT!r} up to version {VERSION}. Upgrade cashmere."
                )
            known = checked(content, _Content)
            return cls(
                space=present_space_name(known["space"], head["version"]),
                first_gain=known["first_gain"],
                steps=tuple(OpeningStep(**step) for step in known["steps"]),
                steps_first=known.get("steps_first", False),
                sources=tuple(known["sources"]),
                notes=known["notes"],
            )

    def save(self, path: Path) -> None:
        """Write the file."""
        write_json(path, self.to_json())


def load_opening(path: str | Path) -> Opening:
    """Read an opening written by `Opening.save`.

    Raises
    ------
    ArtefactError
        If it is missing, damaged, or of a newer version.
    """
    path = Path(path)
    if not path.exists():
        raise ArtefactError(
            path,
            "there is no such file. Expected 'defaults', 'learned', a file of `cashmere pretrain`, or a run directory.",
        )
    with failures_as(ArtefactError, path, _AGAIN):
        content = parse_json(read_file(path, limit=JSON_BYTES))
    return Opening.from_json(content, path)


@functools.cache
def shipped_opening(space: str) -> Opening | None:
    """Return the opening that the package has for a space, None if it has none."""
    path = SHIPPED / f"{space}.json"
    # Some installers make every file of a package a link; those of this package can be trusted.
    return load_opening(path.resolve()) if path.exists() else None


def _configuration(values: Mapping[str, Any], space: Space) -> Configuration | None:
    """Return the configuration of a step, or None if the space lacks its algorithm."""
    if values.get(ALGORITHM) not in {algorithm.name for algorithm in space.algorithms}:
        return None
    offered = space.configuration_space
    return space.completed({n: v for n, v in values.items() if n in offered and offered[n].legal_value(v)})
