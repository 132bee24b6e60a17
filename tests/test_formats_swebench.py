"""SWE-bench: what each kind of file says of an instance, and what it leaves unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from conftest import DATA, Shell
from hypothesis import given, settings
from hypothesis import strategies as st
from native_files import attempts, damaged, reader, scores, survives, write

from benchkit.errors import InputError
from benchkit.formats.swebench import repository

PRO = DATA / "native" / "swebench_pro" / "gpt-4o-paper.eval_results.json"

RESULTS = {
    "no_generation": ["django__django-1"],
    "no_logs": ["django__django-2"],
    "resolved": ["astropy__astropy-2", "django__django-3"],
}
ALL = frozenset(["django__django-1", "django__django-2", "django__django-3", "astropy__astropy-2", "sympy__sympy-9"])
LEGACY = {
    "generated": ["a__a-1", "a__a-2", "a__a-3", "a__a-4"],
    "with_logs": ["a__a-1", "a__a-2", "a__a-3", "a__a-4"],
    "applied": ["a__a-1", "a__a-3", "a__a-4"],
    "no_apply": ["a__a-2"],
    "test_timeout": ["a__a-3"],
    "no_generation": ["a__a-5"],
    "resolved": ["a__a-1"],
}
REPORT = {
    "schema_version": 2,
    "total_instances": 8,
    "submitted_ids": [f"a__a-{k}" for k in range(1, 8)],
    "completed_ids": ["a__a-1", "a__a-2", "a__a-6"],
    "incomplete_ids": ["c__c-8"],
    "empty_patch_ids": ["a__a-3"],
    "resolved_ids": ["a__a-1"],
    "unresolved_ids": ["a__a-2"],
    "error_ids": ["a__a-4"],
    "infra_failure_ids": ["a__a-5"],
    "ambiguous_failure_ids": ["a__a-2"],
    "failure_reasons": {"a__a-2": "no_tests_collected"},
}
DETAILS = {
    "astropy__astropy-1": {"cost": 0.4, "api_calls": 31, "resolved": True},
    "astropy__astropy-2": {"cost": 0.1, "api_calls": 3, "resolved": False},
}
INSTANCE = {
    "sympy__sympy-7": {
        "patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "resolved": True,
        "tests_status": {"FAIL_TO_PASS": {"success": [], "failure": []}},
    }
}  # fmt: skip


class TestPro:
    """35 of the 619 instances of SWE-bench Pro's file for GPT-4o, of all its repositories; 13 are resolved."""

    def test_flags_by_instance(self, sh: Shell) -> None:
        assert "records no model" in sh(f"bk-matrix {PRO}", rc=2).err
        got = json.loads(sh(f"bk-matrix {PRO} --model gpt-4o -t json").out)["responses"]
        assert len(got) == 35 and sum(r["correct"] for r in got) == 13
        assert {r["cluster"] for r in got} == {
            "NodeBB__NodeBB", "ansible__ansible", "element-hq__element-web", "flipt-io__flipt",
            "future-architect__vuls", "gravitational__teleport", "internetarchive__openlibrary",
            "navidrome__navidrome", "protonmail__webclients", "qutebrowser__qutebrowser", "tutao__tutanota",
        }  # fmt: skip

    def test_null_is_not_scored(self, tmp_path: Path) -> None:
        assert scores(attempts(write(tmp_path / "a.json", {"a__b-1": True, "a__b-2": None}))) == {
            "a__b-1": [1.0],
            "a__b-2": [None],
        }


