"""Sums over the rows of a cumulative link mixed model, by the levels of a factor.

Rows are sorted by the levels of the first factor, so each level is a run of rows, and a
part of the work consists of whole levels. A sum belongs to one level, or the caller
forms it from `by_row`; so the result does not depend on the number of threads. Random
effects b move the predictor of row i by z_i'b. The notation is that of
`ordinal/mixed/likelihood.py`: w is the weight of a row, l = log P, and l', l'' and
l''' are its derivatives by the predictor.

A cell is a level of the first factor together with one of the m effects of the others
that its rows have. `LevelCells` computes the Schur complement of the first factor, and
the blocks of the inverse, from the cells alone.
"""
from libc.math cimport isinf
from libc.stdint cimport int64_t

from ._cumulative cimport terms_of
from ._parts cimport run_parts
from ._third_derivatives cimport thirds_of

cdef Py_ssize_t BLOCK = 128  # rows of a block: their terms stay in the cache
cdef double ROW = 1e-7       # seconds per row


cdef inline double finite(double a) noexcept nogil:
    return 0 if isinf(a) else a


cdef struct Slopes:          # derivatives of l of one row
    double eta, up, low, spread


cdef inline Slopes slopes_of(
    const double* t, Py_ssize_t n, double a, double b, double s,
) noexcept nogil:
    cdef Slopes d
    cdef double low = t[n] - t[2 * n]
    d.eta, d.up, d.low = -t[n] * s, t[2 * n] * s, low * s
    d.spread = -(finite(a) * t[2 * n] + finite(b) * low)
    return d


cdef struct Task:
    int link
    Py_ssize_t n, G, q, m, R, width
    const double* ends       # (4, n) upper and lower ends at b = 0, widths, 1 / s
    const double* weight
    const double* Z          # (n, q + R) columns of the first factor, then of others
    const int64_t* at        # (n, R) index of the effect, of the m others, of each
    const int64_t* cell      # (n, R) number of the cell of each
    const int64_t* starts    # (G + 1,) first rows of the levels
    const int64_t* parts     # first levels of the parts
    const double* b          # (G q + m,) effects, those of the first factor first
    double* terms            # (6, n)
    double least             # lower bound imposed on -l''
    const double* share      # (G,) factors of `direct`; or NULL
    double* direct           # (4, n) sums of w dl by eta, both thresholds and log s
    double* thirds           # (2, n)
    double* H                # (n,) z'Vz
    const double* V          # (G, q, q) covariances of the effects of each level,
    const double* beside     # (cells, q) of these with the others, by cell,
    const double* rest       # (m, width) and of the others, in blocks
    const double* k          # (G q + m,) twice the change of b
    double* value            # (G,) sums of w l
    double* first            # (G, q) sums of by_row[0] z
    double* second           # (G, q) sums of by_row[1] z, or (G, q, q) with zz'
    double* by_row           # (2, n) summands of both, without z


cdef inline double product(
    const Task* t, Py_ssize_t i, Py_ssize_t g, const double* b,
) noexcept nogil:
    """Return z_i'b, where row i has level g of the first factor."""
    cdef Py_ssize_t j
    cdef const double* z = t.Z + i * (t.q + t.R)
    cdef double r = 0
    for j in range(t.q):
        r += z[j] * b[g * t.q + j]
    for j in range(t.R):
        r += z[t.q + j] * b[t.G * t.q + t.at[i * t.R + j]]
    return r


cdef double form(const Task* t, Py_ssize_t i, Py_ssize_t g) noexcept nogil:
    """Return z_i'V z_i, where row i has level g of the first factor."""
    cdef Py_ssize_t j, k
    cdef const double* z = t.Z + i * (t.q + t.R)
    cdef const int64_t* at = t.at + i * t.R
    cdef const int64_t* cell = t.cell + i * t.R
    cdef double v = 0
    for j in range(t.q):
        for k in range(t.q):
            v += z[j] * z[k] * t.V[(g * t.q + j) * t.q + k]
        for k in range(t.R):
            v += 2 * z[j] * z[t.q + k] * t.beside[cell[k] * t.q + j]
    for j in range(t.R):
        for k in range(t.R):
            v += z[t.q + j] * z[t.q + k] * t.rest[at[j] * t.width + at[k] % t.width]
    return v


