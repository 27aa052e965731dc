"""The base of strategies that have learned from other tables."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Self

from cashmere.exceptions import MissingParameterError
from cashmere.metalearning.artefact import Artefact, find_artefact
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of


@dataclass(frozen=True)
class MetaLearned:
    """Hold an artefact of meta-learning and the meta-features of the table.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space.
    artefact : str or path
        Folder made by ``cashmere pretrain``; ``"auto"`` for the artefact shipped with the package that serves the
        space.
    meta_features : mapping, optional
        Meta-features of the table, see `for_table`.

    Raises
    ------
    ArtefactError
        If the given folder cannot be read, or was made for other hyper-parameters.
    """

    space: SearchSpace
    _: KW_ONLY
    artefact: str | Path = "auto"
    meta_features: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.artefact != "auto":  # report problems with the given folder before the first trial
            _ = self.found_artefact

    def for_table(self, meta_features: Mapping[str, float]) -> Self:
        """Return the strategy for a table, see `cashmere.protocols.TableAware`."""
        return replace(self, meta_features=dict(meta_features))

    @functools.cached_property
    def blocks(self) -> AlgorithmBlocks:
        """The compiled space as a set of algorithms; a cache."""
        return AlgorithmBlocks(encoder_of(self.space))

    @functools.cached_property
    def found_artefact(self) -> Artefact | None:
        """The artefact, if there is one for the space; a cache.

        Raises
        ------
        ArtefactError
            If the given folder cannot be read, or was made for other hyper-parameters.
        """
        return find_artefact(self.artefact, self.blocks)

    @property
    def known_artefact(self) -> Artefact:
        """The artefact.

        Raises
        ------
        MissingParameterError
            If there is none for the space.
        """
        if self.found_artefact is None:
            raise MissingParameterError(
                "artefact",
                "The package comes with no artefact for this space, only with one for the space 'sklearn12'. Pass "
                "artefact=FOLDER with a folder made by `cashmere pretrain` for this space, or search 'sklearn12'.",
            )
        return self.found_artefact

    @property
    def known_table(self) -> Mapping[str, float]:
        """The meta-features of the table.

        Raises
        ------
        MissingParameterError
            If they are not known.
        """
        if self.meta_features is None:
            raise MissingParameterError(
                "meta_features",
                "The strategy does not know the meta_features of the table. Call for_table(describe_frame(X, y)) on "
                "it, with describe_frame from cashmere.metalearning.meta_features; AutoClassifier and `cashmere fit` "
                "do so.",
            )
        return self.meta_features
