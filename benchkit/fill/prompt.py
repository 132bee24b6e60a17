"""One wanted item in words, for a language model, and as a request in the OpenAI batch format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

SYSTEM = (
    "You write problems for a benchmark of language models. You are given a problem and a difficulty, and rewrite the "
    "problem so that it has that difficulty. Difficulties were measured: they say how often models fail, not how hard "
    "a problem looks."
)

SCALES = {
    "minmax": "from 0, the easiest problem of the benchmark, to 1, its hardest",
    "failure": "from 0, which every model solves, to 1, which none does: the share of attempts that fail",
    "logistic": "from 0 to 1, the probability that a model of average ability fails",
}

RULES = """Rules:
1. Write a new problem of the parent's kind, complete in itself. Change what has to be understood and worked out, not
   only names, numbers or wording; do not copy any problem given here.
2. It must have one correct answer, of the same form as the parent's and checkable in the same way.
3. Solve the new problem yourself, step by step, and check the answer before you give it.
4. Answer with one JSON object and nothing else, no fence and no comment:
   {"question": "the new problem", "answer": "its answer"}
   Inside JSON strings double every backslash and write line breaks as \\n."""


class Example(NamedTuple):
    """An item as the model sees it.

    difficulty  normalised
    solved      the share of the models' attempts expected to solve it, None without models
    """

    question: str
    answer: str
    difficulty: float
    solved: float | None


def prompt(
    parent: Example,
    target: float,
    solved: float | None,
    easier: Sequence[Example],
    harder: Sequence[Example],
    scale: str,
) -> str:
    """What to do, in words. `target` and `solved` are those of the new problem, `easier` and `harder` nearest first."""
    way = "harder" if target > parent.difficulty else "easier"
    parts = [
        f"Rewrite the parent problem into a new one that is {way}.",
        f"Difficulty runs {SCALES[scale]}."
        + ("" if solved is None else " Beside it stands the share of attempts, of the models tested, that succeed."),
        f"Target difficulty: {_place(target, solved)}\nParent's difficulty: {_place(parent.difficulty, parent.solved)}",
        _item("parent", parent),
    ]
    for name, found in (("easier", easier), ("harder", harder)):
        if found:
            parts.append(f"Problems that are {name} than the target, nearest first, for comparison:")
            parts += [_item(name, x) for x in found]
    return "\n\n".join([*parts, RULES])


def _place(difficulty: float, solved: float | None) -> str:
    return f"{difficulty:.3f}" + ("" if solved is None else f" (solved: {100 * solved:.0f}%)")


def _item(tag: str, x: Example) -> str:
    return (
        f'<{tag} difficulty="{_place(x.difficulty, x.solved)}">\n<question>\n{x.question}\n</question>\n'
        f"<answer>\n{x.answer}\n</answer>\n</{tag}>"
    )


def request(custom_id: str, text: str, model: str | None, temperature: float | None) -> dict[str, Any]:
    """The request of a chat completion, without `model` or `temperature` where they are None."""
    body: dict[str, Any] = {} if model is None else {"model": model}
    body["messages"] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    if temperature is not None:
        body["temperature"] = temperature
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
