"""The names that users type are these, each is where it is said to be, and nothing else came along."""

from importlib import import_module

import pytest

import nanlab

NAMES = {
    "NonFiniteError", "Report", "Scene", "audit", "diagnose", "formats", "guard", "hunt",
        "integrations", "lessons",
    "load_ipython_extension", "plots", "predict", "progress", "suspects", "watch",
}  # fmt: skip


def test_the_public_names_are_these():
    assert set(nanlab.__all__) == NAMES == set(dir(nanlab))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_public_name_is_there_and_says_what_it_is_for(name):
    assert getattr(nanlab, name).__doc__


@pytest.mark.parametrize("name", sorted(nanlab._HOME))
def test_a_public_name_is_its_homes_own(name):
    """Loaded when first used, and the same object ever after."""
    home = import_module(nanlab._HOME[name])
    assert getattr(nanlab, name) is (home if name in nanlab._MODULES else getattr(home, name))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'gaurd'"):
        nanlab.gaurd  # noqa: B018
