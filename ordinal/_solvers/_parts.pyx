"""Parts of a computation on several threads.

A region has `count` parts that do not depend on each other, so that no byte tells who
did which of them, or when. There are two ways to run one:

    helpers    threads that ordinal/_numerics/threads.py starts, and that wait in
               `help`. Every region that may be short is theirs
    OpenMP     regions of LONG seconds and more, where the build has it; but not in a
               forked child, which has no copy of OpenMP's threads and would wait for
               them for ever

The caller does parts itself, and offers the region to the helpers that have nothing to
do; those who have not come when no part is left are let off. Nobody ever waits for a
thread to start or to wake up, and a region without any helper is done all the same.
OpenMP's threads all have to arrive at a barrier, where they spin for milliseconds
instead. On a busy machine, where they do not run at the same time, a short region then
takes up to 200 times as long (tools/bench/busy.py).

Callers and helpers hold `guard` where they look at what they share or change it, but
not while they do parts, and never while they ask for the interpreter. Without it they
take the number of the next part, and look for what may just have come.
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

cdef extern from "pythread.h" nogil:  # whose locks need no interpreter
    ctypedef void* PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock() noexcept
    void PyThread_free_lock(PyThread_type_lock) noexcept
    int PyThread_acquire_lock(PyThread_type_lock, int) noexcept
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long, int) noexcept
    void PyThread_release_lock(PyThread_type_lock) noexcept
    enum:
        WAIT_LOCK

OPENMP = bool(ORDINAL_OPENMP)

LONG = 0.02                    # seconds of a region beside which a barrier is nothing
cdef double SPIN = 5e-5        # seconds to look for what comes before one sleeps
cdef double REST = 0.01        # seconds between calls for helpers
cdef long long QUIET = 1000000  # microseconds without work after which a helper leaves


cdef struct Region:
    Body body
    void* given
    Py_ssize_t count
    Py_ssize_t next            # part that nobody has taken
    Py_ssize_t helpers         # who have been offered it, and have not done with it
    void* busy                 # NULL once they are none
    PyThread_type_lock over    # given back by the last of them, if the caller sleeps


cdef struct Helper:
    PyThread_type_lock bell    # given back to wake it up
    bint asleep, at_work
    void* region               # what it is offered
    int worker
    Helper* next


cdef PyThread_type_lock guard = PyThread_allocate_lock()
cdef Helper* helpers = NULL    # all there are
cdef double called = 0         # the time when they were last called
cdef bint dismissed = False
cdef bint team = ORDINAL_OPENMP
cdef double least = LONG       # seconds of the regions that are OpenMP's
cdef object start = None       # starts that many helpers


cdef inline void hold(PyThread_type_lock lock) noexcept nogil:
    PyThread_acquire_lock(lock, WAIT_LOCK)


# What kernels call

cdef int call_helpers(int n_threads) except -1:
    """Have helpers for n_threads threads started, unless they are there or coming.

    What begins a computation asks: within it there may be no interpreter to ask.
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
    """body(given, part, worker) for all parts, by n_threads threads at the most; this
    one is among them."""
    cdef Py_ssize_t part
    if n_threads <= 1 or count <= 1:
        for part in range(count):
            body(given, part, 0)
    else:
        by_helpers(body, given, count, n_threads)


cdef int run_parts(
    Body body, void* given, Py_ssize_t count, int n_threads, double seconds=0,
) except -1:
    """`each_part` with helpers that are called, without the interpreter's lock; by
    OpenMP's threads if one thread would need LONG `seconds` or more."""
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
    """Parts that nobody has taken, until there are none."""
    cdef Py_ssize_t part = parts_next(&region.next)
    while part < region.count:
        region.body(region.given, part, worker)
        part = parts_next(&region.next)


cdef void by_helpers(
    Body body, void* given, Py_ssize_t count, int n_threads,
) noexcept nogil:
    cdef Region region
    region.body, region.given, region.count = body, given, count
    region.next, region.helpers, region.busy, region.over = 0, 0, NULL, NULL
    cdef bint alone = not offer(&region, min(<Py_ssize_t>n_threads, count) - 1)
    do_parts(&region, 0)
    if not alone:
        let_off(&region)
        wait_for_helpers(&region)


cdef Py_ssize_t offer(Region* region, Py_ssize_t most) noexcept nogil:
    """The region to as many helpers, of those that have nothing to do; how many."""
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
    """Who has not come yet."""
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
    """One helper more has done with it, under `guard`: the caller forgets the region
    when the last one has."""
    region.helpers -= 1
    if region.helpers == 0:
        if region.over != NULL:
            PyThread_release_lock(region.over)
        parts_put(&region.busy, NULL)


cdef void wait_for_helpers(Region* region) noexcept nogil:
    """Until those who are at their last part have done it."""
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
            hold(guard)        # whoever gave it back has let go of it
        PyThread_release_lock(guard)
        PyThread_free_lock(over)
    while parts_look(&region.busy) != NULL:  # there is no memory for a lock
        pass


cdef void serve(Helper* me) noexcept nogil:
    """Take part in regions, under `guard` but for their parts, until it is quiet."""
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
            if not rung:       # but now it is
                hold(me.bell)


def help():
    """What a helper's thread does; returns when there has been nothing for a while."""
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


# What tests look at

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
    int32_t[::1] done not None,          # IN-OUT how often each part was done
    int32_t[::1] doer not None,          # OUT the number of who did it
    double seconds,                      # of each part
    int n_threads,
    double expected=0,                   # seconds of the region, as for `run_parts`
):
    """A region that shows who does its parts."""
    cdef Watched q
    if done.shape[0] != doer.shape[0]:
        raise ValueError("watched: inconsistent array shapes")
    q.done, q.doer, q.seconds = &done[0], &doer[0], seconds
    run_parts(watched_part, &q, doer.shape[0], n_threads, expected)


# What ordinal/_numerics/threads.py calls

def started_by(function):
    """function(n) starts n threads that call `help`."""
    global start
    start = function


def by_openmp() -> bool:
    """Return whether OpenMP's threads run long regions."""
    return bool(team)


def use_openmp(bint wanted, double seconds=LONG):
    """Let OpenMP's threads, where there are any, run the regions that take one thread
    so many seconds; or else helpers."""
    global team, least
    team, least = wanted and ORDINAL_OPENMP, seconds


def dismiss():
    """All helpers leave; no more are called."""
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
    """In the child, which has none of the threads and may have found `guard` held."""
    global guard, helpers, called, dismissed, team
    guard, helpers, called = PyThread_allocate_lock(), NULL, 0
    dismissed = team = False
