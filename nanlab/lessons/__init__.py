"""The lessons, one folder each: ``from nanlab.lessons import softmax`` brings the failure and the lab of lesson 05.

A folder is called as its notebooks are, without the number: ``nanlab/lessons/softmax/`` belongs to
``notebooks/*/05_softmax.ipynb``. It holds the failure, the lab, the pictures, the questions and the checks.
"""
