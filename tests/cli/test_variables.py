"""``-e`` and ``--env-file``: podman's and docker's form, and no value in a message."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.variables import file_variables, session_variables, variables
from podbot.config.checks import is_variable_name
from podbot.errors import InvalidValue

Take = Callable[[str], object]
HOST = {"HERE": "mine", "EMPTY": ""}


def read(text: str | bytes) -> dict[str, str | None]:
    data = text if isinstance(text, bytes) else text.encode()
    return dict(file_variables(data, "f", "a hint"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("A=1", {"A": "1"}),
        ("A=1\nB=2\n", {"A": "1", "B": "2"}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("# comment\n\n   \n \t# another\nA=1 # not one", {"A": "1 # not one"}),
        ("  A= x ", {"A": " x "}),
        ("A='q'\nB=\"q\"", {"A": "'q'", "B": '"q"'}),
        ("A=b=c", {"A": "b=c"}),
        ("A=", {"A": ""}),
        ("A=1\nA=2", {"A": "2"}),
        ("HERE\nEMPTY=\n  NOT_HERE", {"HERE": None, "EMPTY": "", "NOT_HERE": None}),
        ("\ufeffA=1", {"A": "1"}),
        ("A=ü", {"A": "ü"}),
    ],
)
def test_a_file_is_read_as_podman_reads_it(text: str, expected: dict[str, str | None]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "line", [b"s3cret value", b"=s3cret", b"1s3cret=x", b"s3cret =x", b"A=s3\0cret", b"A=s3cret\xff"]
)
def test_an_invalid_line_is_reported_without_its_content(line: bytes) -> None:
    with pytest.raises(InvalidValue) as caught:
        read(b"A=1\n" + line)
    assert "line 2 of f" in str(caught.value)
    assert "s3" not in str(caught.value)
    hints = {b"A=s3cret\xff": "Save the file as UTF-8.", b"s3cret =x": "Leave it out: NAME=VALUE."}
    assert caught.value.hint == hints.get(line, "a hint")
    assert caught.value.exit_code == 2


@given(st.text(), st.text(alphabet="AB_= \t#\n\r1xü\0", max_size=40))
def test_any_text_is_read_or_refused(one: str, two: str) -> None:
    for text in (one, two):
        try:
            found = dict(file_variables(text.encode("utf-8", "surrogateescape"), "f", "a hint"))
        except (InvalidValue, UnicodeEncodeError):
            continue
        assert all(is_variable_name(name) for name in found)
        assert not any("\0" in value or "\n" in value for value in found.values() if value)


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), st.text(alphabet=" a#='\"\\ü\t", max_size=9)
    )
)
def test_what_is_written_is_read_back(env: dict[str, str]) -> None:
    assert read("".join(f"{name}={value}\n" for name, value in env.items())) == env


def test_flags_override_files_and_later_files_override_earlier_ones(tmp_path: os.PathLike[str]) -> None:
    for name, text in (("one", "A=1\nB=1\nC=1\nEMPTY\nNOT_HERE"), ("two", "B=2\nC=2\nEMPTY")):
        with open(os.path.join(tmp_path, name), "w", encoding="utf-8") as file:
            file.write(text)
    files = [os.path.join(tmp_path, name) for name in ("one", "two")]
    found = variables(["C=3", "HERE"], files, HOST)
    assert found.env == {"A": "1", "B": "2", "C": "3", "EMPTY": "", "HERE": "mine"}
    assert found.taken == ("EMPTY",)


@pytest.mark.parametrize("path", ["/does/not/exist", "/", "a\0b"])
def test_a_file_that_cannot_be_read(path: str) -> None:
    with pytest.raises(
        InvalidValue, match=r"^env-file \(flag --env-file\): (.* cannot be read: |there is no file |/ is a directory)"
    ) as caught:
        variables([], [path], HOST)
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_utf_8(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "latin")
    with open(path, "wb") as file:
        file.write(b"A=1\nB=\xe9\n")
    with pytest.raises(InvalidValue, match=r"line 2 of .*: it is not UTF-8") as caught:
        variables([], [path], HOST)
    assert caught.value.remedy == "Save the file as UTF-8."


TOKEN = "ghp_" + "s3cret" * 6


@pytest.mark.parametrize(
    "take", [lambda pair: variables([pair], [], HOST), lambda pair: session_variables([pair], [], HOST)]
)
@pytest.mark.parametrize("pair", ["s3cret-value", "sk-ant-s3cret=", "s3cret value=1", TOKEN])
def test_what_may_be_a_secret_in_place_of_a_name_is_not_shown(take: Take, pair: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        take(pair)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["MY VAR=1"], "'MY VAR' is not a variable's name, which has letters, digits and _ only. Write `-e MY_VAR=…`."),
        (["A.B-C=1"], "'A.B-C' is not a variable's name, which has letters, digits and _ only. Write `-e A_B_C=…`."),
        (["c2VjcmV0+/=="], "it (not shown, because it may be a secret) does not begin with a variable's name."),
        (["X=1", "C2VJ CMV0=="], "number 2 of them (not shown, because it may be a secret) does not begin"),
        (["my pass=word"], "it (not shown, because it may be a secret) does not begin"),
        ([f"A {'B' * 40}=1"], "it (not shown, because it may be a secret) does not begin"),
    ],
)
def test_a_name_that_is_none_is_shown_only_if_it_can_be_no_secret(pairs: list[str], said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        variables(pairs, [], HOST)
    assert str(caught.value).startswith(f"env (flag -e): {said}")


def test_the_proposed_name_is_taken() -> None:
    assert variables(["MY_VAR=1"], [], HOST).env == {"MY_VAR": "1"}


def test_the_advice_about_a_line_holds_for_the_command(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "env")
    for text in ("1=x", TOKEN):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        with pytest.raises(InvalidValue) as caught:
            session_variables([], [path], HOST)
        assert "or NAME alone" not in caught.value.hint
        assert "-e NAME" in caught.value.hint
        assert "s3cret" not in str(caught.value)
    with open(path, "w", encoding="utf-8") as file:
        file.write("1=x")
    with pytest.raises(InvalidValue, match="or NAME alone"):
        variables([], [path], HOST)


@pytest.mark.parametrize("take", [lambda *a: variables(*a).env, session_variables])
@pytest.mark.parametrize("pair", ["X", "X=a\udcffb"])
def test_a_value_that_is_not_utf_8_stays_as_it_is(take: Callable[..., dict[str, str]], pair: str) -> None:
    assert take([pair], [], {"X": "a\udcffb"}) == {"X": "a\udcffb"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"export BAR=s3cret", "it begins with export, as in a shell's script. Leave export out: NAME=VALUE."),
        (b"  export\tBAR", "it begins with export, as in a shell's script. Leave export out: NAME=VALUE."),
        (b"BAR =s3cret", "it has a blank before =. Leave it out: NAME=VALUE."),
        (b"exported s3cret", "it does not begin with a variable's name. a hint"),
    ],
)
def test_a_line_of_a_shell_is_answered_with_what_to_leave_out(line: bytes, said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read(line)
    assert str(caught.value).endswith(f"line 1 of f: {said}")
    assert "s3cret" not in str(caught.value)


def test_a_variable_that_is_called_export_is_read() -> None:
    assert read("export=1\nexport_x=2") == {"export": "1", "export_x": "2"}


def test_a_name_alone_in_a_file_is_accepted_with_the_option_that_the_error_proposes(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("HERE\nA=1\n", encoding="utf-8")
    with pytest.raises(InvalidValue, match="Add `-e HERE` to pass your own value"):
        session_variables([], [str(path)], HOST)
    assert session_variables(["HERE"], [str(path)], HOST) == {"A": "1", "HERE": "mine"}
    with pytest.raises(InvalidValue, match="names HERE without a value"):
        session_variables(["EMPTY"], [str(path)], HOST)


@pytest.mark.parametrize("line", ["MY_KEY: s3cret", "MY_KEY:", "MY_KEY: a=s3cret"])
def test_a_line_of_yaml_is_answered_with_the_line_to_write(line: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read(line)
    assert "line 1 of f: there is a colon, and no =, after MY_KEY. Write MY_KEY=VALUE." in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("line", [f"{'s3cret' * 7}: 1", f"{TOKEN}: 1"])
def test_but_not_if_the_name_can_be_a_secret(line: str) -> None:
    with pytest.raises(InvalidValue, match="does not begin with a variable's name") as caught:
        read(line)
    assert "s3cret" not in str(caught.value)
