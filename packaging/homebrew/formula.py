"""The Homebrew formula of a release: formula.py VERSION HOMEPAGE URL SHA256SUMS > chronex.rb"""

import re
import sys
from pathlib import Path

TEMPLATE = Path(__file__).parent / "chronex.rb.in"
_PACKED = re.compile(r"([0-9a-f]{64}) [ *]chronex-v[^ ]*?-((?:linux|macos)-[a-z0-9_]+)-dir\.tar\.gz")


def formula(version: str, homepage: str, url: str, checksums: str) -> str:
    """ValueError where a form of the release has no checksum."""
    found = {platform: digest for digest, platform in _PACKED.findall(checksums)}
    values = {"VERSION": version, "HOMEPAGE": homepage, "URL": url.rstrip("/")}
    values |= {f"SHA256-{platform}": digest for platform, digest in found.items()}
    text = TEMPLATE.read_text().split("\n", 1)[1]
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    if missing := re.findall(r"@([A-Z0-9a-z_-]+)@", text):
        raise ValueError(f"no value for {', '.join(sorted(set(missing)))}")
    return text


if __name__ == "__main__":
    print(formula(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]).read_text()), end="")
