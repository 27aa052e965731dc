"""The contest of a run: in the store, as data, in the report and on the command line."""

from __future__ import annotations

import json
import math
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
from fake_runs import hostile_texts, make_run, make_space
from hypothesis import given, settings
from hypothesis import strategies as st
from report_page import check_inert
from typer.testing import CliRunner

from cashmere.analysis import RecordedContest, contest_fact, read_contest, recorded_contest, summarise_contest
from cashmere.analysis.contest_summary import MAX_STAGES, stages
from cashmere.cli import app
from cashmere.contests import Contender, Ledger, Rules, derive_ledger
from cashmere.data.frames import to_frame
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.records.budget import Budget, Deadline
from cashmere.records.work_budget import WorkBudget
from cashmere.report import render_report, summarise_run, write_report
from cashmere.run import RunDirectory, RunSettings, Session
from cashmere.run.progress import Silence
from cashmere.storage.store import RunStore
from cashmere.strategies import make_strategy

# ---------------------------------------------------------------- contests played without a run


def play(losses_of, names, rules, *, n_trials, budget=None, scale=None) -> RecordedContest:
    """Play a contest: the sub-space with the fewest trials is next; `losses_of(i, n)` is the loss of its n-th trial."""
    members: list[int] = []
    losses: list[float] = []
    ledger = None
    for _ in range(n_trials + 1):
        per_part = [[loss for loss, m in zip(losses, members, strict=True) if m == i] for i in range(len(names))]
        candidates = [
            Contender(name=name, losses=np.array(found), seconds=np.ones(len(found)))
            for name, found in zip(names, per_part, strict=True)
        ]
        ledger = derive_ledger(candidates, rules, budget=budget, known=ledger)
        if len(members) == n_trials:
            break
        quotas = zip(ledger.open.alive, ledger.open.quotas, strict=True)
        ready = [i for i, quota in quotas if quota is None or len(per_part[i]) < quota]
        turn = min(ready, key=lambda i: len(per_part[i]))
        losses.append(losses_of(turn, len(per_part[turn])))
        members.append(turn)
    return RecordedContest(ledger=ledger, memberships=tuple(members), losses=np.array(losses), scale=scale)


def by_value(names=("svm", "forest", "knn"), n_trials=20, **options) -> RecordedContest:
    """A contest by the highest value in which the second sub-space is the best."""
    rules = Rules(b_first=2, n_initial=2)
    return play(
        lambda i, n: 0.1 * (1 + (i + 2) % 3) - 0.001 * n,
        names, rules, n_trials=n_trials, budget=WorkBudget(trials=20), **options,
    )  # fmt: skip


def by_statistics(n_subspaces, *, spread, n_trials=150, seed=0, fails=0.0) -> RecordedContest:
    rng = np.random.default_rng(seed)
    names = [f"part {i}" for i in range(n_subspaces)]
    rules = Rules(elimination="statistical", n_initial=2)

    def losses_of(i, n):
        return float("nan") if rng.random() < fails else 1 - 0.002 * n - spread * i + 0.05 * rng.random()

    return play(losses_of, names, rules, n_trials=n_trials)


def test_result_is_described_in_words():
    found = summarise_contest(by_value(scale=METRICS["accuracy"]))
    assert found["sentence"] == (
        "forest won against 2 other sub-spaces after 6 trials (best score 0.915). "
        "It got 16 of the 20 trials, each of the others 2."
    )
    assert found["decided"]
    assert [each["name"] for each in found["subspaces"]] == ["forest", "knn", "svm"]
    assert [each["round"] for each in found["subspaces"]] == [None, 0, 0]
    first, second = found["stages"]
    assert (first["label"], first["alive"], first["trials"], first["end"]) == ("0", 3, [2, 2], 6)
    assert (second["label"], second["alive"], second["trials"], second["open"]) == ("1", 1, [14, 14], True)


