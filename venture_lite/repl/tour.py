"""`?`: the language in a screenful. Every line is run when it is asked for, in a model of its own."""

from __future__ import annotations

from typing import Any

from venture_lite.draws.presentation import cut
from venture_lite.errors import Source
from venture_lite.language.parse import parse_program
from venture_lite.repl.entry import as_samples
from venture_lite.repl.reply import reply
from venture_lite.session import DirectiveResult, Venture
from venture_lite.shell.report import RunReport

SEED = 1
EXAMPLES = (
    ("a model: names, random choices, procedures that remember what they drew", (
        "[assume mu (normal 1.5 1)]",
        "[assume height (mem (lambda (who) (normal mu 0.2)))]",
    )),
    ("what was seen, one by one or in a loop over data; and what to predict", (
        "[observe (height 'ann) 1.8]",
        "for n in 1...3: [observe (height n) {heights[n]}]",
        "[predict (height 'bob)]",
    )),
    ("inference is a program too: 500 draws from the posterior", (
        "(repeat 500 (do (mh default one 'drift 0.2 20) (collect mu)))",
    )),
    ("questions to the model as it is now", (
        "mu",
        "(list mu (height 'bob) (normal 0 1))",
        "[get_logscore]",
    )),
)  # fmt: skip
PARAMETERS: dict[str, Any] = {"heights": [1.6, 1.9, 2.3]}


def tour(width: int) -> str:
    """The examples with what they gave: beside them where that is one line, else below."""
    answers = _answers()
    margin = max(len(text) for text in answers if len(answers[text]) == 1) + 2
    lines = ["help NAME explains a name, Tab completes one, ? is this page, Ctrl-D leaves."]
    for title, texts in EXAMPLES:
        lines += ["", f"; {title}"]
        for text in texts:
            if len(answers[text]) == 1:
                lines.append(cut(f"{text.ljust(margin)}; {answers[text][0]}", width))
            else:
                lines += [text, *(cut(f"  {line}", width) for line in answers[text])]
    return "\n".join(lines)


def _answers() -> dict[str, list[str]]:
    """What the prompt answers to each example, one after the other."""
    session = Venture(SEED)
    found: dict[str, list[str]] = {}
    for _, texts in EXAMPLES:
        for text in texts:
            lines: list[str] = []
            source = Source("<tour>", text)

            def answered(result: DirectiveResult, lines: list[str] = lines) -> None:
                for answer in reply(RunReport.of(result), result.directive, True, 80, "ascii"):
                    lines.extend(answer.split("\n"))

            session.run_source(source, PARAMETERS, answered, as_samples(parse_program(source), ()))
            found[text] = lines
    return found
