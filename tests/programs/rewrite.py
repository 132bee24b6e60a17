#!/usr/bin/env python3
"""Stands in for a language model and its client: requests on stdin, replies in the batch format on stdout.

    rewrite.py WORLD.json TRUTH.jsonl SEED

The world has the logits of difficulty 0 and 1, and the models' abilities. Each new problem's true difficulty, which a
model would not know, goes to TRUTH: four fifths of the way from the parent's to the target, with an error of sd .7
logits. Some replies are useless. While the file BREAK exists, as many lines as it says are written and half of one
more; then the program fails. Answered requests are noted in the file `answered`.
"""

import json
import math
import random
import re
import sys
from pathlib import Path

world, truth_file, seed = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), sys.argv[3]
truth = {row["question"]: row["b"] for row in map(json.loads, truth_file.read_text().splitlines())}
left = int(Path("BREAK").read_text()) if Path("BREAK").exists() else None


def logit(aim, failure):
    """The difficulty in logits: of the scale from the easiest item to the hardest, or of a failure probability."""
    low, high = world["low"], world["high"]
    if not failure:
        return low + aim * (high - low)
    for _ in range(60):
        b = (low + high) / 2
        fails = sum(1 / (1 + math.exp(theta - b)) for theta in world["theta"].values()) / len(world["theta"])
        low, high = (b, high) if fails < aim else (low, b)
    return b


def written(request):
    """The text of the model's answer, and the new problem with its difficulty, None where there is none."""
    rng = random.Random(f"{seed} {request['custom_id']}")
    text = request["body"]["messages"][-1]["content"]
    aim = float(re.search(r"^Target difficulty: ([\d.]+)", text, re.M)[1])
    target = logit(aim, "the share of attempts that fail" in text)
    parent = re.search(r"<parent .*?<question>\n(.*?)\n</question>", text, re.S)[1]
    b = truth[parent] + 0.8 * (target - truth[parent]) + rng.gauss(0, 0.7)
    question = f"{parent} Then do it again with {rng.randrange(10**6)}."
    chance = rng.random()
    if chance < 0.05:
        return "I can't do that.", None
    if chance < 0.1:
        return json.dumps({"question": parent.upper(), "answer": "1"}), None
    answer = json.dumps({"question": question, "answer": rng.randrange(1000)})
    return (f"Here it is:\n```json\n{answer}\n```" if chance < 0.3 else answer), {"question": question, "b": b}


def note(path, line):
    with Path(path).open("a") as f:
        f.write(line + "\n")


for count, line in enumerate(sys.stdin):
    request = json.loads(line)
    content, row = written(request)
    response = {"status_code": 200, "body": {"choices": [{"message": {"role": "assistant", "content": content}}]}}
    reply = json.dumps({"id": f"x{count}", "custom_id": request["custom_id"], "response": response, "error": None})
    if count == left:
        sys.stdout.write(reply[: len(reply) // 2])
        sys.exit("the connection is lost")
    note("answered", request["custom_id"])
    if row is not None:
        note(truth_file, json.dumps(row))
    print(reply, flush=True)
