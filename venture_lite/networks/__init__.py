"""Networks that learn a density of values from examples: NumPy alone, and nothing here knows of programs or traces.

In processing order: `standardisation` makes inputs of any magnitude fit to be read; `perceptron` is one network,
forwards and backwards; `pooled` reads sets of rows; `heads` turns outputs into a density of one coordinate;
`conditional` joins these to a density of several coordinates, one after another; `fitting` trains it.

Training is on columns of examples in float32, evaluation on one example in float64. Both expect BLAS to have one
thread, as it has while a session infers: the matrices are small, and with one thread a generator gives one network, bit
for bit.
"""
