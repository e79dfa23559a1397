"""The usage of an action as a pattern of its arguments."""

from __future__ import annotations

import pytest

from venture_lite.checker.inference import ROLES
from venture_lite.errors import Source
from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.usage import Bracketed, Clause, Clauses, Optional, Repeated, Role, matched, pattern_of
from venture_lite.language.parse import parse_expression
from venture_lite.language.syntax import Form


def roles(usage: str, written: str) -> list[str] | None:
    """The arguments of a form by their roles, as the usage says; None where it is not written so."""
    form = parse_expression(Source("", written))
    assert isinstance(form, Form)
    found = matched((usage,), form.items[1:])
    return None if found is None else [f"{role} {item.span.text}" for role, item in found.arguments]


def test_a_usage_is_read_as_a_pattern() -> None:
    assert pattern_of("(a X 'm Y ['w Z ['v]] ['u] (Z T ...) U ... V... [W ...])") == (
        Role("X"),
        Clauses(
            (
                Clause("m", (Role("Y"),), required=True),
                Clause("w", (Role("Z"),), required=False),
                Clause("v", (), required=False, inside="w"),
                Clause("u", (), required=False),
            )
        ),
        Bracketed((Repeated((Role("Z"), Role("T")), 1),)),
        Repeated((Role("U"),), 1),
        Repeated((Role("V"),), 1),
        Optional((Repeated((Role("W"),), 1),)),
    )


@pytest.mark.parametrize(
    ("usage", "written", "wanted"),
    [
        ("(mh S B T)", "(mh s 'one 3)", ["S s", "B 'one", "T 3"]),
        ("(mh S B T)", "(mh s one)", None),
        ("(mh S B T)", "(mh s one 3 4)", None),
        ("(mh S 'drift X T)", "(mh s 'drift 0.1 3)", ["S s", "X 0.1", "T 3"]),
        ("(mh S 'drift X T)", "(mh s drift 0.1 3)", ["S s", "X 0.1", "T 3"]),
        ("(mh S 'drift X T)", "(mh s 'drfit 0.1 3)", None),
        ("(k S ['proxy] ['audit F] T)", "(k s 3)", ["S s", "T 3"]),
        ("(k S ['proxy] ['audit F] T)", "(k s 'proxy 'audit 0.1 3)", ["S s", "F 0.1", "T 3"]),
        ("(k S ['proxy] ['audit F] T)", "(k s 'audit 0.1 'proxy 3)", ["S s", "F 0.1", "T 3"]),
        ("(k S ['proxy] ['audit F] T)", "(k s 'proxy 'proxy 3)", None),
        ("(k S ['drift X ['scaled]] ['proxy] T)", "(k s 'proxy 'drift 0.1 'scaled 3)", ["S s", "X 0.1", "T 3"]),
        ("(k S ['drift X ['scaled]] ['proxy] T)", "(k s 'scaled 'drift 0.1 3)", ["S s", "X 0.1", "T 3"]),
        ("(k S ['drift X ['scaled]] ['proxy] T)", "(k s 'scaled 'proxy 3)", None),
        ("(k S 'drift X ['proxy] T)", "(k s 'proxy 'drift 0.1 3)", ["S s", "X 0.1", "T 3"]),
        ("(k S 'drift X ['proxy] T)", "(k s 'proxy 3)", None),
        ("(k S ['proxy] T)", "(k s proxy)", ["S s", "T proxy"]),
        ("(mh S PROPOSAL T)", "(mh s f 3)", ["S s", "PROPOSAL f", "T 3"]),
        ("(mh S PROPOSAL T)", "(mh s 'f 3)", None),
        ("(repeat T K ...)", "(repeat 3 a b)", ["T 3", "K a", "K b"]),
        ("(repeat T K ...)", "(repeat 3)", None),
        ("(anneal S T K...)", "(anneal s 3 a b)", ["S s", "T 3", "K a", "K b"]),
        ("(do [K ...])", "(do)", []),
        ("(do K ...)", "(do)", None),
        ("(mixture (W K ...) T)", "(mixture (1 a 2 b) 3)", ["W 1", "K a", "W 2", "K b", "T 3"]),
        ("(mixture (W K ...) T)", "(mixture (1 a 2) 3)", None),
        ("(mixture (W K ...) T)", "(mixture 1 3)", None),
    ],
)
def test_a_form_is_matched(usage: str, written: str, wanted: list[str] | None) -> None:
    assert roles(usage, written) == wanted


def test_a_form_may_be_as_long_as_a_table_of_data() -> None:
    """Each item once, however deep Python lets calls be nested."""
    items = [f"x{n}" for n in range(3000)]
    assert roles("(collect EXPR ...)", f"(collect {' '.join(items)})") == [f"EXPR {item}" for item in items]


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_can_be_read(name: str) -> None:
    """Scopes, blocks, kernels and expressions of every action are looked through."""
    for usage in ACTIONS[name].usage:
        assert usage.startswith(f"({name}")
        names = {part.name for part in _roles(pattern_of(usage))}
        assert names <= {*ROLES} or names & {*ROLES}, "capitals that nothing looks through"


def _roles(pattern: tuple[object, ...]) -> list[Role]:
    found: list[Role] = []
    for part in pattern:
        match part:
            case Role():
                found.append(part)
            case Clauses(clauses):
                found.extend(role for clause in clauses for role in clause.roles)
            case Bracketed(parts) | Optional(parts) | Repeated(parts, _):
                found.extend(_roles(parts))
    return found