def test_reasons_name_scores_or_losses():
    reasons = {
        name: summarise_contest(by_value(scale=metric))["stages"][0]["dropped"][0]["reason"]
        for name, metric in (("accuracy", METRICS["accuracy"]), ("rmse", METRICS["rmse"]), ("own", None))
    }
    assert reasons == {
        "accuracy": "best score 0.701; the 1 kept of 3 reach 0.901",
        "rmse": "best score 0.299; the 1 kept of 3 reach 0.099",
        "own": "best loss 0.299; the 1 kept of 3 reach 0.099",
    }


def test_reasons_of_earlier_versions_are_shown_as_written():
    contest = by_value(scale=METRICS["accuracy"])
    fact = json.loads(json.dumps(contest.to_json()))
    assert fact["ledger"]["rounds"][0]["reasons"][0]["kind"] == "worse loss"
    rows = [{"loss": loss} for loss in contest.losses]
    assert recorded_contest(fact, rows).ledger == contest.ledger
    fact["ledger"]["rounds"][0]["reasons"] = ["best loss 0.299; the 1 kept of 3 reach 0.099", "too late"]
    earlier = recorded_contest(fact, rows, METRICS["accuracy"])
    dropped = summarise_contest(earlier)["stages"][0]["dropped"]
    assert [each["reason"] for each in dropped] == ["best loss 0.299; the 1 kept of 3 reach 0.099", "too late"]
    assert earlier.frame()["reason"].dropna().tolist()[1] == "too late"


@pytest.mark.parametrize(
    "reason", [{"kind": "worse loss"}, {"kind": "exhausted", "n_configurations": "x"}, {}, None, 3]
)
def test_reasons_that_cannot_be_read_are_refused(reason):
    contest = by_value()
    fact = json.loads(json.dumps(contest.to_json()))
    fact["ledger"]["rounds"][0]["reasons"][0] = reason
    with pytest.raises(ValueError, match="expected the ledger"):
        recorded_contest(fact, [{"loss": loss} for loss in contest.losses])


def test_rounds_without_elimination_are_joined_with_the_next_one():
    contest = by_statistics(3, spread=0.002, n_trials=180, seed=1)
    assert len(contest.ledger.rounds) > 30
    joined = stages(contest)
    assert len(joined) <= 3
    assert all(not each.dropped for stage in joined for each in stage.rounds[:-1])
    test = summarise_contest(contest)["stages"][-1]["test"]
    assert ("Friedman: χ² = " in test or "Wilcoxon: W = " in test) and "in the rounds before" in test


def test_undecided_and_single_sub_space_contests_are_described():
    found = summarise_contest(by_statistics(3, spread=0.0, n_trials=30))
    assert found["sentence"].startswith("After 30 trials 3 of 3 sub-spaces are left; part ")
    assert "no contest; it got all 9 trials." in summarise_contest(by_value(["all"], 9))["sentence"]
    assert "no trial has finished yet" in summarise_contest(by_value(n_trials=0))["sentence"]
    assert summarise_contest(by_value(n_trials=0))["stages"] == []


def test_single_trial_is_in_the_singular():
    found = summarise_contest(by_value(("svm", "forest"), n_trials=1))
    assert found["sentence"] == "After 1 trial 2 of 2 sub-spaces are left; svm leads (best loss 0.3). " + (
        "It got 1 trial, the other 0."
    )


def test_exhausted_sub_spaces_are_described():
    candidates = [Contender(name=name, losses=np.array([loss]), seconds=np.ones(1), capacity=1)
                  for name, loss in (("a", 0.3), ("b", 0.2))]  # fmt: skip
    ledger = derive_ledger(candidates, Rules(n_initial=1), budget=WorkBudget(trials=9))
    contest = RecordedContest(ledger=ledger, memberships=(0, 1), losses=np.array([0.3, 0.2]))
    found = summarise_contest(contest)
    assert found["sentence"] == "All 2 sub-spaces were evaluated exhaustively; b was the best (best loss 0.2)."
    assert "configurations have been evaluated" in found["stages"][0]["dropped"][0]["reason"]


