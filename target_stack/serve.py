"""Run one component of the stack: `python -m target_stack.serve COMPONENT CONFIG.json` (or the JSON itself).

A component is a package whose `main` module has a `main(config)` that blocks until SIGTERM; the supervisor calls
the same function in a forked child.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

COMPONENTS = ("engine", "gateway", "embedder", "tools", "agent", "device")
IMPORTED_LATE = ("target_stack.tools.server",)
"""What a component imports after its start, because it would make the start of all others later."""
_BAD_INPUT = 64


def component_main(component: str) -> Callable[[Mapping[str, Any]], None]:
    """The `main` of a component by its name. Raises ValueError for a name that is none."""
    if component not in COMPONENTS:
        raise ValueError(f"no component named {component!r}; there are {', '.join(COMPONENTS)}")
    entry: Callable[[Mapping[str, Any]], None] = importlib.import_module(f"target_stack.{component}.main").main
    return entry


def read_config(text: str) -> dict[str, Any]:
    """A JSON object, given as text or as the path of a file. Raises ValueError or OSError."""
    config = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text("utf-8"))
    if not isinstance(config, dict):
        raise TypeError("the configuration is no JSON object")
    return config


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM; 64 when the arguments make no sense."""
    try:
        component, text = arguments
        serve, config = component_main(component), read_config(text)
    except (ValueError, TypeError, OSError) as problem:
        sys.stderr.write(f"usage: python -m target_stack.serve COMPONENT CONFIG.json|JSON\n{problem}\n")
        return _BAD_INPUT
    serve(config)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
