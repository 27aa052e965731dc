"""Run directories and artefacts from strangers: every reader succeeds or raises a typed error, and touches no more.

Each case changes a copy of a finished run, or of an artefact, in the way its name says. A folder beside the copy holds
what links point to; it must look the same afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import resource
import shutil
import sqlite3
import stat
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cashmere import AutoClassifier, Predictor
from cashmere.analysis.recorded import read_predictions
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ArtefactError, CashmereError, CorruptStoreError, RunDirectoryError, RunLockedError
from cashmere.explanations import explain, read_explanation
from cashmere.metalearning.artefact import SHIPPED, load_artefact
from cashmere.metalearning.observations import SourceObservations
from cashmere.model.files import _checksum
from cashmere.pretraining.collection.runs import read_runs
from cashmere.records.budget import Budget
from cashmere.report import summarise_run, write_report
from cashmere.run import continue_run
from cashmere.run.run_directory import RunDirectory
from cashmere.storage import run_failures, run_leaderboard

pytestmark = pytest.mark.timeout(60)

MEMORY = 2 * 2**30
"""Bytes that readers may take beside what the tests have taken before."""


def open_for_work(folder: Path) -> None:
    """Do what a resume does before it searches."""
    with RunDirectory.open(folder) as run:
        run.check_workers()
        run.store.load(run.space.configuration_space)
        run.extend(None)
        run.read_sample()


def predict(folder: Path) -> None:
    Predictor.load(folder, verify=False).predict(demo_table().head(3))


def explain_briefly(folder: Path) -> None:
    explain(folder, rows=4, repeats=1, effects=1)


READERS: tuple[Callable[[Path], object], ...] = (
    summarise_run,
    run_leaderboard,
    run_failures,
    read_predictions,
    open_for_work,
    predict,
    explain_briefly,
    read_explanation,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    rows = demo_table().head(120)
    AutoClassifier(
        budget="3trials",
        strategy="random",
        isolation="none",
        resampling="holdout",
        random_state=1,
        run_directory=folder,
    ).fit(rows.drop(columns=DEMO_TARGET).iloc[:, :6], rows[DEMO_TARGET])
    (folder / "logs" / "worker-0.log").write_text("printed by a learner\n")
    explain(folder, rows=20, repeats=1, effects=1).save(folder)
    return folder


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of the run, with a copy of everything beside it: `outside`."""
    shutil.copytree(finished, tmp_path / "outside")
    return Path(shutil.copytree(finished, tmp_path / "run"))


@contextlib.contextmanager
def guarded(outside: Path):
    """Fail if anything outside changes; give readers little memory."""
    before = snapshot(outside)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert snapshot(outside) == before, "something outside was changed"


def snapshot(folder: Path) -> dict[str, tuple]:
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) else None
        found[str(path.relative_to(folder))] = (about.st_mode, about.st_mtime_ns, content)
    return found


def read_all(folder: Path) -> dict[str, str]:
    """Run every reader; return the messages of those that refused."""
    refused = {}
    with guarded(folder.parent / "outside"):
        for reader in READERS:
            try:
                reader(folder)
            except CashmereError as error:
                refused[reader.__name__] = str(error)
    return refused


def check_refused(folder: Path, reader: Callable | None = None, text: str = "") -> None:
    """Check that at least one reader, or the one given, refuses the folder and says what to try."""
    refused = read_all(folder)
    if reader is not None:
        assert reader.__name__ in refused, f"accepted by {reader.__name__}; refused: {refused}"
    assert refused, "accepted silently"
    messages = list(refused.values()) if reader is None else [refused[reader.__name__]]
    assert any(text in message for message in messages), messages
    assert all(str(folder) in message and len(message) < 2000 for message in messages), messages


# ---------------------------------------------------------------- links, pipes, devices, sizes

FILES = {
    "run.json": summarise_run,
    "schema.json": summarise_run,
    "table.npz": open_for_work,
    "run.sqlite": run_leaderboard,
    "run.sqlite-wal": run_leaderboard,
    "run.sqlite-shm": run_leaderboard,
    "run.sqlite-journal": run_leaderboard,
    "lock": open_for_work,
    "lease": open_for_work,
    "logs/worker-0.log": open_for_work,
    "explanations.json": read_explanation,
    "predictions/000000.npy": read_predictions,
    "prepared/prepared.json": None,  # made again, and reports do without
    "prepared/y.npy": None,
    "model/manifest.json": predict,
    "model/member": predict,
    "model/encoders": predict,
}


def place(folder: Path, name: str) -> Path:
    """Return a file of the run; names of archives end in their checksum."""
    path = folder / name
    return next(path.parent.glob(f"{path.name}-*.skops")) if name in ("model/member", "model/encoders") else path


