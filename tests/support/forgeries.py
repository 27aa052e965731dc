"""Forged archives by name: what an attacker who knows skops, numpy and zip files would try.

Each is made when it is asked for, from a small real archive, so that nothing but the forged part is wrong.
"""

from __future__ import annotations

import functools
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from cashmere.data.task import TaskType
from cashmere.model.archives import dump
from support.forging import Forgery, Node, function, node, npy, npy_with_header, plain, thing, zipped
from support.real_archives import encoders, fitted, space_for

FORGERIES: dict[str, Callable[[], bytes]] = {}


@functools.cache
def real(kind: str) -> bytes:
    """Return a small archive as cashmere writes it."""
    if kind == "text":
        return dump(next(encoder for _, encoder in encoders()))
    space_name, values = {
        "univariate": ("volcano", {"algorithm": "knn", "preprocessor": "select_percentile"}),
        "agglomeration": ("volcano", {"algorithm": "lda", "preprocessor": "feature_agglomeration"}),
        "selection": ("volcano", {"algorithm": "lda", "preprocessor": "select_by_extra_trees"}),
        "sparse": ("volcano", {"algorithm": "knn", "preprocessor": "random_trees_embedding"}),
        "gradient": ("sklearn12", {"algorithm": "gradient_boosting", "gradient_boosting:n_estimators": 10}),
        "adaboost": ("volcano", {"algorithm": "adaboost"}),
        "mlp": ("classic", {"algorithm": "mlp"}),
        "histogram": ("classic", {"algorithm": "hist_gradient_boosting", "hist_gradient_boosting:encoding": "ordinal"}),
        "lightgbm": ("volcano", {"algorithm": "lightgbm"}),
        "xgboost": ("classic", {"algorithm": "xgboost"}),
        "catboost": ("classic", {"algorithm": "catboost"}),
        "scaled": ("classic", {"algorithm": "knn"}),
    }[kind]
    space = space_for(space_name, TaskType.MULTICLASS)
    return dump(fitted(space, space.completed(values))[0])


def forge(kind: str) -> Forgery:
    return Forgery(real(kind))


def forgery(name: str, make: Callable[[], bytes]) -> None:
    assert name not in FORGERIES, name
    FORGERIES[name] = make


# Functions: where some stand in real archives, at the top, and where a library would call what it finds.
FUNCTIONS = (
    "builtins.__import__ builtins.compile builtins.eval builtins.exec builtins.getattr builtins.open "
    "builtins.print code.interact ctypes.CDLL importlib.import_module io.open joblib.load "
    "logging.FileHandler marshal.loads numpy.add numpy.apply_along_axis numpy.fromfile numpy.frompyfunc "
    "numpy.load numpy.memmap numpy.save numpy.savetxt numpy.sum numpy.vectorize operator.attrgetter "
    "operator.methodcaller os.popen os.remove os.system pandas.read_pickle pickle.loads posix.system "
    "runpy.run_path scipy.special._ufuncs.expit shutil.rmtree skops.io.loads subprocess.call "
    "subprocess.check_output subprocess.Popen webbrowser.open"
)
for each in FUNCTIONS.split():
    forgery(
        f"score function {each}",
        lambda each=each: forge("univariate").set("SelectPercentile", "score_func", function(each)).data(),
    )
for each in ("os.system", "builtins.eval", "numpy.load"):
    forgery(
        f"pooling function {each}",
        lambda each=each: forge("agglomeration").set("FeatureAgglomeration", "pooling_func", function(each)).data(),
    )
    forgery(
        f"type {each}",
        lambda each=each: forge("univariate").set("SelectPercentile", "score_func", node("TypeNode", each)).data(),
    )
    forgery(f"keys made by {each}", lambda each=each: _keys(function(each)))
    forgery(f"keys of the type {each}", lambda each=each: _keys(node("TypeNode", each)))
    forgery(
        f"default factory {each}",
        lambda each=each: (
            forge("lightgbm").set("LGBMClassifier", "_best_score", _default_dict(node("TypeNode", each))).data()
        ),
    )


def _keys(kind: Node) -> bytes:
    forged = forge("univariate")
    forged.nodes("ObjectNode", "Pipeline")[0]["content"]["key_types"]["content"][0] = kind
    return forged.data()


def _default_dict(factory: Node) -> Node:
    content = {"main": plain({}), "default_factory": factory}
    return node("DefaultDictNode", "collections.defaultdict", content=content)


# Objects that skops trusts by itself, or that an attacker hopes somebody trusts.
OBJECTS = (
    "catboost.core.CatBoost catboost.core.Pool ctypes.CDLL io.FileIO joblib.memory.Memory "
    "lightgbm.basic.Dataset lightgbm.basic._InnerPredictor logging.FileHandler multiprocessing.pool.Pool "
    "numpy.memmap pandas.core.frame.DataFrame pathlib.PosixPath "
    "sklearn.calibration.CalibratedClassifierCV sklearn.cluster._birch.Birch "
    "sklearn.ensemble._stacking.StackingClassifier sklearn.ensemble._stacking.StackingRegressor "
    "sklearn.ensemble._voting.VotingClassifier sklearn.feature_extraction._dict_vectorizer.DictVectorizer "
    "sklearn.feature_extraction.text.CountVectorizer sklearn.feature_extraction.text.HashingVectorizer "
    "sklearn.feature_selection._rfe.RFE sklearn.feature_selection._sequential.SequentialFeatureSelector "
    "sklearn.gaussian_process._gpc.GaussianProcessClassifier sklearn.model_selection._search.GridSearchCV "
    "sklearn.model_selection._search.RandomizedSearchCV sklearn.multioutput.ClassifierChain "
    "sklearn.multioutput.MultiOutputClassifier sklearn.pipeline.FeatureUnion "
    "sklearn.pipeline._FitTransformCaller sklearn.preprocessing._discretization.KBinsDiscretizer "
    "sklearn.semi_supervised._self_training.SelfTrainingClassifier subprocess.Popen "
    "tempfile._TemporaryFileWrapper threading.Thread types.FunctionType xgboost.core.DMatrix "
    "zipfile.ZipFile"
)
for each in OBJECTS.split():
    forgery(f"step {each}", lambda each=each: forge("scaled").step(thing(each, memory=None)).data())
