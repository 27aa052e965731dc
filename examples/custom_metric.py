"""Minimise the cost of mistakes, with your own function as the metric."""

import numpy as np
from sklearn.model_selection import train_test_split

from cashmere import AutoClassifier
from cashmere.data import DEMO_TARGET, demo_table
from cashmere.evaluation import metric_from_callable
from cashmere.space import make_space


def cost(y_true, y_pred):
    """Return the mean cost: 5 for accepting a bad customer, 1 for rejecting a good one (the table's cost matrix)."""
    accepted = (y_true == "bad") & (y_pred == "good")
    rejected = (y_true == "good") & (y_pred == "bad")
    return np.mean(5.0 * accepted + 1.0 * rejected)


def quick(profile):
    """Restrict the default space to two cheap algorithms."""
    return make_space("default", profile).restricted_to(["lightgbm", "logistic_regression"])


table = demo_table()
X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)

# A bare function is maximised. To minimise it, or to give it probabilities, wrap it with metric_from_callable.
# `labels` are the sorted class labels: with them the function sees labels, without them codes 0, 1, ...
metric = metric_from_callable(cost, greater_is_better=False, needs="labels", labels=np.unique(y))
for name in ("log_loss", metric):
    model = AutoClassifier(budget="10trials", metric=name, space=quick, resampling="holdout", isolation="none")
    model.fit(X_train, y_train)
    print(f"search for {getattr(name, 'name', name):<8}: cost on unseen rows {cost(y_test, model.predict(X_test)):.3f}")
    print(model.leaderboard_[["trial", "algorithm", "score"]].head(3).to_string(index=False))
