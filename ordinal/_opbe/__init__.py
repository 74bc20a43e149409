"""OPBE: its model, its problems, and its fits.

`model` is what the fit returns and fuses the projections, `threes` states the problem
of every rank, `job` fits on the kernel matrix and `on_basis` on a basis of rows.
`ordinal/opbe.py` states (P), (D) and (F) and has the function that users call.
"""
