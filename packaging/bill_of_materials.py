"""What a release is made of, as CycloneDX 1.6: bill_of_materials.py > chronex.cdx.json

Of the environment that this runs in, the packages which Chronex and its extras need, by their own metadata. Nothing
in it depends on the time or the machine: the same environment gives the same bytes.
"""

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRAS = ("lsp", "postgres", "calendars")


def main() -> None:
    json.dump(bill(), sys.stdout, indent=1, sort_keys=True)
    print()


def bill(root: str = "chronex", extras: tuple[str, ...] = _EXTRAS) -> dict[str, object]:
    found: dict[str, Distribution] = {}
    links: dict[str, list[str]] = {}
    _walk(root, frozenset(extras), found, links)
    others = {name: one for name, one in found.items() if name != root}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_component(found[root]), "type": "application"}},
        "components": [_component(one) for _, one in sorted(others.items())],
        "dependencies": [
            {"ref": _purl(found[name]), "dependsOn": sorted(_purl(found[other]) for other in links[name])}
            for name in sorted(found)
        ],
    }


def _walk(name: str, extras: frozenset[str], found: dict[str, Distribution], links: dict[str, list[str]]) -> None:
    """Depth first; what is not installed here, such as what another platform needs, is no part of it."""
    if name in found:
        return
    found[name] = distribution(name)
    links[name] = []
    for requirement in found[name].requires or []:
        text, _, marker = requirement.partition(";")
        wanted = re.search(r"extra == [\"']([^\"']+)[\"']", marker)
        if wanted is not None and wanted[1] not in extras:
            continue
        match = _NAME.match(text.strip())
        other = re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""
        try:
            more = frozenset(re.findall(r"[A-Za-z0-9_-]+", (re.search(r"\[(.*?)\]", text) or [""])[0]))
            _walk(other, more, found, links)
        except PackageNotFoundError:
            continue
        links[name].append(other)


def _component(one: Distribution) -> dict[str, object]:
    name, version = one.metadata["Name"], one.version
    component: dict[str, object] = {
        "type": "library", "bom-ref": _purl(one), "name": name, "version": version, "purl": _purl(one)
    }  # fmt: skip
    if licence := _licence(one):
        component["licenses"] = [licence]
    return component


def _licence(one: Distribution) -> dict[str, object] | None:
    if expression := one.metadata.get("License-Expression"):
        return {"expression": expression}
    named = [c.rpartition(" :: ")[2] for c in one.metadata.get_all("Classifier") or [] if c.startswith("License")]
    return {"license": {"name": named[0]}} if named else None


def _purl(one: Distribution) -> str:
    name = re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
    return f"pkg:pypi/{name}@{one.version}"


if __name__ == "__main__":
    main()
