"""Types of fitted built-in pipelines that a model file may hold besides those that skops itself trusts.

A fixed list: `tests/model/test_trusted_types.py` checks that it covers every built-in algorithm and operator. Each
name is a container of numbers, a library's model with its own parser, or a function from arrays to arrays; none
runs code from the file, reads other files or imports by name.
"""

from __future__ import annotations

TRUSTED_TYPES: tuple[str, ...] = (
    # This package: scikit-learn estimators with plain attributes, and two score functions.
    "cashmere.space.estimators.autosklearn6.BalancedClassifier",
    "cashmere.space.estimators.autosklearn6.DoublePrecision",
    "cashmere.space.estimators.autosklearn6.LevelMerger",
    "cashmere.space.estimators.autosklearn6.LimitedOneHotEncoder",
    "cashmere.space.estimators.autosklearn6.NegativeClipper",
    "cashmere.space.named.operator_at_fit.OperatorAtFit",
    "cashmere.space.estimators.autosklearn6.RelativeDepthTree",
    "cashmere.space.estimators.boosting.CategoryHistogramClassifier",
    "cashmere.space.estimators.boosting.CategoryHistogramRegressor",
    "cashmere.space.estimators.boosting.CategoryLGBMClassifier",
    "cashmere.space.estimators.boosting.CategoryLGBMRegressor",
    "cashmere.space.estimators.forests.ExponentExtraTreesClassifier",
    "cashmere.space.estimators.forests.ExponentExtraTreesRegressor",
    "cashmere.space.estimators.forests.ExponentForestClassifier",
    "cashmere.space.estimators.forests.ExponentForestRegressor",
    "cashmere.space.estimators.forests.OrderedForestClassifier",
    "cashmere.space.estimators.margins.MarginProbabilities",
    "cashmere.space.estimators.neighbours.LimitedNeighboursClassifier",
    "cashmere.space.estimators.networks.EarlyStoppedMLPClassifier",
    "cashmere.space.estimators.networks.EarlyStoppedMLPRegressor",
    "cashmere.space.estimators.scores.class_information",
    "cashmere.space.estimators.scores.value_information",
    "cashmere.space.estimators.standardisation.StandardisedColumns",
    # Boosting libraries: the model is text or bytes for the library's own parser.
    "catboost.core.CatBoostClassifier",
    "catboost.core.CatBoostRegressor",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
    # Arrays inside scikit-learn's models.
    "collections.OrderedDict",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.ChebyshevDistance64",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.metrics._dist_metrics.MinkowskiDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
    # Functions from arrays to arrays.
    "numpy.max",
    "numpy.mean",
    "numpy.median",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
)
