"""What people see of each result on a terminal: a few lines, then a table that fits 80 columns for usual identifiers.

JSON holds everything; here columns are few. A star marks the rows to look at first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchkit.text import P, Show, View, count, natural, nested

if TYPE_CHECKING:
    import pyarrow as pa

MARK = Show("mark", "")
_PLACES = 20  # of more new items the first are shown
_LEGEND = (
    "spread: an item's share of the differences between scores; rest r: its correlation with the other items; "
    "info: Fisher information about its difficulty; inverted: pairs of models that it orders against the others"
)
_NAMES = 5  # of more models or items that a flag names the first are shown
_ROWS = 40  # of more than fit on a screen the first rows of a table, and the items that need a look, are shown
_LOOK = ("negative_discrimination", "identical_items", "untried_items")


def _starred(rows: Sequence[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    return [{**row, "mark": "*" if row[key] else ""} for row in rows]


def _listed(label: str, names: Sequence[str]) -> str:
    return f"{label} ({len(names)}): {', '.join(names)}" if names else f"{label}: none"


def responses(table: pa.Table, missing: int) -> View:
    """The size of a responses table, then its rows, of many the first."""
    models, items = (len(table[c].unique()) for c in ("model", "item"))
    attempts = sum(table["attempts"].to_pylist())
    cells = count(table.num_rows, "cell")
    summary = [f"{count(models, 'model')}, {count(items, 'item')}, {cells} ({missing} missing), "
               f"{count(attempts, 'attempt')}"]  # fmt: skip
    if table.num_rows > _ROWS:
        summary.append(f"the other {count(table.num_rows - _ROWS, 'row')}: --to csv")
    columns = [Show("model", "model"), Show("item", "item"), Show("attempts", "attempts")]
    columns.append(Show("correct", "correct", "g"))
    if table["cluster"].null_count < table.num_rows:
        columns.append(Show("cluster", "cluster"))
    return View(summary, columns, order=lambda row: (natural(row["model"]), natural(row["item"])), most=_ROWS)


def diagnosis(document: Mapping[str, Any]) -> View:
    """What the table is, the flags in words, then the items: of many only those that a flag names."""
    d = document
    least, most = d["attempts"]["min"], d["attempts"]["max"]
    size = f"{count(d['n_models'], 'model')}, {count(d['n_items'], 'item')}, "
    size += f"{_span(least, most)} attempt{'' if most == 1 else 's'} a cell, "
    if d["missing_cells"]:
        size += f"coverage {d['coverage']:.3g} ({count(d['missing_cells'], 'cell')} missing)"
    else:
        size += "no cell missing"
    numbers = (("alpha", "Cronbach's alpha"), ("n_eff", "effective items"))
    known = [f"{label} {d[key]:.3g}" for key, label in numbers if d[key] is not None]
    summary = [size, *([", ".join(known)] if known else [])]
    for flag in d["flags"]:
        summary += _lacking(flag, d["incomplete"]) if flag["flag"] == "incomplete" else [_flag(flag, d)]
    if not d["flags"]:
        summary.append("no flags")
    look = {name for flag in d["flags"] if flag["flag"] in _LOOK for name in flag["items"]}
    rows = [row | {"mark": "*" if row["item"] in look else ""} for row in d["items"]]
    if look:
        summary.append("* items to look at")
    if len(rows) > _ROWS:
        rows = [row for row in rows if row["mark"]]
        others = count(d["n_items"] - len(rows), "item")
        summary.append(f"the other {others}: --to csv" if rows else f"{others}: --to csv")
    heads = {"item": "item", "attempts": "attempts", "rate": "rate", "share_of_spread": "spread",
             "item_rest_correlation": "rest r", "information": "info", "inversion_rate": "inverted"}  # fmt: skip
    columns = [MARK, *(Show(k, h, ".1f" if k == "information" else ".3f") for k, h in heads.items())]
    if rows:
        summary.append(_LEGEND)
    return View(summary, columns, rows, order=lambda row: natural(row["item"]))


def _flag(flag: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """A flag's sentence and the first of those that it is about; of identical ones the first groups."""
    names = flag.get("models") or flag.get("items") or []
    if flag["flag"].startswith("identical_"):
        kind = "models" if "models" in flag else "items"
        known = set(names)
        names = [" = ".join(group[kind]) for group in document[flag["flag"]] if group[kind][0] in known]
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"- {flag['says']}" + (f": {', '.join(names[:_NAMES])}{more}" if names else "")


