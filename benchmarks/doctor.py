"""How right `nanlab diagnose` is on labelled logs, beside a constant answer, and beside runmedic if it is installed.

    python benchmarks/doctor.py FOLDER [FOLDER ...]        # each holds ID.log files and labels.jsonl
    python benchmarks/doctor.py --misses FOLDER            # and every case that it gets wrong
    python benchmarks/doctor.py --runmedic PATH/TO/runmedic FOLDER

A label is a JSON object a line: `id`, `primary` (a suspect, or ``unknown``), `secondary`, `first_bad_step`,
`first_bad_kind`, `log_separability` (``none`` where no careful reader could name the cause from the log) and `verdict`.
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from nanlab import diagnose

ROWS = (  # what is counted, and of which cases the share is taken
    ("verdict", "right verdict"),
    ("alarm", "fault told from no fault"),
    ("step", "first bad step"),
    ("kind", "first bad kind"),
    ("first", "cause first"),
    ("two", "cause among the first two"),
    ("two_readable", "the same, where a reader could name it"),
    ("named", "cause named (band), right"),
    ("wrong_named", "wrong cause named, of all faults"),
    ("false_alarm", "harmless or clean called a fault"),
    ("missed", "fault called harmless or clean"),
)
HARMLESS = {"metric_only", "amp_warmup_skip"}


def expected(label: dict) -> str:
    """The verdict that a label asks for; labels without one name it by their cause."""
    cause = label["primary"]
    return label.get("verdict") or ("harmless" if cause in HARMLESS else "no-nan" if cause == "not_nan" else "fault")


def doctor(text: str) -> dict:
    """The doctor's answer as its JSON; a fault of unknown cause is a fault."""
    answer = diagnose(text + "\n").to_dict()
    answer["verdict"] = "fault" if answer["verdict"] == "unknown" else answer["verdict"]
    return answer


def constant(labels: list[dict]):
    """The answer that is right most often if it never changes."""
    faults = [label for label in labels if expected(label) == "fault"]
    common = [name for name, _ in Counter(label["primary"] for label in faults).most_common() if name != "unknown"]
    step = Counter(label["first_bad_step"] for label in faults if label["first_bad_step"] is not None).most_common(1)
    kind = Counter(label["first_bad_kind"] for label in faults).most_common(1)
    answer = {"verdict": Counter(map(expected, labels)).most_common(1)[0][0], "suspects": [{"name": n} for n in common]}
    answer |= {"first_bad_step": step[0][0] if step else None, "first_bad_kind": kind[0][0] if kind else None}
    return lambda _: answer


def runmedic(program: str):
    """runmedic has no causes of this table: what can be compared is its alarm and its step."""

    def answer(text: str) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "case.log")
            path.write_text(text + "\n")
            done = subprocess.run([program, "diagnose", str(path), "--json"], capture_output=True, text=True)
        low = done.stdout.lower()
        bad = re.search(r"\b(?:nan|inf|non-?finite|diverg\w+)\b", low) is not None
        step = re.search(r"step\D{0,12}(\d+)", low)
        return {"verdict": "fault" if bad else "no-nan", "suspects": [], "first_bad_kind": None,
                "first_bad_step": int(step[1]) if step and bad else None}  # fmt: skip

    return answer


def marks(label: dict, answer: dict) -> dict[str, bool]:
    """Right or wrong in every row that the case belongs to."""
    want, got = expected(label), answer["verdict"]
    names = [suspect["name"] for suspect in answer["suspects"]]
    named = bool(names) and answer["suspects"][0].get("band") == "named"
    right = {"verdict": want == got, "alarm": (want == "fault") == (got == "fault")}
    if label["first_bad_step"] is not None:
        right["step"] = answer["first_bad_step"] == label["first_bad_step"]
    if label["first_bad_kind"] and want == "fault":
        right["kind"] = answer["first_bad_kind"] == label["first_bad_kind"]
    if want != "fault":
        return right | {"false_alarm": got == "fault"}
    right |= {"missed": got != "fault", "wrong_named": named and names[0] != label["primary"]}
    if label["primary"] != "unknown":
        right |= {"first": names[:1] == [label["primary"]], "two": label["primary"] in names[:2]}
        if label.get("log_separability") != "none":
            right["two_readable"] = right["two"]
    if named:
        right["named"] = names[0] == label["primary"]
    return right


def table(columns: dict[str, list[dict[str, bool]]]) -> str:
    """The shares of every column, a row each, with the cases that they rest on."""
    lines = [f"{'':42}" + "".join(f"{name[-16:]:>18}" for name in columns)]
    for key, says in ROWS:
        cells = []
        for rows in columns.values():
            found = [row[key] for row in rows if key in row]
            cells.append(f"{sum(found) / len(found):8.0%} of {len(found):<4}" if found else "-")
        lines.append(f"{says:42}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--runmedic", metavar="PROGRAM")
    options = parser.parse_args()
    for folder in options.folders:
        labels = [json.loads(line) for line in (folder / "labels.jsonl").read_text("utf-8").splitlines() if line]
        texts = [(folder / f"{label['id']}.log").read_bytes().decode("utf-8", "replace") for label in labels]
        readers = {"nanlab": doctor, "constant": constant(labels)}
        if options.runmedic:
            readers["runmedic"] = runmedic(options.runmedic)
        answers = {name: [reader(text) for text in texts] for name, reader in readers.items()}
        print(f"\n{folder.name}: {len(labels)} logs")
        print(table({n: [marks(*pair) for pair in zip(labels, a, strict=True)] for n, a in answers.items()}))
        if options.misses:
            for label, answer in zip(labels, answers["nanlab"], strict=True):
                show(label, answer)


def show(label: dict, answer: dict) -> None:
    """One line of a case that is not right throughout."""
    right = marks(label, answer)
    wrong = [k for k, ok in right.items() if ok == (k in {"wrong_named", "false_alarm", "missed"})]
    if set(wrong) - {"alarm", "named", "two_readable"}:
        got = ", ".join(f"{s['name']} {s.get('band', '')}{s.get('score', '')}" for s in answer["suspects"][:3])
        print(f"  {label['id']} {label['framework'][:24]:24} {' '.join(wrong)}")
        print(f"      want {expected(label)} {label['first_bad_step']} {label['first_bad_kind']} {label['primary']}"
              f" ({label.get('log_separability')})\n      got  {answer['verdict']} {answer['first_bad_step']}"
              f" {answer['first_bad_kind']} {got}")  # fmt: skip


if __name__ == "__main__":
    main()
