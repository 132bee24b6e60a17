"""What comes back: custom_ids, lines that may be cut, replies, the JSON object in a text, votes, copies."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchkit.errors import InputError
from benchkit.fill import answer, ids, lines
from benchkit.fill.copies import normalised
from benchkit.fill.replies import Reply, reply
from benchkit.fill.votes import count, vote

NAME = ids.custom_id(1, 2, 1, 0.708, -4.191, "q")


def line(content, name=NAME, **change):
    """A reply in the batch format."""
    body = {"choices": [{"message": {"role": "assistant", "content": content}}]}
    return {"id": "x", "custom_id": name, "response": {"status_code": 200, "body": body}, "error": None} | change


class TestIds:
    @given(st.integers(1, 999), st.integers(1, 200), st.integers(1, 99), st.floats(0, 1), st.floats(-40, 40), st.text())
    def test_there_and_back(self, round_, gap, k, target, logit, parent):
        parent = parent.encode(errors="replace").decode()
        name = ids.custom_id(round_, gap, k, target, logit, parent)
        key = ids.parse(name)
        assert (key.round, key.gap, key.candidate, key.parent) == (round_, gap, k, ids.digest(parent))
        assert math.isclose(key.target, target, abs_tol=5.1e-5)
        assert math.isclose(key.target_logit, logit, abs_tol=5.1e-4)
        assert re.fullmatch("[a-z0-9-]{1,64}", name)

    def test_by_hand(self):
        """The hash is that of sha256sum: printf q | sha256sum."""
        assert NAME == "r1-g02-k1-z7080-bm4191-8e35c2cd3bf6"
        assert re.fullmatch(r"r1-g02-k1-[0-9a-f]{6}", ids.item_id(NAME, ids.parse(NAME)))

    @pytest.mark.parametrize(
        "text", ("", "x", NAME + "x", NAME[:-1], "r1-g02-k1", NAME.upper(), "r" + "9" * 300 + NAME)
    )
    def test_what_others_made(self, text):
        assert ids.parse(text) is None

    def test_votes_may_name_their_judge(self):
        for judge in ("", "-a", "/gpt", " 2", "_x"):
            assert ids.candidate_of(NAME + judge) == NAME
        for other in (NAME + "7", "other", NAME[:-1]):
            assert ids.candidate_of(other) == other


class TestLines:
    WHOLE = b'{"a":1}\n\n{"b":"\xc3\xa9"}\n'

    def test_whole(self):
        want = [(1, {"a": 1}), (3, {"b": "é"})]
        for data in (self.WHOLE, self.WHOLE[:-1], b"\xef\xbb\xbf" + self.WHOLE, self.WHOLE.replace(b"\n", b"\r\n")):
            assert lines.parse(data).rows == want

    @pytest.mark.parametrize("size", range(10, 18))
    def test_a_cut_last_line_is_an_error_that_says_where_or_is_passed_over(self, size):
        data = self.WHOLE[:size]
        with pytest.raises(InputError, match="line 3: the last line is cut"):
            lines.parse(data)
        assert lines.parse(data, allow_cut=True) == ([(1, {"a": 1})], 3)

    @pytest.mark.parametrize("allow", (True, False))
    def test_other_damage_is_an_error_in_any_case(self, allow):
        broken = {
            b'{"a"\n{"a":1}\n': "line 1: damaged JSON",
            b'{"a":1}\n{"a\n': "line 2: damaged JSON",
            b"[1]\n": "line 1: not a JSON object",
            b"{}\n1": "line 2: not a JSON object",
        }
        for data, text in broken.items():
            with pytest.raises(InputError, match=text):
                lines.parse(data, allow_cut=allow)


class TestReply:
    def test_content(self):
        assert reply(line("hi")) == Reply(NAME, "hi", None, False)
        assert (
            reply(line([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])).content
            == "ab"
        )
        two = line("a")
        two["response"]["body"]["choices"].append({"message": {"content": "b"}})
        assert reply(two).content == "a"
        del two["response"]["status_code"], two["error"]
        assert reply(two).content == "a"

    @pytest.mark.parametrize(
        ("row", "reason"),
        (
            (line("a", error={"code": "x", "message": "too\nslow"}), "error: x: too slow"),
            (line("a", error="broken"), "error: broken"),
            (line("a", response=None), "no response"),
            (line("a", response={"status_code": 429, "body": {"error": {"message": "slow down"}}}),
             "HTTP status 429: slow down"),
            (line("a", response={"status_code": 500, "body": None}), "HTTP status 500"),
            (line("a", response={"status_code": 200, "body": {"choices": []}}), "no choice in the response"),
            (line("a", response={"status_code": 200, "body": 7}), "no choice in the response"),
            (line(None), "no content"),
            (line("  \n"), "no content"),
            (line([{"type": "image"}]), "no content"),
        ),
    )  # fmt: skip
    def test_none_and_why(self, row, reason):
        got = reply(row)
        assert (got.content, got.reason) == (None, reason)

    def test_refusals_and_the_length_limit(self):
        row = line(None)
        row["response"]["body"]["choices"][0]["message"]["refusal"] = "I can't."
        assert reply(row).reason == "refused by the model: I can't."
        row = line("")
        row["response"]["body"]["choices"][0]["finish_reason"] = "length"
        assert reply(row).reason == "no content, cut at the length limit"

    @pytest.mark.parametrize(
        ("row", "text"),
        (
            ({"response": None}, "no custom_id"),
            ({"custom_id": 3, "response": None}, "no custom_id"),
            ({"custom_id": "a", "method": "POST", "body": {}}, "a request, not a reply"),
            ({"custom_id": "a"}, "no response and no error"),
        ),
    )
    def test_no_line_of_replies(self, row, text):
        with pytest.raises(InputError, match=text):
            reply(row)


GOOD = {"question": "a {b} \\frac{1}{2} ```x```", "answer": "7"}


class TestAnswer:
    @pytest.mark.parametrize(
        "text",
        (
            json.dumps(GOOD),
            "\n " + json.dumps(GOOD, indent=2) + "\n",
            f"```json\n{json.dumps(GOOD)}\n```",
            f"Sure, with {{x}} and \\frac{{1}}{{2}}:\n```\n{json.dumps(GOOD)}\n```\nDone {{}}.",
            f"Draft: {json.dumps(GOOD)}. Final: {json.dumps(GOOD)}",
            f'First {{"plan": 1}}, then {json.dumps(GOOD)}',
        ),
    )
    def test_the_one_object(self, text):
        assert answer.find(text, "question", "answer") == (GOOD, None)

    @pytest.mark.parametrize(
        ("text", "reason"),
        (
            ("no", "no JSON object"),
            ("[1, 2]", "no JSON object"),
            (json.dumps(GOOD)[:-1], "no JSON object"),
            ('{"question": "a", "answer": NaN}', "no JSON object"),
            ('{"question": "a", "answer": 1, "answer": 2}', "no JSON object"),
            ('{"question": "\\frac"}'.replace("\\f", "\\q"), "no JSON object"),
            ('{"question": "a"}', "the JSON object has no 'answer'"),
            (json.dumps({"result": GOOD}), "the JSON object has no 'question'"),
            (json.dumps(GOOD) + json.dumps(GOOD | {"answer": "8"}), "several different JSON objects"),
            ("{" * 3000 + '{"a":' * 3000, "no JSON object"),
        ),
    )
    def test_nothing_is_guessed(self, text, reason):
        assert answer.find(text, "question", "answer") == (None, reason)

    @given(st.text())
    def test_any_text(self, text):
        found = answer.find(text, "question")
        assert (found.value is None) != (found.reason is None)

    @pytest.mark.parametrize(
        "text", (r"\frac{1}{2}", r"\beta", r"3 \times 4", r"\theta", r"\nabla", r"\rho", r"a \neq b")
    )
    def test_backslashes_that_were_not_doubled(self, text):
        """JSON reads a single backslash before b, f, n, r and t as a control character."""
        read = json.loads('{"q": "' + text + '"}')["q"]
        assert "backslash was not doubled" in (answer.problem(read) or "")
        assert answer.problem(text) is None

    def test_what_texts_may_hold(self):
        assert answer.problem("a\tb\n\nnu = 3\r\nif x:\n\treturn") is None
        assert answer.problem(json.loads('"\\ud800"')) == "is not valid Unicode"


class TestVotes:
    @pytest.mark.parametrize(
        ("content", "want"),
        (("yes", True), ("Yes.", True), (" NO\n", False), ("true", True), ('{"valid": true}', True),
         ('```json\n{"valid": false, "why": "two answers"}\n```', False), ("maybe", None), ('{"valid": "yes"}', None),
         ("yes, I think so", None), ('{"valid": true} {"valid": false}', None), (None, None)),
    )  # fmt: skip
    def test_one(self, content, want):
        assert vote(reply(line(content))) is want

    def test_counted_by_candidate_each_line_once(self):
        rows = [line("yes"), line("yes"), line("no", id="y"), line("yes", NAME + "-judge2"), line("?"), line("no", "z")]
        got = count(rows)
        assert got.counts == {NAME: (2, 3), "z": (0, 1)} and got.unread == 1


class TestCopies:
    @pytest.mark.parametrize(
        ("a", "b"),
        (
            ("What is  2+2 ?", "what IS 2+2"),
            ("ﬁnd the ﬁrst", "FIND the first"),
            ("Straße", "STRASSE"),
            ("“Is it?” - she asked…", "'is it' she asked"),
            ("$x$ is even", "\\(x\\) is even"),
            ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
            ("in\u200bvisible", "invisible"),
            ("e\u0301", "é"),
        ),
    )
    def test_the_same(self, a, b):
        assert normalised(a) == normalised(b)

    def test_not_the_same(self):
        apart = ["x + y", "x < y", "x y", "xy", "1.5", "15", "x^2", "x2", "模型", "模"]
        assert len({normalised(t) for t in apart}) == len(apart)

    @given(st.text())
    def test_once_is_enough(self, text):
        assert normalised(normalised(text)) == normalised(text)
