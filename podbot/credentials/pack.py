"""What goes into the sandbox of the operator's agent logins: from a plan to one archive, and its upload."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from podbot.agents.definition import HOME, OWN_LOGIN, REPLACED, Family
from podbot.agents.registry import agent, families
from podbot.credentials.links import settle
from podbot.credentials.login_files import LIMIT, Entry, Skipped, scan
from podbot.credentials.login_reading import login_to_copy, read_login_files
from podbot.credentials.own_login import Refused, refresh_token
from podbot.engine.port import Engine
from podbot.errors import CredentialUnreadable
from podbot.events import Emit, Event
from podbot.frozen import Frozen, field, replace
from podbot.launch.resources.credentials import CredentialsPlan, FirstRunSource
from podbot.launch.types import CredentialSource

_MOST = 32 << 20  # bytes of the host's first-run file that are looked at; histories make Claude's some MiB
_NAMED = 5  # skipped names in an event's message; its fields have them all


class Bundle(Frozen):
    """An archive to unpack at ``/root``, empty when there is nothing.

    ``paths``: the families in it, as seen inside; ``first_run``: the first-run files in it, likewise. ``through``: the
    directories inside that must be there, parents first, because they have no entry: the engine replaces what is in the
    place of an entry, and follows links in its path.
    """

    archive: bytes = field(default=b"", repr=False)
    paths: tuple[str, ...] = ()
    first_run: tuple[str, ...] = ()
    through: tuple[str, ...] = ()


def pack(plan: CredentialsPlan, emit: Emit, *, limit: int = LIMIT) -> Bundle:
    """Read what the plan selected. ``limit``: bytes of archive for each family.

    Raises CredentialUnreadable and CredentialsTooLarge; nothing of the sandbox need exist yet.
    """
    entries: list[Entry] = []
    for source in plan.sources:
        entries += _family(source, emit, limit, plan)
    entries += [_first_run(plan, source) for source in plan.first_run]
    entries += _own_login(plan.own)
    entries += _key_login(plan)
    if not entries:
        return Bundle()
    from podbot.credentials.tar_archive import build

    return Bundle(
        build(entries),
        paths=tuple(source.target for source in plan.sources),
        first_run=tuple(source.target for source in plan.first_run),
        through=tuple(_through(entries)),
    )


def upload(engine: Engine, container: str, bundle: Bundle, emit: Emit) -> None:
    """Put the bundle into a created container; an empty one costs no request. Raises UploadFailed."""
    if not bundle.archive:
        return
    engine.put_archive(container, HOME, bundle.archive)
    names = bundle.paths or bundle.first_run
    if not names:
        return  # a link to podbot's own login, which has a notice
    text = f"copied {', '.join(names)} into the sandbox"
    emit(Event("info", "credentials.uploaded", text, {"paths": list(bundle.paths)}))


def _through(entries: Sequence[Entry]) -> Iterator[str]:
    made = {entry.path for entry in entries if entry.kind == "directory"}
    above = {""}
    for entry in entries:
        path = entry.path
        while path := os.path.dirname(path):
            above.add(path)
    for path in sorted(above - made):
        yield os.path.join(HOME, path).rstrip("/")


def _own_login(kind: str) -> Iterator[Entry]:
    """The link to the login that podbot keeps, and the settings that select it."""
    spec = agent(kind).own_login if kind else None
    if spec is None:
        return
    for path, text in spec.texts.items():
        yield Entry(path, "file", 0o600, text.encode())
    if not spec.directory_variable:
        yield Entry(spec.path, "link", 0o777, link=os.path.join(OWN_LOGIN, os.path.basename(spec.path)))


def _key_login(plan: CredentialsPlan) -> Iterator[Entry]:
    """The login that podbot makes of a key. In a session that is started again it is still there."""
    spec = agent(plan.keyed).key_login if plan.key else None
    if spec is not None:
        yield Entry(spec.path, "file", 0o600, spec.text(plan.key).encode())


def _family(source: CredentialSource, emit: Emit, limit: int, plan: CredentialsPlan) -> Iterator[Entry]:
    family = families()[source.family]
    if source.family in (plan.own, plan.keyed):
        family = replace(family, excluded={**family.excluded, REPLACED: family.login})
    _check_top(source)
    tree = settle(scan(family, source.source, limit=limit), _tops(source))
    _report(family, source, tree.skipped, emit)
    entries = tree.entries if plan.renewable else _without_refresh(source, tree.entries, emit)
    for entry in entries:
        yield replace(entry, path=f"{family.directory}/{entry.path}" if entry.path else family.directory)


def _without_refresh(source: CredentialSource, entries: tuple[Entry, ...], emit: Emit) -> list[Entry]:
    """The family with a login that nothing renews, and without any other file that has the token for that."""
    family, spec = families()[source.family], agent(source.family).own_login
    if spec is None:
        return list(entries)
    login = read_login_files(source.source, (family.login,)).get(family.login, b"")  # links in it are followed
    login = login if isinstance(login, bytes) else b""
    try:
        token = refresh_token(spec, login).encode()
    except Refused:
        token = b""
    kept, left_out = [], []
    for entry in entries:
        if entry.path == family.login:
            content, alone = login_to_copy(source.family, login, renewable=False)
            if alone and isinstance(content, bytes):
                kept.append(replace(entry, kind="file", mode=0o600, data=content, link=""))
        elif token and token in entry.data:
            left_out.append(Skipped(entry.path, "it has the token that renews the login", notify=True))
        else:
            kept.append(entry)
    _report(family, source, tuple(left_out), emit)
    return kept


def _tops(source: CredentialSource) -> list[str]:
    """The ways to spell the family's directory in a link: as it is, and as the home's name for it."""
    parent, name = os.path.split(source.given)
    return list(dict.fromkeys((source.source, source.given, os.path.join(os.path.realpath(parent), name))))


def _check_top(source: CredentialSource) -> None:
    """The directory may itself be reached by a link, as dotfile managers make them, but not to what holds the home."""
    home = os.path.realpath(os.path.dirname(source.given))
    reason = None
    if os.path.realpath(source.given) != source.source:
        reason = "the link's target changed after it was checked"
    elif os.path.islink(source.source):
        reason = "it is a loop of links"
    elif home == source.source or home.startswith(source.source.rstrip("/") + "/"):
        reason = f"it leads to {source.source}, which holds the home directory"
    if reason is not None:
        raise CredentialUnreadable(path=source.given, operation="copy", reason=reason, family=source.family)


def _report(family: Family, source: CredentialSource, skipped: tuple[Skipped, ...], emit: Emit) -> None:
    """A notice for each reason of what may be missed inside; the rest at debug level."""
    for notify in (True, False):
        reasons: dict[str, list[str]] = {}
        for found in skipped:
            if found.notify is notify:
                reasons.setdefault(found.reason, []).append(found.path)
        for reason, names in reasons.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            shown = ", ".join(map(repr, names[:_NAMED]))
            text = f"some files in {source.given} were not copied: {shown}{more}: {reason}"
            fields = {"family": family.name, "reason": reason, "names": list(map(_showable, names))}
            emit(Event("notice" if notify else "debug", "credentials.skipped", text, fields))


def _showable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _first_run(plan: CredentialsPlan, source: FirstRunSource) -> Entry:
    """The reduced file."""
    made = agent(source.kind).first_run
    if made is None:
        raise ValueError(source.kind)
    return Entry(made.path, "file", 0o600, made.reduce(_host_document(source), plan.trusted, source.approved_key))


def _host_document(source: FirstRunSource) -> bytes:
    """The host's own file, of which a few values are taken; empty when there is none."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        handle = os.open(source.source, flags)
    except FileNotFoundError:
        return b""
    except OSError as exc:
        raise _unreadable(source, exc) from exc
    try:
        with open(handle, "rb") as file:
            return file.read(_MOST) if _is_regular(handle) else b""
    except OSError as exc:
        raise _unreadable(source, exc) from exc


def _is_regular(handle: int) -> bool:
    import stat

    return stat.S_ISREG(os.fstat(handle).st_mode)


def _unreadable(source: FirstRunSource, exc: OSError) -> CredentialUnreadable:
    reason = exc.strerror or str(exc)
    return CredentialUnreadable(path=source.source, operation="read", reason=reason, family=source.kind)
