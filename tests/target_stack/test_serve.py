"""Running one component alone."""

from __future__ import annotations

import pytest

from target_stack.serve import component_main, main, read_config


def test_a_config_is_json_text_or_a_file(tmp_path):
    (tmp_path / "c.json").write_text('{"a": 1}')
    assert read_config(' {"a": 1}') == {"a": 1}
    assert read_config(str(tmp_path / "c.json")) == {"a": 1}


def test_an_unknown_component_is_refused_with_the_known_ones():
    known = "engine, gateway, embedder, tools, agent"
    with pytest.raises(ValueError, match=f"no component named 'engin'; there are {known}"):
        component_main("engin")


@pytest.mark.parametrize(
    "arguments", [[], ["tools"], ["tools", "{}", "x"], ["tols", "{}"], ["tools", "/no/such/file"], ["tools", "{x"]]
)
def test_senseless_arguments_end_with_64_and_say_how(arguments, capsys):
    assert main(arguments) == 64
    assert "usage: python -m target_stack.serve COMPONENT" in capsys.readouterr().err


@pytest.mark.parametrize("component", ["embedder", "tools", "agent"])
def test_a_component_has_a_main(component):
    assert callable(component_main(component))
