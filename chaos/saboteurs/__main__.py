"""`python -m chaos.saboteurs PROGRAM WARRANT`: returns when the harm is in force; a process that keeps it so stays.

The process that stays is a child in a session of its own with the same command line, so that whoever knows the warrant
can find it. Exit status: 0 in force; 1 it failed, with the reason on standard error.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from chaos.saboteurs.life import NotPrograms, detached


def programs() -> tuple[str, ...]:
    """All there are: the modules beside this one; folders hold parts of them."""
    names = (path.stem for path in Path(__file__).parent.glob("*.py"))
    return tuple(sorted(name for name in names if name not in NotPrograms))


def main(words: list[str]) -> int:
    """Read, leave a child that does the harm, and wait for its first word."""
    if len(words) != 2 or words[0] not in programs():
        sys.stderr.write(f"usage: python -m chaos.saboteurs {{{','.join(programs())}}} WARRANT\n")
        return 1
    program, warrant = importlib.import_module(f"chaos.saboteurs.{words[0]}"), Path(words[1])
    said = detached(program.harm, warrant)
    sys.stderr.write(said)
    return 1 if said else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
