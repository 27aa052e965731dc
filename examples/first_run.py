"""Fit an ensemble to a table, score it on unseen rows and look at its members.

Ten trials on one split are quick and repeatable. For real work give a time, ``budget="10m"``, and omit ``resampling``.
"""

from sklearn.model_selection import train_test_split

from cashmere import AutoClassifier
from cashmere.data import DEMO_TARGET, demo_table

table = demo_table()
X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)

model = AutoClassifier(budget="10trials", metric="roc_auc", resampling="holdout", random_state=0).fit(X_train, y_train)

print("The ensemble:")
print(model.ensemble_.to_string(index=False))
print("\nThe best trials:")
print(model.leaderboard_[["rank", "trial", "algorithm", "score"]].head(5).to_string(index=False))
print(f"\nFailed trials: {len(model.failures_)}")
print(f"Accuracy on {len(X_test)} unseen rows: {model.score(X_test, y_test):.3f}")
probabilities = model.predict_proba(X_test)[0]
print("The first row:", ", ".join(f"{c} {p:.3f}" for c, p in zip(model.classes_, probabilities, strict=True)))
