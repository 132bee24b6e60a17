"""Endings of the files of results, and names without them."""

import os

RESULTS = (".csv", ".tsv", ".json", ".jsonl", ".jsonlines", ".ndjson", ".parquet", ".arrow", ".eval")
PACKED = (".gz", ".zst")
OTHERS = (".arrows", ".txt")
TOOLS = (".eval_results", "_eval_results", "_evalperf_results", "_codegeneration_output_eval_all")
"""What EvalPlus, BigCodeBench, EvalPerf and LiveCodeBench put behind the name of the run."""


def is_result(name: str) -> bool:
    """Whether a file in a folder may hold results, by its name: what it holds, its content tells."""
    return unpacked(name).endswith(RESULTS)


def unpacked(name: str) -> str:
    """The name in lower case without the endings of packed files."""
    found = name.lower()
    while found.endswith(PACKED):
        found = found[: found.rindex(".")]
    return found


def stem(path: str) -> str:
    """The file's name without folder and known endings; other dots stay."""
    name = os.path.basename(path)
    while name.lower().endswith((*RESULTS, *PACKED, *OTHERS)):
        name = name[: name.rindex(".")]
    tool = next((end for end in TOOLS if name.endswith(end)), "")
    return name.removesuffix(tool) or name
