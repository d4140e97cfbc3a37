"""How fast `nanlab diagnose` reads a long log, beside `grep -c -i nan` on the same file in the same run.

    python benchmarks/diagnose.py            # 256 MB
    python benchmarks/diagnose.py --mb 1024  # a gigabyte

Prints MB/s of both, their ratio, and the doctor's peak memory, which must not grow with the file.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RECORD = (
    "2026-01-05 10:{m:02d}:{s:02d} INFO trainer: step {n} | loss {loss:.4f} | grad_norm {norm:.3f} | lr "
    "3.0e-04 | {tps} tok/s\n"
)
HEALTHY = 0.98  # share of the file before the first NaN


def write(path: Path, megabytes: int) -> int:
    """Writes a log of about `megabytes` that goes bad near its end; returns the step at which it does."""
    step, bad, size = 0, -1, 0
    with path.open("w") as file:
        while size < megabytes * 1e6:
            block = []
            for _ in range(10_000):
                step += 1
                bad = step if bad < 0 and size > HEALTHY * megabytes * 1e6 else bad
                loss, norm = (float("nan"),) * 2 if bad > 0 else (2.5 + step % 97 / 500, 0.8 + step % 31 / 100)
                block.append(
                    RECORD.format(m=step // 60 % 60, s=step % 60, n=step, loss=loss, norm=norm, tps=41000 + step % 400)
                )
            text = "".join(block)
            size += len(text)
            file.write(text)
    return bad


def seconds(command: list[str]) -> tuple[float, str]:
    """Wall time and output of a command."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=256)
    megabytes = parser.parse_args().mb
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.log")
        bad = write(path, megabytes)
        size = path.stat().st_size / 1e6
        seconds(["grep", "-c", "-i", "nan", str(path)])  # fills the page cache for both
        grep, _ = seconds(["grep", "-c", "-i", "nan", str(path)])
        doctor, answer = seconds([sys.executable, "-m", "nanlab", "diagnose", str(path), "--json", "-"])
    assert f'"first_bad_step": {bad}' in answer, answer
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(f"file               {size:8.0f} MB, first NaN at step {bad}")
    print(f"grep -c -i nan     {size / grep:8.0f} MB/s")
    print(f"nanlab diagnose    {size / doctor:8.0f} MB/s, peak memory {memory:.0f} MB")
    print(f"ratio of times     {doctor / grep:8.1f}")


if __name__ == "__main__":
    main()
