"""`chronex import`: schedules of other systems, carried over with a proof of what stays and what changes."""
