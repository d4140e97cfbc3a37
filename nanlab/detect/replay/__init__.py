"""A failing step as data: captured, saved, loaded, run again."""
