"""A Debian package of the directory form: build.py DIST-DIR OUT. dpkg-deb packs it; nothing has to be compiled.

The program lies in /usr/lib/chronex with its own Python, so that the package needs the C library alone. The service
is not started by the installation: there is no job file yet.
"""

import argparse
import gzip
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from chronex.cli.service_units import Service, systemd_unit

ROOT = Path(__file__).parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CONTROL = """\
Package: chronex
Version: {version}
Architecture: {architecture}
Maintainer: The Chronex authors <chronex@localhost>
Installed-Size: {size}
Depends: libc6 (>= {glibc})
Section: admin
Priority: optional
Description: cron you can see, explain and trust
 A terminal-first, local-first scheduler: a linter and a language server for
 schedules, a dashboard, and a daemon that never loses or doubles a run.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("form", type=Path, help="dist/chronex-dir")
    parser.add_argument("out", type=Path, help="where the package goes")
    given = parser.parse_args()
    print(build(given.form, given.out))
    return 0


def build(form: Path, out: Path) -> Path:
    architecture = _said(["dpkg", "--print-architecture"])
    version = runpy.run_path(str(ROOT / "chronex" / "version.py"))["__version__"]
    tree = out / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    _lay(form, tree)
    size = sum(file.lstat().st_size for file in tree.rglob("*") if not file.is_dir()) // 1024
    oldest_c_library = runpy.run_path(str(ROOT / "packaging" / "c_library.py"))["oldest_c_library"]
    names = {"version": version, "architecture": architecture, "size": size, "glibc": oldest_c_library(form)}
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(CONTROL.format(**names))
    package = out / f"chronex_{version}_{architecture}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(package)], check=True, stdout=sys.stderr
    )
    return package


def _lay(form: Path, tree: Path) -> None:
    """The files of the package, each where Debian has its kind."""
    shutil.copytree(form, tree / "usr/lib/chronex", symlinks=True)
    program = tree / "usr/lib/chronex/chronex"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/chronex").symlink_to("../lib/chronex/chronex")
    _write(tree / "usr/lib/systemd/system/chronex.service", service())
    _write(tree / "usr/share/doc/chronex/copyright", (ROOT / "LICENSE").read_text())
    manual = tree / "usr/share/man/man1/chronex.1.gz"
    manual.parent.mkdir(parents=True)
    manual.write_bytes(gzip.compress(_said([str(program), "man"]).encode(), mtime=0))
    _write(tree / "usr/share/bash-completion/completions/chronex", _said([str(program), "completion", "bash"]))
    _write(tree / "usr/share/zsh/vendor-completions/_chronex", _said([str(program), "completion", "zsh"]))
    _write(tree / "usr/share/fish/vendor_completions.d/chronex.fish", _said([str(program), "completion", "fish"]))


def service() -> str:
    """The unit that `chronex service install --system` writes; without a job file in /etc it does not start."""
    place = Service(
        ("/usr/bin/chronex",), Path("/etc/chronex/chronex.toml"), Path("/var/lib/chronex/store"), PATH, Path()
    )
    unit = systemd_unit(place, is_of_system=True)
    unit = unit.replace("\n[Service]\n", "ConditionPathExists=/etc/chronex/chronex.toml\n\n[Service]\n", 1)
    return unit.replace("Type=notify\n", "Type=notify\nStateDirectory=chronex\nStateDirectoryMode=0700\n", 1)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + ("" if text.endswith("\n") else "\n"))


def _said(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
