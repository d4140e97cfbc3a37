"""The start page: which track to take, and the map of the course."""

from nanlab.lessons.start_here.start import choose_track, course_map

__all__ = ["choose_track", "course_map"]
