"""Runs of HELM: per_instance_stats.json, with run_spec.json beside it, which names the model.

A statistic stands for one instance, split, perturbation and trial. Its value is sum / count, as HELM itself takes the
mean of each before it averages over instances. Perturbed copies of an instance are left out. Trials are draws of the
few-shot examples, not attempts at one prompt, so several are not counted as attempts unless that is asked for.
An instance of the split without the metric was not scored: HELM leaves out statistics that are not a number.
Where the statistics are not there, display_predictions.json stands for them: it has the means of the main metrics, and
instances.json the splits.

Source: helm/benchmark/metrics/{metric,statistic}.py, runner.py, presentation/run_display.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchkit import endings
from benchkit.errors import InputError
from benchkit.formats.cells import Choices
from benchkit.formats.fields import canonical, first, inner, kind, members, text
from benchkit.formats.native import Attempts, Document, choose, identifier, number

NAME = "HELM run folders (per_instance_stats.json, with run_spec.json beside it)"

BOOKKEEPING = re.compile(
    r"num_.*|inference_.*|training_.*|finish_reason_.*|batch_size|max_prob|prompt_truncated|predicted_index|logprob|"
    r"(log_)?perplexity|logprob_per_byte|bits_per_byte"
)
"""Statistics of the request and of the text, which no one means by the metric; --metric may still name one."""

TOGETHER = (
    {"instance_id", "predicted_text"},  # display_predictions.json, predictions.json
    {"instance_id", "train_trial_index", "request"},  # display_requests.json
    {"input", "references", "id"},  # instances.json
)
OWN = ("scenario.json", "scenario_state.json", "instances.json", "stats.json", "display_predictions.json",
       "display_requests.json")  # fmt: skip
"""Other files of a run, which may be empty or lack what they are known by."""

SETTINGS = ("model_deployment", "temperature", "max_tokens", "max_train_instances", "num_outputs")
ADAPTATION = ("data_augmentation", "global_prefix", "instructions", "max_eval_instances", "max_train_instances",
              "newline", "num_outputs", "num_train_trials", "num_trials", "prompt", "stop")  # fmt: skip
"""Arguments of a run's name that say how its model is asked: HELM adds some for some models (stop=hash), so that models
on the same instances have runs of different names."""


class Stat(NamedTuple):
    """One statistic of an instance as it was asked, without perturbation. row: of the file, from 1."""

    row: int
    instance: str
    trial: int
    metric: str
    split: str
    value: Any


def sniff(doc: Document) -> bool:
    own = doc.path is not None and endings.unpacked(os.path.basename(doc.path)) in OWN
    if own and doc.kind in ("json", "ndjson") and _in_run(doc):
        return True
    if doc.kind != "json":
        return False
    row = first(doc)
    if isinstance(doc.first, dict):
        if "adapter_spec" in row:  # run_spec.json, scenario_state.json
            return "scenario_spec" in row or "request_states" in row
        return {"name", "description", "tags"} <= row.keys() and _in_run(doc)  # scenario.json
    if _is_instance(row):
        return True
    if isinstance(row.get("name"), dict):  # stats.json
        return {"count", "sum"} <= row.keys()
    return any(keys <= row.keys() for keys in TOGETHER) and _in_run(doc)


def _is_instance(row: dict[str, Any]) -> bool:
    return "instance_id" in row and isinstance(row.get("stats"), list)


def _in_run(doc: Document) -> bool:
    return bool(doc.siblings("run_spec", ".json"))


def read(doc: Document, choices: Choices) -> Attempts | None:
    display = _is_display(first(doc)) and not doc.siblings("per_instance_stats.json", "")
    if isinstance(doc.first, dict) or not (display or _is_instance(first(doc))):
        return None
    entries = list(_of_display(doc) if display else members(doc.first, "entry"))
    model, task, settings = _run(doc)
    out = Attempts("helm", model, settings)
    out.of_task(task, choices)
    names = dict.fromkeys((stat.split, stat.metric) for stat in _stats(entries))
    perturbed = sum(row.get("perturbation") is not None for _, row in entries)
    if perturbed:
        out.skip("perturbed instance", perturbed)
    if not names:
        if perturbed:
            return out
        raise InputError("no statistics of single instances" + (": get per_instance_stats.json too" if display else ""))
    split, metric = _chosen(list(names), choices)
    rows: dict[tuple[str, int], int] = {}
    scored, others = set(), set()
    for stat in _stats(entries):
        key = stat.instance, stat.trial
        if stat.split != split:
            others.add(key)
            continue
        rows.setdefault(key, stat.row)
        if stat.metric == metric:
            scored.add(key)
            out.add(stat.instance, _mean(stat), line=stat.row)
    for (instance, trial), row in rows.items():
        if (instance, trial) not in scored:
            out.add(instance, None, line=row)
    trials = sorted({trial for _, trial in rows})
    if len(trials) > 1 and choices.duplicates is None:
        shown = ", ".join(map(str, trials[:5])) + (", ..." if len(trials) > 5 else "")
        raise InputError(
            f"{len(trials)} trials ({shown}), which are draws of few-shot examples: choose --duplicates first, last "
            "or attempt (each counts as one more attempt)"
        )
    if others - rows.keys():
        out.skip("instance of another split", len(others - rows.keys()))
    return out


def _is_display(row: dict[str, Any]) -> bool:
    return isinstance(row.get("stats"), dict) and {"instance_id", "predicted_text"} <= row.keys()


def _of_display(doc: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries of display_predictions.json, as per_instance_stats.json has them.

    Some ways of asking have a prediction for each reference of an instance: each repeats the instance's statistics.
    """
    instances = doc.sibling("instances.json")
    if instances is None:
        raise InputError("get per_instance_stats.json too, or instances.json, which says the splits: none is beside it")
    splits = {str(one.get("id")): one.get("split") for _, one in members(instances, "instances.json: instance")}
    seen = set()
    for n, row in members(doc.first, "entry"):
        key = canonical([row.get(k) for k in ("instance_id", "perturbation", "train_trial_index", "stats")], "entry", n)
        if key in seen:
            continue
        seen.add(key)
        split = splits.get(str(row.get("instance_id")))
        means = inner(row, "stats", n).items()
        yield n, row | {"stats": [{"name": {"name": m, "split": split}, "count": 1, "sum": x} for m, x in means]}


