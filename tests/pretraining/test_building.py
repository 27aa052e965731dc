from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cashmere.exceptions import ObservationsError
from cashmere.metalearning.artefact import load_artefact
from cashmere.metalearning.meta_features import META_FEATURES
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.pretraining import building
from cashmere.pretraining.building import BuildSettings, SearchFile, build_artefact
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from contracts.strategy_contract import cash_space

pytestmark = pytest.mark.long

SETTINGS = BuildSettings(n_steps=40, n_iterations=3, n_repeats=1)


def observe(n_tables: int = 5, n_configurations: int = 40) -> SourceObservations:
    """Return made-up losses; tables with the same origin have the same ones."""
    rng = np.random.default_rng(0)
    encoder = SpaceEncoder(cash_space())
    rows = encoder.sample(3 * n_configurations, rng)
    rows = rows[np.unique(encoder.keys(rows), return_index=True)[1]][:n_configurations]
    configurations = tuple(
        {name: getattr(value, "item", lambda value=value: value)() for name, value in encoder.decode(row).items()}
        for row in rows
    )
    tables = []
    for i in range(n_tables):
        kind = np.random.default_rng(i // 2)  # two of each origin
        losses = kind.random(4)[AlgorithmBlocks(encoder).tasks(rows)] * 0.3 + 0.2 * kind.random(len(rows))
        losses[i] = np.nan
        tables.append(
            SourceTable(
                name=f"table {i}",
                origin=f"origin {i // 2}",
                meta_features=dict.fromkeys(META_FEATURES, 0.0) | {"log_rows": kind.random() + 0.01 * i},
                configurations=np.arange(len(rows)),
                losses=losses,
                seconds=np.full(len(rows), 0.1),
            )
        )
    return SourceObservations(space="made up", metric="accuracy", configurations=configurations, tables=tuple(tables))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    return build_artefact(observe(), cash_space(), work=work, settings=SETTINGS), work


def test_an_artefact_serves_its_space_and_comes_back_from_a_folder(built, tmp_path):
    artefact, _ = built
    blocks = AlgorithmBlocks(SpaceEncoder(cash_space()))
    artefact.save(tmp_path / "artefact")
    loaded = load_artefact(tmp_path / "artefact")
    assert loaded.serves(blocks) and loaded.sources == tuple(f"table {i}" for i in range(5))
    table = observe().tables[2].meta_features
    assert sorted(loaded.rank_embeddings(table)) == list(range(5))
    assert sorted(loaded.rank_algorithms(table, blocks)) == list(range(4))
    assert len(loaded.priors) == 4 and len(loaded.candidates) == 40
    assert loaded.notes["settings"]["n_iterations"] == 3


def test_tables_of_one_origin_are_not_searched_with_each_others_embeddings(built):
    losses = np.array(built[0].notes["search_losses"])
    assert np.isnan(losses[0, 1]) and np.isnan(losses[1, 0]) and np.isnan(np.diag(losses)).all()
    assert np.isfinite(losses[0, 2:]).all()


def test_the_same_observations_give_the_same_artefact_with_any_number_of_workers(built, tmp_path):
    artefact, _ = built
    again = build_artefact(observe(), cash_space(), work=tmp_path, settings=SETTINGS, n_workers=2)
    np.testing.assert_array_equal(again.encoders.w3, artefact.encoders.w3)
    assert again.rankers == artefact.rankers
    np.testing.assert_array_equal(again.priors[1].theta, artefact.priors[1].theta)


def test_a_stopped_build_is_continued(built, tmp_path):
    artefact, work = built
    lines = (work / "searches.ndjson").read_bytes().splitlines(keepends=True)
    assert len(lines) == 5 * 5 - 5 - 2 * 2  # no table with its own embedding, nor with one of the same origin
    (tmp_path / "searches.ndjson").write_bytes(b"".join(lines[:7]) + lines[7][:20])
    said = []
    again = build_artefact(observe(), cash_space(), work=tmp_path, settings=SETTINGS, report=said.append)
    assert sum(text.startswith("Searched") for text in said) == 3  # 3 + 3 + 1 of 3 + 3 + 3 + 3 + 4 were there
    assert again.rankers == artefact.rankers
    assert SearchFile(tmp_path / "searches.ndjson").read() == SearchFile(work / "searches.ndjson").read()


@pytest.mark.parametrize(
    "line", ['["c", "d", null]', '["c", "d", "low"]', '[["c"], "d", 1]', '["c", "d", 1' + 400 * "0" + "]"]
)
def test_lines_that_hold_no_result_are_skipped(tmp_path, line):
    searches = SearchFile(tmp_path / "searches.ndjson")
    searches.path.write_text(f'{line}\n["a", "b", 0.5]\n')
    assert searches.read() == {("a", "b"): 0.5}


def test_searches_are_kept_as_soon_as_they_end(tmp_path, monkeypatch):
    search, names = building._search_one, []

    def interrupted(source, *arguments):
        names.append(source.table.name)
        if len(names) == 3:
            raise KeyboardInterrupt
        return search(source, *arguments)

    monkeypatch.setattr(building, "_search_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_artefact(observe(), cash_space(), work=tmp_path, settings=SETTINGS)
    assert len(SearchFile(tmp_path / "searches.ndjson").read()) == 3 + 3


def test_further_tables_are_searched_with_the_new_embeddings_only(built, tmp_path):
    _, work = built
    shutil.copy(work / "searches.ndjson", tmp_path)
    before = SearchFile(tmp_path / "searches.ndjson").read()
    more = build_artefact(observe(6), cash_space(), work=tmp_path, settings=SETTINGS)
    after = SearchFile(tmp_path / "searches.ndjson").read()
    assert before.items() <= after.items()
    assert len(after) == 6 * 6 - 6 - 3 * 2 and len(more.sources) == 6


def test_unusable_observations_are_refused(tmp_path):
    with pytest.raises(ObservationsError, match="at least 3 origins"):
        build_artefact(observe(4), cash_space(), work=tmp_path, settings=SETTINGS)
    observations = observe()
    bare = replace(observations, tables=tuple(replace(table, meta_features={}) for table in observations.tables))
    with pytest.raises(ObservationsError, match="Table 'table 0' has no meta_features"):
        build_artefact(bare, cash_space(), work=tmp_path, settings=SETTINGS)
    foreign = replace(observations, configurations=({"algorithm": "unknown"},) * len(observations.configurations))
    with pytest.raises(ObservationsError, match="at least 3 origins"):
        build_artefact(foreign, cash_space(), work=tmp_path, settings=SETTINGS)


def test_configurations_of_another_space_are_left_out(tmp_path):
    observations = observe()
    mixed = replace(observations, configurations=({"algorithm": "unknown"}, *observations.configurations[1:]))
    said = []
    artefact = build_artefact(mixed, cash_space(), work=tmp_path, settings=SETTINGS, report=said.append)
    assert said[0] == "Left out 1 configurations that are not in the space made up"
    assert len(artefact.candidates) == 39


def test_without_pytorch_the_command_to_install_it_is_named_and_searches_go_on(tmp_path):
    """Pre-training needs the extra; searching with an artefact, and everything else, does not."""
    code = """
import sys
class WithoutTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, WithoutTorch())
from pathlib import Path
sys.path[:0] = ["tests", "tests/support", "tests/pretraining"]
from test_building import SETTINGS, observe
from contracts.strategy_contract import cash_space, run_trials
from toy_artefact import toy_artefact
from cashmere.pretraining.building import build_artefact
from cashmere.exceptions import MissingDependencyError
from cashmere.strategies import make_strategy
toy_artefact(cash_space()).save(Path(sys.argv[1]))
strategy = make_strategy("latent:n_initial=1", cash_space(), artefact=sys.argv[1]).for_table({})
print(len(run_trials(strategy, 8)))
try:
    build_artefact(observe(), cash_space(), work=Path(sys.argv[1]), settings=SETTINGS)
except MissingDependencyError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("8\n") and "pip install 'cashmere-automl[latent]'" in done.stdout
