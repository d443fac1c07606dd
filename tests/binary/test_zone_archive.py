"""The zone data of the frozen program: one archive in memory, read like the package that it was made from."""

from __future__ import annotations

import importlib
import importlib.util
import io
import zipfile
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "packaging" / "zone_archive.py"
TZDATA = importlib.import_module("tzdata")
PACKAGE = Path(str(TZDATA.__file__)).parent
ZONES = ("UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires")


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def archive() -> Any:
    files = [PACKAGE / "zones", *PACKAGE.rglob("__init__.py"), *(PACKAGE / "zoneinfo" / zone for zone in ZONES)]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as written:
        for file in files:
            written.write(file, Path("tzdata") / file.relative_to(PACKAGE))
    return load(SOURCE, "zone_archive").ZoneArchive(packed.getvalue())


def package(archive: Any, name: str) -> ModuleType:
    spec = archive.find_spec(name)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("zone", ZONES)
def test_a_zone_is_read_from_memory_byte_by_byte(archive: Any, zone: str) -> None:
    *folders, last = zone.split("/")
    folder = package(archive, ".".join(["tzdata", "zoneinfo", *folders]))
    assert resources.files(folder).joinpath(last).read_bytes() == (PACKAGE / "zoneinfo" / zone).read_bytes()


def test_the_version_and_the_names_are_those_of_the_package(archive: Any) -> None:
    found = package(archive, "tzdata")
    assert found.IANA_VERSION == TZDATA.IANA_VERSION
    assert resources.files(found).joinpath("zones").read_text("ascii") == (PACKAGE / "zones").read_text("ascii")


@pytest.mark.parametrize("name", ["os", "tzdataset", "tzdata.zoneinfo.Atlantis", "chronex"])
def test_what_is_not_in_it_is_left_to_others(archive: Any, name: str) -> None:
    assert archive.find_spec(name) is None
