"""Making notebooks: store their outputs, generate their links and exercises, hold them to the course's style.

For people who write lessons; learners never need it. Reached as ``nanlab author …``.
"""
