"""Model folders are complete at every instant, loaded without pickle, and refused if modified."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from cashmere import AutoClassifier, Predictor
from cashmere.exceptions import ModelFileError, PredictionError, SchemaError, VersionWarning
from cashmere.model.archives import load
from cashmere.model.description import describe_model
from cashmere.model.trusted import TRUSTED, TRUSTED_OBJECTS


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch /tmp/cashmere-was-here",))


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "iris"
    X, y = load_iris(return_X_y=True, as_frame=True)

    def space(profile):
        from cashmere.space import make_space

        return make_space("default", profile).restricted_to(["logistic_regression", "extra_trees"])

    AutoClassifier(budget="3trials", isolation="none", run_directory=folder, space=space).fit(X, y)
    return folder / "model"


@pytest.fixture
def touched(model_folder, tmp_path):
    return shutil.copytree(model_folder, tmp_path / "model")


@pytest.mark.long
def test_model_folder_needs_nothing_else(touched, model_folder):
    X, _ = load_iris(return_X_y=True, as_frame=True)
    np.testing.assert_array_equal(
        Predictor.load(touched).predict_proba(X), Predictor.load(model_folder).predict_proba(X)
    )


def test_repr_is_one_line(model_folder):
    assert re.fullmatch(r"Predictor\(multiclass, 4 columns, [123] members?\)", repr(Predictor.load(model_folder)))


def test_thresholds_are_kept_and_decide(touched):
    X, _ = load_iris(return_X_y=True, as_frame=True)
    plain = Predictor.load(touched)
    np.testing.assert_allclose(plain.decision_threshold_, [1 / 3] * 3)
    rewrite(touched, lambda manifest: manifest.update(thresholds=[0.9998, 0.0001, 0.0001]))
    model = Predictor.load(touched)
    np.testing.assert_array_equal(model.decision_threshold_, [0.9998, 0.0001, 0.0001])
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    probabilities = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), model.decide(probabilities))
    assert np.sum(model.predict(X) == 0) < np.sum(plain.predict(X) == 0)


def test_calibration_is_kept_and_applied(touched):
    X, _ = load_iris(return_X_y=True, as_frame=True)
    plain = Predictor.load(touched)
    assert plain.calibration is None
    stored = {"scales": [2.0, 2.0, 2.0], "offsets": [0.0, 0.0, 0.0], "gain": 0.01}
    rewrite(touched, lambda manifest: manifest.update(calibration=stored))
    model = Predictor.load(touched)
    squared = plain.predict_proba(X) ** 2
    expected = squared / squared.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert describe_model(touched).facts["calibration"].startswith("temperature 0.5")


@pytest.mark.long
@pytest.mark.parametrize(
    "stored",
    [
        {"scales": [1.0, 1.0], "offsets": [0.0, 0.0], "gain": 0.0},
        {"scales": [1.0, 1.0, 0.0], "offsets": [0.0, 0.0, 0.0], "gain": 0.0},
        {"scales": [1.0, 1.0, 1.0], "offsets": [0.0, 0.0], "gain": 0.0},
        {"scales": [1.0, 1.0, 1.0], "gain": 0.0},
        {"scales": "many", "offsets": [], "gain": 0.0},
    ],
)
def test_calibration_that_does_not_fit_is_refused(touched, stored):
    rewrite(touched, lambda manifest: manifest.update(calibration=stored))
    with pytest.raises(ModelFileError):
        Predictor.load(touched)


def test_model_of_the_second_version_has_no_calibration(touched):
    def make_old(manifest):
        manifest["version"] = 2
        del manifest["calibration"]

    rewrite(touched, make_old)
    assert Predictor.load(touched).calibration is None


def test_model_of_the_first_version_predicts_the_most_probable_class(touched):
    X, _ = load_iris(return_X_y=True, as_frame=True)

    def make_old(manifest):
        manifest["version"] = 1
        del manifest["thresholds"], manifest["calibration"], manifest["information"]["decision"]

    rewrite(touched, make_old)
    old = Predictor.load(touched)
    np.testing.assert_array_equal(old.predict(X), old.classes_[old.predict_proba(X).argmax(axis=1)])


def test_information_holds_metric_losses_and_latency(model_folder):
    information = Predictor.load(model_folder.parent).information
    assert information["metric"] == "log_loss"
    assert information["latency"]["single_row_ms"] > 0
    assert information["latency"]["batch_rows_per_second"] > 0
    assert information["cross_fitted_loss"] > 0


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("kind", ["member", "encoders"])
def test_flipped_byte_is_refused(touched, kind, share):
    path = next(touched.glob(f"{kind}-*.skops"))
    data = bytearray(path.read_bytes())
    data[int(share * (len(data) - 1))] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="checksum"):
        Predictor.load(touched)


def rewrite(folder, change) -> None:
    """Change the manifest like an attacker who also knows how to repair its checksum."""
    from cashmere.model.files import _checksum

    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    manifest["checksum"] = _checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def replace_member(folder, data: bytes) -> None:
    import hashlib

    path = next(folder.glob("member-*.skops"))
    path.write_bytes(data)

    def change(manifest):
        for entry in manifest["members"].values():
            if entry["file"] == path.name:
                entry["sha256"] = hashlib.sha256(data).hexdigest()

    rewrite(folder, change)


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def evil_schema(module: str, name: str, loader: str = "ObjectNode", **more) -> bytes:
    schema = {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, "protocol": 2, **more}
    return zipped({"schema.json": json.dumps(schema).encode()})


MALICIOUS = {
    "pickle": pickle.dumps(Bomb()),
    "pickle in a zip": zipped({"schema.json": pickle.dumps(Bomb())}),
    "empty": b"",
    "no zip": b"PK\x03\x04 nonsense",
    "no schema": zipped({"other": b""}),
    "os.system": evil_schema("os", "system", "FunctionNode", content={"module_path": "os", "function": "system"}),
    "builtins.eval": evil_schema(
        "builtins", "eval", "FunctionNode", content={"module_path": "builtins", "function": "eval"}
    ),
    "subprocess.Popen": evil_schema("subprocess", "Popen", content=None),
    "own type": evil_schema("evil_module", "Evil", content=None),
    "unknown loader": evil_schema("builtins", "list", "NoSuchNode"),
    "joblib": evil_schema("joblib", "load", "FunctionNode", content={"module_path": "joblib", "function": "load"}),
    "method": evil_schema(
        "sklearn.linear_model", "LogisticRegression", "MethodNode", content={"func": "__reduce__", "obj": {}}
    ),
    "truncated json": zipped({"schema.json": b'{"__class__": "list", '}),
}


@pytest.mark.parametrize("name", MALICIOUS)
def test_malicious_member_is_refused_even_with_repaired_checksums(touched, name):
    from pathlib import Path

    replace_member(touched, MALICIOUS[name])
    with pytest.raises(ModelFileError):
        Predictor.load(touched)
    assert not Path("/tmp/cashmere-was-here").exists()


def test_archive_that_unpacks_to_many_times_its_size_is_refused(tmp_path):
    path = tmp_path / "bomb.skops"
    path.write_bytes(zipped({"schema.json": b"0" * 10**7}))
    with pytest.raises(ModelFileError, match="32 times its size"):
        load(path)


def test_truncated_member_is_refused(touched):
    data = next(touched.glob("member-*.skops")).read_bytes()
    for size in (1, 100, len(data) // 2, len(data) - 1):
        replace_member(touched, data[:size])
        with pytest.raises(ModelFileError):
            Predictor.load(touched)


@pytest.mark.parametrize("name", ["../outside.skops", "/etc/passwd", "member.pkl", "sub/member.skops"])
def test_path_outside_the_folder_is_refused(touched, name):
    rewrite(touched, lambda m: next(iter(m["members"].values())).update(file=name))
    with pytest.raises(ModelFileError, match="outside"):
        Predictor.load(touched)


def test_link_is_refused(touched, model_folder):
    path = next(touched.glob("member-*.skops"))
    path.unlink()
    path.symlink_to(model_folder / path.name)
    with pytest.raises(ModelFileError, match="link"):
        Predictor.load(touched)


def test_folder_of_links_is_to_be_copied(model_folder, tmp_path):
    shutil.copytree(model_folder, tmp_path / "mount" / "..2026")  # as Kubernetes projects volumes
    (tmp_path / "mount" / "..data").symlink_to("..2026")
    for path in model_folder.iterdir():
        (tmp_path / "mount" / path.name).symlink_to(f"..data/{path.name}")
    with pytest.raises(ModelFileError) as caught:
        Predictor.load(tmp_path / "mount")
    assert "is a link" in str(caught.value) and "cp -rL" in str(caught.value)
    assert "resume" not in str(caught.value)


@pytest.mark.parametrize("key", ["schema", "target", "ensemble", "encoders", "members", "information"])
def test_incomplete_manifest_is_refused(touched, key):
    rewrite(touched, lambda manifest: manifest.pop(key))
    with pytest.raises(ModelFileError):
        Predictor.load(touched)


def test_changed_manifest_is_refused(touched):
    path = touched / "manifest.json"
    path.write_text(path.read_text().replace("log_loss", "accuracy"))
    with pytest.raises(ModelFileError, match="changed"):
        Predictor.load(touched)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "other"}'])
def test_damaged_manifest_is_refused(touched, text):
    (touched / "manifest.json").write_text(text)
    with pytest.raises(ModelFileError):
        Predictor.load(touched)


def test_newer_model_is_refused(touched):
    rewrite(touched, lambda manifest: manifest.update(version=99))
    with pytest.raises(ModelFileError, match="newer"):
        Predictor.load(touched)


def test_missing_folder_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        Predictor.load(tmp_path / "nowhere")
    (tmp_path / "model.pkl").touch()
    with pytest.raises(ModelFileError, match=r"model\.pkl: is a file\. Expected a run directory"):
        Predictor.load(tmp_path / "model.pkl")


def test_the_list_holds_no_function_that_could_run_code():
    dangerous = (
        "builtins",
        "functools",
        "importlib",
        "joblib",
        "operator",
        "os",
        "pickle",
        "subprocess",
        "sys",
        "types",
    )
    functions = [*TRUSTED["FunctionNode"], *TRUSTED_OBJECTS]
    assert not [name for name in functions if name.split(".")[0] in dangerous]


def threads_of_openmp():
    """Return the threads that scikit-learn's OpenMP would use now."""
    return [each["num_threads"] for each in threadpool_info() if "scikit_learn.libs/libgomp" in each["filepath"]]


