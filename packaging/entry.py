"""Where the frozen program begins."""

import os
import sys


def main() -> None:
    """A worker of ours announces itself by its first argument; everyone else is a user."""
    # Zone data for machines without their own: one archive, because unpacking 600 small files takes longer
    # than everything else that `chronex next` does.
    sys.path.append(os.path.join(sys._MEIPASS, "tzdata.zip"))  # type: ignore[attr-defined]
    if sys.argv[1:2] == ["--multiprocessing-fork"]:
        from multiprocessing import freeze_support

        freeze_support()
        return
    from chronex.cli import main as run

    run()


main()
