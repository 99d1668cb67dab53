"""What the Python backends over torch share: the vocabulary, the cutting of programs, one execution of one.

Imported after the knobs are set, since `ops` and all but `regions` import torch.
"""