def _lacking(flag: Mapping[str, Any], incomplete: Sequence[Mapping[str, Any]]) -> list[str]:
    """The flag's sentence, and a line for each of the models with the least coverage."""
    lines = [f"- {flag['says']}"]
    for row in sorted(incomplete, key=lambda row: (row["coverage"], natural(row["model"])))[:_NAMES]:
        parts = (("others_rate_missing", "these"), ("others_rate_tried", "the rest"))
        scores = [f"{row[key]:.3f} on {what}" for key, what in parts if row[key] is not None]
        others = f"; the others score {', '.join(scores)}" if scores else ""
        lines.append(
            f"  {row['model']}: coverage {row['coverage']:.3g}, lacks {count(len(row['missing']), 'item')}{others}"
        )
    if len(incomplete) > _NAMES:
        lines.append(f"  and {count(len(incomplete) - _NAMES, 'model')} more")
    return lines


def parameters(table: pa.Table, fit: Mapping[str, Any]) -> View:
    """How a fit was made and whether it can be trusted, then its rows."""
    rows = table.drop(["draws"]).to_pylist()
    count = {kind: sum(row["kind"] == kind for row in rows) for kind in ("item", "model")}
    method = fit.get("method")
    summary = [f"{count['item']} items, {count['model']} models" + (f", by {method}" if method else "")]
    nuts = method == "nuts"
    if nuts:
        worst = [("R-hat", "max_rhat", ".3f"), ("bulk ESS", "min_ess_bulk", ".0f"), ("tail ESS", "min_ess_tail", ".0f")]
        shown = (f"{label} {'undefined' if fit[k] is None else format(fit[k], spec)}" for label, k, spec in worst)
        made = f"{fit['chains']} x {fit['draws']} draws, {fit['divergences']} divergences"
        summary.append(f"{made}; worst {', '.join(shown)}")
    for run in fit.get("anchored", ()):
        others = "models" if run["kind"] == "item" else "items"
        summary.append(f"{run['kind']}s placed later: {run['count']}, by {run['fixed']} {others}, {run['draws']} draws")
    if fit.get("stability"):
        summary.append(_steadiness(fit["stability"]))
    if any(row["boundary"] for row in rows):
        summary.append("* all attempts right, or all wrong: the place rests on the prior")
    for row in rows:
        sizes = [row[k] for k in ("ess_bulk", "ess_tail") if row[k] is not None]
        row["ess"] = min(sizes) if len(sizes) == 2 else None
    heads = {"kind": "kind", "id": "id", "mean": "mean", "sd": "sd", "lower": "lower", "upper": "upper"}
    spec = {"rhat": ".3f", "ess": ".0f"}
    if nuts:
        heads |= {"rhat": "R-hat", "ess": "ESS"}
    columns = [MARK, *(Show(k, h, spec.get(k, ".2f")) for k, h in heads.items())]
    return View(summary, columns, _starred(rows, "boundary"), order=lambda row: (row["kind"], natural(row["id"])))


def _steadiness(s: Mapping[str, Any]) -> str:
    spans = [f"{label} {s[k]['lower']:.3f} to {s[k]['upper']:.3f}"
             for k, label in (("ddm", "DDM"), ("max_gap", "max gap"), ("top_gap_sum", "top-5 gap sum"))]  # fmt: skip
    return f"without one model: {', '.join(spans)}; {s['most_influential']} moves most"


def metrics(document: Mapping[str, Any]) -> View:
    """Each metric beside chance, the companions and the posterior; of several benchmarks one row each."""
    if "benchmarks" in document:
        return _benchmarks(document)
    rows = [
        {
            "metric": label,
            "value": document[name],
            "mark": "*" if name in document["flags"] else "",
            "chance": nested(document, "baseline", name, "mean"),
            "q95": nested(document, "baseline", name, "q95"),
            "p": nested(document, "baseline", name, "p"),
            "failure": nested(document, "companion", "failure", name),
            "trimmed": nested(document, "companion", "drop_boundary", name),
            "lower": nested(document, "intervals", name, "lower"),
            "upper": nested(document, "intervals", name, "upper"),
        }
        for name, label in (("ddm", "DDM"), ("max_gap", "max gap"), ("top_gap_sum", f"top-{document['top']} gap sum"))
    ]
    keys = ("metric", "value", "chance", "q95", "p", "failure", "trimmed", "lower", "upper")
    shown = keys if document["intervals"] is not None else keys[:-2]
    edge = document["boundary_items"]
    summary = [
        f"{document['items']} items, {document['distinct_difficulties']} distinct difficulties"
        + (f", boundary items: {edge}" if edge is not None else ""),
        f"normalised by {document['normalize']}, against {document['target']}",
    ]
    if document["flags"]:
        summary.append("* at or above the threshold for a flag")
    if found := document.get("certificate"):
        certain = "" if found["safe"] is None else f", {found['safe']} are certain to stand"
        summary.append(f"of {found['pairs']} pairs of models {found['flips']} would change places{certain}")
    columns = (Show(k, "95%" if k == "q95" else k, P if k == "p" else ".3f") for k in shown)
    return View(summary, [MARK, *columns], rows)