def link(path: Path, outside: Path) -> None:
    path.symlink_to(outside if outside.exists() else outside.parent)


def dangling_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside.with_name("nothing-here"))


def pipe(path: Path, outside: Path) -> None:
    os.mkfifo(path)


def socket(path: Path, outside: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


def sub_folder(path: Path, outside: Path) -> None:
    path.mkdir()


def link_to_device(path: Path, outside: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = (link, dangling_link, pipe, socket, sub_folder, link_to_device)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "kind", [link, dangling_link, pipe, socket, sub_folder, link_to_device], ids=lambda f: f.__name__
)
def test_only_regular_files_are_read(run, name, kind):
    path = place(run, name)
    path.unlink(missing_ok=True)
    kind(path, run.parent / "outside" / path.relative_to(run))
    if FILES[name] is None:
        read_all(run)
    else:
        check_refused(run, FILES[name])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["predictions", "members", "logs", "prepared", "model"])
@pytest.mark.parametrize("kind", [link, dangling_link, pipe], ids=lambda f: f.__name__)
def test_sub_folders_that_are_links_are_refused(run, name, kind):
    shutil.rmtree(run / name)
    kind(run / name, run.parent / "outside" / name)
    for reader in (summarise_run, open_for_work, predict):
        check_refused(run, None if reader is predict and name != "model" else reader, name)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        ".run.json.tmp",
        ".report.html.tmp",
        "predictions/.000003.npy.tmp",
        "prepared/y.npy.tmp",
        "model/.manifest.json.tmp",
    ],
)
def test_nothing_is_written_through_links_under_earlier_temporary_names(run, name):
    (run / name).symlink_to(run.parent / "outside" / "run.json")
    with guarded(run.parent / "outside"):
        continue_run(run, Budget(trials=1))


@pytest.mark.parametrize("name", ["report.html", "sample.parquet", "members/baseline.skops", "members/000003.skops"])
@pytest.mark.parametrize("kind", [link, dangling_link, pipe], ids=lambda f: f.__name__)
def test_files_that_are_written_again_replace_what_is_there(run, name, kind):
    (run / name).unlink(missing_ok=True)
    kind(run / name, run.parent / "outside" / name)
    with guarded(run.parent / "outside"):
        if name == "report.html":
            write_report(run)
        else:
            with contextlib.suppress(CashmereError):
                open_for_work(run)


@pytest.mark.parametrize("name", [n for n, reader in FILES.items() if reader is not None and "lo" not in n])
def test_giants_are_refused_before_they_are_read(run, name):
    path = place(run, name)
    with path.open("ab") as file:
        file.truncate(2**42)  # sparse
    check_refused(run, FILES[name])


DAMAGED = [
    name for name in FILES if FILES[name] is not None and name.split(".")[-1] in ("json", "npz", "npy", "sqlite")
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*DAMAGED, "model/member", "model/encoders"])
@pytest.mark.parametrize("kind", ["half", "empty", "noise", "one byte less", "zeros"])
def test_damaged_files_are_refused(run, name, kind):
    path = place(run, name)
    data = path.read_bytes().rstrip(b"\0")  # SQLite does not miss the zeros at the end of a page
    changed = {
        "half": data[: len(data) // 2],
        "empty": b"",
        "noise": np.random.default_rng(0).bytes(len(data)),
        "one byte less": data[:-1],
        "zeros": bytes(len(data)),
    }
    path.write_bytes(changed[kind])
    check_refused(run, FILES[name])


# ---------------------------------------------------------------- JSON


def deep(n: int) -> object:
    value: object = 1
    for _ in range(n):
        value = [value]
    return value


def nested(n: int) -> str:
    return '{"format": "cashmere run", "x": ' + "[" * n + "]" * n + "}"


def changed_json(path: Path, keys: tuple, value: object) -> None:
    content = json.loads(path.read_text())
    part = content
    for key in keys[:-1]:
        part = part[key]
    if value is ...:
        del part[keys[-1]]
    else:
        part[keys[-1]] = value
    if "checksum" in content:  # somebody who forges a manifest repairs its checksum
        content["checksum"] = _checksum(content)
    path.write_text(json.dumps(content))


SETTINGS = [
    ("n_workers", 10**9),
    ("n_workers", -3),
    ("n_workers", "2"),
    ("n_workers", 1.5),
    ("n_workers", 1000),
    ("ensemble_size", 10**12),
    ("ensemble_size", 0),
    ("repeats", 10**9),
    ("repeats", "often"),
    ("repeats", [1]),
    ("lookahead", 10**9),
    ("lookahead", -1),
    ("seed", -1),
    ("seed", 2**64),
    ("seed", "1"),
    ("memory_mib", -5),
    ("memory_mib", "lots"),
    ("trial_seconds", 0),
    ("trial_seconds", [1]),
    ("strategy", "no such strategy"),
    ("strategy", 3),
    ("strategy", ["random"]),
    ("strategy", "os.system"),
    ("strategy", "rising_bandit:inner=os.system"),
    ("space", "../../etc"),
    ("space", 3),
    ("metric", 7),
    ("metric", [1]),
    ("budget", "-5s"),
    ("budget", [1]),
    ("isolation", "sandbox"),
    ("ensemble", []),
    ("ensemble", "eval"),
    ("decision_threshold", 7),
    ("decision_threshold", [0.5]),
    ("fold_racing", 1),
    ("opening", ["learned"]),
    ("opening", "/etc/passwd"),
    ("resampling", "manyfold"),
    ("resampling", 5),
    ("own_objects", 5),
    ("own_objects", ["metric"]),
    ("task", {"a": 1}),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "value"), SETTINGS)
