"""Names below the public functions that several test files use.

What a public function shows is tested through that function. Solvers, sums, readers
and kernels are tested by themselves, too; the names that more than one file needs for
that are imported here, so that a module of the package moves by a change of one line.
"""

# ruff: noqa: F401  (the names are for other files)

from ordinal._cumulative import likelihood
from ordinal._cumulative.design import Design, structure_of
from ordinal._cumulative.likelihood import Likelihood
from ordinal._cumulative.rowwise import RowwiseLikelihood
from ordinal._files import readers
from ordinal._files.readers import Layout
from ordinal._files.table import read_table
from ordinal._input.columns import read_frame
from ordinal._input.features import read_features
from ordinal._input.frame import Frame
from ordinal._input.labels import read_labels
from ordinal._input.problem import Problem
from ordinal._input.sparse import CSR
from ordinal._model import folds, kernel_fit
from ordinal._model.folds import fold_shares
from ordinal._model.labelled import BY_ROW
from ordinal._model.links import CumulativeLink, falling
from ordinal._model.registry import method_of, methods, path_of
from ordinal._model.storage import checksum
from ordinal._numerics import cholesky
from ordinal._numerics.cholesky import pivoted_cholesky
from ordinal._numerics.tails import normal_margin
from ordinal._numerics.threads import at_work
from ordinal._quadratic import driver
from ordinal._quadratic.driver import least_rows, solve
from ordinal._quadratic.on_basis import RowsOnBasis
from ordinal._quadratic.program import Gram, Points, Program
from ordinal._rows import source
from ordinal._rows.first_pass import ChunkedProblem
from ordinal._rows.source import CHUNK, Arrays
from ordinal._rows.sums import Moments, pairwise
from ordinal._solvers import _parts
from ordinal._solvers._cumulative import LINKS
from ordinal._watch.cancellation import (
    OutOfTime,
    Stopped,
    check_cancelled,
    ended_by,
    stopped_by,
)
from ordinal._watch.monitor import Monitor
from ordinal._watch.progress import Line
from ordinal.kernels import tiles
from ordinal.kernels.basis_rows import drawn, stratified
from ordinal.kernels.features import ColumnFeatures, RowFeatures, row_features
from ordinal.networks import training
