"""Zhang et al. (2024), on unsupervised reduction of sentence embeddings: their figures and their
table.
"""
