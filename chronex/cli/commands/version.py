"""`chronex version`."""

from __future__ import annotations

from chronex.cli.arguments import check_format
from chronex.cli.options import Form
from chronex.cli.output import out


def version(form: Form = "text") -> None:
    """Show the version.

    Example: chronex version
    """
    from chronex.version import __version__

    if form == "text":  # scripts ask for the version often, so this path loads nothing else
        out(f"chronex {__version__}")
        return
    import json

    check_format(form)
    out(json.dumps({"version": __version__}))
