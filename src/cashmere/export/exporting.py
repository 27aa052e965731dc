"""Export an ensemble as one ONNX file, with a certificate that it predicts the same."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from cashmere.base.files import write_atomically
from cashmere.base.json_files import write_json
from cashmere.exceptions import (
    CertificateError,
    ConversionError,
    InvalidParameterError,
    OutputError,
)
from cashmere.export.certificate import Certificate, Comparison
from cashmere.model.predictor import Predictor

BOUND = 1e-4
"""Largest accepted difference between predictions; float32 arithmetic causes up to about 1e-5."""

_MOST_BYTES = 2**31 - 1
"""Limit of protocol buffers."""


def export_onnx(predictor: Predictor, path: str | Path, rows: Any, *, bound: float = BOUND) -> Certificate:
    """Export an ensemble as one ONNX file: column encoders, all members, calibration and decision thresholds.

    Nothing is written unless the file predicts the same as the ensemble. The comparison is stored beside it as
    ``NAME.certificate.json``. The file needs only an ONNX runtime, not cashmere.

    Parameters
    ----------
    predictor : Predictor
        The ensemble, from `Predictor.load`.
    path : path
        Path of the file, ending in ``.onnx``; an existing file is replaced.
    rows : (n_rows, n_columns) table
        Rows on which predictions are compared; the first 1000 are used.
    bound : float
        Largest accepted difference, positive: of probabilities, or for regression in standard deviations of the
        predictions.

    Returns
    -------
    Certificate

    Raises
    ------
    ConversionError
        If columns or members have no counterpart in ONNX; the message names all of them. Fit with
        ``deployable="onnx"``.
    CertificateError
        If a prediction differs by more than `bound`; the message names the members that do.
    InvalidParameterError, OutputError
        If the path cannot be used.
    """
    path = Path(path)
    _check(path, bound)
    from cashmere.export.converting import convert

    model = convert(predictor)
    if model.ByteSize() > _MOST_BYTES:
        reason = {"the ensemble": f"takes {model.ByteSize() / 1e9:.1f} GB, and such a file holds at most 2.1"}
        raise ConversionError(reason, "Make it smaller with `cashmere refine RUN --max-size 500MB`.")
    comparison = Comparison(predictor, rows)
    members = comparison.members(model.SerializeToString())
    for _ in members:
        del model.graph.output[-1], model.graph.node[-1]
    content = model.SerializeToString()
    sha256 = hashlib.sha256(content).hexdigest()
    certificate = comparison.certificate(content, bound=bound, members=members, sha256=sha256)
    if not certificate.holds:
        worst = [each for each in members if not each.largest <= bound] or list(members)
        listed = ", ".join(f"{each.member} by {each.largest:.2g}" for each in worst)
        raise CertificateError(
            f"{path}: not written, because its predictions would differ by up to {certificate.largest:.2g} "
            f"({certificate.unit}); at most {bound:g} is accepted. Members that differ: {listed}. Leave out their "
            "algorithms with exclude, or accept more with bound (--bound).",
            certificate=certificate,
        )
    try:
        write_atomically(path, content)
        write_json(path.with_suffix(".certificate.json"), certificate.to_json())
    except OSError as error:
        text = f"cannot be written ({error.strerror}). Free disk space, or name another file."
        raise OutputError(path, text) from error
    return certificate


def _check(path: Path, bound: float) -> None:
    if not path.name.lower().endswith(".onnx"):
        raise InvalidParameterError("path", str(path), "a file name that ends in .onnx")
    if not path.parent.is_dir():
        raise OutputError(path, f"cannot be written: there is no folder {path.parent}. Make it first.")
    if not bound > 0:
        raise InvalidParameterError("bound", bound, "a positive number")
