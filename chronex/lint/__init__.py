"""The linter: where expressions stand, what is wrong with them, and how findings are written."""
