"""What bk-matrix reads, as --formats lists it. Standard library only: the readers take a second to import."""

from __future__ import annotations

TABLES = (
    "long: a row an attempt (model, item, score)",
    "counts: a row a model and item (attempts, correct)",
    "wide: a row a model, a column an item",
    "transposed: a row an item, a column a model",
)
TOOLS = (
    "Harbor and Terminal-Bench results (result.json a trial, results.json a run)",
    "Inspect AI logs (.eval, .json)",
    "lm-evaluation-harness samples (samples_*.jsonl, with results_*.json beside it)",
    "HELM run folders (per_instance_stats.json, with run_spec.json beside it)",
    "MathArena outputs (Parquet, NDJSON) and run files (N.json, N.json.zst)",
    "SWE-bench and its variants, OpenHands (results, reports, details)",
    "LiveCodeBench graded answers (*_eval_all.json)",
    "EvalPlus, EvalPerf and BigCodeBench results (*eval_results.json, *evalperf_results.json)",
    "OpenAI evals logs (.jsonl)",
    "promptfoo results (results.json, .jsonl)",
    "LiveBench judgments (ground_truth_judgment.jsonl, or published as Parquet)",
    "tau-bench rewards and tau2-bench simulations",
    "lighteval and Open LLM Leaderboard details (details_*.parquet)",
    "DeepEval test runs (test_run_*.json, .latest_run_full.json)",
    "Every Eval Ever samples (*_samples.jsonl)",
    "py-irt responses (.jsonlines)",
    "itemeval gradings (gradings_long.parquet)",
    "OpenCompass results with details",
    "Aider benchmark results (.aider.results.json)",
    "BFCL scores (BFCL_*_score.json)",
    "human-eval and HumanEval-X results (*_results.jsonl)",
    "MultiPL-E results (*.results.json)",
)
"""The names of the readers, in the order in which they are asked."""


def listed() -> str:
    """One format a line."""
    return "\n".join((*TABLES, *TOOLS)) + "\n"
