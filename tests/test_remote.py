"""Rows at workers: the same bytes as in one process, whoever holds and loses them."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from blas import rows_keep_their_bytes
from hypothesis import given
from hypothesis import strategies as st
from internals import RowFeatures, RowsOnBasis, pairwise, stratified
from test_proximal import fit, made, svor_losses

from ordinal._dask.basis import BasisPart, BlockState, RemoteSums, needed
from ordinal._dask.transport import Event, NeedsReplay, RemoteState, Request
from ordinal._quadratic.on_basis import cached_chunks
from ordinal._quadratic.sums import CHUNK, CachedFeatures, LocalSums, RowSums
from ordinal._rows.sums import Node, merged, whole
from ordinal.kernels import RBF

SIZES = [CHUNK + 100, 500, 2 * CHUNK, 900, 300]


class Block(CachedFeatures):
    def __init__(self, Z):
        super().__init__(Z)
        self.restricted_to = lambda numbers: CachedFeatures(Z[numbers])


def in_double(Z):
    return CachedFeatures(Z + 1e-5)


def features(block, room, n_threads):
    Z, y = block
    return BlockState(
        Block(Z), in_double(Z.astype(float)), y, np.ones(len(y), np.float32)
    )


class Workers:
    """Parts in this process, of which some are lost now and then."""

    def __init__(self, groups, blocks, lose=0, read=features, room=0):
        self.parts = [
            BasisPart(group, len(blocks), 1, room, read, *(blocks[k] for k in group))
            for group in groups
        ]
        self.lose, self.asked, self.behind = lose, 0, 0

    def __len__(self):
        return len(self.parts)

    def ask(self, requests):
        self.asked += 1
        if self.lose and self.asked % self.lose == 0:
            k = self.asked // self.lose % len(self.parts)
            self.parts[k] = pickle.loads(pickle.dumps(self.parts[k]))
        answers = {k: self.parts[k].answer(q) for k, q in requests.items()}
        self.behind += sum(
            isinstance(answer, NeedsReplay) for answer in answers.values()
        )
        return answers


def problem(sizes=SIZES, m=6):
    Z, y = made(n=sum(sizes), m=m)
    Z, ends = Z.astype(np.float32), np.cumsum(sizes)
    cut = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    return Z, y, [(Z[rows], y[rows]) for rows in cut]


class Blocks(LocalSums):
    """Expected answers of the parts: each block by itself, and the tree of their
    sums."""

    def __init__(self, blocks, losses, share=1, seed=0):
        self.blocks, self.sums = blocks, []
        for k, (Z, y) in enumerate(blocks):
            rows = slice(None)
            if share < 1:
                rng = np.random.default_rng([seed, k])
                rows = stratified(y, round(share * len(y)), rng)
            Z, y = Z[rows], y[rows]
            weight = np.ones(len(y), np.float32)
            self.sums.append(
                LocalSums(RowSums(CachedFeatures(Z), y, weight, losses, 1))
            )
        self.n, self.m, self.losses = 0, blocks[0][0].shape[1], losses

    def accept(self):
        for sums in self.sums:
            sums.accept()

    def in_double(self):
        new = copy.copy(self)
        new.sums = [
            sums.in_double(in_double(Z.astype(float)))
            for sums, (Z, _) in zip(self.sums, self.blocks, strict=True)
        ]
        return new

    def _move_to(self, *point):
        for sums in self.sums:
            sums._move_to(*point)

    def _sum(self, *question):
        return pairwise(sums._sum(*question) for sums in self.sums)


def begun(state, losses, *sample, m=6):
    state.record("begin", losses, m, *sample)
    return RemoteSums(state, sum(SIZES), m, losses)


def same_fit(here, there, tol, start=None):
    here, there = fit(here, tol, start), fit(there, tol, start)
    assert there.w.tobytes() == here.w.tobytes()
    assert there.b.tobytes() == here.b.tobytes()
    assert (there.primal, there.dual) == (here.primal, here.dual)
    return there


@pytest.mark.slow("fits by workers of their own")
@pytest.mark.parametrize(
    "groups", [[[0, 1, 2, 3, 4]], [[1, 4], [0, 2, 3]], [[4], [2], [0], [3], [1]]]
)
@pytest.mark.parametrize("lose", [0, 5])
@pytest.mark.parametrize("method", ["svorim", "svorex"])
def test_bytes_do_not_depend_on_who_holds_or_loses_rows(method, lose, groups):
    Z, y, blocks = problem()
    losses = svor_losses(method, 4, 1.0)
    workers = Workers(groups, blocks, lose)
    state = RemoteState(workers, needed)
    sampled = begun(state, losses, 0.25, 7)
    some = same_fit(Blocks(blocks, losses, 0.25, 7), sampled, 1e-3)
    here, there = Blocks(blocks, losses), begun(state, losses)  # `some` is forgotten
    every = same_fit(here, there, 1e-3, some.end)
    same_fit(here.in_double(), there.in_double(), 1e-6, every.here)
    assert (workers.behind > 0) == (lose > 0)
    together = LocalSums(
        RowSums(CachedFeatures(Z), y, np.ones(len(y), np.float32), losses, 1)
    )
    whole = fit(together, 1e-3)
    assert every.primal <= whole.primal + 1e-3 * abs(whole.primal)
    assert every.dual <= whole.primal  # a bound of the same problem


@rows_keep_their_bytes
def test_bytes_do_not_depend_on_what_a_worker_has_room_for():
    """Features are kept where there are other parts, or made anew."""
    rng = np.random.default_rng(3)
    sizes = [CHUNK + 100, 3000, CHUNK]
    X = rng.normal(size=(sum(sizes), 3))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [-0.5, 0.5, 1.5])
    cut = np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])
    blocks = [(X[rows], y[rows].astype(np.int32)) for rows in cut]
    on = RowFeatures(RBF(0.5), X[rng.integers(0, len(X), 40)])

    def read(block, room, n_threads):
        Z = RowsOnBasis(
            on, block[0], cached_chunks(len(block[0]), room), n_threads, True
        )
        return BlockState(Z, None, block[1], np.ones(len(block[1]), np.float32))

    losses = svor_losses("svorim", 4, 1.0)
    found = []
    for groups, room in (
        ([[0, 1, 2]], CHUNK),
        ([[2], [0, 1]], CHUNK),
        ([[0, 1, 2]], 0),
    ):
        state = RemoteState(Workers(groups, blocks, 0, read, room), needed)
        some = fit(begun(state, losses, 0.3, 5, m=on.m), 1e-3)
        every = fit(begun(state, losses, m=on.m), 1e-3, some.end)
        found.append([some.w, some.b, every.w, every.b])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_an_interrupted_question_is_asked_again():
    """Some parts have made moves then of which the others have not heard."""
    _, _, blocks = problem(SIZES[:2])
    losses, w, b = svor_losses("svorim", 4, 1.0), np.ones(6), np.array([-1.0, 0.0, 1.0])
    here, workers = Blocks(blocks, losses), Workers([[0], [1]], blocks)
    there = begun(RemoteState(workers, needed), losses)
    for sums in (here, there):
        sums.at(w, b, 0.1)
        sums.accept()
    real = workers.ask

    def interrupted(questions):
        workers.parts[1].answer(questions[1])
        raise KeyboardInterrupt

    workers.ask = interrupted
    with pytest.raises(KeyboardInterrupt):
        there.loss(b)
    workers.ask = real
    for sums in (here, there):
        sums.at(0.5 * w, b, 0.1)
        sums.accept()
    np.testing.assert_array_equal(
        there.at(w, b, 0.2).back, here.at(w, b, 0.2).back, strict=True
    )
    assert workers.behind == 1


moves = st.lists(
    st.sampled_from(["begin", "move_to", "move_to", "accept"]), max_size=12
)


@given(moves, st.integers(0, 12))
def test_dropped_events_are_overwritten(names, known):
    """A part that heard of all moves and one that heard of the needed ones agree."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(30, 2)), rng.integers(0, 3, 30).astype(np.int32)
    given_ = {
        "begin": lambda k: (svor_losses("svorim", 3, 1.0 + k), 2, 1, 0),
        "move_to": lambda k: (rng.normal(size=2), rng.normal(size=2), 0.3),
        "accept": lambda k: (),
    }
    every = [
        Event(name, given_[name](k))
        for k, name in enumerate(["begin", "move_to", *names])
    ]
    known = min(known, len(every))
    answers = []
    for heard in ([every], [every[:known], needed(every[known:])]):
        part = BasisPart([0], 1, 1, 0, features, (Z.astype(np.float32), y))
        made = 0
        for some in heard:
            request = Request(
                made, tuple(some), made + len(some), "loss", (np.ones(2),)
            )
            if some and (made or some[0].name == "begin"):
                part.answer(request)
                made = request.applied
        answers += [
            part.answer(Request(made, (), made, name, arguments))[0].parts
            for name, arguments in (
                ("point", ()), ("slopes", (np.array([0.0, 0.5, 2.0]),)),
                ("loss", (np.zeros(2),)), ("curvature", (1.0,)),
            )
        ]  # fmt: skip
    for one, other in zip(answers[:4], answers[4:], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(needed(every)) <= 3 + 2 * names.count("accept")


@given(st.integers(1, 40), st.sets(st.integers(1, 39)), st.randoms())
def test_nodes_make_one_tree(n, cuts, random):
    rng = np.random.default_rng(n)
    values = rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, n)

    def leaf(k):
        return Node(k, 0, (np.array([values[k]]),))

    ends = sorted({cut for cut in cuts if cut < n} | {n})
    spans = [range(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    random.shuffle(spans)
    half = len(spans) // 2  # two workers, each with some of the spans
    held = [
        merged(leaf(k) for span in sorted(own, key=min) for k in span)
        for own in (spans[:half], spans[half:])
    ]
    nodes = sorted(held[0] + held[1], key=lambda node: node.first)
    (there,), (here,) = whole(merged(nodes)), pairwise(leaf(k).parts for k in range(n))
    assert there.tobytes() == here.tobytes()
    held = [merged(map(leaf, own), n) for own in (range(n // 3), range(n // 3, n))]
    assert n // 3 or len(held[1]) == 1  # what is missing at the end costs nothing
    (there,) = whole(merged(held[0] + held[1]))
    assert there.tobytes() == here.tobytes()


DASK = """
import os, signal, time
from functools import partial
import numpy as np
import dask
import dask.array as da
from dask.distributed import Client, LocalCluster
import ordinal
from ordinal._dask.transport import DaskTransport

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 3))
y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), [-1.0, 0.5])
real, asked, later, killed = DaskTransport.ask, 0, 0, []

# a fit, and how many questions lie between the losses of two workers
FITS = [
    (partial(ordinal.fit_svorim, basis=20, gamma=0.5, C=10.0), 55),
    (partial(ordinal.fit_tlssvor, basis=20, gamma=0.5, u=1e6), 5),
    (partial(ordinal.fit_pom, l2=0.01), 1),
]

def bytes_of(fit):
    there = da.from_array(X, chunks=(1000, 3)), da.from_array(y, chunks=1000)
    model = fit(*there)
    return model.coef.tobytes() + model.thresholds.tobytes()

def kill_a_holder(workers):
    # by its nanny: the scheduler may not know yet of a worker that was killed before
    while True:
        held = {of for some in client.who_has(workers._blocks).values() for of in some}
        for nanny in cluster.workers.values():
            if nanny.worker_address in held and nanny.pid and nanny.pid not in killed:
                killed.append(nanny.pid)
                os.kill(nanny.pid, signal.SIGKILL)
                return
        time.sleep(0.01)

def ask(workers, questions):
    global asked
    asked += 1
    if asked in (5, 5 + later):
        kill_a_holder(workers)
    return real(workers, questions)

if __name__ == "__main__":
    # a local cluster gives workers up that were gone for 15 s, restarted or not
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster, Client(cluster) as client:
        for fit, later in FITS:
            client.wait_for_workers(2)
            DaskTransport.ask, asked, before = real, 0, len(killed)
            whole = bytes_of(fit)
            DaskTransport.ask = ask
            assert bytes_of(fit) == whole, fit
            assert len(set(killed)) == before + 2, fit
    print("the same bytes")
"""


@pytest.mark.slow("a cluster whose workers are ended")
def test_dask_loses_workers_in_the_middle_of_fits(tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "run.py"
    script.write_text(DASK)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True, text=True, timeout=600, cwd=tmp_path,
    )  # fmt: skip
    assert "the same bytes" in done.stdout, done.stderr
