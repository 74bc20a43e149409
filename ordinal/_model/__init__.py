"""What a fit returns, how it is watched, and how it is prepared.

convergence         record of a finished fit, and the warnings
monitor, progress   clock, callback, time limit and progress line
blas                one thread of numpy's BLAS during a fit
entry               arguments that all fits check and read
registry            methods as they declare themselves
model               base class of the models
support             models over support rows
threshold_model     models with one score and thresholds
hyperplanes         models of several hyperplanes
rules               rules that turn scores and probabilities into ranks
links, calibration  probabilities of ranks from scores
folds               folds and hold-out splits
fields              declared types and rules of fields
files, archive      model files
writing             files that are written whole or not at all
predicted           predictions of rows that are read in chunks
docs                sections of docstrings

`blas`, `convergence`, `fields`, `monitor` and `progress` import `_input` alone, and
`_numerics` may import them. The other modules stand on `kernels` and `_kernel_matrix`.
"""
