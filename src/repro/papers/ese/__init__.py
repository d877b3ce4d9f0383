"""Li et al. (2025), ESE: how the quality of an embedding falls with depth and with size; what it
runs and claims.
"""
