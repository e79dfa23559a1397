"""Figures 1 and 2 of the sublinear paper: traces, and the scaffolds that a transition works on.

    python programs/papers/branch.py               # writes docs/experiments/branch.png and prints the tables

`branch.vnt` where b is true and where it is false, with the scaffold of b, and `logistic.vnt` with four observations,
with that of w. Nothing is drawn by hand: nodes, edges and roles are those of the system's own trace and scaffold.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Venture
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.sources import deciding_nodes, parents_of
from venture_lite.program.code import Code, Kind

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import BAND, DATA, EXACT, OTHER, POSTERIOR, STYLE, panels

PROGRAMS = Path(__file__).parent
PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "branch.png"
# Chen et al. 2014, definitions 2 to 4: what is proposed, the rest of the target set D, the transient set T, the
# absorbing set A; by role the fill and the word of the legend
ROLES = {
    "principal": (OTHER, "principal"),
    "target": (BAND, "computed from it (D)"),
    "transient": ("#F2C4B3", "exists by it (T)"),
    "absorbing": ("#BFE3CF", "absorbs (A)"),
    "": ("white", "untouched"),
}
# characters of a line in a node of the picture
WIDEST = 20


@dataclass(slots=True)
class Node:
    """One evaluated expression of a trace."""

    name: str
    text: str
    value: str
    role: str
    # nodes whose value it reads, and those whose value decides that it exists
    parents: list[int] = field(default_factory=list)
    deciders: list[int] = field(default_factory=list)


Graph = dict[int, Node]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    graphs = {
        "b is true": graph_of(branch(is_true=True), "b"),
        "b is false": graph_of(branch(is_true=False), "b"),
        "logistic regression, 4 observations": graph_of(regression(4), "w"),
    }
    for title, graph in graphs.items():
        print(f"{title}\n{table(graph)}\n")
    draw(graphs, options.picture)


def branch(is_true: bool) -> Model:
    v = Venture(seed=1)
    v.run_file(PROGRAMS / "branch.vnt")
    v.force("b", is_true)
    return v.traces[0]


def regression(count: int) -> Model:
    rng = np.random.default_rng(0)
    v = Venture(seed=1)
    v.run_file(
        PROGRAMS / "logistic.vnt", X=rng.standard_normal((count, 2)), Y=rng.random(count) < 0.5, N=count,
        mu=np.zeros(2), Sig=np.eye(2), nbatch=2, eps=0.1, sig=0.1, T=0,
    )  # fmt: skip
    return v.traces[0]


# ------------------------------------------------------------------------------------------------- the trace


def graph_of(model: Model, principal: str) -> Graph:
    """The program's nodes with their edges, and what the scaffold of one name's choice makes of them."""
    trace = model.trace
    target = trace.analyzer.globals[principal]
    assert target.code is not None
    assert target.code.span is not None
    scaffold = Builder(trace).build([trace.result_node(target.code, target.row)])
    roles = dict.fromkeys(scaffold.principals, "principal") | dict.fromkeys(scaffold.pending, "target")
    roles |= dict.fromkeys(scaffold.absorbing, "absorbing")
    names = {(bound.code, bound.row): name for name, bound in trace.analyzer.globals.items()}
    found: Graph = {}
    for table in trace.tables:
        code = table.code
        if code.span is None or code.span.source is not target.code.span.source:
            continue
        for row in np.flatnonzero(np.frombuffer(table.live, np.uint8, table.count)).tolist():
            for slot in code.steps:
                if code.slots[slot].kind is Kind.LAMBDA:
                    continue
                key = (code.first_site + slot) << 32 | row
                role = "transient" if (code, row) in scaffold.brush else roles.get(key, "")
                name = names.get((code, row), "") if slot == code.result_slot else ""
                node = Node(name, text_of(code, slot), shown(trace.value(key)), role)
                node.parents = list(dict.fromkeys(parents_of(model.trace, key) + predicates(model, key)))
                node.deciders = deciders(model, code, row)
                found[key] = node
    # data that came as parameters are no expressions
    for node in found.values():
        node.parents = [parent for parent in node.parents if parent in found]
    return found


def predicates(model: Model, node: int) -> list[int]:
    """What the predicate of an `if` reads; none for other expressions."""
    code, slot, _ = model.trace.decode(node)
    return deciding_nodes(model.trace, node) if code.slots[slot].branches else []


def deciders(model: Model, code: Code, row: int) -> list[int]:
    """What the predicate of the `if` around a branch reads: by it the branch's expressions exist."""
    caller = model.trace.caller(code, row) if code.kind == "branch" else None
    return [] if caller is None else predicates(model, caller)


