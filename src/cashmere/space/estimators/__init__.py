"""scikit-learn estimators of our own, which fitted models contain."""
