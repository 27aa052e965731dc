"""How runs are made, kept and described."""
