"""The keys of git's configuration that make git run a program, or read files that it should not. Pure, and data.

Ordinary keys (remotes, branches, identities, ``core.bare``) are not listed, so a commit, a fetch or a new branch causes
no finding.
"""

from __future__ import annotations

from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_WORDS = ("true", "false", "yes", "no", "on", "off", "0", "1", "")


def _anything(_value: str | None) -> bool:
    return True


def _program(value: str | None) -> bool:
    """Whether the value names a program; a boolean selects git's builtin."""
    return value is not None and value.lower() not in _WORDS


def _shell(value: str | None) -> bool:
    return value is not None and value.lstrip().startswith("!")


def _helper(value: str | None) -> bool:
    """Whether it is ``ext::COMMAND`` or another transport that is a program, or an option in place of a host."""
    return value is not None and ("::" in value or value.startswith("-"))


KEYS: Mapping[str, Callable[[str | None], bool]] = {
    **dict.fromkeys(
        (
            "core.hookspath", "core.sshcommand", "core.gitproxy", "core.editor", "core.askpass", "core.attributesfile",
            "core.worktree", "core.alternaterefscommand", "core.pager", "sequence.editor", "interactive.difffilter",
            "include.path", "includeif.*.path", "filter.*.clean", "filter.*.smudge", "filter.*.process",
            "diff.external", "diff.*.command", "diff.*.textconv", "merge.*.driver", "mergetool.*.cmd",
            "mergetool.*.path", "difftool.*.cmd", "difftool.*.path",
            "guitool.*.cmd", "man.*.cmd", "man.*.path", "browser.*.cmd",
            "browser.*.path", "instaweb.httpd", "tar.*.command", "trailer.*.command", "trailer.*.cmd", "hook.*.command",
            "credential.helper", "credential.*.helper", "gpg.program", "gpg.*.program", "gpg.*.defaultkeycommand",
            "gpg.ssh.allowedsignersfile", "sendemail.sendmailcmd", "sendemail.*.sendmailcmd", "sendemail.tocmd",
            "sendemail.cccmd", "sendemail.headercmd", "sendemail.smtpserver", "imap.tunnel", "remote.*.uploadpack",
            "remote.*.receivepack", "remote.*.vcs", "uploadpack.packobjectshook", "url.*.insteadof",
            "url.*.pushinsteadof", "protocol.allow", "protocol.*.allow", "http.proxy", "http.*.proxy", "http.sslverify",
            "http.*.sslverify", "http.sslcainfo", "http.*.sslcainfo", "http.cookiefile", "remote.*.proxy",
            "lfs.url", "lfs.customtransfer.*.path", "lfs.extension.*.clean", "lfs.extension.*.smudge",
            "gc.recentobjectshook", "delta.pager", "remote.pushdefault", "http.extraheader",
            "http.*.extraheader", "http.curloptresolve", "http.*.curloptresolve", "alias.*", "alias.*.command",
            "init.templatedir", "safe.directory", "safe.barerepository",
        ),
        _anything,
    ),
    "core.fsmonitor": _program,
    "pager.*": _program,
    "submodule.*.update": _shell,
    "remote.*.url": _helper,
    "remote.*.pushurl": _helper,
    "submodule.*.url": _helper,
    "branch.*.remote": _helper,
}  # fmt: skip
"""Key -> whether a value is dangerous. ``*`` is a subsection, or the name in ``alias`` and ``pager``."""


def pattern(key: str) -> str:
    """``key`` with its subsection, which may contain dots, replaced by ``*``."""
    section, _, rest = key.partition(".")
    middle, dot, name = rest.rpartition(".")
    if section in ("alias", "pager") and not dot:
        return f"{section}.*"
    if not dot:
        return key
    if section == "lfs" and middle.startswith(("customtransfer.", "extension.")):
        return f"lfs.{middle.partition('.')[0]}.*.{name}"
    return key if key in KEYS else f"{section}.*.{name}"


def dangerous(entries: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """The dangerous entries: each key with its values, in the order of the file."""
    found: dict[str, list[str]] = {}
    for key, value in entries:
        matters = KEYS.get(pattern(key))
        if matters is not None and matters(value):
            found.setdefault(key, []).append("true" if value is None else value)
    return found


def programs(values: Iterable[str]) -> list[str]:
    """Words in commands that may be paths: scripts of the workspace that git runs because of its configuration."""
    words = [word.strip("'\"!;&|()") for value in values for word in value.split()[:8]]
    return [word for word in words if word and word[0] not in "-$" and _is_plain(word)]


def _is_plain(word: str) -> bool:
    return len(word) < 1000 and not set(word) & set("$`*?\"'<>|;")
