"""The SVOR family: its programs and its model.

family      states what tells the four methods apart: programs, losses, thresholds
model       what every fit returns
start       begins a fit at another model

`ordinal/svor.py` states the problems and has the functions that users call; the driver
is `ordinal/_programs`.
"""
