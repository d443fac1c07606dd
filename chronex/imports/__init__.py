"""Schedules of other systems as job files, with a proof of what stays the same and what changes."""
