"""The checks that stay on while a run trains, and what they do when one fires."""
