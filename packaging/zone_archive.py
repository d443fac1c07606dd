"""Zone data for machines without their own: the tzdata package out of one archive that is held in memory.

The one-file program is unpacked into a temporary directory, which a cleaner may empty while a daemon runs: what is
read later than at the start must not lie there.
"""

import sys


class ZoneArchive:
    """Finds and loads `tzdata` and the packages below it; the archive is opened when a zone is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._archive = None

    @property
    def archive(self):  # type: ignore[no-untyped-def]
        if self._archive is None:
            from io import BytesIO
            from zipfile import ZipFile

            self._archive = ZipFile(BytesIO(self._data))
        return self._archive

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if (
            name.partition(".")[0] != "tzdata"
            or f"{name.replace('.', '/')}/__init__.py" not in self.archive.NameToInfo
        ):
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):  # type: ignore[no-untyped-def]
        return None

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        source = self.archive.read(f"{module.__name__.replace('.', '/')}/__init__.py")
        exec(compile(source, f"<{module.__name__}>", "exec"), module.__dict__)

    def get_resource_reader(self, name):  # type: ignore[no-untyped-def]
        from importlib.resources.abc import TraversableResources
        from zipfile import Path

        folder = Path(self.archive, f"{name.replace('.', '/')}/")

        class Folder(TraversableResources):
            def files(self):  # type: ignore[no-untyped-def]
                return folder

        return Folder()


def install(path: str) -> None:
    """Serve tzdata from the archive at `path`, which is read now and not needed again."""
    with open(path, "rb") as file:
        sys.meta_path.append(ZoneArchive(file.read()))
