"""Forged archives end in `ModelFileError`, before skops, numpy or scipy have read anything of them.

All are loaded in one child process with a limit of memory. An audit hook of Python writes down every file that it opens
and every command that it starts, so that a forgery that did what it should not is found even if nothing else shows it.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.exceptions import InconsistentVersionWarning

from cashmere.exceptions import InvalidParameterError, ModelFileError
from cashmere.model.archives import load
from cashmere.model.audit import audit
from support.forgeries import FORGERIES, forge, pipeline_with_cache, real, stacking
from support.forging import node, plain, thing

BY_THE_AUDIT = "is not read because|Models of cashmere never do|types that are not trusted|this cashmere reads"
MOST_SECONDS = 2.0
MOST_MIB = 200

CHILD = """
import json, resource, signal, sys, time, warnings
from pathlib import Path
import encodings.cp437, lightgbm, sklearn.ensemble, sklearn.neighbors, skops.io, xgboost, catboost
from cashmere.exceptions import InvalidParameterError, ModelFileError
from cashmere.model.archives import load

warnings.simplefilter("ignore")
done = []
watched = ("open", "os.", "subprocess.", "socket.", "shutil.", "ctypes.dlopen", "exec", "import", "pickle.")
sys.addaudithook(lambda event, args: event.startswith(watched) and done.append((event, str(args)[:100])))
folder = Path(sys.argv[1])
names = sorted(path.name for path in folder.iterdir())
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]) * 2**20,) * 2)
for name in names:
    signal.alarm(20)
    done.clear()
    start = time.process_time()
    try:
        load(folder / name)
        outcome = "loaded"
    except ModelFileError as error:
        outcome = str(error)
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    strange = [each for each in done if name not in each[1]]
    print(json.dumps({"name": name, "outcome": outcome, "seconds": seconds, "strange": strange}), flush=True)
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of each forgery."""
    folder = tmp_path_factory.mktemp("forged")
    files = {}
    for name, make in FORGERIES.items():
        data = make()
        files[name] = hashlib.sha256(name.encode()).hexdigest()[:20]
        (folder / files[name]).write_bytes(data)
    place = tmp_path_factory.mktemp("place")
    (place / "secret.txt").write_text("secret")
    command = [sys.executable, "-c", CHILD, str(folder), str(MOST_MIB)]
    child = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=250)
    found = {record["name"]: record for record in map(json.loads, child.stdout.splitlines())}
    assert {path.name for path in place.iterdir()} == {"secret.txt"}, "a forgery has written a file"
    assert child.stderr == ""
    return {name: found.get(file, {"outcome": "the process did not survive"}) for name, file in files.items()}


@pytest.mark.long
@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_is_refused_before_anything_reads_it(outcomes, name):
    record = outcomes[name]
    assert re.search(BY_THE_AUDIT, record["outcome"]), record["outcome"]
    assert record["outcome"].isprintable()
    assert len(record["outcome"]) < 1500
    assert record["seconds"] < MOST_SECONDS
    assert record["strange"] == []


def test_the_forgeries_are_many():
    assert len(FORGERIES) > 300
    assert Counter(name.split()[0] for name in FORGERIES)["constructor"] > 10


def test_real_archives_pass():
    for kind in ("univariate", "agglomeration", "selection", "sparse", "gradient", "adaboost", "mlp", "scaled", "text"):
        audit(real(kind), kind)
        audit(forge(kind).data(), f"{kind}, taken apart and put together")


def test_what_skops_lets_pass_would_have_done_harm(tmp_path, monkeypatch):
    """The kit forges in earnest: without our list, these run code of the file or read and write files."""
    monkeypatch.chdir(tmp_path)
    forged = forge("scaled")
    forged.replace(forged.schema, stacking("fit_transform", pipeline_with_cache("cache")))
    untrusted = skops.io.get_untrusted_types(data=forged.data())
    assert untrusted == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        skops.io.loads(forged.data()).transform(np.zeros((3, 2)))
    assert (tmp_path / "cache" / "joblib").is_dir()
    with pytest.raises(ModelFileError, match=r"StackingClassifier|memory"):
        audit(forged.data(), "forged")

    booster = node("ConstructorFromReduceNode", "lightgbm.basic.Booster", content=plain(({}, None, "secret.txt")))
    forged = forge("scaled")
    forged.replace(forged.schema, booster)
    with pytest.raises(Exception, match=r"secret\.txt"):
        skops.io.loads(forged.data(), trusted=["lightgbm.basic.Booster"])
    with pytest.raises(ModelFileError, match="ConstructorFromReduceNode"):
        audit(forged.data(), "forged")


def test_a_declared_type_may_hold_what_it_likes_but_only_declared_types(tmp_path):
    path = tmp_path / "forged.skops"
    union = thing("sklearn.pipeline.FeatureUnion", transformer_list=[thing("os.PathLike")])
    path.write_bytes(forge("scaled").step(union).data())
    with pytest.raises(ModelFileError, match=r"os\.PathLike, sklearn\.pipeline\.FeatureUnion"):
        load(path)
    with pytest.raises(ModelFileError, match=r"not trusted: os\.PathLike"):
        load(path, trusted=["sklearn.pipeline.FeatureUnion"])


def test_declaring_a_name_does_not_let_a_file_call_it():
    data = forge("scaled").step(node("ConstructorFromReduceNode", "subprocess.Popen", content=plain(("true",)))).data()
    with pytest.raises(ModelFileError, match="ConstructorFromReduceNode"):
        audit(data, "forged", trusted=["subprocess.Popen"])
    loss = forge("gradient")
    loss.nodes("LossNode")[0].update({"__class__": "CyHuberLoss"})
    with pytest.raises(ModelFileError, match=r"LossNode:sklearn\._loss\._loss\.CyHuberLoss"):
        audit(loss.data(), "forged", trusted=["sklearn._loss._loss.CyHuberLoss"])
    audit(loss.data(), "forged", trusted=["LossNode:sklearn._loss._loss.CyHuberLoss"])


@pytest.mark.parametrize("trusted", ["package.Type", ["PartialNode:functools.partial"], ["NoNode:package.Type"]])
def test_a_declaration_that_cannot_be_meant_is_named(trusted):
    with pytest.raises(InvalidParameterError, match="trusted must be"):
        audit(real("scaled"), "real", trusted=trusted)


def test_a_forged_member_of_a_model_folder_is_refused_by_name(tmp_path):
    path = Path(tmp_path / "member-000001-0123456789ab.skops")
    path.write_bytes(FORGERIES["pipeline with a cache"]())
    with pytest.raises(ModelFileError, match=r"member-000001.*memory.*'cache'"):
        load(path)