@settings(max_examples=40, deadline=None)
@given(
    n_subspaces=st.integers(1, 16),
    spread=st.sampled_from([0.0, 0.01, 0.1]),
    seed=st.integers(0, 5),
    fails=st.sampled_from([0.0, 0.2, 1.0]),
    statistical=st.booleans(),
    n_trials=st.sampled_from([0, 3, 60, 150]),
)
def test_stages_cover_the_contest(n_subspaces, spread, seed, fails, statistical, n_trials):
    if statistical:
        contest = by_statistics(n_subspaces, spread=spread, seed=seed, fails=fails, n_trials=n_trials)
    else:
        rng = np.random.default_rng(seed)
        contest = play(
            lambda i, n: float("nan") if rng.random() < fails else rng.random() + spread * i,
            [f"part {i}" for i in range(n_subspaces)],
            Rules(n_initial=2),
            n_trials=n_trials,
            budget=WorkBudget(trials=150),
        )
    found = summarise_contest(contest)
    json.dumps(found, allow_nan=False)
    assert len(found["stages"]) <= MAX_STAGES
    numbers = [each.number for stage in stages(contest) for each in stage.rounds]
    assert numbers == list(range(len(contest.ledger.rounds)))
    assert sum(len(stage["dropped"]) for stage in found["stages"]) == sum(
        len(each.dropped) for each in contest.ledger.rounds
    )
    ends = [stage["end"] for stage in found["stages"]]
    assert ends == sorted(ends)
    for each in found["subspaces"]:
        assert sum(cell["trials"] for cell in each["cells"]) == each["trials"]
        assert len(each["cells"]) == (len(ends) if each["stage"] is None else each["stage"] + 1)
        losses = [math.inf if cell["loss"] is None else cell["loss"] for cell in each["cells"]]
        assert losses == sorted(losses, reverse=True)
        if losses and math.isfinite(losses[-1]):
            assert losses[-1] == each["best_loss"]
            assert each["curve"][-1][0] == (ends[-1 if each["stage"] is None else each["stage"]] - 1)
    assert len(contest.frame()) == sum(len(each.alive) for each in contest.ledger.rounds) + (
        len(contest.ledger.open.alive) if contest.ledger.open else 0
    )


def test_frame_has_a_row_for_every_sub_space_in_every_round():
    frame = by_value(scale=METRICS["accuracy"]).frame()
    assert frame["round"].tolist() == [0, 0, 0, 1]
    assert frame["subspace"].tolist() == ["svm", "forest", "knn", "forest"]
    assert frame["trials"].tolist() == [2, 2, 2, 14]
    assert frame["trials_in_all"].tolist() == [2, 2, 2, 16]
    np.testing.assert_allclose(frame["loss"], [0.299, 0.099, 0.199, 0.085])
    np.testing.assert_allclose(frame["score"], 1 - frame["loss"])
    assert frame["dropped"].tolist() == [True, False, True, False]
    tested = by_statistics(4, spread=0.1).frame()
    assert tested["test"].iloc[0] is None or tested["test"].notna().any()
    assert (tested.loc[tested["dropped"], "p_value"] <= 0.05).all()


# ---------------------------------------------------------------- what the store keeps


def rows_of(contest: RecordedContest) -> list[dict]:
    return [{"loss": None if np.isnan(loss) else float(loss)} for loss in contest.losses]


def test_contest_survives_json():
    contest = by_statistics(4, spread=0.05, fails=0.1)
    fact = json.loads(json.dumps(contest.to_json()))
    read = recorded_contest(fact, [*rows_of(contest), {"loss": 0.5}])  # another trial has been stored since
    assert read.ledger == contest.ledger
    assert read.memberships == contest.memberships
    np.testing.assert_array_equal(read.losses, contest.losses)


