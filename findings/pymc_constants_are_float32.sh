#!/bin/sh
# PyMC 5.28.5 (PyTensor 2.38.3): log densities of parameters that are Python numbers have seven digits.
#
# Expected: with floatX = float64, pm.Gamma.dist(2.0, 3.0) has the log density 0.0809338454620645 at 0.4, to 1e-15.
# Seen: 0.0809338851. PyTensor keeps a Python number that float32 holds exactly as a float32 constant, and the logarithm
# of 3 is then one of float32. The same numbers given as numpy.float64 have all digits. In a model the constant stays, too:
# a Gamma prior is off by 8e-8. In PyMC 6.4.0 (Python 3.12) the negative binomial is off in the same way, by 8e-6 over
# 1,000 data. Draws do not notice; evidences, comparisons of models and tests to more than seven digits do.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check pymc==5.28.5 pytensor==2.38.3
PYTENSOR_FLAGS="mode=FAST_COMPILE,cxx=,base_compiledir=$folder/compiled" "$folder/env/bin/python" -W ignore - <<'PYTHON'
import math

import numpy as np
import pymc as pm
import pytensor

exact = math.log(9.0) + math.log(0.4) - 1.2
by_numbers = float(pm.logp(pm.Gamma.dist(2.0, 3.0), 0.4).eval())
by_float64 = float(pm.logp(pm.Gamma.dist(np.float64(2.0), np.float64(3.0)), np.float64(0.4)).eval())
with pm.Model() as model:
    pm.Gamma("s", 2.0, 3.0)
in_model = float(model.compile_logp(jacobian=False)({"s_log__": np.log(0.4)}))
print(f"floatX {pytensor.config.floatX}; exact {exact!r}")
print(f"Python numbers {by_numbers!r}, numpy.float64 {by_float64!r}, in a model {in_model!r}")
assert pytensor.config.floatX == "float64"
assert abs(by_float64 - exact) < 1e-14
assert 1e-9 < abs(by_numbers - exact) < 1e-6
assert 1e-9 < abs(in_model - exact) < 1e-6
PYTHON
