"""What there is to use: faults, probes, measures, weaknesses, diagnostic codes, the JSON Schema, the version."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from chaos.commands.front import BadInput, Front
from chaos.faults.catalog import FAULTS
from chaos.probes.catalog import PROBES
from chaos.spec.describe import describe_settings
from chaos.spec.explain import CODES, explain
from chaos.spec.schema import json_schema
from chaos.spec.wording import suggestion
from chaos.stacks.local import weaknesses
from chaos.verdict.measures.catalog import MEASURES
from chaos.verdict.outcome import UPHELD
from chaos.verdict.schema import verdict_schema
from chaos.wiring import catalog_for


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the commands."""
    for name, text, entries in (
        ("faults", "every kind of fault with its settings", FAULTS),
        ("probes", "every probe", PROBES),
        ("measures", "every measure that a hypothesis can use", MEASURES),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("name", nargs="?", metavar="NAME")
        command.add_argument("--json", action="store_true", help="for programs")
        command.set_defaults(run=_catalog(name, entries))
    planted = commands.add_parser("weaknesses", help="the mistakes that can be planted in the bundled stack")
    planted.add_argument("--json", action="store_true", help="for programs")
    planted.set_defaults(run=_weaknesses)
    meaning = commands.add_parser("explain", help="why a diagnostic exists, with a good example")
    meaning.add_argument("code", metavar="CODE")
    meaning.set_defaults(run=_explain)
    schema = commands.add_parser("schema", help="JSON Schema of the experiment file, for editors, or of verdict.json")
    schema.add_argument("--of", choices=["experiment", "verdict"], default="experiment", help="default experiment")
    schema.set_defaults(run=_schema)
    commands.add_parser("version", help="the version of brownout").set_defaults(run=_version)


def _catalog(what: str, entries: Sequence[type]) -> Callable[[argparse.Namespace, Front], int]:
    def run(arguments: argparse.Namespace, front: Front) -> int:
        known = {_name(entry): entry for entry in entries}
        if arguments.name is not None and arguments.name not in known:
            hint = suggestion(arguments.name, known) or f"there are: {', '.join(known)}"
            raise BadInput(f"no {what[:-1]} is called `{arguments.name}`; {hint}")
        chosen = [known[arguments.name]] if arguments.name else list(known.values())
        if arguments.json:
            front.say_json({"version": 1, what: [_record(entry) for entry in chosen]})
        elif arguments.name:
            front.say(_page(chosen[0]))
        else:
            width = max(map(len, known))
            front.say("\n".join(f"{name:<{width}}  {_words(entry, 'summary')}" for name, entry in known.items()))
        return UPHELD

    return run


def _name(entry: Any) -> str:
    name: str = getattr(entry, "kind", None) or entry.name
    return name


def _words(entry: type, attribute: str) -> str:
    return str(getattr(entry, attribute, ""))


_FACTS = ("unit", "compared", "fidelity", "observer", "period_s", "needs_window")
"""Beside these stands `needs`, which is a list."""


def _record(entry: type) -> dict[str, Any]:
    facts = {fact: getattr(entry, fact) for fact in _FACTS if hasattr(entry, fact)}
    if needs := getattr(entry, "needs", None):
        facts["needs"] = [{"what": str(need), "how": need.how} for need in needs]
    settings = [vars(setting) for setting in describe_settings(entry)] if _has_settings(entry) else []
    more = {"notes": list(entry.notes)} if hasattr(entry, "notes") else {}
    return {"name": _name(entry), "summary": _words(entry, "summary"), **facts, "settings": settings, **more}


def _has_settings(entry: type) -> bool:
    return hasattr(entry, "__dataclass_fields__")


def _page(entry: type) -> str:
    lines = [_name(entry), f"  {_words(entry, 'summary')}"]
    lines += [f"  {fact.replace('_', ' ')}: {getattr(entry, fact)}" for fact in _FACTS if hasattr(entry, fact)]
    lines += [f"  needs: {need} ({need.how})" for need in getattr(entry, "needs", ())]
    for handle, needs in getattr(entry, "needs_with", {}).items():
        lines += [f"  needs for targets with the handle `{handle}`: {need} ({need.how})" for need in needs]
    settings = describe_settings(entry) if _has_settings(entry) else []
    lines += ["  settings:"] if settings else ["  no settings"]
    for setting in settings:
        default = "required" if setting.required else f"default {setting.default}"
        bounds = f", {setting.bounds}" if setting.bounds else ""
        lines.append(f"    {setting.key}: {setting.type} ({default}{bounds})")
        lines.append(f"      {setting.doc}")
    lines += [f"  {note}" for note in getattr(entry, "notes", ())]
    return "\n".join(lines)


def _weaknesses(arguments: argparse.Namespace, front: Front) -> int:
    known = weaknesses()
    if arguments.json:
        front.say_json({"version": 1, "weaknesses": known})
        return UPHELD
    width = max((len(weakness["name"]) for weakness in known), default=0)
    front.say("\n".join(f"{weakness['name']:<{width}}  {weakness['summary']}" for weakness in known))
    return UPHELD


def _explain(arguments: argparse.Namespace, front: Front) -> int:
    text = explain(arguments.code)
    if text is None:
        hint = suggestion(arguments.code, CODES) or "`brownout check` prints codes in brackets"
        raise BadInput(f"no diagnostic has the code `{arguments.code}`; {hint}")
    front.say(text.rstrip("\n"))
    return UPHELD


def _schema(arguments: argparse.Namespace, front: Front) -> int:
    front.say_json(verdict_schema() if arguments.of == "verdict" else json_schema(catalog_for(None)))
    return UPHELD


def _version(arguments: argparse.Namespace, front: Front) -> int:  # noqa: ARG001  every command has this shape
    front.say(f"brownout {metadata.version('brownout')}")
    return UPHELD
