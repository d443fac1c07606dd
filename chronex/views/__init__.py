"""Read models for people: what the jobs are, what will run, why something ran or did not. Nothing here writes."""
