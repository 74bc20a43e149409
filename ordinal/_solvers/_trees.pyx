"""Sums of regression trees: scores of rows, and what each feature contributes to them.

The nodes of all trees are stored one after the other, and so are the leaves. Tree t has
the nodes from first[t] to first[t + 1] and one leaf more than nodes; its first leaf is
leaf first[t] + t. A child c >= 0 is node c of the same tree; a child c < 0 is its leaf
~c. The children of a node have higher numbers than the node, so there are no cycles.

A row goes left at a numerical node if x <= threshold, or if x is NaN and
`missing_left`; at a categorical node if its code, which is x truncated to an integer,
is in the set of the node. NaN, infinite and negative codes are in no set. The rules and
the order of summation are those of LightGBM's `predict(raw_score=True)`, and so are the
bits of the result.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ._parts cimport parts_of, run_parts

cdef enum:
    ROWS = 128                # rows of a block: its features and a tree stay in L1
    LANES = 8                 # rows that descend together, to hide the latency of loads
    STEPS = 2145              # path elements down to level 64, l + 1 of them on level l

    FEW = 4                   # up to so many rows, packing the nodes does not pay

DEEPEST = 64                  # largest level of a node; it bounds the memory of a path
cdef double WALK = 2e-8       # seconds per row and tree
cdef double SHARE = 2e-7      # seconds per row and node of contributions


cdef struct Node:             # a node, or a leaf, which is its own child
    double threshold          # or the number of bits of the set, or the value of a leaf
    int32_t feature
    int32_t[2] child
    int32_t words             # first word of the set of categories, or -1
    int32_t missing_left


cdef struct Forest:
    Py_ssize_t T
    const int64_t* first      # (T + 1,)
    const int32_t* feature    # per node, as are the next six
    const double* threshold
    const uint8_t* missing_left
    const int32_t* category_set  # its number, or -1
    const int32_t* left
    const int32_t* right
    const int64_t* node_rows
    const double* value       # per leaf, as is the next
    const int64_t* leaf_rows
    const int64_t* set_start  # (sets + 1,)
    const uint32_t* words


cdef struct Walk:
    Py_ssize_t n, d
    const double* X
    const Node* nodes         # those of tree t begin at 2 first[t] + t
    const int64_t* first
    const int32_t* depth      # of each tree
    const uint8_t* by_category  # whether a tree has categorical nodes
    const uint32_t* words
    Py_ssize_t begin, end     # trees
    double* out


cdef inline bint in_set(
    double x, double bits, const uint32_t* words,
) noexcept nogil:
    """Return whether the code x is in a set of `bits` bits."""
    cdef int64_t code
    if not -1 < x < bits:
        return False
    code = <int64_t>x
    return (words[code >> 5] >> (code & 31)) & 1


cdef void pack(
    const Forest* f, Py_ssize_t t, Node* nodes, int32_t* depth, uint8_t* by_category,
) noexcept nogil:
    """Pack the nodes and leaves of tree t, and set its depth and `by_category`."""
    cdef Py_ssize_t at = f.first[t], count = f.first[t + 1] - at, i
    cdef int32_t c, s
    cdef Node* node
    depth[0], by_category[0] = 0, False
    for i in range(count):
        nodes[i].missing_left = 0        # holds the level until the node is packed
    for i in range(count):
        node = nodes + i
        s = node.missing_left + 1
        depth[0] = max(depth[0], s)
        if f.left[at + i] >= 0:
            nodes[f.left[at + i]].missing_left = s
        if f.right[at + i] >= 0:
            nodes[f.right[at + i]].missing_left = s
        node.threshold, node.feature = f.threshold[at + i], f.feature[at + i]
        node.missing_left, node.words = f.missing_left[at + i], -1
        s = f.category_set[at + i]
        if s >= 0:
            by_category[0] = True
            node.words = <int32_t>f.set_start[s]
            node.threshold = 32. * (f.set_start[s + 1] - f.set_start[s])
        c = f.left[at + i]
        node.child[0] = c if c >= 0 else <int32_t>count + ~c
        c = f.right[at + i]
        node.child[1] = c if c >= 0 else <int32_t>count + ~c
    for i in range(count + 1):
        node = nodes + count + i
        node.threshold, node.feature, node.words = f.value[at + t + i], 0, -1
        node.child[0] = node.child[1] = <int32_t>(count + i)
        node.missing_left = 0


cdef inline int32_t goes_right(const Node* node, double x) noexcept nogil:
    """Return 1 for right, 0 for left. There is no branch, because half of them would be
    mispredicted."""
    return 1 ^ ((x <= node.threshold) | ((x != x) & node.missing_left))


cdef void walk_block(void* given, Py_ssize_t part, int worker) noexcept nogil:
    """Compute the scores of a block of rows, LANES rows at a time."""
    cdef const Walk* w = <Walk*>given
    cdef Py_ssize_t start = part * ROWS, stop = min(w.n, start + ROWS), t, i, last
    cdef int32_t _level, j, k, moved
    cdef int32_t[LANES] at
    cdef Py_ssize_t[LANES] row           # offset of its features in X
    cdef const Node* nodes
    cdef const Node* node
    cdef double x
    cdef int32_t right
    for t in range(w.begin, w.end):
        nodes = w.nodes + 2 * w.first[t] + t
        for i from start <= i < stop by LANES:
            last = stop - 1
            for j in range(LANES):       # beyond the end, repeat the last row
                at[j] = 0
                row[j] = min(i + j, last) * w.d
            for _level in range(w.depth[t]):
                moved = 0
                if w.by_category[t]:
                    for j in range(LANES):
                        node = nodes + at[j]
                        x = w.X[row[j] + node.feature]
                        if node.words >= 0:
                            right = not in_set(x, node.threshold, w.words + node.words)
                        else:
                            right = goes_right(node, x)
                        k = node.child[right]
                        moved |= k ^ at[j]
                        at[j] = k
                else:
                    for j in range(LANES):
                        node = nodes + at[j]
                        x = w.X[row[j] + node.feature]
                        k = node.child[goes_right(node, x)]
                        moved |= k ^ at[j]
                        at[j] = k
                if moved == 0:
                    break
            for j in range(min(<Py_ssize_t>LANES, stop - i)):
                w.out[i + j] += nodes[at[j]].threshold


cdef inline int32_t next_of(
    const Forest* f, Py_ssize_t node, const double* x,
) noexcept nogil:
    """Return the child of a node that a row goes to."""
    cdef double v = x[f.feature[node]]
    cdef int32_t s = f.category_set[node]
    cdef bint left
    if s >= 0:
        left = in_set(v, 32. * (f.set_start[s + 1] - f.set_start[s]),
                      f.words + f.set_start[s])
    else:
        left = v <= f.threshold[node] or (v != v and f.missing_left[node])
    return f.left[node] if left else f.right[node]


cdef double score_of_row(
    const Forest* f, Py_ssize_t begin, Py_ssize_t end, const double* x, double total,
) noexcept nogil:
    """Return `total` plus the score of one row, without packing the nodes."""
    cdef Py_ssize_t t
    cdef int32_t at
    for t in range(begin, end):
        at = 0 if f.first[t + 1] > f.first[t] else -1
        while at >= 0:
            at = next_of(f, f.first[t] + at, x)
        total += f.value[f.first[t] + t + ~at]
    return total


cdef int read_forest(
    Forest* f, const int64_t[::1] first, const int32_t[::1] feature,
    const double[::1] threshold, const uint8_t[::1] missing_left,
    const int32_t[::1] category_set, const int32_t[::1] left, const int32_t[::1] right,
    const int64_t[::1] node_rows, const double[::1] value, const int64_t[::1] leaf_rows,
    const int64_t[::1] set_start, const uint32_t[::1] words,
) except -1:
    cdef Py_ssize_t N = feature.shape[0]
    f.T = first.shape[0] - 1
    if not (f.T >= 0 and first[0] == 0 and first[f.T] == N
            and threshold.shape[0] == missing_left.shape[0] == N
            and category_set.shape[0] == N
            and left.shape[0] == right.shape[0] == node_rows.shape[0] == N
            and value.shape[0] == leaf_rows.shape[0] == N + f.T
            and set_start.shape[0] > 0 and set_start[0] == 0
            and set_start[set_start.shape[0] - 1] == words.shape[0]):
        raise ValueError("trees: inconsistent array shapes")
    f.value, f.leaf_rows, f.words = NULL, NULL, NULL
    f.feature, f.threshold, f.missing_left, f.category_set = NULL, NULL, NULL, NULL
    f.left, f.right, f.node_rows = NULL, NULL, NULL
    f.first, f.set_start = &first[0], &set_start[0]
    if words.shape[0]:
        f.words = &words[0]
    if f.T:
        f.value, f.leaf_rows = &value[0], &leaf_rows[0]
    if N:
        f.feature, f.threshold = &feature[0], &threshold[0]
        f.missing_left, f.category_set = &missing_left[0], &category_set[0]
        f.left, f.right, f.node_rows = &left[0], &right[0], &node_rows[0]
    return 0


def scores(
    const double[:, ::1] X not None,
    Py_ssize_t begin,                         # first tree of the sum
    Py_ssize_t end,
    double[::1] out not None,                 # INOUT (n,)
    int n_threads,
    const int64_t[::1] first not None,        # (T + 1,) as above
    const int32_t[::1] feature not None,      # (N,) below the columns of X
    const double[::1] threshold not None,     # (N,)
    const uint8_t[::1] missing_left not None,  # (N,)
    const int32_t[::1] category_set not None,  # (N,) number of a set, or -1
    const int32_t[::1] left not None,         # (N,)
    const int32_t[::1] right not None,        # (N,)
    const int64_t[::1] node_rows not None,    # (N,)
    const double[::1] value not None,         # (N + T,)
    const int64_t[::1] leaf_rows not None,    # (N + T,)
    const int64_t[::1] set_start not None,    # (sets + 1,)
    const uint32_t[::1] words not None,       # (set_start[-1],) bits of the sets
):
    """Add the values of the leaves that rows fall into to `out`, tree after tree.

    Calls for one range of trees after the other make the same sums as one call for all.
    """
    cdef Forest f
    cdef Walk w
    cdef Py_ssize_t t
    cdef Node* nodes
    cdef int32_t* depth
    cdef uint8_t* by_category
    read_forest(&f, first, feature, threshold, missing_left, category_set, left,
                right, node_rows, value, leaf_rows, set_start, words)
    if not (out.shape[0] == X.shape[0] and 0 <= begin <= end <= f.T):
        raise ValueError("scores: inconsistent array shapes")
    if X.shape[0] <= FEW:
        for t in range(X.shape[0]):
            out[t] = score_of_row(&f, begin, end, &X[t, 0], out[t])
        return
    nodes = <Node*>malloc((2 * feature.shape[0] + f.T + 1) * sizeof(Node))
    depth = <int32_t*>malloc((f.T + 1) * sizeof(int32_t))
    by_category = <uint8_t*>malloc(f.T + 1)
    try:
        if nodes == NULL or depth == NULL or by_category == NULL:
            raise MemoryError
        with nogil:
            for t in range(begin, end):
                pack(&f, t, nodes + 2 * first[t] + t, depth + t, by_category + t)
        w = Walk(X.shape[0], X.shape[1], &X[0, 0], nodes, &first[0], depth, by_category,
                 f.words, begin, end, &out[0])
        run_parts(walk_block, &w, parts_of(w.n, ROWS), n_threads,
                  WALK * w.n * (end - begin))
    finally:
        free(nodes)
        free(depth)
        free(by_category)


# Contributions: S. M. Lundberg et al., "From local explanations to global
# understanding with explainable AI for trees", Nature Machine Intelligence 2:56-67,
# 2020, Algorithm 2.

cdef struct Step:             # element of a path: a feature that it splits on
    int32_t feature
    double zero               # fraction of the training rows that follow the path
    double one                # 1 if the row follows it, else 0
    double weight             # of subsets of features of the size of its position


cdef struct Shares:
    Forest f
    Py_ssize_t n, d, begin, end
    const double* X
    double* out               # (n, d)


cdef void extend(
    Step* path, Py_ssize_t m, double zero, double one, int32_t feature,
) noexcept nogil:
    """Append an element to a path of m elements (EXTEND of Algorithm 2)."""
    cdef Py_ssize_t i
    path[m] = Step(feature, zero, one, 1. if m == 0 else 0.)
    for i in range(m - 1, -1, -1):
        path[i + 1].weight += one * path[i].weight * (i + 1) / (m + 1)
        path[i].weight = zero * path[i].weight * (m - i) / (m + 1)


cdef void unwind(Step* path, Py_ssize_t m, Py_ssize_t k) noexcept nogil:
    """Remove element k from a path whose last element is m (UNWIND)."""
    cdef double one = path[k].one, zero = path[k].zero, next = path[m].weight, held
    cdef Py_ssize_t i
    for i in range(m - 1, -1, -1):
        if one != 0:
            held = path[i].weight
            path[i].weight = next * (m + 1) / ((i + 1) * one)
            next = held - path[i].weight * zero * (m - i) / (m + 1)
        else:
            path[i].weight = path[i].weight * (m + 1) / (zero * (m - i))
    for i in range(k, m):
        path[i].feature, path[i].zero, path[i].one = (
            path[i + 1].feature, path[i + 1].zero, path[i + 1].one)


cdef double unwound_sum(const Step* path, Py_ssize_t m, Py_ssize_t k) noexcept nogil:
    """Return the sum of the weights of the path without element k."""
    cdef double one = path[k].one, zero = path[k].zero, next = path[m].weight
    cdef double total = 0, held
    cdef Py_ssize_t i
    for i in range(m - 1, -1, -1):
        if one != 0:
            held = next * (m + 1) / ((i + 1) * one)
            total += held
            next = path[i].weight - held * zero * (m - i) / (m + 1)
        else:
            total += path[i].weight / (zero * (m - i) / (m + 1.))
    return total


cdef void share_out(
    const Shares* q, Py_ssize_t t, int32_t at, const double* x, double* phi,
    const Step* parent, Step* path, Py_ssize_t m, double zero, double one,
    int32_t feature,
) noexcept nogil:
    """Add to phi the contributions of the leaves under a node or leaf (RECURSE).

    `path` has room for a copy of the m elements of `parent`, and for those of all
    levels below.
    """
    cdef const Forest* f = &q.f
    cdef Py_ssize_t node, k, i
    cdef int32_t hot, cold
    cdef double v, whole, zero_before = 1, one_before = 1
    memcpy(path, parent, m * sizeof(Step))
    extend(path, m, zero, one, feature)
    if at < 0:
        v = f.value[f.first[t] + t + ~at]
        for i in range(1, m + 1):
            phi[path[i].feature] += (
                unwound_sum(path, m, i) * (path[i].one - path[i].zero) * v)
        return
    node = f.first[t] + at
    hot = next_of(f, node, x)
    cold = f.right[node] if hot == f.left[node] else f.left[node]
    k = 1
    while k <= m and path[k].feature != f.feature[node]:
        k += 1
    if k <= m:                           # one element for all splits on a feature
        zero_before, one_before = path[k].zero, path[k].one
        unwind(path, m, k)
        m -= 1
    whole = f.node_rows[node]
    share_out(q, t, hot, x, phi, path, path + m + 1, m + 1,
              rows_of(f, t, hot) / whole * zero_before, one_before, f.feature[node])
    share_out(q, t, cold, x, phi, path, path + m + 1, m + 1,
              rows_of(f, t, cold) / whole * zero_before, 0, f.feature[node])


cdef inline double rows_of(const Forest* f, Py_ssize_t t, int32_t at) noexcept nogil:
    """Return the number of training rows of a node or leaf of tree t."""
    return f.node_rows[f.first[t] + at] if at >= 0 else (
        f.leaf_rows[f.first[t] + t + ~at])


cdef void share_row(void* given, Py_ssize_t i, int worker) noexcept nogil:
    cdef const Shares* q = <Shares*>given
    cdef Step[STEPS] path                # paths of all levels
    cdef Py_ssize_t t
    for t in range(q.begin, q.end):
        if q.f.first[t + 1] > q.f.first[t]:
            share_out(q, t, 0, q.X + i * q.d, q.out + i * q.d, path, path, 0, 1, 1, -1)


def contributions(
    const double[:, ::1] X not None,
    Py_ssize_t begin,
    Py_ssize_t end,
    double[:, ::1] out not None,              # INOUT (n, d)
    int n_threads,
    const int64_t[::1] first not None,        # these as in `scores`
    const int32_t[::1] feature not None,
    const double[::1] threshold not None,
    const uint8_t[::1] missing_left not None,
    const int32_t[::1] category_set not None,
    const int32_t[::1] left not None,
    const int32_t[::1] right not None,
    const int64_t[::1] node_rows not None,    # (N,) number of training rows, > 0
    const double[::1] value not None,
    const int64_t[::1] leaf_rows not None,    # (N + T,) number of training rows, > 0
    const int64_t[::1] set_start not None,
    const uint32_t[::1] words not None,
):
    """Add the Shapley values of the features for the score of every row to `out`. At
    splits on features outside a coalition, both children count, weighted by training
    rows.

    O(leaves depth^2) per row and tree, of at most DEEPEST levels.
    """
    cdef Shares q
    read_forest(&q.f, first, feature, threshold, missing_left, category_set, left,
                right, node_rows, value, leaf_rows, set_start, words)
    q.n, q.d, q.begin, q.end = X.shape[0], X.shape[1], begin, end
    if not (out.shape[0] == q.n and out.shape[1] == q.d
            and 0 <= begin <= end <= q.f.T):
        raise ValueError("contributions: inconsistent array shapes")
    if q.n == 0:
        return
    q.X, q.out = &X[0, 0], &out[0, 0]
    run_parts(share_row, &q, q.n, n_threads, SHARE * q.n * feature.shape[0])
