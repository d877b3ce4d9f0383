"""SBERT-LP (2021), locality preserving sentence encoding: its four tables and its figures on
neighbours and dims.
"""
