"""Shared parts of the Python backends over torch: the vocabulary, the division of programs into regions, one execution of one.

Imported after the knobs are set, since `ops` and all but `regions` import torch.
"""
