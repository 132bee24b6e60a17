"""The output: a file as a whole or not at all, an open descriptor as it is, a device or FIFO directly."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import BIN, Shell

from benchkit import output
from benchkit.errors import InputError


class TestFiles:
    """A file is written whole or not at all."""

    def emit(self, path: Path, data: bytes = b"new") -> None:
        output.emit(str(path), data)

    def test_a_new_file_has_the_mode_that_the_umask_leaves(self, tmp_path: Path) -> None:
        old = os.umask(0o027)
        try:
            self.emit(tmp_path / "x")
        finally:
            os.umask(old)
        assert (tmp_path / "x").read_bytes() == b"new"
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640

    def test_an_old_file_keeps_its_mode_and_its_readers(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        path.write_bytes(b"old")
        path.chmod(0o604)
        with path.open("rb") as reader:
            self.emit(path)
            assert reader.read() == b"old"
        assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o604

    def test_a_symlink_stays_and_its_target_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "deep").mkdir()
        target, link = tmp_path / "deep" / "x", tmp_path / "link"
        target.write_bytes(b"old")
        link.symlink_to("deep/x")
        self.emit(link)
        assert link.is_symlink() and target.read_bytes() == b"new"
        dangling = tmp_path / "dangling"
        dangling.symlink_to("deep/y")
        self.emit(dangling)
        assert (tmp_path / "deep" / "y").read_bytes() == b"new"

    def test_a_fifo_and_a_device_are_written_not_replaced(self, tmp_path: Path) -> None:
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()), daemon=True)
        reader.start()
        self.emit(fifo)
        reader.join(10)
        assert got == [b"new"] and stat.S_ISFIFO(fifo.stat().st_mode)
        self.emit(Path("/dev/null"))
        assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
        with pytest.raises(InputError, match="no space left"):
            self.emit(Path("/dev/full"))

    def test_a_failure_leaves_the_old_file_and_no_rest(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "x"
        path.write_bytes(b"old")

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="no space left"):
            self.emit(path)
        assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["x"]

    def test_a_regular_file_under_dev_is_a_file(self) -> None:
        path = Path(f"/dev/shm/bk-test-{os.getpid()}")
        if not path.parent.is_dir():
            pytest.skip("needs /dev/shm")
        assert not output.find(str(path)).direct
        try:
            path.write_bytes(b"old and longer")
            with path.open("rb") as reader:
                self.emit(path)
                assert reader.read() == b"old and longer" and path.read_bytes() == b"new"
        finally:
            path.unlink()

    def test_a_signal_while_it_is_written_leaves_nothing(self, tmp_path: Path) -> None:
        code = (
            "import os, signal; from benchkit import output\n"
            "output.write_all = lambda fd, data: os.kill(os.getpid(), signal.SIGTERM)\n"
            "output.emit('x', b'data')\n"
        )
        p = subprocess.run([BIN / "python", "-c", code], cwd=tmp_path, capture_output=True)
        assert p.returncode == -signal.SIGTERM and list(tmp_path.iterdir()) == []


class TestDescriptors:
    def test_names_of_descriptors(self, tmp_path: Path) -> None:
        for name, fd in (("/dev/stdout", 1), ("/dev/stderr", 2), ("/dev/fd/7", 7), ("/proc/self/fd/12", 12)):
            assert output.descriptor(name) == fd
        (tmp_path / "out").symlink_to("/dev/stdout")
        assert output.descriptor(str(tmp_path / "out")) == 1
        (tmp_path / "loop").symlink_to("loop")
        for name in ("", "x", str(tmp_path / "loop"), str(tmp_path), "/dev/null", "/dev/shm/x"):
            assert output.descriptor(name) is None

    @pytest.mark.parametrize("name", ("-", "/dev/stdout", "/dev/fd/1"))
    def test_what_stands_in_the_file_is_kept(self, name: str, sh: Shell, made: Path) -> None:
        table = f"bk-rank -q {made}/responses.arrow -t csv -o {name}"
        sh(f"(echo header; {table}; echo footer) > x; (echo more; {table}) >> x")
        lines = (sh.folder / "x").read_text().splitlines()
        assert [k for k, line in enumerate(lines) if line in ("header", "footer", "more")] == [0, 18, 19]
        assert len(lines) == 37

    def test_a_process_substitution(self, sh: Shell, made: Path) -> None:
        sh(f"bk-rank -q {made}/responses.arrow -t csv -o >(cat > x)")
        assert sh("for i in {1..50}; do [ -s x ] && break; sleep .1; done; wc -l < x").out == b"17\n"


class TestNames:
    """What can't be written is found before the computation, and named."""

    def test_messages(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("file").write_bytes(b"old")
        Path("folder").mkdir()
        Path("loop").symlink_to("pool")
        Path("pool").symlink_to("loop")
        Path("dangling").symlink_to("missing/y")
        Path("door").symlink_to("nowhere")
        for name, text in (
            ("", "-o '': a file without a name"),
            ("folder", "-o folder: is a directory"),
            ("folder/", "-o folder/: is a directory"),
            ("folder/.", "-o folder/.: is a directory"),
            ("folder/new/", "-o folder/new/: no such directory"),
            ("folder/new/.", "-o folder/new/.: no such directory"),
            ("file/", "-o file/: not a directory"),
            ("file/x", "-o file/x: not a directory"),
            ("a/b/x", "-o a/b/x: no such directory: a/b"),
            ("loop", "-o loop: too many levels of symbolic links"),
            ("dangling", f"-o dangling: no such directory: {tmp_path}/missing"),
            ("door/x", f"-o door/x: no such directory: {tmp_path}/nowhere"),
            ("/dev/fd/999", "-o /dev/fd/999: bad file descriptor"),
        ):
            with pytest.raises(InputError) as e:
                output.find(name)
            assert (str(e.value), e.value.where) == (text, "")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["dangling", "door", "file", "folder", "loop", "pool"]
        Path("missing").mkdir()
        assert output.find("dangling").path == f"{tmp_path}/missing/y"

    def test_a_descriptor_for_reading(self, sh: Shell, made: Path) -> None:
        done = sh(f"bk-rank -o /dev/fd/7 7< {made}/responses.arrow", rc=2)
        assert done.err == "bk-rank: -o /dev/fd/7: not open for writing\n"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_permissions(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"")
        (tmp_path / "x").chmod(0o400)
        with pytest.raises(InputError, match="permission denied"):
            output.find(str(tmp_path / "x"))
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="not writable"):
            output.find(str(tmp_path / "y"))
