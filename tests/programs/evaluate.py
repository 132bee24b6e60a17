#!/usr/bin/env python3
"""Stands in for a harness: candidates on stdin, raw results on stdout, by a 1PL model with known abilities.

    evaluate.py WORLD.json TRUTH.jsonl SEED ATTEMPTS

While the file BREAK_EVALUATION exists, it fails.
"""

import json
import math
import random
import sys
from pathlib import Path

world, truth_file, seed = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), sys.argv[3]
attempts = int(sys.argv[4])
truth = {row["question"]: row["b"] for row in map(json.loads, truth_file.read_text().splitlines())}
if Path("BREAK_EVALUATION").exists():
    sys.exit("no machine is free")
print("model,item,attempts,correct")
for line in sys.stdin:
    item = json.loads(line)
    for model, theta in world["theta"].items():
        rng = random.Random(f"{seed} {model} {item['question']}")
        p = 1 / (1 + math.exp(truth[item["question"]] - theta))
        print(f'"{model}",{item["id"]},{attempts},{sum(rng.random() < p for _ in range(attempts))}')