cdef inline void add(
    const Task* t, double* sums, Py_ssize_t i, double x,
) noexcept nogil:
    """Add x z_i, for the effects of the first factor."""
    cdef Py_ssize_t j
    for j in range(t.q):
        sums[j] += x * t.Z[i * (t.q + t.R) + j]


cdef struct Block:           # rows of a block; ends of their ranks at the effects b
    Py_ssize_t start, stop
    double[128] a, b, delta
    int64_t[128] level


ctypedef void (*Work)(Task*, Block*) noexcept nogil


cdef void in_blocks(Task* t, Py_ssize_t part, Work work) noexcept nogil:
    """Call `work` for the rows of a part, block by block."""
    cdef Py_ssize_t i, j, g = t.parts[part], last = t.starts[t.parts[part + 1]]
    cdef double r, s
    cdef Block q
    q.start = t.starts[g]
    while q.start < last:
        q.stop = min(q.start + BLOCK, last)
        for i in range(q.start, q.stop):
            while i >= t.starts[g + 1]:
                g += 1
            j = i - q.start
            q.level[j] = g
            r, s = product(t, i, g, t.b), t.ends[3 * t.n + i]
            q.a[j], q.b[j] = (t.ends[i] - r) * s, (t.ends[t.n + i] - r) * s
            q.delta[j] = t.ends[2 * t.n + i] * s
        work(t, &q)
        q.start = q.stop


cdef void terms_of_block(Task* t, Block* q) noexcept nogil:
    cdef Py_ssize_t i, j, own, n = t.n
    cdef double w, s, slope, bend, share
    cdef const double* z
    cdef double* row
    cdef Slopes d
    terms_of(t.link, q.a, q.b, q.delta, q.stop - q.start, t.terms + q.start, n)
    for i in range(q.start, q.stop):
        own = q.level[i - q.start]
        w, s, row = t.weight[i], t.ends[3 * n + i], t.terms + i
        if t.share != NULL:
            share = w * t.share[own]
            d = slopes_of(row, n, q.a[i - q.start], q.b[i - q.start], s)
            t.direct[i] += share * d.eta
            t.direct[n + i] += share * d.up
            t.direct[2 * n + i] += share * d.low
            t.direct[3 * n + i] += share * d.spread
        slope = -w * row[n] * s
        bend = w * max(-(row[3 * n] + row[4 * n]) * s * s, t.least)
        if w > 0:
            t.value[own] += w * row[0]
        t.by_row[i], t.by_row[n + i] = slope, bend
        add(t, t.first + own * t.q, i, slope)
        z = t.Z + i * (t.q + t.R)
        for j in range(t.q):
            add(t, t.second + (own * t.q + j) * t.q, i, bend * z[j])


cdef void terms_of_part(void* given, Py_ssize_t part, int worker) noexcept nogil:
    in_blocks(<Task*>given, part, terms_of_block)


cdef void bends_of_block(Task* t, Block* q) noexcept nogil:
    cdef Py_ssize_t i, own, n = t.n
    cdef double s
    thirds_of(t.link, q.a, q.b, q.delta, q.stop - q.start, t.thirds + q.start, n)
    for i in range(q.start, q.stop):
        own, s = q.level[i - q.start], t.ends[3 * n + i]
        t.H[i] = form(t, i, own)
        t.by_row[i] = -t.weight[i] * t.H[i] * s * s * s * (
            t.thirds[i] + t.thirds[n + i])
        add(t, t.first + own * t.q, i, t.by_row[i])


cdef void bends_of_part(void* given, Py_ssize_t part, int worker) noexcept nogil:
    in_blocks(<Task*>given, part, bends_of_block)


