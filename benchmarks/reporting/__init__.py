"""Tables, charts and pages for results."""
