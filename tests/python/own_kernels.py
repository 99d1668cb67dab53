"""A test file as somebody with kernels of their own has it: one keeps its sum in float32, one in bfloat16 (test_pytest_plugin.py)."""
import torch


def wide(x, w):
    return (x.float() @ w.float()).bfloat16()


def narrow(x, w):
    total = torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype)
    for k in range(x.shape[1]):
        total += x[:, k:k + 1] * w[k:k + 1]
    return total


def operands():
    made = torch.Generator().manual_seed(3)
    return torch.randn(16, 32, generator=made).bfloat16(), torch.randn(32, 16, generator=made).bfloat16()


def test_float32(ulpscope):
    ulpscope.assert_precision(wide, operands(), acc="float32")


def test_bfloat16(ulpscope):
    ulpscope.assert_precision(narrow, operands(), acc="float32")


def test_check(ulpscope):
    assert ulpscope.check(wide, operands(), backends=[ulpscope.backend("mine", {"matmul": torch.matmul})], verify=()).ok
