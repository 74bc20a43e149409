"""KDLOR: its model, what the rows are to its problem, its dual program, and the fits.

`model` is what every fit returns, `scatter` what the rows are to (P), `program` solves
(D) and cuts the score, and `job` fits a problem. `ordinal/kdlor.py` states (P) and (D)
and has the function that users call.
"""