def test_other_strategies_hold_no_contest():
    assert contest_fact(make_strategy("random", make_space()), None) is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "damage",
    [
        lambda fact: fact.update(memberships=[0] * 99),
        lambda fact: fact.update(memberships=[7] * 20),
        lambda fact: fact.update(memberships=["0"]),
        lambda fact: fact.update(memberships=5),
        lambda fact: fact.pop("ledger"),
        lambda fact: fact.update(ledger=[]),
        lambda fact: fact["ledger"].update(names=["a", "b"]),
        lambda fact: fact["ledger"].update(names=[1, 2, 3]),
        lambda fact: fact["ledger"].update(rounds=[{}]),
        lambda fact: fact["ledger"]["rounds"][0].update(number=3),
        lambda fact: fact["ledger"]["rounds"][0].update(totals=[1]),
        lambda fact: fact["ledger"]["rounds"][0].update(granted=[1.5, 2, 2]),
        lambda fact: fact["ledger"]["rounds"][0].update(dropped=[0]),
        lambda fact: fact["ledger"]["rounds"][0].update(p_value="small"),
        lambda fact: fact["ledger"]["rounds"][0].update(alive=None),
        lambda fact: fact["ledger"]["open"].update(alive=[-1]),
        lambda fact: fact["ledger"]["open"].update(alive=[0]),
        lambda fact: fact["ledger"].update(open=3),
    ],
)
def test_damaged_contest_costs_only_its_section(tmp_path, damage):
    contest = by_value()
    fact = json.loads(json.dumps(contest.to_json()))
    damage(fact)
    with pytest.raises(ValueError, match=r"contradict|expected the ledger"):
        recorded_contest(fact, rows_of(contest))
    run = make_run(tmp_path / "run", n_trials=20, facts={"contest": fact})
    with pytest.raises(CorruptStoreError, match="Restore"):
        read_contest(run)
    assert summarise_run(run)["contest"] is None
    check_inert(write_report(run).read_text("utf-8"))


def test_runs_without_a_contest_are_refused_by_name(tmp_path):
    run = make_run(tmp_path / "run", n_trials=3, settings={"strategy": "bo"})
    with pytest.raises(RunDirectoryError, match="no contest: its strategy is 'bo'"):
        read_contest(run)
    assert 'id="contest"' not in render_report(summarise_run(run))
    result = CliRunner().invoke(app, ["contest", str(run)])
    assert result.exit_code == 2 and "holds no contest" in result.output


# ---------------------------------------------------------------- report and command line


def fake_run(folder, contest, **options):
    losses = [0.5 if np.isnan(loss) else float(loss) for loss in contest.losses]
    return make_run(folder, n_trials=len(losses), losses=losses, facts={"contest": contest.to_json()}, **options)


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
def test_report_has_bracket_curves_and_rounds(tmp_path, metric):
    contest = by_statistics(6, spread=0.03, n_trials=120)
    page = check_inert(render_report(summarise_run(fake_run(tmp_path / "run", contest, settings={"metric": metric}))))
    text = " ".join(page.text.split())
    for expected in (
        "Which sub-spaces were left in each round?",
        "Round by round",
        "Friedman",
        "left the contest",
        "part 5",
    ):
        assert expected in text
    assert "#contest" in [attributes.get("href") for _, attributes in page.tags]


def test_hostile_names_of_sub_spaces_stay_text(tmp_path):
    names = hostile_texts()
    names = [names[0], names[1], "x" * 5000, *names[20:26], names[35]]
    contest = by_value(names, 60)
    run = fake_run(tmp_path / "run", contest)
    page = check_inert(render_report(summarise_run(run)))
    assert "<script>alert(1)</script>" in page.text
    output = CliRunner().invoke(app, ["contest", str(run)]).output
    assert "\x1b" not in output and "\x07" not in output


