"""The closed list of what a model file may hold.

Nothing is trusted because skops trusts it: `cashmere.model.audit` only accepts the pairs below of a loader of skops and
a type, and objects only in the attributes below. `tests/model/test_trusted_types.py` writes every algorithm, operator,
encoder and text column of every named space, and checks that the list holds exactly what those archives hold.

Custom algorithms declare further types (`Algorithm.trusted_types`, and `trusted` of ``Predictor.load``):

- ``"package.Type"`` lets a file make objects of the type, and name the type, or a function of that name. The
  attributes of such objects may have any values, including objects on the list and declared ones. So whatever methods
  of the type do with its attributes, a file can make them do. It cannot make skops call the type with arguments.
- ``"Loader:package.Type"`` declares a type for one of the other loaders named below, for example
  ``"LossNode:sklearn._loss._loss.CyHuberLoss"``. Other loaders cannot be declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.data.words import WORD

TUPLE = "()"
"""In place of attributes if the state of the type is a tuple."""

TRUSTED_OBJECTS: Mapping[str, str] = {
    "cashmere.data.preparation.FoldEncoder": "_reducers _vectorizers",
    "cashmere.space.estimators.arithmetic_features.ArithmeticFeatures": "",
    "cashmere.space.estimators.autosklearn6.BalancedClassifier": "estimator estimator_",
    "cashmere.space.estimators.autosklearn6.DoublePrecision": "",
    "cashmere.space.estimators.autosklearn6.LevelMerger": "",
    "cashmere.space.estimators.autosklearn6.LimitedOneHotEncoder": "dtype",
    "cashmere.space.estimators.autosklearn6.NegativeClipper": "",
    "cashmere.space.estimators.autosklearn6.RelativeDepthTree": "tree_",
    "cashmere.space.estimators.bases.PiecewiseLinearColumns": "",
    "cashmere.space.estimators.boosting.CategoryHistogramClassifier": "_bin_mapper _label_encoder _loss _preprocessor",
    "cashmere.space.estimators.boosting.CategoryHistogramRegressor": "_bin_mapper _loss _preprocessor",
    "cashmere.space.estimators.boosting.CategoryLGBMClassifier": "_le",
    "cashmere.space.estimators.boosting.CategoryLGBMRegressor": "",
    "cashmere.space.estimators.category_catboost.CategoryCatBoostClassifier": "",
    "cashmere.space.estimators.category_catboost.CategoryCatBoostRegressor": "",
    "cashmere.space.estimators.forests.ExponentExtraTreesClassifier": "_first_tree estimator estimator_",
    "cashmere.space.estimators.forests.ExponentExtraTreesRegressor": "_first_tree estimator estimator_",
    "cashmere.space.estimators.forests.ExponentForestClassifier": "_first_tree estimator estimator_",
    "cashmere.space.estimators.forests.ExponentForestRegressor": "_first_tree estimator estimator_",
    "cashmere.space.estimators.forests.OrderedForestClassifier": "_first_tree estimator estimator_",
    "cashmere.space.estimators.margins.CoupledMargins": "estimator estimator_",
    "cashmere.space.estimators.margins.MarginProbabilities": "estimator estimator_",
    "cashmere.space.estimators.neighbours.LimitedNeighboursClassifier": "_tree",
    "cashmere.space.estimators.networks.EarlyStoppedMLPClassifier": "_label_binarizer _optimizer",
    "cashmere.space.estimators.networks.EarlyStoppedMLPRegressor": "_optimizer",
    "cashmere.space.estimators.outliers.OutlierClipper": "",
    "cashmere.space.estimators.realmlp.RealMLPClassifier": "",
    "cashmere.space.estimators.realmlp.RealMLPRegressor": "",
    "cashmere.space.estimators.standardisation.StandardisedColumns": "",
    "cashmere.space.named.operator_at_fit.OperatorAtFit": "operator_",
    "catboost.core.CatBoostClassifier": "",
    "catboost.core.CatBoostRegressor": "",
    "lightgbm.basic.Booster": "",
    "lightgbm.sklearn.LGBMClassifier": "_Booster _le",
    "lightgbm.sklearn.LGBMRegressor": "_Booster",
    "sklearn._loss.link.IdentityLink": "",
    "sklearn._loss.link.Interval": "",
    "sklearn._loss.link.LogLink": "",
    "sklearn._loss.link.LogitLink": "",
    "sklearn._loss.link.MultinomialLogit": "",
    "sklearn._loss.loss.AbsoluteError": "closs interval_y_pred interval_y_true link",
    "sklearn._loss.loss.HalfBinomialLoss": "closs interval_y_pred interval_y_true link",
    "sklearn._loss.loss.HalfGammaLoss": "closs interval_y_pred interval_y_true link",
    "sklearn._loss.loss.HalfMultinomialLoss": "closs interval_y_pred interval_y_true link",
    "sklearn._loss.loss.HalfPoissonLoss": "closs interval_y_pred interval_y_true link",
    "sklearn._loss.loss.HalfSquaredError": "closs interval_y_pred interval_y_true link",
    "sklearn._loss.loss.PinballLoss": "closs interval_y_pred interval_y_true link",
    "sklearn.cluster._agglomerative.FeatureAgglomeration": "pooling_func",
    "sklearn.compose._column_transformer.ColumnTransformer": "transformers transformers_",
    "sklearn.compose._target.TransformedTargetRegressor": "regressor regressor_ transformer transformer_",
    "sklearn.decomposition._fastica.FastICA": "",
    "sklearn.decomposition._kernel_pca.KernelPCA": "_centerer",
    "sklearn.decomposition._pca.PCA": "",
    "sklearn.decomposition._truncated_svd.TruncatedSVD": "",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": "",
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": "",
    "sklearn.dummy.DummyClassifier": "",
    "sklearn.dummy.DummyRegressor": "",
    "sklearn.ensemble._bagging.BaggingClassifier": "estimator_ estimators_",
    "sklearn.ensemble._forest.RandomTreesEmbedding": "estimator estimator_ estimators_ one_hot_encoder_",
    "sklearn.ensemble._gb.GradientBoostingClassifier": "_loss estimators_ init_",
    "sklearn.ensemble._gb.GradientBoostingRegressor": "_loss estimators_ init_",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper": "",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier": (
        "_bin_mapper _label_encoder _loss _predictors"
    ),
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor": "",
    "sklearn.ensemble._weight_boosting.AdaBoostClassifier": "estimator estimator_ estimators_",
    "sklearn.ensemble._weight_boosting.AdaBoostRegressor": "estimator estimator_ estimators_",
    "sklearn.feature_extraction.text.TfidfTransformer": "",
    "sklearn.feature_extraction.text.TfidfVectorizer": "_tfidf dtype",
    "sklearn.feature_selection._from_model.SelectFromModel": "estimator estimator_",
    "sklearn.feature_selection._univariate_selection.GenericUnivariateSelect": "score_func",
    "sklearn.feature_selection._univariate_selection.SelectPercentile": "score_func",
    "sklearn.feature_selection._variance_threshold.VarianceThreshold": "",
    "sklearn.impute._base.SimpleImputer": "",
    "sklearn.kernel_approximation.Nystroem": "",
    "sklearn.kernel_approximation.RBFSampler": "",
    "sklearn.linear_model._coordinate_descent.Lasso": "",
    "sklearn.linear_model._logistic.LogisticRegression": "",
    "sklearn.linear_model._passive_aggressive.PassiveAggressiveClassifier": "_loss_function_",  # until 1.7
    "sklearn.linear_model._ridge.Ridge": "",
    "sklearn.linear_model._stochastic_gradient.SGDClassifier": "_loss_function_",
    "sklearn.metrics._dist_metrics.ChebyshevDistance64": TUPLE,
    "sklearn.metrics._dist_metrics.EuclideanDistance64": TUPLE,
    "sklearn.metrics._dist_metrics.ManhattanDistance64": TUPLE,
    "sklearn.metrics._dist_metrics.MinkowskiDistance64": TUPLE,
    "sklearn.multiclass.OneVsRestClassifier": "estimator estimators_ label_binarizer_",
    "sklearn.naive_bayes.BernoulliNB": "",
    "sklearn.naive_bayes.GaussianNB": "",
    "sklearn.naive_bayes.MultinomialNB": "",
    "sklearn.neighbors._ball_tree.BallTree": TUPLE,
    "sklearn.neighbors._classification.KNeighborsClassifier": "_tree",
    "sklearn.neighbors._kd_tree.KDTree": TUPLE,
    "sklearn.neighbors._regression.KNeighborsRegressor": "_tree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer": "",
    "sklearn.pipeline.Pipeline": "steps",
    "sklearn.preprocessing._data.KernelCenterer": "",
    "sklearn.preprocessing._data.MinMaxScaler": "",
    "sklearn.preprocessing._data.Normalizer": "",
    "sklearn.preprocessing._data.PowerTransformer": "_scaler",
    "sklearn.preprocessing._data.QuantileTransformer": "",
    "sklearn.preprocessing._data.RobustScaler": "",
    "sklearn.preprocessing._data.StandardScaler": "",
    "sklearn.preprocessing._encoders.OneHotEncoder": "dtype",
    "sklearn.preprocessing._encoders.OrdinalEncoder": "dtype",
    "sklearn.preprocessing._function_transformer.FunctionTransformer": "",
    "sklearn.preprocessing._label.LabelBinarizer": "",
    "sklearn.preprocessing._label.LabelEncoder": "",
    "sklearn.preprocessing._polynomial.PolynomialFeatures": "",
    "sklearn.svm._classes.LinearSVC": "",
    "sklearn.svm._classes.LinearSVR": "",
    "sklearn.svm._classes.SVC": "",
    "sklearn.svm._classes.SVR": "",
    "sklearn.tree._classes.DecisionTreeClassifier": "tree_",
    "sklearn.tree._classes.DecisionTreeRegressor": "tree_",
    "sklearn.tree._classes.ExtraTreeClassifier": "tree_",
    "sklearn.tree._classes.ExtraTreeRegressor": "tree_",
    "xgboost.core.Booster": "",
    "xgboost.sklearn.XGBClassifier": "_Booster",
    "xgboost.sklearn.XGBRegressor": "_Booster",
}
"""Types of objects that skops builds from their state, each with the attributes that may hold objects."""

TRUSTED: Mapping[str, tuple[str, ...]] = {
    "BytearrayNode": ("builtins.bytearray",),
    "BytesNode": ("builtins.bytes",),
    "DTypeNode": ("numpy.dtype",),
    "DefaultDictNode": ("collections.defaultdict",),
    "DictNode": ("builtins.dict",),
    "FunctionNode": (
        "cashmere.space.estimators.scores.class_information",
        "cashmere.space.estimators.scores.value_information",
        "numpy.max",
        "numpy.mean",
        "numpy.median",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._univariate_selection.f_regression",
    ),
    "JsonNode": ("builtins.str",),
    "ListNode": ("builtins.list",),
    "LossNode": (
        "sklearn._loss._loss.CyAbsoluteError",
        "sklearn._loss._loss.CyHalfBinomialLoss",
        "sklearn._loss._loss.CyHalfGammaLoss",
        "sklearn._loss._loss.CyHalfMultinomialLoss",
        "sklearn._loss._loss.CyHalfPoissonLoss",
        "sklearn._loss._loss.CyHalfSquaredError",
        "sklearn._loss._loss.CyPinballLoss",
        "sklearn.linear_model._sgd_fast.Hinge",
        "sklearn.linear_model._sgd_fast.ModifiedHuber",
        "sklearn.linear_model._sgd_fast.SquaredHinge",
    ),
    "NdArrayNode": (
        "numpy.float32",
        "numpy.float64",
        "numpy.int64",
        "numpy.ndarray",
        "numpy.uint64",
    ),
    "RandomGeneratorNode": ("numpy.random._generator.Generator",),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",),
    "SliceNode": ("builtins.slice",),
    "SparseMatrixNode": ("scipy.sparse._csr.csr_matrix",),
    "TreeNode": ("sklearn.tree._tree.Tree",),
    "TupleNode": ("builtins.tuple",),
    "TypeNode": (
        "builtins.str",
        "collections.OrderedDict",
        "numpy.float32",
        "numpy.float64",
        "numpy.int64",
    ),
}
"""Types and functions of the other loaders of skops."""

KEY_TYPES = frozenset({"builtins.str", "numpy.int64"})
"""Allowed types of dictionary keys."""

LOADERS_IN: Mapping[str, tuple[str, ...]] = {
    "_loss_function_": ("LossNode",),
    "closs": ("LossNode",),
    "dtype": ("TypeNode",),
    "pooling_func": ("FunctionNode",),
    "score_func": ("FunctionNode",),
    "tree_": ("TreeNode",),
}
"""Loaders of attributes that hold functions, types, trees or losses; others hold objects built from their state."""

FIXED_VALUES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "sklearn.feature_extraction.text.TfidfVectorizer": {
        "input": ("content",),
        "analyzer": ("word",),
        "decode_error": ("strict",),
        "encoding": ("utf-8",),
        "ngram_range": ((1, 1),),
        "preprocessor": (None,),
        "stop_words": (None,),
        "strip_accents": (None,),
        "token_pattern": (WORD, r"(?u)\b\w\w+\b"),  # the latter in earlier versions
        "tokenizer": (None,),
    },
    "sklearn.feature_selection._from_model.SelectFromModel": {"importance_getter": ("auto",)},
    "sklearn.preprocessing._function_transformer.FunctionTransformer": {"func": (None,), "inverse_func": (None,)},
}
"""Attributes that could read files, take long or look up names, with their values in archives of cashmere."""

LONG_TEXTS: Mapping[str, tuple[str, ...]] = {"lightgbm.basic.Booster": ("_handle",)}
"""Attributes that hold a whole model as text."""

TRUSTED_TYPES: frozenset[str] = frozenset(TRUSTED_OBJECTS) | {name for names in TRUSTED.values() for name in names}
"""All names on the list."""
