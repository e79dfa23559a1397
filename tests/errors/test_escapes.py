"""What a terminal gets: nothing that moves its cursor, and nothing of a file that a program should not show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from venture_lite import Venture, VentureError
from venture_lite.errors import escaped
from venture_lite.shell.cli import main
from venture_lite.values import quoted

HARMFUL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2066\u200f\x85\r\x00"
ANY = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def test_every_harmful_character_is_escaped_and_no_other() -> None:
    assert not ANY.search(escaped(HARMFUL))
    plain = "Grüße, 你好, naïve\tx\n| ─│ ▁▂▃ λ ²"
    assert escaped(plain) == plain
    assert escaped(escaped(HARMFUL)) == escaped(HARMFUL)


def test_a_string_is_shown_as_it_is_typed() -> None:
    text = quoted(HARMFUL + '"\\\n\t')
    assert not ANY.search(text)
    assert Venture(seed=1).sample(text) == HARMFUL + '"\\\n\t'


@pytest.mark.parametrize(
    "text",
    [
        '[sample "{}"]',
        "[sample 'a{}b]",
        '[infer (print "{}")]',
        '[sample (lookup (dict 1 2) "{}")]',
        "[sample unknown{}name]",
        '[load "{}.vnt"]',
        '[infer (collect (labelled 1 "{}"))]',
        '[sample (normal "{}" 1)]',
        "[sample {{q}}]",
    ],
)
def test_a_command_writes_nothing_harmful(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / f"program{HARMFUL.replace(chr(0), '')}.vnt"
    program.write_text(text.format(HARMFUL.replace("\r", "")), encoding="utf-8")
    for command in ("run", "check"):
        main([command, str(program), *(("--seed", "1") if command == "run" else ())])
    output = capsys.readouterr()
    assert output.out + output.err
    assert not ANY.search(output.out + output.err)


def test_a_message_in_python_is_harmless() -> None:
    with pytest.raises(VentureError) as raised:
        Venture(seed=1).execute(f"[sample (first '{HARMFUL[1:9]}x)]".replace("\x07", ""))
    assert not ANY.search(str(raised.value))


SECRET = "zanzibar:x:0:0:xylophone:/home"


@pytest.mark.parametrize(
    "content",
    [SECRET, f"[assume {SECRET.replace(':', '')}", f'[sample (+ 1 "{SECRET}")]', f"[sample {SECRET.replace(':', '')}]"],
)
def test_a_file_outside_of_the_folder_is_not_quoted(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own").mkdir()
    program, outside = tmp_path / "own" / "program.vnt", tmp_path / "outside.vnt"
    program.write_text('[load "../outside.vnt"]')
    outside.write_text(f"; a comment\n{content}\n")
    for command in ("run", "check"):
        assert main([command, str(program)]) == 1
        told = capsys.readouterr()
        assert "outside.vnt:2:" in told.out + told.err
        assert not re.search("zanzibar|xylophone", told.out + told.err)
    with pytest.raises(VentureError) as raised:
        Venture(seed=1).run_file(program)
    assert raised.value.__cause__ is None
    assert not re.search("zanzibar|xylophone", str(raised.value))
    # what stands beside the program, or below, is
    program.write_text('[load "below/inside.vnt"]')
    (tmp_path / "own" / "below").mkdir()
    (tmp_path / "own" / "below" / "inside.vnt").write_text(f"; a comment\n{content}\n")
    with pytest.raises(VentureError, match="zanzibar"):
        Venture(seed=1).run_file(program)


def test_bytes_of_a_file_outside_of_the_folder_are_not_told(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    program, outside = tmp_path / "own" / "program.vnt", tmp_path / "outside.vnt"
    program.write_text('[load "../outside.vnt"]')
    outside.write_bytes(b"\xfe\xab")
    with pytest.raises(VentureError, match="UTF-8") as raised:
        Venture(seed=1).run_file(program)
    assert "0x" not in str(raised.value)


def test_what_is_loaded_from_outside_works_and_later_errors_do_not_show_its_lines(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    program, outside = tmp_path / "own" / "program.vnt", tmp_path / "outside.vnt"
    outside.write_text("[assume (f secret) (normal 0 (- 0 secret))]")
    program.write_text('[load "../outside.vnt"] [assume x (f -1)]')
    venture = Venture(seed=1)
    venture.run_file(program)
    with pytest.raises(VentureError) as raised:
        venture.predict("(f 1)")
    assert "secret" not in str(raised.value)
