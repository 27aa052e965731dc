"""The digest of a run: its fingerprint, bit for bit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from cashmere.records.trial import Observation
from cashmere.storage.store import plain_values


def run_digest(history: Sequence[Observation], weights: Sequence[tuple[int, float]] = ()) -> str:
    """Return a fingerprint of a run, computed from its trials, losses and ensemble weights, bit for bit.

    Parameters
    ----------
    history : sequence of Observation
        The trials and their outcomes, in trial order.
    weights : sequence of (trial number, weight)
        The ensemble.

    Returns
    -------
    str
        16 hexadecimal digits; equal if and only if the runs are equal (up to hash collisions). Durations are ignored.
    """
    digest = hashlib.sha256()
    for o in history:
        values = json.dumps(plain_values(o.trial.configuration), sort_keys=True)
        losses = [float(loss).hex() for loss in o.fold_losses]
        digest.update(f"{o.trial.number}|{values}|{o.trial.seed}|{o.status}|{losses}\n".encode())
    for number, weight in sorted(weights):
        digest.update(f"{number}:{float(weight).hex()}\n".encode())
    return digest.hexdigest()[:16]