def test_settings_out_of_range_are_refused(run, name, value):
    changed_json(run / "run.json", ("settings", name), value)
    check_refused(run, open_for_work)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("file", "keys", "value"),
    [
        ("run.json", ("format",), "other program"),
        ("run.json", ("format",), 5),
        ("run.json", ("version",), 99),
        ("run.json", ("version",), -1),
        ("run.json", ("version",), "1"),
        ("run.json", ("id",), ["a"]),
        ("run.json", ("store",), "0" * 32),
        ("run.json", ("settings",), []),
        ("run.json", ("settings",), "all"),
        ("run.json", ("settings", "space"), deep(30)),
        ("run.json", ("table",), {"rows": -1}),
        ("run.json", ("table",), {"rows": 10**400}),
        ("run.json", ("versions",), {"numpy": 2}),
        ("schema.json", ("columns",), []),
        ("schema.json", ("columns", "named"), "yes"),
        ("schema.json", ("columns", "columns"), 5),
        ("schema.json", ("columns", "columns"), []),
        ("schema.json", ("columns", "columns", 0, "kind"), "code"),
        ("schema.json", ("columns", "columns", 0, "name"), 5),
        ("schema.json", ("columns", "columns", 0, "categories"), ["a", "a"]),
        ("schema.json", ("columns", "columns", 0, "categories"), [1, 2]),
        ("schema.json", ("columns", "columns", 0, "dropped"), "constant"),
        ("schema.json", ("columns", "columns", 1, "categories"), ["not", "a", "number"]),
        ("schema.json", ("target",), ...),
        ("schema.json", ("target", "task_type"), "reinforcement"),
        ("schema.json", ("target", "task_type"), "regression"),
        ("schema.json", ("target", "classes"), ["one"]),
        ("schema.json", ("target", "classes"), "ab"),
        ("schema.json", ("target", "classes"), [{}, []]),
        ("schema.json", ("target", "dtype"), "<U1000000000"),
        ("schema.json", ("target", "dtype"), "O,O"),
        ("schema.json", ("target", "dtype"), "no type"),
    ],
)
def test_descriptions_that_cannot_be_are_refused(run, file, keys, value):
    changed_json(run / file, keys, value)
    check_refused(run, open_for_work)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("format",), "pickle"),
        (("version",), 99),
        (("version",), "2"),
        (("version",), -2),
        (("schema",), []),
        (("schema", "columns"), {}),
        (("target", "classes"), []),
        (("target", "dtype"), "<U1000000000"),
        (("ensemble",), None),
        (("ensemble", "kind"), "pickled"),
        (("ensemble", "members"), []),
        (("ensemble", "members"), [10**20]),
        (("ensemble", "members"), ["0"]),
        (("ensemble", "weights"), [float("nan")]),
        (("ensemble", "weights"), [1e400]),
        (("ensemble", "weights"), [-1.0, 2.0]),
        (("encoders",), "encoders.skops"),
        (("encoders", "file"), "../../outside/members/000000.skops"),
        (("encoders", "file"), "/etc/passwd"),
        (("encoders", "file"), "manifest.json"),
        (("encoders", "file"), "a" * 100_000 + ".skops"),
        (("encoders", "file"), "\x00.skops"),
        (("encoders", "sha256"), "0" * 64),
        (("encoders", "sha256"), "none"),
        (("members",), []),
        (("members",), {}),
        (("members",), {"../x": {"file": "a.skops", "sha256": "0" * 64}}),
        (("information",), "none"),
        (("thresholds",), [float("nan"), 1.0]),
        (("calibration",), {"scales": [float("nan"), 1.0], "offsets": [0.0, 0.0], "gain": 0.0}),
        (("calibration",), {"scales": [1e400, 1.0], "offsets": [0.0, 0.0], "gain": 0.0}),
        (("calibration",), {"scales": [1.0] * 3, "offsets": [0.0] * 3, "gain": 0.0}),
        (("calibration",), [1.0, 1.0]),
        (("thresholds",), "half"),
        (("versions",), [1]),
    ],
)
def test_forged_manifests_are_refused(run, keys, value):
    changed_json(run / "model" / "manifest.json", keys, value)
    check_refused(run, predict)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("n_folds",), 10**9),
        (("n_folds",), -1),
        (("n_folds",), 2),
        (("n_classes",), "2"),
        (("task_type",), "sorting"),
        (("stored_as",), {"onehot": "../../../outside/prepared/y"}),
        (("stored_as",), []),
        (("categorical",), {}),
        (("has_weight",), 1),
        (("files",), 7),
    ],
)
def test_forged_indices_of_prepared_folds_are_refused(run, keys, value):
    changed_json(run / "prepared" / "prepared.json", keys, value)
    refused = read_all(run)
    assert "open_for_work" not in refused  # they are made again
    if keys != ("files",):
        assert "Prepare the folds again" in refused.get("read_predictions", "Prepare the folds again")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", ["[]", "null", '"run"', "", "{", "\x00", nested(65), nested(100_000), "[" * 10**6,
                                  '{"settings": {"seed": ' + "9" * 100_000 + "}}", "{" + '"a":1,' * 10 + '"b":NaN}'],
                         ids=range(11))  # fmt: skip
