"""What may hold a log, and what is refused with a clear word."""

import gzip
import io
from pathlib import Path

import pytest

from nanlab.doctor import NotALog, diagnose
from nanlab.doctor.source import chunks

LOG = "step 1 loss 2.0\nstep 2 loss nan\nstep 3 loss nan\n"


def everything(source) -> bytes:
    return b"".join(chunks(source))


def test_text_bytes_paths_and_open_files_give_the_same_bytes(tmp_path: Path):
    path = tmp_path / "train.log"
    path.write_text(LOG, "utf-8")
    with path.open("rb") as binary, path.open(encoding="utf-8") as text:
        sources = [LOG, LOG.encode(), path, str(path), binary, text, io.BytesIO(LOG.encode())]
        assert {everything(source) for source in sources} == {LOG.encode()}


@pytest.mark.parametrize("name", ["gzip", "bz2", "lzma"])
def test_a_compressed_log_is_unpacked_while_it_is_read(name):
    packed = __import__(name).compress(LOG.encode())
    assert everything(packed) == LOG.encode()


def test_a_gzip_that_was_cut_short_gives_what_there_is():
    long = "".join(f"step {i} loss {1 / (i + 1):.9f}\n" for i in range(200_000))
    packed = gzip.compress(long.encode())
    assert long.encode().startswith(everything(packed[: len(packed) // 2])[:1000])
    assert everything(packed[: len(packed) // 2])


def test_a_damaged_gzip_is_named_as_such():
    with pytest.raises(NotALog, match="cannot be unpacked"):
        everything(b"\x1f\x8b" + b"no archive at all" * 9)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_what_a_windows_shell_writes_is_read(encoding):
    data = LOG.encode(encoding)
    if encoding == "utf-16-be":
        data = b"\xfe\xff" + data
    assert diagnose(data).first_bad_step == 2


def test_binary_data_and_archives_are_refused():
    with pytest.raises(NotALog, match="binary"):
        diagnose(bytes(range(32)) * 100)
    with pytest.raises(NotALog, match="zip archive"):
        diagnose(b"PK\x03\x04" + b"rest of a checkpoint" * 9)


def test_a_missing_file_and_a_directory_are_the_errors_that_open_gives(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        diagnose("not_there.log")
    with pytest.raises(IsADirectoryError, match="directory"):
        diagnose(tmp_path)


def test_a_line_of_text_is_not_taken_for_a_path():
    assert diagnose("loss nan at step 7").first_bad_step == 7


def test_a_number_is_no_log():
    with pytest.raises(TypeError, match="reads text"):
        diagnose(7)


def test_nothing_is_read_beyond_what_is_asked_for():
    """A stream of a running job: the generator stops asking when the reader stops."""

    class Stream(io.BytesIO):
        asked = 0

        def read(self, size=-1):
            Stream.asked += 1
            return super().read(size)

    stream = Stream(b"x" * (5 << 20))
    next(chunks(stream))
    assert Stream.asked <= 2