@pytest.mark.parametrize(("n_rows", "expected"), [(1, 1), (2_500, 2)])
def test_few_rows_are_predicted_by_one_thread_of_openmp(tmp_path, monkeypatch, n_rows, expected):
    """Histogram boosting has no parameter for its threads; beside other programs, waking them takes seconds."""
    X, y = load_iris(return_X_y=True, as_frame=True)

    def space(profile):
        from cashmere.space import make_space

        return make_space("default", profile).restricted_to(["hist_gradient_boosting"])

    folder = tmp_path / "run"
    options = {"isolation": "none", "resampling": "holdout", "space": space, "n_workers": 1}
    AutoClassifier(budget="1trial", run_directory=folder, **options).fit(X, y)
    predictor, seen = Predictor.load(folder), []
    raw = HistGradientBoostingClassifier.predict_proba

    def watched(self, X):
        seen.extend(threads_of_openmp())
        return raw(self, X)

    monkeypatch.setattr(HistGradientBoostingClassifier, "predict_proba", watched)
    with threadpool_limits(2, user_api="openmp"):
        predictor.predict(X.iloc[[0] * n_rows])
        assert threads_of_openmp() == [2]
    assert set(seen) == {expected}


def test_missing_columns_are_all_named(model_folder):
    X, _ = load_iris(return_X_y=True, as_frame=True)
    with pytest.raises(SchemaError, match=r"petal length.*petal width"):
        Predictor.load(model_folder).predict(X.iloc[:, :2])


