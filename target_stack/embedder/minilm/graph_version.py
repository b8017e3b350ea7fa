"""The version of the graph builder, readable without importing it."""

from __future__ import annotations

VERSION = 1
"""Goes up with every change of `graph.py`, so that no graph that an older one built is used."""
