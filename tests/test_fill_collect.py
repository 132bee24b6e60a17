"""Replies -> candidates: each line is a candidate or refused with its reason, whatever their order."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.fill import ids
from benchkit.fill.collect import answered, collect
from benchkit.fill.items import Item
from benchkit.fill.replies import Reply
from benchkit.fill.votes import Votes

ITEMS = {"q1": Item("q1", "What is 1 + 1?", "2"), "q2": Item("q2", "Name a prime.", "3")}


def name(k: int, gap: int = 1, parent: str = "q1", round_: int = 1) -> str:
    return ids.custom_id(round_, gap, k, 0.7, 4.2, parent)


def said(k: int, question: object = None, answer: object = "5", **change: object) -> Reply:
    content = json.dumps({"question": f"Question {k}?" if question is None else question, "answer": answer})
    return Reply(name(k), content, None)._replace(**change)


def reasons(*replies: Reply, **options: object) -> dict[str, str]:
    return {r.custom_id: r.reason for r in collect(replies, ITEMS, **options).refused}


class TestCandidates:
    def test_a_row(self):
        got = collect([said(1, " What is 2 + 2?\n", 4)], ITEMS)
        custom = name(1)
        assert got.candidates == [
            {"id": f"r1-g01-k1-{ids.digest(custom, 6)}", "question": "What is 2 + 2?", "answer": "4", "ancestor": "q1",
             "round": 1, "gap": 1, "target": 0.7, "target_logit": 4.2, "custom_id": custom}
        ]  # fmt: skip
        assert got.refused == [] and got.warnings == []
        assert got.document()["replies"] == 1

    def test_an_unknown_parent(self):
        row = collect([said(1, custom_id=name(1, parent="gone"))], ITEMS)
        assert row.candidates[0]["ancestor"] is None and row.candidates[0]["ancestor_reason"]
        assert row.warnings == ["candidates whose parent is among no items given: 1"]

    def test_by_round_gap_and_number(self):
        keys = [(2, 1, 1), (1, 10, 1), (1, 9, 1), (1, 9, 10), (1, 9, 2)]
        replies = [said(0, f"{key}?", custom_id=name(key[2], key[1], round_=key[0])) for key in keys]
        got = [(r["round"], r["gap"], r["question"]) for r in collect(replies, ITEMS).candidates]
        assert got == [(*key[:2], f"{key}?") for key in sorted(keys)]

    def test_numbers_are_texts(self):
        replies = [said(k, None, a) for k, a in enumerate([7, 0.5, -3.0, 10**30])]
        answers = ["7", "0.5", "-3.0", str(10**30)]
        assert [r["answer"] for r in collect(replies, ITEMS).candidates] == answers


class TestRefusals:
    @pytest.mark.parametrize(
        ("reply", "reason"),
        (
            (Reply(name(1), "no", None), "no JSON object"),
            (Reply(name(1), '{"question": "a', None, True), "no JSON object, cut at the length limit"),
            (Reply(name(1), None, "HTTP status 500"), "HTTP status 500"),
            (said(1, custom_id="else"), "the custom_id was not made by bk-fill requests"),
            (said(1, ""), "'question' is empty"),
            (said(1, " ?! "), "'question' is empty"),
            (said(1, None, "  "), "'answer' is empty"),
            (said(1, None, None), "'answer' is neither text nor a number"),
            (said(1, None, True), "'answer' is neither text nor a number"),
            (said(1, None, ["a"]), "'answer' is neither text nor a number"),
            (Reply(name(1), '{"question": "a", "answer": 1e999}', None), "'answer' is neither text nor a number"),
            (said(1, "a \x0crac"), "'question' holds control characters where a backslash was not doubled"),
            (said(1, "what is 1+1"), None),
            (said(1, " what IS 1 + 1 "), "a copy of item 'q1'"),
        ),
    )
    def test_one(self, reply, reason):
        got = collect([reply], ITEMS)
        assert [r.reason for r in got.refused] == ([] if reason is None else [reason])
        assert len(got.candidates) == (reason is None)
        assert got.rejected() == [{"custom_id": r.custom_id, "reason": r.reason} for r in got.refused]
        assert (got.warnings == []) == (reason is None)

    def test_copies_of_each_other_and_second_replies(self):
        one, copy, again = said(1, "A new one"), said(2, "a  NEW one."), said(1, "Another")
        got = collect([copy, one, again], ITEMS)
        assert [r["question"] for r in got.candidates] == ["A new one"]
        assert reasons(copy, one, again) == {
            name(2): f"a copy of candidate '{got.candidates[0]['id']}'",
            name(1): "a second reply to the same request: the first one counts",
        }

    def test_a_failed_request_that_was_asked_again(self):
        failed = Reply(name(1), None, "HTTP status 429")
        got = collect([failed, said(1), failed], ITEMS)
        assert len(got.candidates) == 1 and [r.reason for r in got.refused] == ["HTTP status 429"] * 2
        assert answered([failed]) == set() and answered([failed, said(1)]) == {name(1)}

    def test_what_is_known_already(self):
        first = collect([said(1)], ITEMS).candidates[0]
        more = ITEMS | {first["id"]: Item(first["id"], "Edited since.", "5")}
        assert collect([said(1)], more).refused[0].reason == f"it is item '{first['id']}' already"

    def test_the_warning_names_the_kinds(self):
        replies = [Reply(name(k), None, f"HTTP status {500 + k}") for k in range(3)] + [
            said(4, "what is 1 + 1?"),
            said(5),
        ]
        assert collect(replies, ITEMS).warnings == ["4 of 5 replies refused: failed requests (3), copies of items (1)"]


class TestVotes:
    def test_more_than_half(self):
        counts = {name(1): (1, 2), name(2): (2, 3), name(3): (0, 1), name(5): (1, 1)}
        replies = [said(k) for k in (1, 2, 3, 4)]
        got = collect(replies, ITEMS, Votes(counts, 2))
        assert [r["question"] for r in got.candidates] == ["Question 2?"]
        assert reasons(*replies, votes=Votes(counts, 0)) == {
            name(1): "1 of 2 votes say that it is valid",
            name(3): "0 of 1 votes say that it is valid",
            name(4): "0 votes where 1 are needed",
        }
        assert got.warnings[1:] == [
            "votes that could not be read, and don't count: 2",
            f"votes on candidates that are not here: 1, the first on '{name(5)}'",
        ]

    def test_enough_of_them(self):
        votes = Votes({name(1): (2, 2), name(2): (3, 3)}, 0)
        got = collect([said(1), said(2)], ITEMS, votes, min_votes=3)
        assert [r["question"] for r in got.candidates] == ["Question 2?"]


class TestInvariance:
    @given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["a", "b", "what is 1 + 1", "", None])), max_size=12),
           st.randoms())  # fmt: skip
    def test_every_line_counts_once_and_order_does_not_matter(self, lines: list, order: random.Random):
        once = dict(lines)
        replies = [
            said(k, text) if text is not None else Reply(name(k), None, "no response") for k, text in once.items()
        ]
        got = collect(replies, ITEMS)
        assert len(got.candidates) + len(got.refused) == len(replies) == got.document()["replies"]
        order.shuffle(replies)
        assert collect(replies, ITEMS) == got

    def test_collecting_again_with_more_replies_keeps_the_identifiers(self):
        few = collect([said(2)], ITEMS).candidates
        assert few[0] in collect([said(1), said(2), said(3)], ITEMS).candidates
