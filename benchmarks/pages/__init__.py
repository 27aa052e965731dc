"""Pages whose numbers are computed from kept rows."""
