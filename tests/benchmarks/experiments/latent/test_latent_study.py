from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toy_artefact import toy_artefact

from benchmarks.__main__ import main
from benchmarks.experiments.latent import report as latent_report
from benchmarks.experiments.latent import study as latent_study
from benchmarks.experiments.latent.runs import (
    Target,
    check_fair,
    choose_targets,
    find_learned,
    find_strategy,
    load_targets,
    make_key,
    run_number,
    search,
)
from benchmarks.recordings.replay_runs import Run, RunFiles
from benchmarks.recordings.replay_study import LabelledStrategy
from cashmere.exceptions import ArtefactError, InvalidParameterError, ObservationsError, UnknownNameError
from cashmere.metalearning.meta_features import META_FEATURES
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.pretraining.collection import draw_configurations
from cashmere.pretraining.collection.configurations import REFERENCE
from cashmere.space.named.registry import make_space

CONFIGURATIONS = tuple(draw_configurations(make_space("sklearn12", REFERENCE), 3, seed=0))
N_TRIALS = 27


def made_observations(seed: int = 0) -> SourceObservations:
    rng = np.random.default_rng(seed)
    n = len(CONFIGURATIONS)
    tables = []
    for name in ("alpha", "beta", "gamma"):
        losses = rng.permutation(n) / 100 + 0.001
        losses[5] = np.nan
        tables.append(
            SourceTable(
                name=name,
                origin=f"origin of {name}",
                meta_features=dict.fromkeys(META_FEATURES, 0.5) | {"log_rows": rng.random()},
                configurations=np.arange(n),
                losses=losses,
                seconds=np.full(n, 0.1),
            )
        )
    return SourceObservations(space="sklearn12", metric="accuracy", configurations=CONFIGURATIONS, tables=tuple(tables))


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("observations") / "observations.npz"
    made_observations().save(path)
    return path


@pytest.fixture(scope="module")
def targets(path) -> list[Target]:
    return load_targets(path)


@pytest.fixture(scope="module")
def artefact(targets, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("artefact")
    toy_artefact(targets[0].space).save(folder)
    return folder


def command(monkeypatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "latent", *map(str, words)])
    main()


# ---------------------------------------------------------------- one run