def _benchmarks(document: Mapping[str, Any]) -> View:
    """A leaderboard of benchmarks, with a star at each value that reaches the threshold for a flag."""
    names = {"ddm": "DDM", "max_gap": "max gap", "top_gap_sum": f"top-{document['metrics'][0]['top']} gap sum"}
    rows = []
    for row in document["metrics"]:
        marks = {f"{m}_mark": "*" if m in row["flags"] else "" for m in names}
        chance = {f"{m}_p": nested(row, "baseline", m, "p") for m in names}
        rows.append(row | marks | chance)
    counts = [f"{label} {len(document['flagged'][m])}" for m, label in names.items()]
    summary = [f"{document['benchmarks']} benchmarks; flagged (*): {', '.join(counts)}",
               "p: share of random benchmarks of the same size that reach the value"]  # fmt: skip
    columns = [Show("name", "benchmark"), Show("items", "items")]
    for m, label in names.items():
        columns += [Show(m, label), Show(f"{m}_mark", ""), Show(f"{m}_p", "p", P)]
    return View(summary, columns, rows)


def gaps(document: Mapping[str, Any]) -> View:
    """The gaps, where a new item should go, and the items to start from."""
    heads = {"gap": "gap", "width": "width", "lower": "from", "upper": "to", "midpoint": "midpoint",
             "midpoint_logit": "logit", "p_wider": "P", "parents": "parents"}  # fmt: skip
    summary = [f"{document['items']} items, difficulties normalised by {document['normalize']}"]
    if "wider" in document:
        summary.append(f"P: posterior probability that the gap is wider than {document['wider']:g}")
    else:
        del heads["p_wider"]
    if places := document.get("suggestion"):
        listed = [f"{p['difficulty']:.3f}" + ("" if p["logit"] is None else f" (logit {p['logit']:.2f})")
                  for p in places["positions"][:_PLACES]]  # fmt: skip
        more = "" if len(listed) == places["items"] else f" and {places['items'] - len(listed)} more"
        summary.append(f"new items: {places['items']}, widest gap {document['max_gap']:.3f} to "
                       f"{places['max_gap']:.3f}, at {', '.join(listed)}{more}")  # fmt: skip
    if found := document.get("detection"):
        tries = f"{found['attempts']} attempt{'s' if found['attempts'] > 1 else ''}"
        summary.append("least power at level {alpha:g} to see success rise by {lift:g} on a width of {width:g}, "
                       "{tries} on each item before and again after:".format(tries=tries, **found))  # fmt: skip
        summary += [f"  {_power(case)}" for case in (found["fitted"], found["even"]) if case]
    return View(summary, [Show(k, h, ".2f" if k == "p_wider" else ".3f") for k, h in heads.items()])


def _power(case: Mapping[str, Any]) -> str:
    """The interval in which an improvement hides best, and how often it is seen there."""
    if case["power"] is None:
        return f"undefined, {case['power_reason']} ({case['success']})"
    error = f" +- {case['power_se']:.4f}" if case["power_se"] else ""
    held = len(case["covered"])
    where = f"from {case['lower']:.3f} to {case['upper']:.3f}, {held} item{'s' if held != 1 else ''}"
    return f"{case['power']:.3f}{error} {where} ({case['success']})"