def test_custom_metric_shows_losses_if_only_they_are_known(tmp_path):
    settings = {"own_objects": ["metric"], "metric": "x"}
    found = summarise_run(fake_run(tmp_path / "run", by_value(), settings=settings))["contest"]
    assert found["stages"][0]["dropped"][0]["reason"].startswith("best loss 0.299")
    settings |= {"metric_name": "f2", "metric_greater_is_better": True}
    summary = summarise_run(fake_run(tmp_path / "named", by_value(), settings=settings))
    assert summary["contest"]["stages"][0]["dropped"][0]["reason"].startswith("best score 0.701")
    assert summary["metric"] == {"name": "f2", "greater_is_better": True, "is_loss": False}


def test_contest_is_printed_and_written(tmp_path):
    contest = by_value()
    run = fake_run(tmp_path / "run", contest, settings={"metric": "accuracy"})
    invoke = partial(CliRunner().invoke, app)
    output = " ".join(invoke(["contest", str(run)]).output.split())
    assert "forest won against 2 other sub-spaces" in output
    assert "best score 0.701" in output
    assert invoke(["contest", str(run), "-o", str(tmp_path / "rounds.csv")]).exit_code == 0
    frame = pd.read_csv(tmp_path / "rounds.csv")
    assert frame["subspace"].tolist() == ["svm", "forest", "knn", "forest"]
    assert invoke(["contest", str(run), "-o", str(tmp_path / "ledger.json")]).exit_code == 0
    stored = json.loads((tmp_path / "ledger.json").read_text())
    assert Ledger.from_json(stored["ledger"]) == contest.ledger
    assert invoke(["contest", str(run), "-o", str(tmp_path / "rounds.xlsx")]).exit_code == 2


# ---------------------------------------------------------------- real runs


class Killer(Silence):
    """Simulates a kill after a number of trials."""

    def __init__(self, n_trials: int) -> None:
        self.n_trials = n_trials

    def update(self, status):
        if status.trials >= self.n_trials:
            raise RuntimeError("killed")


STRATEGY = "contest:inner=random,max_subspaces=3,n_initial=2,tie=cut"
TRIALS = Budget(trials=14)


def start(folder) -> RunDirectory:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=90) > 0.8, "rare", "usual")
    options = RunSettings(
        metric="g_mean", strategy=STRATEGY, space="imbalance", budget=TRIALS, isolation="none",
        resampling="holdout", target_name="kind",
    )  # fmt: skip
    return RunDirectory.create(folder, to_frame(pd.DataFrame(X, columns=list("abc"))), y, options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contest") / "run"
    with start(folder) as run:
        session = Session(run, TRIALS, Deadline(None))
        history = session.finish(session.search()).study.history
        ledger, members = run.strategy.ledger(history), run.strategy.memberships(history)
    return folder, ledger, members


def test_run_keeps_its_contest(finished):
    folder, ledger, members = finished
    read = read_contest(folder)
    assert (read.ledger, read.memberships) == (ledger, members)
    assert len(read.losses) == 14
    assert read.scale is not None and read.scale.name == "g_mean"
    with RunStore(folder, read_only=True) as store:
        origins = [str(row["origin"]) for row in store.rows()]
    for origin, member in zip(origins, members, strict=True):
        assert ledger.names[member] in origin or origin == "warm start"
    page = check_inert(write_report(folder).read_text("utf-8"))
    assert "won against 2 other sub-spaces" in " ".join(page.text.split())


def test_killed_run_keeps_its_contest_and_resuming_completes_it(finished, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(RuntimeError, match="killed"), start(folder) as run:
        Session(run, TRIALS, Deadline(None), progress=Killer(9)).search()
    _, ledger, members = finished
    before = read_contest(folder)
    assert before.memberships == members[: len(before.memberships)]
    check_inert(write_report(folder).read_text("utf-8"))
    moved = shutil.move(folder, tmp_path / "moved")
    with RunDirectory.open(moved) as run:
        session = Session(run, TRIALS, Deadline(None))
        session.finish(session.search())
    after = read_contest(moved)
    assert (after.ledger, after.memberships) == (ledger, members)
