"""No regular expression of the doctor can backtrack without limit."""

import importlib
import pkgutil
import re
from re import _constants as code
from re import _parser

import pytest

import nanlab.doctor
from nanlab.doctor.vocabulary import table


def patterns() -> list[tuple[str, re.Pattern]]:
    """Every compiled pattern in the modules' constants, however nested, and all of the vocabulary."""
    found = []
    for info in pkgutil.walk_packages(nanlab.doctor.__path__, "nanlab.doctor."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            found += [(f"{info.name}.{name}", p) for p in _inside(value)]
    for section in ("phrase", "code", "form"):
        found += [(f"{section}: {row.says}", row.pattern) for row in table(section) if row.pattern]
    return found


def _inside(value) -> list[re.Pattern]:
    if isinstance(value, re.Pattern):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [pattern for part in parts for pattern in _inside(part)]


def unbounded_groups(tree) -> int:
    """How many repeats without a limit hold more than a single character: those can be matched in many ways."""
    count = 0
    for op, arg in tree:
        if op in (code.MAX_REPEAT, code.MIN_REPEAT):
            _, most, inner = arg
            single = len(inner) == 1 and inner[0][0] in (
                code.IN,
                code.ANY,
                code.LITERAL,
                code.NOT_LITERAL,
                code.CATEGORY,
            )
            count += most == code.MAXREPEAT and not single
            count += unbounded_groups(inner)
        elif op is code.SUBPATTERN:
            count += unbounded_groups(arg[-1])
        elif op is code.BRANCH:
            count += sum(map(unbounded_groups, arg[1]))
        elif op in (code.ASSERT, code.ASSERT_NOT):
            count += unbounded_groups(arg[1])
    return count


def test_the_check_itself_sees_a_bad_pattern():
    assert unbounded_groups(_parser.parse(r"(a+)+b")) == 1
    assert unbounded_groups(_parser.parse(r"(?:ab|c)*")) == 1
    assert unbounded_groups(_parser.parse(r"a{1,9}[bc]+")) == 0


def test_the_patterns_are_found():
    assert len(patterns()) > 120


@pytest.mark.parametrize(("where", "pattern"), patterns(), ids=[where for where, _ in patterns()])
def test_no_repeat_without_a_limit_stands_over_a_group(where, pattern):
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    assert unbounded_groups(_parser.parse(text)) == 0
