from __future__ import annotations

import pytest
from ConfigSpace import ConfigurationSpace

from cashmere.exceptions import InvalidParameterError, StrategyError, UnknownNameError
from cashmere.strategies import RandomSearch, cite, make_strategy
from cashmere.study import Study

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})

MODULE = """
from cashmere.records import Suggestion
from cashmere.strategies import RandomSearch


class Lazy:
    def __init__(self, space, times=1):
        self.chance, self.times = RandomSearch(space), times

    def suggest(self, history, rng):
        return self.chance.suggest(history, rng)


class Silent:
    def __init__(self, space):
        pass


number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_strategies.py").write_text(MODULE)
    (tmp_path / "needs_more.py").write_text("import no_such_package_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "own_strategies"


def test_path_makes_the_strategy_with_its_options(module):
    assert make_strategy(f"{module}.Lazy", SPACE).times == 1
    assert make_strategy(f"{module}.Lazy:times=3", SPACE).times == 3
    assert make_strategy("cashmere.strategies.RandomSearch", SPACE) == RandomSearch(SPACE)
    history = Study(SPACE, f"{module}.Lazy", seed=1).optimize(lambda trial: 0.0, "3trials")
    assert len(history.successes) == 3


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("no_such_module.Mine", "got 'no_such_module.Mine'. There is no module 'no_such_module'. Run in its folder"),
        ("cashmere.nothing.Mine", "There is no module 'cashmere.nothing'"),
        ("own_strategies.Mine", "has no class or function 'Mine'"),
        ("own_strategies.number", "has no class or function 'number'"),
        (".Mine", "strategy must be the path of a class or function"),
        ("own_strategies.", "has no class or function ''"),
    ],
)
def test_what_cannot_be_imported_is_named(module, path, text):
    with pytest.raises(InvalidParameterError) as caught:
        make_strategy(path, SPACE)
    assert text in str(caught.value)


def test_errors_of_the_module_itself_are_not_hidden(module):
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        make_strategy("needs_more.Mine", SPACE)


def test_unknown_option_of_a_class_without_declared_ones_suggests_the_nearest(module):
    with pytest.raises(UnknownNameError, match=r"Unknown 'own_strategies.Lazy' option 'time'\. Did you mean 'times'"):
        make_strategy(f"{module}.Lazy:time=3", SPACE)


def test_class_without_suggest_is_told_so(module):
    with pytest.raises(StrategyError, match=r"^Silent has no method suggest\(history, rng\)"):
        make_strategy(f"{module}.Silent", SPACE)


def test_type_of_python_is_no_strategy():
    with pytest.raises(StrategyError, match="int has no method suggest"):
        make_strategy(int, SPACE)


def test_inner_strategies_are_only_named(module):
    with pytest.raises(InvalidParameterError, match=r"inner must be one of 'agreeing_sources'.* write a function from"):
        make_strategy(f"rising_bandit:inner={module}.Lazy", SPACE)


def test_options_are_those_of_the_class_even_if_it_inherits_from_one_of_ours(tmp_path, monkeypatch):
    (tmp_path / "inherited_strategies.py").write_text(
        "from cashmere.strategies import BayesianOptimisation\n\n\n"
        "class Few(BayesianOptimisation):\n"
        '    """Few.\n\n    References\n    ----------\n    Few (2026).\n    """\n\n'
        "    def __init__(self, space, first=2):\n"
        "        super().__init__(space, n_initial=first)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert make_strategy("inherited_strategies.Few:first=3", SPACE).n_initial == 3
    assert cite("inherited_strategies.Few") == "Few (2026)."
    with pytest.raises(UnknownNameError, match="first"):
        make_strategy("inherited_strategies.Few:n_local=3", SPACE)
