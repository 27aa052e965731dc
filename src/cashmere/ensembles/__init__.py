"""From many predictions to one."""
