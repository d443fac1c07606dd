"""`chronex simulate`: the coming days of all jobs, played through and counted."""