@pytest.mark.parametrize("name", ["run.json", "schema.json", "model/manifest.json", "prepared/prepared.json"])
def test_other_json_is_refused(run, name, text):
    (run / name).write_text(text)
    if name == "prepared/prepared.json":
        assert not read_all(run)  # the folds are made again, and reports do without
    else:
        check_refused(run, predict if name == "model/manifest.json" else open_for_work)


# ---------------------------------------------------------------- arrays


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("/tmp/cashmere-received-folder",)


def npy(array: np.ndarray, **changes: object) -> bytes:
    buffer = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(buffer, header | changes)
    return buffer.getvalue() + array.tobytes()


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    return buffer.getvalue() + pickle.dumps(Bomb())


PREDICTED = np.full((30, 2), 0.5, dtype=np.float32)
ARRAYS = {
    "pickle": pickled(),
    "huge": npy(PREDICTED, shape=(10**9, 2)),
    "negative": npy(PREDICTED, shape=(-30, -2)),
    "other rows": npy(PREDICTED[:7]),
    "cube": npy(PREDICTED.reshape(30, 2, 1)),
    "texts": npy(np.array([["a", "b"]] * 30)),
    "integers": npy(PREDICTED.astype(np.int64)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("repaired", [True, False])
def test_forged_predictions_are_refused(run, kind, repaired):
    (run / "predictions" / "000000.npy").write_bytes(ARRAYS[kind])
    if repaired:
        execute(run, "UPDATE trials SET predictions_crc = ? WHERE number = 0", zlib.crc32(ARRAYS[kind]))
    check_refused(run, read_predictions)
    check_refused(run, open_for_work)
    assert not Path("/tmp/cashmere-received-folder").exists()


TABLE = {"values": np.zeros((120, 6)), "y": np.repeat([0, 1], 60)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"y": TABLE["y"]},
        {**TABLE, "y": np.repeat([0, 7], 60)},
        {**TABLE, "y": np.repeat([-1, 1], 60)},
        {**TABLE, "y": TABLE["y"].astype(str)},
        {**TABLE, "y": np.full(120, np.nan)},
        {**TABLE, "y": TABLE["y"][:50]},
        {**TABLE, "y": TABLE["y"].reshape(2, 60)},
        {**TABLE, "values": np.zeros(120)},
        {**TABLE, "values": np.zeros((120, 3))},
        {**TABLE, "values": np.zeros((120, 6), dtype=np.float16)},
        {**TABLE, "weight": np.ones(5)},
        {**TABLE, "weight": np.full(120, np.inf)},
        {**TABLE, "text0": np.array(["a"] * 120)},
        {**TABLE, "text0": np.zeros(120)},
    ],
    ids=range(15),
)
def test_rows_that_do_not_fit_are_refused(run, arrays):
    np.savez(run / "table.npz", **arrays)
    check_refused(run, open_for_work)


