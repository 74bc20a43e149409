"""Piecewise linear scores, the pairwise hinge and its gradient, and SGD for XOFM.

The formulas and their symbols are those of ordinal.xofm.

Tables of pieces (P, m) and of nodes (N, m) have the main effect in column 0, factors in
the following columns, and zeros up to a multiple of XOFM_LANES. A row of data has, for
each feature, the node at or below its value and the fraction (`share`) of the distance
to the next node.
"""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from ._parts cimport call_helpers, each_part, parts_of, run_parts
from ._simd cimport XOFM_LANES, simd, simd_loops, simd_seconds, to_line

import numpy as np

LANES = XOFM_LANES

cdef enum:
    CHUNK_ROWS = 1024        # rows whose scores a thread computes at once
    CHUNK_PAIRS = 32         # pairs of a mini-batch that form a chunk
    THREADED_CHUNKS = 8      # with fewer chunks, waking threads takes longer than work
    CLOCK_INTERVAL = 256     # mini-batches between two readings of the clock


# Pieces and nodes

cdef struct Layout:
    Py_ssize_t d
    Py_ssize_t P                   # number of pieces
    Py_ssize_t N                   # number of nodes, and a last one with a share of 0
    const int32_t* first           # (d + 1,) first piece of each feature; NaN is last
    const int8_t* kind             # (d,) 1: sums from below, -1: above, 0: categories


cdef Layout layout(const int32_t[::1] first, const int8_t[::1] kind) except *:
    cdef Layout s
    cdef Py_ssize_t j
    s.d = kind.shape[0]
    if not (s.d > 0 and first.shape[0] == s.d + 1):
        raise ValueError("layout: inconsistent array shapes")
    s.P, s.first, s.kind = first[s.d], &first[0], &kind[0]
    s.N = s.P + 1
    for j in range(s.d):
        s.N += kind[j] != 0
    return s


def n_nodes(const int32_t[::1] first not None, const int8_t[::1] kind not None) -> int:
    """Return the number of rows of a table of nodes."""
    return layout(first, kind).N


def spread(
    const double[:, ::1] W not None,     # (P, m)
    const int32_t[::1] first not None,
    const int8_t[::1] kind not None,
    double[:, ::1] table not None,       # OUT (N, m)
):
    """Compute the values at the nodes from the weights of the pieces."""
    cdef Layout s = layout(first, kind)
    cdef Py_ssize_t m = W.shape[1]
    if not (W.shape[0] == s.P and table.shape[0] == s.N and table.shape[1] == m
            and m % XOFM_LANES == 0):
        raise ValueError("spread: inconsistent array shapes")
    with nogil:
        simd().xofm_spread(s.first, s.kind, s.d, m, &W[0, 0], &table[0, 0])


def gather(
    const double[:, ::1] G not None,     # (N, m)
    const int32_t[::1] first not None,
    const int8_t[::1] kind not None,
    double[:, ::1] dW not None,          # OUT (P, m)
):
    """Apply the transpose of `spread` to G."""
    cdef Layout s = layout(first, kind)
    cdef Py_ssize_t m = G.shape[1]
    if not (dW.shape[0] == s.P and G.shape[0] == s.N and dW.shape[1] == m
            and m % XOFM_LANES == 0):
        raise ValueError("gather: inconsistent array shapes")
    with nogil:
        simd().xofm_gather(s.first, s.kind, s.d, m, &G[0, 0], &dW[0, 0])