forgery(
    "stacking that fits a pipeline with a cache",
    lambda: forge("scaled").step(stacking("stolen", pipeline_with_cache("cache"))).data(),
)
forgery("stacking that appends to a list", lambda: forge("scaled").step(stacking("append", plain([]))).data())
forgery(
    "stacking that writes an array", lambda: forge("scaled").step(stacking("tofile", array_of(forge("scaled")))).data()
)
forgery("texts from files", lambda: forge("text").set("FoldEncoder", "_vectorizers", [count_vectorizer()]).data())


def stacking(method: str, estimator: Node) -> Node:
    return thing(
        "sklearn.ensemble._stacking.StackingClassifier",
        estimators_=[estimator],
        stack_method_=[method],
        passthrough=False,
        named_estimators_={},
        final_estimator_=thing("sklearn.preprocessing._data.StandardScaler", mean_=0.0),
    )


def pipeline_with_cache(folder: str) -> Node:
    scaler = thing("sklearn.preprocessing._data.StandardScaler", with_mean=True, with_std=True, copy=True)
    steps = [("first", scaler), ("second", scaler)]
    return thing("sklearn.pipeline.Pipeline", steps=steps, memory=folder, verbose=False, transform_input=None)


def array_of(forged: Forgery) -> Node:
    return forged.nodes("NdArrayNode", "ndarray")[0]


def count_vectorizer() -> Node:
    return thing("sklearn.feature_extraction.text.CountVectorizer", input="filename", vocabulary_={"secret": 0})


# Loaders that call, look up or reuse.
def at_step(loader: str, name: str, **fields: Any) -> Callable[[], bytes]:
    return lambda: forge("scaled").step(node(loader, name, **fields)).data()


def scaler() -> Node:
    return thing("sklearn.preprocessing._data.StandardScaler", mean_=0.0)


PIPELINE = "sklearn.pipeline.Pipeline"
SCALER = "sklearn.preprocessing._data.StandardScaler"
forgery("method of a listed type", at_step("MethodNode", SCALER, content={"func": "fit", "obj": scaler()}))
forgery(
    "method of another object than named",
    at_step("MethodNode", "builtins.str", content={"func": "format", "obj": scaler()}),
)
forgery(
    "method that leads to builtins",
    at_step("MethodNode", SCALER, content={"func": "__init_subclass__", "obj": scaler()}),
)
forgery(
    "method as a score function",
    lambda: (
        forge("univariate")
        .set("SelectPercentile", "score_func", node("MethodNode", SCALER, content={"func": "fit", "obj": scaler()}))
        .data()
    ),
)
for each, arguments in (
    ("methodcaller", ("system", "id")),
    ("attrgetter", ("__class__.__base__",)),
    ("itemgetter", (0,)),
    ("call", ("x",)),
):
    forgery(f"operator {each}", at_step("OperatorFuncNode", f"operator.{each}", attrs=plain(arguments)))
forgery("operator of another module", at_step("OperatorFuncNode", "os.system", attrs=plain(("id",))))
forgery(
    "partial",
    at_step(
        "PartialNode",
        "functools.partial",
        content={"func": function("os.system"), "args": plain(("id",)), "kwds": plain({}), "namespace": plain(None)},
    ),
)
forgery(
    "partial of a listed function",
    at_step(
        "PartialNode",
        "functools.partial",
        content={
            "func": function("numpy.mean"),
            "args": plain(()),
            "kwds": plain({"out": 1}),
            "namespace": plain(None),
        },
    ),
)
CONSTRUCTORS: dict[str, tuple[Any, ...]] = {
    "builtins.bytearray": (10**12,),
    "builtins.bytes": (10**12,),
    "builtins.range": (10**18,),
    "catboost.core.CatBoostClassifier": (10, 0.1, 6),
    "datetime.timezone": (0,),
    "io.FileIO": ("/etc/hostname",),
    "lightgbm.basic.Booster": ({}, None, "secret.txt"),
    "numpy.zeros": ((10**12,),),
    "os.system": ("touch canary",),
    "pathlib.PosixPath": ("/etc",),
    "sklearn.pipeline.Pipeline": ([],),
    "subprocess.Popen": (["touch", "canary"],),
    "xgboost.core.Booster": ({}, (), "secret.txt"),
    "zoneinfo.ZoneInfo": ("../../etc/passwd",),
}
for each, arguments in CONSTRUCTORS.items():
    forgery(f"constructor {each}", at_step("ConstructorFromReduceNode", each, content=plain(arguments)))
