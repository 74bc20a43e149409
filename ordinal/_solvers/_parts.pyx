"""Parallel regions: parts of a computation on several threads.

A region has `count` parts that do not depend on each other, so the result does not
depend on which thread computes a part, or when. There are two ways to run a region:

    helpers    threads that ordinal/_numerics/threads.py starts, and that wait in
               `help` for work. They run every region that may be short
    OpenMP     runs regions of LONG seconds and more, if the build has it; but not in a
               forked child, which has no copy of OpenMP's threads and would wait for
               them for ever

The calling thread computes parts itself and offers the region to idle helpers. When no
part is left, it withdraws the offer from helpers that have not accepted it. Thus it
never waits for a thread to start or wake up, and a region is completed even without
helpers. OpenMP's threads, in contrast, all meet at a barrier, where they spin for
milliseconds. On a busy machine, where they do not run at the same time, a short region
then takes up to 200 times as long (tools/bench/busy.py).

The lock `guard` protects the list of helpers and the offers. It is not held while parts
are computed, nor while a thread waits for the interpreter's lock. Two things happen
without it, by atomic operations: taking the number of the next part, and polling for an
offer or for the end of a region.
"""
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t

from ._simd cimport simd_seconds

cdef extern from *:
    """
    #ifdef _OPENMP
    #define ORDINAL_OPENMP 1
    #else
    #define ORDINAL_OPENMP 0
    #endif
    #if defined(_MSC_VER) && !defined(__clang__)
    #include <intrin.h>
    static void *parts_look(void **at) {
      return _InterlockedCompareExchangePointer((void *volatile *)at, NULL, NULL);
    }
    static void parts_put(void **at, void *value) {
      _InterlockedExchangePointer((void *volatile *)at, value);
    }
    static Py_ssize_t parts_next(Py_ssize_t *at) {
    #ifdef _WIN64
      return (Py_ssize_t)_InterlockedExchangeAdd64((volatile __int64 *)at, 1);
    #else
      return (Py_ssize_t)_InterlockedExchangeAdd((volatile long *)at, 1);
    #endif
    }
    #else
    static void *parts_look(void **at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
    static void parts_put(void **at, void *value) {
      __atomic_store_n(at, value, __ATOMIC_RELEASE);
    }
    static Py_ssize_t parts_next(Py_ssize_t *at) {
      return __atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
    }
    #endif
    """
    const bint ORDINAL_OPENMP
    void* parts_look(void** at) noexcept nogil
    void parts_put(void** at, void* value) noexcept nogil
    Py_ssize_t parts_next(Py_ssize_t* at) noexcept nogil

cdef extern from "pythread.h" nogil:  # these locks do not need the interpreter
    ctypedef void* PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock() noexcept
    void PyThread_free_lock(PyThread_type_lock) noexcept
    int PyThread_acquire_lock(PyThread_type_lock, int) noexcept
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long, int) noexcept
    void PyThread_release_lock(PyThread_type_lock) noexcept
    enum:
        WAIT_LOCK

OPENMP = bool(ORDINAL_OPENMP)

LONG = 0.02                    # seconds of a region that can afford OpenMP's barrier
cdef double SPIN = 5e-5        # seconds of polling before a thread sleeps
cdef double REST = 0.01        # seconds between two requests for more helpers
cdef long long QUIET = 1000000  # microseconds without work after which a helper ends


cdef struct Region:
    Body body
    void* given
    Py_ssize_t count
    Py_ssize_t next            # first part that no thread has taken
    Py_ssize_t helpers         # number of helpers that hold an offer or compute parts
    void* busy                 # NULL once there are none
    PyThread_type_lock over    # released by the last of them if the caller sleeps


cdef struct Helper:
    PyThread_type_lock bell    # released to wake it up
    bint asleep, at_work
    void* region               # the region that it is offered, or NULL
    int worker
    Helper* next


cdef PyThread_type_lock guard = PyThread_allocate_lock()
cdef Helper* helpers = NULL    # list of all helpers
cdef double called = 0         # time of the last request for more helpers
cdef bint dismissed = False
cdef bint team = ORDINAL_OPENMP  # whether OpenMP runs long regions
cdef double least = LONG       # seconds of a region from which on OpenMP runs it
cdef object start = None       # function that starts a number of helpers


