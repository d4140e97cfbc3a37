"""The ``%%hunt`` cell magic."""


def register(shell) -> None:
    """Brings ``%%hunt`` to an IPython shell."""
