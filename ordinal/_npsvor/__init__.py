"""NPSVOR: its programs, its model, and the solver of the paper.

family      states the program of every rank
admm        solves all ranks and points at once by ADMM
model       what every fit returns

`ordinal/npsvor.py` states (P) and (D) and has the functions that users call; the driver
for SMO and for a basis is `ordinal/_programs`.
"""
