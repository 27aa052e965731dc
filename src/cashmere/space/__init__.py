"""Search spaces: algorithms, operators, and how configurations become arrays."""
