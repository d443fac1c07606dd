"""The JSON Schema of the execution report, for those who read it in a hook or from `chronex report`.

It is made from the types of the report itself and lies in chronex/views/schemas; after a change of a field,
`python -m chronex.views.report_schema` writes it anew. Further keys are allowed, because the report may grow.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from chronex.engine.execution_report import Report

FILE = Path(__file__).parent / "schemas" / "report.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """The schema as it stands in its file."""
    made = {"$schema": _DIALECT, "title": "Chronex execution report", **msgspec.json.schema(Report)}
    return json.dumps(made, indent=1) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(schema_text(), "utf-8")
