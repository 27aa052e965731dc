"""Records that rooms exchange: trials, budgets, losses."""
