"""How far a task of a block SMO kernel has come; driven by ordinal/_blocks.py."""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memset


cdef class BlockTask:
    """Base of the kernels' tasks: one problem that is improved block by block."""

    def __init__(self, double tol, int64_t max_steps, double patience):
        memset(&self.at, 0, sizeof(Progress))
        self.at.tol, self.at.max_steps, self.at.patience = tol, max_steps, patience
        self.at.violation = self.at.best = INFINITY

    @property
    def phase(self):
        return self.at.phase

    @phase.setter
    def phase(self, int value):
        self.at.phase = value
        if value == RUN:       # afresh, from a K g without errors
            self.at.best = INFINITY

    @property
    def steps(self):
        return self.at.steps

    @property
    def patience(self):
        return self.at.patience

    @property
    def indefinite(self):
        """A pair of variables was met along which the objective curves down."""
        return bool(self.at.indefinite)

    @property
    def violation(self):
        """As it was when the last block was chosen."""
        return self.at.violation

    @property
    def pivots(self):
        """What is due in phase NEWTON are pivots of an active set."""
        return bool(self.at.pivots)

    def equip(self, Py_ssize_t room, Py_ssize_t size, double setup):
        """Let pivots be due: of an active set that can hold `room` free variables and
        holds `size`; its first pivot costs `setup` beyond what others do."""
        self.at.face_room, self.at.face_size, self.at.face_setup = room, size, setup

    def leapt(self, double patience, int steps):
        """Go on after a Newton step or pivots, or after they failed."""
        self.at.phase, self.at.work, self.at.patience = RUN, 0, patience
        self.at.steps += steps