forgery("cached node of nothing", lambda: forge("scaled").step({**node("CachedNode", SCALER), "__id__": 5}).data())
forgery("cached node of the pipeline", lambda: _cached())
forgery("set", at_step("SetNode", "builtins.set", content=[plain(1)]))
forgery(
    "masked array",
    at_step("MaskedArrayNode", "numpy.ma.core.MaskedArray", content={"data": plain(1), "mask": plain(1)}),
)
forgery(
    "quantile forest",
    at_step(
        "QuantileForestNode",
        "quantile_forest._quantile_forest_fast.QuantileForest",
        __reduce__={"args": plain(())},
        content=plain({}),
    ),
)
forgery(
    "dictionary with deprecated keys",
    at_step(
        "_DictWithDeprecatedKeysNode",
        "sklearn.covariance._graph_lasso._DictWithDeprecatedKeys",
        content={"main": plain({}), "_deprecated_key_to_new_key": plain({})},
    ),
)
forgery("unknown loader", at_step("NoSuchNode", SCALER, content=plain({})))
forgery("list made by eval", at_step("ListNode", "builtins.eval", content=[]))
forgery("dictionary made by Popen", at_step("DictNode", "subprocess.Popen", content={}, key_types=plain([])))
forgery("tuple made by a class", at_step("TupleNode", "os.stat_result", content=[]))
forgery("bytes made by eval", at_step("BytesNode", "builtins.eval", file="1.bin"))
forgery("loss of any class", lambda: _loss("os.system", ("touch canary",)))
forgery("loss from texts", lambda: _loss("", ("touch canary",)))
forgery("loss from three numbers", lambda: _loss("", (1, 2, 3)))


def _loss(name: str, arguments: tuple[Any, ...]) -> bytes:
    forged = forge("gradient")
    (loss,) = forged.nodes("LossNode")
    loss["__reduce__"]["args"] = plain(arguments)
    if name:
        loss["__module__"], _, loss["__class__"] = name.rpartition(".")
    return forged.data()


def _cached() -> bytes:
    forged = forge("scaled")
    number = forged.nodes("ObjectNode", "StandardScaler")[0]["__id__"]
    return forged.step({**node("CachedNode", SCALER), "__id__": number}).data()


# Attributes of listed types with other values than ours have.
VALUES: dict[str, tuple[str, str, str, Any]] = {
    "pipeline with a cache": ("scaled", "Pipeline", "memory", "cache"),
    "agglomeration with a cache": ("agglomeration", "FeatureAgglomeration", "memory", "/tmp/cache"),
    "importance by a path": ("selection", "SelectFromModel", "importance_getter", "__class__.__init__.__globals__"),
    "vectorizer that reads files": ("text", "TfidfVectorizer", "input", "filename"),
    "vectorizer that reads open files": ("text", "TfidfVectorizer", "input", "file"),
    "vectorizer with characters": ("text", "TfidfVectorizer", "analyzer", "char"),
    "vectorizer with an endless pattern": ("text", "TfidfVectorizer", "token_pattern", "(a+)+$"),
    "vectorizer with long phrases": ("text", "TfidfVectorizer", "ngram_range", (1, 10**6)),
    "vectorizer with phrases as a list": ("text", "TfidfVectorizer", "ngram_range", [1, 2]),
    "vectorizer with another coding": ("text", "TfidfVectorizer", "encoding", "zlib_codec"),
    "vectorizer with stop words": ("text", "TfidfVectorizer", "stop_words", "english"),
    "vectorizer with a tokenizer": ("text", "TfidfVectorizer", "tokenizer", function("numpy.mean")),
    "vectorizer with a preprocessor": ("text", "TfidfVectorizer", "preprocessor", function("numpy.max")),
    "a million threads": ("scaled", "KNeighborsClassifier", "n_jobs", 10**6),
    "minus a million threads": ("scaled", "KNeighborsClassifier", "n_jobs", -(10**6)),
    "threads as a text": ("scaled", "KNeighborsClassifier", "n_jobs", "all"),
    "threads as an object": ("scaled", "KNeighborsClassifier", "n_jobs", scaler()),
    "a million threads of CatBoost": ("catboost", "CatBoostClassifier", "thread_count", 10**6),
    "a folder for CatBoost": ("catboost", "CatBoostClassifier", "train_dir", "/tmp/canary"),
    "a snapshot for CatBoost": ("catboost", "CatBoostClassifier", "snapshot_file", "canary"),
    "borders for CatBoost": ("catboost", "CatBoostClassifier", "output_path", "canary"),
    "callbacks for XGBoost": ("xgboost", "XGBClassifier", "callbacks", [1]),
    "a forced file for LightGBM": ("lightgbm", "LGBMClassifier", "forcedsplits_filename", "secret.txt"),
    "a version with an escape": ("scaled", "Pipeline", "_sklearn_version", "1.0\x1b[2J"),
    "a version that is long": ("scaled", "Pipeline", "_sklearn_version", "1" * 100),
    "a version that is a list": ("scaled", "Pipeline", "_sklearn_version", [1]),
    "another class": ("scaled", "StandardScaler", "__class__", "Popen"),
    "another dictionary": ("scaled", "StandardScaler", "__dict__", {}),
    "another state setter": ("scaled", "StandardScaler", "__setstate__", function("numpy.mean")),
    "a text with escapes": ("scaled", "StandardScaler", "with_mean", "\x1b]0;title\x07"),
    "a text of a megabyte": ("scaled", "StandardScaler", "with_mean", "x" * 10**6),
    "a function instead of a method": ("scaled", "StandardScaler", "transform", function("numpy.mean")),
    "a function as a distance": ("scaled", "KNeighborsClassifier", "metric", function("numpy.max")),
    "a function as weights": ("scaled", "KNeighborsClassifier", "weights", function("numpy.max")),
    "a function as a score of a forest": ("gradient", "GradientBoostingClassifier", "init", function("numpy.mean")),
    "a pipeline as an array": ("scaled", "StandardScaler", "mean_", pipeline_with_cache("cache")),
    "a pipeline in a list": ("scaled", "StandardScaler", "scale_", [(1, pipeline_with_cache("cache"))]),
    "an estimator as labels": ("scaled", "KNeighborsClassifier", "classes_", scaler()),
    "a type as a number": ("scaled", "KNeighborsClassifier", "n_neighbors", node("TypeNode", "builtins.str")),
    "an object as a score function": ("univariate", "SelectPercentile", "score_func", scaler()),
    "a type as a score function": ("univariate", "SelectPercentile", "score_func", node("TypeNode", "builtins.str")),
    "a function of a transformer": ("histogram", "FunctionTransformer", "func", function("numpy.mean")),
    "a booster as a distance": (
        "scaled",
        "KNeighborsClassifier",
        "effective_metric_",
        thing("lightgbm.basic.Booster", _handle="tree"),
    ),
    "an object in the parameters of a booster": ("lightgbm", "Booster", "params", {"a": scaler()}),
    "a stack of estimators in a tree": ("gradient", "DecisionTreeRegressor", "ccp_alpha", [scaler()]),
}
for name, (kind, owner, attribute, value) in VALUES.items():
    forgery(
        name,
        lambda kind=kind, owner=owner, attribute=attribute, value=value: (
            forge(kind).set(owner, attribute, value).data()
        ),
    )


