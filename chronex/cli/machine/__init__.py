"""`chronex doctor --machine`: will jobs find here what they found in the shell? Looking never changes anything."""

from chronex.cli.machine.report import Check, Verdict, examine

__all__ = ["Check", "Verdict", "examine"]