class Odd:
    """A combination of members that gives NaN for some rows."""

    members = (0,)

    def __init__(self, value: float) -> None:
        self.value = value

    def combine(self, stack):
        found = np.array(stack[0])
        found[[3, 5]] = self.value
        return found


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_predictions_that_are_not_finite_are_refused(model_folder, value, method):
    X, _ = load_iris(return_X_y=True, as_frame=True)
    model = Predictor.load(model_folder)
    model.ensemble = Odd(value)
    model.models = {0: next(iter(model.models.values()))}
    with np.errstate(invalid="ignore"), pytest.raises(PredictionError, match=r"2 of 150 rows, .* 3, 5\.") as caught:
        getattr(model, method)(X)
    assert caught.value.rows == [3, 5]


@pytest.mark.long
@pytest.mark.parametrize("name", ["xgboost", "xgboost-cpu"])
def test_both_packages_of_xgboost_are_the_same_library(touched, name):
    def make_old(manifest):
        for each in ("xgboost", "xgboost-cpu"):
            manifest["versions"].pop(each, None)
        manifest["versions"][name] = "0.1.0"

    rewrite(touched, make_old)
    with pytest.warns(VersionWarning, match=r"with xgboost 0\.1\.0"):
        Predictor.load(touched)


def test_other_versions_of_learners_are_named(touched):
    rewrite(touched, lambda manifest: manifest["versions"].update({"scikit-learn": "0.24.1", "python": "2.7"}))
    with pytest.warns(VersionWarning, match=r"with scikit-learn 0\.24\.1 \(installed: .*\)\. Predictions"):
        Predictor.load(touched)
