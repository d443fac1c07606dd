"""What is shipped beside the code: the site, the bill of materials, the formula, the lowest versions, the action."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import chronex

ROOT = Path(__file__).parents[1]
PACKAGING = ROOT / "packaging"


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, PACKAGING / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- the site -----------------------------------------------------------------------------------------------------


def pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [page for value in (entry.values() if isinstance(entry, dict) else list(entry)) for page in pages(value)]  # type: ignore[call-overload]


def test_every_page_of_the_site_is_there_or_made() -> None:
    made = {"index.md", "api.md", "specs/README.md"}
    listed = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert [page for page in listed if page not in made and not (ROOT / page).is_file()] == []
    documents = {str(path.relative_to(ROOT)) for path in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tasks/*.md")]}
    assert documents - set(listed) == {"docs/README.md"}  # the site has a navigation of its own


@pytest.mark.parametrize(
    ("text", "page", "expected"),
    [
        ("[a](../specs/lint.md#2)", "docs/looking.md", "[a](../specs/lint.md#2)"),
        ("[a](docs)", "README.md", "[a](docs/README.md)"),
        ("[a](../README.md)", "docs/looking.md", "[a](../index.md)"),
        ("![a](screenshots/jobs.png)", "README.md", "![a](screenshots/jobs.png)"),
        ("[a](packaging/editors)", "README.md", "a"),
        ("[a](../chronex/jobfile/schemas/job-file.schema.json)", "docs/job-file.md", "a"),
        ("[a](https://example.org/x.md)", "README.md", "[a](https://example.org/x.md)"),
        ("[a](#here)", "README.md", "[a](#here)"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_becomes_text(text: str, page: str, expected: str) -> None:
    site = script("docs_site.py")
    assert site._LINK.sub(lambda match: site._link(match, ROOT / page), text) == expected


def test_the_reference_names_everything_that_is_exported() -> None:
    text = "\n".join(script("docs_site.py").api_reference())
    assert [name for name in chronex.__all__ if f"`{name}`" not in text and not name.startswith("_")] == []


# -- packages -----------------------------------------------------------------------------------------------------


def test_the_bill_of_materials_has_every_direct_dependency_with_its_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bill = script("bill_of_materials.py").bill()
    names = {component["name"].lower().replace("_", "-") for component in bill["components"]}
    wanted = {re.match(r"[A-Za-z0-9-]+", one)[0].lower() for one in project["dependencies"]}  # type: ignore[index]
    assert wanted <= names
    refs = {component["bom-ref"] for component in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert all(ref in refs for entry in bill["dependencies"] for ref in entry["dependsOn"])
    assert bill == json.loads(json.dumps(bill))


def test_every_range_has_a_lowest_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    count = len(project["dependencies"]) + sum(map(len, project["optional-dependencies"].values()))
    assert len(script("lowest_versions.py").lowest((ROOT / "pyproject.toml").read_text())) == count


def test_a_formula_has_the_checksum_of_each_platform_or_is_refused() -> None:
    formula = script("homebrew/formula.py").formula
    platforms = ("linux-x86_64", "linux-aarch64", "macos-x86_64", "macos-arm64")
    sums = "".join(f"{number:064x}  chronex-v1.2.3-{name}-dir.tar.gz\n" for number, name in enumerate(platforms))
    text = formula("1.2.3", "https://example.org", "https://example.org/v1.2.3/", sums)
    assert "@" not in re.sub(r"#\{.*?\}", "", text).replace("@chronex", "")
    assert f'sha256 "{3:064x}"' in text
    with pytest.raises(ValueError, match="SHA256-macos-arm64"):
        formula("1.2.3", "h", "u", sums.rpartition("\n")[0].rpartition("\n")[0])


def test_the_action_takes_no_input_into_the_text_of_its_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    scripts = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert scripts
    assert all("${{" not in text for text in scripts)
    given = {name for step in action["runs"]["steps"] for name in re.findall(r"inputs\.([a-z-]+)", str(step))}
    assert given == set(action["inputs"])


def test_the_unit_of_the_debian_package_is_that_of_the_service_command() -> None:
    unit = script("debian/build.py").service()
    assert "KillMode=process" in unit
    assert "ConditionPathExists=/etc/chronex/chronex.toml" in unit
    assert unit.index("ConditionPathExists") < unit.index("[Service]") < unit.index("StateDirectory")


@pytest.mark.parametrize("package", ["chronex", "chronex_tui", "store/chronex_store"])
def test_every_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_the_entry_for_schemastore_matches_the_files_that_lint_knows() -> None:
    entry = json.loads((PACKAGING / "editors" / "schemastore" / "catalog-entry.json").read_text())
    assert entry["fileMatch"] == ["chronex.toml", "*.chronex.toml"]
    assert set(entry) == {"name", "description", "fileMatch", "url"}
