import numpy as np
import pytest

from benchkit.errors import InputError
from benchkit.pairs import choose, place

MODELS = ["a", "b", "c"]
N = np.ones((3, 2), dtype=int)
Y = np.array([[0, 1], [1, 1], [0, 0.0]])


class TestValidation:
    def test_one_model(self):
        with pytest.raises(InputError, match="one model: there is no pair"):
            choose(["a"], N[:1], Y[:1], None, False, None)

    def test_unknown_models(self):
        with pytest.raises(InputError, match="--ref: no model 'x' in the input"):
            choose(MODELS, N, Y, "x", False, None)
        with pytest.raises(InputError, match="--pairs: no model 'y' in the input"):
            choose(MODELS, N, Y, None, False, [{"model_a": "a", "model_b": "y"}])
        with pytest.raises(InputError, match="--require-significant: no model 'z'"):
            place(MODELS, np.array([[0, 1]]), "a", "z")

    def test_a_pair_that_is_not_compared(self):
        with pytest.raises(InputError, match="'b' and 'c' are not among the pairs"):
            place(MODELS, np.array([[0, 1], [0, 2]]), "b", "c")


class TestTheory:
    def test_choices(self):
        assert choose(MODELS, N, Y, None, False, None)[0] == 1
        reference, pairs = choose(MODELS, N, Y, "c", False, None)
        assert reference == 2 and pairs.tolist() == [[2, 0], [2, 1]]
        assert choose(MODELS, N, Y, None, True, None)[1].tolist() == [[0, 1], [0, 2], [1, 2]]
        asked = [{"model_a": "c", "model_b": "a"}]
        assert choose(MODELS, N, Y, None, False, asked)[1].tolist() == [[2, 0]]

    def test_place_takes_either_order(self):
        pairs = np.array([[0, 1], [2, 0]])
        assert place(MODELS, pairs, "a", "c") == place(MODELS, pairs, "c", "a") == 1