def test_all_strategies_begin_with_the_same_two_configurations_of_every_algorithm(targets):
    random, _ = search(targets[0], "random", 3, n_trials=N_TRIALS, artefact=None)
    bandit, _ = search(targets[0], "bandit_bo", 3, n_trials=N_TRIALS, artefact=None)
    assert random[:24] == bandit[:24]
    assert [i // 3 for i in random[:24]] == [m for m in range(12) for _ in range(2)]
    assert len(set(random)) == len(set(bandit)) == N_TRIALS
    others = [search(targets[t], "random", seed, n_trials=25, artefact=None)[0] for t, seed in ((0, 4), (1, 3))]
    assert all(other[:24] != random[:24] for other in others)


def test_same_seed_chooses_the_same(targets):
    first, again = (search(targets[1], "bandit_bo", 0, n_trials=N_TRIALS, artefact=None)[0] for _ in range(2))
    assert first == again


def test_strategies_that_rank_by_other_tables_decide_from_the_first_evaluation_on(targets, artefact):
    strategy = find_strategy("ahs_ml", targets[0], 0, artefact)
    chosen, _ = search(targets[0], "ahs_ml", 0, n_trials=N_TRIALS, artefact=artefact)
    assert strategy.meta_features == targets[0].table.meta_features
    listed = strategy.blocks.encoder.encode([targets[0].catalogue[i] for i in chosen])
    n = len(strategy.ranked_rows)
    np.testing.assert_array_equal(listed[:n], strategy.ranked_rows[:N_TRIALS])


def test_failed_evaluations_do_not_count_as_losses(targets):
    np.testing.assert_array_equal(
        latent_report.best_losses(targets[0], [5, 0, 1]),
        [np.nan, targets[0].losses[0], min(targets[0].losses[:2])],
    )
    chosen, _ = search(targets[0], "random", 0, n_trials=36, artefact=None)
    assert sorted(chosen) == list(range(36))  # the one that fails among them


def test_every_run_draws_its_own_random_embedding(targets, artefact):
    text = "latent:embedding=random,embedding_seed={run}"
    seeds = {find_strategy(text, target, seed, artefact).embedding_seed for target in targets for seed in range(4)}
    assert seeds == {run_number(target.name, seed) for target in targets for seed in range(4)} and len(seeds) == 12


# ---------------------------------------------------------------- what is the same run


def key_of(target: Target, n_trials: int = N_TRIALS, learned: str = ""):
    return make_key(target, "random", 0, n_trials=n_trials, learned=learned)


def test_losses_recorded_again_have_new_runs_on_that_table_only(targets):
    table = targets[0].table
    losses = table.losses.copy()
    losses[7] += 0.01
    for changed in (replace(table, losses=losses), replace(table, meta_features={})):
        assert key_of(replace(targets[0], table=changed)) != key_of(targets[0])
    assert key_of(targets[0]) == key_of(Target(table, targets[0].space, targets[0].catalogue))
    # Files keep float32: what is read from them belongs to the runs on what was written.
    written = replace(targets[0], table=made_observations().tables[0])
    assert key_of(written) == key_of(targets[0])


def test_other_budgets_and_artefacts_are_other_runs(targets):
    assert len({key_of(targets[0]), key_of(targets[0], n_trials=26), key_of(targets[0], learned="a")}) == 3


def test_only_strategies_that_look_at_an_artefact_depend_on_it(targets, artefact):
    digests = [find_learned(text, targets[0], artefact)[1] for text in ("latent:embedding=ranked", "as_ml", "ahs_ml")]
    assert len(set(digests)) == 1 and len(digests[0]) == 12
    for text in ("random", "bandit_bo", "latent:embedding=scratch"):
        assert find_learned(text, targets[0], artefact) is None


def test_missing_artefact_is_reported_immediately(targets, tmp_path):
    with pytest.raises(ArtefactError, match=r"no manifest\.json"):
        find_learned("ahs_ml", targets[0], tmp_path)


# ---------------------------------------------------------------- fair comparisons


def test_targets_and_sources_share_no_raw_data(targets):
    made = toy_artefact(targets[0].space)
    check_fair(targets, made)
    with pytest.raises(ObservationsError, match="beta shares raw data with source 1"):
        check_fair(targets, replace(made, origins=("a", "origin of beta", "c", "d")))
    with pytest.raises(ObservationsError, match="gamma shares raw data with gamma"):
        check_fair(targets, replace(made, sources=("a", "b", "c", "gamma")))


def test_tables_without_meta_features_are_named(targets):
    bare = replace(targets[0], table=replace(targets[0].table, meta_features={}))
    with pytest.raises(ObservationsError, match="no meta-features of alpha"):
        check_fair([bare, *targets[1:]], toy_artefact(targets[0].space))


def test_the_command_refuses_an_artefact_made_from_its_tables(path, targets, tmp_path, monkeypatch):
    made = replace(toy_artefact(targets[0].space), origins=("origin of gamma", "b", "c", "d"))
    made.save(tmp_path / "artefact")
    words = ["--observations", path, "--artefact", tmp_path / "artefact", "--trials", N_TRIALS]
    with pytest.raises(SystemExit, match="gamma shares raw data with source 0"):
        command(monkeypatch, *words, "--strategies", "as_ml", "random", "--reference", "random")


def test_impossible_numbers_of_evaluations_are_refused(targets):
    assert choose_targets(targets, ["beta"], 36) == [targets[1]]
    for n_trials in (24, 37):
        with pytest.raises(InvalidParameterError, match="at most the 36 configurations recorded of table 'alpha'"):
            choose_targets(targets, [], n_trials)
    with pytest.raises(UnknownNameError, match=r"delta.*Known: alpha, beta, gamma"):
        choose_targets(targets, ["delta"], 30)


# ---------------------------------------------------------------- tables


def made_run(target: Target, label: str, seed: int, order: list[int], seconds: float = 1.2) -> tuple[str, Run]:
    """Return a run that begins with the 24 worst configurations, then takes those of these places, 0 the best."""
    by_loss = np.argsort(np.where(np.isnan(target.losses), np.inf, target.losses))
    chosen = [*by_loss[12:].tolist(), *by_loss[order].tolist()]
    text = label.partition("=")[2] or label
    key = make_key(target, text, seed, n_trials=len(chosen), learned="")
    return label, Run(key=key, trials=len(chosen), chosen=chosen, suggest_seconds=seconds, curve=[], code="c")


@pytest.fixture
def found(targets):
    """Three iterations; losses are the places in the order of the recorded ones."""
    return [
        made_run(targets[0], "latent", 0, [3, 2, 0]),
        made_run(targets[0], "random", 0, [1, 5, 6]),
        made_run(targets[0], "smac", 0, [4, 7, 8]),
        made_run(targets[0], "latent", 1, [9, 8, 7]),
        made_run(targets[0], "random", 1, [4, 3, 11]),
        made_run(targets[0], "smac", 1, [4, 5, 2]),
        made_run(targets[1], "latent", 0, [6, 1, 2]),
        made_run(targets[1], "random", 0, [6, 5, 4]),
        made_run(targets[1], "smac", 0, [0, 1, 2]),
        made_run(targets[1], "latent", 1, [1, 2, 3]),
        made_run(targets[1], "random", 1, [2, 3, 4]),
        made_run(targets[1], "smac", 1, [11, 10, 9]),
    ]


def test_ranks_match_those_computed_by_hand(found, targets):
    runs = latent_report.tidy(found, targets)
    assert sorted(runs["trials"].unique()) == [0, 1, 2, 3]
    # Losses are 0.001 + place / 100 but for the place of the failure; compare places.
    last = runs[runs["trials"] == 3].set_index(["recording", "strategy", "seed"])["validation"]
    for label, run in found:
        target = next(t for t in targets if t.name == run.key.recording)
        assert last[run.key.recording, label, run.key.seed] == min(target.losses[run.chosen[24:]])
    # alpha: latent (0, 7), random (1, 3), smac (4, 2); beta: latent (1, 1), random (4, 2), smac (0, 9).
    means = latent_report.ranks_of_means(runs, 3)
    assert means.loc["alpha"].rank().tolist() == [3, 1, 2]  # 3.5, 2, 3
    assert means.loc["beta"].tolist() == [1, 2, 3]  # 1, 3, 4.5
    within = latent_report.ranks_within_seeds(runs, 3)
    assert within.loc["alpha"].tolist() == [2, 2, 2]  # (1, 2, 3) and (3, 2, 1)
    assert within.loc["beta"].tolist() == [1.5, 2.5, 2]  # (2, 3, 1) and (1, 2, 3)
    assert latent_report.ranks_of_means(runs, 0).to_numpy().tolist() == [[2, 2, 2], [2, 2, 2]]


def test_tables_describe_their_numbers(found, targets):
    runs = latent_report.tidy(found, targets)
    shown = {table.title: table for table in latent_report.make_tables(runs, found, targets[:2], "latent")}
    ranks = shown["Average ranks of mean losses"]
    assert ranks.columns == ("strategy", "0", "3")
    assert ranks.rows == (("latent", "2.00", "2.00"), ("random", "2.00", "1.50"), ("smac", "2.00", "2.50"))
    assert ranks.best == {(0, 1), (1, 1), (2, 1), (1, 2)}
    against = shown["Against latent after 3 iterations"]
    assert [row[:3] for row in against.rows] == [("random", "0/2/0", "1/0/1"), ("smac", "0/2/0", "1/0/1")]
    assert shown["Final average ranks beside the paper's"].rows[0] == ("latent", "2.00", "2.25")
    cost = {row[0]: row for row in shown["Cost"].rows}
    assert cost["smac"][1:3] == ("4", "400.0")  # 1.2 s for 3 decisions
    assert cost["smac"][4] == "2.7"
    losses = shown["Losses after 3 iterations"]
    assert losses.columns[-1] == "lowest recorded" and losses.rows[0][-1] == f"{np.nanmin(targets[0].losses):.4f}"
    assert shown["Mean losses"].rows[0][0] == "latent"


def test_ablations_have_no_place_in_the_ranks_beside_the_papers(found, targets):
    more = found + [
        made_run(run_target, "latent_scratch", seed, [0, 1, 2]) for run_target in targets[:2] for seed in (0, 1)
    ]
    table = latent_report.published_table(latent_report.tidy(more, targets), 3)
    assert [row[:2] for row in table.rows] == [("latent", "2.00"), ("smac", "2.50"), ("random", "1.50")]
    assert latent_report.published_table(latent_report.tidy(more[-4:], targets), 3) is None


def test_accuracies_stand_beside_table_2_where_the_paper_has_the_table(found, targets):
    names = {"alpha": "leaf", "beta": "own"}
    renamed = [replace(target, table=replace(target.table, name=names[target.name])) for target in targets[:2]]
    named = [(label, replace(run, key=replace(run.key, recording=names[run.key.recording]))) for label, run in found]
    runs = latent_report.tidy(named, renamed)
    table = latent_report.accuracy_table(runs, renamed, 3)
    assert table.columns == ("table", "latent", "random", "smac")
    leaf, mean, rank = table.rows
    places = runs[(runs["recording"] == "leaf") & (runs["trials"] == 3)].groupby("strategy")["validation"].mean()
    printed = ("0.7282", "0.6777", "0.6777")  # Proposed, Random, SMAC on data set 1482
    assert leaf == ("leaf", *(f"{1 - loss:.4f} ({said})" for loss, said in zip(places, printed, strict=True)))
    assert mean[1:] == leaf[1:]
    assert rank == ("average rank", "3.00 (1.00)", "1.00 (2.50)", "2.00 (2.50)")
    assert table.best == {(0, 2)}
    assert latent_report.accuracy_table(latent_report.tidy(found, targets), targets, 3) is None
    losses = [replace(t, table=replace(t.table, metric="log_loss")) for t in renamed]
    assert latent_report.accuracy_table(runs, losses, 3) is None


def test_published_ranks_are_those_of_table_2():
    published = latent_report.published_accuracies()
    assert published.shape == (40, 8) and published.loc[1482, "smac"] == 0.6777
    ranks = (1 - published).rank(axis=1).mean()
    assert ranks[["latent", "rb_smac", "bandit_bo", "random"]].tolist() == [2.25, 3.3, 4.5, 6.325]


def test_chart_shows_every_strategy_over_all_evaluations(found, targets):
    chart = latent_report.rank_chart(latent_report.tidy(found, targets), 24)
    assert chart.startswith("<svg xmlns=")
    assert chart.count('class="line"') == 3 + 2 * 3
    assert "evaluations, 24 of them initial" in chart and "average rank of mean losses" in chart


# ---------------------------------------------------------------- the command


@pytest.mark.slow
def test_command_continues_where_it_was_stopped(path, tmp_path, monkeypatch, capsys):
    words = ["--datasets", "alpha", "beta", "--trials", 26, "--workers", 1, "--work", tmp_path / "work"]
    words += ["--strategies", "chance=random", "bandit_bo", "--reference", "chance"]
    files = ["--out", tmp_path / "out"]
    run_all = latent_study.search_missing

    def stopped(path, missing, **options):
        run_all(path, missing[:3], **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(latent_study, "search_missing", stopped)
    command(monkeypatch, "--observations", path, "--seeds", 1, *words)
    shown = capsys.readouterr().out
    assert "0 of 4 runs are finished" in shown and "Stopped. What is finished is kept" in shown
    assert "Of 2 pairs of table and seed the 1 are used" in shown
    monkeypatch.setattr(latent_study, "search_missing", run_all)
    command(monkeypatch, "--observations", path, "--seeds", 1, *words, *files)
    shown = capsys.readouterr().out
    assert "3 of 4 runs are finished" in shown and "2 tables, 1 seeds, 24 initial and 2 further evaluations" in shown
    rows = pd.read_csv(tmp_path / "out" / "results.csv")
    assert list(rows.columns) == ["table", "strategy", "seed", "loss_0", "loss_2", "ms_per_suggestion"]
    assert len(rows) == 4 and set(rows["strategy"]) == {"chance", "bandit_bo"}
    assert rows.groupby("table")["loss_0"].nunique().tolist() == [1, 1]
    assert "### Average ranks of mean losses" in (tmp_path / "out" / "summary.md").read_text()
    page = (tmp_path / "out" / "index.html").read_text()
    for title in ("Average ranks of mean losses", "Do the average ranks differ", "Speed-up", "seconds per suggestion"):
        assert title in page
    for name in ("ranks", "critical_difference"):
        assert (tmp_path / "out" / f"{name}.svg").read_text() in page

    # Runs on one table do not depend on what is recorded of another.
    other = made_observations()
    losses = other.tables[1].losses / 2
    changed = replace(other, tables=(other.tables[0], replace(other.tables[1], losses=losses)))
    changed.save(tmp_path / "other.npz")
    words[words.index("--workers") + 1] = 0
    command(monkeypatch, "--observations", tmp_path / "other.npz", "--seeds", 1, *words)
    assert "2 of 4 runs are finished" in capsys.readouterr().out


def test_mistakes_are_reported_before_anything_runs(path, tmp_path, monkeypatch, capsys):
    words = ["--observations", path, "--tables", "alpha", "--seeds", 1, "--trials", 26, "--work", tmp_path / "work"]
    words += ["--reference", "random", "--strategies", "random"]
    with pytest.raises(SystemExit, match=r"UnknownNameError: .*no_such"):
        command(monkeypatch, *words, "no_such")
    with pytest.raises(SystemExit, match="There are no runs of random"):
        command(monkeypatch, *words, "--workers", 0)
    with pytest.raises(SystemExit, match="must be one of --strategies"):
        command(monkeypatch, *words, "--reference", "latent")
    with pytest.raises(SystemExit, match="same label"):
        command(monkeypatch, *words, "random")
    assert not RunFiles(tmp_path / "work" / "latent").folder.exists()


def test_the_strategies_of_the_paper_have_the_labels_of_the_report():
    labels = {LabelledStrategy.of(text).label for text in latent_study.STRATEGIES}
    assert set(latent_report.PAPER_NAMES) <= labels
    assert labels - set(latent_report.PAPER_NAMES) == {"latent_random", "latent_scratch"}
