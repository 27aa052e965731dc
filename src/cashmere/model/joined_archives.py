"""Two archives of fold models as one, without making their models or packing them again.

To write the models of LightGBM, XGBoost and forests takes seconds, which the end of a run does not have.
"""

from __future__ import annotations

import json
from typing import Any

from cashmere.model.audit import nodes_of
from cashmere.model.zip_entries import SCHEMA, entry_of, joined

_VERSIONS = ("protocol", "_skops_version")
_ID = "__id__"


def joined_archives(first: bytes, second: bytes) -> bytes | None:
    """Return the archive of the fold models of two archives, those of the first one before those of the second.

    Objects and entries are numbered by their addresses in the process that wrote them, so both may use a number: the
    first one's are doubled, and those of the second are the odd ones.

    Parameters
    ----------
    first, second : bytes
        Archives that this machine has written; see `cashmere.model.archives.dump_fold_models`.

    Returns
    -------
    bytes or None
        None if other versions of skops have written them.
    """
    schemas = [json.loads(entry_of(data, SCHEMA)) for data in (first, second)]
    if any(schemas[0].get(name) != schemas[1].get(name) for name in _VERSIONS):
        return None
    names = [_renumbered(schema, parity) for parity, schema in enumerate(schemas)]
    schemas[0]["content"] += schemas[1]["content"]
    return joined([(first, names[0]), (second, names[1])], schema=json.dumps(schemas[0]).encode())


def _renumbered(schema: dict[str, Any], parity: int) -> dict[str, str]:
    """Give the objects of a schema new numbers; return the new names of numbered entries by their old ones."""
    names: dict[str, str] = {}
    for node in nodes_of(schema):
        if isinstance(number := node.get(_ID), int):
            node[_ID] = 2 * number + parity
        stem, _, suffix = str(node.get("file", "")).rpartition(".")
        if stem.isdigit():
            names[node["file"]] = node["file"] = f"{2 * int(stem) + parity}.{suffix}"
    return names
