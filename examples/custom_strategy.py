"""Write a custom search strategy; use it on a plain function and to fit an ensemble."""

from ConfigSpace import ConfigurationSpace
from ConfigSpace.util import get_one_exchange_neighbourhood

from cashmere import AutoClassifier, Study
from cashmere.data import DEMO_TARGET, demo_table
from cashmere.records import Outcome, Suggestion, TrialStatus, configuration_key
from cashmere.space import make_space
from cashmere.strategies import RandomSearch


class HillClimb:
    """Change one value of the best configuration so far; draw at random until a trial has succeeded.

    References
    ----------
    Any textbook.
    """

    def __init__(self, space):
        self.chance = RandomSearch(space)

    def suggest(self, history, rng):
        if history.incumbent is not None:
            best, seed = history.incumbent.trial.configuration, int(rng.integers(2**31))
            for configuration in get_one_exchange_neighbourhood(best, seed=seed):
                if configuration_key(configuration) not in history.seen:
                    return Suggestion(configuration=configuration, origin="neighbour")
        return self.chance.suggest(history, rng)


def bowl(trial):
    return Outcome(status=TrialStatus.SUCCESS, loss=sum((x - 0.7) ** 2 for x in trial.configuration.values()))


print("A function of four numbers, best loss after 60 trials:")
space = ConfigurationSpace(dict.fromkeys("abcd", (0.0, 1.0)))
for name, strategy in {"random": "random", "hill climbing": HillClimb}.items():
    history = Study(space, strategy, seed=1).optimize(bowl, "60trials")
    print(f"  {name:<14} {history.incumbent.loss:.4f}")


def quick(profile):
    """Restrict the default space to two cheap algorithms."""
    return make_space("default", profile).restricted_to(["lightgbm", "logistic_regression"])


table = demo_table()
X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
model = AutoClassifier(
    budget="10trials", strategy=HillClimb, space=quick, resampling="holdout", lookahead=2, n_workers=1
).fit(X, y)
print("\nA table; where each configuration came from:")
for observation in model.study_.history:
    trial = observation.trial
    print(f"  {trial.number:>2} {trial.origin!s:<12} {trial.configuration['algorithm']:<20} {observation.loss:.4f}")