class TestResults:
    def test_all_instances_must_be_told(self, sh: Shell) -> None:
        write(sh.folder / "results.json", RESULTS)
        assert "name all of them with --items FILE" in sh("bk-matrix results.json --model m", rc=2).err
        (sh.folder / "ids").write_text("\n".join(ALL))
        got = json.loads(sh("bk-matrix results.json --model m --items ids -t json").out)["responses"]
        assert {r["item"]: r["correct"] for r in got} == {i: i in RESULTS["resolved"] for i in ALL}
        (sh.folder / "ids").write_text("\n".join(sorted(ALL)[1:]))
        assert f"item '{sorted(ALL)[0]}' not in --items" in sh("bk-matrix results.json --model m --items ids", rc=2).err

    def test_what_was_not_evaluated_is_an_error_only_where_that_is_decided(self, sh: Shell) -> None:
        write(sh.folder / "results.json", RESULTS)
        (sh.folder / "ids").write_text("\n".join(ALL))
        call = "bk-matrix results.json --model m --items ids -t json"
        for errors, n, failed in (("", 5, None), ("--errors wrong", 5, 1), ("--errors drop", 4, 1)):
            got = json.loads(sh(f"{call} {errors}").out)
            assert len(got["responses"]) == n and sum(r["correct"] for r in got["responses"]) == 2
            assert got["sources"][0].get("failed") == failed

    def test_legacy(self, tmp_path: Path) -> None:
        path = write(tmp_path / "results.json", LEGACY)
        items = frozenset([f"a__a-{k}" for k in range(1, 7)])
        got = attempts(path, items=items)
        assert scores(got) == {i: [float(i == "a__a-1")] for i in items}
        assert got is not None and not any(got.errors)
        got = attempts(path, items=items, errors="drop")
        assert got is not None and [i for i, e in zip(got.items, got.errors, strict=True) if e] == ["a__a-3"]

    @pytest.mark.parametrize("name", ("no_generation", "no_logs", "no_apply"))
    def test_contradictions(self, tmp_path: Path, name: str) -> None:
        path = write(tmp_path / "a.json", {"applied": [], "resolved": ["a__a-1"], name: ["a__a-1"]})
        with pytest.raises(InputError, match=f"instance 'a__a-1' is in resolved and in {name}"):
            attempts(path, items=frozenset(["a__a-1"]))

    def test_summaries_go_with_it(self, tmp_path: Path) -> None:
        path = write(tmp_path / "resolved_by_repo.json", {"astropy/astropy": {"resolved": 2, "total": 6}})
        assert reader(path) == "swebench" and attempts(path) is None