cdef void moves_of_block(Task* t, Block* q) noexcept nogil:
    cdef Py_ssize_t i, own, n = t.n
    cdef double w, s, a, b, t1, t2, c1, c2, bend, k, H
    cdef double* row
    cdef Slopes d
    for i in range(q.start, q.stop):
        own = q.level[i - q.start]
        w, s, row = t.weight[i], t.ends[3 * n + i], t.terms + i
        t1, t2, c1, c2 = t.thirds[i], t.thirds[n + i], row[3 * n], row[4 * n]
        a, b = q.a[i - q.start], q.b[i - q.start]
        d = slopes_of(row, n, a, b, s)
        a, b, bend = finite(a), finite(b), (c1 + c2) * s * s
        k, H = w * product(t, i, own, t.k) / 2, w * t.H[i] / 2
        t.by_row[i] = k * bend - H * (t1 + t2) * s * s * s
        t.by_row[n + i] = w * d.eta / 2
        t.direct[i] += t.by_row[i]
        t.direct[n + i] += -k * c1 * s * s + H * t1 * s * s * s
        t.direct[2 * n + i] += -k * c2 * s * s + H * t2 * s * s * s
        t.direct[3 * n + i] += k * (-d.eta + (a * c1 + b * c2) * s) - H * (
            2 * bend + (a * t1 + b * t2) * s * s)
        add(t, t.first + own * t.q, i, t.by_row[i])
        add(t, t.second + own * t.q, i, t.by_row[n + i])


cdef void moves_of_part(void* given, Py_ssize_t part, int worker) noexcept nogil:
    in_blocks(<Task*>given, part, moves_of_block)


