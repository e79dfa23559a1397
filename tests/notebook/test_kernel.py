"""A notebook with a real kernel: what it shows is in the notebook's file afterwards."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

CELLS = (
    "%load_ext venture_lite\nimport numpy as np\ny = np.array([1.0, 2.0, 1.5])",
    "%%venture --seed 1 --chains 2 --into draws\n[assume mu (normal 0 10)]\n"
    "for n in 1...3: [observe (normal mu 1) {y[n]}]\n[predict (+ mu 1)]\n"
    "[infer (repeat 100 (do (mh default one 'drift 1 5) (collect mu)))]",
    "draws['mu'].shape, v",
    "%%venture\n[assume s (normal mu -1)]",
    "v.sample('(+ 1 1)')",
)


@pytest.mark.slow
def test_a_notebook_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    kernel = tmp_path / "jupyter" / "kernels" / "here"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(str({"argv": argv, "display_name": "here"}).replace("'", '"'))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = NotebookClient(notebook, kernel_name="here", timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    with pytest.raises(CellExecutionError, match="sd must be a positive number"):
        asyncio.run(client.async_execute())
    values, shapes, error = (cell.outputs for cell in notebook.cells[1:4])
    assert values[0].text.startswith("(+ mu 1) = ")
    assert "<td>mu</td>" in values[-1].data["text/html"]
    assert shapes[0].data["text/plain"].startswith("((2, 100), <Venture(seed=1, chains=2) with 3 directives>)")
    assert error[0].output_type == "error"
    assert "In[4]:2:11: normal: sd must be a positive number, got -1" in "\n".join(error[0].traceback)
    assert "Traceback" not in "\n".join(error[0].traceback)
