"""Trials of Harbor (a result.json a trial), and of Terminal-Bench's own harness (a results.json a run).

Source: harbor/models/trial/result.py, harbor/models/trial/config.py; terminal_bench/harness/models.py.
"""

from __future__ import annotations

import os
from typing import Any

from benchkit.formats.cells import Choices
from benchkit.formats.fields import first, inner, members, text
from benchkit.formats.native import Attempts, Document, choose, number

NAME = "Harbor and Terminal-Bench results (result.json a trial, results.json a run)"

TIMEOUTS = {"AgentTimeoutError", "agent_timeout"}  # time is part of the task: such an attempt is judged all the same
FINE = {None, "unset", "none"}  # of failure_mode
BESIDE = (
    {"n_total_trials", "stats"}, {"job_name", "jobs_dir"}, {"trial_name", "trials_dir"},  # of a job, and of a trial
    {"run_id", "dataset_path", "agent_name"},  # the run of Terminal-Bench
)  # fmt: skip


def sniff(doc: Document) -> bool:
    if doc.kind != "json" or not isinstance(doc.first, dict):
        return False
    value = doc.first
    return _is_trial(value) or _is_run(value) or _is_old_trial(value) or any(k <= value.keys() for k in BESIDE)


def _is_trial(value: dict[str, Any]) -> bool:
    return "task_name" in value and "verifier_result" in value and bool({"task_id", "trial_name"} & value.keys())


def _is_old_trial(value: dict[str, Any]) -> bool:
    return {"trial_name", "task_id", "is_resolved"} <= value.keys()


def _is_run(value: dict[str, Any]) -> bool:
    trials = value.get("results")
    if not isinstance(trials, list):
        return False
    if not trials:
        return {"n_resolved", "n_unresolved"} <= value.keys()
    return isinstance(trials[0], dict) and _is_old_trial(trials[0])


def read(doc: Document, choices: Choices) -> Attempts | None:
    value = first(doc)
    if _is_trial(value):
        folder = "" if doc.path is None else os.path.dirname(os.path.abspath(doc.path))
        out = _trial(value, choices.metric, os.path.basename(folder))
        out.folder = os.path.dirname(folder) or None  # <job>/<trial>/result.json
        return out
    if _is_run(value):
        about = doc.sibling("run_metadata.json")
        return _run(value["results"], about if isinstance(about, dict) else {})
    if _is_old_trial(value):  # <run>/<task>/<trial>/results.json, which the run's own repeats
        whole = os.path.join(os.path.dirname(doc.path or ""), os.pardir, os.pardir, "results.json")
        return None if doc.path is not None and os.path.isfile(whole) else _run([value], {})
    return None


def _trial(value: dict[str, Any], metric: str | None, folder: str) -> Attempts:
    """folder: the trial's, which has its name."""
    config, agent = inner(inner(value, "config"), "agent"), inner(value, "agent_info")
    about = inner(agent, "model_info")
    name, provider = text(about, "name"), text(about, "provider")
    model = text(config, "model_name") if name is None else f"{provider}/{name}" if provider else name
    parts = [text(agent, "name") or text(config, "name"), text(agent, "version")]
    effort = inner(config, "kwargs").get("reasoning_effort")
    said = " ".join(p for p in parts if p)
    said += f", reasoning_effort={effort}" if isinstance(effort, str | int) else ""
    out = Attempts("harbor", model, said or None)
    out.task = text(value, "source")
    rewards = inner(inner(value, "verifier_result"), "rewards")
    score = None
    if rewards:
        key = choose(metric, sorted(rewards), "--metric", "reward")
        score = number(rewards[key], key)
    exception = inner(value, "exception_info")
    kind = text(exception, "exception_type") or "an exception"
    out.add(value["task_name"], score, attempt=value.get("trial_name") or folder or None,
            error=_error(kind if exception else None, score))  # fmt: skip
    return out


def _run(trials: Any, about: dict[str, Any]) -> Attempts:
    out = Attempts("terminal-bench", text(about, "model_name"), text(about, "agent_name"))
    out.task = text(about, "dataset_name")
    for n, row in members(trials, "trial"):
        score = number(row.get("is_resolved"), "is_resolved", n)
        mode = text(row, "failure_mode", n)
        failed = _error(None if mode in FINE else mode, score)
        out.add(row.get("task_id"), score, attempt=row.get("trial_name"), error=failed, line=n)
    return out


def _error(failure: str | None, score: float | None) -> bool:
    """Whether a failure, not the work, decided: there is no verdict, or a 0 that is not for the time it took."""
    return failure is not None and (score is None or (score == 0 and failure not in TIMEOUTS))
