"""Records that rooms hand to each other: trials, budgets, losses."""
