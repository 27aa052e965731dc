"""The latent map of a run: in the store, as data, in the report."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from fake_runs import hostile_texts, make_run
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from report_page import check_inert, complaints
from toy_artefact import toy_artefact

from cashmere import AutoClassifier
from cashmere.analysis import latent_map_fact, summarise_latent_map
from cashmere.analysis.latent_map import plane
from cashmere.evaluation.metrics import METRICS
from cashmere.report import render_report, summarise_run, write_report
from cashmere.space.named.registry import make_space
from cashmere.storage.store import RunStore
from cashmere.strategies import make_strategy
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding
from contracts.strategy_contract import cash_space, history_of, run_trials

TABLE = {"log_rows": 5.0, "class_entropy": 0.6}
OPTIONS = "n_initial=1,n_starts=2"


def scratch():
    return make_strategy(f"latent:embedding=scratch,{OPTIONS}", cash_space())


@pytest.fixture(scope="module")
def searched():
    strategy = scratch()
    return strategy, run_trials(strategy, 10, fails=lambda number: number in (2, 7))


# ---------------------------------------------------------------- what the store keeps


def test_map_has_every_success_where_the_surrogate_puts_it(searched):
    strategy, observations = searched
    history = history_of(observations)
    fact = latent_map_fact(strategy, history)
    assert fact["source"] is None and fact["n_dims"] == 2 and fact["centre"] == [0.0, 0.0]
    assert fact["trials"] == [0, 1, 3, 4, 5, 6, 8, 9]
    assert fact["losses"] == [o.loss for o in observations if o.succeeded]
    named = [fact["algorithms"][task] for task in fact["tasks"]]
    assert named == [o.trial.configuration["algorithm"] for o in observations if o.succeeded]
    rows = strategy.blocks.encoder.encode(o.trial.configuration for o in observations)
    surrogate, _ = strategy.fit(history, rows, np.random.default_rng(0))
    embedded = surrogate.embed(strategy.blocks.tasks(rows), strategy.blocks.vectors(rows))
    np.testing.assert_allclose(fact["points"], embedded[fact["trials"]], rtol=1e-12)


def test_same_history_gives_the_same_map_also_through_json(searched):
    strategy, observations = searched
    fact = latent_map_fact(strategy, history_of(observations))
    assert latent_map_fact(scratch(), history_of(observations)) == fact == json.loads(json.dumps(fact, allow_nan=False))


def test_pending_trials_are_not_on_the_map(searched):
    strategy, observations = searched
    history = history_of(observations[:8], pending=[o.trial for o in observations[8:]])
    assert latent_map_fact(strategy, history)["trials"] == [0, 1, 3, 4, 5, 6]


def test_map_names_the_source_of_the_networks(tmp_path):
    toy_artefact(cash_space()).save(tmp_path / "artefact")
    strategy = make_strategy(f"latent:embedding=ranked,{OPTIONS}", cash_space(), artefact=tmp_path / "artefact")
    strategy = strategy.for_table(TABLE)
    found = summarise_latent_map(latent_map_fact(strategy, history_of(run_trials(strategy, 8))))
    assert found["source"] == strategy.pretrained.source
    assert found["centre"] == [0.0, 0.0]


def test_spaces_of_more_dimensions_are_projected_on_their_main_directions(searched, monkeypatch):
    strategy, observations = searched
    history = history_of(observations)
    blocks = strategy.blocks
    drawn = Encoders.draw(
        n_algorithms=len(blocks.names), width=blocks.width, q=3, rng=np.random.default_rng(0), n_hidden=8
    )
    other = scratch()
    vars(other)["pretrained"] = PretrainedEmbedding(drawn, 0.1, "elsewhere")  # where the strategy caches it
    fact = latent_map_fact(other, history)
    assert fact["n_dims"] == 3
    np.testing.assert_allclose(np.mean(fact["points"], axis=0), 0.0, atol=1e-9)
    assert summarise_latent_map(fact)["centre"] == fact["centre"] != [0.0, 0.0]


@pytest.mark.parametrize("name", ["random", "bo", "bandit_bo", "smac"])
def test_other_strategies_have_no_map(searched, name):
    _, observations = searched
    assert latent_map_fact(make_strategy(name, cash_space()), history_of(observations)) is None


def test_no_map_before_the_surrogate_has_decided(searched):
    strategy, observations = searched
    assert latent_map_fact(strategy, history_of([])) is None
    first = next(k for k, o in enumerate(observations) if str(o.trial.origin) == "model")
    assert latent_map_fact(strategy, history_of(observations[:first])) is None
    assert latent_map_fact(strategy, history_of(run_trials(scratch(), 10, fails=lambda number: True))) is None


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.floats(-10, 10)))
def test_plane_keeps_distances_as_far_as_two_dimensions_can(points):
    shown, centre = plane(points)
    assert shown.shape == (len(points), 2) and centre.shape == (2,)
    before, after = (
        np.linalg.norm(each[:, None] - each[None], axis=2)
        for each in (np.vstack([points, np.zeros(points.shape[1])]), np.vstack([shown, centre]))
    )
    assert (after <= before + 1e-9).all()
    if points.shape[1] <= 2 or len(points) <= 3:
        np.testing.assert_allclose(after[:-1, :-1], before[:-1, :-1], atol=1e-9)


# ---------------------------------------------------------------- what the report says


def made_up_fact(n=30, source="iris", names=("knn", "svc", "mlp")) -> dict:
    rng = np.random.default_rng(0)
    return {
        "algorithms": list(names),
        "source": source,
        "n_dims": 2,
        "trials": list(range(n)),
        "tasks": [k % len(names) for k in range(n)],
        "losses": (0.2 + 0.3 * rng.random(n)).tolist(),
        "points": rng.normal(size=(n, 2)).tolist(),
        "centre": [0.0, 0.0],
    }


def page_of(folder, fact, **options):
    return check_inert(write_report(make_run(folder, facts={"latent_map": fact}, **options)).read_text("utf-8"))


def test_summary_lists_scores_in_the_order_of_trials():
    fact = made_up_fact(3)
    for name in ("trials", "tasks", "losses", "points"):
        fact[name].reverse()
    found = summarise_latent_map(fact, METRICS["accuracy"])
    assert [point["trial"] for point in found["points"]] == [0, 1, 2]
    assert [point["algorithm"] for point in found["points"]] == ["knn", "svc", "mlp"]
    assert all(point["score"] == pytest.approx(1 - point["loss"]) for point in found["points"])
    assert all(point["score"] == point["loss"] for point in summarise_latent_map(fact)["points"])


def test_report_says_whose_networks_they_are(tmp_path):
    text = " ".join(page_of(tmp_path / "pretrained", made_up_fact()).text.split())
    assert "networks trained on the table iris and adapted to this one" in text
    assert "nearer to the cross, where the best of iris was" in text and "the best of the source" in text
    text = " ".join(page_of(tmp_path / "scratch", made_up_fact(source=None)).text.split())
    assert "networks trained on this run alone" in text
    assert "nearer to the cross" not in text and "the best of the source" not in text
    text = " ".join(page_of(tmp_path / "flat", {**made_up_fact(), "n_dims": 5}).text.split())
    assert "the two main directions of 5" in text


def test_reports_of_other_runs_have_no_map(tmp_path):
    assert 'id="latent-map"' not in render_report(summarise_run(make_run(tmp_path / "run", n_trials=3)))


def test_hostile_names_stay_text(tmp_path):
    names = hostile_texts()
    fact = made_up_fact(2 * len(names), source=names[0], names=names)
    page = page_of(tmp_path / "run", fact)
    assert "<script>alert(1)</script>" in page.text


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "damage",
    [
        lambda fact: fact.pop("points"),
        lambda fact: fact.update(algorithms=["knn"]),
        lambda fact: fact.update(algorithms=[1, 2, 3]),
        lambda fact: fact.update(algorithms=None),
        lambda fact: fact.update(source=5),
        lambda fact: fact.update(centre=[0.0]),
        lambda fact: fact.update(centre="no"),
        lambda fact: fact.update(n_dims=None),
        lambda fact: fact.update(trials=list(range(9))),
        lambda fact: fact.update(trials=[0] * 30),
        lambda fact: fact.update(trials=["0"] * 30),
        lambda fact: fact["tasks"].__setitem__(0, -1),
        lambda fact: fact["tasks"].__setitem__(0, 0.5),
        lambda fact: fact["losses"].__setitem__(0, math.nan),
        lambda fact: fact["losses"].__setitem__(0, None),
        lambda fact: fact["points"].__setitem__(0, [1.0, math.nan]),
        lambda fact: fact["points"].__setitem__(0, [1e300, 0.0]),
        lambda fact: fact["points"].__setitem__(0, [1.0]),
        lambda fact: fact["points"].__setitem__(0, 7),
    ],
)
def test_damaged_map_costs_only_its_section(tmp_path, damage):
    fact = made_up_fact()
    damage(fact)
    with pytest.raises(ValueError, match=r"contradict|expected trials"):
        summarise_latent_map(fact)
    page_of(tmp_path / "run", fact, n_trials=5)
    assert summarise_run(tmp_path / "run")["latent_map"] is None


def few_algorithms(profile):
    return make_space("sklearn12", profile).restricted_to(["gaussian_nb", "knn", "qda", "decision_tree"])


def test_run_keeps_its_map(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, "rare", "usual")
    strategy = f"latent:embedding=scratch,{OPTIONS}"
    options = {"metric": "accuracy", "isolation": "none", "resampling": "holdout", "random_state": 0}
    AutoClassifier(
        strategy=strategy, space=few_algorithms, budget="12trials", run_directory=tmp_path / "run", **options
    ).fit(X, y)
    with RunStore(tmp_path / "run", read_only=True) as store:
        fact, rows = store.facts().latent_map, store.rows()
    assert fact["trials"] == [row["number"] for row in rows if row["status"] == "success"]
    assert fact["losses"] == [row["loss"] for row in rows if row["status"] == "success"]
    assert sorted(fact["algorithms"]) == ["decision_tree", "gaussian_nb", "knn", "qda"]
    check_inert(write_report(tmp_path / "run").read_text("utf-8"))
    assert 'id="latent-map"' in (tmp_path / "run" / "report.html").read_text("utf-8")


@pytest.mark.long
@pytest.mark.browser
def test_browser_shows_the_map_without_complaint(tmp_path, browser):
    path = write_report(make_run(tmp_path / "run", facts={"latent_map": made_up_fact(200)}))
    dom, console = browser(path, "--dump-dom")
    assert complaints(console) == []
    section = dom.partition('id="latent-map"')[2].partition("</section>")[0]
    assert section.count("<title>trial ") == 2 * 200  # for wide and for narrow pages
    picture = tmp_path / "map.png"
    browser(path, f"--screenshot={picture}", "--window-size=390,900")
    assert picture.stat().st_size > 20_000
