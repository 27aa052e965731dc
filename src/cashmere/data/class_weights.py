"""How much the rows of each class count."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from cashmere.base.arrays import Float64, IntArray
from cashmere.data.labels import label_text
from cashmere.data.target import TargetCoding
from cashmere.exceptions import InvalidParameterError, UnknownNameError

BALANCED = "balanced"

ClassWeight = str | tuple[str, ...]
"""``"balanced"``, or texts such as ``"bad=5.0"``; labels that are not named weigh 1."""

SHIFTED_PROBABILITIES = (
    "Class weights shift the probabilities: they are not the frequencies of the classes in the data."
)


def read_class_weight(given: object, name: str) -> ClassWeight | None:
    """Read ``"balanced"``, a mapping from labels to weights, or its text, such as ``"bad=5,good=1"``.

    Parameters
    ----------
    given : str, mapping, sequence of texts or None
        What the user gave, or what was read before.
    name : str
        Name of the parameter, for the error.

    Raises
    ------
    InvalidParameterError
        If it is anything else, or a weight is not positive and finite.

    Examples
    --------
    >>> read_class_weight("bad=5,good=1", "class_weight")
    ('bad=5.0', 'good=1.0')
    >>> read_class_weight("Yes, of course=2", "class_weight")
    ('Yes, of course=2.0',)
    """
    if given is None:
        return None
    if isinstance(given, str) and given == BALANCED:
        return BALANCED
    expected = "'balanced', or a positive weight for each class to be weighed: {'bad': 5, 'good': 1} or 'bad=5,good=1'"
    try:
        if isinstance(given, Mapping):
            weights = {label_text(label): float(weight) for label, weight in given.items()}
            n_given = len(given)
        else:
            texts = _split(given) if isinstance(given, str) else list(given)  # type: ignore[call-overload]
            weights, n_given = dict(map(_parsed, texts)), len(texts)
    except (TypeError, ValueError, AttributeError):
        raise InvalidParameterError(name, given, expected) from None
    if not weights or len(weights) < n_given or not all(0 < weight < np.inf for weight in weights.values()):
        raise InvalidParameterError(name, given, expected)
    return tuple(f"{label}={weight!r}" for label, weight in weights.items())


def _split(given: str) -> list[str]:
    """Split after each weight: labels may contain commas."""
    texts = re.findall(r"(.+?=[^,=]*)(?:,|\Z)", given, flags=re.DOTALL)
    if ",".join(texts) != given:
        raise ValueError(f"{given!r} is no list of labels with weights")
    return texts


def _parsed(text: str) -> tuple[str, float]:
    label, sign, weight = text.rpartition("=")  # a label may contain "="
    if not sign:
        raise ValueError(f"{text!r} is no label with a weight")
    return label.strip(), float(weight)


def weights_of_rows(
    codes: IntArray, target: TargetCoding, class_weight: ClassWeight, *, weight: Float64 | None = None
) -> Float64:
    """Return the weight that each row has by its class; mean 1 over the rows that count.

    Parameters
    ----------
    codes : (n_rows,) array of int
        Class codes.
    target : TargetCoding
        The labels.
    class_weight : str or tuple
        From `read_class_weight`. Balanced classes have equal total weights: n_rows / (n_classes x rows of the class).
    weight : (n_rows,) array, optional
        Weights that rows have of their own. Those of weight 0 do not count: they are not trained on.

    Raises
    ------
    InvalidParameterError
        If the target has no classes.
    UnknownNameError
        If a label is not in the target.
    """
    if not target.task_type.is_classification:
        raise InvalidParameterError("class_weight", class_weight, "None for a regression target, which has no classes")
    counted = codes if weight is None else codes[weight > 0]
    if isinstance(class_weight, str):
        weights = 1.0 / np.bincount(counted, minlength=target.n_classes).clip(min=1)
    else:
        labels = [label_text(label) for label in target.classes]
        weights = np.ones(len(labels))
        for label, given in map(_parsed, class_weight):
            if label not in labels:
                raise UnknownNameError("class", label, labels)
            weights[labels.index(label)] = given
    found: Float64 = weights[codes] / weights[counted].mean()
    return found