@pytest.mark.parametrize("name", ["run.sqlite", "lock", "logs/worker-0.log"])
def test_hard_links_are_read_but_not_written(run, name):
    outside = run.parent / "outside" / name
    (run / name).unlink(missing_ok=True)
    outside.touch()
    os.link(outside, run / name)
    with guarded(run.parent / "outside"):
        assert len(run_leaderboard(run)[0]) == 3
        with pytest.raises(RunDirectoryError, match="one of 2 hard links"):
            continue_run(run, Budget(trials=1))
        shutil.copytree(run, run.parent / "copy")
        assert len(continue_run(run.parent / "copy", Budget(trials=1)).rows) == 4


def test_sample_that_repeats_a_long_text_is_not_written_out(run):
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 2**20]))
    with pq.ParquetWriter(run / "sample.parquet", pa.schema({"a": texts.type}), store_schema=False) as writer:
        writer.write_table(pa.table({"a": texts}))
    with guarded(run.parent / "outside"), RunDirectory.open(run) as opened:
        assert opened.read_sample() is None


def test_pickles_and_bombs_among_the_rows_are_refused(run):
    for compression, name, data in (
        (zipfile.ZIP_STORED, "y.npy", pickled()),
        (zipfile.ZIP_DEFLATED, "values.npy", npy(np.zeros(10**7))),
    ):
        with zipfile.ZipFile(run / "table.npz", "w", compression) as archive:
            for other, array in TABLE.items():
                archive.writestr(f"{other}.npy", data if f"{other}.npy" == name else npy(array))
        check_refused(run, open_for_work)
    assert not Path("/tmp/cashmere-received-folder").exists()


# ---------------------------------------------------------------- SQLite


def execute(folder: Path, *statements: str | int) -> None:
    with contextlib.closing(sqlite3.connect(folder / "run.sqlite", isolation_level=None)) as database:
        if len(statements) == 2 and isinstance(statements[1], int):
            database.execute(str(statements[0]), [statements[1]])
            return
        for statement in statements:
            database.execute(str(statement))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "statements",
    [
        ("DELETE FROM trials",),
        ("DELETE FROM trials WHERE number = 2",),
        ("DELETE FROM trials", "DELETE FROM facts"),
        ("DELETE FROM facts WHERE name = 'store'",),
        ("UPDATE facts SET value = '\"another\"' WHERE name = 'store'",),
        ("DROP TABLE trials",),
        ("DROP TABLE trials", "DROP TABLE facts"),
        ("CREATE TABLE more (a)",),
        ("CREATE VIEW more AS SELECT * FROM trials",),
        ("CREATE TRIGGER more AFTER INSERT ON trials BEGIN DELETE FROM trials; END",),
        ("CREATE INDEX more ON trials (loss)",),
        ("CREATE VIRTUAL TABLE more USING fts5(a)",),
        ("ALTER TABLE trials ADD COLUMN more TEXT",),
        ("ALTER TABLE trials ADD COLUMN more TEXT GENERATED ALWAYS AS (upper(origin)) VIRTUAL",),
        ("ALTER TABLE facts RENAME COLUMN value TO content",),
        ("ALTER TABLE trials RENAME TO kept", "CREATE VIEW trials AS SELECT * FROM kept"),
        ("PRAGMA user_version = 99",),
        ("UPDATE trials SET number = -5 WHERE number = 0",),
        ("UPDATE trials SET number = 9000000000 WHERE number = 0",),
        ("UPDATE trials SET duration_seconds = 1e308, fit_seconds = 1e308",),
        ("UPDATE trials SET finished_at = 1e308",),
        ("UPDATE trials SET configuration = '{'",),
        ("UPDATE trials SET configuration = '[]'",),
        ('UPDATE trials SET configuration = \'{"algorithm": "os.system"}\'',),
        ("UPDATE trials SET configuration = '{\"algorithm\": [1]}'",),
        ("UPDATE trials SET configuration = replace(hex(zeroblob(50000)), '00', '[')",),
        ("UPDATE trials SET configuration = x'00ff'",),
        ("UPDATE trials SET configuration = hex(zeroblob(9000000))",),
        ("UPDATE trials SET seed = -1",),
        ("UPDATE trials SET seed = 'one'",),
        ("UPDATE trials SET fidelity = 2",),
        ("UPDATE trials SET fidelity = 'x'",),
        ("UPDATE trials SET status = 'winner'",),
        ("UPDATE trials SET loss = NULL",),
        ("UPDATE trials SET loss = 9e999",),
        ("UPDATE trials SET loss = 'low'",),
        ("UPDATE trials SET loss = x'00'",),
        ("UPDATE trials SET fold_losses = '{}'",),
        ("UPDATE trials SET fold_losses = '[\"a\"]'",),
        ("UPDATE trials SET duration_seconds = -1",),
        ("UPDATE trials SET fit_seconds = 'long'",),
        ("UPDATE trials SET memory_mib = -9e999",),
        ("UPDATE trials SET finished_at = 9e999",),
        ("UPDATE trials SET predictions_crc = -1",),
        ("UPDATE trials SET predictions_crc = 1",),
        ("UPDATE trials SET member_bytes = -1",),
        ("UPDATE facts SET value = 'x' WHERE name = 'curve'",),
        ("UPDATE facts SET value = '[1]' WHERE name = 'curve'",),
        ("UPDATE facts SET value = x'00' WHERE name = 'goal'",),
        ("UPDATE facts SET value = '{\"trials\": -1, \"seconds\": null}' WHERE name = 'goal'",),
        ("UPDATE facts SET value = '{\"trials\": 1e999, \"seconds\": null}' WHERE name = 'goal'",),
        ("UPDATE facts SET value = '[]' WHERE name = 'goal'",),
        ("UPDATE facts SET value = '\"later\"' WHERE name = 'elapsed_seconds'",),
        ("UPDATE facts SET value = '1e308' WHERE name = 'elapsed_seconds'",),
        ("UPDATE facts SET value = '{\"members\": [\"a\"]}' WHERE name = 'ensemble'",),
        ("UPDATE facts SET value = 5 WHERE name = 'ensemble'",),
    ],
    ids=lambda statements: " ".join(statements)[:60],
)
def test_databases_of_strangers_are_refused(run, statements):
    execute(run, *statements)
    check_refused(run, open_for_work)


