"""Read the results of a run: leaderboard, summary, model. None of this needs the script that made the run."""

from cashmere import AutoClassifier, Predictor
from cashmere.data import DEMO_TARGET, demo_table
from cashmere.report import summarise_run
from cashmere.storage import run_failures, run_leaderboard

table = demo_table()
X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
AutoClassifier(budget="5trials", metric="roc_auc", resampling="holdout", run_directory="some-run").fit(X, y)

board, facts = run_leaderboard("some-run")
print(facts.title)
print(facts.caption)
print(board[["rank", "trial", "algorithm", "score", "weight"]].head(5).to_string(index=False))
print(f"failed trials: {len(run_failures('some-run'))}")

summary = summarise_run("some-run")  # plain data, ready for json.dumps; the report shows the same
head = summary["headline"]
print("\nensemble:", round(head["ensemble_score"], 4), " cross-fitted:", round(head["cross_fitted_score"], 4))
print("best single model:", round(head["best_score"], 4))
print("digest:", summary["digest"])
print("warnings:", summary["warnings"] or "none")

predictor = Predictor.load("some-run")
print("\nmetric:", predictor.information["metric"], " latency:", predictor.information["latency"])
print(predictor.predict_proba(X.head(3)).round(3))
