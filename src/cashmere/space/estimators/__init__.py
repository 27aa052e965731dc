"""Our scikit-learn estimators, which fitted models contain."""
