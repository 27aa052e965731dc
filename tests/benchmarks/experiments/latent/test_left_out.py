from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from toy_artefact import toy_artefact, toy_observations

from benchmarks.experiments.latent.left_out import regrets, save_without, shares_left, summarise, without
from benchmarks.experiments.latent.runs import load_targets, search
from cashmere.metalearning.artefact import OBSERVATIONS, SHIPPED, load_artefact
from cashmere.metalearning.observations import SourceObservations
from contracts.strategy_contract import cash_space


def test_an_origin_is_left_out_of_the_artefact_and_of_its_observations(tmp_path):
    toy_observations(cash_space()).save(tmp_path / "whole" / OBSERVATIONS)
    toy_artefact(cash_space()).save(tmp_path / "whole")
    folder = save_without(tmp_path / "whole", "origin 2", tmp_path / "parts")
    names = ["source 0", "source 1", "source 3"]
    whole, left = load_artefact(tmp_path / "whole"), load_artefact(folder)
    assert list(left.sources) == names
    assert [table.name for table in SourceObservations.load(folder / OBSERVATIONS).tables] == names
    np.testing.assert_array_equal(left.encoders.w1[2], whole.encoders.w1[3])
    np.testing.assert_array_equal(left.meta_features, whole.meta_features[[0, 1, 3]])
    assert without(whole, "unknown").sources == whole.sources


def test_regrets_are_those_of_the_chosen_configurations(tmp_path):
    target = load_targets(SHIPPED / "sklearn12" / OBSERVATIONS)[0]
    lowest = int(np.nanargmin(target.losses))
    others = [i for i in range(60) if i != lowest and np.isfinite(target.losses[i])]
    chosen = [*others[:15], lowest, *others[15:40]]
    found = regrets(target, chosen, 10)
    assert found[0] == np.nanmin(target.losses[chosen[:10]]) - target.losses[lowest]
    assert found[1:] == [0.0, 0.0, 0.0]


@pytest.mark.slow
def test_a_table_is_searched_with_the_artefact_of_the_others(tmp_path):
    whole = SHIPPED / "sklearn12"
    target = next(target for target in load_targets(whole / OBSERVATIONS) if target.name == "iris")
    folder = save_without(whole, target.table.origin, tmp_path)
    assert target.name not in load_artefact(folder).sources
    chosen, _ = search(target, "agreeing_sources", 0, n_trials=28, artefact=folder)
    assert len(set(chosen)) == 28


def test_shares_are_means_of_tables_and_the_reference_has_no_p_value():
    rows = pd.DataFrame(
        [
            {"table": table, "strategy": strategy, "seed": seed, "at_start": start}
            | {f"after_{n}": start * share for n in (10, 20, 30)}
            for strategy, share in (("mine", 0.25), ("other", 0.5))
            for table, start in (("a", 0.4), ("b", 0.2), ("c", 0.0))
            for seed in (0, 1)
        ]
    )
    assert set(shares_left(rows).reset_index()["table"]) == {"a", "b"}
    found = summarise(rows, "other")
    assert found.loc["mine", "after 10"] == pytest.approx(0.25) and found.loc["mine", "tables"] == 2