cdef inline void hold(PyThread_type_lock lock) noexcept nogil:
    PyThread_acquire_lock(lock, WAIT_LOCK)


# Functions that kernels call

cdef int call_helpers(int n_threads) except -1:
    """Start the helpers that n_threads threads need, unless they exist or are starting.

    Call this at the beginning of a computation, while the interpreter's lock is held.
    """
    global called
    cdef int missing = n_threads - 1
    cdef double now
    cdef Helper* h
    if missing <= 0 or start is None:
        return 0
    now = simd_seconds()
    hold(guard)
    h = helpers
    while h != NULL:
        missing -= not (h.at_work or h.region != NULL)
        h = h.next
    if missing <= 0 or now < called + REST or dismissed:
        missing = 0
    else:
        called = now
    PyThread_release_lock(guard)
    if missing:
        start(missing)
    return 0


cdef void each_part(
    Body body, void* given, Py_ssize_t count, int n_threads,
) noexcept nogil:
    """Call body(given, part, worker) for all parts, on at most n_threads threads, which
    include the calling one."""
    cdef Py_ssize_t part
    if n_threads <= 1 or count <= 1:
        for part in range(count):
            body(given, part, 0)
    else:
        by_helpers(body, given, count, n_threads)


cdef int run_parts(
    Body body, void* given, Py_ssize_t count, int n_threads, double seconds=0,
) except -1:
    """Call helpers, release the interpreter's lock and run `each_part`; or let OpenMP
    run the parts if one thread would need at least LONG `seconds` for them."""
    cdef Py_ssize_t part
    if team and count > 1 and n_threads > 1 and seconds >= least:
        for part in prange(count, nogil=True, schedule="dynamic", chunksize=1,
                           num_threads=n_threads):
            body(given, part, threadid())
        return 0
    if count > 1:
        call_helpers(n_threads)
    with nogil:
        each_part(body, given, count, n_threads)
    return 0


# Helpers

cdef void do_parts(Region* region, int worker) noexcept nogil:
    """Compute parts that no thread has taken, until none is left."""
    cdef Py_ssize_t part = parts_next(&region.next)
    while part < region.count:
        region.body(region.given, part, worker)
        part = parts_next(&region.next)


cdef void by_helpers(
    Body body, void* given, Py_ssize_t count, int n_threads,
) noexcept nogil:
    """Compute the parts of a region on this thread and on idle helpers."""
    cdef Region region
    region.body, region.given, region.count = body, given, count
    region.next, region.helpers, region.busy, region.over = 0, 0, NULL, NULL
    cdef bint alone = not offer(&region, min(<Py_ssize_t>n_threads, count) - 1)
    do_parts(&region, 0)
    if not alone:
        let_off(&region)
        wait_for_helpers(&region)


cdef Py_ssize_t offer(Region* region, Py_ssize_t most) noexcept nogil:
    """Offer the region to at most `most` idle helpers. Return their number."""
    cdef Helper* h
    cdef Py_ssize_t offered
    hold(guard)
    h = helpers
    while h != NULL and region.helpers < most:
        if not h.at_work and h.region == NULL:
            region.helpers += 1
            region.busy = region
            h.worker = <int>region.helpers
            parts_put(&h.region, region)
            if h.asleep:
                h.asleep = False
                PyThread_release_lock(h.bell)
        h = h.next
    offered = region.helpers
    PyThread_release_lock(guard)
    return offered


cdef void let_off(Region* region) noexcept nogil:
    """Withdraw the offer of the region from helpers that have not accepted it."""
    cdef Helper* h
    hold(guard)
    h = helpers
    while h != NULL:
        if h.region == region:
            parts_put(&h.region, NULL)
            has_done(region)
        h = h.next
    PyThread_release_lock(guard)


cdef void has_done(Region* region) noexcept nogil:
    """Count one helper less, under `guard`. After the last one the region no longer
    exists, because the caller returns."""
    region.helpers -= 1
    if region.helpers == 0:
        if region.over != NULL:
            PyThread_release_lock(region.over)
        parts_put(&region.busy, NULL)


