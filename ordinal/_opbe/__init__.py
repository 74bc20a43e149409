"""OPBE: its programs and its model.

family      states the program of every rank: before, here or after
model       what the fit returns, which fuses the projections of the ranks

`ordinal/opbe.py` states (P), (D) and (F) and has the function that users call; the
driver is `ordinal/_programs`.
"""