def ranks(document: Mapping[str, Any]) -> View:
    """Who could be first, then the ranking, then what missing items could do."""
    what = "" if document["estimator"] == "mean" else f" by {document['estimator']}"
    summary = [f"{count(len(document['models']), 'model')} ranked on {count(document['items'], 'item')}{what}, "
               f"level {document['level']:g}"]  # fmt: skip
    summary += [f"range ({document['method']}): {document['promise']['text']}"]
    summary += [_listed("* could be first", document["contenders"])]
    summary += [_listed("not proven worse than any", document["best_set"])]
    summary += [
        f"not ranked: {row['model']} lacks {count(len(row['missing']), 'item')}" for row in document["excluded"]
    ]
    summary += [f"imputed: {count(len(row['missing']), 'item')} of {row['model']}"
                for row in document.get("imputed", ())]  # fmt: skip
    summary += [f"{row['model']}, {count(row['missing'], 'item')} missing: score {row['score_lower']:.3f} to "
                f"{row['score_upper']:.3f}, rank {_span(row['rank_lower'], row['rank_upper'])} of all"
                for row in document.get("bounds", ()) if row["missing"]]  # fmt: skip
    rows = [
        row | {
            "range": _span(row["rank_lower"], row["rank_upper"]),
            "tries": _span(*(_short(row[f"attempts_{end}"]) for end in ("lower", "upper"))),
            "pooled": _span(*(_short(row.get(f"pooled_{end}")) for end in ("lower", "upper"))),
        }
        for row in _starred(document["models"], "could_be_first")
    ]  # fmt: skip
    heads = {"model": "model", "rank": "rank", "range": "range", "p_first": "p first", "score": "score",
             "tries": "tries", "pooled": "pooled", "items_half_width": "+-items",
             "clusters_half_width": "+-clusters"}  # fmt: skip
    if _known(rows, "pooled"):  # both are too wide
        del heads["tries"]
    known = {k: h for k, h in heads.items() if _known(rows, k)}
    notes = {"tries": "tries: the score if these items were attempted again",
             "pooled": "pooled: the score by the fit, with any number of attempts on these items",
             "items_half_width": "+-items: on other items of the kind",
             "clusters_half_width": "+-clusters: on other clusters"}  # fmt: skip
    summary += ["; ".join(text for key, text in notes.items() if key in known)]
    return View(summary, [MARK, *(Show(k, h, P if k == "p_first" else ".3f") for k, h in known.items())], rows)


def _short(value: float | None) -> str | None:
    """A share in two digits, without the leading 0."""
    return None if value is None else f"{value:.2f}".removeprefix("0")


def _span(lower: Any, upper: Any) -> str | None:
    """3, or 1-3; None where there is none."""
    if lower is None or upper is None:
        return None
    return str(lower) if lower == upper else f"{lower}-{upper}"


def _known(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether a column has a value anywhere."""
    return any(row.get(key) is not None for row in rows)


def pairs(document: Mapping[str, Any]) -> View:
    """How many differences are significant, then the pairs, the clearest first."""
    reference, rows = document["reference"], document["pairs"]
    against = {"all": "every pair", "asked": "as asked for"}.get(document["compared"], f"against {reference}")
    what = "" if document["estimator"] == "mean" else f" by {document['estimator']}"
    summary = [
        f"{count(len(rows), 'pair')}{what}, {against}; family of {document['family_size']} adjusted by "
        f"{document['adjust']}",
        f"* significant at {document['alpha']:g}: {document['significant']} ({document['significant_raw']} unadjusted)",
    ]
    if "margin" in document:
        summary.append(f"equivalent: the difference lies within {document['margin']:g}, at level "
                       f"{1 - 2 * document['alpha']:g}")  # fmt: skip
        rows = [row | {"verdict": _verdict(row)} for row in rows]
    if "plan" in document:
        summary.append(f"needed: items at which a difference of {document['plan']:g} is found with power "
                       f"{document['power']:g}")  # fmt: skip
    heads = {"model_a": "model", "model_b": "compared with", "difference": "diff.", "discordant": "discord.", "p": "p",
             "p_adjusted": "adjusted", "detectable_difference": "detect.", "p_attempts": "p tries",
             "verdict": "verdict", "items_needed": "needed"}  # fmt: skip
    summary.append("detect.: the difference that would be found with power "
                   f"{document['power']:g}; more than 1 is none at all")  # fmt: skip
    if reference is not None:
        del heads["model_a"]
    if _known(rows, "p_attempts"):  # both are too wide
        del heads["discordant"]
    spec = dict.fromkeys(("p", "p_adjusted", "p_attempts"), ".2g")
    always = ("detectable_difference", "difference", "p_adjusted")
    shown = [Show(k, h, spec.get(k, ".3f")) for k, h in heads.items() if k in always or _known(rows, k)]
    names = ("model_a", "model_b")
    return View(summary, [MARK, *shown], _starred(rows, "significant"),
                order=lambda row: (row["p_adjusted"], row["p"], *(natural(row[k]) for k in names)))  # fmt: skip


def _verdict(row: Mapping[str, Any]) -> str:
    """No significant difference is no equality: where neither is shown, the items are too few."""
    shown = [word for key, word in (("significant", "differs"), ("equivalent", "equivalent")) if row[key]]
    return ", ".join(shown) or "too few items"
