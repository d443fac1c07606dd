"""Where the frozen program begins."""

import os
import re
import sys

from zone_archive import install

_TRACKER = re.compile(r"from multiprocessing\.resource_tracker import main;main\((\d+)\)")


def main() -> None:
    """A helper of ours announces itself by its arguments; everyone else is a user."""
    # Zone data for machines without their own: one archive, because unpacking 600 small files takes longer
    # than everything else that `chronex next` does.
    install(os.path.join(sys._MEIPASS, "tzdata.zip"))  # type: ignore[attr-defined]
    if not _is_helper(sys.argv):
        from chronex.cli import main as run

        run()


def _is_helper(arguments: list[str]) -> bool:
    """`chronex doctor` opens a store in a process of its own, which begins here too. PyInstaller's way of telling it
    apart loads all of multiprocessing at every start; this one looks at two words first."""
    if arguments[1:2] == ["--multiprocessing-fork"]:
        from multiprocessing.spawn import spawn_main

        pairs = (word.partition("=") for word in arguments[2:])
        spawn_main(**{name: None if value == "None" else int(value) for name, _, value in pairs})
        return True
    if "-c" in arguments[1:-1] and (tracker := _TRACKER.fullmatch(arguments[-1])) is not None:
        from multiprocessing.resource_tracker import main as track

        track(int(tracker[1]))
        os._exit(0)  # it has closed its standard streams, which an ordinary end would flush
    return False


# A process that is spawned would look for this file, which is only in the bundle.
globals().pop("__file__", None)
main()