def test_lost_database_is_noticed(run):
    for name in ("run.sqlite", "run.sqlite-wal", "run.sqlite-shm"):
        (run / name).unlink(missing_ok=True)
    with pytest.raises(CorruptStoreError, match=r"is missing, although the run has begun.*Restore"):
        continue_run(run)
    assert not (run / "run.sqlite").exists()
    (run / "run.sqlite").touch()
    with pytest.raises(CorruptStoreError, match="expected the tables"):
        continue_run(run)


def test_run_written_before_databases_had_names_notices_lost_trials(run):
    changed_json(run / "run.json", ("store",), ...)
    execute(run, "DELETE FROM facts WHERE name IN ('store', 'curve')")
    execute(run, "DELETE FROM paths")  # such runs had none
    open_for_work(run)
    execute(run, "DELETE FROM trials")
    with pytest.raises(CorruptStoreError, match=r"holds 0 finished trials, but model/manifest.json tells of 3"):
        open_for_work(run)
    shutil.rmtree(run / "model")
    (run / "predictions" / "000042.npy").touch()
    with pytest.raises(CorruptStoreError, match=r"predictions/000042 tells of 35 or more"):
        open_for_work(run)


def test_database_left_with_its_log_is_read_and_copied_without_it_noticed(run):
    with contextlib.closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE trials SET finished_at = finished_at + 1")
        moved = run.with_name("moved")
        shutil.copytree(run, moved)
    assert (moved / "run.sqlite-wal").exists()
    assert not read_all(moved)


def test_locked_database_is_called_locked(run, monkeypatch):
    monkeypatch.setattr("cashmere.storage.database._LOCK_SECONDS", 0.2)
    with contextlib.closing(sqlite3.connect(run / "run.sqlite", isolation_level=None)) as database:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("UPDATE trials SET finished_at = finished_at + 1")
        with pytest.raises(RunLockedError, match="locked by another program"):
            run_leaderboard(run)


def test_reading_changes_nothing(run):
    before = snapshot(run)
    assert not {name for name in read_all(run) if name != "open_for_work"}
    for reader in set(READERS) - {open_for_work}:
        reader(run)
    shutil.rmtree(run)
    shutil.copytree(run.with_name("outside"), run)
    before = snapshot(run)
    for reader in set(READERS) - {open_for_work}:
        reader(run)
    after = snapshot(run)
    assert {name: found[::2] for name, found in after.items()} == {name: found[::2] for name, found in before.items()}


