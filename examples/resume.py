"""Stop after five trials, continue to ten, and get the same run as without the stop.

On the command line: ``cashmere fit ... --out my-run``, then ``cashmere resume my-run --budget 5trials``.
"""

from cashmere import AutoClassifier
from cashmere.data import DEMO_TARGET, demo_table
from cashmere.space import make_space
from cashmere.study import run_digest


def quick(profile):
    """Restrict the default space to two cheap algorithms."""
    return make_space("default", profile).restricted_to(["lightgbm", "logistic_regression"])


def fit(budget, **settings):
    # isolation="none" runs trials inside this process, without limits: it starts quickly and suits demonstrations.
    model = AutoClassifier(budget=budget, space=quick, resampling="holdout", isolation="none", **settings)
    return model.fit(X, y)


def digest(model):
    weights = model.ensemble_[["trial", "weight"]].itertuples(index=False)
    return run_digest(model.study_.history, [(row.trial, row.weight) for row in weights])


table = demo_table()
X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]

first = fit("5trials", run_directory="resumed-run")
print(f"{len(first.study_.history)} trials, digest {digest(first)}")

# In Python a number of trials is the total of the run; seconds would count from this call.
resumed = fit("10trials", run_directory="resumed-run", resume=True)
print(f"{len(resumed.study_.history)} trials, digest {digest(resumed)}: resumed")

at_once = fit("10trials")
print(f"{len(at_once.study_.history)} trials, digest {digest(at_once)}: in one go")
assert digest(resumed) == digest(at_once)
