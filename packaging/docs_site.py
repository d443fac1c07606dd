"""The pages of the documentation site: docs/, specs/ and the pages at the root in build/pages, for mkdocs to build.

Nothing is written twice: the pages are those of the repository, in the same folders, so that their links hold. A link
to a folder leads to its page; a link to a source file becomes plain text. The reference of the API is made from
the names that `chronex` exports.
"""

import inspect
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
AT_THE_ROOT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_OTHERS = re.compile(r"[a-z]+:|#")


def main() -> int:
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    for folder in ("docs", "specs"):
        for path in sorted((ROOT / folder).rglob("*.md")):
            _copy(path)
    for name in AT_THE_ROOT:
        _copy(ROOT / name)
    (PAGES / "README.md").rename(PAGES / "index.md")
    shutil.copytree(ROOT / "screenshots", PAGES / "screenshots")
    (PAGES / "specs" / "README.md").write_text("\n".join(_specifications()))
    sys.path[:0] = [str(ROOT), str(ROOT / "store")]
    (PAGES / "api.md").write_text("\n".join(api_reference()))
    return 0


# -- pages and their links ----------------------------------------------------------------------------------------


def _copy(path: Path) -> None:
    place = PAGES / path.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text()
    blocks = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    place.write_text("".join(b if b.startswith("```") else _LINK.sub(lambda m: _link(m, path), b) for b in blocks))


def _link(match: re.Match[str], page: Path) -> str:
    """The link as the site has it, or its words alone where it leads out of the documentation."""
    mark, words, target = match.groups()
    if _OTHERS.match(target):
        return match[0]
    name, _, anchor = target.partition("#")
    found = (page.parent / name).resolve()
    here = page.parent.relative_to(ROOT)
    if found.is_dir() and found.relative_to(ROOT).parts[:1] in (("docs",), ("specs",)):
        found = found / "README.md"
    elif not found.is_relative_to(ROOT) or not _is_on_the_site(found):
        return words
    inside = Path("index.md") if found == ROOT / "README.md" else found.relative_to(ROOT)
    shown = os.path.relpath(inside, here)
    return f"{mark}[{words}]({shown}{'#' + anchor if anchor else ''})"


def _is_on_the_site(path: Path) -> bool:
    relative = path.relative_to(ROOT)
    if relative.parts[0] in ("docs", "specs"):
        return path.suffix == ".md"
    return relative.parts[0] == "screenshots" or str(relative) in AT_THE_ROOT


def _specifications() -> Iterator[str]:
    yield "# Specifications\n"
    yield "What is promised, exactly, and what was rejected and why.\n"
    for path in sorted((ROOT / "specs").glob("*.md")):
        yield f"- [{path.read_text().splitlines()[0].lstrip('# ')}]({path.name})"


# -- the reference of the API -------------------------------------------------------------------------------------


def api_reference() -> Iterator[str]:
    import chronex

    yield "# Python API\n"
    yield f"What `import chronex` offers, from its own descriptions. {inspect.getdoc(chronex) or ''}\n"
    for name in sorted(chronex.__all__):
        value = getattr(chronex, name)
        if inspect.ismodule(value) or name.startswith("_"):
            continue
        yield from _described(name, value, "##")
        if inspect.isclass(value):
            for member, method in sorted(vars(value).items()):
                if not member.startswith("_") and (callable(method) or isinstance(method, property)):
                    yield from _described(f"{name}.{member}", method, "###")


def _described(name: str, value: object, heading: str) -> Iterator[str]:
    yield f"{heading} `{name}`\n"
    if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
        with suppress(TypeError, ValueError):
            yield f"```python\n{name.rpartition('.')[2]}{inspect.signature(value)}\n```\n"
    yield f"{inspect.getdoc(value) or ''}\n"


if __name__ == "__main__":
    sys.exit(main())
