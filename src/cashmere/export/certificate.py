"""Compare the predictions of a converted model with those of the original."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.base.versions import versions
from cashmere.export.converting import PREDICTION, PROBABILITIES, member_name, member_output
from cashmere.export.inputs import onnx_inputs, with_gaps_and_unseen_levels
from cashmere.model.predictor import Predictor

MOST_ROWS = 1000
_ALTERED_SHARE = 5
"""Number of rows per altered row."""

_SINGLE_ROWS = 30
"""Number of rows that are also predicted one by one."""

_SECONDS = 0.2
"""Approximate time to measure the latency of each model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDifference:
    """How much the predictions of a single member of the ensemble differ.

    Attributes
    ----------
    member : str
        Name of the member, such as ``member 7 (lightgbm)``.
    largest : float
        Largest difference, in the unit of the certificate.
    """

    member: str
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A comparison of the predictions of a model and its conversion for the same rows.

    Attributes
    ----------
    n_rows, n_altered : int
        Number of rows compared, and of those in which values were made missing or replaced by unseen levels.
    unit : str
        Unit of the differences: ``"probability"``, or for regression ``"standard deviation"``, that of the predictions.
    bound : float
        Largest accepted difference.
    largest, median : float
        Largest and median difference; the largest also covers the first rows, predicted one by one.
    n_equal : int or None
        Number of rows for which both predict the same label; None for regression.
    members : tuple of MemberDifference
        Differences of the single members.
    latencies : mapping of str to float
        ``cashmere_row_ms`` and ``onnx_row_ms`` to predict one row, ``cashmere_rows_per_second`` and
        ``onnx_rows_per_second`` for the rows compared. The ONNX times exclude the conversion of a table into inputs.
    n_bytes : int
        Size of the file, in bytes.
    sha256 : str
        Its checksum.
    versions : mapping of str to str
        Versions of the libraries that computed both predictions.
    """

    n_rows: int
    n_altered: int
    unit: str
    bound: float
    largest: float
    median: float
    n_equal: int | None
    members: tuple[MemberDifference, ...]
    latencies: Mapping[str, float]
    n_bytes: int
    sha256: str
    versions: Mapping[str, str]

    @property
    def holds(self) -> bool:
        """Whether no difference exceeds the bound; NaN counts as exceeding it."""
        return self.largest <= self.bound

    def to_json(self) -> dict[str, Any]:
        """Return plain data for `json.dump`."""
        return {"format": "cashmere certificate", "version": 1, "holds": self.holds, **asdict(self)}


class Comparison:
    """The predictions of a model for some rows, to be compared with those of converted models.

    Parameters
    ----------
    predictor : Predictor
        The original.
    rows : (n_rows, n_columns) table
        As for `Predictor.predict`. The first 1000 are used, and a fifth of them once more with missing values and
        unseen levels, chosen with a fixed seed.
    """

    def __init__(self, predictor: Predictor, rows: Any) -> None:
        self._predictor = predictor
        schema = predictor.schema
        self._given = schema.frame_of(rows).head(MOST_ROWS)
        n_altered = max(1, len(self._given) // _ALTERED_SHARE)
        altered = with_gaps_and_unseen_levels(schema, self._given.head(n_altered), np.random.default_rng(0))
        self._frames = (self._given, altered)
        self._inputs = [onnx_inputs(schema, frame) for frame in self._frames]
        self._is_classification = predictor.target.task_type.is_classification
        self._outputs = np.concatenate([self._predicted(predictor, frame) for frame in self._frames])
        self._labels = np.concatenate([predictor.predict(frame) for frame in self._frames])
        spread = 1.0 if self._is_classification else float(np.std(self._outputs))
        self._unit = spread or float(np.abs(self._outputs).max()) or 1.0

    def members(self, content: bytes) -> tuple[MemberDifference, ...]:
        """Compare the members of a converted model, using the outputs that `convert` has declared for them."""
        session = _session(content)
        names = [output.name for output in session.get_outputs()]
        outputs = [self._predictor.predict_members(frame) for frame in self._frames]
        found = []
        for number in self._predictor.ensemble.members:
            expected = np.concatenate([each[number] for each in outputs])
            name = next(each for each in names if each.rstrip("_") == member_output(number))
            got = np.concatenate([session.run([name], inputs)[0] for inputs in self._inputs])
            largest = float(self._differences(expected, got).max())
            found.append(MemberDifference(member=member_name(self._predictor, number), largest=largest))
        return tuple(found)

    def certificate(
        self, content: bytes, *, bound: float, members: tuple[MemberDifference, ...], sha256: str
    ) -> Certificate:
        """Compare the predictions of a converted model."""
        session = _session(content)
        wanted = PROBABILITIES if self._is_classification else PREDICTION
        results = [_results(session, inputs) for inputs in self._inputs]
        got, labels = (np.concatenate([each[name] for each in results]) for name in (wanted, PREDICTION))
        differences = self._differences(self._outputs, got)
        # Runtimes compute a single row differently from many.
        alone = np.concatenate([_results(session, row)[wanted] for row in self._single_rows()])
        of_single_rows = self._differences(self._outputs[: len(alone)], alone)
        return Certificate(
            n_rows=len(got),
            n_altered=len(self._frames[1]),
            unit="probability" if self._is_classification else "standard deviation",
            bound=bound,
            largest=float(max(differences.max(), of_single_rows.max())),
            median=float(np.median(differences)),
            n_equal=int(np.sum(labels == self._labels)) if self._is_classification else None,
            members=members,
            latencies=self._latencies(session),
            n_bytes=len(content),
            sha256=sha256,
            versions=versions() | _runtime_versions(),
        )

    def _predicted(self, predictor: Predictor, frame: pd.DataFrame) -> FloatArray:
        return predictor.predict_proba(frame) if self._is_classification else predictor.predict(frame)

    def _differences(self, expected: AnyArray, got: AnyArray) -> FloatArray:
        """Return the difference of each row, the largest over the classes; infinite if one is NaN."""
        differences = np.abs(expected.astype(np.float64) - got) / self._unit
        each = differences if differences.ndim == 1 else differences.max(axis=1)
        return np.where(np.isnan(each), np.inf, each)

    def _single_rows(self) -> list[dict[str, AnyArray]]:
        """Return the first rows as separate inputs."""
        rows = range(min(_SINGLE_ROWS, len(self._given)))
        return [{name: column[[i]] for name, column in self._inputs[0].items()} for i in rows]

    def _latencies(self, session: Any) -> dict[str, float]:
        own = self._predictor.measure_latency(self._given, seconds=_SECONDS)
        times = [_seconds(session, row) for row in self._single_rows()]
        return {
            "cashmere_row_ms": own["single_row_ms"],
            "onnx_row_ms": 1000 * float(np.median(times)),
            "cashmere_rows_per_second": own["batch_rows_per_second"],
            "onnx_rows_per_second": len(self._given) / _seconds(session, self._inputs[0]),
        }


def _session(content: bytes) -> Any:
    from onnxruntime import InferenceSession

    return InferenceSession(content, providers=["CPUExecutionProvider"])


def _results(session: Any, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the outputs by name, without the underscores that avoid clashes with columns."""
    names = [output.name for output in session.get_outputs()]
    return {name.rstrip("_"): value for name, value in zip(names, session.run(names, inputs), strict=True)}


def _seconds(session: Any, inputs: Mapping[str, AnyArray]) -> float:
    clock = time.perf_counter()
    session.run(None, inputs)
    return time.perf_counter() - clock


def _runtime_versions() -> dict[str, str]:
    import onnx
    import onnxruntime

    return {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
