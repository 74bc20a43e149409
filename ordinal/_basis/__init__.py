"""Models on a basis of m rows, for very many rows.

`choice` finds the rows of a basis, `features` are the vectors z(x) of rows on it.
`losses` states the problem, `sums` is all that a solver asks of the rows and answers it
for those in memory, `proximal` is the solver, `thresholds` finds the best ones for
given scores, `levels` draws samples to begin with. `remote` answers as `sums` does for
rows that lie at workers.

Imports `_model` and what stands below. Methods import it.
"""
