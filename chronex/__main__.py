"""`python -m chronex`."""

from chronex.cli import main

main()
