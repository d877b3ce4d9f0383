"""Wang et al. (2023), "On the Dimensionality of Sentence Embeddings": what the paper runs, and what
it claims.
"""