# Numbers of objects: skops reads a number once and ignores what later nodes of that number say.
def numbered(number: Any) -> Callable[[], bytes]:
    def make() -> bytes:
        forged = forge("scaled")
        forged.nodes("ObjectNode", "StandardScaler")[0]["__id__"] = number
        return forged.data()

    return make


for number in (0, -1, True, 1.5, "1", None, [1], {"a": 1}):
    forgery(f"an object numbered {number!r}", numbered(number))


def _shared(first: Any, second: Any) -> bytes:
    """Let a harmless node take the number of a harmful one that stands before it."""
    forged = forge("scaled").set("StandardScaler", "aaa", first)
    value = forged.nodes("ObjectNode", "StandardScaler")[0]["content"]["content"]
    forged.set("StandardScaler", "zzz", {**plain(second), "__id__": value["aaa"]["__id__"]})
    return forged.data()


def _swapped() -> bytes:
    """Let the cache of a pipeline be None as written, and a folder as loaded."""
    forged = forge("scaled").set("Pipeline", "memory", None)
    state = forged.nodes("ObjectNode", "Pipeline")[0]["content"]["content"]
    state["memory"]["__id__"] = 4711
    state["steps"]["content"][0]["content"][0] = {**plain("cache"), "__id__": 4711}
    return forged.data()


def _cycle(depth: int) -> bytes:
    forged = forge("scaled")
    found = forged.nodes("ObjectNode", "StandardScaler")[0]
    inner: Node = {**plain([]), "__id__": found["__id__"]}
    for _ in range(depth):
        inner = plain([inner])
    return forged.set("StandardScaler", "aaa", inner).data()


def _doubling(depth: int) -> bytes:
    """Return lists of two, each the one before: written short, loaded with 2 ** depth items."""
    value = plain([1, 2])
    for _ in range(depth):
        value = plain([value, {**plain([]), "__id__": value["__id__"]}])
    return forge("scaled").set("StandardScaler", "aaa", value).data()


def _doubling_objects(depth: int) -> bytes:
    forged = forge("gradient")
    value = plain([scaler()])
    for _ in range(depth):
        value = plain([value, {**plain([]), "__id__": value["__id__"]}])
    array = node("NdArrayNode", "numpy.ndarray", type="json", content=[value], shape=plain((1,)))
    return forged.set("GradientBoostingClassifier", "estimators_", array).data()


forgery("another value under a number", lambda: _shared("harmful", None))
forgery("another list under a number", lambda: _shared([1, 2, 3], [1]))
forgery("another kind under a number", lambda: _shared({"a": 1}, [1]))
forgery("a cache under the number of None", _swapped)
forgery("a list within itself", lambda: _cycle(0))
forgery("a list far within itself", lambda: _cycle(5))
forgery("lists that double 40 times", lambda: _doubling(40))
forgery("lists that double 15 times", lambda: _doubling(15))
forgery("objects that double 30 times", lambda: _doubling_objects(30))
forgery(
    "lists nested 200 deep",
    lambda: (
        forge("scaled")
        .set("StandardScaler", "aaa", functools.reduce(lambda inner, _: plain([inner]), range(200), plain(1)))
        .data()
    ),
)


# Random states and generators.
def random_state(change: Callable[[Node, Node, Forgery], Any]) -> Callable[[], bytes]:
    def make() -> bytes:
        forged = forge("mlp")
        content = forged.nodes("RandomStateNode")[0]["content"]["content"]
        change(content, content["state"]["content"], forged)
        forged.forget()
        return forged.data()

    return make


for position in (-1, 625, 2**31 - 1, -(2**63), 10**30, 1.5, "0", None, True):
    forgery(
        f"random state at {position!r}",
        random_state(lambda content, state, forged, position=position: state.update(pos=plain(position))),
    )
forgery(
    "random state of another kind",
    random_state(lambda content, state, forged: content.update(bit_generator=plain("PCG64"))),
)
forgery(
    "random state with a short key",
    random_state(lambda content, state, forged: forged.entry_of(state["key"], npy(np.zeros(3, np.uint32)))),
)
forgery(
    "random state with a wide key",
    random_state(lambda content, state, forged: forged.entry_of(state["key"], npy(np.zeros(624, np.uint64)))),
)
forgery(
    "random state with a key that is a list",
    random_state(lambda content, state, forged: state.update(key=plain([1, 2]))),
)
forgery(
    "random state with another field", random_state(lambda content, state, forged: _more_fields(content, forged, 1))
)
forgery("random state without a field", random_state(lambda content, _, forged: _more_fields(content, forged, -1)))


def _more_fields(content: Node, forged: Forgery, more: int) -> None:
    types = forged.nodes("RandomStateNode")[0]["content"]["key_types"]["content"]
    if more > 0:
        content["more"] = plain(1)
        types.append(node("TypeNode", "builtins.str"))
    else:
        content.pop("gauss")
        types.pop()