def _stats(entries: list[tuple[int, dict[str, Any]]]) -> Iterator[Stat]:
    """Every statistic of an instance as it was asked."""
    for n, row in entries:
        if row.get("perturbation") is not None:
            continue
        instance = identifier(row.get("instance_id"), "instance_id", n)
        trial = row.get("train_trial_index", 0)
        if not isinstance(trial, int) or isinstance(trial, bool):
            raise InputError(f"row {n}: train_trial_index is {kind(trial)}, not a whole number")
        for _, value in members(row.get("stats"), f"row {n}: statistic"):
            name = inner(value, "name", n)
            metric = text(name, "name", n)
            if metric is not None and name.get("perturbation") is None:
                yield Stat(n, instance, trial, metric, text(name, "split", n) or "none", value)


def _mean(stat: Stat) -> float | None:
    count, total = (number(stat.value.get(k), f"{stat.metric}: {k}", stat.row) for k in ("count", "sum"))
    if total is None:
        return number(stat.value.get("mean"), f"{stat.metric}: mean", stat.row)
    if count is None or count < 0:
        raise InputError(f"row {stat.row}: {stat.metric} has no count")
    return total / count if count else None


def _chosen(names: list[tuple[str, str]], choices: Choices) -> tuple[str, str]:
    """The split, test where there is one, and the metric."""
    splits = sorted({split for split, _ in names})
    split = choose(choices.split or ("test" if "test" in splits else None), splits, "--split", "split")
    metrics = sorted({metric for s, metric in names if s == split})
    scores = [m for m in metrics if not BOOKKEEPING.fullmatch(m)] or metrics
    return split, choose(choices.metric, metrics if choices.metric in metrics else scores, "--metric", "metric")


def _run(doc: Document) -> tuple[str | None, str | None, str | None]:
    """The model, the scenario with its arguments, and settings of the run; None where no run_spec.json is there."""
    spec = doc.sibling("run_spec.json")
    if spec is None:
        return None, None, None
    try:
        adapter = inner(spec if isinstance(spec, dict) else {}, "adapter_spec")
        model = text(adapter, "model")
    except InputError as e:
        raise InputError(str(e), where=os.path.join(os.path.dirname(doc.path or ""), "run_spec.json")) from None
    told = [f"{k}={adapter[k]}" for k in SETTINGS if isinstance(adapter.get(k), str | int | float)]
    task, asked = _task(spec.get("name")) if adapter else (None, [])
    told += [a for a in asked if a.partition("=")[0] not in SETTINGS]
    return model, task, ", ".join(told) or None


def _task(name: Any) -> tuple[str | None, list[str]]:
    """A run's name without its model and how that is asked, and the arguments that say this.

    >>> _task("mmlu:subject=philosophy,model=openai_gpt2,stop=hash")
    ('mmlu:subject=philosophy', ['stop=hash'])
    """
    if not isinstance(name, str):
        return None, []
    scenario, _, arguments = name.partition(":")
    given = [a for a in arguments.split(",") if a and not a.startswith(("model=", "model_deployment="))]
    asked = [a for a in given if a.partition("=")[0] in ADAPTATION]
    kept = [a for a in given if a not in asked]
    return ":".join([scenario, *([",".join(kept)] if kept else [])]), asked
