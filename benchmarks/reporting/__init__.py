"""Tables, charts and pages that results are shown in."""