def generator(**changes: Any) -> Callable[[], bytes]:
    def make() -> bytes:
        seed = {"entropy": 1, "spawn_key": (), "pool_size": 4, "n_children_spawned": 0}
        state = {"bit_generator": "PCG64", "state": {"state": 1, "inc": 3}, "has_uint32": 0, "uinteger": 0}
        seed.update({key: value for key, value in changes.items() if key in seed})
        state.update({key: value for key, value in changes.items() if key in state})
        content = {"bit_generator": plain(state), "seed_seq": plain(seed)}
        value = node("RandomGeneratorNode", "numpy.random._generator.Generator", content=content)
        return forge("scaled").set("StandardScaler", "aaa", value).data()

    return make


for name, changes in {
    "generator called seed": {"bit_generator": "seed"},
    "generator called default_rng": {"bit_generator": "default_rng"},
    "generator called MT19937": {"bit_generator": "MT19937"},
    "generator that is a list": {"bit_generator": [1]},
    "generator with a pool of gigabytes": {"pool_size": 10**9},
    "generator with a negative pool": {"pool_size": -1},
    "generator with long entropy": {"entropy": 10**1900},
    "generator with entropy as a list": {"entropy": [1] * 10**5},
    "generator with a long key": {"spawn_key": tuple(range(10**4))},
    "generator with a negative state": {"state": {"state": -1, "inc": 1}},
    "generator with a huge state": {"state": {"state": 2**200, "inc": 1}},
    "generator without a state": {"state": {}},
    "generator with a flag of two": {"has_uint32": 2},
}.items():
    forgery(name, generator(**changes))


# Arrays.
def array(data: Callable[[], bytes] | bytes) -> Callable[[], bytes]:
    def make() -> bytes:
        forged = forge("scaled")
        found = next(n for n in forged.nodes("NdArrayNode", "ndarray"))
        return forged.entry_of(found, data if isinstance(data, bytes) else data()).data()

    return make


def header(descr: str, shape: str, data: bytes = b"", order: str = "False") -> bytes:
    return npy_with_header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}", data)


class Bomb:
    def __reduce__(self) -> Any:
        import os

        return os.system, ("touch canary",)


ARRAYS: dict[str, bytes | Callable[[], bytes]] = {
    "of no bytes": b"",
    "of ten bytes": b"\x93NUMPY\x01\x00\xff\xff",
    "with another magic": b"\x93NUMPX\x01\x00" + bytes(100),
    "of version 2": npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", version=b"\x02\x00"),
    "of version 3": npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", version=b"\x03\x00"),
    "of objects": lambda: npy(np.array([Bomb()], dtype=object)),
    "that is a pickle": lambda: pickle.dumps(Bomb()),
    "that is a zip file": lambda: zipped({"a.npy": npy(np.zeros(3))}),
    "of a terabyte": header("'<f8'", "(125000000000,)"),
    "of a terabyte in two dimensions": header("'<f8'", "(1000000, 125000)"),
    "with sides that overflow": header("'<f8'", "(4294967296, 4294967296, 4294967296)"),
    "with a negative side": header("'<f8'", "(-1,)", bytes(8)),
    "with a side of text": header("'<f8'", "('1',)", bytes(8)),
    "with a shape that is a list": header("'<f8'", "[1]", bytes(8)),
    "with a shape that is a truth value": header("'<f8'", "(True,)", bytes(8)),
    "with 33 sides": header("'<f8'", "(" + "1," * 33 + ")", bytes(8)),
    "with too few numbers": header("'<f8'", "(3,)", bytes(16)),
    "with too many numbers": header("'<f8'", "(3,)", bytes(32)),
    "of text": lambda: npy(np.array(["a", "b"])),
    "of bytes": lambda: npy(np.array([b"a"])),
    "of dates": lambda: npy(np.array(["2020-01-01"], dtype="M8[D]")),
    "of complex numbers": lambda: npy(np.array([1j])),
    "of long doubles": lambda: npy(np.array([1], dtype=np.longdouble)),
    "in the other byte order": header("'>f8'", "(1,)", bytes(8)),
    "of void": header("'|V1000000000000'", "(0,)"),
    "of records with objects": header("[('a', '|O')]", "(1,)", bytes(8)),
    "of records with text": header("[('a', '<U3')]", "(1,)", bytes(12)),
    "of records of gigabytes": header("[('a', '<f8', (1000000000,))]", "(0,)"),
    "of records within records": header("[('a', [('b', '<f8')])]", "(1,)", bytes(8)),
    "with an order that is a number": header("'<f8'", "(1,)", bytes(8), order="1"),
    "with an expression": npy_with_header("__import__('os').system('touch canary')"),
    "with deep brackets": npy_with_header("(" * 3000),
    "with a header that is a list": npy_with_header("[1, 2]"),
    "with one key too many": npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), 'more': 1, }"),
    "with a header of 60 kilobytes": npy_with_header(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }" + " " * 60000
    ),
}
for name, content in ARRAYS.items():
    forgery(f"array {name}", array(content))


def scalar(name: str, data: bytes) -> Callable[[], bytes]:
    def make() -> bytes:
        forged = forge("scaled")
        forged.entries["123.npy"] = data
        value = node("NdArrayNode", name, type="numpy", file="123.npy")
        return forged.set("StandardScaler", "aaa", value).data()

    return make


