"""Script and style of report.html: files beside this one, put into the page, and the policy that lets nothing else in.

The policy names both by their hash. Whatever a stack says about itself, and even a mistake of ours in escaping it, can
neither run nor ask anything of a network.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

_HERE = Path(__file__).parent / "assets"
STYLES = ("page.css",)
SCRIPTS = (
    "make.js",
    "scales.js",
    "panels.js",
    "layers.js",
    "timeline.js",
    "sorting.js",
    "waterfall.js",
    "requests.js",
    "page.js",
)
"""In the order in which they need each other."""


def style() -> str:
    """The whole style sheet."""
    return "\n" + "\n".join(_text(name) for name in STYLES)


def script() -> str:
    """The whole script: classic, strict, in a scope of its own."""
    parts = "\n".join(_text(name) for name in SCRIPTS)
    return f'\n"use strict";\n(() => {{\n{parts}\n}})();\n'


def policy() -> str:
    """The content security policy of a page that holds exactly this style and this script."""
    return f"default-src 'none'; style-src '{_hash(style())}'; script-src '{_hash(script())}'; base-uri 'none'"


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
