"""Files appear whole or not at all, and nothing but a file is ever replaced."""

import io
import os
import socket
import stat
import threading

import pytest
from strategies import raises

import ordinal
from ordinal._files.writing import check_target, descriptor_of, writing
from ordinal.preprocessing import Binning

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and links of Unix")
MODEL = Binning([1.0, 2.0])


def write(path, content):
    with writing(path) as file:
        file.write(content)


def write_half(path):
    with writing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError


@pytest.fixture
def content(tmp_path):
    """The bytes of MODEL's file."""
    MODEL.save(tmp_path / "content")
    return (tmp_path / "content").read_bytes()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_file_appears_whole_or_not_at_all(folder, before):
    path = folder / "f"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(ZeroDivisionError):
        write_half(path)
    assert names(folder) == ([] if before is None else ["f"])
    assert before is None or path.read_bytes() == before
    with writing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.exists() == (before is not None)
        assert before is None or path.read_bytes() == before
    assert path.read_bytes() == b"new"
    assert names(folder) == ["f"]


def test_links_are_followed_and_stay(folder):
    for name, target in [("a", "b"), ("b", "there/c"), ("free", "there/new")]:
        (folder / name).symlink_to(target)
    (folder / "there").mkdir()
    (folder / "there" / "c").write_bytes(b"old")
    write(folder / "a", b"1")
    write(folder / "free", b"2")
    assert (folder / "a").is_symlink()
    assert (folder / "b").is_symlink()
    assert (folder / "free").is_symlink()
    assert (folder / "there" / "c").read_bytes() == b"1"
    assert (folder / "there" / "new").read_bytes() == b"2"
    (folder / "round").symlink_to("round")
    raises(OSError, "symbolic links", write, folder / "round", b"3")


def test_files_that_may_not_be_replaced_stay(folder, monkeypatch):
    path = folder / "f"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may everything
    raises(PermissionError, "may not be written", write, path, b"new")
    assert path.read_bytes() == b"old"
    write(folder / ("n" * 255), b"new")
    assert names(folder) == ["f", "n" * 255]


def test_folders_sockets_and_free_names_in_no_folder_are_refused(folder):
    (folder / "there").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "socket"))
        (folder / "file").touch()
        for name, kind, reason in [
            ("there", IsADirectoryError, "is a folder"),
            ("socket", OSError, "is a socket"),
            ("no/name", FileNotFoundError, "The folder of this file does not exist"),
            ("file/name", NotADirectoryError, "Not a directory"),
        ]:
            for attempt in (MODEL.save, check_target):
                with pytest.raises(kind, match=reason) as caught:
                    attempt(folder / name)
                assert os.fspath(caught.value.filename) == str(folder / name)
    assert names(folder) == ["file", "socket", "there"]
    assert stat.S_ISSOCK((folder / "socket").stat().st_mode)


def test_what_is_no_file_is_written_to_and_not_loaded(folder, content):
    pipe, got = folder / "pipe", []
    os.mkfifo(pipe)
    check_target(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    MODEL.save(pipe)
    reader.join(10)
    assert got == [content]
    assert names(folder) == ["pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    for path in (folder / "pipe", "/dev/zero", "/dev/null"):
        raises(OSError, "is not a regular file: to read it, pass", ordinal.load, path)
    with pytest.raises(IsADirectoryError):
        ordinal.load(folder)


def make_device(path, kind, number):
    try:
        os.mknod(path, kind | 0o666, number)
    except PermissionError:
        pytest.skip("only root makes devices")


def test_a_device_is_written_to_and_stays(folder):
    """A disk's own device is refused: a model would overwrite its file system."""
    full = folder / "full"
    make_device(full, stat.S_IFCHR, os.makedev(1, 7))
    # a container may let one make a device and not open it
    raises(OSError, r"No space left|Permission|not permitted", MODEL.save, full)
    assert stat.S_ISCHR(full.stat().st_mode)
    disk = folder / "disk"
    make_device(disk, stat.S_IFBLK, os.makedev(7, 200))
    raises(OSError, "is a device", MODEL.save, disk)
    assert stat.S_ISBLK(disk.stat().st_mode)
    assert names(folder) == ["disk", "full"]


def test_nothing_is_sent_to_a_stream_before_an_error():
    reader, writer = os.pipe()
    with pytest.raises(ZeroDivisionError):
        write_half(f"/dev/fd/{writer}")
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b""


def test_a_descriptor_is_written_to_where_it_is(folder):
    """Output after `>> log` is written to the end of the log."""
    log = folder / "log"
    log.write_bytes(b"before ")
    with open(log, "ab") as file:
        (folder / "link").symlink_to(f"/dev/fd/{file.fileno()}")
        assert descriptor_of(folder / "link") == file.fileno()
        write(folder / "link", b"now ")
        file.write(b"after")
    assert log.read_bytes() == b"before now after"
    assert descriptor_of(log) is None
    raises(OSError, "descriptor", check_target, "/dev/fd/9999")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
@pytest.mark.parametrize("masked", [0, 0o077])
def test_what_replaces_a_file_is_as_accessible_and_never_more(folder, mode, masked):
    path = folder / "f"
    path.write_bytes(b"old")
    path.chmod(mode)
    umask = os.umask(masked)
    try:
        with writing(path) as file:
            (temporary,) = set(names(folder)) - {"f"}
            assert not stat.S_IMODE((folder / temporary).stat().st_mode) & ~mode
            file.write(b"new")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


class Slow(io.RawIOBase):
    """A stream that cannot seek, and takes and gives some bytes at a time."""

    def __init__(self, content=b""):
        self.content = content

    def readable(self):
        return True

    def writable(self):
        return True

    def write(self, data):
        self.content += bytes(data[:7])
        return min(len(data), 7)

    def readinto(self, buffer):
        some, self.content = self.content[:7], self.content[7:]
        buffer[: len(some)] = some
        return len(some)


def test_open_binary_files_are_written_and_read(folder, content):
    memory, slow = io.BytesIO(), Slow()
    for file in (memory, slow):
        MODEL.save(file)
        assert not file.closed
    assert memory.getvalue() == slow.content == content
    assert memory.tell() == len(content)
    memory.seek(0)
    with open(folder / "f", "wb") as file:
        MODEL.save(file)
    with open(folder / "f", "rb") as file:
        for source in (memory, slow, file):
            assert repr(ordinal.load(source)) == repr(MODEL)
            assert not source.closed
    raises(ValueError, "not an ordinal model file", ordinal.load, memory)


def test_files_that_are_not_open_for_binary_data_are_refused(folder, content):
    path = folder / "f"
    path.write_bytes(content)
    with open(path, encoding="latin-1") as text:
        with pytest.raises(TypeError, match=r"path must be .* open\(name, 'rb'\), got"):
            ordinal.load(text)
    with open(folder / "g", "w", encoding="ascii") as text:
        for file in (text, io.StringIO()):
            raises(TypeError, r"open\(name, 'wb'\), got <_io", MODEL.save, file)
    with open(path, "rb") as file, pytest.raises(io.UnsupportedOperation):
        MODEL.save(file)
    with open(folder / "g", "wb") as file, pytest.raises(io.UnsupportedOperation):
        ordinal.load(file)
    raises(ValueError, "closed file", MODEL.save, file)
    raises(TypeError, "path must be a path, got 3", ordinal.load, 3)