forgery("number of void of a terabyte", scalar("numpy.void", npy(np.array(10**12))))
forgery("number made by zeros", scalar("numpy.zeros", npy(np.array(10**12))))
forgery("number that is an array", scalar("numpy.float64", npy(np.zeros(5))))
forgery("number of another type", scalar("numpy.float64", npy(np.array(3))))
forgery("matrix", scalar("numpy.matrix", npy(np.zeros((2, 2)))))
forgery("memory map", scalar("numpy.memmap", npy(np.zeros((2, 2)))))
forgery("array without an entry", lambda: _without_entry())
forgery("array of neither kind", lambda: _array_field("type", "pickle"))
forgery("array in a folder", lambda: _array_field("file", "../123.npy"))
forgery("array in a number", lambda: _array_field("file", 5))
forgery("array in the schema", lambda: _array_field("file", "schema.json"))
forgery(
    "objects in an array of numbers",
    lambda: (
        forge("scaled")
        .set(
            "StandardScaler",
            "mean_",
            node("NdArrayNode", "numpy.ndarray", type="json", content=[scaler()], shape=plain((1,))),
        )
        .data()
    ),
)
for shape in ((2,), (0, 1), (1, 1, 1), (-1,), (10**12, 1), ("a",), ()):
    forgery(
        f"objects in an array of shape {shape}",
        lambda shape=shape: (
            forge("gradient")
            .set(
                "GradientBoostingClassifier",
                "estimators_",
                node("NdArrayNode", "numpy.ndarray", type="json", content=[plain([scaler()])], shape=plain(shape)),
            )
            .data()
        ),
    )


def _without_entry() -> bytes:
    forged = forge("scaled")
    del forged.entries[array_of(forged)["file"]]
    return forged.data()


def _array_field(key: str, value: Any) -> bytes:
    forged = forge("scaled")
    array_of(forged)[key] = value
    forged.forget()
    return forged.data()


# Trees: their constructor reads as many classes as there are outputs.
for outputs in (-1, 5, 2**31 - 1, 10**12, "1", None):
    forgery(f"tree of {outputs!r} outputs", lambda outputs=outputs: _tree(2, outputs))
for columns in (-1, "2", None, 1.5):
    forgery(f"tree of {columns!r} columns", lambda columns=columns: _tree(0, columns))


def _tree(part: int, value: Any) -> bytes:
    forged = forge("gradient")
    forged.nodes("TreeNode")[0]["__reduce__"]["args"]["content"][part] = plain(value)
    return forged.data()


# Sparse arrays.
def sparse_parts(**changes: Any) -> dict[str, Any]:
    rows = sparse.csr_matrix(np.eye(3))
    parts: dict[str, Any] = {
        "indices": rows.indices,
        "indptr": rows.indptr,
        "format": np.array(b"csr"),
        "shape": np.array(rows.shape),
        "data": rows.data,
    }
    parts.update(changes)
    return {
        f"{name}.npy": value if isinstance(value, bytes) else npy(value)
        for name, value in parts.items()
        if value is not None
    }


def in_sparse(data: Callable[[], bytes]) -> Callable[[], bytes]:
    def make() -> bytes:
        forged = forge("sparse")
        return forged.entry_of(forged.nodes("SparseMatrixNode")[0], data()).data()

    return make


SPARSE: dict[str, dict[str, Any]] = {
    "with a column beyond": {"indices": np.array([0, 1, 3], np.int32)},
    "with a negative column": {"indices": np.array([0, 1, -1], np.int32)},
    "with a far column": {"indices": np.array([0, 1, 2**31 - 1], np.int32)},
    "with rows that run backwards": {"indptr": np.array([0, 2, 1, 3], np.int32)},
    "with rows that run beyond": {"indptr": np.array([0, 1, 2, 10**6], np.int32)},
    "with rows that start late": {"indptr": np.array([1, 1, 2, 3], np.int32)},
    "with too few rows": {"indptr": np.array([0, 3], np.int32)},
    "with too few values": {"data": np.ones(1)},
    "with a negative shape": {"shape": np.array([-3, 3])},
    "with a huge shape": {"shape": np.array([10**15, 3])},
    "with three sides": {"shape": np.array([3, 3, 3])},
    "with sides that are not whole": {"shape": np.array([3.0, 3.0])},
    "with columns that are not whole": {"indices": np.array([0.0, 1.0, 2.0])},
    "of another format": {"format": np.array(b"csc")},
    "of a format that is code": {"format": np.array(b"__class__")},
    "with a format of objects": {"format": np.array(["csr"], dtype=object)},
    "of objects": {"data": np.array([Bomb()] * 3, dtype=object)},
    "of text": {"data": np.array(["a", "b", "c"])},
    "of two dimensions": {"data": np.ones((3, 1))},
    "with one part too many": {"more": np.ones(3)},
    "with one part too few": {"indptr": None},
    "that says it is no matrix": {"_is_array": np.array(True)},
}
for name, parts in SPARSE.items():
    forgery(f"sparse array {name}", in_sparse(lambda parts=parts: zipped(sparse_parts(**parts), zipfile.ZIP_DEFLATED)))
forgery("sparse array that is no zip file", in_sparse(lambda: b"PK\x03\x04"))
forgery("sparse array that is a pickle", in_sparse(lambda: pickle.dumps(Bomb())))
forgery(
    "sparse array that unpacks to a gigabyte",
    in_sparse(lambda: zipped(sparse_parts(data=npy_zeros(2**30)), zipfile.ZIP_DEFLATED)),
)
forgery(
    "sparse array that hides its size",
    in_sparse(lambda: _smaller(zipped(sparse_parts(data=npy_zeros(2**28)), zipfile.ZIP_DEFLATED), "data.npy")),
)
forgery("sparse array packed otherwise", in_sparse(lambda: zipped(sparse_parts(), zipfile.ZIP_LZMA)))
forgery("sparse array with a part twice", in_sparse(lambda: _twice(sparse_parts(), "data.npy", zipfile.ZIP_DEFLATED)))


@functools.cache
def npy_zeros(n_bytes: int) -> bytes:
    return header("'|u1'", f"({n_bytes},)", bytes(n_bytes))


def _smaller(data: bytes, name: str) -> bytes:
    """Let the directory of a zip file say that an entry unpacks to 200 bytes."""
    start = data.rindex(name.encode()) - 46
    return data[: start + 24] + struct.pack("<I", 200) + data[start + 28 :]