def locate(
    const double[:, :] X not None,           # (n, d) NaN where missing
    const double[::1] knots not None,        # of all features; categories have none
    const int64_t[::1] begin not None,       # (d + 1,) the first knot of a feature
    const int64_t[::1] first not None,       # (d + 1,) the first node of a feature
    int32_t[:, ::1] node not None,           # OUT (n, d) at or below each value
    double[:, ::1] share not None,           # OUT (n, d) of the way to the next
):
    """Locate every value among the knots of its feature. A value beyond the knots is
    moved to the nearest one."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, j, size, at, half
    cdef const double* k
    cdef double x
    if not (node.shape[0] == share.shape[0] == n
            and node.shape[1] == share.shape[1] == d
            and begin.shape[0] == first.shape[0] == d + 1
            and begin[d] == knots.shape[0]):
        raise ValueError("locate: inconsistent array shapes")
    with nogil:
        for i in range(n):
            for j in range(d):
                x = X[i, j]
                size = begin[j + 1] - begin[j]
                share[i, j] = 0
                # the last node of a feature is that of missing values
                if x != x:
                    node[i, j] = <int32_t>(first[j + 1] - 1)
                elif size == 0:
                    node[i, j] = <int32_t>(first[j] + <Py_ssize_t>x)
                elif size == 1:
                    node[i, j] = <int32_t>first[j]
                else:
                    k = &knots[begin[j]]
                    x = max(k[0], min(x, k[size - 1]))
                    # binary search without a branch that could be mispredicted
                    at, size = 0, size - 1
                    while size > 1:
                        half = size // 2
                        at += half * (k[at + half] <= x)
                        size -= half
                    node[i, j] = <int32_t>(first[j] + at)
                    # knots are distinct, so the quotient is finite
                    share[i, j] = (x - k[at]) / (k[at + 1] - k[at])


# Scores and their gradient

cdef bint fits(
    const int32_t[:, ::1] node, const double[:, ::1] share, const double[:, ::1] table,
) noexcept:
    return (node.shape[0] == share.shape[0] and node.shape[1] == share.shape[1]
            and table.shape[1] % XOFM_LANES == 0)


cdef struct Scores:
    const int32_t* node
    const double* share
    const double* table
    double* S
    double* U                      # (n,) scores, or derivatives by the scores
    double* G
    Py_ssize_t n, d, m, N, rows    # rows of a chunk
    const simd_loops* ops


cdef void scores_of(void* given, Py_ssize_t c, int worker) noexcept nogil:
    cdef Scores* q = <Scores*>given
    cdef Py_ssize_t at = c * q.rows
    q.ops.xofm_scores(q.node + at * q.d, q.share + at * q.d, min(q.rows, q.n - at), q.d,
                      q.table, q.m, q.S + at * q.m, q.U + at)


cdef void scatter_of(void* given, Py_ssize_t c, int worker) noexcept nogil:
    cdef Scores* q = <Scores*>given
    cdef Py_ssize_t at = c * q.rows
    q.ops.xofm_scatter(q.node + at * q.d, q.share + at * q.d, min(q.rows, q.n - at),
                       q.d, q.table, q.m, q.S + at * q.m, q.U + at,
                       q.G + c * q.N * q.m)


def scores(
    const int32_t[:, ::1] node not None,     # (n, d)
    const double[:, ::1] share not None,
    const double[:, ::1] table not None,     # (N, m)
    double[:, ::1] S not None,               # OUT (n, m)
    double[::1] U not None,                  # OUT (n,)
    int n_threads,
):
    """Compute S and U of every row. O(n d m)."""
    cdef Py_ssize_t n = node.shape[0], d = node.shape[1], m = table.shape[1]
    cdef Scores q
    if not (fits(node, share, table) and U.shape[0] == S.shape[0] == n
            and S.shape[1] == m):
        raise ValueError("scores: inconsistent array shapes")
    if n == 0:
        return
    q = Scores(&node[0, 0], &share[0, 0], &table[0, 0], &S[0, 0], &U[0], NULL, n, d, m,
               table.shape[0], CHUNK_ROWS, simd())
    run_parts(scores_of, &q, parts_of(n, CHUNK_ROWS), n_threads)


def scatter(
    const int32_t[:, ::1] node not None,     # (n, d)
    const double[:, ::1] share not None,
    const double[:, ::1] table not None,     # (N, m)
    const double[:, ::1] S not None,         # (n, m)
    const double[::1] slope not None,        # (n,)
    Py_ssize_t rows,                         # rows of a chunk
    double[:, :, ::1] G not None,            # IN-OUT (chunks, N, m)
    int n_threads,
):
    """Add to G[c] the gradient of sum_i slope_i U_i over the rows of chunk c."""
    cdef Py_ssize_t n = node.shape[0], d = node.shape[1], m = table.shape[1]
    cdef Py_ssize_t chunks = parts_of(n, rows)
    cdef Scores q
    if not (fits(node, share, table) and slope.shape[0] == S.shape[0] == n
            and S.shape[1] == G.shape[2] == m and G.shape[1] == table.shape[0]
            and chunks <= G.shape[0]):
        raise ValueError("scatter: inconsistent array shapes")
    if n == 0:
        return
    q = Scores(&node[0, 0], &share[0, 0], &table[0, 0], <double*>&S[0, 0],
               <double*>&slope[0], &G[0, 0, 0], n, d, m, table.shape[0], rows, simd())
    run_parts(scatter_of, &q, chunks, n_threads)


# The pairwise squared hinge

cdef inline void tree_add(
    double* tree, Py_ssize_t r, Py_ssize_t k, double w, double x,
) noexcept nogil:
    """Add (w, x) at rank k < r to a Fenwick tree of pairs."""
    k += 1
    while k <= r:
        tree[2 * k] += w
        tree[2 * k + 1] += x
        k += k & -k


cdef inline void tree_sums(
    const double* tree, Py_ssize_t k, double* w, double* x,
) noexcept nogil:
    """Return the sums over the ranks < k of a Fenwick tree in w and x."""
    w[0] = x[0] = 0
    while k > 0:
        w[0] += tree[2 * k]
        x[0] += tree[2 * k + 1]
        k -= k & -k


def hinge(
    const double[::1] U not None,            # (n,) scores
    const int64_t[::1] order not None,       # (n,) rows by increasing score
    const int32_t[::1] rank not None,        # (n,) 0..r-1
    const double[::1] weight not None,
    Py_ssize_t r,
    double tau,
    double[::1] slope not None,              # OUT (n,)
    double[:, ::1] sorted not None,          # scratch (3, n)
    double[::1] tree not None,               # scratch (2 r + 2,)
) -> float:
    """Return the sum over y_i > y_j of w_i w_j / 2 max(0, tau - U_i + U_j)^2, and
    compute its derivatives by U.

    In the order of the scores, the rows j that violate the margin of row i are those
    from some place on. A sweep down and one up keep the sums of their weights and
    weighted scores per rank in a Fenwick tree. O(n log r).
    """
    cdef Py_ssize_t n = U.shape[0], i, p
    cdef double w, x, s, centre, total = 0, loss = 0
    cdef double* u
    cdef double* v
    cdef double* c
    cdef const int64_t* row
    if not (order.shape[0] == rank.shape[0] == weight.shape[0] == slope.shape[0] == n
            and sorted.shape[0] == 3 and sorted.shape[1] == n
            and tree.shape[0] == 2 * r + 2 and n > 0):
        raise ValueError("hinge: inconsistent array shapes")
    with nogil:
        u, v, c, row = &sorted[0, 0], &sorted[1, 0], &sorted[2, 0], &order[0]
        # only differences of scores matter; sums of scores near 0 keep their digits
        centre = 0.5 * (U[row[0]] + U[row[n - 1]])
        for i in range(n):
            u[i], v[i] = U[row[i]] - centre, weight[row[i]]

        memset(&tree[0], 0, (2 * r + 2) * sizeof(double))
        p = n - 1
        for i in range(n - 1, -1, -1):       # row i has the higher rank of the pair
            while p >= 0 and u[p] + tau > u[i]:
                tree_add(&tree[0], r, rank[row[p]], v[p], v[p] * u[p])
                p -= 1
            tree_sums(&tree[0], rank[row[i]], &w, &x)
            s = v[i] * (x + (tau - u[i]) * w)
            c[i] = -s
            total += s

        memset(&tree[0], 0, (2 * r + 2) * sizeof(double))
        p = 0
        for i in range(n):                   # row i has the lower rank of the pair
            while p < n and u[i] + tau > u[p]:
                tree_add(&tree[0], r, r - 1 - rank[row[p]], v[p], v[p] * u[p])
                p += 1
            tree_sums(&tree[0], r - 1 - rank[row[i]], &w, &x)
            c[i] += v[i] * ((u[i] + tau) * w - x)
            # h^2 = h (tau - U_i + U_j): a sum of tau h, and of U times slopes
            loss += c[i] * u[i]
            slope[row[i]] = c[i]
    return 0.5 * (loss + tau * total)


# Stochastic gradient descent

cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """Return a hash of x: the finaliser of splitmix64."""
    x = (x ^ (x >> 30)) * <uint64_t>0xbf58476d1ce4e5b9
    x = (x ^ (x >> 27)) * <uint64_t>0x94d049bb133111eb
    return x ^ (x >> 31)


cdef inline uint64_t permuted(
    uint64_t x, uint64_t size, int bits, uint64_t key,
) noexcept nogil:
    """Return element x of a random permutation of 0..size-1, size <= 2^bits.

    Four Feistel rounds permute 0..2^bits - 1; they are repeated while the result is not
    below `size`.
    """
    cdef int low = bits // 2, high = bits - low, k
    cdef uint64_t left, right, narrow = (<uint64_t>1 << low) - 1
    cdef uint64_t wide = (<uint64_t>1 << high) - 1
    while True:
        for k in range(2):
            left, right = x >> low, x & narrow
            left ^= mix(right + key + 2 * k) & wide
            right ^= mix(left + key + 2 * k + 1) & narrow
            x = left << low | right
        if x < size:
            return x


cdef struct Sgd:
    Layout at
    Py_ssize_t m
    const int32_t* node            # rows sorted by rank
    const double* share
    const double* weight
    const int64_t* start           # (r + 1,) first row of a rank
    const int64_t* before          # (r + 1,) number of pairs of lower higher ranks
    int64_t size                   # number of all pairs
    int64_t done, count            # first pair of a batch, and its number of pairs
    int bits                       # of the numbers of pairs
    uint64_t key
    double tau
    double scale                   # of the slope of a pair: pairs over their weight
    double* W                      # (P, m)
    double* table                  # (N, m)
    double* G                      # (chunks, N, m)
    double* S                      # (chunks, 2, m)
    const simd_loops* ops


cdef void pair_of(const Sgd* p, int64_t number, int64_t* pair) noexcept nogil:
    """Set `pair` to the rows of a pair, the higher rank first."""
    cdef Py_ssize_t k = 1
    while number >= p.before[k + 1]:
        k += 1
    number -= p.before[k]
    pair[0] = p.start[k] + number // p.start[k]
    pair[1] = number % p.start[k]


cdef void add_chunk(void* given, Py_ssize_t chunk, int worker) noexcept nogil:
    """Compute the gradient of a chunk of the `count` pairs from `done` on."""
    cdef const Sgd* p = <const Sgd*>given
    cdef int64_t first = p.done + chunk * CHUNK_PAIRS
    cdef int64_t stop = min(first + CHUNK_PAIRS, p.done + p.count)
    cdef Py_ssize_t d = p.at.d, m = p.m
    cdef int64_t number, epoch
    cdef int64_t pair[2]
    cdef double U[2]
    cdef double slope[2]
    cdef double shortfall
    cdef double* S = p.S + chunk * 2 * m
    cdef double* G = p.G + chunk * p.at.N * m
    cdef int e
    memset(G, 0, p.at.N * m * sizeof(double))
    for number in range(first, stop):
        epoch = number // p.size
        pair_of(p, <int64_t>permuted(
            <uint64_t>(number - epoch * p.size), <uint64_t>p.size, p.bits,
            mix(p.key + <uint64_t>epoch)), pair)
        for e in range(2):
            p.ops.xofm_scores(p.node + pair[e] * d, p.share + pair[e] * d, 1, d,
                              p.table, m, S + e * m, &U[e])
        shortfall = p.tau - U[0] + U[1]
        if shortfall > 0:
            slope[1] = p.scale * p.weight[pair[0]] * p.weight[pair[1]] * shortfall
            slope[0] = -slope[1]
            for e in range(2):
                p.ops.xofm_scatter(p.node + pair[e] * d, p.share + pair[e] * d, 1, d,
                                   p.table, m, S + e * m, &slope[e], G)


def sgd(
    const int32_t[:, ::1] node not None,     # (n, d), rows by rank
    const double[:, ::1] share not None,
    const double[::1] weight not None,       # (n,)
    const int64_t[::1] start not None,       # (r + 1,) every rank has rows
    const int32_t[::1] first not None,
    const int8_t[::1] kind not None,
    double tau,
    double scale,
    const double[::1] decay not None,        # (m,) derivative of the penalty, over W
    const double[::1] floor not None,        # (m,) lower bounds of W
    const uint8_t[::1] squared not None,     # (P,) where column 0 is a square
    double[:, ::1] W not None,               # IN-OUT (P, m)
    double rate,                             # step at the first pair; 0 after the last
    Py_ssize_t batch,
    uint64_t key,
    int64_t done,                            # pairs done before
    int64_t stop,
    int64_t last,                            # pairs of the whole run
    double seconds,
    int n_threads,
) -> int:
    """Run mini-batches of Algorithm 1 from pair `done` to `stop`, or until time is up.
    Return the number of pairs done.

    Pairs are shuffled again for every pass over them. The gradient of a batch is summed
    in chunks of CHUNK_PAIRS pairs, so it does not depend on the number of threads.
    """
    cdef Sgd p
    cdef Py_ssize_t r = start.shape[0] - 1
    cdef Py_ssize_t chunks = parts_of(batch, CHUNK_PAIRS)
    cdef Py_ssize_t m, c, a
    cdef int64_t count, batches = 0
    cdef double now, end = simd_seconds() + seconds
    p.at, p.ops, p.m, m = layout(first, kind), simd(), W.shape[1], W.shape[1]
    if not (fits(node, share, W) and node.shape[1] == p.at.d and W.shape[0] == p.at.P
            and weight.shape[0] == node.shape[0] == start[r] and r > 1
            and decay.shape[0] == floor.shape[0] == m and squared.shape[0] == p.at.P):
        raise ValueError("sgd: inconsistent array shapes")
    cdef double[::1] d = np.empty(
        (chunks + 1) * p.at.N * m + p.at.P * m + chunks * 2 * m + m + 8)
    cdef int64_t[::1] before = np.zeros(r + 1, np.int64)
    for c in range(1, r):
        before[c + 1] = before[c] + (start[c + 1] - start[c]) * start[c]
    p.size, p.bits = before[r], 2
    while (<int64_t>1) << p.bits < p.size:
        p.bits += 1
    p.node, p.share, p.weight = &node[0, 0], &share[0, 0], &weight[0]
    p.start, p.before, p.key, p.tau, p.scale = &start[0], &before[0], key, tau, scale
    p.W, p.table = &W[0, 0], &d[0] + to_line(&d[0], sizeof(double))
    p.G = p.table + p.at.N * m
    p.S = p.G + chunks * p.at.N * m
    cdef double* dW = p.S + chunks * 2 * m
    cdef double* shrink = dW + p.at.P * m
    if chunks >= THREADED_CHUNKS:
        call_helpers(n_threads)
    with nogil:
        p.ops.xofm_spread(p.at.first, p.at.kind, p.at.d, m, p.W, p.table)
        while done < stop:
            count = min(batch, stop - done)
            chunks = parts_of(count, CHUNK_PAIRS)
            p.done, p.count = done, count
            each_part(add_chunk, &p, chunks,
                      1 if chunks < THREADED_CHUNKS else n_threads)
            for c in range(1, chunks):
                for a in range(p.at.N * m):
                    p.G[a] += p.G[c * p.at.N * m + a]
            now = rate * (1 - <double>done / last)
            for a in range(m):
                shrink[a] = 1 - now * decay[a]
            p.ops.xofm_gather(p.at.first, p.at.kind, p.at.d, m, p.G, dW)
            p.ops.xofm_descend(p.at.P, m, dW, now / count, shrink, &floor[0],
                               &squared[0], p.W)
            p.ops.xofm_spread(p.at.first, p.at.kind, p.at.d, m, p.W, p.table)
            done += count
            batches += 1
            if batches % CLOCK_INTERVAL == 0 and simd_seconds() > end:
                break
    return done
