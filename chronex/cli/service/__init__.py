"""`chronex service`: the scheduler as a service of the current user, started at login and kept alive."""