def _twice(entries: dict[str, bytes], name: str, compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for each, data in entries.items():
            archive.writestr(each, data)
        other = name[:-1] + "_"
        archive.writestr(other, entries[name])
    return file.getvalue().replace(other.encode(), name.encode())


# Zip files.
DEFLATED = zipfile.ZIP_DEFLATED


def _flipped(data: bytes) -> bytes:
    """Change a byte in the middle of the first entry."""
    place = data.index(b"PK\x03\x04", 4) // 2
    return data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]


def all_entries(forged: Forgery) -> dict[str, bytes]:
    return {**forged.entries, "schema.json": json.dumps(forged.schema).encode()}


def zip_file(change: Callable[[bytes, dict[str, bytes]], bytes]) -> Callable[[], bytes]:
    return lambda: change(real("scaled"), all_entries(forge("scaled")))


def _directory_field(data: bytes, offset: int, value: bytes) -> bytes:
    """Change the first record of the directory of a zip file."""
    start = data.index(b"PK\x01\x02") + offset
    return data[:start] + value + data[start + len(value) :]


for name in (
    "../1.npy",
    "/tmp/1.npy",
    "a/1.npy",
    "a\\1.npy",
    "C:1.npy",
    "1.npy/",
    "1.pkl",
    "1.npy\x00x",
    "é.npy",
    "1" * 30 + ".npy",
    "schema.json.bak",
):
    forgery(f"entry {name!r}", zip_file(lambda data, entries, name=name: zipped({**entries, name: b""})))
for name, method in {"bzipped": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}.items():
    forgery(f"archive {name}", zip_file(lambda data, entries, method=method: zipped(entries, method)))
