"""An unchanged script under the hunt, or under the guard with stopped copies of itself."""
