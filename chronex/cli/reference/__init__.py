"""The command line described by itself: shell completions and the manual page, generated from the declarations."""
