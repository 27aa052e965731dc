"""Faults on purpose: commands that hurt runs, trials and fits at random instants and write down what came of it."""