class TestReport:
    def test_statuses(self, sh: Shell) -> None:
        """1 resolved; 2 unresolved and 3 an empty patch are wrong; 4, 5 and 6 errors; 8 not submitted, 7 nowhere."""
        write(sh.folder / "m.run.json", REPORT)
        got = attempts(sh.folder / "m.run.json")
        assert got is not None and got.skipped == {
            "instance not submitted": 1,
            "submitted instance in no other list": 1,
        }
        assert "3 of 6 attempts ended in an error" in sh("bk-matrix m.run.json --model m", rc=2).err
        dropped = json.loads(sh("bk-matrix m.run.json --model m --errors drop -t json").out)
        assert [(r["item"], r["correct"]) for r in dropped["responses"]] == [
            ("a__a-1", 1),
            ("a__a-2", 0),
            ("a__a-3", 0),
        ]
        assert dropped["sources"][0]["failed"] == 3
        wrong = json.loads(sh("bk-matrix m.run.json --model m --errors wrong -t json").out)["responses"]
        assert [r["correct"] for r in wrong] == [1, 0, 0, 0, 0, 0]

    def test_an_error_is_none_that_is_wrong(self, tmp_path: Path) -> None:
        """An instance may be unresolved and an infrastructure failure: then it is the failure."""
        path = write(tmp_path / "a.json", REPORT | {"infra_failure_ids": ["a__a-2"], "error_ids": []})
        got = attempts(path)
        assert got is not None and got.errors[got.items.index("a__a-2")]

    @pytest.mark.parametrize("name", ("unresolved_ids", "empty_patch_ids", "error_ids", "incomplete_ids"))
    def test_contradictions(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(InputError, match="instance 'a__a-1' is in "):
            attempts(write(tmp_path / "a.json", REPORT | {name: ["a__a-1"]}))

    def test_lists_that_are_absent_are_empty(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", {"resolved_ids": ["a__a-1", "a__a-1"], "unresolved_ids": ["a__a-2"]})
        assert scores(attempts(path)) == {"a__a-1": [1.0], "a__a-2": [0.0]}


class TestInstances:
    def test_details(self, tmp_path: Path) -> None:
        got = attempts(write(tmp_path / "per_instance_details.json", DETAILS))
        assert scores(got) == {"astropy__astropy-1": [1.0], "astropy__astropy-2": [0.0]}
        assert got is not None and got.model is None and got.clusters == ["astropy__astropy"] * 2

    def test_reports_of_a_run_are_one_table(self, sh: Shell) -> None:
        for k in range(3):
            item = f"sympy__sympy-{k}"
            report = {item: INSTANCE["sympy__sympy-7"] | {"resolved": k == 1, "infra_failure": k == 2}}
            write(sh.folder / "logs" / item / "report.json", report)
        got = json.loads(sh("bk-matrix logs --model m --errors drop -t json").out)["responses"]
        assert [(r["item"], r["correct"]) for r in got] == [("sympy__sympy-0", 0), ("sympy__sympy-1", 1)]

    def test_reports_beside_results_say_the_same_again(self, sh: Shell) -> None:
        """A submission of SWE-bench/experiments: one model, and each instance once, by its results."""
        write(sh.folder / "agent" / "results" / "results.json", {"no_logs": [], "resolved": ["sympy__sympy-7"]})
        for name in ("sympy__sympy-7", "sympy__sympy-8"):
            write(sh.folder / "agent" / "logs" / name / "report.json", {name: INSTANCE["sympy__sympy-7"]})
        (sh.folder / "ids").write_text("sympy__sympy-7\nsympy__sympy-8\n")
        got = json.loads(sh("bk-matrix agent --model-from path --items ids -t json").out)["responses"]
        want = [("agent", "sympy__sympy-7", 1, 1), ("agent", "sympy__sympy-8", 1, 0)]
        assert [(r["model"], r["item"], r["attempts"], r["correct"]) for r in got] == want

    def test_results_beside_details_say_the_same_again(self, tmp_path: Path) -> None:
        """Details have the instances that were not solved too, so that nothing more has to be told."""
        details = write(tmp_path / "agent" / "per_instance_details.json", DETAILS)
        results = tmp_path / "agent" / "results" / "results.json"
        assert attempts(write(results, {"no_logs": [], "resolved": ["astropy__astropy-1"]})) is None
        assert attempts(details) is not None
        got = attempts(write(results, {"no_logs": [], "resolved": ["astropy__astropy-2"]}), items=frozenset(DETAILS))
        assert scores(got) == {"astropy__astropy-1": [0.0], "astropy__astropy-2": [1.0]}

    def test_trajectories_of_a_submission_go_with_it(self, tmp_path: Path) -> None:
        """Each agent has a layout of its own for them: one that names a model was a wide table with errors."""
        trajectory = {"model": "m", "instance_id": "a__a-1", "steps": [{"action": "x"}]}
        for folder, results in (("agent", {"no_logs": [], "resolved": []}), ("mine", {"other": 1})):
            write(tmp_path / folder / "results" / "results.json", results)
            path = write(tmp_path / folder / "trajs" / "a" / "a__a-1.json", trajectory)
            assert (reader(path) == "swebench") == (folder == "agent")
        assert attempts(tmp_path / "agent" / "trajs" / "a" / "a__a-1.json") is None
        lines = [openhands("a__a-1", report=verdict(True))]
        assert attempts(write(tmp_path / "agent" / "trajs" / "output.jsonl", lines)) is None
        assert attempts(write(tmp_path / "mine" / "trajs" / "output.jsonl", lines)) is not None

    def test_reports_alone_ask_for_the_results_beside_them(self, sh: Shell) -> None:
        write(sh.folder / "agent" / "results" / "results.json", {"no_logs": [], "resolved": []})
        write(sh.folder / "agent" / "logs" / "sympy__sympy-7" / "report.json", INSTANCE)
        write(sh.folder / "agent" / "logs" / "sympy__sympy-8" / "report.json", INSTANCE)
        said = sh("bk-matrix agent/logs --model m", rc=2).err
        assert said == "bk-matrix: agent/logs: only files that go with others: name the folder that holds these too\n"

    def test_reports_without_results_are_of_the_submission(self, tmp_path: Path) -> None:
        path = tmp_path / "agent" / "logs" / "sympy__sympy-7" / "report.json"
        write(tmp_path / "agent" / "results" / "results.json", {"other": 1})
        found = attempts(write(path, INSTANCE))
        assert found and scores(found) == {"sympy__sympy-7": [1]} and found.folder == str(tmp_path / "agent")


class TestRepository:
    @pytest.mark.parametrize(
        ("item", "want"),
        (
            ("django__django-11099", "django__django"),
            ("scikit-learn__scikit-learn-10297", "scikit-learn__scikit-learn"),
            ("Automattic__wp-calypso-21409", "Automattic__wp-calypso"),
            (f"instance_future-architect__vuls-{'7e91f5ef' * 5}", "future-architect__vuls"),
            (f"instance_NodeBB__NodeBB-{'0' * 40}-vnan", "NodeBB__NodeBB"),
            (f"instance_element-hq__element-web-{'a' * 40}-v{'b' * 40}", "element-hq__element-web"),
            ("pylint-dev__astroid.b114f6b5.func_pm_remove__x1", "pylint-dev__astroid"),
            ("a.b__c.d-e.70c3acf6.pr_12", "a.b__c.d-e"),
            ("x", None),
        ),
    )
    def test_clusters(self, item: str, want: str | None) -> None:
        assert repository(item) == want


class TestHostile:
    @pytest.mark.parametrize(
        ("document", "said"),
        (
            (RESULTS | {"no_logs": 3}, "no_logs is a number, not a list"),
            (RESULTS | {"resolved": ["a__a-1", None]}, "resolved 2 is null, no instance"),
            (REPORT | {"error_ids": {"a": 1}}, "error_ids is an object, not a list"),
            (DETAILS | {"x__x-1": 3}, "row 3: x__x-1 is a number, not an object"),
            (DETAILS | {"x__x-1": {"resolved": "no"}}, "row 3: resolved of x__x-1 is a text, not a flag"),
            ({"x__x-1": True, "x__x-2": 1}, "row 2: x__x-2 is a number, not a flag"),
        ),
    )  # fmt: skip
    def test_one_clear_line(self, tmp_path: Path, document: Any, said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "a.json", document), items=ALL)

    @pytest.mark.parametrize(
        "document",
        (
            {"resolved": ["a"], "model": "m"},
            {"a": True, "b": False},
            {"model": "m", "item": "a__b-1", "resolved": True},
            {"m__x-1": {"score": 1}},
            {"a": {"resolved": True}},
        ),
    )
    def test_documents_of_others_are_not(self, tmp_path: Path, document: Any) -> None:
        assert reader(write(tmp_path / "a.json", document)) != "swebench"

    @settings(max_examples=150)
    @given(st.data())
    def test_damaged_files(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        document = data.draw(
            st.sampled_from((RESULTS, LEGACY, REPORT, DETAILS, INSTANCE, {"a__b-1": True, "a__b-2": False}))
        )
        path = write(tmp_path_factory.mktemp("swe") / "a.json", data.draw(damaged(document)))
        survives(path, items=ALL, unscored="drop", errors=data.draw(st.sampled_from(("drop", "wrong"))))


def test_the_run_s_folder_is_the_model(tmp_path):
    """--model-from path: the submission, and the model of a run, not the folder that happens to hold the file."""
    from conftest import Shell

    run = Shell(tmp_path)
    for folder in ("20240101_agent/results", "run/gpt-x/a__a-1"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "20240101_agent/results/results.json").write_text(
        '{"no_generation":[],"no_logs":[],"resolved":["a__a-1"]}'
    )
    (tmp_path / "run/gpt-x/a__a-1/report.json").write_text(
        '{"a__a-1":{"patch_is_None":false,"patch_exists":true,"patch_successfully_applied":true,"resolved":true}}'
    )
    (tmp_path / "items.txt").write_text("a__a-1\n")
    text = run("bk-matrix --items items.txt --model-from path 20240101_agent run --to csv").out.decode()
    assert {line.split(",")[0] for line in text.splitlines()[1:]} == {"20240101_agent", "gpt-x"}


class TestMultiSweBench:
    """Layouts of multi_swe_bench/harness/report.py and of multi-swe-bench/experiments."""

    def test_errors_are_among_the_incomplete(self, tmp_path: Path) -> None:
        """FinalReport.from_reports puts failed tasks into submitted, incomplete and error alike."""
        ids = [f"fmtlib/fmt:pr-{k}" for k in (1, 2, 3)]
        final = {"submitted_ids": ids, "completed_ids": ids[:2], "incomplete_ids": ids[2:], "resolved_ids": ids[:1],
                 "unresolved_ids": ids[1:2], "empty_patch_ids": [], "error_ids": ids[2:]}  # fmt: skip
        found = attempts(write(tmp_path / "final_report.json", final))
        assert found and found.items == ids and found.scores == [1, 0, 0] and found.errors == [False, False, True]
        assert set(found.clusters) == {"fmtlib/fmt"} and found.skipped == {}

    def test_results_of_a_submission(self, tmp_path: Path) -> None:
        """The list of solved instances is called resolved, and no other is needed: unsolved ones are listed too."""
        results = {"total_instances": 3, "completed_ids": ["a__b-1", "a__b-2"], "incomplete_ids": [],
                   "submitted_ids": ["a__b-1", "a__b-2", "a__b-3"], "resolved": ["a__b-1"],
                   "unresolved_ids": ["a__b-2"], "empty_error_patch_ids": ["a__b-3"]}  # fmt: skip
        found = attempts(write(tmp_path / "sub" / "results" / "results.json", results))
        assert found and scores(found) == {"a__b-1": [1], "a__b-2": [0], "a__b-3": [0]}
        assert found.errors == [False, False, True] and found.folder == str(tmp_path / "sub")

    @pytest.mark.parametrize("logs", ["logs", "."])
    def test_report_of_an_instance(self, tmp_path: Path, logs: str) -> None:
        report = {"org": "fmtlib", "repo": "fmt", "number": 7, "valid": True, "error_msg": "", "fixed_tests": {},
                  "run_result": {}, "test_patch_result": {}, "fix_patch_result": {}}  # fmt: skip
        path = tmp_path / "sub" / logs / "fmtlib" / "fmt" / "evals" / "pr-7" / "report.json"
        found = attempts(write(path, report))
        assert found and scores(found) == {"fmtlib/fmt:pr-7": [1]} and found.clusters == ["fmtlib/fmt"]
        assert found.folder == str(tmp_path / "sub")
        with pytest.raises(InputError, match="without org, repo, or a flag valid"):
            attempts(write(path, report | {"valid": None}))


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("all_preds.jsonl", [{"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": ""}] * 2),
        ("preds.json", {"a__b-1": {"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": ""}}),
        ("preds.json", [{"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": None}]),
    ],
)
def test_predictions_go_with_results(tmp_path: Path, name: str, document: Any) -> None:
    assert attempts(write(tmp_path / name, document)) is None


