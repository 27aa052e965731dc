"""The closed list of model files holds exactly what archives of the named spaces hold."""

from __future__ import annotations

import lzma
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import sklearn
import skops.io
from sklearn.utils.fixes import parse_version

from cashmere.model.archive_nodes import PLAIN
from cashmere.model.archives import dump
from cashmere.model.audit import audit
from cashmere.model.content import check_entries, check_objects
from cashmere.model.trusted import FIXED_VALUES, KEY_TYPES, LOADERS_IN, LONG_TEXTS, TRUSTED, TRUSTED_OBJECTS, TUPLE
from support.real_archives import encoders, every_pipeline

pytest.importorskip("imblearn")

EARLIER = Path(__file__).parent / "earlier" / "types-0.1.skops.xz"

OF_EARLIER_VERSIONS = ("sklearn.linear_model._passive_aggressive.PassiveAggressiveClassifier",)
"""Needed by `make test-min`."""

of_the_lock_file = pytest.mark.skipif(
    (parse_version(sklearn.__version__), parse_version(skops.__version__))
    < (parse_version("1.9"), parse_version("0.16")),
    reason="the list is that of the versions in constraints.txt; earlier ones write some other attributes",
)


class Seen:
    """What is in archives, in the form of the closed list."""

    def __init__(self) -> None:
        self.objects: dict[str, set[str] | None] = defaultdict(set)
        self.others: dict[str, set[str]] = defaultdict(set)
        self.loaders: dict[str, set[str]] = defaultdict(set)
        self.keys: set[str] = set()

    def add(self, node, owner="", attribute=""):
        loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        content = node.get("content")
        if loader == "ObjectNode":
            self.objects[name] |= set()
        else:
            self.others[loader].add(name)
        if owner and loader not in PLAIN:
            self.objects[owner].add(attribute)
            self.loaders[attribute].add(loader)
        if loader == "ObjectNode" and content["__loader__"] == "DictNode":
            self.add(content["key_types"])
            for key, value in content["content"].items():
                self.add(value, name, key)
        elif loader == "ObjectNode":
            if content["__loader__"] == "TupleNode":
                self.objects[name].add(TUPLE)
            self.add(content)
        elif loader == "DictNode":
            self.add(node["key_types"])
            self.keys |= {f"{key['__module__']}.{key['__class__']}" for key in node["key_types"]["content"]}
            for value in content.values():
                self.add(value, owner, attribute)
        elif loader in ("LossNode", "TreeNode"):
            self.add(node["__reduce__"]["args"])
            self.add(content)
        elif loader == "DefaultDictNode":
            self.add(content["main"], owner, attribute)
            self.add(content["default_factory"])
        elif loader == "RandomGeneratorNode":
            for value in content.values():
                self.add(value)
        elif isinstance(content, list):
            for value in content:
                self.add(value, owner, attribute)
        elif isinstance(content, dict) and "__loader__" in content:
            self.add(content)


@pytest.fixture(scope="module")
def written():
    """What archives hold, and the pipelines whose predictions change by loading."""
    seen, changed = Seen(), []
    seen.add(audit(lzma.decompress(EARLIER.read_bytes()), "earlier").schema)
    for label, encoder in encoders():
        seen.add(audit(dump(encoder), label).schema)
    for label, pipeline, X, method in every_pipeline():
        archive = audit(dump(pipeline), label)
        seen.add(archive.schema)
        check_entries(archive.nodes(), archive.entries)
        loaded = skops.io.loads(archive.data, trusted=sorted(archive.types))
        check_objects(loaded, label)  # raises if it refuses what was fitted
        if method == "predict_proba" and not hasattr(pipeline, method):
            method = "predict"
        if not np.array_equal(getattr(loaded, method)(X), getattr(pipeline, method)(X)):
            changed.append(label)
    return seen, changed


@pytest.fixture
def seen(written):
    return written[0]


def test_data_may_stand_everywhere_and_is_not_listed_by_attribute():
    assert not PLAIN & {loader for loaders in LOADERS_IN.values() for loader in loaders}


@pytest.mark.slow
def test_every_pipeline_predicts_the_same_after_loading(written):
    assert written[1] == []


@pytest.mark.slow
@of_the_lock_file
def test_the_list_holds_the_objects_of_our_archives_and_no_others(seen):
    found = {name: " ".join(sorted(attributes)) for name, attributes in seen.objects.items()}
    assert found == {
        name: attributes for name, attributes in TRUSTED_OBJECTS.items() if name not in OF_EARLIER_VERSIONS
    }


@pytest.mark.slow
@of_the_lock_file
def test_the_list_holds_the_other_pairs_of_our_archives_and_no_others(seen):
    assert {loader: tuple(sorted(names)) for loader, names in seen.others.items()} == {
        loader: tuple(sorted(names)) for loader, names in TRUSTED.items()
    }
    assert seen.keys == KEY_TYPES


@pytest.mark.slow
@of_the_lock_file
def test_attributes_hold_the_loaders_of_our_archives(seen):
    found = {attribute: tuple(sorted(loaders)) for attribute, loaders in seen.loaders.items()}
    assert {attribute: loaders for attribute, loaders in found.items() if loaders != ("ObjectNode",)} == dict(
        LOADERS_IN
    )


def test_rules_are_about_types_on_the_list():
    assert set(FIXED_VALUES) | set(LONG_TEXTS) <= set(TRUSTED_OBJECTS)