cdef class LevelRows:
    """Rows of a mixed model, with their likelihood terms at given parameters and b."""

    cdef Task t
    cdef Py_ssize_t n_parts
    cdef int n_threads
    cdef object held                         # owners of the memory that t points to

    def __cinit__(
        self,
        int link,                            # its number in LINKS of `_cumulative`
        const double[::1] weight not None,   # (n,)
        const double[:, ::1] Z not None,     # (n, q + R)
        const int64_t[:, ::1] at not None,   # (n, R)
        const int64_t[:, ::1] cell not None,  # (n, R)
        const int64_t[::1] starts not None,  # (G + 1,)
        const int64_t[::1] parts not None,   # from 0 to G
        Py_ssize_t m,
        Py_ssize_t width,                    # of the blocks of the m effects
        double[:, ::1] numbers not None,     # (9, n) scratch
        int n_threads,
    ):
        cdef Py_ssize_t n = weight.shape[0], R = at.shape[1], G = starts.shape[0] - 1
        if not (Z.shape[0] == at.shape[0] == starts[G] == numbers.shape[1] == n
                and cell.shape[0] == n and cell.shape[1] == R and n > 0
                and numbers.shape[0] == 9 and parts[parts.shape[0] - 1] == G
                and Z.shape[1] > R):
            raise ValueError("LevelRows: inconsistent array shapes")
        self.held = weight, Z, at, cell, starts, parts, numbers
        self.n_parts, self.n_threads = parts.shape[0] - 1, n_threads
        self.t.link, self.t.n, self.t.G, self.t.m, self.t.R = link, n, G, m, R
        self.t.q, self.t.width = Z.shape[1] - R, width
        self.t.weight, self.t.Z = &weight[0], &Z[0, 0]
        self.t.at = &at[0, 0] if R else NULL
        self.t.cell = &cell[0, 0] if R else NULL
        self.t.starts, self.t.parts = &starts[0], &parts[0]
        self.t.terms, self.t.thirds = &numbers[0, 0], &numbers[6, 0]
        self.t.H = &numbers[8, 0]

    cdef int check(
        self, const double[:, ::1] ends, const double[::1] b, double[:, ::1] by_row,
        double[:, ::1] first,
    ) except -1:
        cdef Task* t = &self.t
        if not (ends.shape[0] == 4 and ends.shape[1] == by_row.shape[1] == t.n
                and b.shape[0] == t.G * t.q + t.m and by_row.shape[0] == 2
                and first.shape[0] == t.G and first.shape[1] == t.q):
            raise ValueError("LevelRows: inconsistent array shapes")
        t.ends, t.b, t.by_row, t.first = &ends[0, 0], &b[0], &by_row[0, 0], &first[0, 0]
        return 0

    def terms(
        self,
        const double[:, ::1] ends not None,  # (4, n)
        const double[::1] b not None,        # (G q + m,)
        double least,
        const double[::1] share not None,    # (G,), or empty
        double[:, ::1] direct not None,      # IN-OUT (4, n), with share
        double[::1] value not None,          # IN-OUT (G,)
        double[:, ::1] first not None,       # IN-OUT (G, q) sums of w l'
        double[:, :, ::1] second not None,   # IN-OUT (G, q, q) of -w l''
        double[:, ::1] by_row not None,      # OUT (2, n) both
    ):
        """Compute l and its derivatives, and keep them for `moves`."""
        self.check(ends, b, by_row, first)
        self.t.least, self.t.share = least, NULL
        if share.shape[0]:
            self.t.share, self.t.direct = &share[0], &direct[0, 0]
        self.t.value, self.t.second = &value[0], &second[0, 0, 0]
        run_parts(terms_of_part, &self.t, self.n_parts, self.n_threads, ROW * self.t.n)

    def bends(
        self,
        const double[:, ::1] ends not None,      # (4, n)
        const double[::1] b not None,            # (G q + m,)
        const double[:, :, ::1] V not None,      # (G, q, q)
        const double[:, ::1] beside not None,    # (cells, q)
        const double[:, ::1] rest not None,      # (m, width)
        double[:, ::1] first not None,           # IN-OUT (G, q) sums of w H l'''
        double[:, ::1] by_row not None,          # OUT (2, n) summands; row 1 is unused
    ):
        """Compute H and the third derivatives, and keep them for `moves`."""
        self.check(ends, b, by_row, first)
        self.t.V = &V[0, 0, 0]
        if self.t.m:
            self.t.beside, self.t.rest = &beside[0, 0], &rest[0, 0]
        run_parts(bends_of_part, &self.t, self.n_parts, self.n_threads, ROW * self.t.n)

    def moves(
        self,
        const double[:, ::1] ends not None,  # (4, n)
        const double[::1] b not None,        # (G q + m,)
        const double[::1] k not None,        # (G q + m,)
        double[:, ::1] direct not None,      # IN-OUT (4, n) to which D_q are added
        double[:, ::1] first not None,       # IN-OUT (G, q) sums of those by eta
        double[:, ::1] second not None,      # IN-OUT (G, q) and of w l' / 2
        double[:, ::1] by_row not None,      # OUT (2, n) summands of both
    ):
        """Compute the derivatives by the ends of the ranks through k and H, with the
        terms of the last calls of `terms` and `bends`."""
        self.check(ends, b, by_row, first)
        self.t.k, self.t.direct, self.t.second = &k[0], &direct[0, 0], &second[0, 0]
        run_parts(moves_of_part, &self.t, self.n_parts, self.n_threads, ROW * self.t.n)


cdef struct Cells:
    Py_ssize_t q, width
    const int64_t* starts    # (G + 1,) first cells of the levels
    const int64_t* column    # (cells,) effect of each cell, increasing in a level
    const int64_t* place     # (cells,) its place in the block of the effect
    const int64_t* level     # (cells,) its level
    const int64_t* begins    # (m + 1,) first entries of the effects in `cells`
    const int64_t* cells     # (cells,) cells sorted by effect
    const double* F          # (cells, q)
    const double* B          # (cells, q)
    double* S                # (m, width)
    double* out              # (cells, q)


cdef void subtract_row(void* given, Py_ssize_t row, int worker) noexcept nogil:
    cdef Cells* t = <Cells*>given
    cdef Py_ssize_t i, j, k, own, first, last
    cdef double f
    cdef double* S = t.S + row * t.width
    for i in range(t.begins[row], t.begins[row + 1]):
        own = t.cells[i]
        first, last = t.starts[t.level[own]], t.starts[t.level[own] + 1]
        for j in range(t.q):
            f = t.F[own * t.q + j]
            for k in range(first, last):
                S[t.place[k]] -= f * t.B[k * t.q + j]