cdef void wait_for_helpers(Region* region) noexcept nogil:
    """Block until the helpers that accepted the region have finished their parts."""
    cdef double until = simd_seconds() + SPIN
    cdef PyThread_type_lock over
    while parts_look(&region.busy) != NULL and simd_seconds() < until:
        pass
    if parts_look(&region.busy) == NULL:
        return
    over = PyThread_allocate_lock()
    if over != NULL:
        hold(over)
        hold(guard)
        if region.busy != NULL:
            region.over = over
            PyThread_release_lock(guard)
            hold(over)
            hold(guard)        # the helper that released `over` no longer uses it
        PyThread_release_lock(guard)
        PyThread_free_lock(over)
    while parts_look(&region.busy) != NULL:  # no memory for a lock: poll
        pass


cdef void serve(Helper* me) noexcept nogil:
    """Compute parts of the regions offered to a helper, until none comes for a while.
    `guard` is held except while parts are computed or the helper sleeps."""
    cdef Region* region
    cdef double until
    cdef int rung
    while True:
        if me.region != NULL:
            region = <Region*>me.region
            parts_put(&me.region, NULL)
            me.at_work = True
            PyThread_release_lock(guard)
            do_parts(region, me.worker)
            hold(guard)
            me.at_work = False
            has_done(region)
            PyThread_release_lock(guard)
            until = simd_seconds() + SPIN
            while parts_look(&me.region) == NULL and simd_seconds() < until:
                pass
            hold(guard)
        elif dismissed:
            return
        else:
            me.asleep = True
            PyThread_release_lock(guard)
            rung = PyThread_acquire_lock_timed(me.bell, QUIET, 0)
            hold(guard)
            if not rung and me.asleep:
                return
            if not rung:       # an offer came after the time-out: take the bell, too
                hold(me.bell)


def help():
    """Run a helper in the calling thread, until there is no work for QUIET or
    `dismiss` is called."""
    global helpers
    cdef Helper me
    cdef Helper** at
    me.asleep, me.at_work, me.region, me.worker = False, False, NULL, 0
    me.bell = PyThread_allocate_lock()
    if me.bell == NULL:
        raise MemoryError
    with nogil:
        hold(me.bell)
        hold(guard)
        me.next = helpers
        helpers = &me
        serve(&me)
        at = &helpers
        while at[0] != &me:
            at = &at[0].next
        at[0] = me.next
        PyThread_release_lock(guard)
    PyThread_free_lock(me.bell)


# Functions for tests

cdef struct Watched:
    int32_t* done
    int32_t* doer
    double seconds


cdef void watched_part(void* given, Py_ssize_t part, int worker) noexcept nogil:
    cdef Watched* q = <Watched*>given
    cdef double until = simd_seconds() + q.seconds
    while simd_seconds() < until:
        pass
    q.done[part] += 1
    q.doer[part] = worker


def watched(
    int32_t[::1] done not None,          # IN-OUT how often each part was computed
    int32_t[::1] doer not None,          # OUT by which worker
    double seconds,                      # of each part
    int n_threads,
    double expected=0,                   # seconds of the region, as for `run_parts`
):
    """Run a region whose parts record the worker that computes them."""
    cdef Watched q
    if done.shape[0] != doer.shape[0]:
        raise ValueError("watched: inconsistent array shapes")
    q.done, q.doer, q.seconds = &done[0], &doer[0], seconds
    run_parts(watched_part, &q, doer.shape[0], n_threads, expected)


# Functions that ordinal/_numerics/threads.py calls

def started_by(function):
    """Set the function that starts a number of threads, each of which calls `help`."""
    global start
    start = function


def by_openmp() -> bool:
    """Return whether OpenMP's threads run long regions."""
    return bool(team)


def use_openmp(bint wanted, double seconds=LONG):
    """Let OpenMP, if the build has it, run regions that take one thread at least
    `seconds`; or let helpers run all regions if `wanted` is false."""
    global team, least
    team, least = wanted and ORDINAL_OPENMP, seconds


def dismiss():
    """End all helpers, and start no more."""
    global dismissed
    cdef Helper* h
    hold(guard)
    dismissed = True
    h = helpers
    while h != NULL:
        if h.asleep:
            h.asleep = False
            PyThread_release_lock(h.bell)
        h = h.next
    PyThread_release_lock(guard)


def after_fork():
    """Reset the state in a forked child, which has none of the threads and may have
    inherited a locked `guard`."""
    global guard, helpers, called, dismissed, team
    guard, helpers, called = PyThread_allocate_lock(), NULL, 0
    dismissed = team = False