def openhands(item: str, **more: Any) -> dict[str, Any]:
    metadata = {"agent_class": "CodeActAgent", "llm_config": {"model": "org/m"}, "eval_output_dir": "x"}
    return {"instance_id": item, "test_result": {"git_patch": "diff"}, "instruction": "", "metadata": metadata,
            "history": [], "metrics": {}, "error": None, "instance": {}} | more  # fmt: skip


def verdict(resolved: bool, **more: bool) -> dict[str, Any]:
    return {"empty_generation": False, "resolved": resolved, "failed_apply_patch": False, "error_eval": False,
            "test_timeout": False} | more  # fmt: skip


class TestOpenHands:
    """Layouts of evaluation/benchmarks/swe_bench/eval_infer.py and of what its scripts add to output.jsonl."""

    ROWS: ClassVar[list[dict[str, Any]]] = [
        openhands("a__a-1", report=verdict(True)),
        openhands("a__a-2", test_result={"git_patch": "", "report": verdict(False, empty_generation=True)}),
        openhands("a__a-3", test_result={"report": verdict(False, error_eval=True)}),
        openhands("a__a-4", test_result={"report": verdict(False, test_timeout=True)}),
        openhands("a__a-5", test_result={}, error="raised"),
        openhands("a__a-6"),
    ]

    @pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]])
    def test_lines_with_reports(self, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
        got = attempts(write(tmp_path / "output.jsonl", rows))
        assert got and got.settings == "CodeActAgent" and set(got.models) == {"org/m"}
        assert {i: (s, e) for i, s, e in zip(got.items, got.scores, got.errors, strict=True)} == {
            "a__a-1": (1, False), "a__a-2": (0, False), "a__a-3": (0, True), "a__a-4": (0, True),
            "a__a-5": (None, True), "a__a-6": (None, False),
        }  # fmt: skip

    def test_without_reports_they_are_predictions(self, tmp_path: Path) -> None:
        rows = [openhands("a__a-1"), openhands("a__a-2", test_result={}, error="raised")]
        assert attempts(write(tmp_path / "output.jsonl", rows)) is None
        assert attempts(write(tmp_path / "output.jsonl", rows[::-1])) is None

    def test_a_run_is_read_once(self, sh: Shell) -> None:
        """report.json of the run is no report of an instance: its folder is the model's."""
        run = sh.folder / "CodeActAgent" / "m_maxiter_30"
        write(run / "metadata.json", openhands("")["metadata"])
        write(run / "output.jsonl", self.ROWS[:2])
        write(run / "report.json", REPORT | {"infra_failure_ids": [], "error_ids": [], "completed_ids": []})
        write(run / "eval_outputs" / "a__a-1" / "report.json", {"a__a-1": INSTANCE["sympy__sympy-7"]})
        got = json.loads(sh("bk-matrix . --model-from path -t json").out)["responses"]
        assert {(r["model"], r["item"], r["correct"]) for r in got} == {
            ("m_maxiter_30", "a__a-1", 1), ("m_maxiter_30", "a__a-2", 0), ("m_maxiter_30", "a__a-3", 0),
        }  # fmt: skip
        (run / "report.json").unlink()
        found = attempts(run / "eval_outputs" / "a__a-1" / "report.json")
        assert found and found.folder == str(run)

    @pytest.mark.parametrize(
        ("row", "said"),
        (
            (openhands("a__a-2", test_result={"score": 1}), "row 2: no report, no patch and no error of a__a-2"),
            (openhands("a__a-2", report={"resolved": "no"}), "row 2: resolved of a__a-2 is a text, not a flag"),
        ),
    )
    def test_one_clear_line(self, tmp_path: Path, row: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            attempts(write(tmp_path / "output.jsonl", [self.ROWS[0], row]))

    def test_nemo_skills(self, tmp_path: Path) -> None:
        """It keeps what the benchmark says of the instance, gold patch and all (nemo_skills/inference/eval)."""
        rows = [{"instance_id": f"a__a-{n}", "patch": "", "test_patch": "", "generation": "", "swe-bench-outputs": {},
                 "swe-bench-metrics": {"resolved": resolved, "patch_exists": True}}
                for n, resolved in enumerate((True, False, None))]  # fmt: skip
        found = attempts(write(tmp_path / "output-rs0.jsonl", rows))
        assert found and scores(found) == {"a__a-0": [1], "a__a-1": [0], "a__a-2": [None]}
        assert (found.format, found.model, found.errors) == ("nemo-skills", None, [False] * 3)

    def test_its_other_benchmarks_are_not(self, tmp_path: Path) -> None:
        assert reader(write(tmp_path / "output.jsonl", [openhands("7", test_result={"score": True})] * 2)) is None

    @settings(max_examples=100)
    @given(st.data())
    def test_damaged_files(self, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
        path = tmp_path_factory.mktemp("oh") / "output.json"
        survives(write(path, data.draw(damaged(self.ROWS))), errors="drop", unscored="drop")


class TestVariants:
    """The reports of SWE-bench-Live's evaluation.py and of SWE-smith's harness, a run and an instance each."""

    LIVE: ClassVar[dict[str, Any]] = {
        "submitted": 4, "submitted_ids": ["a__a-1", "a__a-2", "a__a-3", "a__a-4"], "success": 1, "failure": 1,
        "error": 1, "success_ids": ["a__a-1"], "failure_ids": ["a__a-2"], "error_ids": ["a__a-3"],
        "empty_patch": 1, "empty_patch_ids": ["a__a-4"],
    }  # fmt: skip

    def test_live(self, tmp_path: Path) -> None:
        tests = {"success": [], "failure": []}
        report = {"instance_id": "a__a-1", "resolved": True, "PASS_TO_PASS": tests, "FAIL_TO_PASS": tests}
        inside = write(tmp_path / "run" / "a__a-1" / "report.json", report)
        found = attempts(inside)
        assert found and scores(found) == {"a__a-1": [1]}
        assert (found.folder, found.clusters) == (str(tmp_path / "run"), ["a__a"])
        found = attempts(write(tmp_path / "run" / "results.json", self.LIVE))
        assert found and scores(found) == {"a__a-1": [1], "a__a-2": [0], "a__a-3": [0], "a__a-4": [0]}
        assert found.errors == [False, False, False, True] and found.items[-1] == "a__a-3" and not found.skipped
        assert attempts(inside) is None

    def test_smith(self, tmp_path: Path) -> None:
        """Without the run's report its instances count, which have their names from their folders."""
        solved, late = "o__r.70c3acf6.func_pm__a", "o__r.70c3acf6.func_pm__b"
        report = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": False, "resolved": True,
                  "tests_status": {}, "model_name_or_path": "m"}  # fmt: skip
        inside = write(tmp_path / "run" / solved / "report.json", report)
        for path, want in (
            (inside, {solved: [1]}),
            (write(tmp_path / "run" / late / "report.json", {"timed_out": True, "timeout": 90}), {late: [0]}),
        ):
            found = attempts(path)
            assert found and scores(found) == want and (found.model, found.folder) == (None, str(tmp_path / "run"))
        run = {"resolved": 1, "unresolved": 1, "total": 3, "ids_resolved": [solved], "ids_unresolved": [late]}
        found = attempts(write(tmp_path / "run" / "report.json", run))
        assert found and scores(found) == {solved: [1], late: [0]} and found.folder == str(tmp_path / "run")
        assert found.skipped == {"instance without a report": 1}
        assert attempts(inside) is None

    def test_pro_instances_that_never_ran(self, tmp_path: Path) -> None:
        ran, never = (f"instance_a__a-{k * 40}-vnan" for k in "12")
        path = write(tmp_path / "eval_results.json", {ran: True})
        beside = write(tmp_path / "infra_errors.json", {never: "no image", ran: "before it was done again"})
        found = attempts(path)
        assert found and found.items == [ran, never] and found.errors == [False, True]
        assert attempts(beside) is None
        other = write(tmp_path / "m.json", {ran: True})
        with pytest.raises(InputError, match=r"infra_errors.json .* of the run that wrote eval_results.json"):
            attempts(other)
        assert attempts(write(beside, {})) is None
        assert scores(attempts(other)) == {ran: [1]}

    def test_the_harness_s_own_folder_is_read_once(self, sh: Shell) -> None:
        """<model>.<run>.json where it was started tells more than the reports below logs/run_evaluation."""
        report = sh.folder / "logs" / "run_evaluation" / "r1" / "org__m" / "a__a-1" / "report.json"
        write(report, {"a__a-1": INSTANCE["sympy__sympy-7"]})
        found = attempts(report)
        assert found and found.folder == str(report.parents[1])
        write(sh.folder / "org__m.r1.json", REPORT)
        assert attempts(report) is None
        got = json.loads(sh("bk-matrix . --model-from path --errors drop -t json").out)["responses"]
        assert len({r["model"] for r in got}) == 1 and len(got) == 3
        write(sh.folder / "org__m.r1.json", REPORT | {"resolved_ids": [], "completed_ids": ["a__a-2"]})
        assert attempts(report) is not None  # the harness wrote it anew for some instances


@pytest.mark.parametrize(
    "document",
    [
        {"info": {"exit_status": "Submitted"}, "messages": [], "trajectory_format": "mini-swe-agent-1.1",
         "instance_id": "a__a-1"},
        [{"instance_id": "instance_a__a-1", "patch": "", "prefix": "m"}],
        [{"instance_id": "a__a-1", "repo": "a/a", "patch": "", "test_patch": ""}],
    ],
)  # fmt: skip
def test_what_goes_with_results(tmp_path: Path, document: Any) -> None:
    assert attempts(write(tmp_path / "a.json", document)) is None


def test_predictions_with_a_score_are_a_table(tmp_path: Path) -> None:
    """They were passed over as if they held none."""
    for score in ("resolved", "passed"):
        rows = [{"instance_id": "a__b-1", "model_name_or_path": "m", "model_patch": "", score: True}]
        assert reader(write(tmp_path / "a.json", rows)) is None