cdef void multiply_level(void* given, Py_ssize_t g, int worker) noexcept nogil:
    cdef Cells* t = <Cells*>given
    cdef Py_ssize_t i, j, k
    cdef const double* S
    cdef double v
    for i in range(t.starts[g], t.starts[g + 1]):
        S = t.S + t.column[i] * t.width
        for j in range(t.q):
            v = 0
            for k in range(t.starts[g], t.starts[g + 1]):
                v += t.F[k * t.q + j] * S[t.place[k]]
            t.out[i * t.q + j] = v


cdef double PRODUCT = 2e-9   # seconds per product


cdef class LevelCells:
    """Cells of the levels of the first factor with effects of the others."""

    cdef Cells t
    cdef int n_threads
    cdef double seconds
    cdef object held

    def __cinit__(
        self,
        Py_ssize_t q,
        Py_ssize_t width,                    # of the blocks of the m effects
        const int64_t[::1] starts not None,  # (G + 1,)
        const int64_t[::1] column not None,  # (cells,)
        const int64_t[::1] place not None,   # (cells,) column modulo width
        const int64_t[::1] level not None,   # (cells,)
        const int64_t[::1] begins not None,  # (m + 1,)
        const int64_t[::1] cells not None,   # (cells,)
        int n_threads,
    ):
        cdef Py_ssize_t n = column.shape[0], g
        if not (level.shape[0] == cells.shape[0] == place.shape[0] == n > 0
                and width > 0
                and starts[starts.shape[0] - 1] == n
                and begins[begins.shape[0] - 1] == n):
            raise ValueError("LevelCells: inconsistent array shapes")
        self.held = starts, column, place, level, begins, cells
        self.t.q, self.t.width, self.n_threads = q, width, n_threads
        self.t.starts, self.t.column, self.t.level = &starts[0], &column[0], &level[0]
        self.t.begins, self.t.cells, self.t.place = &begins[0], &cells[0], &place[0]
        for g in range(starts.shape[0] - 1):
            self.seconds += PRODUCT * q * <double>(starts[g + 1] - starts[g]) ** 2

    def subtract_products(
        self,
        const double[:, ::1] F not None,     # (cells, q)
        const double[:, ::1] B not None,     # (cells, q)
        double[:, ::1] S not None,           # IN-OUT (m, width)
    ):
        """Subtract F'B, the sums over levels of the products of their cells, from S."""
        cdef Py_ssize_t n = self.held[1].shape[0], m = self.held[4].shape[0] - 1
        if not (F.shape[0] == B.shape[0] == n and F.shape[1] == B.shape[1] == self.t.q
                and S.shape[0] == m and S.shape[1] == self.t.width):
            raise ValueError("LevelCells: inconsistent array shapes")
        self.t.F, self.t.B, self.t.S = &F[0, 0], &B[0, 0], &S[0, 0]
        run_parts(subtract_row, &self.t, m, self.n_threads, self.seconds)

    def products_by_cell(
        self,
        const double[:, ::1] F not None,     # (cells, q)
        double[:, ::1] S not None,           # (m, width), symmetric
        double[:, ::1] out not None,         # OUT (cells, q)
    ):
        """Compute F S at the cells."""
        cdef Py_ssize_t n = self.held[1].shape[0], m = self.held[4].shape[0] - 1
        if not (F.shape[0] == out.shape[0] == n and S.shape[0] == m
                and F.shape[1] == out.shape[1] == self.t.q
                and S.shape[1] == self.t.width):
            raise ValueError("LevelCells: inconsistent array shapes")
        self.t.F, self.t.S, self.t.out = &F[0, 0], &S[0, 0], &out[0, 0]
        run_parts(multiply_level, &self.t, self.held[0].shape[0] - 1, self.n_threads,
                  self.seconds)