forgery("archive of zeros", lambda: zipped({"schema.json": b" " * 10**8}, zipfile.ZIP_DEFLATED))
forgery(
    "deflated array that hides its size",
    zip_file(
        lambda data, entries: _smaller(
            zipped({**entries, "1.npy": npy_zeros(2**24), "2.npy": np.random.default_rng(0).bytes(2**20)}, DEFLATED),
            "1.npy",
        )
    ),
)
forgery("deflated archive that is damaged", zip_file(lambda data, entries: _flipped(zipped(entries, DEFLATED))))
forgery("deflated schema twice", zip_file(lambda data, entries: _twice(entries, "schema.json", DEFLATED)))
forgery("deflated entry outside", zip_file(lambda data, entries: zipped({**entries, "../1.npy": b""}, DEFLATED)))
forgery("entry that belongs to nobody", zip_file(lambda data, entries: zipped({**entries, "1.npy": npy(np.zeros(3))})))
forgery("schema twice", zip_file(lambda data, entries: _twice(entries, "schema.json")))
forgery("array twice", zip_file(lambda data, entries: _twice(entries, next(iter(entries)))))
forgery("no schema", zip_file(lambda data, entries: zipped({k: v for k, v in entries.items() if k != "schema.json"})))
forgery("no entries", lambda: zipped({}))
forgery("encrypted entry", zip_file(lambda data, entries: _directory_field(data, 8, b"\x01\x00")))
forgery("entry beyond the file", zip_file(lambda data, entries: _directory_field(data, 42, b"\xff\xff\xff\x7f")))
forgery(
    "entry longer than the file", zip_file(lambda data, entries: _directory_field(data, 20, b"\xff\xff\xff\x7f" * 2))
)
forgery("entry of two lengths", zip_file(lambda data, entries: _directory_field(data, 24, b"\x01\x00\x00\x00")))
forgery("all entries in one place", lambda: _overlapping())
forgery("two million entries", lambda: b"PK\x01\x02" * 2 * 10**6 + b"PK\x05\x06" + bytes(18))
forgery("truncated file", zip_file(lambda data, entries: data[: len(data) // 2]))
forgery("end of the file only", zip_file(lambda data, entries: data[-22:]))
forgery("empty file", lambda: b"")
forgery("pickle", lambda: pickle.dumps(Bomb()))
forgery("text", lambda: b"import os; os.system('touch canary')")


def _overlapping() -> bytes:
    """Let a thousand entries be the same megabyte."""
    entries = {f"{i}.npy": b"" for i in range(1000)}
    data = bytearray(
        zipped({"0.npy": bytes(10**6), **{k: v for k, v in entries.items() if k != "0.npy"}, "schema.json": b"{}"})
    )
    position = data.index(b"PK\x01\x02")
    for _ in range(1000):
        data[position + 20 : position + 28] = struct.pack("<II", 10**6, 10**6)
        data[position + 42 : position + 46] = struct.pack("<I", 0)
        position = data.index(b"PK\x01\x02", position + 4)
    return bytes(data)


# JSON.
def text(schema: bytes) -> Callable[[], bytes]:
    return lambda: zipped({"schema.json": schema})


def edited(old: str, new: str) -> Callable[[], bytes]:
    def make() -> bytes:
        forged = forge("scaled")
        changed = json.dumps(forged.schema).replace(old, new, 1)
        assert changed != json.dumps(forged.schema)
        return zipped({**forged.entries, "schema.json": changed.encode()})

    return make


JSON: dict[str, bytes] = {
    "of no bytes": b"",
    "cut off": b'{"__class__": "list", ',
    "that is a list": b"[]",
    "that is null": b"null",
    "that is a text": b'"text"',
    "that is an empty object": b"{}",
    "nested a hundred thousand deep": b'{"a":' * 10**5,
    "of lists nested a million deep": b'{"a":' + b"[" * 10**6,
    "of a million empty lists": b'{"a":[' + b"[]," * 10**6 + b"[]]}",
    "of ten million numbers": b'{"a":[' + b"1," * 10**7 + b"1]}",
    "in another coding": '{"a": 1}'.encode("utf-16"),
    "with a mark of its coding": b"\xef\xbb\xbf{}",
    "with bytes that are no text": b'{"a": "\xff\xfe"}',
    "with NUL": b'{"a": "\x00"}',
    "with more behind it": b'{"protocol": 2} {"protocol": 2}',
    "with a number of a million digits": b'{"protocol": ' + b"1" * 10**6 + b"}",
}
for name, content in JSON.items():
    forgery(f"schema {name}", text(content))
for name, (old, new) in {
    "with a name twice": ('"__loader__": "ObjectNode"', '"__loader__": "ListNode", "__loader__": "ObjectNode"'),
    "with an attribute twice": ('"steps":', '"steps": {}, "steps":'),
    "with NaN": ('"protocol": 2', '"protocol": NaN'),
    "with infinity": ('"is_json": true', '"is_json": Infinity'),
    "of format 0": ('"protocol": 2', '"protocol": 0'),
    "of format -1": ('"protocol": 2', '"protocol": -1'),
    "of format 3": ('"protocol": 2', '"protocol": 3'),
    "of format 2.0": ('"protocol": 2', '"protocol": 2.0'),
    "of format '2'": ('"protocol": 2', '"protocol": "2"'),
    "of format true": ('"protocol": 2', '"protocol": true'),
    "of no format": ('"protocol": 2', '"protokol": 2'),
    "of a writer without a name": ('"_skops_version": "', '"_skops_version": 5, "_more": "'),
    "with a field too many": ('"is_json": true', '"is_json": true, "more": 1'),
    "with a field too few": (', "is_json": true', ""),
    "with JSON that is not": ('"is_json": true', '"is_json": false'),
    "without a loader": ('"__loader__": "ObjectNode"', '"__loadr__": "ObjectNode"'),
    "with a loader that is a number": ('"__loader__": "ObjectNode"', '"__loader__": 1'),
    "with a loader that is a list": ('"__loader__": "ObjectNode"', '"__loader__": ["ObjectNode"]'),
    "with a module that is null": ('"__module__": "sklearn', '"__module__": null, "__modul__": "sklearn'),
    "with a class with a dot": (
        '"__class__": "Pipeline", "__module__": "sklearn.pipeline"',
        '"__class__": "pipeline.Pipeline", "__module__": "sklearn"',
    ),
    "with a class with escapes": ('"__class__": "Pipeline"', '"__class__": "Pipe\\u001b[2Jline"'),
    "with a class with spaces": ('"__class__": "Pipeline"', '"__class__": "Pipeline Pipeline"'),
    "with a list for a text": ('"content": "null"', '"content": ["null"]'),
    "with a list within a text": ('"content": "null"', '"content": "[[1]]"'),
    "with brackets within a text": ('"content": "null"', '"content": "' + "[" * 1500 + '"'),
    "with words within a text": ('"content": "null"', '"content": "nil"'),
    "with a long number within a text": ('"content": "null"', '"content": "' + "9" * 10**6 + '"'),
    "with a text for a node": ('"content": {"__class__"', '"content": "text", "kontent": {"__class__"'),
}.items():
    forgery(f"schema {name}", edited(old, new))
forgery("schema with too few types of keys", lambda: _key_count(-1))
forgery("schema with too many types of keys", lambda: _key_count(1))
forgery("schema with types of keys in a dictionary", lambda: _key_types(plain({})))
forgery("schema with types of keys as numbers", lambda: _key_types(plain([1] * 50)))
forgery(
    "slice that is cut at a text",
    lambda: (
        forge("scaled")
        .set(
            "StandardScaler",
            "aaa",
            node("SliceNode", "builtins.slice", content={"start": "a", "stop": 1, "step": None}),
        )
        .data()
    ),
)
forgery(
    "slice with a field more",
    lambda: (
        forge("scaled")
        .set(
            "StandardScaler",
            "aaa",
            node("SliceNode", "builtins.slice", content={"start": 0, "stop": 1, "step": None, "x": 1}),
        )
        .data()
    ),
)
forgery(
    "slice without fields",
    lambda: forge("scaled").set("StandardScaler", "aaa", node("SliceNode", "builtins.slice", content=[])).data(),
)
forgery(
    "type of an array that is a list",
    lambda: forge("scaled").set("StandardScaler", "aaa", node("DTypeNode", "numpy.dtype", content=plain([]))).data(),
)
forgery(
    "bytes without an entry",
    lambda: (
        forge("scaled").set("StandardScaler", "aaa", node("BytesNode", "builtins.bytes", file="nothing.bin")).data()
    ),
)
forgery("state of a scaler that is a tuple", lambda: _state("scaled", "StandardScaler", (1, 2)))
forgery("state of a scaler that is a list", lambda: _state("scaled", "StandardScaler", [1]))
forgery("state of a scaler that is a text", lambda: _state("scaled", "StandardScaler", "text"))
forgery("state of a search tree that is a dictionary", lambda: _state("scaled", "KDTree", {"data": 1}))


def _key_count(more: int) -> bytes:
    forged = forge("scaled")
    types = forged.nodes("ObjectNode", "StandardScaler")[0]["content"]["key_types"]["content"]
    types[:] = types[:more] if more < 0 else [*types, node("TypeNode", "builtins.str")]
    return forged.data()


def _key_types(types: Node) -> bytes:
    forged = forge("scaled")
    forged.nodes("ObjectNode", "StandardScaler")[0]["content"]["key_types"] = types
    return forged.data()


def _state(kind: str, name: str, state: Any) -> bytes:
    forged = forge(kind)
    forged.nodes("ObjectNode", name)[0]["content"] = plain(state)
    forged.forget()
    return forged.data()
