"""The lowest version of each range in pyproject.toml, as constraints for pip: `make lowest` tests with them."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_BOUND = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=([0-9][0-9.]*)")


def lowest(text: str) -> list[str]:
    project = tomllib.loads(text)["project"]
    wanted = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    return [f"{match[1]}=={match[2]}" for one in wanted if (match := _BOUND.match(one)) is not None]


if __name__ == "__main__":
    print("\n".join(lowest(PROJECT.read_text())))