def text_of(code: Code, slot: int) -> str:
    """The expression as written, without its tag, on one line."""
    span = code.slots[slot].span
    text = re.sub(r"\s+", " ", span.text) if span is not None else ""
    tagged = re.fullmatch(r"\(scope_include \S+ \S+ (.*)\)", text)
    return tagged[1] if tagged else text


def shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"({', '.join(f'{number:.2f}' for number in value)})"
    return f"{value:.3g}" if isinstance(value, float) else str(value).lower()


def table(graph: Graph) -> str:
    lines = [f"  {'name':<4}  {'expression':<34}  {'value':<14}  role"]
    lines += [f"  {node.name:<4}  {node.text:<34}  {node.value:<14}  {node.role}" for node in graph.values()]
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------- the picture


def draw(graphs: Mapping[str, Graph], out: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.patches import Patch

    with rc_context(STYLE):
        figure, every = panels(1, len(graphs), width=9.0, height=3.4, width_ratios=[2, 3, 6])
        for axes, (title, graph) in zip(every, graphs.items(), strict=True):
            draw_graph(axes, graph)
            axes.set_title(title)
        legend = [Patch(facecolor=fill, edgecolor=DATA, label=word) for role, (fill, word) in ROLES.items() if role]
        figure.legend(handles=legend, loc="outside lower center", ncols=len(legend))
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=100, metadata={"Software": None})


def draw_graph(axes: Any, graph: Graph) -> None:
    places = layered(graph)
    axes.set_axis_off()
    axes.set_xlim(-0.05, 1.05)
    axes.set_ylim(-3.5, 0.5)
    boxes = {}
    for key, node in graph.items():
        name = f"{node.name} = " if node.name else ""
        box = {"boxstyle": "round,pad=0.4", "facecolor": ROLES[node.role][0], "edgecolor": DATA, "linewidth": 0.8}
        text = textwrap.fill(node.text, WIDEST, break_long_words=False)
        boxes[key] = axes.annotate(
            f"{text}\n{name}{node.value}", places[key], ha="center", va="center", fontsize=7, bbox=box
        )
    for key, node in graph.items():
        for parents, dashes, colour in ((node.parents, "-", POSTERIOR), (node.deciders, "--", EXACT)):
            for parent in parents:
                ends = {"patchA": boxes[parent].get_bbox_patch(), "patchB": boxes[key].get_bbox_patch()}
                arrow = {"arrowstyle": "-|>", "linestyle": dashes, "color": colour, "linewidth": 1} | ends
                if places[parent][1] - places[key][1] > 1:
                    # around what lies between
                    arrow["connectionstyle"] = "arc3,rad=0.7"
                axes.annotate("", places[key], places[parent], arrowprops=arrow)


def layered(graph: Graph) -> dict[int, tuple[float, float]]:
    """Each node below all that it reads or exists by, the nodes of a layer side by side."""
    depth: dict[int, int] = {}

    def depth_of(key: int) -> int:
        if key not in depth:
            above = graph[key].parents + graph[key].deciders
            depth[key] = 1 + max((depth_of(parent) for parent in above), default=-1)
        return depth[key]

    layers: dict[int, list[int]] = {}
    for key in graph:
        layers.setdefault(depth_of(key), []).append(key)
    return {
        key: ((at + 0.5) / len(layer), -float(level)) for level, layer in layers.items() for at, key in enumerate(layer)
    }


if __name__ == "__main__":
    main()
