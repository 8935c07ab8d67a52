"""What of a program's text Python 3.8 may not have.

Before a name is added to NAMES, look up whether Python 3.8 has it. Where a Python 3.8 is found, the tests ask it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

OLDEST = (3, 8)
# The names of modules that the programs use. The modules alone are in it, too.
NAMES = {
    "__future__": "annotations",
    "_collections": "deque",
    "_json": "encode_basestring_ascii make_encoder make_scanner",
    "_signal": "SIGCHLD SIGKILL SIGSTOP SIG_DFL getsignal set_wakeup_fd signal valid_signals",
    "_socket": "AF_INET AF_UNIX CMSG_SPACE SCM_RIGHTS SOCK_STREAM SOL_SOCKET SO_PEERCRED SO_REUSEADDR socket",
    "binascii": "a2b_base64 b2a_base64",
    "codecs": "getincrementaldecoder",
    "collections": "deque",
    "collections.abc": "Callable Generator Iterable Iterator",
    "contextlib": "contextmanager suppress",
    "errno": "EACCES EEXIST EINVAL EIO EISDIR ELOOP EMLINK ENAMETOOLONG ENOENT ENOSYS ENOTDIR ENOTEMPTY "
    "EOPNOTSUPP EPERM EROFS",
    "fcntl": "LOCK_EX LOCK_NB fcntl flock ioctl",
    "heapq": "merge nsmallest",
    "json": "dumps loads",
    "operator": "itemgetter",
    "os": "O_APPEND O_CLOEXEC O_CREAT O_DIRECTORY O_EXCL O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_RDONLY O_RDWR "
    "O_WRONLY POSIX_SPAWN_DUP2 ST_RDONLY WEXITSTATUS WIFSIGNALED WNOHANG WTERMSIG X_OK _exit access chdir chmod close "
    "dup dup2 environb execve execvp fchmod fchown fork fsdecode fsencode fstat "
    "getcwd getcwdb geteuid getgid getpid getppid getuid "
    "getxattr kill killpg link listdir listxattr mkdir open openpty path pipe posix_spawn pread read readlink rename "
    "rmdir scandir set_blocking set_inheritable setgid setgroups setsid setuid setxattr stat stat_result statvfs "
    "strerror symlink sysconf umask unlink urandom utime waitpid write writev",
    "os.path": "isdir isfile join sameopenfile",
    "re": "DOTALL IGNORECASE compile error escape sub",
    "resource": "RLIMIT_AS RLIM_INFINITY getrlimit setrlimit",
    "select": "EPOLLIN EPOLLOUT POLLIN epoll poll",
    "signal": "SIGKILL SIGTERM SIG_DFL signal",
    "sre_parse": "parse",
    "stat": "S_IMODE S_ISDIR S_ISLNK S_ISREG",
    "struct": "Struct pack unpack",
    "sys": "argv exit modules stderr version_info",
    "termios": "FIONREAD TIOCSCTTY TIOCSWINSZ",
    "time": "CLOCK_BOOTTIME clock_gettime monotonic sleep time time_ns",
    "typing": "Any",
}
# Asked for in a `try`, and missing in Python 3.8.
NEWER = {("re", "_parser")}
# Of values that have no module: methods, and parameters of what is called so.
NEWER_METHODS = frozenset(("removeprefix", "removesuffix", "bit_count", "hardlink_to"))
NEWER_PARAMETERS = {
    "zip": ("strict",),
    "map": ("strict",),
    "Popen": ("user", "group", "extra_groups", "umask", "pipesize", "process_group"),
}
NEWER_BUILTINS = frozenset(("aiter", "anext", "BaseExceptionGroup", "ExceptionGroup", "EncodingWarning"))
_GENERIC = frozenset(("list", "dict", "tuple", "set", "frozenset", "type"))


def unknown(text: str) -> list[str]:
    """What of a module's text Python 3.8 may not have. Raises SyntaxError for newer grammar."""
    tree = ast.parse(text, feature_version=OLDEST)
    names = [f"{module}.{name}" for module, name in _taken(tree) if not _is_known(module, name)]
    generic = _GENERIC | {name for module, name in _taken(tree) if module == "collections.abc"}
    return names + [what for node in _evaluated(tree) for what in _newer(node, generic)]


def _evaluated(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes without annotations, which nothing evaluates, and without what is for type checkers only."""
    if isinstance(tree, ast.If) and isinstance(tree.test, ast.Name) and tree.test.id == "TYPE_CHECKING":
        return
    yield tree
    for field, value in ast.iter_fields(tree):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _evaluated(child)


def _taken(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that it takes from modules. A module alone is one with an empty name."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""
                modules[alias.asname or alias.name.partition(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), alias.name) for alias in node.names)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(module), name) if module in modules:
                yield modules[module], name
            case ast.Attribute(ast.Attribute(ast.Name("os"), "path"), name):
                yield "os.path", name


def _is_known(module: str, name: str) -> bool:
    if module.partition(".")[0] == "podbot" or (module, name) in NEWER:
        return True
    return module in NAMES and (not name or name in NAMES[module].split())


def _newer(node: ast.AST, generic: frozenset[str]) -> Iterator[str]:
    match node:
        case ast.Subscript(ast.Name(name)) if name in generic:
            yield f"{name}[…] that is evaluated"
        case ast.Call(ast.Name("isinstance" | "issubclass"), [_, ast.BinOp()]):
            yield "a union in isinstance"
        case ast.Attribute(_, name) if name in NEWER_METHODS:
            yield f"the method {name}"
        case ast.Call(ast.Attribute(_, "to_bytes" | "from_bytes"), [] | [_], keywords=[]):
            yield "a byte order that is missing"
        case ast.Call(ast.Name(name) | ast.Attribute(_, name), keywords=keywords) if name in NEWER_PARAMETERS:
            yield from (f"{name}({word.arg}=)" for word in keywords if word.arg in NEWER_PARAMETERS[name])
        case ast.Name(name) if name in NEWER_BUILTINS:
            yield name
