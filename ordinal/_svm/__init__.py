"""Support vector machines for ranks: their programs and models.

family          states what tells the four methods apart: programs, losses, thresholds
decompositions  divides ranks into two-class problems
thresholds      finds the thresholds of least cost for the scores of a regression
model           what every fit returns

`ordinal/svm.py` states (P) and (D) and has the functions that users call; the driver is
`ordinal/_programs`.
"""
