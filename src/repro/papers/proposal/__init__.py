"""The proposal's questions: what theory expects of a dimension, what random directions keep, what
is out of reach.
"""
