"""Long names, and their fold keys."""

from __future__ import annotations

import json
import time
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.jsontext import fold_key
from podbot.protocol.judge import judge
from podbot.protocol.policy import agent_rule


@given(st.text("met\u0301hod\u0345\u0327_K\ufdfa=\u0338ﬁ", min_size=60, max_size=400))
def test_a_long_name_folds_as_a_whole(name: str) -> None:
    """Names are folded in slices; a name that is recognised as a whole is also recognised in slices."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    whole = "".join(char for char in plain if char.isalnum())
    if whole.isascii():
        assert fold_key(name) == whole or len(whole) > 60


def test_names_of_combining_marks_cost_linear_time() -> None:
    """Each name of 4000 marks took 33 ms, three times: minutes for a frame within the limit."""
    marks = "\u0301" * 2000 + "\u0327" * 2000
    names = [f"{marks}{number}" for number in range(100)]
    before = time.process_time()
    for name in names[:10]:
        unicodedata.normalize("NFKC", name)
    once = (time.process_time() - before) * 10
    frame = json.dumps({"id": 1, "result": dict.fromkeys(names, 1)}, ensure_ascii=False).encode() + b"\n"
    before = time.process_time()
    assert judge(frame, "agent", agent_rule("none")).forward == frame
    assert time.process_time() - before < once, "to normalize each name as a whole takes more, on any machine"
