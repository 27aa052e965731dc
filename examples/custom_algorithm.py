"""Add a custom algorithm to the search space, and load a model that contains its class."""

from ConfigSpace import Float
from sklearn.neighbors import NearestCentroid

from cashmere import AutoClassifier, Predictor
from cashmere.data import DEMO_TARGET, demo_table
from cashmere.space import CLASSIFICATION, Algorithm, Subspace, make_space


class Centroids(NearestCentroid):
    """A learner that is not on cashmere's list of types that model files may contain."""


TRUSTED = ["__main__.Centroids"]  # in your own module: "my_package.my_module.Centroids"

centroids = Algorithm(
    name="centroids",
    build=lambda values, context: Centroids(shrink_threshold=values["shrinkage"]),
    subspace=lambda profile: Subspace(hyperparameters=[Float("shrinkage", (0.01, 10.0), log=True, default=0.1)]),
    tasks=CLASSIFICATION,
    accepts_weights=False,
    trusted_types=tuple(TRUSTED),
)


def space(profile):
    return make_space("default", profile).with_algorithm(centroids).restricted_to(["lightgbm", "centroids"])


table = demo_table()
X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
model = AutoClassifier(
    budget="8trials", space=space, resampling="holdout", ensemble="bagging", run_directory="custom-algorithm-run"
).fit(X, y)
print(model.leaderboard_[["trial", "algorithm", "score", "weight"]].to_string(index=False))

# The reader of a model decides what to trust: the list never comes from the file.
predictor = Predictor.load("custom-algorithm-run", trusted=TRUSTED)
print("First predictions:", predictor.predict(X.head(5)))
