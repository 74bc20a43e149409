"""Choice of the number of threads, and the content of show_config."""

import os
import re

import pytest
from strategies import raises

import ordinal
from ordinal._numerics import threads
from ordinal._numerics.threads import resolve_n_threads


def test_the_argument_comes_before_our_environment_and_that_before_openmps(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    for text, n_threads in (("1", 1), ("5", 5), (" 2 ", 2)):
        monkeypatch.setenv("ORDINAL_NUM_THREADS", text)
        assert resolve_n_threads(None) == n_threads
        assert ordinal.show_config()["n_threads"] == n_threads
        assert [resolve_n_threads(n) for n in (1, 2, 7)] == [1, 2, 7]
    monkeypatch.delenv("ORDINAL_NUM_THREADS")
    for text, n_threads in (("3", 3), (" 2 ", 2), ("4,2", 4), ("1, 8", 1)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert resolve_n_threads(None) == n_threads
    for malformed in ("", "0", "-1", "many", ",3", "2.5"):
        monkeypatch.setenv("OMP_NUM_THREADS", malformed)
        assert resolve_n_threads(None) == min(256, threads.cpus_allowed())


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A machine of 64 CPUs with the files of control groups that a test writes."""
    monkeypatch.setattr(threads, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(threads, "_OWN_GROUPS", tmp_path / "own")
    cpus = set(range(64))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cpus, raising=False)

    def write(files: dict[str, str]) -> int:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        threads._quota.cache_clear()
        return threads.cpus_allowed()

    yield write
    threads._quota.cache_clear()


def test_a_quota_bounds_the_cpus(groups):
    assert groups({}) == 64  # no such files: not Linux
    assert groups({"own": "0::/a/b\n"}) == 64
    own, parent, root = (f"groups/{at}cpu.max" for at in ("a/b/", "a/", ""))
    assert groups({own: "max 100000\n"}) == 64
    assert groups({own: "250000 100000\n"}) == 3
    assert groups({parent: "150000 100000\n"}) == 2
    assert groups({own: "1000 100000\n"}) == 1
    assert groups({own: "9900000 100000\n"}) == 2
    assert groups({parent: "9900000 100000\n"}) == 64  # no more than there are
    assert groups({root: "500000 100000\n"}) == 5
    assert groups({root: "words"}) == 64


def test_a_quota_of_version_1_bounds_the_cpus(groups):
    quota, period = (f"groups/cpu/a/cpu.cfs_{name}_us" for name in ("quota", "period"))
    own = "12:memory:/b\n4:cpu,cpuacct:/a\n"
    assert groups({"own": own, period: "100000\n", quota: "-1\n"}) == 64
    assert groups({quota: "350000\n"}) == 4
    assert groups({period: "0\n"}) == 64
    assert groups({period: "100000\n", "own": "12:memory:/a\n"}) == 64


@pytest.mark.parametrize("value", [None, ""])
def test_the_default_is_what_this_process_may_use(value, groups, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if value is None:
        monkeypatch.delenv("ORDINAL_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("ORDINAL_NUM_THREADS", value)
    groups({"own": "0::/", "groups/cpu.max": "800000 100000"})
    assert resolve_n_threads(None) == 8
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 4, 5})
    assert resolve_n_threads(None) == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert resolve_n_threads(None) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert resolve_n_threads(None) == 1


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", " ", "1,2"])
def test_a_bad_environment_is_refused(text, monkeypatch):
    monkeypatch.setenv("ORDINAL_NUM_THREADS", text)
    message = f"^ORDINAL_NUM_THREADS must be a positive integer, got {text!r}$"
    raises(ValueError, message, resolve_n_threads, None)
    with pytest.raises(ValueError, match="ORDINAL_NUM_THREADS"):
        ordinal.fit_npsvor([[0.0], [1.0]], [0, 1])
    assert resolve_n_threads(1) == 1  # not looked at


def test_there_is_a_limit(monkeypatch):
    assert resolve_n_threads(10**6) == 256
    monkeypatch.setenv("ORDINAL_NUM_THREADS", "100000")
    assert resolve_n_threads(None) == 256


def test_a_forked_child_uses_one_unless_it_is_asked_for_more(monkeypatch):
    monkeypatch.setattr(threads, "_forked", True)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("ORDINAL_NUM_THREADS", raising=False)
    assert resolve_n_threads(None) == 1
    assert resolve_n_threads(8) == 8
    monkeypatch.setenv("ORDINAL_NUM_THREADS", "3")
    assert resolve_n_threads(None) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_is_noticed():
    child = os.fork()
    if child == 0:
        os._exit(threads._forked and ordinal.show_config()["threads"] == "pool")
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    assert not threads._forked


def test_a_system_without_threads_has_one(monkeypatch):
    monkeypatch.setattr(threads, "THREADS", False)
    assert resolve_n_threads(8) == 1
    assert ordinal.show_config()["threads"] == "none"


def test_show_config():
    config = ordinal.show_config()
    names = "compiler index_checks n_threads openmp simd simd_levels threads version"
    assert sorted(config) == names.split()
    assert config["version"] == ordinal.__version__
    assert re.match(r"\d+\.\d+", config["version"])
    assert re.match(r"(gcc|clang|msvc) \d|unknown$", config["compiler"])
    assert config["simd"] in config["simd_levels"]
    assert config["simd_levels"][-1] == "baseline"
    assert len(set(config["simd_levels"])) == len(config["simd_levels"])
    assert config["threads"] == ("openmp" if config["openmp"] else "pool")
    assert type(config["openmp"]) is type(config["index_checks"]) is bool
