"""Thin shells around the lines that the models draw."""