def as_nobody(function: Callable[[], object]) -> str:
    """Return what a function returns to a user without rights, or the error that it raises, as text."""
    source, sink = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of forks beside threads
        child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            text = str(function())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(sink, text.encode())
        os._exit(0)
    os.close(sink)
    with open(source, "rb") as file:  # noqa: PTH123
        text = file.read().decode()
    os.waitpid(child, 0)
    return text


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("log", [None, b"", bytes(100)], ids=["no log", "empty log", "log"])
def test_folder_without_write_permission_is_read(finished, log):
    assert len(run_leaderboard(finished)[0]) == 3
    with tempfile.TemporaryDirectory(prefix="cashmere-readable-") as place:
        run = shutil.copytree(finished, Path(place) / "run")
        if log is not None:
            (run / "run.sqlite-wal").write_bytes(log)
        for path in (Path(place), run, *run.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        found = as_nobody(lambda: len(run_leaderboard(run)[0]))
        refused = as_nobody(lambda: RunDirectory.open(run))
        Path(place).chmod(0o755)
    if log:  # SQLite needs another file beside a log, and may not make it
        assert "this user lacks the right" in found and "Copy the whole directory" in found
    else:
        assert found == "3"
    assert refused.startswith("RunDirectoryError") and "cannot be used (Permission denied)" in refused


# ---------------------------------------------------------------- what still works


def moved(run: Path) -> Path:
    return run.rename(run.with_name("moved"))


def without(*names: str) -> Callable[[Path], Path]:
    def remove(run: Path) -> Path:
        for name in names:
            shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()
        return run

    remove.__name__ = f"without {' '.join(names)}"
    return remove


def with_leftovers(run: Path) -> Path:
    for name in (".run.json.0123456789abcdef.tmp", "predictions/.000003.npy.0123456789abcdef.tmp"):
        (run / name).write_bytes(b"half")
    return run


def with_one_file_without_row(run: Path) -> Path:
    shutil.copy(run / "predictions" / "000000.npy", run / "predictions" / "000003.npy")
    shutil.copy(run / "members" / "000000.skops", run / "members" / "000003.skops")
    return run


def linked_itself(run: Path) -> Path:
    (run.parent / "link").symlink_to(run)
    return run.parent / "link"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "change",
    [
        moved,
        linked_itself,
        without("logs"),
        without("prepared"),
        without("model"),
        without("sample.parquet", "report.html"),
        with_leftovers,
        with_one_file_without_row,
    ],
    ids=lambda change: change.__name__,
)
def test_harmless_changes_do_not_stop_a_resume(run, change):
    folder = change(run)
    with guarded(run.parent / "outside"):
        assert len(continue_run(folder, Budget(trials=1)).rows) == 4
    assert not list(folder.rglob("*.tmp"))


def test_run_in_a_folder_with_predictions_of_another_does_not_begin(run, tmp_path):
    folder = tmp_path / "new"
    shutil.copytree(run / "predictions", folder / "predictions")
    with pytest.raises(RunDirectoryError, match="is not empty"):
        RunDirectory.create(folder, demo_table().head(10), [0, 1] * 5, settings=None)


def test_observations_are_taken_from_sound_runs_only(run):
    assert len(read_runs([run], space="default").configurations) == 3
    execute(run, "UPDATE trials SET loss = 9e999")
    with guarded(run.parent / "outside"), pytest.raises(CorruptStoreError):
        read_runs([run], space="default")


# ---------------------------------------------------------------- artefacts and recordings


@pytest.fixture
def artefact(tmp_path) -> Path:
    (tmp_path / "outside").mkdir()
    shutil.copy(SHIPPED / "sklearn12" / "algorithms.txt", tmp_path / "outside")
    return Path(shutil.copytree(SHIPPED / "sklearn12", tmp_path / "artefact"))


def check_artefact_refused(folder: Path) -> None:
    with guarded(folder.parent / "outside"), pytest.raises(ArtefactError, match="artefact: "):
        load_artefact(folder)


@pytest.mark.parametrize("name", ["manifest.json", "arrays.npz", "algorithms.txt"])
@pytest.mark.parametrize("kind", [link, dangling_link, pipe, sub_folder, link_to_device], ids=lambda f: f.__name__)
def test_artefacts_are_regular_files(artefact, name, kind):
    (artefact / name).unlink()
    kind(artefact / name, artefact.parent / "outside" / name)
    check_artefact_refused(artefact)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("format",), 5),
        (("version",), 99),
        (("version",), "1"),
        (("meta_features",), ["one"]),
        (("meta_features",), {}),
        (("signature",), []),
        (("signature",), {}),
        (("signature", "adaboost"), {"x": {"kind": "float", "lower": "low"}}),
        (("sources",), "all"),
        (("sources",), ["one"]),
        (("origins",), []),
        (("candidates",), [1, 2]),
        (("candidates",), []),
        (("files",), {"../outside/algorithms.txt": "0" * 64}),
        (("files",), {"/etc/passwd": "0" * 64}),
        (("files",), {}),
        (("files", "arrays.npz"), "0" * 64),
    ],
)
def test_forged_artefacts_are_refused(artefact, keys, value):
    changed_json(artefact / "manifest.json", keys, value)
    check_artefact_refused(artefact)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (rb"left_child=-?\d+", b"left_child=9"),
        (rb"split_feature=\d+", b"split_feature=-"),
        (rb"num_leaves=\d", b"num_leaves=9"),
        (rb"objective=lambdarank", b"objective=regression"),
        (rb"tree_sizes=\d", b"tree_sizes=9"),
        (rb"Tree=0", b"Tree=7"),
    ],
)
def test_forged_rankers_are_refused_before_lightgbm_reads_them(artefact, pattern, replacement):
    path = artefact / "algorithms.txt"
    forged = re.sub(pattern, replacement, path.read_bytes(), count=1)
    assert forged != path.read_bytes()
    path.write_bytes(forged)
    changed_json(artefact / "manifest.json", ("files", "algorithms.txt"), hashlib.sha256(forged).hexdigest())
    check_artefact_refused(artefact)


