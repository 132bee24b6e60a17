"""tau-bench's list of rewards, and the simulations of tau2-bench: in one file, or a file each below results.json.

There results.json holds an index of them, with their rewards; in an early version it did not. Submissions to the board
may hold simulations in an object of their own, with the model and the domain on top.

tau-bench records no model, nor does a list of tau2-bench's simulations alone. Arguments of a model may hold keys of an
interface: only settings of the generation are kept.

Source: tau_bench/run.py, tau_bench/types.py; tau2/data_model/simulation.py.
"""

from __future__ import annotations

import os
from typing import Any

from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import common, first, inner, members, text
from benchkit.formats.native import Attempts, Document, number

NAME = "tau-bench rewards and tau2-bench simulations"

GENERATION = ("reasoning_effort", "temperature", "top_p", "max_tokens", "seed")
NO_ROLLOUT = {"infrastructure_error", "context_window_exceeded", "unexpected_error"}
"""Reasons of termination after which tau2-bench has nothing to evaluate."""

SUBMISSION = {"model_name", "submitting_organization", "submission_date", "results"}
"""Of submission.json, beside the trajectories: the rates of whole domains."""


def sniff(doc: Document) -> bool:
    if doc.kind != "json":
        return False
    if isinstance(doc.first, list):
        return {"task_id", "reward", "trial"} <= first(doc).keys() or _is_simulation(first(doc))
    return _is_run(first(doc)) or _is_simulation(first(doc)) or first(doc).keys() >= SUBMISSION


def _is_run(value: dict[str, Any]) -> bool:
    runs = value.get("simulations") or value.get("simulation_index")
    if not isinstance(runs, list) or not runs:
        return "agent_info" in _info(value) and isinstance(value.get("tasks"), list)
    return isinstance(runs[0], dict) and ({"task_id", "trial"} <= runs[0].keys() or _is_simulation(runs[0]))


def _info(run: dict[str, Any]) -> dict[str, Any]:
    return run["info"] if isinstance(run.get("info"), dict) else {}


def _is_simulation(value: dict[str, Any]) -> bool:
    return {"id", "task_id", "termination_reason", "reward_info"} <= value.keys()


def read(doc: Document, choices: Choices) -> Attempts | None:
    if isinstance(doc.first, list):
        if _is_simulation(first(doc)):
            return _simulations(Attempts("tau2-bench"), doc.first, indexed=False)
        return _rewards(doc.first)
    if not _is_run(doc.first):
        return _single(doc, choices) if _is_simulation(doc.first) else None
    out = _of_run(doc.first, choices)
    runs = doc.first.get("simulations") or doc.first.get("simulation_index")
    if not runs and "simulations" not in doc.first:  # a file each, and no index
        return None
    return _simulations(out, runs or [], indexed=not doc.first.get("simulations"))


def _single(doc: Document, choices: Choices) -> Attempts | None:
    """A simulation's own file, of the run above its folder: None where the index there holds its reward."""
    folder, inside = os.path.split(os.path.dirname(os.path.abspath(doc.path or "")))
    above = None if doc.path is None else common(os.path.join(folder, "results.json"))
    run = above if isinstance(above, dict) and _is_run(above) else {}
    index = run.get("simulations") or run.get("simulation_index") or []
    if any(isinstance(one, dict) and one.get("id") == doc.first["id"] for one in index):
        return None
    out = _of_run(run, choices)
    out.folder = folder if inside == "simulations" else None
    return _simulations(out, [doc.first], indexed=False)


def _of_run(run: dict[str, Any], choices: Choices) -> Attempts:
    info = inner(run, "info")
    agent = inner(info, "agent_info")
    model = text(agent, "llm") or text(inner(info, "audio_native_config"), "model") or text(run, "model")
    out = Attempts("tau2-bench", model, _settings(agent, inner(info, "user_info")))
    out.of_task(text(inner(info, "environment_info"), "domain_name") or text(run, "domain"), choices)
    return out


def _rewards(rows: list[Any]) -> Attempts:
    out = Attempts("tau-bench")
    for n, row in members(rows, "row"):
        if "task_id" not in row or "reward" not in row:
            raise InputError(f"row {n}: lacks task_id or reward")
        info = row.get("info")
        failed = isinstance(info, dict) and bool(info.get("error"))  # the run raised: the reward of 0 is no verdict
        out.add(row["task_id"], number(row["reward"], "reward", n), attempt=row.get("trial"), error=failed, line=n)
    return out


def _simulations(out: Attempts, runs: Any, *, indexed: bool) -> Attempts:
    for n, run in members(runs, "simulation"):
        reward = number(run.get("reward") if indexed else inner(run, "reward_info", n).get("reward"), "reward", n)
        failed = text(run, "termination_reason", n) in NO_ROLLOUT
        out.add(run.get("task_id"), reward, attempt=run.get("trial"), error=failed, line=n)
    return out


def _settings(agent: dict[str, Any], user: dict[str, Any]) -> str | None:
    """What may tell two runs of a model apart: the agent, its arguments, and who played the user."""
    parts = [text(agent, "implementation"), text(user, "llm") and f"user={text(user, 'llm')}"]
    args = inner(agent, "llm_args")
    parts += [f"{k}={args[k]}" for k in GENERATION if isinstance(args.get(k), str | int | float)]
    return ", ".join(p for p in parts if p) or None
