"""`chronex torture`: daemons on a database of the user's own, faults, and a verdict (specs/machines.md)."""