def rewritten(folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    """Change the arrays of an artefact, and repair the checksum."""
    with np.load(folder / "arrays.npz") as found:
        arrays = dict(found)
    change(arrays)
    np.savez_compressed(folder / "arrays.npz", **arrays)
    digest = hashlib.sha256((folder / "arrays.npz").read_bytes()).hexdigest()
    changed_json(folder / "manifest.json", ("files", "arrays.npz"), digest)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("candidate_tasks", np.full(1019, 99)),
        ("candidate_tasks", np.zeros(3)),
        ("loss_stds", np.zeros((2, 2))),
        ("meta_features", np.zeros((45, 1))),
        ("priors", np.zeros(3)),
        ("w1", np.zeros((1, 1))),
        ("more", np.zeros(10**6)),
    ],
)
def test_arrays_that_do_not_fit_an_artefact_are_refused(artefact, name, array, monkeypatch):
    monkeypatch.setattr("cashmere.metalearning.artefact._MOST_BYTES", 5 * 10**6)
    rewritten(artefact, lambda arrays: arrays.update({name: array}))
    check_artefact_refused(artefact)


OBSERVATIONS = SHIPPED / "sklearn12" / "observations.npz"


def rezipped(path: Path, part: str, data: bytes) -> None:
    with zipfile.ZipFile(OBSERVATIONS) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, data if name == part else old.read(name))


def described(change: Callable[[dict], None]) -> bytes:
    with zipfile.ZipFile(OBSERVATIONS) as archive:
        content = json.loads(archive.read("description.json"))
    change(content)
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("part", "data"),
    [
        ("description.json", b"[" * 1000 + b"]" * 1000),
        ("description.json", described(lambda d: d.update(format=5))),
        ("description.json", described(lambda d: d.update(tables=5))),
        ("description.json", described(lambda d: d.update(configurations=[[]]))),
        ("description.json", described(lambda d: d["tables"][0].update(n=-1))),
        ("description.json", described(lambda d: d["tables"][0].update(n=10**12))),
        ("description.json", described(lambda d: d["tables"][0].update(name=d["tables"][1]["name"]))),
        ("description.json", described(lambda d: d.update(configurations=[]))),
        ("losses.npy", pickled()),
        ("losses.npy", npy(np.zeros(3))),
        ("losses.npy", npy(np.zeros(3), shape=(10**12,))),
        ("configurations.npy", npy(np.array(["a"] * 10))),
        ("seconds.npy", bytes(10**7)),
    ],
    ids=range(13),
)
def test_forged_recordings_are_refused(tmp_path, part, data, monkeypatch):
    monkeypatch.setattr("cashmere.metalearning.observations._MOST_BYTES", 10**7)
    (tmp_path / "outside").mkdir()
    rezipped(tmp_path / "o.npz", part, data)
    with guarded(tmp_path / "outside"), pytest.raises(CorruptStoreError, match=r"o\.npz: "):
        SourceObservations.load(tmp_path / "o.npz")


@pytest.mark.parametrize("kind", [link, dangling_link, pipe, sub_folder, link_to_device], ids=lambda f: f.__name__)
def test_recordings_are_regular_files(tmp_path, kind):
    (tmp_path / "outside").mkdir()
    shutil.copy(OBSERVATIONS, tmp_path / "outside" / "o.npz")
    kind(tmp_path / "o.npz", tmp_path / "outside" / "o.npz")
    with guarded(tmp_path / "outside"), pytest.raises(CorruptStoreError, match=r"o\.npz: "):
        SourceObservations.load(tmp_path / "o.npz")
