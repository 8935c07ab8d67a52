"""Every error that podbot raises on purpose.

::

    PodbotError
     +-- ConfigError       what the operator asked for is not valid       exit 2
     |    +-- MissingRequired, InvalidValue, UnknownKey, MalformedFile,
     |    |   ConfigFileNotFound, UnsafeConfigFile, IllegalCombination,
     |    |   MountRefused, UsageError
     +-- ContainerError    the engine, or a container on it               exit 1
     |    +-- SocketNotFound, PermissionDenied, ConnectionFailed,
     |    |   HealthCheckFailed, EngineGone, UnsupportedEndpoint,
     |    |   ServiceStartFailed, CreateFailed, NameTaken, StartFailed,
     |    |   StopFailed, RemoveFailed, ExecFailed, UploadFailed,
     |    |   ImageNotFound, ImageBuildFailed, AgentNotInImage,
     |    |   ContainerNotFound, NotOurs, SandboxDied, RequestFailed,
     |    |   EngineStorageFull, CommandSurvived, MachineNotReady, NoImageBuilder
     +-- FilesystemError   a host file or directory                       exit 1
     |    +-- PathError, CredentialUnreadable, CredentialsTooLarge,
     |    |   UnsafeDirectory, SessionExists, TokenSessionMissing, DiskFull,
     |    |   UnsafeStore, HistoryNotFound, HistoryInUse,
     |    |   HistoryNotRemoved, SessionKept, SessionNotRestorable,
     |    |   SessionRecordUnknown,
     |    |   GuardTripped (exit 3)
     +-- GitHubError       the App, its key, or an installation token     exit 1
     |    +-- PrivateKeyMissing, PrivateKeyLoadFailed, GitHubUnreachable,
     |    |   GitHubRefused, GitHubBusy, GitHubAnswerInvalid,
     |    |   InstallationUnsuitable
     +-- CloneError        a clone inside the sandbox                     exit 1
     |    +-- CloneFailed, BranchNotFound, EmptyRepository,
     |    |   RepositoryNotFound, ServerUnreachable, GitNotInImage,
     |    |   TokenUnreadable, TransferFailed
     +-- StreamError       podbot's own stdin, stdout or terminal         exit 1
          +-- OutputClosed, ClientBroken, TerminalTooSmall,
              NotATerminalCommand

An error carries fields, never a sentence alone: ``exc.path``, ``exc.origin``. ``str(exc)`` is the
message followed by the remedy. Fields never hold a secret.

The classes are built by a small base instead of ``@dataclass``: forty generated ``__init__`` cost
15 ms at import, which every ``podbot exec`` would pay.
"""

from podbot.errors.base import PodbotError
from podbot.errors.clone import (
    BranchNotFound,
    CloneError,
    CloneFailed,
    EmptyRepository,
    GitNotInImage,
    RepositoryNotFound,
    ServerUnreachable,
    TokenUnreadable,
    TransferFailed,
)
from podbot.errors.config import (
    ConfigError,
    ConfigFileNotFound,
    IllegalCombination,
    InvalidValue,
    MalformedFile,
    MissingRequired,
    MountRefused,
    UnknownKey,
    UnsafeConfigFile,
    UsageError,
)
from podbot.errors.container import (
    AgentNotInImage,
    CommandSurvived,
    ConnectionFailed,
    ContainerError,
    ContainerNotFound,
    CreateFailed,
    EngineGone,
    EngineStorageFull,
    ExecFailed,
    HealthCheckFailed,
    ImageBuildFailed,
    ImageNotFound,
    MachineNotReady,
    NameTaken,
    NoImageBuilder,
    NotOurs,
    PermissionDenied,
    RemoveFailed,
    RequestFailed,
    SandboxDied,
    ServiceStartFailed,
    SocketNotFound,
    StartFailed,
    StopFailed,
    UnsupportedEndpoint,
    UploadFailed,
)
from podbot.errors.github import (
    GitHubAnswerInvalid,
    GitHubBusy,
    GitHubError,
    GitHubRefused,
    GitHubUnreachable,
    InstallationUnsuitable,
    PrivateKeyLoadFailed,
    PrivateKeyMissing,
)
from podbot.errors.history import HistoryInUse, HistoryNotFound, HistoryNotRemoved, UnsafeStore
from podbot.errors.host import (
    ClientBroken,
    CredentialsTooLarge,
    CredentialUnreadable,
    DiskFull,
    FilesystemError,
    GuardTripped,
    NotATerminalCommand,
    OutputClosed,
    PathError,
    SessionExists,
    StreamError,
    TerminalTooSmall,
    TokenSessionMissing,
    UnsafeDirectory,
)
from podbot.errors.session import SessionKept, SessionNotRestorable, SessionRecordUnknown

__all__ = [
    "AgentNotInImage",
    "BranchNotFound",
    "ClientBroken",
    "CloneError",
    "CloneFailed",
    "CommandSurvived",
    "ConfigError",
    "ConfigFileNotFound",
    "ConnectionFailed",
    "ContainerError",
    "ContainerNotFound",
    "CreateFailed",
    "CredentialUnreadable",
    "CredentialsTooLarge",
    "DiskFull",
    "EmptyRepository",
    "EngineGone",
    "EngineStorageFull",
    "ExecFailed",
    "FilesystemError",
    "GitHubAnswerInvalid",
    "GitHubBusy",
    "GitHubError",
    "GitHubRefused",
    "GitHubUnreachable",
    "GitNotInImage",
    "GuardTripped",
    "HealthCheckFailed",
    "HistoryInUse",
    "HistoryNotFound",
    "HistoryNotRemoved",
    "IllegalCombination",
    "ImageBuildFailed",
    "ImageNotFound",
    "InstallationUnsuitable",
    "InvalidValue",
    "MachineNotReady",
    "MalformedFile",
    "MissingRequired",
    "MountRefused",
    "NameTaken",
    "NoImageBuilder",
    "NotATerminalCommand",
    "NotOurs",
    "OutputClosed",
    "PathError",
    "PermissionDenied",
    "PodbotError",
    "PrivateKeyLoadFailed",
    "PrivateKeyMissing",
    "RemoveFailed",
    "RepositoryNotFound",
    "RequestFailed",
    "SandboxDied",
    "ServerUnreachable",
    "ServiceStartFailed",
    "SessionExists",
    "SessionKept",
    "SessionNotRestorable",
    "SessionRecordUnknown",
    "SocketNotFound",
    "StartFailed",
    "StopFailed",
    "StreamError",
    "TerminalTooSmall",
    "TokenSessionMissing",
    "TokenUnreadable",
    "TransferFailed",
    "UnknownKey",
    "UnsafeConfigFile",
    "UnsafeDirectory",
    "UnsafeStore",
    "UnsupportedEndpoint",
    "UploadFailed",
    "UsageError",
]
