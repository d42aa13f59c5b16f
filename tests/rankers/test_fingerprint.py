import numpy as np
import pytest

from pt_neural.rankers.fingerprint import fingerprint

ARRAYS = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": np.zeros((0, 4))}


@pytest.mark.parametrize(
    "other",
    [
        ({"dim": 3}, ARRAYS, b"words"),
        ({"dim": 2}, {**ARRAYS, "a": ARRAYS["a"] + 1e-6}, b"words"),
        ({"dim": 2}, {**ARRAYS, "a": ARRAYS["a"].reshape(3, 2)}, b"words"),
        ({"dim": 2}, {**ARRAYS, "a": ARRAYS["a"].astype("f8")}, b"words"),
        ({"dim": 2}, {"c": ARRAYS["a"], "b": ARRAYS["b"]}, b"words"),
        ({"dim": 2}, ARRAYS, b"word"),
        ({"dim": 2}, ARRAYS, b"wor", b"ds"),
        ({"dim": 2}, ARRAYS),
    ],
)
def test_what_differs_has_another(other):
    assert fingerprint(*other) != fingerprint({"dim": 2}, ARRAYS, b"words")


def test_what_is_equal_has_the_same():
    transposed = {name: np.asfortranarray(array) for name, array in reversed(ARRAYS.items())}
    assert fingerprint({"dim": 2}, transposed, b"words") == fingerprint({"dim": 2}, ARRAYS, b"words")
