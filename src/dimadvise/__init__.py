"""The advisor: how few dimensions keep what an embedding is used for, measured on a user's own
embeddings.
"""
