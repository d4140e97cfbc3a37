"""From what went bad back to its origin, and from the origin to form, place and suspect."""
