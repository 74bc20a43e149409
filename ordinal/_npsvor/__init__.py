"""NPSVOR: its model, its programs, and the fits by SMO and by ADMM.

`model` is what every fit returns, `losses` states the program of every rank, and `job`
fits a problem. `ordinal/npsvor.py` states (P) and (D) and has the functions that users
call.
"""
